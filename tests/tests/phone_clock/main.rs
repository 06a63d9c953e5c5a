//! Telephone calls with a manual clock: long waits, and races between events.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod records;
mod replays;

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use sidetone::sandbox::{Reply, Sandbox, SandboxSocket, block_on};
use sidetone_engine::base::limits::LIVE_SESSIONS_MAX;
use sidetone_engine::ports::{HttpError, HttpReply, HttpRequest};
use sidetone_tests::World;
use sidetone_tests::fakes::carrier::telnyx::TelnyxWire;
use sidetone_tests::fakes::carrier::vonage::VonageWire;
use sidetone_tests::fakes::carrier::{CallEvent, EndKind, PhoneCall, Public, Wire, WireMessage};

const OURS: &str = "+14155550100";
const THEIRS: &str = "+14155550123";
const BASE_URL: &str = "http://sandbox.example";
const CARRIER_CALL_ID: &str = "v3:the-call-of-the-carrier";
/// The start of the Sandbox's clock.
const START_S: i64 = 1_767_225_600;

/// An assistant with a number at Telnyx, where media sockets open while the call rings.
struct Desk {
    sandbox: Sandbox,
    assistant: String,
    now_ms: Cell<i64>,
    told: Cell<u32>,
}

impl Desk {
    fn new() -> Self {
        Self::with_settings(&[])
    }

    fn with_settings(own: &[(&'static str, &str)]) -> Self {
        let mut settings = TelnyxWire.settings("http://telnyx.example");
        settings.extend(own.iter().map(|(name, value)| (*name, (*value).to_owned())));
        settings.push((
            "SIDETONE_PROVIDERS",
            json!({"other": {"base_url": "https://other.example"}}).to_string(),
        ));
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let sandbox = Sandbox::with_settings(&settings);
        let assistant = sandbox.post(
            "/assistants",
            json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello.", "voice": "builtin/tone"}),
        );
        let assistant = assistant.json["id"].as_str().unwrap().to_owned();
        sandbox.put(&format!("/numbers/{OURS}"), json!({"assistant_id": assistant, "provider": "telnyx"}));
        Self { sandbox, assistant, now_ms: Cell::new(0), told: Cell::new(0) }
    }

    /// Requests a call.
    fn order(&self) -> Reply {
        self.sandbox.post("/calls/outbound", json!({"assistant_id": self.assistant, "to": THEIRS}))
    }

    /// Places a call that the carrier accepts.
    fn place(&self) -> PhoneCall {
        let data = json!({"data": {"call_control_id": CARRIER_CALL_ID}});
        self.sandbox.answer_http(200, &data.to_string());
        assert_eq!(self.order().status, 201);
        self.placed()
    }

    /// The call of the last order.
    fn placed(&self) -> PhoneCall {
        let order: Value = serde_json::from_slice(&self.sandbox.sent_http().pop().unwrap().body).unwrap();
        phone_call(true, &order)
    }

    /// An incoming call that the service answers.
    fn is_called(&self) -> PhoneCall {
        let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
        self.sandbox.answer_http(200, "{}");
        assert_eq!(self.tell(&call, &CallEvent::Incoming), 200);
        let answer: Value = serde_json::from_slice(&self.sandbox.sent_http().pop().unwrap().body).unwrap();
        call.status_url = answer["webhook_url"].as_str().unwrap().to_owned();
        call.format = answer["stream_url"].as_str().unwrap().to_owned();
        call
    }

    /// Sends a signed callback.
    fn tell(&self, call: &PhoneCall, event: &CallEvent) -> u16 {
        let now_s = START_S + self.now_ms.get() / 1_000;
        let nth = self.told.replace(self.told.get() + 1);
        tell(&self.sandbox, &TelnyxWire, call, event, nth, now_s).status
    }

    /// Opens the media socket.
    fn socket(&self, call: &PhoneCall) -> SandboxSocket<'_> {
        self.try_socket(call).unwrap_or_else(|reply| panic!("{}", String::from_utf8_lossy(&reply.body)))
    }

    /// Tries to open the media socket.
    fn try_socket(&self, call: &PhoneCall) -> Result<SandboxSocket<'_>, Box<Reply>> {
        let (_, path) = call.format.split_once("sandbox.example").unwrap();
        self.sandbox.connect(path)
    }

    /// Expects that the call was aborted and hung up.
    #[track_caller]
    fn expect_given_up(&self, fault: &str) {
        self.expect(
            &json!({"status": "ended", "outcome": "failed", "ended_reason": "aborted", "fault": fault}),
        );
        self.sandbox.answer_http(200, "{}");
        self.sandbox.run_jobs();
        assert_eq!(self.commands(), ["hangup"]);
        assert_eq!(self.call()["analysis"]["method"], "rule");
    }

    fn wait(&self, ms: i64) {
        self.now_ms.set(self.now_ms.get() + ms);
        self.sandbox.advance(ms);
    }

    /// The only call.
    fn call(&self) -> Value {
        self.sandbox.get("/calls").json["calls"][0].clone()
    }

    #[track_caller]
    fn expect(&self, fields: &Value) {
        let call = self.call();
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&call[name], value, "{name} of {call}");
        }
    }

    /// The commands to the carrier since the last look.
    fn commands(&self) -> Vec<String> {
        let action =
            |request: HttpRequest| request.url.rsplit_once("/actions/").map(|(_, action)| action.to_owned());
        self.sandbox.sent_http().into_iter().filter_map(action).collect()
    }
}

/// Sends a signed callback of a carrier.
fn tell(
    sandbox: &Sandbox,
    wire: &dyn Wire,
    call: &PhoneCall,
    event: &CallEvent,
    nth: u32,
    now_s: i64,
) -> Reply {
    let public = Public { base_url: BASE_URL.to_owned() };
    let callback = wire.callback(&public, call, event, nth, now_s).unwrap();
    let path = callback.url.strip_prefix(BASE_URL).unwrap().to_owned();
    let mut request = http::Request::builder().method(callback.method).uri(path);
    for (name, value) in &callback.headers {
        request = request.header(*name, value);
    }
    sandbox.send(request.body(Bytes::from(callback.body)).unwrap())
}

/// A call from the carrier's side, with the URL of its media socket in `format`.
fn phone_call(outbound: bool, order: &Value) -> PhoneCall {
    let (from, to) = if outbound { (OURS, THEIRS) } else { (THEIRS, OURS) };
    PhoneCall {
        carrier_call_id: CARRIER_CALL_ID.to_owned(),
        other_id: "0ccc7b54-4df3-4bca-a65a-3da1ecc777f0".to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        outbound,
        status_url: order["webhook_url"].as_str().unwrap().to_owned(),
        voice_url: format!("{BASE_URL}/carriers/telnyx/voice"),
        format: order["stream_url"].as_str().unwrap().to_owned(),
    }
}

/// Starts the audio.
fn begin(socket: &SandboxSocket<'_>, call: &PhoneCall) {
    for message in TelnyxWire.media(call).opening() {
        let WireMessage::Text(text) = message else { panic!("a binary message") };
        socket.send(text);
    }
}

fn press(socket: &SandboxSocket<'_>, key: &str) {
    socket.send(json!({"event": "dtmf", "dtmf": {"digit": key}}).to_string());
}

/// The time limit for audio starts with the answer, not with the socket, which opens while the call rings.
#[test]
fn audio_must_start_within_ten_seconds_of_the_answer() {
    for ringing_ms in [100, 9_900, 19_950, 40_000] {
        let desk = Desk::new();
        let call = desk.place();
        desk.tell(&call, &CallEvent::Ringing);
        let socket = desk.socket(&call);
        desk.wait(ringing_ms);
        desk.tell(&call, &CallEvent::Answered);
        // Telnyx reports the answer and starts the audio over different connections.
        desk.wait(150);
        begin(&socket, &call);
        desk.expect(&json!({"status": "in_progress"}));
        assert_eq!(socket.closed(), None, "answered after {ringing_ms} ms, dropped");
        assert!(!socket.received().is_empty(), "answered after {ringing_ms} ms, not greeted");
    }
}

#[test]
fn an_answered_call_without_audio_ends() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let socket = desk.socket(&call);
    desk.wait(5_000);
    desk.tell(&call, &CallEvent::Answered);
    desk.wait(9_000);
    assert_eq!(socket.closed(), None);
    desk.wait(11_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "media_lost", "fault": "carrier"}));
    assert_eq!(desk.commands(), ["hangup"]);
}

/// Otherwise the carrier would keep the silent line open.
#[test]
fn a_call_with_a_deleted_assistant_is_hung_up_as_the_operators_fault() {
    for outbound in [true, false] {
        let desk = Desk::new();
        let call = if outbound { desk.place() } else { desk.is_called() };
        assert_eq!(desk.sandbox.delete(&format!("/numbers/{OURS}")).status, 204);
        assert_eq!(desk.sandbox.delete(&format!("/assistants/{}", desk.assistant)).status, 204);
        assert_eq!(desk.try_socket(&call).err().unwrap().status, 404);
        desk.expect_given_up("operator");
        // The carrier's later report does not change the end.
        desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 0 });
        desk.expect(&json!({"ended_reason": "aborted", "fault": "operator"}));
        assert_eq!(desk.try_socket(&call).err().unwrap().status, 409, "its socket is used");
    }
}

#[test]
fn a_call_with_an_unavailable_voice_is_hung_up_as_the_operators_fault() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let path = format!("/assistants/{}", desk.assistant);
    let changed = desk.sandbox.patch(&path, json!({"voice": "other/voice"}));
    assert_eq!(changed.status, 200, "{}", changed.json);
    assert_eq!(desk.try_socket(&call).err().unwrap().status, 404);
    desk.expect_given_up("operator");
}

/// Opens test conversations of a workspace until the service refuses one; that refusal, too.
fn open_all<'a>(sandbox: &'a Sandbox, key: &str) -> (Vec<SandboxSocket<'a>>, Box<Reply>) {
    let post = |path: &str, body: &Value| {
        let request = http::Request::post(path)
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        sandbox.send(request.body(Bytes::from(body.to_string())).unwrap())
    };
    let assistant = post("/assistants", &json!({"name": "Greedy", "instructions": "Be greedy."}));
    let path = format!("/assistants/{}/test-token", assistant["id"].as_str().unwrap());
    let mut open = Vec::new();
    loop {
        let token = post(&path, &json!({}));
        let (_, path) = token["websocket_url"].as_str().unwrap().split_once(".example").unwrap();
        match sandbox.connect(path) {
            Ok(socket) => open.push(socket),
            Err(refused) => return (open, refused),
        }
    }
}

#[test]
fn a_workspace_that_opens_all_it_can_leaves_room_for_tests_and_calls_of_others() {
    let desk = Desk::new();
    let greedy = desk.sandbox.create_workspace("greedy");
    let (greedy, refused) = open_all(&desk.sandbox, &greedy);
    assert_eq!((refused.status, &refused["error"]["code"]), (503, &json!("unavailable")), "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"));
    assert!((700..900).contains(&greedy.len()), "most of {LIVE_SESSIONS_MAX}: {}", greedy.len());

    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let phone = desk.socket(&call);
    let (others, _) = open_all(&desk.sandbox, desk.sandbox.key());
    assert!(others.len() >= 5, "{}", others.len());

    // What one workspace gives back, the other can have.
    drop((greedy, phone, others));
    desk.sandbox.kill_conversations();
    let (again, _) = open_all(&desk.sandbox, desk.sandbox.key());
    assert!(again.len() >= 700, "{}", again.len());
}

#[test]
fn a_call_for_which_there_is_no_memory_is_hung_up_as_the_platforms_fault() {
    let desk = Desk::with_settings(&[("SIDETONE_MEMORY_MB", "16")]);
    let mut open = Vec::new();
    let refused = loop {
        let data = json!({"data": {"call_control_id": format!("v3:call-{}", open.len())}});
        desk.sandbox.answer_http(200, &data.to_string());
        assert_eq!(desk.order().status, 201);
        let call = desk.placed();
        match desk.try_socket(&call) {
            Ok(socket) => open.push(socket),
            Err(reply) => {
                assert_eq!(reply.status, 503);
                break call;
            }
        }
    };
    assert!((20..60).contains(&open.len()), "{}", open.len());
    let calls = desk.sandbox.get("/calls?source=outbound");
    let ended = &calls.json["calls"][0];
    assert_eq!((&ended["ended_reason"], &ended["fault"]), (&json!("aborted"), &json!("platform")));
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    assert_eq!(desk.try_socket(&refused).err().unwrap().status, 409, "its socket is used");
}

/// The analysis must not wait for the expiry of a lease.
#[test]
fn a_call_that_ends_when_its_audio_starts_is_analyzed_at_once() {
    let desk = Desk::new();
    let call = desk.place();
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 1 });
    begin(&socket, &call);
    assert!(socket.closed().is_some());
    desk.sandbox.run_jobs();
    let call = desk.call();
    assert_eq!(call["status"], "ended");
    assert_eq!(call["analysis"]["method"], "rule", "{call}");
}

/// The end is not `media_lost` if the call was canceled before it had media.
#[test]
fn hanging_up_before_the_audio_cancels_the_call() {
    let desk = Desk::new();
    let call = desk.is_called();
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.answer_http(200, "{}");
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 200);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 0 });
    desk.sandbox.run_jobs();
    desk.expect(
        &json!({"status": "ended", "outcome": "canceled", "ended_reason": "canceled", "fault": "none"}),
    );
}

/// It is not a fault if the caller hangs up right before the greeting.
#[test]
fn hanging_up_right_after_the_answer_is_user_hung_up() {
    for outbound in [false, true] {
        let desk = Desk::new();
        let call = if outbound { desk.place() } else { desk.is_called() };
        let socket = desk.socket(&call);
        desk.tell(&call, &CallEvent::Answered);
        desk.wait(600);
        desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 1 });
        drop(socket);
        desk.sandbox.run_jobs();
        desk.expect(&json!({
            "status": "ended", "outcome": "canceled", "ended_reason": "user_hung_up", "fault": "none",
            "duration_ms": 0,
        }));
        assert_eq!(desk.call()["analysis"]["method"], "rule", "the analysis does not wait");
        assert!(desk.commands().is_empty(), "the carrier ended the call itself");
    }
}

/// If the caller hangs up after a long silence, the cause is the missing audio.
#[test]
fn hanging_up_after_long_silence_is_media_lost() {
    let desk = Desk::new();
    let call = desk.is_called();
    desk.tell(&call, &CallEvent::Answered);
    desk.wait(15_000);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 15 });
    desk.expect(
        &json!({"status": "ended", "outcome": "failed", "ended_reason": "media_lost", "fault": "carrier"}),
    );
    // The same holds if the service ended the call.
    let desk = Desk::new();
    let call = desk.is_called();
    desk.tell(&call, &CallEvent::Answered);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 1 });
    desk.expect(&json!({"ended_reason": "media_lost"}));
}

/// Chunks shorter than a millisecond must be added up exactly.
#[test]
fn a_flood_of_small_chunks_is_detected() {
    let desk = Desk::new();
    let call = desk.place();
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    begin(&socket, &call);
    let payload = STANDARD.encode([0xff; 7]);
    for _ in 0..12_000 {
        socket.send(json!({"event": "media", "media": {"track": "inbound", "payload": payload}}).to_string());
    }
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "media_lost"}));
}

/// The client asks once; the service repeats the request to the carrier.
#[test]
fn an_unanswered_hang_up_command_is_repeated() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.fail_http(HttpError::Timeout);
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 504);
    assert_eq!(desk.commands(), ["hangup"]);
    desk.sandbox.run_jobs();
    assert!(desk.commands().is_empty(), "the carrier may still report the end");
    desk.wait(30_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::Canceled, seconds: 0 });
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "outcome": "canceled", "ended_reason": "canceled"}));
    assert!(desk.commands().is_empty());
}

/// A call that was given up has no conversation, so it must not keep ringing.
#[test]
fn a_call_that_rings_after_it_was_given_up_is_hung_up() {
    let desk = Desk::new();
    desk.sandbox.fail_http(HttpError::Timeout);
    assert_eq!(desk.order().status, 504);
    let call = desk.placed();
    desk.wait(200_000);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
    desk.tell(&call, &CallEvent::Ringing);
    desk.tell(&call, &CallEvent::Ringing);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::Canceled, seconds: 0 });
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
}

/// Carriers start one call per second, so of 200 concurrent orders some ring only after minutes.
#[test]
fn an_accepted_call_waits_half_an_hour_and_a_ringing_call_three_minutes() {
    let desk = Desk::new();
    let call = desk.place();
    for _ in 0..29 {
        desk.wait(60_000);
        desk.sandbox.run_jobs();
        desk.expect(&json!({"status": "queued"}));
    }
    desk.tell(&call, &CallEvent::Ringing);
    desk.wait(179_000);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ringing"}));
    assert!(desk.commands().is_empty());
    desk.wait(1_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
    assert_eq!(desk.commands(), ["hangup"]);
}

/// After a restart, a due time far in the future is assumed to come from a wrong clock.
#[test]
fn a_queued_call_keeps_waiting_after_a_restart() {
    let desk = Desk::new();
    desk.place();
    // The clock is set back a little.
    desk.wait(-10_000);
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "queued"}));
    // The clock is set back so far that it must have been wrong.
    desk.wait(-4 * 3_600_000);
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
}

/// A call that rings after a minute in the queue does not keep the rest of the half hour.
#[test]
fn ringing_is_limited_to_three_minutes_after_any_wait() {
    let desk = Desk::new();
    let call = desk.place();
    desk.wait(60_000);
    desk.tell(&call, &CallEvent::Ringing);
    desk.wait(180_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
}

#[test]
fn an_accepted_call_that_never_rings_ends_and_a_canceled_one_ends_sooner() {
    let desk = Desk::new();
    desk.place();
    desk.wait(1_799_000);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "queued"}));
    desk.wait(1_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled", "fault": "carrier"}));
    assert_eq!(desk.commands(), ["hangup"]);

    let desk = Desk::new();
    desk.place();
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.answer_http(200, "{}");
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 200);
    desk.wait(180_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "outcome": "canceled", "ended_reason": "canceled"}));
}

/// Otherwise the carrier would end the call, and the log would blame the person.
#[test]
fn the_services_duration_limit_precedes_the_carriers() {
    let desk = Desk::new();
    desk.sandbox.answer_http(200, &json!({"data": {"call_control_id": CARRIER_CALL_ID}}).to_string());
    desk.order();
    let order: Value = serde_json::from_slice(&desk.sandbox.sent_http().pop().unwrap().body).unwrap();
    let call = phone_call(true, &order);
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    let answered_ms = desk.now_ms.get();
    desk.wait(2_000);
    begin(&socket, &call);
    while socket.closed().is_none() {
        press(&socket, "1");
        desk.wait(15_000);
        assert!(desk.now_ms.get() < 4_000_000, "the call does not end");
    }
    desk.expect(&json!({"ended_reason": "duration_limit"}));
    let lasted_ms = desk.now_ms.get() - answered_ms;
    let carriers_ms = order["time_limit_secs"].as_i64().unwrap() * 1_000;
    assert!(lasted_ms < carriers_ms, "{lasted_ms} ms; the carrier ends it after {carriers_ms}");
}

/// The call log must contain the model of the conversation.
#[test]
fn an_assistant_changed_while_ringing_is_logged_with_its_new_configuration() {
    let desk = Desk::new();
    let call = desk.place();
    let path = format!("/assistants/{}", desk.assistant);
    let changed = desk.sandbox.patch(&path, json!({"model": "other/larger"}));
    assert_eq!(changed.status, 200, "{}", changed.json);
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    begin(&socket, &call);
    desk.expect(&json!({"status": "in_progress", "assistant_revision": 2, "model": "other/larger"}));
    // Filters find the call by its new model only.
    let found =
        |model: &str| desk.sandbox.get(&format!("/calls?model={model}")).json["stats"]["total"].clone();
    assert_eq!((found("other/larger"), found("builtin/rules")), (json!(1), json!(0)));
    assert_eq!(desk.sandbox.get("/calls").json["stats"]["total"], 1);
}

/// Incoming calls cost money at the carrier.
#[test]
fn calls_to_a_workspace_beyond_its_spending_limit_are_declined() {
    let desk = Desk::new();
    let spent = desk.place();
    desk.tell(&spent, &CallEvent::Ringing);
    desk.tell(&spent, &CallEvent::Ended { how: EndKind::NoAnswer, seconds: 0 });
    desk.tell(&spent, &CallEvent::Priced { seconds: 60 });
    assert_ne!(desk.call()["costs"]["telephony_microusd"], 0, "{}", desk.call());
    desk.sandbox.patch("/workspace", json!({"monthly_spend_limit_microusd": 1}));
    assert_eq!(desk.order().status, 402);
    let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
    call.carrier_call_id = "v3:another".to_owned();
    desk.sandbox.answer_http(200, "{}");
    desk.tell(&call, &CallEvent::Incoming);
    assert_eq!(desk.commands().last().map(String::as_str), Some("reject"));
}

/// Vonage cannot decline a call: it answers, speaks the reason, and ends the call itself.
#[test]
fn a_spoken_rejection_is_not_cut_off() {
    let wire = VonageWire::default();
    let settings = wire.settings("http://vonage.example");
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let sandbox = Sandbox::with_settings(&settings);
    let assistant = sandbox.post(
        "/assistants",
        json!({"name": "Front desk", "instructions": "Be kind.", "voice": "builtin/tone"}),
    );
    sandbox.put(
        &format!("/numbers/{OURS}"),
        json!({"assistant_id": assistant.json["id"], "provider": "vonage"}),
    );
    sandbox.patch("/workspace", json!({"monthly_spend_limit_microusd": 0}));
    let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
    call.carrier_call_id = "63f61863-4a51-4f6b-86e1-46edebcf9356".to_owned();
    call.voice_url = format!("{BASE_URL}/carriers/vonage/voice");
    call.status_url = format!("{BASE_URL}/carriers/vonage/status");
    let told = |event: CallEvent, nth| tell(&sandbox, &wire, &call, &event, nth, START_S);
    let refusal = told(CallEvent::Incoming, 0);
    assert_eq!(refusal.json[0]["action"], "talk", "{refusal:?}");
    assert_eq!(sandbox.get("/calls").json["calls"][0]["ended_reason"], "cost_limit");
    for (nth, event) in [(1, CallEvent::Ringing), (2, CallEvent::Answered)] {
        assert!((200..300).contains(&told(event, nth).status));
    }
    sandbox.answer_http(204, "");
    sandbox.run_jobs();
    let sent = sandbox.sent_http();
    assert!(sent.is_empty(), "hung up in the middle of the sentence: {sent:?}");
}

/// A call whose order the carrier rejects after its callbacks have already reported the call.
struct RejectedLate {
    /// The call as read afterwards.
    call: Value,
    spent_microusd: i64,
    /// The events that the webhook received.
    events: Vec<Value>,
    /// The URLs of commands to the carrier.
    commands: Vec<String>,
}

impl RejectedLate {
    /// With a webhook that is created during the order.
    fn new() -> Self {
        Self::ordered(false)
    }

    /// With a webhook that is created before the order.
    fn with_webhook() -> Self {
        Self::ordered(true)
    }

    fn ordered(has_webhook: bool) -> Self {
        let mut settings = TelnyxWire.settings("http://telnyx.example");
        settings.retain(|(name, _)| name.contains("TELNYX"));
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let world = World::with_settings(&settings);
        let sandbox = world.sandbox().unwrap();
        let assistant = world.assistant();
        let number = json!({"assistant_id": assistant.id, "provider": "telnyx"});
        world.put(format!("/numbers/{OURS}"), number).ok();
        let other = world.clone();
        let add_webhook = |world: &World| {
            world.create("/webhooks", json!({"url": "https://receiver.example/", "events": ["*"]}));
        };
        if has_webhook {
            add_webhook(&world);
        }
        sandbox.meanwhile(move || {
            let sandbox = other.sandbox().unwrap();
            sandbox.advance(3_000);
            if !has_webhook {
                add_webhook(&other);
            }
            let order: Value = serde_json::from_slice(&sandbox.sent_http().pop().unwrap().body).unwrap();
            let call = phone_call(true, &order);
            for (nth, event) in
                (0..).zip([CallEvent::Ringing, CallEvent::Answered, CallEvent::Priced { seconds: 60 }])
            {
                assert_eq!(tell(sandbox, &TelnyxWire, &call, &event, nth, START_S + 3).status, 200);
            }
        });
        let no = json!({"errors": [{"code": "10015", "title": "Bad request", "detail": "No."}]});
        sandbox.answer_http(422, &no.to_string());
        let order = json!({"assistant_id": assistant.id, "to": THEIRS, "from": OURS});
        let refusal = world.post("/calls/outbound", order).refused("carrier_rejected");
        let id = refusal["error"]["details"]["call_id"].as_str().unwrap().to_owned();
        sandbox.answer_http_with(|_| Ok(HttpReply { status: 200, headers: Vec::new(), body: Bytes::new() }));
        sandbox.run_jobs();
        let (told, commands): (Vec<_>, Vec<_>) = sandbox
            .sent_http()
            .into_iter()
            .partition(|request| request.url.starts_with("https://receiver.example"));
        Self {
            call: world.get(format!("/calls/{id}")).ok().json,
            spent_microusd: world.get("/workspace").ok()["spent_this_month_microusd"].as_i64().unwrap(),
            events: told.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect(),
            commands: commands.into_iter().map(|request| request.url).collect(),
        }
    }

    fn ended(&self) -> &Value {
        self.events.iter().find(|event| event["type"] == "call.ended").expect("an event reports the end")
    }
}

#[test]
fn the_reported_price_of_a_rejected_call_is_recorded_and_counts_as_spent() {
    let RejectedLate { call, spent_microusd, .. } = RejectedLate::new();
    assert_eq!((&call["status"], &call["ended_reason"]), (&json!("ended"), &json!("carrier_refused")));
    assert!(spent_microusd > 0, "{call}");
    assert_eq!(call["costs"]["telephony_microusd"], spent_microusd);
    assert_eq!(call["costs"]["total_microusd"], spent_microusd);
}

#[test]
fn the_end_of_a_rejected_call_is_sent_to_the_webhooks_of_that_moment() {
    RejectedLate::new().ended();
}

#[test]
fn the_end_of_a_rejected_call_has_the_time_of_its_end() {
    let rejected = RejectedLate::with_webhook();
    assert_eq!(rejected.call["ended_at"], "2026-01-01T00:00:03.000Z");
    assert_eq!(rejected.ended()["created_at"], rejected.call["ended_at"]);
}

#[test]
fn the_event_of_a_rejected_call_contains_the_call_as_read() {
    let rejected = RejectedLate::with_webhook();
    let mut shown = rejected.call.clone();
    assert_eq!(shown["carrier_call_id"], CARRIER_CALL_ID);
    assert_eq!(shown["answered_at"], "2026-01-01T00:00:03.000Z", "it was answered");
    (shown["analysis"], shown["sentiment"]) = (json!(null), json!(null));
    assert_eq!(rejected.ended()["data"]["call"], shown);
}

/// The telephone rings, although the response to the order is a rejection.
#[test]
fn a_rejected_call_that_rings_is_hung_up() {
    let commands = RejectedLate::new().commands;
    assert!(commands.iter().any(|url| url.ends_with("/actions/hangup")), "{commands:?}");
}

/// No journal is left if the process dies between the end of the call and the end of its socket.
#[test]
fn a_call_that_ends_before_its_audio_leaves_no_journal() {
    let desk = Desk::new();
    let call = desk.place();
    let _socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Ringing);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::NoAnswer, seconds: 0 });
    desk.sandbox.kill_conversations();
    desk.wait(600_000);
    desk.sandbox.run_jobs();
    assert_eq!(desk.call()["analysis"]["method"], "rule");
    let count = sidetone_engine::sql!("SELECT COUNT(*) AS journals FROM live_calls");
    let rows = block_on(desk.sandbox.services().ports().database.read(vec![count])).unwrap();
    assert_eq!(rows[0].first().unwrap().integer("journals").unwrap(), 0);
}
