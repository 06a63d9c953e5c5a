//! What a minute of a call costs in round trips to storage, and how soon a call notices what happens elsewhere.
//! `cargo test --workspace --test phone_clock call_minute -- --nocapture` prints the round trips.
use std::collections::VecDeque;
use std::sync::Arc;

use sidetone::sandbox::MemoryBlobs;
use sidetone_engine::ports::Blobs;
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::tone::ToneEncoder;
use sidetone_tests::counted::{Counted, Trips};
use sidetone_tests::fakes::carrier::MediaWire;

use super::recordings::Metered;
use super::*;

const FRAME_MS: i64 = 20;
/// How often the caller asks something.
const TURN_MS: i64 = 8_000;
const TURNS: usize = 15;
/// What callers ask, one after the other, and what the assistant answers, each for three to four seconds.
const QUESTIONS: [&str; 3] =
    ["When do you open on Saturday?", "When do you open on Sunday?", "Where can I park my car?"];
const ANSWERS: &str = "On Saturday we open at ten in the morning, and we close again at four in the afternoon, so that \
     everybody finds some time to come and see us.\n\nOn Sunday we are closed, but whoever has a question can write to us \
     at any time, and we answer on Monday before we open the doors.\n\nYou can park your car behind the house for two hours \
     without paying anything, and after that in front of the station.";
/// Two minutes of such turns took 83 round trips where requests count, when each change of a row was written at once, and
/// segments of the recording were counted apart.
const TRIPS_MAX: usize = 16;

/// A caller who listens in real time: marks come back when the audio before them is over.
struct Caller<'a> {
    desk: &'a Desk,
    socket: SandboxSocket<'a>,
    media: Box<dyn MediaWire>,
    call: PhoneCall,
    now_ms: i64,
    /// When everything that has arrived will have been played.
    played_ms: i64,
    marks: VecDeque<(i64, String)>,
}

impl<'a> Caller<'a> {
    fn connected(desk: &'a Desk) -> Self {
        let hours = json!({"name": "Hours", "content": ANSWERS});
        let hours = desk.sandbox.post("/knowledge", hours)["id"].clone();
        let path = format!("/assistants/{}/knowledge", desk.assistant);
        assert_eq!(desk.sandbox.put(&path, json!({"knowledge_ids": [hours]})).status, 200);
        let call = desk.place();
        let socket = desk.socket(&call);
        desk.tell(&call, &CallEvent::Answered);
        begin(&socket, &call);
        let media = TelnyxWire.media(&call);
        Self { desk, socket, media, call, now_ms: 0, played_ms: 0, marks: VecDeque::new() }
    }

    fn rate(&self) -> Rate {
        if self.media.rate_hz() == 16_000 { Rate::Khz16 } else { Rate::Khz8 }
    }

    /// Says this, and then listens, for `ms` in all.
    fn say(&mut self, text: &str, ms: i64) {
        let samples = ToneEncoder::speak(text, self.rate());
        let mut frames = samples.chunks(self.rate().frame_samples());
        let silence = vec![0; self.rate().frame_samples()];
        for _ in 0..ms / FRAME_MS {
            self.desk.wait(FRAME_MS);
            self.now_ms += FRAME_MS;
            let WireMessage::Text(text) = self.media.audio(frames.next().unwrap_or(&silence)) else {
                panic!("a binary message")
            };
            self.socket.send(text);
            self.listen();
        }
        assert_eq!(frames.len(), 0, "{text} takes longer");
    }

    fn listen(&mut self) {
        for message in self.socket.received() {
            match message["event"].as_str() {
                Some("media") => self.played_ms = self.played_ms.max(self.now_ms) + FRAME_MS,
                Some("mark") => {
                    let name = message["mark"]["name"].as_str().unwrap().to_owned();
                    self.marks.push_back((self.played_ms, name));
                }
                Some("clear") => self.played_ms = self.now_ms,
                _ => {}
            }
        }
        while let Some((_, name)) = self.marks.pop_front_if(|(at_ms, _)| *at_ms <= self.now_ms) {
            self.socket.send(json!({"event": "mark", "mark": {"name": name}}).to_string());
        }
    }
}

#[test]
fn two_minutes_take_one_round_trip_for_each_exchange() {
    let hosts: [(&str, Arc<dyn Blobs>); 2] = [
        ("where requests count", Arc::new(Metered::default())),
        ("on a box", Arc::new(MemoryBlobs::default())),
    ];
    for (place, blobs) in hosts {
        let database = Arc::new(Counted::default());
        let desk = Desk::over(database.clone(), blobs);
        let mut caller = Caller::connected(&desk);
        caller.say("", 4_000);
        database.take();
        for question in QUESTIONS.iter().cycle().take(TURNS) {
            caller.say(question, TURN_MS);
        }
        let Trips { reads, writes } = database.take();
        let call = desk.call();
        let path = format!("/calls/{}", call["id"].as_str().unwrap());
        let rows = desk.sandbox.get(&path)["transcript"].as_array().unwrap().len();
        assert!(rows >= 2 * TURNS, "the caller was answered: {rows} rows");
        println!("two minutes with {TURNS} questions, {place}: {reads} reads, {writes} writes");
        assert!(reads + writes <= TRIPS_MAX, "{place}: {reads} reads, {writes} writes in two minutes");
    }
}

#[test]
fn a_quiet_call_is_written_every_ten_seconds() {
    let database = Arc::new(Counted::default());
    let desk = Desk::over(database.clone(), Arc::new(Metered::default()));
    desk.sandbox.patch(&format!("/assistants/{}", desk.assistant), json!({"first_message": ""}));
    let mut caller = Caller::connected(&desk);
    caller.say("", 4_000);
    database.take();
    caller.say("", 10_000);
    assert_eq!(database.take(), Trips { reads: 0, writes: 1 });
}

/// The signal is a wake-up: what has happened is in storage.
#[test]
fn a_hang_up_by_request_is_noticed_within_a_second() {
    let desk = Desk::new();
    let mut caller = Caller::connected(&desk);
    caller.say("", 4_000);
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.answer_http(200, "{}");
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 200);
    caller.say("", 1_000);
    desk.expect(&json!({"status": "ended", "ended_reason": "hung_up_by_request"}));
    assert!(caller.socket.closed().is_some());
}

#[test]
fn an_end_that_the_carrier_reports_is_noticed_within_a_second() {
    let desk = Desk::new();
    let mut caller = Caller::connected(&desk);
    caller.say("", 4_000);
    desk.tell(&caller.call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 4 });
    caller.say("", 1_000);
    desk.expect(&json!({"status": "ended", "ended_reason": "user_hung_up"}));
}

/// A signal may be lost, for example because the isolate that sends it is ended.
#[test]
fn an_end_without_a_signal_is_noticed_with_the_next_write() {
    let desk = Desk::new();
    let mut caller = Caller::connected(&desk);
    caller.say("", 4_000);
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    let ordered = sidetone_engine::sql!(
        "UPDATE phone_calls SET hang_up_at = 1, version = version + 1 WHERE call_id = :call",
        call = &id
    );
    block_on(desk.sandbox.services().ports().database.write(vec![ordered])).unwrap();
    caller.say("", 5_000);
    desk.expect(&json!({"status": "in_progress"}));
    caller.say("", 6_000);
    desk.expect(&json!({"status": "ended", "ended_reason": "hung_up_by_request"}));
}

/// Who reads a call makes the conversation write what it has not written yet.
#[test]
fn a_call_that_is_read_tells_what_was_heard_a_moment_ago() {
    let desk = Desk::new();
    let greeting = "In the first room you find many wonderful things to look at and to buy.";
    desk.sandbox.patch(&format!("/assistants/{}", desk.assistant), json!({"first_message": greeting}));
    let mut caller = Caller::connected(&desk);
    let path = format!("/calls/{}", desk.call()["id"].as_str().unwrap());
    caller.say("", 1_500);
    let row = |when: &str| {
        let row = desk.sandbox.get(&path)["transcript"][0].clone();
        assert_eq!(row["in_progress"], true, "{when}: {row}");
        assert!(greeting.starts_with(row["text"].as_str().unwrap()), "{when}: {row}");
        row["text"].as_str().unwrap().len()
    };
    let begun = row("as it was stored when it began");
    caller.say("", 600);
    assert!(row("as it was when somebody asked") > begun + 20);
}
