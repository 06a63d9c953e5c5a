//! A call comes in: which assistant answers it, and the answer.
use serde_json::json;

use crate::base::error::Code;
use crate::base::ids::prefix;
use crate::base::limits::{PHONE_CALL_SECONDS_MAX, PHONE_CONNECT_MS, STALE_ATTEMPTS_MAX};
use crate::carriers::{Carrier, CarrierName, Connect, IncomingCall, Progress, Refusal, Reply, Report};
use crate::conversation::{CallFault, EndedReason};
use crate::live::telephony::leg::{self, CarrierFacts, Leg, Placing};
use crate::live::telephony::token::CallToken;
use crate::live::telephony::{CallUrls, status};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::speech;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, CallStatus, Costs, Direction, EndedCall, NewCall, Source, Usage};
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::{DUE_AT_ONCE, JobKind};
use crate::storage::spending;

/// Answers it, or declines.
pub async fn answer(services: &Services, carrier: &dyn Carrier, call: IncomingCall) -> Result<Reply, Fault> {
    for _ in 0..STALE_ATTEMPTS_MAX {
        match routed(services, carrier, &call).await {
            Err(Fault::Stale) => {}
            other => return other,
        }
    }
    Err(Fault::Stale)
}

/// What a call that was placed, and answered, is connected to, for carriers that ask then.
pub async fn answer_placed(
    services: &Services,
    carrier: &dyn Carrier,
    token: Option<&CallToken>,
    carrier_call_id: &str,
) -> Result<Reply, Fault> {
    let report = Report {
        carrier_call_id: carrier_call_id.to_owned(),
        progress: Some(Progress::Answered),
        ..Report::default()
    };
    let leg = status::apply(services, carrier.provider(), token, report).await?;
    let nobody = IncomingCall { carrier_call_id: carrier_call_id.to_owned(), ..IncomingCall::default() };
    match leg {
        Some(leg) if !leg.is_over && leg.media_at.is_none() => connect(services, carrier, &leg, &nobody),
        _ => Ok(carrier.refuse(&nobody, Refusal::Unbound)),
    }
}

async fn routed(services: &Services, carrier: &dyn Carrier, call: &IncomingCall) -> Result<Reply, Fault> {
    let now_ms = services.ports().clock.now_ms();
    let provider = carrier.provider();
    let reads = vec![
        Leg::select_by_carrier(provider, &call.carrier_call_id),
        sql!(
            "SELECT n.workspace_id AS workspace_id, a.id AS assistant_id, a.revision AS revision, a.model AS model,
             a.voice AS voice, w.calls_at_once AS calls_at_once,
             (SELECT COUNT(*) FROM phone_calls AS p WHERE p.workspace_id = n.workspace_id AND p.is_over = 0) AS calls
             FROM numbers AS n JOIN assistants AS a ON a.id = n.assistant_id JOIN workspaces AS w ON w.id = n.workspace_id
             WHERE n.number = ?1 AND n.provider = ?2",
            &call.to,
            provider.as_str()
        ),
        of_the_number(events::callers_subscribers(), call),
        of_the_number(spending::select(now_ms), call),
    ];
    let rows = services.ports().database.read(reads).await?;
    let [legs, binding, subscribers, spending] = &rows[..] else {
        return Err(Fault::Bug("a batch lacks answers".to_owned()));
    };
    // Carriers say everything more than once.
    if let Some(leg) = Leg::first(Some(legs))? {
        return match leg.media_at {
            _ if leg.is_over => Ok(carrier.refuse(call, Refusal::Busy)),
            // It is connected: a command that declines it now would be about a live call.
            Some(_) => Ok(carrier.acknowledge()),
            None => connect(services, carrier, &leg, call),
        };
    }
    let Some(row) = binding.first() else {
        return Ok(carrier.refuse(call, Refusal::Unbound));
    };
    let binding = Binding::read(row)?;
    let new = binding.call(services, provider, call, now_ms);
    let subscribers = Subscribers::read(subscribers)?;
    match binding.obstacle(spending)? {
        Some(reason) => {
            decline(services, &new, &subscribers, reason).await?;
            Ok(carrier.refuse(call, Refusal::Busy))
        }
        None => {
            let leg = begin(services, &new, call, &subscribers).await?;
            connect(services, carrier, &leg, call)
        }
    }
}

/// A statement about the workspace that the called number belongs to.
fn of_the_number(statement: Statement, call: &IncomingCall) -> Statement {
    statement.with_workspace("(SELECT workspace_id FROM numbers WHERE number = ?", &call.to, ")")
}

/// Whose number it is, and who answers.
struct Binding {
    workspace_id: String,
    assistant_id: String,
    revision: i64,
    model: String,
    voice: String,
    calls: i64,
    calls_at_once: i64,
}

impl Binding {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            workspace_id: row.text("workspace_id")?,
            assistant_id: row.text("assistant_id")?,
            revision: row.integer("revision")?,
            model: row.text("model")?,
            voice: row.text("voice")?,
            calls: row.integer("calls")?,
            calls_at_once: row.integer("calls_at_once")?,
        })
    }

    /// Why the call cannot be taken now.
    fn obstacle(&self, spending: &Rows) -> Result<Option<EndedReason>, Fault> {
        if !speech::can_speak(&self.voice) {
            return Ok(Some(EndedReason::ModelFailed));
        }
        if self.calls >= self.calls_at_once {
            return Ok(Some(EndedReason::Busy));
        }
        // The carrier costs money whatever the model does.
        match spending::check(Some(spending), true) {
            Ok(()) => Ok(None),
            Err(Fault::Refused(error)) if error.code == Code::SpendLimitReached => {
                Ok(Some(EndedReason::CostLimit))
            }
            Err(fault) => Err(fault),
        }
    }

    fn call(&self, services: &Services, provider: CarrierName, call: &IncomingCall, now_ms: i64) -> NewCall {
        NewCall {
            workspace_id: self.workspace_id.clone(),
            id: services.id(prefix::CALL),
            assistant_id: self.assistant_id.clone(),
            assistant_revision: self.revision,
            source: Source::Inbound,
            direction: Direction::Inbound,
            status: CallStatus::Ringing,
            from: call.from.clone(),
            to: Some(call.to.clone()),
            user_number: None,
            provider: Some(provider),
            carrier_call_id: Some(call.carrier_call_id.clone()),
            model: self.model.clone(),
            voice: self.voice.clone(),
            started_at: now_ms,
            answered_at: None,
            simulation_run_id: None,
        }
    }
}

/// Puts the call on disk.
async fn begin(
    services: &Services,
    new: &NewCall,
    call: &IncomingCall,
    subscribers: &Subscribers,
) -> Result<Leg, Fault> {
    let leg = leg(services, new, call.region_url.clone(), Placing::Incoming, PHONE_CALL_SECONDS_MAX)?;
    let mut batch = Batch::from([leg.room(), leg.insert(), leg.job(new.started_at + PHONE_CONNECT_MS)]);
    batch.extend(calls::write::insert(new));
    announce(services, new, None, subscribers, EventKind::CallStarted, &mut batch)?;
    write(services, batch).await?;
    Ok(leg)
}

/// Puts a call that is declined on disk: whoever owns the number sees that somebody called, and why in vain.
async fn decline(
    services: &Services,
    new: &NewCall,
    subscribers: &Subscribers,
    reason: EndedReason,
) -> Result<(), Fault> {
    let ended = EndedCall {
        answered_at: None,
        ended_at: new.started_at,
        duration_ms: 0,
        outcome: crate::conversation::Outcome::Busy,
        ended_reason: Some(reason),
        fault: CallFault::Operator,
        transcript: Vec::new(),
        costs: Costs::default(),
        usage: Usage::default(),
    };
    let mut leg = leg(services, new, None, Placing::Incoming, 0)?;
    leg.is_over = true;
    let mut batch = Batch::from([leg.insert(), leg.job(DUE_AT_ONCE)]);
    batch.extend(calls::write::record(new, Some(&ended), None));
    announce(services, new, None, subscribers, EventKind::CallStarted, &mut batch)?;
    announce(services, new, Some(&ended), subscribers, EventKind::CallEnded, &mut batch)?;
    batch.wake(JobKind::LiveCall, &leg.job_id, new.started_at);
    write(services, batch).await
}

/// The row of a call that begins.
pub(crate) fn leg(
    services: &Services,
    new: &NewCall,
    region_url: Option<String>,
    placing: Placing,
    max_seconds: i64,
) -> Result<Leg, Fault> {
    let provider = new.provider.ok_or_else(|| Fault::Bug(format!("{} has no carrier", new.id)))?;
    Ok(Leg {
        call_id: new.id.clone(),
        workspace_id: new.workspace_id.clone(),
        assistant_id: new.assistant_id.clone(),
        provider,
        carrier_call_id: new.carrier_call_id.clone(),
        region_url,
        job_id: services.id(prefix::JOB),
        max_seconds,
        placing,
        media_at: None,
        media_started_at: None,
        hang_up_at: None,
        said: CarrierFacts::default(),
        is_over: false,
        version: 1,
        created_at: new.started_at,
    })
}

/// Adds the event that a call began or ended.
pub(crate) fn announce(
    services: &Services,
    new: &NewCall,
    ended: Option<&EndedCall>,
    subscribers: &Subscribers,
    kind: EventKind,
    batch: &mut Batch,
) -> Result<(), Fault> {
    batch.emit(services, &new.workspace_id, subscribers, kind, new.started_at, || {
        Ok(json!({"call": Call::of(new, ended, None)?}))
    })
}

async fn write(services: &Services, batch: Batch) -> Result<(), Fault> {
    match batch.write(services).await {
        Ok(_) => Ok(()),
        // The same callback came twice at once: the other one's row is found next time.
        Err(DatabaseError::Constraint(sentence)) if sentence.contains("phone_calls") => Err(Fault::Stale),
        Err(error) => Err(error.into()),
    }
}

/// What connects a call to its media socket.
fn connect(
    services: &Services,
    carrier: &dyn Carrier,
    leg: &Leg,
    call: &IncomingCall,
) -> Result<Reply, Fault> {
    let urls = CallUrls::new(services, leg.provider, &leg.workspace_id, &leg.call_id)?;
    Ok(carrier.answer(&Connect {
        carrier_call_id: &call.carrier_call_id,
        our_number: &call.to,
        media_url: &urls.media,
        status_url: &urls.status,
        command_id: &leg::command_id(&leg.call_id, "answer"),
        now_ms: services.ports().clock.now_ms(),
        max_seconds: u32::try_from(leg.max_seconds).unwrap_or_default(),
    }))
}
