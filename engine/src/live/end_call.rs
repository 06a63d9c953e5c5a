//! How a call ends: one place for every call, whoever notices that it is over.
//!
//! [`ended`] says what came of a call; [`end_call`] writes it. A caller adds what only it changes to the same batch.
pub(crate) mod ended;

use serde_json::json;

use crate::base::time::Timestamp;
use crate::live::call_journal;
use crate::live::lease::JobLease;
use crate::live::telephony::leg::Leg;
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Analysis, Call, EndedCall, NewCall};
use crate::storage::events::{EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;
use crate::storage::spending;

/// A call that ends now.
pub(crate) struct EndOfCall<'a> {
    /// The call as the log has it.
    pub(crate) call: &'a NewCall,
    /// The carrier's side of a telephone call, with everything that changes in it along with the end.
    pub(crate) leg: Option<&'a Leg>,
    /// Why it ends, and what there was of a conversation.
    pub(crate) ended: EndedCall,
    /// The analysis, where it is there already.
    pub(crate) analysis: Option<&'a Analysis>,
    /// The webhooks as they are now: they may have changed since the call began.
    pub(crate) subscribers: &'a Subscribers,
    /// Who holds the job of the call.
    pub(crate) job: CallJob<'a>,
    /// Who closes the line at the carrier.
    pub(crate) line: Line,
    /// The time at which the end is written: the date of its event, and the month in which its costs count.
    pub(crate) now: Timestamp,
}

/// Who holds the job that analyzes the call once it is over.
pub(crate) enum CallJob<'a> {
    /// Nobody: it is due at once.
    Unclaimed,
    /// The conversation, which hands it over. The batch is undone when it has lost its lease.
    Conversation(&'a JobLease),
    /// Whoever ends the call: it goes on by itself.
    Ours,
}

/// Who closes the line of a telephone call at its carrier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// A job does, unless the carrier has said that the call is over: a line may outlive our socket.
    HungUpByJob,
    /// The answer to the carrier's callback does: it refuses the call.
    Refused,
}

/// Adds to `batch` everything that ends a call, and nothing else does: the carrier's side, the call with its costs, the
/// month's spending, the journal, the jobs that follow, and the event that shows the call as a read will show it.
///
/// The batch is undone when the carrier's side has changed since `leg` was read, so of all who could end a call one does.
pub(crate) fn end_call(services: &Services, batch: &mut Batch, end: EndOfCall<'_>) -> Result<(), Fault> {
    let EndOfCall { call, leg, mut ended, analysis, subscribers, job, line, now } = end;
    let NewCall { workspace_id, id, .. } = call;
    if let CallJob::Conversation(lease) = &job {
        batch.extend(lease.hand_over());
        batch.wake(JobKind::LiveCall, lease.job_id(), now.ms());
    }
    let mut call = call.clone();
    if let Some(leg) = leg {
        // Some carriers name a call anew once it is under way.
        call.carrier_call_id.clone_from(&leg.carrier_call_id);
        ended::apply_carrier_facts(&mut ended, leg);
        ended::apply_carrier_price(&mut ended, leg, services.config().carriers.rates());
        batch.extend(Leg { is_over: true, ..leg.clone() }.change());
        if matches!(job, CallJob::Unclaimed) {
            leg.wake_job(now, batch);
        }
        if line == Line::HungUpByJob {
            leg.hang_up_later(services, now, batch);
        }
    }
    batch.extend(calls::write::end(workspace_id, id, &ended, analysis));
    batch.extend(call_journal::forget(workspace_id, id));
    batch.extend(spending::add(workspace_id, now.ms(), ended.costs.total_microusd));
    batch.emit(services, workspace_id, subscribers, EventKind::CallEnded, now.ms(), || {
        Ok(json!({"call": Call::of(&call, Some(&ended), analysis)?}))
    })
}
