//! An assistant with a telephone number at a scripted carrier, and what the carrier tells the service.
use std::sync::Arc;

use sidetone::sandbox::{memory, memory_shards};
use sidetone_engine::ports::{Blobs, Database};
use sidetone_tests::host::shards;

use super::*;

pub(super) const OURS: &str = "+14155550100";
pub(super) const THEIRS: &str = "+14155550123";
pub(super) const BASE_URL: &str = "http://sandbox.example";
pub(super) const CARRIER_CALL_ID: &str = "v3:the-call-of-the-carrier";
/// The start of the Sandbox's clock.
pub(super) const START_S: i64 = 1_767_225_600;

/// An assistant with a number at Telnyx, where media sockets open while the call rings.
pub(super) struct Desk {
    pub(super) sandbox: Sandbox,
    pub(super) assistant: String,
    pub(super) now_ms: Cell<i64>,
    told: Cell<u32>,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self::with_settings(&[])
    }

    pub(super) fn with_settings(own: &[(&'static str, &str)]) -> Self {
        Self::with(own, |settings| match shards() {
            0 => Sandbox::with_settings(settings),
            shards => Sandbox::over_shards(memory_shards(shards), settings),
        })
    }

    pub(super) fn with_blobs(blobs: Arc<dyn Blobs>) -> Self {
        Self::over(Arc::new(memory()), blobs)
    }

    pub(super) fn over(database: Arc<dyn Database>, blobs: Arc<dyn Blobs>) -> Self {
        Self::with(&[], |settings| Sandbox::over_both(database, blobs, settings))
    }

    fn with(own: &[(&'static str, &str)], make: impl FnOnce(&[(&str, &str)]) -> Sandbox) -> Self {
        let mut settings = TelnyxWire.settings("http://telnyx.example");
        settings.extend(own.iter().map(|(name, value)| (*name, (*value).to_owned())));
        settings.push((
            "SIDETONE_PROVIDERS",
            json!({"other": {"base_url": "https://other.example"}}).to_string(),
        ));
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let sandbox = make(&settings);
        let assistant = sandbox.post(
            "/assistants",
            json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello.", "voice": "builtin/tone"}),
        );
        let assistant = assistant.json["id"].as_str().unwrap().to_owned();
        sandbox.put(&format!("/numbers/{OURS}"), json!({"assistant_id": assistant, "provider": "telnyx"}));
        Self { sandbox, assistant, now_ms: Cell::new(0), told: Cell::new(0) }
    }

    /// Requests a call.
    pub(super) fn order(&self) -> Reply {
        self.sandbox.post("/calls/outbound", json!({"assistant_id": self.assistant, "to": THEIRS}))
    }

    /// Places a call that the carrier accepts.
    pub(super) fn place(&self) -> PhoneCall {
        let data = json!({"data": {"call_control_id": CARRIER_CALL_ID}});
        self.sandbox.answer_http(200, &data.to_string());
        assert_eq!(self.order().status, 201);
        self.placed()
    }

    /// The call of the last order.
    pub(super) fn placed(&self) -> PhoneCall {
        let order: Value = serde_json::from_slice(&self.sandbox.sent_http().pop().unwrap().body).unwrap();
        phone_call(true, &order)
    }

    /// An incoming call that the service answers.
    pub(super) fn is_called(&self) -> PhoneCall {
        let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
        self.sandbox.answer_http(200, "{}");
        assert_eq!(self.tell(&call, &CallEvent::Incoming), 200);
        let answer: Value = serde_json::from_slice(&self.sandbox.sent_http().pop().unwrap().body).unwrap();
        call.status_url = answer["webhook_url"].as_str().unwrap().to_owned();
        call.format = answer["stream_url"].as_str().unwrap().to_owned();
        call
    }

    /// Sends a signed callback.
    pub(super) fn tell(&self, call: &PhoneCall, event: &CallEvent) -> u16 {
        let now_s = START_S + self.now_ms.get() / 1_000;
        let nth = self.told.replace(self.told.get() + 1);
        tell(&self.sandbox, &TelnyxWire, call, event, nth, now_s).status
    }

    /// Opens the media socket.
    pub(super) fn socket(&self, call: &PhoneCall) -> SandboxSocket<'_> {
        self.try_socket(call).unwrap_or_else(|reply| panic!("{}", String::from_utf8_lossy(&reply.body)))
    }

    /// Tries to open the media socket.
    pub(super) fn try_socket(&self, call: &PhoneCall) -> Result<SandboxSocket<'_>, Box<Reply>> {
        let (_, path) = call.format.split_once("sandbox.example").unwrap();
        self.sandbox.connect(path)
    }

    /// Expects that the call was aborted and hung up.
    #[track_caller]
    pub(super) fn expect_given_up(&self, fault: &str) {
        self.expect(
            &json!({"status": "ended", "outcome": "failed", "ended_reason": "aborted", "fault": fault}),
        );
        self.sandbox.answer_http(200, "{}");
        self.sandbox.run_jobs();
        assert_eq!(self.commands(), ["hangup"]);
        assert_eq!(self.call()["analysis"]["method"], "rule");
    }

    pub(super) fn wait(&self, ms: i64) {
        self.now_ms.set(self.now_ms.get() + ms);
        self.sandbox.advance(ms);
    }

    /// The only call.
    pub(super) fn call(&self) -> Value {
        self.sandbox.get("/calls").json["calls"][0].clone()
    }

    #[track_caller]
    pub(super) fn expect(&self, fields: &Value) {
        let call = self.call();
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&call[name], value, "{name} of {call}");
        }
    }

    /// The commands to the carrier since the last look.
    pub(super) fn commands(&self) -> Vec<String> {
        let action =
            |request: HttpRequest| request.url.rsplit_once("/actions/").map(|(_, action)| action.to_owned());
        self.sandbox.sent_http().into_iter().filter_map(action).collect()
    }
}

/// Sends a signed callback of a carrier.
pub(super) fn tell(
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
pub(super) fn phone_call(outbound: bool, order: &Value) -> PhoneCall {
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
        detection: None,
    }
}

/// Starts the audio.
pub(super) fn begin(socket: &SandboxSocket<'_>, call: &PhoneCall) {
    for message in TelnyxWire.media(call).opening() {
        let WireMessage::Text(text) = message else { panic!("a binary message") };
        socket.send(text);
    }
}

pub(super) fn press(socket: &SandboxSocket<'_>, key: &str) {
    socket.send(json!({"event": "dtmf", "dtmf": {"digit": key}}).to_string());
}
