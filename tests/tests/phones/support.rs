//! The fixture of telephone tests: an assistant, a number at one carrier, a webhook, and a person at the other end.
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::tone::{ToneDecoder, ToneEncoder, ToneHeard};
use sidetone_tests::fakes::carrier::{CarrierServer, Carriers, Phone};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::{Created, Reply, World};

/// How long to wait for an expected event.
pub const TIMEOUT_MS: u64 = 60_000;
/// How long to wait for an unexpected event.
pub const MOMENT_MS: u64 = 700;
/// The assistant's first message.
pub const GREETING: &str = "Hello, front desk.";
/// The fixture of a scenario.
pub struct Desk {
    pub world: World,
    pub carrier: &'static CarrierServer,
    pub provider: &'static str,
    pub assistant: Created,
    /// The number bound to the assistant.
    pub number: String,
    pub webhook: Receiver,
}

impl Desk {
    /// With an assistant on the built-in model that greets and knows the opening hours.
    pub fn new(provider: &'static str) -> Self {
        Self::with_model(provider, "builtin/rules")
    }

    /// The same on another model.
    pub fn with_model(provider: &'static str, model: &str) -> Self {
        let world = World::with_phones();
        let webhook = Receiver::start(ReceiverBehaviour::Status(204));
        world.create("/webhooks", json!({"url": webhook.url(), "events": ["*"]}));
        let assistant = world.create(
            "/assistants",
            json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING,
                   "model": model, "voice": "builtin/tone"}),
        );
        let hours =
            world.create("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."}));
        let path = format!("/assistants/{}/knowledge", assistant.id);
        world.put(path, json!({"knowledge_ids": [hours.id]})).ok();
        let (carrier, number) = (Carriers::shared().get(provider), a_number("0000"));
        let desk = Self { world, carrier, provider, assistant, number, webhook };
        desk.bind(&desk.assistant.id, provider);
        desk
    }

    /// The assistant knows this instead of the opening hours.
    pub fn knows(&self, content: &str) {
        let known = self.world.create("/knowledge", json!({"name": "At length", "content": content}));
        let path = format!("/assistants/{}/knowledge", self.assistant.id);
        self.world.put(path, json!({"knowledge_ids": [known.id]})).ok();
    }

    /// Binds the desk's number.
    pub fn bind(&self, assistant_id: &str, provider: &str) {
        let body = json!({"assistant_id": assistant_id, "provider": provider});
        self.world.put(format!("/numbers/{}", self.number), body).ok();
    }

    /// Orders a call to this number; returns the response.
    pub fn order(&self, to: &str) -> Reply {
        self.world.post("/calls/outbound", self.order_body(to))
    }

    /// The body of an order.
    pub fn order_body(&self, to: &str) -> Value {
        json!({"assistant_id": self.assistant.id, "to": to, "from": self.number, "user_number": to})
    }

    /// Places a call that the carrier accepts; returns the call's id, and the phone that will ring.
    pub fn place(&self) -> (String, Person) {
        let to = a_number("7777");
        let call = self.order(&to).created().json;
        let phone = self.carrier.rings(&to);
        assert_eq!(call["carrier_call_id"], phone.id(), "{call}");
        (call["id"].as_str().expect("an id").to_owned(), Person::new(phone))
    }

    /// The same, answered.
    pub fn connected(&self) -> (String, Person) {
        let (id, mut person) = self.place();
        person.ring();
        person.answer();
        (id, person)
    }

    /// An incoming call to the desk's number.
    pub fn is_called(&self) -> Person {
        Person::new(self.carrier.call(&a_number("1234"), &self.number))
    }

    /// Reads a call.
    pub fn call(&self, id: &str) -> Value {
        self.world.get(format!("/calls/{id}")).ok().json
    }

    /// All calls of the workspace.
    pub fn calls(&self) -> Vec<Value> {
        self.world.get("/calls").ok().json["calls"].as_array().expect("a list").clone()
    }

    /// The only call.
    #[track_caller]
    pub fn only_call(&self) -> Value {
        let calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls[0].clone()
    }

    /// Waits until a call satisfies `wanted`, and returns it.
    #[track_caller]
    pub fn until(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let call = self.call(id);
            if wanted(&call) {
                return call;
            }
            let late = started.elapsed() > Duration::from_millis(TIMEOUT_MS);
            assert!(!late, "{}: the call is not {what}: {call}", self.provider);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the call has this status.
    #[track_caller]
    pub fn once(&self, id: &str, status: &str) -> Value {
        self.until(id, status, |call| call["status"] == status)
    }

    /// Waits until the call has ended, has an analysis, and each of its three events was delivered once.
    #[track_caller]
    pub fn over(&self, id: &str) -> Value {
        let call = self.world.settled_call(id);
        assert_eq!(call["status"], "ended", "{call}");
        assert_eq!(self.events(id), ["call.started", "call.ended", "call.analyzed"]);
        self.world.expect_replay(&call);
        call
    }

    /// The types of the call's events, in the order of creation, after all three have arrived and a moment has
    /// passed for unexpected ones.
    #[track_caller]
    pub fn events(&self, id: &str) -> Vec<String> {
        let started = Instant::now();
        while self.told(id).len() < 3 {
            let late = started.elapsed() > Duration::from_millis(TIMEOUT_MS);
            assert!(!late, "{}: only {:?} were delivered", self.provider, self.told(id));
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(MOMENT_MS));
        self.told(id)
    }

    fn told(&self, id: &str) -> Vec<String> {
        let bodies = self.webhook.received().into_iter();
        let bodies = bodies.map(|received| serde_json::from_slice::<Value>(&received.body).expect("JSON"));
        // Whether there is a recording depends on how long the call lasted; it has tests of its own.
        let bodies = bodies.filter(|body| body["type"] != "recording.ready");
        let mut about: Vec<Value> = bodies.filter(|body| body["data"]["call"]["id"] == id).collect();
        // Events may arrive out of order; their ids are ascending.
        about.sort_by_key(|body| body["id"].as_str().expect("an id").to_owned());
        about.iter().map(|body| body["type"].as_str().expect("a kind").to_owned()).collect()
    }

    /// Checks these fields of a call.
    #[track_caller]
    pub fn expect(&self, call: &Value, fields: &Value) {
        for (name, value) in fields.as_object().expect("fields") {
            assert_eq!(&call[name], value, "{}: {name} of {call}", self.provider);
        }
    }

    /// The number of orders to call this number.
    pub fn orders(&self, to: &str) -> usize {
        self.carrier.orders(to).len()
    }
}

/// A unique number whose last digits select the carrier's behaviour
/// ([`sidetone_tests::fakes::carrier::BEHAVIOURS`]).
pub fn a_number(ending: &str) -> String {
    static NUMBERS: AtomicU32 = AtomicU32::new(100_000);
    // Each process has its own range, because the service may remember earlier numbers.
    format!("+44{}{ending}", NUMBERS.fetch_add(1, Ordering::Relaxed))
}

/// A person on the phone. Speaks and understands `builtin/tone`.
pub struct Person {
    phone: Phone,
    ear: Option<ToneDecoder>,
    /// The number of samples heard so far.
    listened: usize,
    understood: VecDeque<ToneHeard>,
}

impl Deref for Person {
    type Target = Phone;

    fn deref(&self) -> &Phone {
        &self.phone
    }
}

impl DerefMut for Person {
    fn deref_mut(&mut self) -> &mut Phone {
        &mut self.phone
    }
}

impl Person {
    pub fn new(phone: Phone) -> Self {
        Self { phone, ear: None, listened: 0, understood: VecDeque::new() }
    }

    /// Speaks and listens at this multiple of real time. Call this before the call is answered.
    pub fn at_pace(self, pace: f64) -> Self {
        Self::new(self.phone.at_pace(pace))
    }

    /// The sample rate of the line.
    pub fn rate(&self) -> Rate {
        match self.rate_hz() {
            8_000 => Rate::Khz8,
            16_000 => Rate::Khz16,
            24_000 => Rate::Khz24,
            other => panic!("unsupported sample rate {other}"),
        }
    }

    /// Speaks a text.
    pub fn says(&self, text: &str) {
        self.say(&ToneEncoder::speak(text, self.rate()));
    }

    /// Listens until the end of an utterance; returns its text.
    #[track_caller]
    pub fn hears(&mut self) -> String {
        self.next("words", |heard| match heard {
            ToneHeard::Said { text, .. } => Some(text.clone()),
            _ => None,
        })
    }

    /// The same on a line that has begun again.
    #[track_caller]
    pub fn hears_anew(&mut self) -> String {
        (self.ear, self.listened) = (None, 0);
        self.understood.clear();
        self.hears()
    }

    /// Listens until the assistant starts to speak.
    #[track_caller]
    pub fn hears_somebody(&mut self) {
        self.next("somebody", |heard| matches!(heard, ToneHeard::Began).then_some(()));
    }

    #[track_caller]
    fn next<T>(&mut self, what: &str, wanted: impl Fn(&ToneHeard) -> Option<T>) -> T {
        let rate = self.rate();
        let ear = self.ear.get_or_insert_with(|| ToneDecoder::new(rate));
        let (listened, understood) = (&mut self.listened, &mut self.understood);
        self.phone.hear_until(what, |played| {
            understood.extend(ear.hear(&played[*listened..]));
            *listened = played.len();
            std::iter::from_fn(|| understood.pop_front()).find_map(|heard| wanted(&heard))
        })
    }
}

/// Role and text of each row of the transcript.
pub fn lines(call: &Value) -> Vec<(&str, &str)> {
    let rows = call["transcript"].as_array().expect("rows").iter();
    rows.map(|row| (row["role"].as_str().expect("a role"), row["text"].as_str().unwrap_or_default()))
        .collect()
}

/// The texts of one role in the transcript.
pub fn texts<'a>(call: &'a Value, role: &str) -> Vec<&'a str> {
    lines(call).into_iter().filter(|(of, _)| *of == role).map(|(_, text)| text).collect()
}
