//! The specifics of telephone calls: the socket may open while the call still rings, and the carrier sends reports.
use super::Drive;
use crate::base::limits::LEASED_ATTEMPTS_MAX;
use crate::base::limits::{PHONE_BREAK_LOOK_MS, PHONE_BREAK_REPORT_MS, PHONE_CONNECT_MS, PHONE_START_MS};
use crate::base::time::Timestamp;
use crate::conversation::{EndedReason, Input};
use crate::live::call_journal;
use crate::live::peer::PeerEvent;
use crate::live::telephony::leg::Leg;
use crate::ports::statement::Rows;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, CallStatus};
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;

impl Drive<'_> {
    /// Whether to keep waiting for audio, because some carriers open the socket while the call still rings. Extends the
    /// lease.
    pub(super) async fn may_keep_waiting(&mut self) -> Result<bool, Fault> {
        let session = self.session;
        let (workspace_id, call_id) = (&session.call.workspace_id, &session.call.id);
        let now_ms = self.now_ms();
        let reads = vec![Leg::select(workspace_id, call_id), calls::select_for(workspace_id, call_id)];
        let rows = session.services.ports().database.read(reads).await?;
        let (Some(leg), Some(call)) = (Leg::first(rows.first())?, rows.get(1).and_then(Rows::first)) else {
            return Err(Fault::Bug(format!("{call_id} does not exist")));
        };
        let opened_at = leg.media_at.map_or(now_ms, Timestamp::ms);
        let until_ms = match leg.is_answered() {
            // The carrier reports the answer and starts the audio over separate connections: the call may be between
            // the two.
            true => {
                call.optional_integer("answered_at")?.map_or(opened_at, |at| at.max(opened_at))
                    + PHONE_START_MS
            }
            false => opened_at + PHONE_CONNECT_MS,
        };
        if leg.is_over || now_ms >= until_ms {
            return Ok(false);
        }
        session.services.ports().database.write(session.lease.extend(now_ms).to_vec()).await?;
        Ok(true)
    }

    /// Marks the call as answered when audio arrives. From then on the call ends with the conversation.
    pub(super) async fn mark_connected(&mut self) -> Result<(), Fault> {
        let session = self.session;
        let (workspace_id, call_id) = (&session.call.workspace_id, &session.call.id);
        for _ in 0..LEASED_ATTEMPTS_MAX {
            let now_ms = self.now_ms();
            let leg = Leg::load(&session.services, workspace_id, call_id).await?;
            if leg.is_over {
                // The carrier's report of the end is stored already; the call's job finishes the call.
                return self.release_unconnected(0).await;
            }
            let mut statements = session.lease.extend(now_ms).to_vec();
            let leg = Leg { media_started_at: Some(Timestamp::from_ms(now_ms)), ..leg };
            statements.extend(leg.change());
            statements.extend(calls::write::advance(
                workspace_id,
                call_id,
                CallStatus::InProgress,
                Timestamp::from_ms(now_ms),
            ));
            // The carrier may have reported the answer since the socket was opened.
            statements.push(calls::select_for(workspace_id, call_id));
            match session.services.ports().database.write(statements).await.map_err(Fault::from) {
                Ok(rows) => {
                    let call = rows.last().and_then(Rows::first);
                    let answered_at = call.map(|row| row.optional_integer("answered_at")).transpose()?;
                    self.answered_at = Some(answered_at.flatten().unwrap_or(now_ms));
                    self.note_answerer(&leg);
                    self.home.has_written();
                    return Ok(());
                }
                Err(Fault::Stale) => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Stale)
    }

    /// Leaves a call without audio to its job: the carrier's report ends the call, or the job does after `wait_ms`.
    pub(super) async fn release_unconnected(&mut self, wait_ms: i64) -> Result<(), Fault> {
        let session = self.session;
        let (workspace_id, call_id) = (&session.call.workspace_id, &session.call.id);
        // The end may be stored already: then there is nothing to wait for.
        let is_over = Leg::load(&session.services, workspace_id, call_id).await?.is_over;
        let due_at = self.now_ms() + if is_over { 0 } else { wait_ms };
        let mut batch = Batch::from(session.lease.release_until(due_at));
        batch.extend(call_journal::delete(workspace_id, call_id));
        batch.wake(JobKind::LiveCall, session.lease.job_id(), due_at);
        batch.write(&session.services).await?;
        self.is_released = true;
        Ok(())
    }

    /// Why a media socket closed that says so before it does. The carrier may report it in a moment.
    pub(super) async fn why_broken(&mut self) -> Result<PeerEvent, Fault> {
        let session = self.session;
        let call = &session.call;
        let until_ms = self.now_ms() + PHONE_BREAK_REPORT_MS;
        loop {
            let leg = Leg::load(&session.services, &call.workspace_id, &call.id).await?;
            match leg.stop_reason() {
                Some((EndedReason::UserHungUp, _)) if leg.was_ended_by_person() => {
                    return Ok(PeerEvent::Gone);
                }
                // Every carrier ends a call whose socket is gone, and some report that end without saying whose it was.
                Some((EndedReason::UserHungUp, _)) => break,
                Some((reason, fault)) => {
                    let fault = fault.unwrap_or_else(|| reason.fault());
                    return Ok(PeerEvent::Stop { reason, fault });
                }
                None if self.now_ms() >= until_ms => break,
                None => session.services.ports().clock.sleep(PHONE_BREAK_LOOK_MS).await,
            }
        }
        let reason = EndedReason::MediaLost;
        Ok(PeerEvent::Stop { reason, fault: reason.fault() })
    }

    /// Stops the conversation if the leg requires it: the carrier may have ended the call, or an API client may have
    /// requested its end.
    pub(super) fn apply_leg(&mut self, leg: Option<Leg>) {
        let Some(leg) = leg else { return };
        self.note_answerer(&leg);
        if self.look_at_transfer(&leg) {
            return;
        }
        if let Some((reason, fault)) = leg.stop_reason().filter(|_| self.transferring.is_none()) {
            self.fault = fault.or(self.fault);
            self.is_connection_over = true;
            // The end came before this look at it.
            let now_ms = self.now_ms();
            let at_ms = leg.stopped_at().map_or(now_ms, |at| at.ms().min(now_ms));
            self.inputs.handle(&mut self.conversation, at_ms, Input::Stop { reason });
        }
    }
}
