//! The media socket: its token, then the conversation that is held over it. Where we cannot hold one, the call ends here.
use serde_json::json;

use crate::base::error::{Code, Error};
use crate::base::limits::{PHONE_FAREWELL_MS, PHONE_SILENCE_MS, STALE_ATTEMPTS_MAX};
use crate::base::permits::Permit;
use crate::carriers::{Callback, Carrier, CarrierName, End};
use crate::conversation::{CallFault, EndedReason};
use crate::live::lease::JobLease;
use crate::live::telephony::callbacks::{carrier, genuine};
use crate::live::telephony::leg::Leg;
use crate::live::telephony::phone_peer::PhoneMedia;
use crate::live::telephony::status;
use crate::live::telephony::token::{CallToken, Purpose};
use crate::live::{LiveSession, journal, socket_origin};
use crate::ports::Incoming;
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::speech;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, NewCall};
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::snapshots::{AssistantSnapshot, assistant_reads, assistant_snapshot};
use crate::storage::spending;

/// Opens the media socket of a call: from then on its token is used. The call is answered once audio comes.
pub async fn open(
    services: &Services,
    incoming: &Incoming,
    provider: CarrierName,
    token: &str,
) -> Result<LiveSession, Fault> {
    let carrier = carrier(services, provider)?;
    let request = &incoming.request;
    let origin = socket_origin(&services.config().base_url);
    let url = format!("{origin}{}", request.uri().path_and_query().map_or("/", |path| path.as_str()));
    let callback = Callback {
        method: request.method().as_str(),
        url: &url,
        headers: request.headers(),
        body: &[],
        now_ms: services.ports().clock.now_ms(),
    };
    genuine(services, carrier.check_media(&callback)).await?;
    let Some(token) = CallToken::read(&services.config().secret, Purpose::Media, token) else {
        let message = "This is no media socket of a call: its address was not made by this service.";
        return Err(Error::new(Code::InvalidToken, message).into());
    };
    let Some(place) = services.live_permits().take() else {
        return Err(no_room(services, provider, &token).await);
    };
    for _ in 0..STALE_ATTEMPTS_MAX {
        match opened(services, provider, &token).await {
            Ok(opened) => return Ok(opened.session(services, carrier, place)),
            Err(Fault::Stale) => {}
            Err(fault) => return Err(fault),
        }
    }
    Err(Fault::Stale)
}

struct Opened {
    leg: Leg,
    call: NewCall,
    hold: JobLease,
    assistant: AssistantSnapshot,
}

impl Opened {
    fn session(self, services: &Services, carrier: &dyn Carrier, place: Permit) -> LiveSession {
        LiveSession {
            services: services.clone(),
            call: self.call,
            hold: self.hold,
            assistant: self.assistant,
            max_duration_ms: self.leg.max_seconds * 1_000 - PHONE_FAREWELL_MS,
            silence_ms: PHONE_SILENCE_MS,
            on_phone: true,
            line: Some(PhoneMedia::new(carrier.media_codec())),
            _place: place,
        }
    }
}

/// The leg of a call whose socket may be opened.
async fn waiting(services: &Services, provider: CarrierName, token: &CallToken) -> Result<Leg, Fault> {
    let select = Leg::select(&token.workspace_id, &token.call_id);
    let found = services.ports().database.read(vec![select]).await?;
    let leg = Leg::first(found.first())?.filter(|leg| leg.provider == provider);
    let Some(leg) = leg else {
        return Err(Error::not_found("call").into());
    };
    if leg.media_at.is_some() || leg.is_over {
        let message = "The media socket of this call was opened before, or the call is over.";
        return Err(Error::new(Code::TokenUsed, message).into());
    }
    Ok(leg)
}

/// What is answered when this process has all the conversations it can have.
async fn no_room(services: &Services, provider: CarrierName, token: &CallToken) -> Fault {
    for _ in 0..STALE_ATTEMPTS_MAX {
        let ended = match waiting(services, provider, token).await {
            Ok(leg) => give_up(services, leg, CallFault::Platform).await,
            Err(fault) => return fault,
        };
        match ended {
            Ok(()) => {
                let message = "Too many conversations are open at the moment.";
                return Error::new(Code::Unavailable, message).into();
            }
            Err(Fault::Stale) => {}
            Err(fault) => return fault,
        }
    }
    Fault::Stale
}

/// Ends a call that we cannot talk on. Its carrier has done what it had to: else the call would end as one whose audio the
/// carrier lost, after minutes of silence where a line outlives its socket.
async fn give_up(services: &Services, before: Leg, fault: CallFault) -> Result<(), Fault> {
    let Leg { workspace_id, call_id, .. } = &before;
    let reads = vec![calls::select_for(workspace_id, call_id), events::subscribers(workspace_id)];
    let rows = services.ports().database.read(reads).await?;
    let [call, subscribers] = &rows[..] else {
        return Err(Fault::Bug("a batch lacks answers".to_owned()));
    };
    let row: Row<'_> = call.first().ok_or_else(|| Error::not_found("call"))?;
    let subscribers = Subscribers::read(subscribers)?;
    let now_ms = services.ports().clock.now_ms();
    let end = match before.hang_up_at {
        Some(_) => End::of(EndedReason::Canceled, ""),
        None => End { fault, ..End::of(EndedReason::Aborted, "") },
    };
    let leg = Leg { is_over: true, ..before.clone() };
    let mut ended = status::unconnected(&leg, &end, row.optional_integer("answered_at")?, now_ms);
    leg.settle(&mut ended, services.config().carriers.rates());
    let mut batch = Batch::from(leg.change());
    batch.extend(calls::write::end(workspace_id, call_id, &ended, None));
    batch.extend(spending::add(workspace_id, now_ms, ended.costs.total_microusd));
    leg.wake_job(now_ms, &mut batch);
    leg.hang_up_later(services, now_ms, &mut batch);
    batch.emit(services, workspace_id, &subscribers, EventKind::CallEnded, now_ms, || {
        let call = Leg::named(&NewCall::read(row, workspace_id)?, Some(&leg));
        Ok(json!({"call": Call::of(&call, Some(&ended), None)?}))
    })?;
    batch.write(services).await?;
    Ok(())
}

async fn opened(services: &Services, provider: CarrierName, token: &CallToken) -> Result<Opened, Fault> {
    let CallToken { workspace_id, call_id } = token;
    let ports = services.ports();
    let before = waiting(services, provider, token).await?;
    let mut reads: Vec<Statement> = assistant_reads(":id", &before.assistant_id)
        .into_iter()
        .map(|statement| statement.in_workspace(workspace_id))
        .collect();
    reads.push(calls::select_for(workspace_id, call_id));
    let rows = ports.database.read(reads).await?;
    let [assistant @ .., call] = &rows[..] else {
        return Err(Fault::Bug("a batch lacks answers".to_owned()));
    };
    let assistant = assistant_snapshot(assistant)?.filter(|assistant| speech::can_speak(&assistant.voice));
    let row = call.first().ok_or_else(|| Error::not_found("call"))?;
    let Some(mut assistant) = assistant else {
        // It was deleted while it rang, or given a voice that does not do.
        give_up(services, before, CallFault::Operator).await?;
        return Err(Error::not_found("assistant").into());
    };
    let now_ms = ports.clock.now_ms();
    let mut call = NewCall::read(row, workspace_id)?;
    let is_as_begun = (call.assistant_revision, &call.model, &call.voice)
        == (assistant.revision, &assistant.model, &assistant.voice);
    call.assistant_revision = assistant.revision;
    call.model.clone_from(&assistant.model);
    call.voice.clone_from(&assistant.voice);
    if let Some(number) = &call.user_number {
        assistant
            .instructions
            .push_str(&format!("\n\nThis call is placed on behalf of the person at {number}."));
    }
    let leg = Leg { media_at: Some(now_ms), ..before };
    let hold = JobLease::over(services, workspace_id, call_id, &leg.job_id);
    let mut statements = leg.change().to_vec();
    statements.extend(hold.take(now_ms));
    statements.push(journal::open(workspace_id, call_id));
    if !is_as_begun {
        statements.extend(calls::write::spoken_by(&call));
    }
    ports.database.write(statements).await?;
    Ok(Opened { leg, call, hold, assistant })
}
