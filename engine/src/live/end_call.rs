//! The end of a call: one function for all calls.
//!
//! [`ended`] computes how a call ended; [`end_call`] stores it. Callers add their own changes to the same batch.
pub(crate) mod ended;

use serde_json::json;

use crate::base::time::Timestamp;
use crate::carriers::End;
use crate::live::call_journal;
use crate::live::lease::JobLease;
use crate::live::telephony::leg::Leg;
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Analysis, Call, EndedCall, NewCall};
use crate::storage::events::{EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;
use crate::storage::recordings;
use crate::storage::spending;

/// The end of a call.
pub(crate) struct EndOfCall<'a> {
    /// The call as stored.
    pub(crate) call: &'a NewCall,
    /// The leg of a telephone call, including the changes that come with the end.
    pub(crate) leg: Option<&'a Leg>,
    /// How the call ended.
    pub(crate) ended: EndedCall,
    /// The analysis, if there is one already.
    pub(crate) analysis: Option<&'a Analysis>,
    /// What was recorded of it while it ran.
    pub(crate) recorded_ms: Option<i64>,
    /// The current webhooks: they may have changed since the call began.
    pub(crate) subscribers: &'a Subscribers,
    /// The state of the call's job.
    pub(crate) job: CallJob<'a>,
    /// How the line at the carrier is closed.
    pub(crate) line_end: LineEnd,
    /// The current time: the date of the event, and the month of the costs.
    pub(crate) now: Timestamp,
}

impl<'a> EndOfCall<'a> {
    /// The end of a telephone call that never had audio, and that no process works on.
    pub(crate) fn never_connected(
        call: &'a NewCall,
        leg: &'a Leg,
        end: &End,
        subscribers: &'a Subscribers,
        now: Timestamp,
    ) -> Self {
        Self {
            call,
            leg: Some(leg),
            ended: ended::never_connected(leg, end, call.answered_at, now),
            analysis: None,
            recorded_ms: None,
            subscribers,
            job: CallJob::Unclaimed,
            line_end: LineEnd::HangUpByJob,
            now,
        }
    }
}

/// The state of the job that analyzes the ended call.
pub(crate) enum CallJob<'a> {
    /// Unclaimed: the job becomes due at once.
    Unclaimed,
    /// Leased by the conversation, which releases it. The batch fails if the conversation has lost the lease.
    Conversation(&'a JobLease),
    /// Leased by the caller of [`end_call`], which continues with it.
    LeasedByCaller,
}

/// How the line of a telephone call is closed at its carrier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// A job hangs up, unless the carrier has reported the end: a line can outlive our socket.
    HangUpByJob,
    /// The response to the carrier's callback declines the call.
    Declined,
}

/// Adds everything that ends a call to `batch`: the leg, the call with its costs, the month's spending and reservation,
/// the journal, the following jobs, and the event. No other function ends a call.
///
/// The batch fails if the leg has changed since it was read, so only one of several concurrent ends is stored.
pub(crate) fn end_call(services: &Services, batch: &mut Batch, end: EndOfCall<'_>) -> Result<(), Fault> {
    let EndOfCall { call, leg, mut ended, analysis, recorded_ms, subscribers, job, line_end, now } = end;
    let NewCall { workspace_id, id, .. } = call;
    if let CallJob::Conversation(lease) = &job {
        batch.extend(lease.release());
        batch.wake(JobKind::LiveCall, lease.job_id(), now.ms());
    }
    let mut call = call.clone();
    if let Some(leg) = leg {
        // Some carriers assign a new id once the call is in progress.
        call.carrier_call_id.clone_from(&leg.carrier_call_id);
        ended::apply_carrier_facts(&mut ended, leg);
        ended::apply_end_of_line(&mut ended, leg);
        ended::apply_carrier_price(&mut ended, leg, services.config().carriers.rates());
        batch.extend(Leg { is_over: true, ..leg.clone() }.change());
        if matches!(job, CallJob::Unclaimed) {
            leg.wake_job(now, batch);
        }
        if line_end == LineEnd::HangUpByJob {
            leg.hang_up_later(services, now, batch);
        }
        if !matches!(job, CallJob::Conversation(_)) {
            batch.signal(id);
        }
    }
    batch.extend(calls::write::end(workspace_id, id, &ended, analysis));
    batch.extend(recordings::end(workspace_id, id, recorded_ms, now.ms()));
    batch.extend(call_journal::delete(workspace_id, id));
    batch.extend(spending::add(workspace_id, now.ms(), ended.costs.total_microusd));
    batch.extend(spending::release(workspace_id, id));
    let as_read = || {
        let call = Call::of(&call, Some(&ended), analysis)?;
        let base_url = &services.config().base_url;
        let call = match recorded_ms {
            Some(recorded_ms) => call.recorded(base_url, recorded_ms),
            None => call,
        };
        Ok(json!({ "call": call }))
    };
    if services.ports().traces.is_some() {
        batch.trace(workspace_id, as_read()?["call"].take());
    }
    let ended_event = EventKind::CallEnded.of_call(id);
    batch.emit(services, workspace_id, subscribers, ended_event, now.ms(), as_read)?;
    match recorded_ms {
        Some(_) => batch.emit(
            services,
            workspace_id,
            subscribers,
            EventKind::RecordingReady.of_call(id),
            now.ms(),
            as_read,
        ),
        None => Ok(()),
    }
}
