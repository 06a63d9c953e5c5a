//! The media socket: its token, then the conversation that is held over it.
use super::callbacks::{carrier, genuine};
use super::leg::Leg;
use super::phone_peer::PhoneLine;
use super::token::{CallToken, Purpose};
use crate::calls::{self, NewCall};
use crate::carriers::{Callback, Carrier};
use crate::engine::Engine;
use crate::error::{Code, Error, Fault};
use crate::jobs::live_call::Hold;
use crate::limits::{PHONE_FAREWELL_MS, PHONE_SILENCE_MS, STALE_ATTEMPTS_MAX};
use crate::live::places::Place;
use crate::live::{LiveSession, journal, socket_origin};
use crate::operations::numbers::Provider;
use crate::operations::runs::{AssistantSnapshot, assistant_reads, assistant_snapshot};
use crate::ports::Incoming;
use crate::speech;
use crate::statement::Statement;

/// Opens the media socket of a call: from then on its token is used. The call is answered once audio comes.
pub async fn open(
    engine: &Engine,
    incoming: &Incoming,
    provider: Provider,
    token: &str,
) -> Result<LiveSession, Fault> {
    let carrier = carrier(engine, provider)?;
    let request = &incoming.request;
    let origin = socket_origin(&engine.config().base_url);
    let url = format!("{origin}{}", request.uri().path_and_query().map_or("/", |path| path.as_str()));
    let callback = Callback {
        method: request.method().as_str(),
        url: &url,
        headers: request.headers(),
        body: &[],
        now_ms: engine.ports().clock.now_ms(),
    };
    genuine(engine, carrier.check_media(&callback)).await?;
    let Some(token) = CallToken::read(&engine.config().secret, Purpose::Media, token) else {
        let message = "This is no media socket of a call: its address was not made by this service.";
        return Err(Error::new(Code::InvalidToken, message).into());
    };
    let Some(place) = engine.live().take() else {
        let message = "Too many conversations are open at the moment.";
        return Err(Error::new(Code::Unavailable, message).into());
    };
    for _ in 0..STALE_ATTEMPTS_MAX {
        match opened(engine, provider, &token).await {
            Ok(opened) => return Ok(opened.session(engine, carrier, place)),
            Err(Fault::Stale) => {}
            Err(fault) => return Err(fault),
        }
    }
    Err(Fault::Stale)
}

struct Opened {
    leg: Leg,
    call: NewCall,
    hold: Hold,
    assistant: AssistantSnapshot,
}

impl Opened {
    fn session(self, engine: &Engine, carrier: &dyn Carrier, place: Place) -> LiveSession {
        LiveSession {
            engine: engine.clone(),
            call: self.call,
            hold: self.hold,
            assistant: self.assistant,
            max_duration_ms: self.leg.max_seconds * 1_000 - PHONE_FAREWELL_MS,
            silence_ms: PHONE_SILENCE_MS,
            on_phone: true,
            line: Some(PhoneLine::new(carrier.line())),
            _place: place,
        }
    }
}

async fn opened(engine: &Engine, provider: Provider, token: &CallToken) -> Result<Opened, Fault> {
    let CallToken { workspace_id, call_id } = token;
    let ports = engine.ports();
    let found = ports.database.read(vec![Leg::select(workspace_id, call_id)]).await?;
    let before = Leg::first(found.first())?.filter(|leg| leg.provider == provider);
    let Some(before) = before else {
        return Err(Error::not_found("call").into());
    };
    if before.media_at.is_some() || before.is_over {
        let message = "The media socket of this call was opened before, or the call is over.";
        return Err(Error::new(Code::TokenUsed, message).into());
    }
    let mut reads: Vec<Statement> = assistant_reads("?1", &before.assistant_id)
        .into_iter()
        .map(|statement| statement.in_workspace(workspace_id))
        .collect();
    reads.push(calls::select_for(workspace_id, call_id));
    let rows = ports.database.read(reads).await?;
    let [assistant @ .., call] = &rows[..] else {
        return Err(Fault::Bug("a batch lacks answers".to_owned()));
    };
    let assistant = assistant_snapshot(assistant)?.filter(|assistant| speech::can_speak(&assistant.voice));
    let (Some(mut assistant), Some(row)) = (assistant, call.first()) else {
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
    let hold = Hold::over(engine, workspace_id, call_id, &leg.job_id);
    let mut statements = leg.change().to_vec();
    statements.extend(hold.take(now_ms));
    statements.push(journal::open(workspace_id, call_id));
    if !is_as_begun {
        statements.extend(calls::write::spoken_by(&call));
    }
    ports.database.write(statements).await?;
    Ok(Opened { leg, call, hold, assistant })
}
