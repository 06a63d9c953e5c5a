//! The binary is killed (SIGKILL) while it greets a caller at each of the four carriers: the log says how much of the
//! greeting was heard, and how long the call lasted. Stopped (SIGTERM), it hangs up. It asks for no
//! transfer twice, and hangs up none.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::tone::ToneEncoder;
use sidetone_tests::fakes::carrier::{Answerer, Behaviour, Carriers, EndKind, Instruction, PROVIDERS, Phone};
use sidetone_tests::process::{Folder, Server, bootstrap_key};

const MESSAGE: &str = "This is the desk. Please call us back as soon as you can. We have a great many things to tell you about \
                       your order and about our opening hours in the summer, and somebody is here until late in the \
                       evening.";
/// Longer than a line is spoken before it is stored how much of it was heard.
const LISTENED: Duration = Duration::from_secs(16);
const TIMEOUT: Duration = Duration::from_secs(30);
/// The carriers serve one service at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A service with an account at each carrier's fake.
struct Service {
    folder: Folder,
    settings: Vec<(&'static str, String)>,
    key: String,
}

impl Service {
    fn new() -> Self {
        let key = bootstrap_key(11);
        let mut settings = Carriers::shared().settings();
        settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
        settings.push(("SIDETONE_LATE_PERCENT", "100".to_owned()));
        Self { folder: Folder::new(), settings, key }
    }

    fn start(&self) -> Server {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let server = Server::start(&self.folder.path().join("data"), &settings);
        Carriers::shared().serve(server.address());
        server
    }

    /// Calls somebody at each carrier, who answers.
    fn greets(&self, server: &Server, greeting: &str) -> Vec<Phone> {
        let assistant = json!({"name": "Desk", "instructions": "Be kind.", "first_message": greeting,
                               "model": "builtin/rules", "voice": "builtin/tone", "transfers": [
                               {"name": "Sales", "number": "+4930123456", "when": "They want to buy."}],
                               "voicemail": {"action": "leave_message", "message": MESSAGE}});
        let mut client = server.connect(&self.key);
        let assistant = client.expect(201, "POST", "/assistants", Some(&assistant))["id"].clone();
        let call = |(provider, nth): (&&str, i32)| {
            let (from, to) = (format!("+4420000{nth}0000"), format!("+4420000{nth}7777"));
            let binding = json!({"assistant_id": assistant, "provider": provider});
            client.send("PUT", &format!("/numbers/{from}"), &[], Some(&binding)).expect("an answer");
            let order = json!({"assistant_id": assistant, "to": to, "from": from});
            client.expect(201, "POST", "/calls/outbound", Some(&order));
            let mut phone = Carriers::shared().get(provider).rings(&to);
            phone.ring();
            phone.answer();
            phone
        };
        PROVIDERS.iter().zip(0..).map(call).collect()
    }

    /// The call of each carrier, once all have ended.
    fn ended_calls(&self, server: &Server) -> Vec<Value> {
        let mut client = server.connect(&self.key);
        let deadline = Instant::now() + TIMEOUT;
        let calls = loop {
            let calls = client.expect(200, "GET", "/calls", None)["calls"].clone();
            let calls: Vec<Value> = calls.as_array().expect("a list").clone();
            if calls.iter().all(|call| call["status"] == "ended") {
                break calls;
            }
            assert!(Instant::now() < deadline, "{calls:#?}");
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(calls.len(), PROVIDERS.len());
        let mut whole = |call: &Value| {
            let id = call["id"].as_str().expect("an id");
            client.expect(200, "GET", &format!("/calls/{id}"), None)
        };
        calls.iter().map(&mut whole).collect()
    }

    /// Everybody asks for Sales, and their carriers answer transfers like this. Returns once all were asked.
    fn transfers(&self, server: &Server, behaviour: Behaviour) -> Vec<Phone> {
        let mut phones = self.greets(server, "");
        for phone in &mut phones {
            phone.transfers_are(behaviour);
            let rate = if phone.rate_hz() == 16_000 { Rate::Khz16 } else { Rate::Khz8 };
            phone.say(&ToneEncoder::speak("Please transfer me to Sales.", rate));
        }
        for phone in &mut phones {
            phone.is_transferred();
        }
        phones
    }
}

/// A line outlives its socket: nobody else would hang up before the next start.
#[test]
fn who_is_talking_as_the_service_stops_is_hung_up() {
    let _alone = ALONE.lock();
    let service = Service::new();
    let server = service.start();
    let phones = service.greets(&server, &"We have a great many things to tell you. ".repeat(12));
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.stop().success(), "the server stops cleanly");
    for phone in phones {
        phone.was_commanded_to_end();
    }
}

/// Whether the carrier has transferred the call, nobody knows: nobody asks again, and nobody hangs up.
#[test]
fn a_kill_while_the_carrier_is_asked_to_transfer_makes_no_second_transfer() {
    let _alone = ALONE.lock();
    let service = Service::new();
    let server = service.start();
    let phones = service.transfers(&server, Behaviour::Hang);
    server.kill();
    let server = service.start();
    for call in service.ended_calls(&server) {
        assert_eq!(
            (&call["ended_reason"], &call["fault"]),
            (&json!("aborted"), &json!("platform")),
            "{call:#}"
        );
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(phones.iter().all(|phone| phone.transfers() == 1 && !phone.is_commanded_to_end()));
}

#[test]
fn a_kill_after_a_transfer_leaves_the_line_alone() {
    let _alone = ALONE.lock();
    let service = Service::new();
    let server = service.start();
    let mut phones = service.transfers(&server, Behaviour::Take);
    server.kill();
    let server = service.start();
    phones.iter_mut().for_each(Phone::other_answers);
    for call in service.ended_calls(&server) {
        // The last one may have been killed between the answer and its storage.
        assert!(
            ["transferred", "aborted"].contains(&call["ended_reason"].as_str().unwrap_or_default()),
            "{call:#}"
        );
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(phones.iter().all(|phone| phone.transfers() == 1 && !phone.is_commanded_to_end()));
}

/// Nobody is left to talk with whoever was not taken: the call ends, and its log says so.
#[test]
fn a_kill_while_the_other_telephone_rings_ends_the_call_truthfully() {
    let _alone = ALONE.lock();
    let service = Service::new();
    let server = service.start();
    let mut phones = service.transfers(&server, Behaviour::Take);
    // The answer is stored.
    std::thread::sleep(Duration::from_secs(1));
    server.kill();
    let server = service.start();
    for phone in &mut phones {
        assert_eq!(phone.other_ends(EndKind::Busy, false), Instruction::HangUp);
    }
    for call in service.ended_calls(&server) {
        assert_eq!(
            (&call["ended_reason"], &call["fault"]),
            (&json!("aborted"), &json!("platform")),
            "{call:#}"
        );
    }
    assert!(phones.iter().all(|phone| phone.transfers() == 1));
}

#[test]
fn a_stop_leaves_transferred_lines_alone() {
    for behaviour in [Behaviour::Take, Behaviour::Hang] {
        let _alone = ALONE.lock();
        let service = Service::new();
        let server = service.start();
        let phones = service.transfers(&server, behaviour);
        server.stop();
        assert!(phones.iter().all(|phone| phone.transfers() == 1 && !phone.is_commanded_to_end()));
    }
}

/// Some machines are known and their greetings are not over; at Twilio, the message may have begun.
#[test]
fn a_kill_between_a_detection_and_the_message_leaves_a_true_record() {
    let _alone = ALONE.lock();
    let service = Service::new();
    let server = service.start();
    let mut phones = service.greets(&server, "");
    // Last the one whose message begins: it is not to be over when the process dies.
    let is_twilio = |phone: &Phone| phone.call().carrier_call_id.starts_with("CA");
    phones.sort_by_key(is_twilio);
    for phone in &mut phones {
        phone.detects(if is_twilio(phone) { Answerer::GreetedMachine } else { Answerer::Machine });
    }
    server.kill();
    let server = service.start();
    for call in service.ended_calls(&server) {
        let found = ["outcome", "ended_reason", "fault"].map(|name| call[name].clone());
        assert_eq!(found, ["voicemail", "aborted", "platform"], "{call:#}");
        for row in call["transcript"].as_array().expect("rows") {
            let is_whole = row["role"] == "assistant" && row["text"] == MESSAGE;
            assert!(!is_whole, "nobody has heard all of it: {call:#}");
        }
    }
    for phone in phones {
        phone.was_commanded_to_end();
    }
}

#[test]
fn a_kill_in_the_greeting_leaves_a_line_cut_where_it_was_heard() {
    let _alone = ALONE.lock();
    let service = Service::new();
    let server = service.start();
    let greeting = "We have a great many things to tell you about our opening hours. ".repeat(30);
    let greeting = greeting.trim();
    let phones = service.greets(&server, greeting);
    std::thread::sleep(LISTENED);
    server.kill();
    drop(phones);
    let server = service.start();
    for call in service.ended_calls(&server) {
        let row = &call["transcript"][0];
        assert_eq!(call["ended_reason"], "aborted", "{call:#}");
        assert_eq!(
            (&row["interrupted"], &row["intended_text"]),
            (&json!(true), &json!(greeting)),
            "{call:#}"
        );
        let heard = row["text"].as_str().expect("a text");
        assert!(greeting.starts_with(heard), "{heard:?}");
        assert!(!heard.is_empty() && heard.len() < greeting.len() / 2, "{heard:?}");
        assert!(call["duration_ms"].as_i64().expect("a duration") >= 6_000, "{call:#}");
    }
    assert!(server.stop().success(), "the server stops cleanly");
}
