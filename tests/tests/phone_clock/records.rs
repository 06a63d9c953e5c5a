//! What the log says about a call that ends in the middle of the assistant's line, and when it says that it ended.
use super::*;

const STEP_MS: i64 = 100;
/// A frame of audio.
const FRAME_MS: i64 = 20;

/// A person who listens to a greeting of some twenty seconds; the carrier confirms what was played.
struct Listening<'a> {
    desk: &'a Desk,
    call: PhoneCall,
    socket: Option<SandboxSocket<'a>>,
    greeting: String,
    /// How long the person has listened.
    listened_ms: i64,
    sent_ms: i64,
    /// Outstanding marks, with the audio before each.
    marks: Vec<(String, i64)>,
}

impl<'a> Listening<'a> {
    fn to(desk: &'a Desk) -> Self {
        let rooms = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
        let sentence =
            |room| format!("In the {room} room you find many wonderful things to look at and to buy.");
        let greeting = rooms.map(sentence).join(" ");
        desk.sandbox.patch(&format!("/assistants/{}", desk.assistant), json!({"first_message": greeting}));
        let call = desk.place();
        let socket = desk.socket(&call);
        desk.tell(&call, &CallEvent::Answered);
        begin(&socket, &call);
        let mut this = Self {
            desk,
            call,
            socket: Some(socket),
            greeting,
            listened_ms: 0,
            sent_ms: 0,
            marks: Vec::new(),
        };
        this.play();
        this
    }

    /// Listens for a while.
    fn listen(&mut self, ms: i64) {
        for _ in 0..ms / STEP_MS {
            self.desk.wait(STEP_MS);
            self.listened_ms += STEP_MS;
            self.play();
        }
    }

    /// Takes what the service sent, and returns the marks of what was played.
    fn play(&mut self) {
        let Some(socket) = &self.socket else { return };
        for message in socket.received() {
            match message["event"].as_str() {
                Some("media") => self.sent_ms += FRAME_MS,
                Some("mark") => {
                    self.marks.push((message["mark"]["name"].as_str().unwrap().to_owned(), self.sent_ms));
                }
                _ => {}
            }
        }
        self.marks.retain(|(name, sent_ms)| {
            let is_played = *sent_ms <= self.listened_ms;
            if is_played {
                socket.send(json!({"event": "mark", "mark": {"name": name}}).to_string());
            }
            !is_played
        });
    }

    /// Expects that the call lasted from `from_ms` to `until_ms`, and that its line was cut accordingly.
    #[track_caller]
    fn expect_cut(&self, reason: &str, from_ms: i64, until_ms: i64) {
        self.desk.expect(&json!({"status": "ended", "ended_reason": reason}));
        let call = self.desk.call();
        let id = call["id"].as_str().unwrap();
        let call = self.desk.sandbox.get(&format!("/calls/{id}")).json;
        let row = &call["transcript"][0];
        assert_eq!(
            (&row["interrupted"], &row["intended_text"]),
            (&json!(true), &json!(self.greeting)),
            "{call}"
        );
        let heard = row["text"].as_str().unwrap();
        assert!(self.greeting.starts_with(heard), "{heard:?}");
        // About 25 ms a letter, and the last word was not heard to its end.
        let letters_ms = i64::try_from(heard.len()).unwrap() * 26;
        assert!((from_ms - 600..until_ms + 300).contains(&letters_ms), "{letters_ms} ms: {heard:?}");
        assert_eq!(row["start_ms"], 0);
        for lasted in [&row["end_ms"], &call["duration_ms"]] {
            assert!((from_ms..=until_ms).contains(&lasted.as_i64().unwrap()), "{lasted} of {call}");
        }
    }
}

#[test]
fn a_line_is_cut_when_the_connection_breaks() {
    let desk = Desk::new();
    let mut person = Listening::to(&desk);
    person.listen(3_000);
    drop(person.socket.take());
    person.expect_cut("media_lost", 3_000, 3_000);
}

#[test]
fn a_line_is_cut_when_the_stream_stops_and_when_the_host_does() {
    for (message, reason) in [(Some(json!({"event": "stop", "stop": {}})), "user_hung_up"), (None, "aborted")]
    {
        let desk = Desk::new();
        let mut person = Listening::to(&desk);
        person.listen(4_000);
        let socket = person.socket.as_ref().unwrap();
        match message {
            Some(message) => socket.send(message.to_string()),
            None => socket.stop_host(),
        }
        person.expect_cut(reason, 4_000, 4_000);
    }
}

/// The socket stays open, and the conversation finds the carrier's report at its next look.
#[test]
fn a_call_ended_when_the_carrier_said_so_not_at_the_next_look() {
    let desk = Desk::new();
    let mut person = Listening::to(&desk);
    person.listen(3_300);
    desk.tell(&person.call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 4 });
    // Nothing is played any more.
    person.marks.clear();
    desk.wait(1_000);
    desk.wait(5_000);
    person.expect_cut("user_hung_up", 3_300, 3_300);
}

#[test]
fn a_requested_hang_up_cuts_the_line() {
    let desk = Desk::new();
    let mut person = Listening::to(&desk);
    person.listen(4_300);
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.answer_http(200, "{}");
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 200);
    desk.wait(5_000);
    person.expect_cut("hung_up_by_request", 4_300, 4_300);
}

/// The journal has what was heard of the line until shortly before the process died.
#[test]
fn a_killed_process_leaves_a_line_cut_where_it_was_heard() {
    for killed_ms in [1_000, 6_200, 12_900] {
        let desk = Desk::new();
        let mut person = Listening::to(&desk);
        person.listen(killed_ms);
        desk.sandbox.kill_conversations();
        desk.wait(600_000);
        desk.sandbox.answer_http(200, "{}");
        desk.sandbox.run_jobs();
        // How much of a line was heard is stored every ten seconds.
        let stored_ms = if killed_ms < 10_000 { 0 } else { 10_000 };
        person.expect_cut("aborted", stored_ms, killed_ms);
    }
}

/// A line that was heard to its end is not cut by what comes later.
#[test]
fn a_line_that_was_heard_stays_whole() {
    let desk = Desk::new();
    let mut person = Listening::to(&desk);
    person.listen(45_000);
    drop(person.socket.take());
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    let row = desk.sandbox.get(&format!("/calls/{id}")).json["transcript"][0].clone();
    assert_eq!((&row["text"], &row["interrupted"]), (&json!(person.greeting), &json!(false)));
    assert!(row["end_ms"].as_i64().unwrap() > 5_000, "{row}");
}
