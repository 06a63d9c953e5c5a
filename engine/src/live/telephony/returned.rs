//! A transfer that nobody has taken: the carrier asks how to go on, and the caller comes back to the conversation, which
//! waits in its process. Where none waits any more, the call is over.
use super::late_price;
use super::leg::{Leg, command_id};
use super::token::{CallToken, Purpose};
use super::{CallUrls, PATH};
use crate::base::time::Timestamp;
use crate::carriers::{Carrier, Connect, DialEnd, End, Outgoing, Progress, Reply, Report, Untaken};
use crate::conversation::{EndedReason, Outcome};
use crate::live::socket_origin;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, NewCall};
use crate::storage::fault::{Fault, retry_stale};

/// The document that the carrier goes on with, after the transfer with this number. A repeated request gets the same.
pub(super) async fn answer(
    services: &Services,
    carrier: &dyn Carrier,
    token: &CallToken,
    visit: u32,
    ended: &DialEnd,
) -> Result<Reply, Fault> {
    retry_stale(|| go_on(services, carrier, token, visit, ended)).await
}

async fn go_on(
    services: &Services,
    carrier: &dyn Carrier,
    token: &CallToken,
    visit: u32,
    ended: &DialEnd,
) -> Result<Reply, Fault> {
    let CallToken { workspace_id, call_id } = token;
    let reads = [
        Leg::select(workspace_id, call_id),
        conversation(services, token),
        calls::select_for(workspace_id, call_id),
    ];
    let [leg, waiting, call] = services.read(reads).await?;
    let leg = Leg::first(Some(&leg))?.filter(|leg| leg.provider == carrier.provider());
    let is_ours = |leg: &Leg| ended.carrier_call_id.is_none() || leg.carrier_call_id == ended.carrier_call_id;
    let Some(mut leg) = leg.filter(is_ours) else { return Ok(carrier.end()) };
    if leg.is_over {
        // Who names our line asks how to go on: the answer ends it, which may be reported nowhere else.
        let is_told = leg.facts.end.is_some() || leg.facts.returns + 1 != visit;
        if ended.carrier_call_id.is_some() && leg.line.is_some() && !is_told {
            let (now, before, mut batch) = (services.now(), leg.clone(), Batch::default());
            if ended.untaken.is_some() {
                // There was no second line, which would have a price.
                leg.facts.handed_over_ms = None;
            }
            caller_hung_up(&mut leg, now);
            late_price::store(services, &before, leg, call.first(), now, &mut batch)?;
            batch.write(services).await?;
        }
        return Ok(carrier.end());
    }
    let call = call.first().map(|call| NewCall::read(call, workspace_id)).transpose()?;
    let our_number = call.as_ref().and_then(NewCall::our_number).unwrap_or_default();
    let comes_back = !ended.is_over && ended.untaken.is_some() && Rows::first(&waiting).is_some();
    if !leg.rings() {
        // Answered before, unless the process has died since: then its socket is refused.
        let again = leg.facts.returns == visit && leg.facts.untaken == ended.untaken;
        return if again && comes_back {
            connect(services, carrier, &leg, our_number)
        } else {
            Ok(carrier.end())
        };
    }
    if leg.facts.returns + 1 != visit {
        return Ok(carrier.end());
    }
    let now = services.now();
    let mut batch = Batch::default();
    match ended.untaken {
        None => leg.is_taken(now),
        Some(untaken) => {
            batch = leg.is_not_taken();
            if ended.is_over {
                caller_hung_up(&mut leg, now);
            } else if comes_back {
                leg.facts.untaken = Some(untaken);
                leg.facts.returns = visit;
            }
        }
    }
    batch.prepend(leg.change());
    batch.signal(&leg.call_id);
    // If its process has died.
    leg.wake_job(now, &mut batch);
    batch.write(services).await?;
    if comes_back { connect(services, carrier, &leg, our_number) } else { Ok(carrier.end()) }
}

/// Takes the report that the line to somebody else has ended, from a carrier that leaves ours open. If nobody has taken the call,
/// the conversation that waits connects the caller again. False for any other report, and for a line that somebody has taken.
pub(super) async fn by_report(
    services: &Services,
    carrier: &dyn Carrier,
    token: Option<&CallToken>,
    report: &Report,
) -> Result<bool, Fault> {
    match (token, &report.progress) {
        (Some(token), Some(Progress::Ended(end)))
            if carrier.keeps_transferred_line() && carrier.tells_of_transfer() =>
        {
            let other = report.carrier_call_id.as_str();
            retry_stale(|| other_has_ended(services, carrier, token, other, end)).await
        }
        _ => Ok(false),
    }
}

async fn other_has_ended(
    services: &Services,
    carrier: &dyn Carrier,
    token: &CallToken,
    other: &str,
    end: &End,
) -> Result<bool, Fault> {
    let reads = [Leg::select(&token.workspace_id, &token.call_id), conversation(services, token)];
    let [leg, waiting] = services.read(reads).await?;
    let leg = Leg::first(Some(&leg))?.filter(|leg| leg.provider == carrier.provider());
    let Some(mut leg) = leg.filter(|leg| !leg.may_have_carrier_id(other)) else { return Ok(false) };
    if leg.facts.untaken_ids.iter().any(|id| id == other) {
        return Ok(true);
    }
    if !leg.rings() || leg.is_over {
        return Ok(false);
    }
    let now = services.now();
    let has_hung_up = leg.facts.end.is_some();
    let untaken = match end.outcome {
        Outcome::Completed => None,
        Outcome::Busy => Some(Untaken::Busy),
        Outcome::NoAnswer | Outcome::Canceled => Some(Untaken::NoAnswer),
        _ => Some(Untaken::Failed),
    };
    let mut batch = match untaken {
        Some(_) => leg.is_not_taken(),
        None => {
            leg.is_taken(now);
            Batch::default()
        }
    };
    if untaken.is_some() && !has_hung_up && Rows::first(&waiting).is_some() {
        leg.facts.untaken = untaken;
        leg.facts.returns += 1;
        leg.facts.untaken_ids.push(other.to_owned());
    } else if !has_hung_up {
        // Our line is open, with nobody at its other end.
        leg.hang_up_by(services, now, now, &mut batch);
    }
    batch.prepend(leg.change());
    batch.signal(&leg.call_id);
    // If its process has died.
    leg.wake_job(now, &mut batch);
    batch.write(services).await?;
    Ok(true)
}

/// A row, if a process holds the conversation.
fn conversation(services: &Services, token: &CallToken) -> Statement {
    sql!(
        "SELECT 1 AS is_held FROM jobs WHERE workspace_id = :ws AND lease IS NOT NULL AND due_at > :now
         AND id = (SELECT job_id FROM phone_calls WHERE workspace_id = :ws AND call_id = :call)",
        call = &token.call_id,
        now = services.now(),
    )
    .in_workspace(&token.workspace_id)
}

/// Whoever was connected did not wait. Some carriers report that nowhere else.
fn caller_hung_up(leg: &mut Leg, now: Timestamp) {
    if leg.facts.end.is_none() {
        leg.facts.end = Some(End::of(EndedReason::UserHungUp, "").ended_by(Some(leg.person())));
        leg.facts.end_reported_ms = Some(now.ms());
    }
}

/// The document that connects the caller to another media socket.
fn connect(services: &Services, carrier: &dyn Carrier, leg: &Leg, our_number: &str) -> Result<Reply, Fault> {
    with_socket(services, leg, (our_number, 0), |call| carrier.answer(call))
}

/// The command that does; `None` where the carrier asks for a document. Commands with the same number are one to the carrier.
pub(crate) fn command(
    services: &Services,
    carrier: &dyn Carrier,
    leg: &Leg,
    number: u32,
) -> Result<Option<Outgoing>, Fault> {
    with_socket(services, leg, ("", number), |call| carrier.reconnect(call))
}

/// What the carrier is sent to open the media socket of this visit.
fn with_socket<T>(
    services: &Services,
    leg: &Leg,
    (our_number, number): (&str, u32),
    send: impl FnOnce(&Connect<'_>) -> T,
) -> Result<T, Fault> {
    let visit = leg.facts.returns;
    let urls = CallUrls::new(services, leg.provider, &leg.workspace_id, &leg.call_id)?;
    let config = services.config();
    let token =
        CallToken::new(&leg.workspace_id, &leg.call_id).sign(&config.secret, Purpose::MediaAgain(visit))?;
    let base = format!("{}{PATH}{}", socket_origin(&config.base_url), leg.provider.as_str());
    Ok(send(&Connect {
        carrier_call_id: leg.carrier_call_id.as_deref().unwrap_or_default(),
        our_number,
        media_url: &format!("{base}/media/{token}"),
        status_url: &urls.status,
        command_id: &command_id(&leg.call_id, &format!("back {visit} {number}")),
        now_ms: services.ports().clock.now_ms(),
        max_seconds: u32::try_from(leg.max_seconds).unwrap_or_default(),
    }))
}

/// What the model is told.
pub(crate) fn told(name: &str, untaken: Option<Untaken>) -> String {
    let what = match untaken {
        Some(Untaken::Busy) => format!("{name:?} is busy."),
        Some(Untaken::NoAnswer) => format!("Nobody has answered at {name:?}."),
        Some(Untaken::Failed) | None => format!("{name:?} could not be reached."),
    };
    format!("{what} The caller is back on the line.")
}
