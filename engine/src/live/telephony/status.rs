//! A carrier tells what became of a call: twice, late, out of order. The call's state only moves forward.
use serde_json::json;

use crate::base::limits::{PHONE_CONNECT_MS, STALE_ATTEMPTS_MAX};
use crate::carriers::{Billed, CarrierName, End, Progress, Rates, Report};
use crate::conversation::{EndedReason, Outcome};
use crate::live::telephony::leg::{Leg, Placing};
use crate::live::telephony::token::CallToken;
use crate::ports::statement::{Row, Rows};
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, CallStatus, Costs, EndedCall, NewCall, Usage};
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::spending;

/// Takes in a report: the call as it is then. One about a call that is not ours is nobody's business.
pub async fn apply(
    services: &Services,
    provider: CarrierName,
    token: Option<&CallToken>,
    report: Report,
) -> Result<Option<Leg>, Fault> {
    for _ in 0..STALE_ATTEMPTS_MAX {
        match applied(services, provider, token, &report).await {
            Err(Fault::Stale) => {}
            other => return other,
        }
    }
    Err(Fault::Stale)
}

async fn applied(
    services: &Services,
    provider: CarrierName,
    token: Option<&CallToken>,
    report: &Report,
) -> Result<Option<Leg>, Fault> {
    let ports = services.ports();
    let select = match token {
        Some(token) => Leg::select(&token.workspace_id, &token.call_id),
        None => Leg::select_by_carrier(provider, &report.carrier_call_id),
    };
    let rows = ports.database.read(vec![select]).await?;
    let before = Leg::first(rows.first())?
        .filter(|leg| leg.provider == provider && leg.may_be(&report.carrier_call_id));
    let Some(before) = before else {
        return Ok(None);
    };
    let change = Change::new(services, &before, report);
    if !change.is_any() {
        return Ok(Some(before));
    }
    let call = vec![
        calls::select_for(&before.workspace_id, &before.call_id),
        events::subscribers(&before.workspace_id),
    ];
    let rows = ports.database.read(call).await?;
    change.batch(services, &rows)?.write(services).await?;
    Ok(Some(change.after))
}

/// What a report changes.
struct Change<'a> {
    before: &'a Leg,
    after: Leg,
    report: &'a Report,
    now_ms: i64,
    /// The call is over, and nobody else will say so.
    end: Option<End>,
}

impl<'a> Change<'a> {
    fn new(services: &Services, before: &'a Leg, report: &'a Report) -> Self {
        let mut after = before.clone();
        if !report.carrier_call_id.is_empty() {
            // Some carriers name a call anew once it is under way.
            after.carrier_call_id = Some(report.carrier_call_id.clone());
        }
        if before.placing != Placing::Incoming {
            // It calls back, so it has taken the call, whatever became of its answer.
            after.placing = Placing::Accepted;
        }
        let said = &mut after.said;
        said.machine = said.machine.or(report.machine);
        said.answered |= report.progress == Some(Progress::Answered);
        said.billed = merged(said.billed, report.billed);
        let mut end = None;
        if let Some(Progress::Ended(told)) = &report.progress {
            said.end.get_or_insert_with(|| told.clone());
            // A conversation that is, or was, under way comes to its own end and takes this along.
            end = said.end.clone().filter(|_| !before.is_over && before.media_started_at.is_none());
        }
        after.is_over = before.is_over || end.is_some();
        Self { before, after, report, now_ms: services.ports().clock.now_ms(), end }
    }

    fn is_any(&self) -> bool {
        self.after != *self.before || (self.status().is_some() && !self.before.is_over)
    }

    /// Where the call is by this report, short of its end.
    fn status(&self) -> Option<CallStatus> {
        match self.report.progress {
            Some(Progress::Ringing) => Some(CallStatus::Ringing),
            Some(Progress::Answered) => Some(CallStatus::InProgress),
            Some(Progress::Ended(_)) | None => None,
        }
    }

    /// What is written. `rows` are the call and its workspace's subscribers.
    fn batch(&self, services: &Services, rows: &[Rows]) -> Result<Batch, Fault> {
        let Leg { workspace_id, call_id, .. } = self.before;
        let missing = || Fault::Bug(format!("{call_id} is not in the log"));
        let row = rows.first().and_then(Rows::first).ok_or_else(missing)?;
        let subscribers = Subscribers::read(rows.get(1).ok_or_else(missing)?)?;
        let leg = &self.after;
        let mut batch = Batch::from(leg.change());
        if let Some(id) = &leg.carrier_call_id
            && leg.carrier_call_id != self.before.carrier_call_id
        {
            batch.extend(calls::write::carried(workspace_id, call_id, id));
        }
        // Of a call that is over its job has something to do at once.
        if let Some(status) = self.status().filter(|_| !self.before.is_over) {
            batch.extend(calls::write::advance(workspace_id, call_id, status, self.now_ms));
            batch.push(self.before.wait_until(self.now_ms + PHONE_CONNECT_MS));
        }
        // It was given up, and rings all the same: whoever answers would hear nobody. One that came in was hung up
        // then, or is being told why nobody talks.
        if self.before.is_over
            && self.before.placing != Placing::Incoming
            && self.before.media_started_at.is_none()
            && self.status().is_some()
        {
            leg.hang_up_later(services, self.now_ms, &mut batch);
        }
        if let Some(end) = &self.end {
            let answered_at = row.optional_integer("answered_at")?;
            let mut ended = unconnected(leg, end, answered_at, self.now_ms);
            leg.settle(&mut ended, services.config().carriers.rates());
            batch.extend(calls::write::end(workspace_id, call_id, &ended, None));
            batch.extend(spending::add(workspace_id, self.now_ms, ended.costs.total_microusd));
            leg.wake_job(self.now_ms, &mut batch);
            batch.emit(services, workspace_id, &subscribers, EventKind::CallEnded, self.now_ms, || {
                let call = Leg::named(&NewCall::read(row, workspace_id)?, Some(leg));
                Ok(json!({"call": Call::of(&call, Some(&ended), None)?}))
            })?;
        } else if self.before.is_over && self.after.said.billed != self.before.said.billed {
            self.reprice(row, services.config().carriers.rates(), &mut batch)?;
        }
        Ok(batch)
    }

    /// The carrier has told the price after the call was over.
    fn reprice(&self, row: Row<'_>, rates: &Rates, batch: &mut Batch) -> Result<(), Fault> {
        let Leg { workspace_id, call_id, provider, .. } = self.before;
        let ours_ms = row.optional_integer("duration_ms")?.unwrap_or(0);
        let Some(microusd) = rates.cost_microusd(*provider, self.after.said.billed, ours_ms) else {
            return Ok(());
        };
        let before = row.integer("telephony_microusd")?;
        let total = row.integer("cost_microusd")? - before + microusd;
        batch.extend(calls::write::repriced(workspace_id, call_id, microusd, total));
        batch.extend(spending::add(workspace_id, self.now_ms, microusd - before));
        Ok(())
    }
}

/// What is known of a price once more of it is told.
fn merged(before: Option<Billed>, told: Option<Billed>) -> Option<Billed> {
    match (before, told) {
        (Some(before), Some(told)) => Some(Billed {
            duration_ms: told.duration_ms.or(before.duration_ms),
            cost_microusd: told.cost_microusd.or(before.cost_microusd),
        }),
        (before, told) => told.or(before),
    }
}

/// The end of a call whose media never came, and that was answered at this moment, if it was.
pub fn unconnected(leg: &Leg, end: &End, answered_at: Option<i64>, now_ms: i64) -> EndedCall {
    let (reason, outcome, fault) = if end.outcome != Outcome::Completed {
        (end.reason, end.outcome, end.fault)
    } else if leg.is_left_by_the_person(end, answered_at, now_ms) {
        // In the moment before the first audio: nobody talked, and nobody is to blame.
        (end.reason, Outcome::Canceled, end.fault)
    } else {
        // Answered and hung up without a word: the two sides were never connected.
        let reason = EndedReason::MediaLost;
        (reason, reason.outcome(), reason.fault())
    };
    EndedCall {
        answered_at,
        ended_at: now_ms,
        duration_ms: 0,
        outcome,
        ended_reason: Some(reason),
        fault,
        transcript: Vec::new(),
        costs: Costs::default(),
        usage: Usage::default(),
    }
}
