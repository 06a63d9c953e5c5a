//! A session with a server that is played by the test.
use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::*;
use crate::base::limits::{REALTIME_PAUSES_MS_MAX, REALTIME_RESPONSE_MS, REALTIME_SESSION_MS};
use crate::base::setting::Secret;
use crate::conversation::ToolRequest;
use crate::models::asking::FailureCode;
use crate::ports::{Party, SocketMessage};
use crate::speech::exchange::{Arrival, ExchangeFailure, ExchangeId, Transmit};
use crate::speech::synthesizer::{Synthesizer as _, SynthesizerEvent};
use crate::speech::transcriber::{Transcriber as _, TranscriberEvent};

mod anticipated;
mod faults;
mod property;

/// A session, its faces, and what it sends.
struct Call {
    realtime: Realtime,
    ear: RealtimeEar,
    mouth: RealtimeMouth,
    now_ms: i64,
    socket: Option<ExchangeId>,
    connects: usize,
    sent: VecDeque<Value>,
    events: u64,
}

impl Call {
    fn new(rate: Rate) -> Self {
        let settings = RealtimeSettings {
            transcription: TranscriberSettings {
                party: Party::speech("test"),
                base_url: "https://api.example/v1".into(),
                api_key: Secret::new("key"),
                model: "scribe".into(),
                language: Some("en-US".into()),
                keyterms: vec![],
                turn_ends_ms: 3_000,
            },
            model: "talks".into(),
            voice: Some("marin".into()),
            speed: Some(3.0),
            prompt: "Be kind.".into(),
            tools: vec![ToolSpec {
                name: "hours".into(),
                description: "Opening hours.".into(),
                parameters: json!({}).into(),
            }],
            hangs_up: false,
            builtin: None,
            prices: ModelSettings {
                output_microusd_per_1m_tokens: Some(1_000_000),
                ..ModelSettings::default()
            },
        };
        let realtime = Realtime::new(&settings, rate);
        let (ear, mouth) = (RealtimeEar(realtime.clone()), RealtimeMouth(realtime.clone()));
        let mut call = Self {
            realtime,
            ear,
            mouth,
            now_ms: 0,
            socket: None,
            connects: 0,
            sent: VecDeque::new(),
            events: 0,
        };
        call.ear.hear(0, &[0; 160]);
        call
    }

    /// One that is open, and whose description was read.
    fn open() -> Self {
        let mut call = Self::new(Rate::Khz8);
        call.accept();
        assert_eq!(call.next()["type"], "session.update");
        call
    }

    fn take(&mut self) {
        while let Some(transmit) = self.ear.poll_transmit() {
            match transmit {
                Transmit::Connect { id, request } => {
                    assert_eq!(request.url, "wss://api.example/v1/realtime?model=talks");
                    (self.socket, self.connects) = (Some(id), self.connects + 1);
                    self.sent.clear();
                }
                Transmit::Send { message: SocketMessage::Text(text), .. } => {
                    self.sent.push_back(serde_json::from_str(&text).unwrap());
                }
                Transmit::Drop { id } if self.socket == Some(id) => self.socket = None,
                _ => {}
            }
        }
    }

    fn arrives(&mut self, arrival: Arrival) {
        self.take();
        let id = self.socket.expect("a socket");
        self.ear.arrived(self.now_ms, id, arrival);
        self.take();
    }

    fn accept(&mut self) {
        self.arrives(Arrival::Opened);
        self.says(json!({"type": "session.created", "session": {}}));
    }

    /// The server sends an event.
    fn says(&mut self, mut event: Value) {
        self.events += 1;
        event["event_id"] = format!("event_{}", self.events).into();
        self.repeats(&event);
    }

    fn repeats(&mut self, event: &Value) {
        self.arrives(Arrival::Message(SocketMessage::Text(event.to_string())));
    }

    /// The next message that was sent, other than audio.
    fn next(&mut self) -> Value {
        self.take();
        self.sent.retain(|message| message["type"] != "input_audio_buffer.append");
        self.sent.pop_front().unwrap_or_default()
    }

    fn kinds(&mut self) -> Vec<String> {
        std::iter::from_fn(|| Some(self.next()).filter(|message| !message.is_null()))
            .map(|message| message["type"].as_str().unwrap().to_owned())
            .collect()
    }

    fn wait(&mut self, ms: i64) {
        let until_ms = self.now_ms + ms;
        while let Some(due_ms) = self.ear.poll_timeout().filter(|due_ms| *due_ms <= until_ms) {
            self.now_ms = due_ms.max(self.now_ms);
            self.ear.tick(self.now_ms);
            self.take();
        }
        self.now_ms = until_ms;
    }

    fn ask(&mut self, text: &str) -> (Answer, Written) {
        self.realtime.ask(self.now_ms, vec![Message::User { text: text.into() }], 0)
    }

    /// Asks about a line that was spoken as this item.
    fn ask_heard(&mut self, text: &str) -> (Answer, Written) {
        self.ear.speech_began(self.now_ms);
        self.ear.hear(self.now_ms, &[1_000; 8_000]);
        self.ear.speech_ended(self.now_ms);
        assert_eq!(self.next()["type"], "input_audio_buffer.commit");
        self.says(json!({"type": "input_audio_buffer.committed", "item_id": "item_u"}));
        self.says(
            json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_u",
            "transcript": text}),
        );
        let asked = self.ask(text);
        assert_eq!(self.next()["type"], "response.create");
        asked
    }

    fn begins(&mut self, id: &str) {
        self.says(json!({"type": "response.created", "response": {"id": id}}));
        self.says(json!({"type": "response.output_item.added", "response_id": id,
            "item": {"id": format!("item_{id}"), "type": "message"}}));
    }

    /// The model says words, and their audio of 100 ms.
    fn words(&mut self, id: &str, words: &str) {
        let item = format!("item_{id}");
        self.says(
            json!({"type": "response.output_audio_transcript.delta", "response_id": id, "item_id": item,
            "delta": words}),
        );
        self.says(audio(id));
    }

    fn done(&mut self, id: &str, status: &str, output: Value) {
        self.says(json!({"type": "response.done", "response": {"id": id, "status": status, "output": output,
            "usage": {"input_tokens": 10, "output_tokens": 5}}}));
    }

    fn audio_of(&mut self, line: u64) -> usize {
        let mut samples_of_line = 0;
        while let Some(event) = self.mouth.poll_event() {
            match event {
                SynthesizerEvent::Audio { line: of, samples } if of == line => {
                    samples_of_line += samples.len()
                }
                SynthesizerEvent::Done { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        samples_of_line
    }
}

fn audio(id: &str) -> Value {
    json!({"type": "response.output_audio.delta", "response_id": id, "item_id": format!("item_{id}"),
        "delta": STANDARD.encode([0x10; 800])})
}

fn message(id: &str) -> Value {
    json!([{"id": format!("item_{id}"), "type": "message", "role": "assistant"}])
}

fn call_of(id: &str) -> Value {
    json!([{"id": format!("item_{id}"), "type": "function_call", "name": "hours", "call_id": "call_1",
        "arguments": r#"{"day": 6}"#}])
}

fn outcome(answer: &mut Answer) -> Option<Outcome> {
    answer.now_or_never()
}

fn said(answer: &mut Answer) -> String {
    match outcome(answer) {
        Some(Ok(AssistantReply::Say { text })) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_what_the_assistant_is() {
    let mut call = Call::new(Rate::Khz8);
    call.accept();
    let session = call.next()["session"].take();
    let format = json!({"type": "audio/pcmu"});
    assert_eq!(
        session["audio"],
        json!({
            "input": {"format": format, "turn_detection": null,
                "transcription": {"model": "scribe", "language": "en"}},
            "output": {"format": format, "voice": "marin", "speed": 1.5},
        })
    );
    assert_eq!((&session["type"], &session["instructions"]), (&json!("realtime"), &json!("Be kind.")));
    assert_eq!(session["tools"][0]["parameters"], json!({"type": "object", "properties": {}}));
    let mut call = Call::new(Rate::Khz16);
    call.accept();
    assert_eq!(
        call.next()["session"]["audio"]["input"]["format"],
        json!({"type": "audio/pcm", "rate": 24_000})
    );
    assert_eq!((call.ear.rate(), call.mouth.rate()), (Rate::Khz24, Rate::Khz24));
}

#[test]
fn an_answer_is_written_and_spoken_while_it_comes() {
    let mut call = Call::open();
    let (mut answer, written) = call.ask_heard("When do you open?");
    assert_eq!(call.ear.poll_event(), Some(TranscriberEvent::Final("When do you open?".into())));
    call.begins("r1");
    call.words("r1", "We open");
    assert_eq!(written.take().as_deref(), Some("We "));
    call.mouth.speak(0, 7, "We ");
    assert_eq!(call.audio_of(7), 800);
    call.words("r1", " at ten.");
    assert_eq!((written.take().as_deref(), call.audio_of(7)), (Some("open at "), 800));
    assert!(outcome(&mut answer).is_none());
    call.done("r1", "completed", message("r1"));
    assert_eq!(said(&mut answer), "We open at ten.");
    call.mouth.finish(0, 7);
    assert_eq!(call.mouth.poll_event(), Some(SynthesizerEvent::Done { line: 7 }));
    let (usage, microusd) = call.realtime.take_cost();
    assert_eq!((usage.input_tokens, usage.output_tokens, microusd), (10, 5, 5));
}

/// Twice, in another order, unknown ones, and none for what was cancelled.
#[test]
fn events_count_once_whatever_their_order() {
    let mut call = Call::open();
    let (mut answer, written) = call.ask_heard("Hello?");
    call.says(json!({"type": "response.sang", "response_id": "r7"}));
    let words = json!({"type": "response.audio_transcript.delta", "response_id": "r1", "item_id": "item_r1",
        "delta": "Good day. ", "event_id": "twice"});
    call.repeats(&words);
    call.repeats(&words);
    call.says(json!({"type": "response.created", "response": {"id": "r1"}}));
    for odd in [
        json!({"type": "response.sang", "response_id": "r1"}),
        json!({"type": "response.output_audio.delta", "response_id": "r1", "delta": "?"}),
        json!({"type": "response.output_audio.delta", "response_id": 5}),
        json!({"type": "conversation.item.added", "item": {"id": "item_u2"}}),
        json!({"no": "type"}),
        json!({"type": "response.created", "response": {"id": "r9"}}),
        json!({"type": "response.output_audio_transcript.delta", "response_id": "r9", "delta": "Nonsense. "}),
    ] {
        if odd["type"].is_string() {
            call.says(odd);
        } else {
            call.repeats(&odd);
        }
    }
    let done = json!({"type": "response.done", "response": {"id": "r1", "status": "completed", "output": message("r1"),
        "usage": {"input_tokens": 10, "output_tokens": 5}}});
    call.says(audio("r1"));
    call.says(done.clone());
    call.says(done);
    call.words("r1", "More.");
    assert_eq!(written.take().as_deref(), Some("Good day. "));
    assert_eq!(said(&mut answer), "Good day.");
    assert_eq!(call.realtime.take_cost().0.output_tokens, 5);
    call.mouth.speak(0, 1, "Good day.");
    assert_eq!(call.audio_of(1), 800);
    assert_eq!(call.kinds(), [""; 0]);
    call.arrives(Arrival::Message(SocketMessage::Text("x".repeat(2_000_000))));
    assert_eq!((call.connects, call.socket.is_some()), (2, true), "too much: another session");
}

#[test]
fn an_answer_is_cut_where_it_was_heard() {
    let mut call = Call::open();
    let (answer, _) = call.ask_heard("Hello?");
    call.begins("r1");
    call.words("r1", "Good ");
    call.mouth.speak(0, 1, "Good ");
    call.words("r1", "day.");
    assert_eq!(call.audio_of(1), 1_600);
    // The person interrupts: the conversation drops the question, and the voice cuts the line.
    call.mouth.heard(1, 140);
    call.mouth.cancel(0, 1);
    drop(answer);
    assert_eq!(call.next(), json!({"type": "response.cancel", "response_id": "r1"}));
    let truncate = json!({"type": "conversation.item.truncate", "item_id": "item_r1", "content_index": 0,
        "audio_end_ms": 140});
    assert_eq!(call.next(), truncate);
    call.words("r1", " And more.");
    call.done("r1", "cancelled", json!([message("r1")[0], {"id": "item_late", "type": "function_call"}]));
    assert_eq!(call.next(), json!({"type": "conversation.item.delete", "item_id": "item_late"}));
    assert_eq!((call.audio_of(1), call.kinds()), (0, vec![]));
    // What was heard of it is in the history already.
    let history = vec![
        Message::User { text: "Hello?".into() },
        Message::Assistant { text: "Good…".into() },
        Message::User { text: "(pressed 1 on the telephone's keys)".into() },
    ];
    let _answer = call.realtime.ask(0, history, 0);
    let created = call.next();
    assert_eq!((&created["item"]["role"], &created["previous_item_id"]), (&json!("user"), &json!("item_r1")));
    assert_eq!(call.kinds(), ["response.create"]);
}

#[test]
fn an_answer_of_which_nothing_was_heard_is_deleted() {
    let mut call = Call::open();
    let (answer, _) = call.ask_heard("Hello?");
    // It is not wanted any more before the server has told its id.
    drop(answer);
    let (mut second, _) = call.ask("Hello? Are you there?");
    assert_eq!(call.kinds(), [""; 0], "one response at a time");
    call.says(json!({"type": "response.created", "response": {"id": "r1"}}));
    assert_eq!(call.next(), json!({"type": "response.cancel", "response_id": "r1"}));
    call.says(json!({"type": "error", "error": {"type": "invalid_request_error", "code": "response_cancel_not_active",
        "message": "Cancellation failed: no active response found"}}));
    call.done("r1", "cancelled", message("r1"));
    assert_eq!(call.kinds(), ["conversation.item.delete", "response.create"]);
    call.begins("r2");
    call.words("r2", "Yes.");
    call.done("r2", "completed", message("r2"));
    assert_eq!(said(&mut second), "Yes.");
}

#[test]
fn a_line_of_the_author_is_read_out() {
    let mut call = Call::new(Rate::Khz8);
    call.mouth.speak(0, 1, "Hello, ");
    call.mouth.speak(0, 1, "front desk.");
    call.mouth.finish(0, 1);
    call.accept();
    assert_eq!(call.next()["type"], "session.update");
    let asked = call.next();
    let response = &asked["response"];
    assert!(response["instructions"].as_str().unwrap().ends_with("\n\nHello, front desk."), "{asked}");
    assert_eq!((&response["conversation"], &response["input"]), (&json!("none"), &json!([])));
    call.begins("r1");
    call.says(audio("r1"));
    call.done("r1", "completed", message("r1"));
    assert_eq!(call.audio_of(1), 800);
    // It is no item of the conversation, so there is nothing to truncate.
    call.mouth.heard(1, 40);
    call.mouth.cancel(0, 1);
    assert_eq!(call.kinds(), [""; 0]);
    // One without audio has failed, after another attempt.
    call.mouth.speak(0, 2, "Still there?");
    call.mouth.finish(0, 2);
    for id in ["r2", "r3"] {
        assert_eq!(call.kinds(), ["response.create"]);
        call.begins(id);
        call.done(id, "failed", json!([]));
        // The server may have too much to do.
        call.wait(999);
        assert_eq!(call.kinds(), [""; 0]);
        call.wait(1);
    }
    assert!(matches!(call.mouth.poll_event(), Some(SynthesizerEvent::Failed { line: 2, .. })));
}

#[test]
fn tools_are_called_and_answered_under_the_servers_ids() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Open on Saturday?");
    call.begins("r1");
    call.done("r1", "completed", call_of("r1"));
    let calls = vec![ToolRequest { name: "hours".into(), arguments: json!({"day": 6}) }];
    assert_eq!(outcome(&mut answer), Some(Ok(AssistantReply::CallTools { text: String::new(), calls })));
    let history = vec![
        Message::User { text: "Open on Saturday?".into() },
        Message::ToolCall { id: "call_x_t1".into(), name: "hours".into(), arguments: json!({"day": 6}) },
        Message::ToolResult {
            id: "call_x_t1".into(),
            name: "hours".into(),
            text: "no".into(),
            is_error: false,
        },
    ];
    let _second = call.realtime.ask(0, history, 0);
    let created = call.next();
    assert_eq!((&created["item"]["call_id"], &created["item"]["output"]), (&json!("call_1"), &json!("no")));
    assert_eq!(call.kinds(), ["response.create"]);
}

/// A line is read out word for word, or what was said is told.
#[test]
fn other_words_than_those_of_a_line_are_told() {
    for (said, is_told) in [("Hello, front desk!", false), ("Hello. This is the front desk.", true)] {
        let mut call = Call::open();
        call.mouth.speak(0, 1, "Hello, front desk.");
        call.mouth.finish(0, 1);
        assert_eq!(call.next()["response"]["conversation"], "none");
        call.begins("r1");
        call.words("r1", said);
        call.done("r1", "completed", message("r1"));
        let mut told = Vec::new();
        while let Some(event) = call.mouth.poll_event() {
            if let SynthesizerEvent::VoiceFailed { line: 1, failure } = event {
                told.push(failure.message);
            }
        }
        assert_eq!(
            told.iter().any(|text| text.ends_with(&format!("in other words: {said}"))),
            is_told,
            "{told:?}"
        );
    }
}
