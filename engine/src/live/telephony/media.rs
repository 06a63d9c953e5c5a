//! Opens the media socket of a telephone call. If no conversation is possible, the call ends. That of a caller who is back from a
//! transfer goes to the conversation, which waits.
use std::sync::{Arc, Mutex};

use crate::base::error::{Code, Error};
use crate::base::limits::{LIVE_COST_MICROUSD_MAX, PHONE_END_MARGIN_MS, PHONE_SILENCE_MS};
use crate::carriers::{Callback, Carrier, CarrierName, End};
use crate::config::Talking;
use crate::conversation::{CallFault, EndedReason, FilledTexts};
use crate::live::admission::{Admission, HeldAudio, Starter, admit};
use crate::live::assistants::{self, Lookup};
use crate::live::end_call::{EndOfCall, end_call};
use crate::live::lease::JobLease;
use crate::live::line_socket::LineMedia;
use crate::live::telephony::callbacks::{carrier, verify};
use crate::live::telephony::leg::Leg;
use crate::live::telephony::token::CallToken;
use crate::live::{LiveSession, LiveSocket, call_journal, socket_origin};
use crate::models::AssistantInUse;
use crate::ports::Incoming;
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Direction, NewCall};
use crate::storage::events::{self, Subscribers};
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::named_snapshots;
use crate::storage::snapshots::AssistantVersion;
use crate::storage::spending::{self, Budget, Reservation};

/// Opens the media socket of a call; its token cannot be used again. The call counts as answered when audio arrives.
pub async fn open(
    services: &Services,
    incoming: &Incoming,
    provider: CarrierName,
    token: &str,
) -> Result<LiveSocket, Fault> {
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
    verify(services, provider, &callback, carrier.check_media(&callback)).await?;
    let Some((token, visit)) = CallToken::read_media(&services.config().secret, token) else {
        let message = "This is not the media socket of a call: this service did not issue its address.";
        return Err(Error::new(Code::InvalidToken, message).into());
    };
    if visit > 0 {
        return come_back(services, provider, token, visit).await;
    }
    match retry_stale(|| open_call(services, carrier, &token)).await? {
        Some(opened) => Ok(LiveSocket::Call(Box::new(opened.session(services, carrier)))),
        None => Err(reject_over_limit(services, provider, &token).await),
    }
}

/// The socket of a caller whom nobody has taken. Where no conversation waits for it, its process has died.
async fn come_back(
    services: &Services,
    provider: CarrierName,
    token: CallToken,
    visit: u32,
) -> Result<LiveSocket, Fault> {
    let CallToken { workspace_id, call_id } = token;
    let [found] = services.read([Leg::select(&workspace_id, &call_id)]).await?;
    let leg = Leg::first(Some(&found))?.filter(|leg| leg.provider == provider);
    let leg = leg.ok_or_else(|| Error::not_found("call"))?;
    if leg.is_over || leg.facts.returns != visit {
        return Err(used_up().into());
    }
    match services.ports().live.visit(&call_id, visit) {
        Some(holder) => Ok(LiveSocket::Back(workspace_id, call_id, holder)),
        None => Err(used_up().into()),
    }
}

fn used_up() -> Error {
    let message = "The media socket of this call was opened before, or the call has ended.";
    Error::new(Code::TokenUsed, message)
}

struct Opened {
    leg: Leg,
    call: NewCall,
    lease: JobLease,
    assistant: Arc<AssistantInUse>,
    texts: FilledTexts,
    max_cost_microusd: i64,
    admission: Admission,
}

impl Opened {
    fn session(self, services: &Services, carrier: &dyn Carrier) -> LiveSession {
        let mut session = LiveSession {
            services: services.clone(),
            call: self.call,
            lease: self.lease,
            assistant: self.assistant,
            texts: self.texts,
            max_duration_ms: self.leg.max_seconds * 1_000 - PHONE_END_MARGIN_MS,
            silence_ms: PHONE_SILENCE_MS,
            max_cost_microusd: self.max_cost_microusd,
            on_phone: true,
            is_spoken: true,
            media: Mutex::default(),
            realtime: None,
            run: None,
            admission: Arc::new(self.admission),
        };
        let codec = carrier.media_codec();
        let voice = session.make_voice(codec.format().rate);
        session.media = Mutex::new(Some(LineMedia::new(codec, voice)));
        session
    }
}

/// The leg of a call whose socket may be opened.
async fn unopened_leg(services: &Services, provider: CarrierName, token: &CallToken) -> Result<Leg, Fault> {
    let [found] = services.read([Leg::select(&token.workspace_id, &token.call_id)]).await?;
    let leg = Leg::first(Some(&found))?.filter(|leg| leg.provider == provider);
    let Some(leg) = leg else {
        return Err(Error::not_found("call").into());
    };
    if leg.media_at.is_some() || leg.is_over {
        return Err(used_up().into());
    }
    Ok(leg)
}

/// Ends the call because this process has reached its limit of conversations; returns the response to the carrier.
async fn reject_over_limit(services: &Services, provider: CarrierName, token: &CallToken) -> Fault {
    let end = || async {
        let leg = unopened_leg(services, provider, token).await?;
        end_unserved(services, leg, CallFault::Platform).await
    };
    match retry_stale(end).await {
        Ok(()) => {
            let message = "Too many conversations are open at the moment.";
            Error::new(Code::Unavailable, message).into()
        }
        Err(fault) => fault,
    }
}

/// Ends a call that cannot have a conversation. The carrier is not at fault; without this, the call would end as lost
/// media after minutes of silence, because a line can outlive its socket.
async fn end_unserved(services: &Services, leg: Leg, fault: CallFault) -> Result<(), Fault> {
    let Leg { workspace_id, call_id, .. } = &leg;
    let reads = [calls::select_for(workspace_id, call_id), events::subscribers(workspace_id)];
    let [call, subscribers] = services.read(reads).await?;
    let call = NewCall::read(call.first().ok_or_else(|| Error::not_found("call"))?, workspace_id)?;
    let end = match leg.hang_up_at {
        Some(_) => End::of(EndedReason::Canceled, ""),
        None => End { fault, ..End::of(EndedReason::Aborted, "") },
    };
    let mut batch = Batch::default();
    let subscribers = Subscribers::read(&subscribers)?;
    let end = EndOfCall::never_connected(&call, &leg, &end, &subscribers, services.now());
    end_call(services, &mut batch, end)?;
    batch.write(services).await?;
    Ok(())
}

/// `None`: there is no room for the conversation now.
async fn open_call(
    services: &Services,
    carrier: &dyn Carrier,
    token: &CallToken,
) -> Result<Option<Opened>, Fault> {
    let CallToken { workspace_id, call_id } = token;
    let Some(mut admission) = admit(services, workspace_id, Starter::Phone) else {
        return Ok(None);
    };
    let before = unopened_leg(services, carrier.provider(), token).await?;
    let now = services.now();
    let [version, call, reserved, budget] = services
        .read([
            AssistantVersion::select(&before.assistant_id).in_workspace(workspace_id),
            calls::select_for(workspace_id, call_id),
            Reservation::select(workspace_id, call_id),
            spending::select_beside(services, now.ms(), Some(call_id)).in_workspace(workspace_id),
        ])
        .await?;
    let version = AssistantVersion::read(&version)?;
    let found =
        assistants::current(services, workspace_id, &before.assistant_id, version, &mut admission).await?;
    let assistant = match found {
        Lookup::Found(assistant) => Some(assistant)
            .filter(|assistant| services.config().transcriber_of(Talking::from(&***assistant)).is_ok()),
        Lookup::Missing => None,
        Lookup::NoRoom => return Ok(None),
    };
    let row = call.first().ok_or_else(|| Error::not_found("call"))?;
    let Some(assistant) = assistant else {
        // The assistant was deleted while the call rang, or has a voice that does not work on the telephone.
        end_unserved(services, before, CallFault::Operator).await?;
        return Err(Error::not_found("assistant").into());
    };
    let rate = carrier.media_codec().format().rate;
    let is_realtime = Talking::from(&**assistant).is_realtime();
    let audio = HeldAudio { is_recorded: assistant.record, is_realtime };
    if !admission.fits_audio(services, rate, audio) {
        return Ok(None);
    }
    let mut call = NewCall::read(row, workspace_id)?;
    let is_unchanged = (call.assistant_revision, &call.model, &call.voice)
        == (assistant.revision, &assistant.model, &assistant.voice);
    call.assistant_revision = assistant.revision;
    call.model.clone_from(&assistant.model);
    call.voice.clone_from(&assistant.voice);
    let is_outbound = call.direction == Direction::Outbound;
    let Some(mut texts) = admission.filled(&assistant, &call, now.ms(), is_outbound) else {
        return Ok(None);
    };
    if let Some(number) = &call.user_number {
        texts.instructions.push_str(&format!("\n\nThis call is placed on behalf of the person at {number}."));
    }
    let leg = Leg { media_at: Some(now), ..before };
    let lease = JobLease::for_job(services, workspace_id, call_id, &leg.job_id);
    let mut statements = leg.change().to_vec();
    statements.extend(lease.acquire(now.ms()));
    statements.push(call_journal::open(workspace_id, call_id));
    if let Some((hash, stored)) = named_snapshots::of_conversation(&assistant, now)? {
        call.snapshot = Some(hash);
        statements.extend(stored.map(|statement| statement.in_workspace(workspace_id)));
        statements.push(calls::write::ran_with(&call));
    }
    let mut reserved = Reservation::first(&reserved)?;
    if !is_unchanged {
        statements.extend(calls::write::spoken_by(&call));
        // Another model may have another price.
        let wanted = spending::wanted_by_models(services, &call.model, &call.voice);
        let renewed = Budget::read(Some(&budget))?.with_models(reserved, wanted);
        if let Some(renewed) = renewed.filter(|renewed| Some(*renewed) != reserved) {
            statements.extend(spending::reserve(services, workspace_id, call_id, now.ms(), renewed));
            reserved = Some(renewed);
        }
    }
    // A model without a price costs nothing, and needs no reservation.
    let max_cost_microusd = match reserved {
        Some(reserved) if spending::wanted_by_models(services, &call.model, &call.voice) > 0 => {
            reserved.models_microusd
        }
        _ => LIVE_COST_MICROUSD_MAX,
    };
    services.ports().database.write(statements).await?;
    Ok(Some(Opened { leg, call, lease, assistant, texts, max_cost_microusd, admission }))
}
