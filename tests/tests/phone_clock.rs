//! Telephone calls by a clock that is moved by hand: what takes minutes, and what happens between two moments.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
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
/// Where the sandbox's clock begins.
const START_S: i64 = 1_767_225_600;

/// An assistant with a number at Telnyx, whose sockets are open while it rings.
struct Desk {
    sandbox: Sandbox,
    assistant: String,
    now_ms: Cell<i64>,
    told: Cell<u32>,
}

impl Desk {
    fn new() -> Self {
        let mut settings = TelnyxWire.settings("http://telnyx.example");
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

    /// Asks for a call.
    fn order(&self) -> Reply {
        self.sandbox.post("/calls/outbound", json!({"assistant_id": self.assistant, "to": THEIRS}))
    }

    /// A call that the carrier takes.
    fn place(&self) -> PhoneCall {
        let data = json!({"data": {"call_control_id": CARRIER_CALL_ID}});
        self.sandbox.answer_http(200, &data.to_string());
        assert_eq!(self.order().status, 201);
        self.placed()
    }

    /// The call that the carrier was asked for last.
    fn placed(&self) -> PhoneCall {
        let order: Value = serde_json::from_slice(&self.sandbox.sent_http().pop().unwrap().body).unwrap();
        phone_call(true, &order)
    }

    /// A call that comes in and is answered by us.
    fn is_called(&self) -> PhoneCall {
        let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
        self.sandbox.answer_http(200, "{}");
        assert_eq!(self.tell(&call, &CallEvent::Incoming), 200);
        let answer: Value = serde_json::from_slice(&self.sandbox.sent_http().pop().unwrap().body).unwrap();
        call.status_url = answer["webhook_url"].as_str().unwrap().to_owned();
        call.format = answer["stream_url"].as_str().unwrap().to_owned();
        call
    }

    /// A callback, signed.
    fn tell(&self, call: &PhoneCall, event: &CallEvent) -> u16 {
        let now_s = START_S + self.now_ms.get() / 1_000;
        let nth = self.told.replace(self.told.get() + 1);
        tell(&self.sandbox, &TelnyxWire, call, event, nth, now_s).status
    }

    /// The carrier opens its socket.
    fn socket(&self, call: &PhoneCall) -> SandboxSocket<'_> {
        self.knock(call).unwrap_or_else(|reply| panic!("{}", String::from_utf8_lossy(&reply.body)))
    }

    /// The same, whether it is let in or not.
    fn knock(&self, call: &PhoneCall) -> Result<SandboxSocket<'_>, Box<Reply>> {
        let (_, path) = call.format.split_once("sandbox.example").unwrap();
        self.sandbox.connect(path)
    }

    /// The call has ended as one that we could not talk on, and the line is closed.
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

    /// The only call there is.
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

    /// What the carrier was told of the call since the last look.
    fn commands(&self) -> Vec<String> {
        let action =
            |request: HttpRequest| request.url.rsplit_once("/actions/").map(|(_, action)| action.to_owned());
        self.sandbox.sent_http().into_iter().filter_map(action).collect()
    }
}

/// A callback of a carrier's, signed.
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

/// A call as the carrier has it; its socket's URL stands in `format`.
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

/// The audio begins.
fn begin(socket: &SandboxSocket<'_>, call: &PhoneCall) {
    for message in TelnyxWire.media(call).opening() {
        let WireMessage::Text(text) = message else { panic!("a binary message") };
        socket.send(text);
    }
}

fn press(socket: &SandboxSocket<'_>, key: &str) {
    socket.send(json!({"event": "dtmf", "dtmf": {"digit": key}}).to_string());
}

/// The patience for audio counts from the answer, not from the socket, which is open while it rings.
#[test]
fn a_call_that_is_answered_has_ten_seconds_for_its_audio() {
    for ringing_ms in [100, 9_900, 19_950, 40_000] {
        let desk = Desk::new();
        let call = desk.place();
        desk.tell(&call, &CallEvent::Ringing);
        let socket = desk.socket(&call);
        desk.wait(ringing_ms);
        desk.tell(&call, &CallEvent::Answered);
        // Telnyx tells of the answer by one way and begins the audio by another.
        desk.wait(150);
        begin(&socket, &call);
        desk.expect(&json!({"status": "in_progress"}));
        assert_eq!(socket.closed(), None, "answered after {ringing_ms} ms, dropped");
        assert!(!socket.received().is_empty(), "answered after {ringing_ms} ms, not greeted");
    }
}

#[test]
fn a_call_that_is_answered_and_has_no_audio_is_over() {
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

/// The carrier has done its part, and its line would stay open without a sound.
#[test]
fn a_call_whose_assistant_is_gone_is_the_operators_and_is_hung_up() {
    for outbound in [true, false] {
        let desk = Desk::new();
        let call = if outbound { desk.place() } else { desk.is_called() };
        assert_eq!(desk.sandbox.delete(&format!("/numbers/{OURS}")).status, 204);
        assert_eq!(desk.sandbox.delete(&format!("/assistants/{}", desk.assistant)).status, 204);
        assert_eq!(desk.knock(&call).err().unwrap().status, 404);
        desk.expect_given_up("operator");
        // However late, and whatever the carrier makes of it.
        desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 0 });
        desk.expect(&json!({"ended_reason": "aborted", "fault": "operator"}));
        assert_eq!(desk.knock(&call).err().unwrap().status, 409, "its socket is used");
    }
}

#[test]
fn a_call_whose_assistant_cannot_speak_any_more_is_the_operators_and_is_hung_up() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let path = format!("/assistants/{}", desk.assistant);
    let changed = desk.sandbox.patch(&path, json!({"voice": "other/voice"}));
    assert_eq!(changed.status, 200, "{}", changed.json);
    assert_eq!(desk.knock(&call).err().unwrap().status, 404);
    desk.expect_given_up("operator");
}

#[test]
fn a_call_that_there_is_no_room_for_is_the_platforms_and_is_hung_up() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let path = format!("/assistants/{}/test-token", desk.assistant);
    let others: Vec<_> = (0..LIVE_SESSIONS_MAX)
        .map(|_| {
            let token = desk.sandbox.post(&path, json!({}));
            let (_, path) = token.json["websocket_url"].as_str().unwrap().split_once(".example").unwrap();
            desk.sandbox.connect(path).unwrap_or_else(|reply| panic!("{}", reply.status))
        })
        .collect();
    assert_eq!(desk.knock(&call).err().unwrap().status, 503);
    let calls = desk.sandbox.get("/calls?source=outbound");
    let ended = &calls.json["calls"][0];
    assert_eq!((&ended["ended_reason"], &ended["fault"]), (&json!("aborted"), &json!("platform")));
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    drop(others);
    assert_eq!(desk.knock(&call).err().unwrap().status, 409, "its socket is used");
}

/// Whoever waits to be told what the call was about does not wait until a lease runs out.
#[test]
fn a_call_that_ends_in_the_moment_its_audio_begins_is_looked_into_at_once() {
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

/// Nobody lost the audio of a call that was called off before there was any.
#[test]
fn who_hangs_up_before_audio_comes_has_called_it_off() {
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

/// Nobody is to blame for a caller who thinks better of it in the moment before the greeting.
#[test]
fn who_hangs_up_in_the_moment_after_the_answer_has_hung_up() {
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
        assert_eq!(desk.call()["analysis"]["method"], "rule", "nobody waits for what is there");
        assert!(desk.commands().is_empty(), "the carrier knows");
    }
}

/// Whoever hears nothing for long, and hangs up, has heard nothing because none came.
#[test]
fn who_hangs_up_after_a_long_nothing_was_not_connected() {
    let desk = Desk::new();
    let call = desk.is_called();
    desk.tell(&call, &CallEvent::Answered);
    desk.wait(15_000);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 15 });
    desk.expect(
        &json!({"status": "ended", "outcome": "failed", "ended_reason": "media_lost", "fault": "carrier"}),
    );
    // So is a call that we have ended ourselves.
    let desk = Desk::new();
    let call = desk.is_called();
    desk.tell(&call, &CallEvent::Answered);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 1 });
    desk.expect(&json!({"ended_reason": "media_lost"}));
}

/// Seven samples are less than a millisecond; a second of them is a second all the same.
#[test]
fn a_flood_in_small_pieces_is_a_flood() {
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

/// Who wants a telephone to stop ringing asks once, whatever becomes of the request to the carrier.
#[test]
fn a_hang_up_that_the_carrier_did_not_answer_is_told_again() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.fail_http(HttpError::Timeout);
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 504);
    assert_eq!(desk.commands(), ["hangup"]);
    desk.sandbox.run_jobs();
    assert!(desk.commands().is_empty(), "the carrier may still tell that it is over");
    desk.wait(30_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::Canceled, seconds: 0 });
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "outcome": "canceled", "ended_reason": "canceled"}));
    assert!(desk.commands().is_empty());
}

/// Nobody talks to whoever answers a call that was given up: the telephone rings no longer than it takes to say so.
#[test]
fn a_call_that_was_given_up_and_rings_after_all_is_hung_up() {
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

/// Carriers send out a call a second; whoever orders 200 at once has some that ring after minutes, and not in vain.
#[test]
fn a_call_that_was_taken_has_its_turn_and_one_that_rings_has_three_minutes() {
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

/// A box that starts anew takes what is due late for the work of a clock that was ahead.
#[test]
fn a_call_in_the_queue_keeps_its_turn_when_the_service_starts_anew() {
    let desk = Desk::new();
    desk.place();
    // The clock was set back a little meanwhile.
    desk.wait(-10_000);
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "queued"}));
    // By as much as this it was wrong.
    desk.wait(-4 * 3_600_000);
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
}

/// One that rings after a minute in the queue does not keep what is left of the half hour.
#[test]
fn what_rings_waits_for_as_long_as_anything_that_rings() {
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
fn a_turn_that_never_comes_is_given_up_and_one_that_is_called_off_is_not_waited_for() {
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

/// Else it is the carrier that ends every such call, and the log says that the person has.
#[test]
fn our_limit_of_time_comes_before_the_carriers() {
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
        assert!(desk.now_ms.get() < 4_000_000, "it never ends");
    }
    desk.expect(&json!({"ended_reason": "duration_limit"}));
    let lasted_ms = desk.now_ms.get() - answered_ms;
    let carriers_ms = order["time_limit_secs"].as_i64().unwrap() * 1_000;
    assert!(lasted_ms < carriers_ms, "{lasted_ms} ms; the carrier ends it after {carriers_ms}");
}

/// The log names the model that talked.
#[test]
fn an_assistant_that_is_changed_while_it_rings_is_in_the_log_as_it_talks() {
    let desk = Desk::new();
    let call = desk.place();
    let path = format!("/assistants/{}", desk.assistant);
    let changed = desk.sandbox.patch(&path, json!({"model": "other/larger"}));
    assert_eq!(changed.status, 200, "{}", changed.json);
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    begin(&socket, &call);
    desk.expect(&json!({"status": "in_progress", "assistant_revision": 2, "model": "other/larger"}));
    // It is found and counted by it, and by the other one no more.
    let found =
        |model: &str| desk.sandbox.get(&format!("/calls?model={model}")).json["stats"]["total"].clone();
    assert_eq!((found("other/larger"), found("builtin/rules")), (json!(1), json!(0)));
    assert_eq!(desk.sandbox.get("/calls").json["stats"]["total"], 1);
}

/// The carrier costs money whatever the model does.
#[test]
fn who_calls_a_workspace_that_may_spend_no_more_is_declined() {
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

/// Vonage declines nothing: it answers, says why not, and ends the call by itself.
#[test]
fn who_is_told_why_not_hears_all_of_it() {
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

/// A call whose order the carrier rejects after seconds, when its callbacks have told of the call already.
struct RejectedLate {
    /// As a read shows it then.
    call: Value,
    spent_microusd: i64,
    /// What the webhook was sent.
    events: Vec<Value>,
    /// Where the carrier was sent commands.
    commands: Vec<String>,
}

impl RejectedLate {
    /// With a webhook that is added while the carrier is asked.
    fn new() -> Self {
        Self::ordered(false)
    }

    /// With a webhook that is there from the beginning.
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
        self.events.iter().find(|event| event["type"] == "call.ended").expect("the end is told")
    }
}

#[test]
fn a_call_that_is_rejected_late_costs_what_the_carrier_told_and_counts_as_spent() {
    let RejectedLate { call, spent_microusd, .. } = RejectedLate::new();
    assert_eq!((&call["status"], &call["ended_reason"]), (&json!("ended"), &json!("carrier_refused")));
    assert!(spent_microusd > 0, "{call}");
    assert_eq!(call["costs"]["telephony_microusd"], spent_microusd);
    assert_eq!(call["costs"]["total_microusd"], spent_microusd);
}

#[test]
fn the_end_of_a_rejected_call_is_told_to_the_webhooks_of_that_moment() {
    RejectedLate::new().ended();
}

#[test]
fn the_end_of_a_rejected_call_is_dated_when_it_ended() {
    let rejected = RejectedLate::with_webhook();
    assert_eq!(rejected.call["ended_at"], "2026-01-01T00:00:03.000Z");
    assert_eq!(rejected.ended()["created_at"], rejected.call["ended_at"]);
}

#[test]
fn the_event_of_a_rejected_call_shows_it_as_a_read_does() {
    let rejected = RejectedLate::with_webhook();
    let mut shown = rejected.call.clone();
    assert_eq!(shown["carrier_call_id"], CARRIER_CALL_ID);
    assert_eq!(shown["answered_at"], "2026-01-01T00:00:03.000Z", "it was answered");
    (shown["analysis"], shown["sentiment"]) = (json!(null), json!(null));
    assert_eq!(rejected.ended()["data"]["call"], shown);
}

/// Its telephone rings, whatever the response to the order says.
#[test]
fn a_rejected_call_that_rings_is_hung_up() {
    let commands = RejectedLate::new().commands;
    assert!(commands.iter().any(|url| url.ends_with("/actions/hangup")), "{commands:?}");
}

/// A process that dies between the end of a call and its socket's leaves no journal behind.
#[test]
fn a_call_that_ends_before_its_audio_keeps_no_journal() {
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
