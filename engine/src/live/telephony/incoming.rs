//! An incoming call: routes it to the assistant of its number, and answers or declines it.
use crate::base::error::Code;
use crate::base::ids::{AssistantId, WorkspaceId};
use crate::base::limits::PHONE_CONNECT_MS;
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::carriers::{Carrier, CarrierName, Connect, IncomingCall, Progress, Refusal, Reply, Report};
use crate::config::Talking;
use crate::conversation::{EndedReason, PipelineMode};
use crate::live::admission::{self, Overload};
use crate::live::end_call::ended::{self, Declined};
use crate::live::end_call::{CallJob, EndOfCall, LineEnd, end_call};
use crate::live::telephony::begin_call::begin_call;
use crate::live::telephony::leg::{Leg, Placing, Room, command_id};
use crate::live::telephony::token::CallToken;
use crate::live::telephony::{CallUrls, status};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{CallStatus, Direction, EndedCall, NewCall, Source};
use crate::storage::events::{self, Subscribers};
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::spending::{self, Budget, PhoneGrant};

/// Answers or declines the call.
pub async fn answer(services: &Services, carrier: &dyn Carrier, call: IncomingCall) -> Result<Reply, Fault> {
    match retry_stale(|| route(services, carrier, &call)).await {
        // A caller is waiting: the carrier would play an error message. Nobody knows yet where the workspace is next.
        Err(Fault::Refused(error)) if error.code == Code::WorkspaceMoving => {
            Ok(carrier.refuse(&call, Refusal::Busy))
        }
        answered => answered,
    }
}

/// The response that connects an answered outgoing call to its media socket, for carriers that request it then.
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
    let unknown_caller =
        IncomingCall { carrier_call_id: carrier_call_id.to_owned(), ..IncomingCall::default() };
    match leg {
        Some(leg) if !leg.is_over && leg.media_at.is_none() => {
            connect(services, carrier, &leg, &unknown_caller)
        }
        _ => Ok(carrier.refuse(&unknown_caller, Refusal::Unbound)),
    }
}

async fn route(services: &Services, carrier: &dyn Carrier, call: &IncomingCall) -> Result<Reply, Fault> {
    let now = services.now();
    let provider = carrier.provider();
    let reads = [
        Leg::select_by_carrier(provider, &call.carrier_call_id),
        sql!(
            "SELECT n.workspace_id AS workspace_id, a.id AS assistant_id, a.revision AS revision, a.model AS model,
             a.voice AS voice, a.transcriber AS transcriber, a.pipeline_mode AS pipeline_mode FROM numbers AS n JOIN assistants AS a ON a.id = n.assistant_id
             WHERE n.number = :number AND n.provider = :provider",
            number = &call.to,
            provider = provider.as_str(),
        ),
        in_workspace_of_number(Room::select(services), call),
        in_workspace_of_number(events::callers_subscribers(), call),
        in_workspace_of_number(spending::select(services, now.ms()), call),
    ];
    let [legs, binding, room, subscribers, spending] = services.read(reads).await?;
    // Carriers repeat their callbacks.
    if let Some(leg) = Leg::first(Some(&legs))? {
        return match leg.media_at {
            _ if leg.is_over => Ok(carrier.refuse(call, Refusal::Busy)),
            // The call is connected: declining it now would end a live call.
            Some(_) => Ok(carrier.acknowledge()),
            None => connect(services, carrier, &leg, call),
        };
    }
    // A binding from before the operator decided about numbers may be another workspace's.
    let grants = services.config().carriers.grants();
    let binding = binding.first().map(Binding::read).transpose()?;
    let Some(binding) = binding.filter(|binding| grants.permit(&binding.workspace_id, &call.to)) else {
        return Ok(carrier.refuse(call, Refusal::Unbound));
    };
    let new = binding.call(services, provider, call, now);
    let subscribers = Subscribers::read(&subscribers)?;
    let is_full = Room::full(&room)?.is_some();
    match binding.grant(services, provider, is_full, Budget::read(Some(&spending))?) {
        Err(declined) => {
            let is_late = declined.overload == Some(Overload::Late);
            decline(services, &new, &subscribers, ended::declined(declined, now)).await?;
            // Once it is stored: a carrier repeats the callback of one that is not.
            if is_late {
                services.count_declined();
            }
            Ok(carrier.refuse(call, Refusal::Busy))
        }
        Ok(grant) => {
            let leg = begin(services, &new, call, &subscribers, grant).await?;
            connect(services, carrier, &leg, call)
        }
    }
}

/// A statement about the workspace that the called number belongs to.
fn in_workspace_of_number(statement: Statement, call: &IncomingCall) -> Statement {
    statement.with_workspace("(SELECT workspace_id FROM numbers WHERE number = ?", &call.to, ")")
}

/// The number's workspace and assistant.
struct Binding {
    workspace_id: WorkspaceId,
    assistant_id: AssistantId,
    revision: i64,
    model: String,
    voice: String,
    transcriber: String,
    pipeline_mode: PipelineMode,
}

impl Binding {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            workspace_id: row.id("workspace_id")?,
            assistant_id: row.id("assistant_id")?,
            revision: row.integer("revision")?,
            model: row.text("model")?,
            voice: row.text("voice")?,
            transcriber: row.text("transcriber")?,
            pipeline_mode: row.word("pipeline_mode")?,
        })
    }

    /// What the call gets, or why it cannot be accepted now, with what the transcript says about that.
    fn grant(
        &self,
        services: &Services,
        provider: CarrierName,
        is_full: bool,
        budget: Budget,
    ) -> Result<PhoneGrant, Declined> {
        let talking = Talking {
            pipeline_mode: self.pipeline_mode,
            model: &self.model,
            voice: &self.voice,
            transcriber: &self.transcriber,
        };
        if let Err(why) = services.config().transcriber_of(talking) {
            let why = format!("The assistant cannot talk on the telephone: {why}");
            return Err(Declined::new(EndedReason::SpeechFailed, Some(why)));
        }
        if is_full {
            return Err(Declined::new(EndedReason::Busy, None));
        }
        if let Some(overload) = admission::overload(services, &self.workspace_id) {
            return Err(Declined::by_load(overload));
        }
        let per_minute = services.config().carriers.rates().microusd_per_minute(provider);
        let models = spending::wanted_by_models(services, &self.model, &self.voice);
        // The carrier costs money with every model.
        budget.grant_call(models, per_minute).map_err(|_| Declined::new(EndedReason::CostLimit, None))
    }

    fn call(
        &self,
        services: &Services,
        provider: CarrierName,
        call: &IncomingCall,
        now: Timestamp,
    ) -> NewCall {
        NewCall {
            workspace_id: self.workspace_id.clone(),
            id: services.new_id(),
            assistant_id: self.assistant_id.clone(),
            assistant_revision: self.revision,
            snapshot: None,
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
            started_at: now,
            answered_at: None,
            simulation_run_id: None,
            variables: Variables::default(),
            metadata: Metadata::default(),
        }
    }
}

/// Stores an answered call.
async fn begin(
    services: &Services,
    new: &NewCall,
    call: &IncomingCall,
    subscribers: &Subscribers,
    grant: PhoneGrant,
) -> Result<Leg, Fault> {
    let PhoneGrant { reservation, max_seconds } = grant;
    let leg = Leg::new(new, services.new_id(), call.region_url.clone(), Placing::Incoming, max_seconds)?;
    let mut batch = Batch::from([leg.concurrency_guard(services)]);
    if let Some(reservation) = reservation {
        let now_ms = new.started_at.ms();
        batch.extend(spending::reserve(services, &new.workspace_id, &new.id, now_ms, reservation));
    }
    begin_call(services, &mut batch, new, &leg, subscribers, new.started_at + PHONE_CONNECT_MS)?;
    batch.push(callback_seen(new));
    write(services, batch).await?;
    Ok(leg)
}

/// Stores a declined call, so that the number's owner sees the caller and the reason.
async fn decline(
    services: &Services,
    new: &NewCall,
    subscribers: &Subscribers,
    ended: EndedCall,
) -> Result<(), Fault> {
    let leg = Leg::new(new, services.new_id(), None, Placing::Incoming, 0)?;
    let mut batch = Batch::default();
    begin_call(services, &mut batch, new, &leg, subscribers, new.started_at)?;
    batch.push(callback_seen(new));
    let end = EndOfCall {
        call: new,
        leg: Some(&leg),
        ended,
        analysis: None,
        recorded_ms: None,
        subscribers,
        job: CallJob::Unclaimed,
        line_end: LineEnd::Declined,
        now: new.started_at,
    };
    end_call(services, &mut batch, end)?;
    write(services, batch).await
}

/// Shows the owner of the number that the carrier's callbacks arrive.
fn callback_seen(new: &NewCall) -> Statement {
    sql!(
        "UPDATE numbers SET last_callback_at = :now WHERE workspace_id = :workspace_id AND number = :number",
        workspace_id = &new.workspace_id,
        number = new.to.clone(),
        now = new.started_at
    )
}

async fn write(services: &Services, batch: Batch) -> Result<(), Fault> {
    match batch.write(services).await {
        Ok(_) => Ok(()),
        // A concurrent duplicate of the callback stored the call first; the next read finds its row.
        Err(DatabaseError::Constraint(sentence)) if sentence.contains("phone_calls") => Err(Fault::Stale),
        Err(error) => Err(error.into()),
    }
}

/// Connects a call to its media socket.
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
        command_id: &command_id(&leg.call_id, "answer"),
        now_ms: services.ports().clock.now_ms(),
        max_seconds: u32::try_from(leg.max_seconds).unwrap_or_default(),
    }))
}
