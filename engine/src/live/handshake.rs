//! WebSocket requests: reads the token and opens the call. The host performs the upgrade.
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Response, header};
use serde_json::json;

use super::accepted::LiveSocket;
use super::admission::{Admission, HeldAudio, Starter, admit, late_for_a_test, no_room};
use super::assistants::{self, Lookup};
use super::browser_line::{self, BrowserLine};
use super::call_journal;
use super::link_starts;
use super::restart;
use super::session::LiveSession;
use crate::base::error::{Code, Error};
use crate::base::ids::{CallId, Id, RequestId, WorkspaceId};
use crate::base::limits::{BROWSER_SILENCE_MS, LIVE_COST_MICROUSD_MAX, TEST_TOKEN_SECONDS_MAX};
use crate::base::response::{error_response, json_response, method_not_allowed};
use crate::base::time::Timestamp;
use crate::config::Talking;
use crate::conversation::FilledTexts;
use crate::live::lease::JobLease;
use crate::live::line_socket::LineMedia;
use crate::live::message::Introduction;
use crate::live::telephony::token::CallToken;
use crate::live::telephony::{self, Route};
use crate::models::AssistantInUse;
use crate::ports::{DatabaseError, Incoming};
use crate::services::Services;
use crate::speech::settings::TONE;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, NewCall, Source};
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::told;
use crate::storage::named_snapshots;
use crate::storage::snapshots::AssistantVersion;
use crate::storage::spending::{self, Budget, Reservation};
use crate::storage::test_token::{TestToken, TokenValues};

/// Whether the request opens one of the service's WebSockets.
pub(crate) fn wants_socket(head: &http::request::Parts) -> bool {
    let path = head.uri.path();
    let is_socket = path == super::SOCKET_PATH || matches!(Route::of(path), Some(Route::Media(..)));
    is_socket && head.method == Method::GET && asks_for_upgrade(&head.headers)
}

/// The call that a WebSocket request opens, if its token is one of this service's that has not expired. Nothing is read.
pub(crate) fn call_of(services: &Services, request: &http::request::Parts) -> Option<CallId> {
    match Route::of(request.uri.path()) {
        Some(Route::Media(_, token)) => {
            let (token, _) = CallToken::read_media(&services.config().secret, token)?;
            Some(token.call_id)
        }
        _ => call_of_token(&token(services, &request.uri, services.ports().clock.now_ms()).ok()?),
    }
}

/// The workspace that the token of a request for a WebSocket names. Whether it may open anything is looked at there.
pub(crate) fn workspace_of(services: &Services, uri: &http::Uri) -> Option<WorkspaceId> {
    match Route::of(uri.path()) {
        Some(Route::Media(_, token)) => {
            CallToken::read_media(&services.config().secret, token).map(|(token, _)| token.workspace_id)
        }
        _ => token(services, uri, services.ports().clock.now_ms()).ok().map(|token| token.workspace_id),
    }
}

/// A test token opens one call, so that the call's id is known before anything of it is stored.
fn call_of_token(token: &TestToken) -> Option<CallId> {
    token.id.to_bytes().map(CallId::from_bytes)
}

/// Opens the call of a WebSocket request, or lets its caller come back, and uses up its token.
pub(crate) async fn accept(services: &Services, incoming: &Incoming) -> Result<LiveSocket, Fault> {
    // On the heap, because the caller's future would contain it for a whole conversation.
    match Route::of(incoming.request.uri().path()) {
        Some(Route::Media(provider, token)) => {
            Box::pin(telephony::media::open(services, incoming, provider, token)).await
        }
        _ => Ok(LiveSocket::Call(Box::new(Box::pin(open(services, incoming)).await?))),
    }
}

fn asks_for_upgrade(headers: &http::HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case("websocket")))
}

/// The response to a plain request to the socket's address. It reports an invalid token, because browsers hide from a
/// page why a socket did not open. With `check` in the query it tells what a valid one opens.
pub(crate) async fn without_upgrade(
    services: &Services,
    incoming: &Incoming,
    now_ms: i64,
    request_id: &RequestId,
) -> Response<Bytes> {
    if !matches!(*incoming.request.method(), Method::GET | Method::HEAD) {
        return error_response(&method_not_allowed("GET"), request_id);
    }
    let fault = match check(services, incoming, now_ms).await {
        Ok(opens) if asks_whether_valid(incoming) => {
            return json_response(200, Bytes::from(opens.to_string()));
        }
        Ok(_) => {
            let message =
                "This address is a WebSocket. Open it with a WebSocket client; the token is still valid.";
            Error::new(Code::UpgradeRequired, message).into()
        }
        Err(fault) => fault,
    };
    fault.into_response(request_id)
}

fn asks_whether_valid(incoming: &Incoming) -> bool {
    let query = incoming.request.uri().query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "check")
}

/// The valid token of a request. It is checked before any lookup.
pub(super) fn token(services: &Services, uri: &http::Uri, now_ms: i64) -> Result<TestToken, Error> {
    let query = uri.query().unwrap_or_default();
    let text = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
    let token = text.and_then(|(_, text)| TestToken::read(&services.config().secret, &text));
    let Some(token) = token else {
        let message = "No valid test token. Use the complete websocket_url from create_browser_test_token.";
        return Err(Error::new(Code::InvalidToken, message));
    };
    if token.expires_at_ms <= now_ms {
        let message = "The test token has expired. Ask for a new one (POST /assistants/{id}/test-token).";
        return Err(Error::new(Code::TokenExpired, message));
    }
    // Claims of a stored response are signed as they are, and that one may have come from another host.
    let max_duration_seconds = token.max_duration_seconds.min(TEST_TOKEN_SECONDS_MAX as u16);
    Ok(TestToken { max_duration_seconds, ..token })
}

fn token_used(token: &TestToken) -> Error {
    match token.is_restartable() {
        true => Error::new(
            Code::TokenUsed,
            "The test token was used: it opens one conversation. Ask for the next one (POST /voice-test/restart).",
        )
        .with_details(json!({"restartable": true})),
        false => Error::new(
            Code::TokenUsed,
            "The test token was used: it opens one conversation. Ask for a new one (POST /assistants/{id}/test-token).",
        ),
    }
}

/// What a valid token opens, as the page shows it before the conversation.
async fn check(services: &Services, incoming: &Incoming, now_ms: i64) -> Result<serde_json::Value, Fault> {
    let token = token(services, incoming.request.uri(), now_ms)?;
    let Opening { version, assistant_name, mut admission, .. } =
        may_open(services, &token, Audio::of(incoming)?, Purpose::Check, now_ms).await?;
    assistants::room(services, &token.workspace_id, &version.id, version.bytes, &mut admission)
        .map(drop)
        .ok_or_else(no_room)?;
    Ok(json!({
        "assistant_name": assistant_name,
        "max_duration_seconds": token.max_duration_seconds,
        "restartable": token.is_restartable(),
    }))
}

/// What a client can do with audio, as the address of its socket says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audio {
    /// It writes.
    None,
    /// It has a person, who understands speech.
    Speech,
    /// It has a program, which also understands the tone code.
    Tone,
}

impl Audio {
    fn of(incoming: &Incoming) -> Result<Self, Error> {
        let query = incoming.request.uri().query().unwrap_or_default();
        let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "audio");
        match named.as_ref().map(|(_, value)| value.as_ref()) {
            None => Ok(Self::None),
            Some("speech") => Ok(Self::Speech),
            Some("tone") => Ok(Self::Tone),
            Some(_) => {
                let message = "is `speech`, or `tone` for a client that understands the voice builtin/tone; leave it out to write";
                Err(Error::field("audio", message))
            }
        }
    }

    /// Whether the service speaks with this assistant's voice. Otherwise the conversation is written.
    fn has_voice(self, services: &Services, talking: Talking<'_>) -> bool {
        let is_understood = match self {
            Self::None => false,
            Self::Speech => !talking.is_tone(),
            Self::Tone => true,
        };
        is_understood && services.config().transcriber_of(talking).is_ok()
    }
}

async fn open(services: &Services, incoming: &Incoming) -> Result<LiveSession, Fault> {
    let now_ms = services.ports().clock.now_ms();
    let token = token(services, incoming.request.uri(), now_ms)?;
    let audio = Audio::of(incoming)?;
    restart::end_open(services, &token, restart::EndedBy::UnusedToken, now_ms).await?;
    let opened = retry_stale(|| open_call(services, &token, audio)).await?;
    let mut session = LiveSession {
        services: services.clone(),
        call: opened.call,
        lease: opened.lease,
        texts: opened.texts,
        assistant: opened.assistant,
        max_duration_ms: i64::from(token.max_duration_seconds) * 1_000,
        silence_ms: BROWSER_SILENCE_MS,
        max_cost_microusd: opened.max_cost_microusd,
        on_phone: false,
        is_spoken: opened.is_spoken,
        media: Mutex::default(),
        realtime: None,
        run: None,
        admission: Arc::new(opened.admission),
    };
    if session.is_spoken {
        let voice = session.make_voice(browser_line::RATE);
        let introduction = Introduction::of(&session.assistant, token.max_duration_seconds);
        session.media = Mutex::new(Some(LineMedia::browser(BrowserLine::new(now_ms, introduction), voice)));
    }
    Ok(session)
}

struct Opened {
    call: NewCall,
    lease: JobLease,
    assistant: Arc<AssistantInUse>,
    texts: FilledTexts,
    max_cost_microusd: i64,
    is_spoken: bool,
    admission: Admission,
}

/// A conversation that may open now.
struct Opening {
    version: AssistantVersion,
    assistant_name: String,
    is_spoken: bool,
    reservation: Option<Reservation>,
    subscribers: Subscribers,
    values: Option<TokenValues>,
    admission: Admission,
}

/// What is asked about a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To open its conversation.
    Open,
    /// Whether it would, which declines nothing.
    Check,
}

/// Whether the token opens its conversation now. Nothing is stored, and nothing is taken that the result does not give
/// back as it is dropped.
async fn may_open(
    services: &Services,
    token: &TestToken,
    audio: Audio,
    purpose: Purpose,
    now_ms: i64,
) -> Result<Opening, Fault> {
    let (workspace_id, assistant_id) = (&token.workspace_id, &token.assistant_id);
    let reads = [
        sql!("SELECT 1 AS used FROM used_test_tokens WHERE workspace_id = :ws AND id = :id", id = &token.id),
        // A workspace without keys and people is closed, or being moved to another database.
        sql!(
            "SELECT 1 AS open WHERE EXISTS (SELECT 1 FROM api_keys WHERE workspace_id = :ws AND revoked_at IS NULL)
             OR EXISTS (SELECT 1 FROM memberships WHERE workspace_id = :ws)"
        ),
        AssistantVersion::select(assistant_id),
        sql!(
            "SELECT name, model, voice, transcriber, pipeline_mode, record FROM assistants WHERE workspace_id = :ws AND id = :id",
            id = assistant_id,
        ),
        spending::select(services, now_ms),
        events::callers_subscribers(),
        TokenValues::select(token),
        link_starts::select(token, now_ms),
        named_snapshots::kept(),
    ];
    let [used, open, version, assistant, spending, subscribers, values, starts, kept] =
        services.read(reads.map(|read| read.in_workspace(workspace_id))).await?;
    if !used.is_empty() {
        return Err(token_used(token).into());
    }
    link_starts::check(&starts, now_ms)?;
    if open.is_empty() {
        if let Some(moved) = told::moved_workspace(services, workspace_id).await? {
            return Err(moved.into());
        }
        let message = "The workspace of this test token is closed or being moved. Try again in a moment.";
        return Err(Error::unavailable(message, 1).into());
    }
    let (Some(version), Some(row)) = (AssistantVersion::read(&version)?, assistant.first()) else {
        return Err(Error::not_found("assistant").into());
    };
    named_snapshots::check_kept(&kept)?;
    let (model, voice) = (row.str("model")?, row.str("voice")?);
    let pipeline_mode = row.word("pipeline_mode")?;
    let talking = Talking { pipeline_mode, model, voice, transcriber: row.str("transcriber")? };
    let is_spoken = audio.has_voice(services, talking);
    if is_spoken && services.is_late() {
        if purpose == Purpose::Open {
            services.count_declined();
        }
        return Err(late_for_a_test().into());
    }
    // In a written conversation no voice is asked.
    let voice = if is_spoken { voice } else { TONE };
    // Free conversations start whatever is left.
    let reservation = if spending::is_free([model], services.config().speech.may_cost(voice)) {
        None
    } else {
        let wanted = spending::wanted_by_models(services, model, voice);
        Budget::read(Some(&spending))?.reserve(wanted)?
    };
    let subscribers = Subscribers::read(&subscribers)?;
    // Only now, so that a question holds nothing while it reads.
    let mut admission = admit(services, workspace_id, Starter::Browser).ok_or_else(no_room)?;
    let audio = HeldAudio { is_recorded: row.flag("record")?, is_realtime: talking.is_realtime() };
    if is_spoken && !admission.fits_audio(services, browser_line::RATE, audio) {
        return Err(no_room().into());
    }
    let assistant_name = row.str("name")?.to_owned();
    let values = TokenValues::read(&values)?;
    Ok(Opening { version, assistant_name, is_spoken, reservation, subscribers, values, admission })
}

/// Opens the call and uses up the token in one batch.
async fn open_call(services: &Services, token: &TestToken, audio: Audio) -> Result<Opened, Fault> {
    let workspace_id = &token.workspace_id;
    let now_ms = services.ports().clock.now_ms();
    let Opening { version, is_spoken, reservation, subscribers, values, mut admission, .. } =
        may_open(services, token, audio, Purpose::Open, now_ms).await?;
    let found =
        assistants::current(services, workspace_id, &token.assistant_id, Some(version), &mut admission)
            .await?;
    let assistant = match found {
        Lookup::Found(assistant) => assistant,
        Lookup::Missing => return Err(Error::not_found("assistant").into()),
        Lookup::NoRoom => return Err(no_room().into()),
    };
    let has_values = values.is_some();
    let TokenValues { variables, metadata } = values.unwrap_or_default();
    let call = NewCall::without_telephone(
        workspace_id.clone(),
        call_of_token(token).ok_or_else(|| Fault::Bug(format!("{} is no id", token.id)))?,
        Source::Browser,
        &assistant,
        Timestamp::from_ms(now_ms),
    );
    let mut call = NewCall { variables, metadata, ..call };
    let texts = admission.filled(&assistant, &call, now_ms, false).ok_or_else(no_room)?;
    let lease = JobLease::new(services, &call.workspace_id, &call.id);
    let mut batch = Batch::default();
    // Of two starts at once, the later one goes on.
    batch.extend(token.first_id.as_ref().map(|link_id| call_journal::replace_of_link(workspace_id, link_id)));
    batch.extend(token.is_restartable().then(|| link_starts::guard(token, now_ms)));
    batch.extend([
        sql!(
            "INSERT INTO used_test_tokens (id, workspace_id, expires_at, link_id, used_at)
             VALUES (:id, :workspace_id, :expires_at, :link_id, :used_at)",
            id = &token.id,
            workspace_id = workspace_id,
            expires_at = token.expires_at_ms,
            link_id = token.first_id.as_deref(),
            used_at = now_ms,
        ),
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM assistants WHERE workspace_id = :workspace_id AND id = :id AND revision = :revision)",
            workspace_id = workspace_id,
            id = &assistant.id,
            revision = assistant.revision,
        ),
        // A token belongs to no key. Between the read and this write, the workspace may have lost its last one.
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM api_keys WHERE workspace_id = :workspace_id AND revoked_at IS NULL)
             AND NOT EXISTS (SELECT 1 FROM memberships WHERE workspace_id = :workspace_id)",
            workspace_id = workspace_id,
        ),
    ]);
    // The next conversation of a link that may start again has the same.
    if has_values && !token.is_restartable() {
        batch.push(TokenValues::delete(token).in_workspace(workspace_id));
    }
    if let Some(reservation) = reservation {
        batch.extend(spending::reserve(services, workspace_id, &call.id, now_ms, reservation));
    }
    if let Some((hash, stored)) = named_snapshots::of_conversation(&assistant, call.started_at)? {
        call.snapshot = Some(hash);
        batch.extend(stored.map(|statement| statement.in_workspace(workspace_id)));
    }
    batch.extend(calls::write::insert(&call));
    batch.push(lease.insert_job(now_ms));
    batch.push(match &token.first_id {
        Some(link_id) => call_journal::open_of_link(workspace_id, &call.id, link_id),
        None => call_journal::open(workspace_id, &call.id),
    });
    let about = EventKind::CallStarted.of_call(&call.id);
    batch.emit(services, workspace_id, &subscribers, about, now_ms, || {
        Ok(json!({"call": Call::of(&call, None, None)?}))
    })?;
    match batch.write(services).await {
        Ok(rows) => {
            let replaced = token.first_id.as_ref().and_then(|_| rows.first()?.first());
            if let Some(row) = replaced {
                services.ports().live.signal(&row.id("call_id")?).await;
            }
        }
        // Of two concurrent requests, the second one fails.
        Err(DatabaseError::Constraint(sentence)) if sentence.contains("used_test_tokens") => {
            return Err(token_used(token).into());
        }
        Err(error) => return Err(error.into()),
    }
    let max_cost_microusd = reservation.map_or(LIVE_COST_MICROUSD_MAX, |one| one.models_microusd);
    Ok(Opened { call, lease, assistant, texts, max_cost_microusd, is_spoken, admission })
}
