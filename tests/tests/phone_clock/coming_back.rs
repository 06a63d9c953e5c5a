//! A call that rings elsewhere, at a carrier that says what comes of it: how long the assistant waits, what that costs, and what
//! becomes of the call if its process dies meanwhile.
use std::cell::RefCell;

use sidetone_engine::base::limits::{PHONE_TRANSFER_BACK_MS, PHONE_TRANSFER_MS_MAX, PHONE_TRANSFER_RING_MS};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::tone::ToneEncoder;
use sidetone_tests::fakes::carrier::twilio::TwilioWire;
use sidetone_tests::fakes::carrier::{Instruction, MediaWire, Told};

use super::*;

const MINUTE_MICROUSD: i64 = 10_000;
/// What a call reserves that may last for an hour.
const CALL_MICROUSD: i64 = 60 * MINUTE_MICROUSD;
/// What two hours of both lines reserve, ours while the other rings, and the first minute of the call.
const RINGING_MICROUSD: i64 = 243 * MINUTE_MICROUSD;
/// The samples of 20 ms.
const FRAME: usize = 160;
const OTHER: &str = "CA99999999999999999999999999999999";

/// An incoming call at Twilio, which asks for Sales.
struct Caller {
    sandbox: Sandbox,
    call: PhoneCall,
    told: RefCell<Option<Told>>,
    now_ms: Cell<i64>,
    sent: Cell<u32>,
}

impl Caller {
    fn new() -> Self {
        let mut settings = TwilioWire.settings("http://twilio.example");
        settings.push(("SIDETONE_CARRIER_RATES", r#"{"twilio": 10000}"#.to_owned()));
        let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, &**value)).collect();
        let sandbox = Sandbox::with_settings(&settings);
        let assistant = json!({"name": "Desk", "instructions": "Be kind.", "first_message": "", "voice": "builtin/tone",
                               "transfers": [{"name": "Sales", "number": "+4930123456"}]});
        let assistant = sandbox.post("/assistants", assistant).json["id"].clone();
        sandbox.put(&format!("/numbers/{OURS}"), json!({"assistant_id": assistant, "provider": "twilio"}));
        let limit = json!({"monthly_spend_limit_microusd": 5_000_000});
        assert_eq!(sandbox.patch("/workspace", limit).status, 200);
        let url = |path: &str| format!("{BASE_URL}/carriers/twilio/{path}");
        let call = PhoneCall {
            carrier_call_id: "CA11111111111111111111111111111111".to_owned(),
            voice_url: url("voice"),
            status_url: url("status"),
            ..phone_call(false, &json!({"webhook_url": "", "stream_url": ""}))
        };
        Self { sandbox, call, told: RefCell::default(), now_ms: Cell::new(0), sent: Cell::new(0) }
    }

    fn wait(&self, ms: i64) {
        for _ in 0..ms / 100 {
            self.now_ms.set(self.now_ms.get() + 100);
            self.sandbox.advance(100);
        }
    }

    /// Tells the service of an event; what it instructs then.
    fn tell(&self, event: &CallEvent) -> Instruction {
        let now_s = START_S + self.now_ms.get() / 1_000;
        let nth = self.sent.replace(self.sent.get() + 1);
        let reply = tell(&self.sandbox, &TwilioWire, &self.call, event, nth, now_s);
        TwilioWire.instruction(reply.status, "text/xml", &reply.body).unwrap()
    }

    /// Opens the media socket of an instruction, and begins.
    fn connects(&self, instruction: &Instruction) -> (SandboxSocket<'_>, Box<dyn MediaWire>) {
        let Instruction::Connect { media_url, .. } = instruction else { panic!("{instruction:?}") };
        let (_, path) = media_url.split_once("sandbox.example").unwrap();
        let socket = self.sandbox.connect_with(path, &TwilioWire.socket_headers(media_url));
        let socket = socket.unwrap_or_else(|reply| panic!("{}", reply.json));
        let mut media = TwilioWire.media(&self.call);
        media.opening().into_iter().for_each(|message| send(&socket, message));
        (socket, media)
    }

    /// Calls, asks for Sales, and hears them ring.
    fn asks(&self) {
        let answer = self.tell(&CallEvent::Incoming);
        self.says_on(&answer, "Please transfer me to Sales.");
    }

    fn says_on(&self, instruction: &Instruction, text: &str) {
        let (socket, mut media) = self.connects(instruction);
        self.sandbox
            .answer_http_with(|_| Ok(HttpReply { status: 200, headers: Vec::new(), body: "{}".into() }));
        self.wait(500);
        let mut samples = ToneEncoder::speak(text, Rate::Khz8);
        samples.resize(samples.len().next_multiple_of(FRAME), 0);
        for frame in samples.chunks(5 * FRAME) {
            frame.chunks(FRAME).for_each(|frame| send(&socket, media.audio(frame)));
            self.wait(100);
        }
        let transfer = (0..100).find_map(|_| {
            self.wait(100);
            self.sandbox.sent_http().into_iter().find(|request| request.body.starts_with(b"Twiml="))
        });
        let body = transfer.expect("a transfer").body;
        let (_, twiml) = form_urlencoded::parse(&body).next().unwrap();
        let dial = TwilioWire.instruction(200, "text/xml", twiml.as_bytes()).unwrap();
        let Instruction::Dial { told, .. } = dial else { panic!("{dial:?}") };
        self.told.replace(told);
        // The carrier leaves the socket.
        media.closing().into_iter().for_each(|message| send(&socket, message));
        drop(socket);
        self.wait(1_000);
        self.expect(&json!({"status": "in_progress"}));
    }

    fn other_answers(&self) {
        let url = self.told.borrow().clone().unwrap().status_url;
        self.tell(&CallEvent::OtherAnswered { url, other_call_id: OTHER.to_owned() });
    }

    fn other_ends(&self, how: EndKind) -> Instruction {
        let url = self.told.borrow().clone().unwrap().back_url;
        self.tell(&CallEvent::OtherEnded { url, other_call_id: OTHER.to_owned(), how, is_over: false })
    }

    /// The process dies, and another one starts.
    fn process_dies(&self) {
        self.sandbox.kill_conversations();
        block_on(self.sandbox.services().release_all_leases()).unwrap();
        self.sandbox.run_jobs();
    }

    fn call(&self) -> Value {
        let id = self.sandbox.get("/calls").json["calls"][0]["id"].clone();
        self.sandbox.get(&format!("/calls/{}", id.as_str().unwrap())).json
    }

    #[track_caller]
    fn expect(&self, fields: &Value) {
        let call = self.call();
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&call[name], value, "{name} of {call}");
        }
    }

    fn reserved(&self) -> i64 {
        self.sandbox.get("/workspace").json["reserved_microusd"].as_i64().unwrap()
    }

    fn cost(&self) -> i64 {
        self.call()["costs"]["telephony_microusd"].as_i64().unwrap()
    }

    fn is_hung_up(&self) -> bool {
        self.sandbox.run_jobs();
        self.sandbox.sent_http().iter().any(|request| request.body == "Status=completed")
    }
}

fn send(socket: &SandboxSocket<'_>, message: WireMessage) {
    let WireMessage::Text(text) = message else { panic!("a binary message") };
    socket.send(text);
}

#[test]
fn a_call_of_which_nothing_is_reported_counts_as_taken() {
    let caller = Caller::new();
    caller.asks();
    caller.wait(PHONE_TRANSFER_RING_MS - 2_000);
    caller.expect(&json!({"status": "in_progress"}));
    caller.wait(3_000);
    caller.expect(&json!({"status": "ended", "ended_reason": "transferred", "fault": "none"}));
    assert!(!caller.is_hung_up());
    caller.sandbox.advance(PHONE_TRANSFER_MS_MAX);
    assert!(caller.is_hung_up(), "its line has a time");
}

#[test]
fn what_a_carrier_says_after_the_call_changes_only_the_line() {
    let caller = Caller::new();
    caller.asks();
    caller.wait(PHONE_TRANSFER_RING_MS + 1_000);
    let cost = caller.cost();
    // The answer ends the line.
    assert_eq!(caller.other_ends(EndKind::Busy), Instruction::HangUp);
    assert_eq!((caller.reserved(), caller.cost()), (0, cost), "a line that nobody took has no price");
    caller.other_answers();
    caller.expect(&json!({"status": "ended", "ended_reason": "transferred", "fault": "none"}));
    assert_eq!(caller.reserved(), 0);
    caller.sandbox.advance(PHONE_TRANSFER_MS_MAX);
    assert!(!caller.is_hung_up());
}

#[test]
fn who_comes_back_has_what_the_call_had_reserved() {
    let caller = Caller::new();
    let answer = caller.tell(&CallEvent::Incoming);
    assert_eq!(caller.reserved(), CALL_MICROUSD);
    caller.says_on(&answer, "Please transfer me to Sales.");
    assert_eq!(caller.reserved(), RINGING_MICROUSD);
    // Almost as long as it may ring: nobody is asked whether he is still there.
    caller.wait(58_000);
    let answer = caller.other_ends(EndKind::NoAnswer);
    assert_eq!(caller.reserved(), CALL_MICROUSD);
    caller.says_on(&answer, "Please transfer me to Sales.");
    assert!(caller.reserved() > RINGING_MICROUSD, "the call has lasted longer");
    let roles = |call: &Value| -> Vec<String> {
        let rows = call["transcript"].as_array().unwrap().iter();
        rows.map(|row| row["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(&caller.call()), ["user", "tool_call", "tool_result", "assistant", "user", "tool_call"]);
    // Somebody answers: from now on there are two lines.
    caller.wait(20_000);
    caller.other_answers();
    caller.wait(1_000);
    caller.sandbox.run_jobs();
    caller.expect(&json!({"status": "ended", "ended_reason": "transferred"}));
    caller.wait(60_000);
    // Three minutes by the carrier's clock, of which two have begun with both lines.
    caller.tell(&CallEvent::Ended { how: EndKind::HungUp, seconds: 145 });
    assert_eq!((caller.reserved(), caller.cost()), (0, 5 * MINUTE_MICROUSD));
}

/// The answer to the end of a dial ends our line, of which the carrier may report nothing more.
#[test]
fn a_line_ends_with_the_dial_that_it_waited_for() {
    let caller = Caller::new();
    caller.asks();
    caller.other_answers();
    caller.wait(60_000);
    caller.sandbox.run_jobs();
    caller.expect(&json!({"status": "ended", "ended_reason": "transferred"}));
    assert!(caller.reserved() > 0, "both lines are open");
    assert_eq!(caller.other_ends(EndKind::HungUp), Instruction::HangUp);
    let (reserved, cost) = (caller.reserved(), caller.cost());
    assert_eq!(reserved, 0);
    assert!(cost > 0);
    // The report that comes after all changes nothing but by what it says.
    assert_eq!(caller.other_ends(EndKind::HungUp), Instruction::HangUp);
    assert_eq!((caller.reserved(), caller.cost()), (reserved, cost));
}

#[test]
fn a_carrier_has_a_moment_to_connect_the_caller_again() {
    let caller = Caller::new();
    caller.asks();
    caller.other_ends(EndKind::Busy);
    caller.wait(PHONE_TRANSFER_BACK_MS - 2_000);
    caller.expect(&json!({"status": "in_progress"}));
    caller.wait(4_000);
    caller.expect(&json!({"status": "ended", "ended_reason": "media_lost", "fault": "carrier"}));
    assert!(caller.is_hung_up());
    assert_eq!((caller.reserved(), caller.cost()), (0, MINUTE_MICROUSD));
}

#[test]
fn after_the_death_of_its_process_a_call_rings_on() {
    for (is_taken, after_ms) in [(true, 0), (false, PHONE_TRANSFER_RING_MS)] {
        let caller = Caller::new();
        caller.asks();
        caller.process_dies();
        caller.expect(&json!({"status": "in_progress"}));
        if is_taken {
            caller.other_answers();
        }
        caller.wait(after_ms);
        caller.sandbox.run_jobs();
        caller.expect(&json!({"status": "ended", "ended_reason": "transferred", "fault": "none"}));
        assert!(!caller.is_hung_up());
    }
}

#[test]
fn nobody_comes_back_to_a_process_that_died() {
    let caller = Caller::new();
    caller.asks();
    caller.process_dies();
    assert_eq!(caller.other_ends(EndKind::Busy), Instruction::HangUp);
    caller.sandbox.run_jobs();
    caller.expect(&json!({"status": "ended", "ended_reason": "aborted", "fault": "platform"}));
    assert_eq!((caller.reserved(), caller.cost()), (0, MINUTE_MICROUSD));
    assert!(caller.is_hung_up());
}

/// Its lease has not expired yet: the carrier is told to connect the caller, and finds nobody.
#[test]
fn a_socket_that_nobody_waits_for_is_refused() {
    let caller = Caller::new();
    caller.asks();
    caller.sandbox.kill_conversations();
    let Instruction::Connect { media_url, .. } = caller.other_ends(EndKind::Busy) else { panic!("a socket") };
    let (_, path) = media_url.split_once("sandbox.example").unwrap();
    let refused = caller.sandbox.connect_with(path, &TwilioWire.socket_headers(&media_url));
    assert_eq!(refused.err().unwrap().status, 409);
    caller.wait(180_000);
    caller.sandbox.run_jobs();
    caller.expect(&json!({"status": "ended", "ended_reason": "aborted", "fault": "platform"}));
    assert!(caller.is_hung_up());
}

#[test]
fn who_hung_up_after_the_death_of_the_process_is_not_waited_for() {
    let caller = Caller::new();
    caller.asks();
    caller.process_dies();
    caller.tell(&CallEvent::Ended { how: EndKind::HungUp, seconds: 20 });
    caller.sandbox.run_jobs();
    caller.expect(&json!({"status": "ended", "ended_reason": "aborted", "fault": "platform"}));
    assert_eq!(caller.reserved(), 0);
    assert!(!caller.is_hung_up());
}
