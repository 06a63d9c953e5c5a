//! Status reports of a carrier. They may be repeated, late and out of order; the call's state only moves forward.
use crate::base::limits::PHONE_CONNECT_MS;
use crate::base::time::Timestamp;
use crate::carriers::{Billed, CarrierName, End, Progress, Report};
use crate::live::end_call::{EndOfCall, end_call};
use crate::live::telephony::late_price;
use crate::live::telephony::leg::{DueIf, Leg, Placing};
use crate::live::telephony::token::CallToken;
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, CallStatus, NewCall};
use crate::storage::events::{self, Subscribers};
use crate::storage::fault::{Fault, retry_stale};

/// Records a report, and returns the call's updated leg. A report about an unknown call changes nothing.
pub async fn apply(
    services: &Services,
    provider: CarrierName,
    token: Option<&CallToken>,
    report: Report,
) -> Result<Option<Leg>, Fault> {
    retry_stale(|| apply_once(services, provider, token, &report)).await
}

async fn apply_once(
    services: &Services,
    provider: CarrierName,
    token: Option<&CallToken>,
    report: &Report,
) -> Result<Option<Leg>, Fault> {
    let select = match token {
        Some(token) => Leg::select(&token.workspace_id, &token.call_id),
        None => Leg::select_by_carrier(provider, &report.carrier_call_id),
    };
    let [rows] = services.read([select]).await?;
    let Some(before) = Leg::first(Some(&rows))?.filter(|leg| leg.provider == provider) else {
        return Ok(None);
    };
    if !before.may_have_carrier_id(&report.carrier_call_id) {
        if before.may_be_transferred() {
            other_end(services, before, report).await?;
        }
        return Ok(None);
    }
    let change = Change::new(services, &before, report);
    if !change.has_effect() {
        return Ok(Some(before));
    }
    let reads =
        [calls::select_for(&before.workspace_id, &before.call_id), events::subscribers(&before.workspace_id)];
    let [call, subscribers] = services.read(reads).await?;
    match change.batch(services, call.first(), &subscribers)?.write(services).await {
        Ok(_) => Ok(Some(change.after)),
        // The carrier's id is that of another call: whatever this reports, it is not about the call of its address.
        Err(error) if error.is_constraint("phone_calls.carrier_call_id") => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// About the number to which a call was transferred. Once it has answered, somebody has taken the call. If it is not reached, or
/// has hung up, nobody is left to talk with.
async fn other_end(services: &Services, leg: Leg, report: &Report) -> Result<(), Fault> {
    if leg.facts.untaken_ids.contains(&report.carrier_call_id) {
        // An earlier one, which costs nothing: what it reports late is not about the one that rings, or talks.
        return Ok(());
    }
    let now = services.now();
    let mut batch = Batch::default();
    let keeps_line =
        services.config().carriers.get(leg.provider).is_some_and(|it| it.keeps_transferred_line());
    if keeps_line && matches!(report.progress, Some(Progress::Ended(_))) {
        leg.hang_up_by(services, now, now, &mut batch);
    }
    let mut after = leg.clone();
    after.facts.other_billed = merge_billed(leg.facts.other_billed, report.billed);
    if leg.rings() && !leg.is_over && report.progress == Some(Progress::Answered) {
        after.is_taken(now);
        batch.signal(&leg.call_id);
        // If its process has died.
        leg.wake_job(now, &mut batch);
    }
    if after != leg {
        let [call] = services.read([calls::select_for(&leg.workspace_id, &leg.call_id)]).await?;
        late_price::store(services, &leg, after, call.first(), now, &mut batch)?;
    }
    batch.write(services).await?;
    Ok(())
}

/// The changes of a report.
struct Change<'a> {
    before: &'a Leg,
    after: Leg,
    report: &'a Report,
    now: Timestamp,
    /// The end of the call, if this report ends it.
    end: Option<End>,
}

impl<'a> Change<'a> {
    fn new(services: &Services, before: &'a Leg, report: &'a Report) -> Self {
        let mut after = before.clone();
        if !report.carrier_call_id.is_empty() {
            // Some carriers assign a new id once the call is in progress.
            after.carrier_call_id = Some(report.carrier_call_id.clone());
        }
        if before.placing != Placing::Incoming {
            // A callback proves that the carrier has accepted the call, even if its response was lost.
            after.placing = Placing::Accepted;
        }
        let facts = &mut after.facts;
        facts.machine = facts.machine.or(report.machine);
        facts.greeting = facts.greeting.or(report.greeting);
        facts.answered |= report.progress == Some(Progress::Answered);
        facts.billed = merge_billed(facts.billed, report.billed);
        let mut end = None;
        if let Some(Progress::Ended(reported)) = &report.progress {
            if facts.end.is_none() {
                facts.end = Some(reported.clone());
                facts.end_reported_ms = Some(services.ports().clock.now_ms());
            }
            // A running conversation ends its own call and uses these facts.
            end = facts.end.clone().filter(|_| !before.is_over && before.media_started_at.is_none());
        }
        Self { before, after, report, now: services.now(), end }
    }

    fn has_effect(&self) -> bool {
        self.end.is_some() || self.after != *self.before || (self.status().is_some() && !self.before.is_over)
    }

    /// The call's status after this report, unless the call ends.
    fn status(&self) -> Option<CallStatus> {
        match self.report.progress {
            Some(Progress::Ringing) => Some(CallStatus::Ringing),
            Some(Progress::Answered) => Some(CallStatus::InProgress),
            Some(Progress::Ended(_)) | None => None,
        }
    }

    /// The batch to write. Without a call, it was deleted: its leg still learns about the line and the price.
    fn batch(&self, services: &Services, call: Option<Row<'_>>, subscribers: &Rows) -> Result<Batch, Fault> {
        let Leg { workspace_id, call_id, is_over, .. } = self.before;
        let leg = &self.after;
        let mut batch = Batch::default();
        if leg.placing != Placing::Incoming {
            batch.push(callback_seen(leg, self.now));
        }
        if let Some(id) = &leg.carrier_call_id
            && leg.carrier_call_id != self.before.carrier_call_id
        {
            batch.extend(calls::write::carried(workspace_id, call_id, id));
        }
        if let Some(end) = &self.end {
            let call = call.ok_or_else(|| Fault::Bug(format!("{call_id} is not in the log")))?;
            let call = NewCall::read(call, workspace_id)?;
            let subscribers = Subscribers::read(subscribers)?;
            let end = EndOfCall::never_connected(&call, leg, end, &subscribers, self.now);
            end_call(services, &mut batch, end)?;
            return Ok(batch);
        }
        late_price::store(services, self.before, leg.clone(), call, self.now, &mut batch)?;
        batch.signal(call_id);
        if self.before.rings() && leg.facts.end.is_some() {
            // If its process has died, nobody waits any more.
            leg.wake_job(self.now, &mut batch);
        }
        if let Some(status) = self.status() {
            if !is_over {
                batch.extend(calls::write::advance(workspace_id, call_id, status, self.now));
                batch.push(leg.set_job_due(self.now + PHONE_CONNECT_MS, DueIf::Always));
            } else if leg.placing != Placing::Incoming && leg.media_started_at.is_none() {
                // The call has ended here but rings, and no conversation would start when it is answered. This does not
                // apply to incoming calls: they were hung up or declined at their end.
                leg.hang_up_later(services, self.now, &mut batch);
            }
        }
        Ok(batch)
    }
}

/// Shows the owner of the number that a call was placed from that the carrier's callbacks arrive. That of a call to a number
/// is noted when it begins.
fn callback_seen(leg: &Leg, now: Timestamp) -> Statement {
    sql!(
        "UPDATE numbers SET last_callback_at = :now WHERE workspace_id = :workspace_id AND provider = :provider
         AND number = (SELECT from_number FROM calls WHERE workspace_id = :workspace_id AND id = :call)",
        workspace_id = &leg.workspace_id,
        provider = leg.provider.as_str(),
        call = &leg.call_id,
        now = now
    )
}

/// Combines what two reports say about the price.
fn merge_billed(before: Option<Billed>, latest: Option<Billed>) -> Option<Billed> {
    match (before, latest) {
        (Some(before), Some(latest)) => Some(Billed {
            duration_ms: latest.duration_ms.or(before.duration_ms),
            cost_microusd: latest.cost_microusd.or(before.cost_microusd),
        }),
        (before, latest) => latest.or(before),
    }
}
