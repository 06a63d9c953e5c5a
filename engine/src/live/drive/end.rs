//! The end of a conversation: the call, its costs and its event, in one batch.
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::{Drive, END_ATTEMPTS_MAX};
use crate::conversation::{EndedReason, Input};
use crate::live::ended::ended;
use crate::live::journal::{self, SoFar};
use crate::live::peer::Peer;
use crate::live::telephony::leg::Leg;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call};
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;
use crate::storage::spending;

impl Drive<'_> {
    /// Ends the call in one batch, then tells the other end.
    pub(super) async fn end(&mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        // What is under way is over with: a request is aborted, a question not waited for.
        self.thinking = None;
        self.calling = FuturesUnordered::new();
        let reason = self.conversation.ended().unwrap_or(EndedReason::Aborted);
        if peer.finish(reason).await {
            self.tell(Input::Spoken);
        }
        for _ in 0..END_ATTEMPTS_MAX {
            match self.write_end(reason).await {
                Ok(()) => {
                    let duration_ms = self.conversation.offset_ms();
                    peer.over(&self.session.call.id, reason, duration_ms).await;
                    return Ok(());
                }
                // The carrier may have said something meanwhile; or the lease is somebody else's, and stays so.
                Err(Fault::Stale) if self.session.on_phone => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Stale)
    }

    async fn write_end(&mut self, reason: EndedReason) -> Result<(), Fault> {
        let session = self.session;
        let (services, workspace_id) = (&session.services, &session.call.workspace_id);
        let now_ms = self.now_ms();
        let so_far = SoFar {
            offset_ms: self.conversation.offset_ms(),
            spent: self.spent,
            transcript: self.conversation.transcript().to_vec(),
        };
        // Who wants to know may have changed since the conversation began.
        let reads = vec![events::subscribers(workspace_id), Leg::select(workspace_id, &session.call.id)];
        let found = services.ports().database.read(reads).await?;
        let [subscribers, leg] = &found[..] else {
            return Err(Fault::Bug("a batch lacks answers".to_owned()));
        };
        let (subscribers, leg) = (Subscribers::read(subscribers)?, Leg::first(Some(leg))?);
        let answered_at = self.answered_at.unwrap_or(session.call.started_at);
        let mut ended = ended(so_far, reason, self.fault, answered_at, now_ms);
        let mut batch = Batch::from(session.hold.hand_over());
        batch.wake(JobKind::LiveCall, session.hold.job_id(), now_ms);
        if let Some(leg) = &leg {
            leg.settle(&mut ended, services.config().carriers.rates());
            batch.extend(Leg { is_over: true, ..leg.clone() }.change());
            leg.hang_up_later(services, now_ms, &mut batch);
        }
        batch.extend(calls::write::end(workspace_id, &session.call.id, &ended, None));
        batch.extend(journal::forget(workspace_id, &session.call.id));
        batch.extend(spending::add(workspace_id, now_ms, ended.costs.total_microusd));
        batch.emit(services, workspace_id, &subscribers, EventKind::CallEnded, now_ms, || {
            let call = Leg::named(&session.call, leg.as_ref());
            Ok(json!({"call": Call::of(&call, Some(&ended), None)?}))
        })?;
        batch.write(services).await?;
        Ok(())
    }
}
