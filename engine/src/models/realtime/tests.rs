//! A session with a server that is played by the test.
use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::*;
use crate::base::limits::{REALTIME_RESPONSE_MS, REALTIME_SESSION_MS};
use crate::base::setting::Secret;
use crate::conversation::ToolRequest;
use crate::models::asking::FailureCode;
use crate::ports::SocketMessage;
use crate::speech::exchange::{Arrival, ExchangeFailure, ExchangeId, Transmit};
use crate::speech::synthesizer::{Synthesizer as _, SynthesizerEvent};
use crate::speech::transcriber::{Transcriber as _, TranscriberEvent};

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
        self.realtime.ask(self.now_ms, vec![Message::User { text: text.into() }])
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
    let _answer = call.realtime.ask(0, history);
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
    let _second = call.realtime.ask(0, history);
    let created = call.next();
    assert_eq!((&created["item"]["call_id"], &created["item"]["output"]), (&json!("call_1"), &json!("no")));
    assert_eq!(call.kinds(), ["response.create"]);
}

#[test]
fn a_connection_that_breaks_in_a_function_call_is_replaced_with_the_whole_conversation() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Open on Saturday?");
    call.begins("r1");
    call.says(
        json!({"type": "response.function_call_arguments.delta", "response_id": "r1", "delta": "{\"da"}),
    );
    call.arrives(Arrival::Closed { code: 1011, reason: String::new() });
    assert_eq!(call.connects, 2);
    call.accept();
    assert_eq!(call.next()["type"], "session.update");
    let created = call.next();
    assert_eq!(created["item"]["content"], json!([{"type": "input_text", "text": "Open on Saturday?"}]));
    assert_eq!(call.kinds(), ["response.create"]);
    call.begins("r2");
    call.done("r2", "completed", call_of("r2"));
    assert!(matches!(outcome(&mut answer), Some(Ok(AssistantReply::CallTools { .. }))));
    assert_eq!(
        call.realtime.take_cost().0.uncounted_answers,
        1,
        "the first one was billed, and nobody knows how much"
    );
}

#[test]
fn what_was_heard_of_an_answer_is_not_asked_again() {
    let mut call = Call::open();
    let (mut answer, written) = call.ask_heard("Hello?");
    call.begins("r1");
    call.words("r1", "Good day, ");
    assert!(written.take().is_some());
    call.mouth.speak(0, 1, "Good day, ");
    call.arrives(Arrival::Failed(ExchangeFailure::Broken("lost".into())));
    assert!(matches!(outcome(&mut answer), Some(Err(failure)) if failure.code == FailureCode::Unavailable));
    assert!(matches!(call.mouth.poll_event(), Some(SynthesizerEvent::Audio { line: 1, .. })));
    assert!(matches!(call.mouth.poll_event(), Some(SynthesizerEvent::Failed { line: 1, .. })));
}

#[test]
fn a_server_that_is_silent_is_given_up_after_another_attempt() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Hello?");
    call.wait(REALTIME_RESPONSE_MS);
    assert_eq!(call.connects, 2);
    call.accept();
    assert_eq!(call.kinds(), ["session.update", "conversation.item.create", "response.create"]);
    assert!(outcome(&mut answer).is_none());
    call.wait(REALTIME_RESPONSE_MS);
    assert!(
        matches!(outcome(&mut answer), Some(Err(failure)) if failure.message.contains("did not answer in time"))
    );
}

#[test]
fn a_session_that_is_refused_is_not_tried_again() {
    let mut call = Call::new(Rate::Khz8);
    let (mut answer, _) = call.ask("Hello?");
    call.arrives(Arrival::Failed(ExchangeFailure::rejected(401, b"")));
    let Some(Err(failure)) = outcome(&mut answer) else { panic!("no failure") };
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (FailureCode::Rejected, "the realtime model rejected the API key (401)")
    );
    // A voice that it does not know.
    let mut call = Call::open();
    call.says(json!({"type": "error", "error": {"type": "invalid_request_error", "code": "invalid_value",
        "message": "Invalid value: 'bob'", "param": "session.audio.output.voice", "event_id": "session"}}));
    let (mut answer, _) = call.ask("Hello?");
    call.mouth.speak(0, 1, "Sorry.");
    call.mouth.finish(0, 1);
    assert!(matches!(outcome(&mut answer), Some(Err(failure)) if failure.code == FailureCode::Rejected));
    assert!(
        matches!(call.mouth.poll_event(), Some(SynthesizerEvent::Failed { failure, .. }) if !failure.is_temporary)
    );
    assert_eq!(call.connects, 1);
}

#[test]
fn an_old_session_is_replaced_between_two_turns() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Hello?");
    call.begins("r1");
    call.now_ms = REALTIME_SESSION_MS + 1_000;
    call.words("r1", "Yes.");
    call.ear.tick(call.now_ms);
    assert_eq!(call.connects, 1, "in the middle of an answer");
    call.done("r1", "completed", message("r1"));
    assert_eq!(said(&mut answer), "Yes.");
    call.mouth.speak(call.now_ms, 1, "Yes.");
    call.mouth.finish(call.now_ms, 1);
    call.ear.tick(call.now_ms);
    call.take();
    assert_eq!(call.connects, 2);
    // And one that the server has ended.
    call.accept();
    call.says(json!({"type": "error", "error": {"type": "invalid_request_error", "code": "session_expired",
        "message": "Your session hit the maximum duration of 60 minutes."}}));
    assert_eq!(call.connects, 3);
}

#[test]
fn words_that_were_not_transcribed_are_answered() {
    let mut call = Call::open();
    call.ear.speech_began(0);
    call.ear.hear(0, &[1_000; 8_000]);
    call.ear.speech_ended(0);
    call.says(json!({"type": "input_audio_buffer.committed", "item_id": "item_u"}));
    call.says(json!({"type": "conversation.item.input_audio_transcription.failed", "item_id": "item_u",
        "error": {"message": "no"}}));
    assert_eq!(call.ear.poll_event(), Some(TranscriberEvent::Final("(not transcribed)".into())));
    call.kinds();
    let _answer = call.ask("(not transcribed)");
    assert_eq!(call.kinds(), ["response.create"], "the model has heard it");
}

#[test]
fn the_answer_is_on_its_way_before_the_words_are_known() {
    let mut call = Call::open();
    call.ear.speech_began(0);
    call.ear.hear(0, &[1_000; 8_000]);
    call.ear.speech_ended(0);
    let greeting = Message::Assistant { text: "Hello!".into() };
    let user = Message::User { text: "When do you open?".into() };
    call.realtime.anticipate(0, vec![greeting.clone()]);
    assert_eq!(
        call.kinds(),
        ["input_audio_buffer.commit", "conversation.item.create", "response.create"],
        "the greeting comes first"
    );
    call.says(json!({"type": "input_audio_buffer.committed", "item_id": "item_u"}));
    call.begins("r1");
    call.words("r1", "We open at ten.");
    call.done("r1", "completed", message("r1"));
    call.says(json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_u",
        "transcript": "When do you open?"}));
    assert!(call.ear.poll_event().is_some());
    let (mut answer, written) = call.realtime.ask(0, vec![greeting.clone(), user.clone()]);
    assert_eq!(
        (said(&mut answer).as_str(), written.take().as_deref()),
        ("We open at ten.", Some("We open at "))
    );
    call.mouth.speak(0, 1, "We open at ");
    assert_eq!(call.audio_of(1), 800);
    // Nothing is created or deleted of what was said meanwhile.
    let keys = Message::User { text: "(pressed 1 on the telephone's keys)".into() };
    let answered = Message::Assistant { text: "We open at ten.".into() };
    let _next = call.realtime.ask(0, vec![greeting, user, answered, keys]);
    assert_eq!(call.kinds(), ["conversation.item.create", "response.create"]);
    // The person goes on.
    call.begins("r2");
    call.words("r2", "Thank you.");
    call.done("r2", "completed", message("r2"));
    call.realtime.anticipate(0, vec![]);
    assert_eq!(call.kinds(), ["conversation.item.delete", "response.create"], "nobody has said the answer");
    call.begins("r3");
    call.realtime.forget_anticipated(0);
    assert_eq!(call.kinds(), ["response.cancel", "conversation.item.delete"].map(str::to_owned).to_vec());
}

#[test]
fn what_was_anticipated_is_asked_again_with_its_words() {
    let history = || vec![Message::User { text: "When do you open?".into() }];
    for is_known in [false, true] {
        let mut call = Call::open();
        call.realtime.anticipate(0, vec![]);
        call.kinds();
        let asked = is_known.then(|| call.realtime.ask(0, history()));
        call.begins("r1");
        call.arrives(Arrival::Closed { code: 1011, reason: String::new() });
        call.accept();
        let (mut answer, _) = asked.unwrap_or_else(|| call.realtime.ask(0, history()));
        assert_eq!(
            call.kinds(),
            ["session.update", "conversation.item.create", "response.create"],
            "{is_known}"
        );
        call.begins("r2");
        call.words("r2", "At ten.");
        call.done("r2", "completed", message("r2"));
        assert_eq!(said(&mut answer), "At ten.");
    }
}

/// What happens in [`whatever_a_server_sends_every_question_is_answered`].
#[derive(Debug, Clone)]
enum Step {
    Event(&'static str, u8, String),
    Opened,
    Broken,
    Ask,
    Drop,
    Anticipate,
    Forget,
    Speak(u64),
    Finish(u64),
    Cut(u64, i64),
    Voice,
    Wait(i64),
}

fn step() -> impl proptest::strategy::Strategy<Value = Step> {
    use proptest::prelude::*;
    const EVENTS: [&str; 14] = [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.text.delta",
        "response.done",
        "response.unknown",
        "error",
        "session.updated",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.input_audio_transcription.completed",
        "conversation.item.input_audio_transcription.failed",
    ];
    prop_oneof![
        12 => (prop::sample::select(&EVENTS[..]), 0_u8..3, "[a-z 十]{0,6}").prop_map(|(kind, id, text)| Step::Event(kind, id, text)),
        3 => Just(Step::Opened),
        1 => Just(Step::Broken),
        3 => Just(Step::Ask),
        1 => Just(Step::Drop),
        1 => Just(Step::Anticipate),
        1 => Just(Step::Forget),
        2 => (1_u64..4).prop_map(Step::Speak),
        1 => (1_u64..4).prop_map(Step::Finish),
        1 => ((1_u64..4), -10_i64..500).prop_map(|(line, ms)| Step::Cut(line, ms)),
        1 => Just(Step::Voice),
        2 => (0_i64..15_000).prop_map(Step::Wait),
    ]
}

proptest::proptest! {
    #[test]
    fn whatever_a_server_sends_every_question_is_answered(steps in proptest::collection::vec(step(), 0..60)) {
        let mut call = Call::new(Rate::Khz8);
        let (mut asked, mut written) = (None, None);
        for step in steps {
            match step {
                Step::Event(kind, id, text) => {
                    let (response, item) = (format!("r{id}"), format!("item_r{id}"));
                    let status = ["completed", "failed", "cancelled"][usize::from(id)];
                    let output = if text.len() > 3 { call_of(&response) } else { message(&response) };
                    call.take();
                    if call.socket.is_some() {
                        call.says(json!({"type": kind, "response_id": response, "item_id": item, "delta": text,
                            "transcript": text, "item": output[0], "error": {"code": text, "event_id": "response",
                            "type": "invalid_request_error"}, "response": {"id": response, "status": status,
                            "output": output, "usage": null}}));
                    }
                }
                Step::Opened => {
                    call.take();
                    if call.socket.is_some() {
                        call.arrives(Arrival::Opened);
                    }
                }
                Step::Broken => {
                    call.take();
                    if call.socket.is_some() {
                        call.arrives(Arrival::Closed { code: 1006, reason: String::new() });
                    }
                }
                Step::Ask => {
                    let (answer, text) = call.ask("Hello?");
                    (asked, written) = (Some(answer), Some(text));
                }
                Step::Drop => drop(asked.take()),
                Step::Anticipate => call.realtime.anticipate(call.now_ms, vec![]),
                Step::Forget => call.realtime.forget_anticipated(call.now_ms),
                Step::Speak(line) => {
                    let text = written.as_ref().and_then(Written::take).unwrap_or_else(|| "Wait.".into());
                    call.mouth.speak(call.now_ms, line, &text);
                }
                Step::Finish(line) => call.mouth.finish(call.now_ms, line),
                Step::Cut(line, ms) => {
                    call.mouth.heard(line, ms);
                    call.mouth.cancel(call.now_ms, line);
                }
                Step::Voice => {
                    call.ear.speech_began(call.now_ms);
                    call.ear.hear(call.now_ms, &[1_000; 4_000]);
                    call.ear.speech_ended(call.now_ms);
                }
                Step::Wait(ms) => call.wait(ms),
            }
            while call.mouth.poll_event().is_some() {}
            while call.ear.poll_event().is_some() {}
        }
        drop(asked);
        // From here on the server says nothing.
        let (mut answer, _) = call.ask("And now?");
        for _ in 0..12 {
            call.wait(10_000);
            if call.socket.is_some() {
                call.arrives(Arrival::Opened);
            }
        }
        proptest::prop_assert!(outcome(&mut answer).is_some());
        call.ear.close(call.now_ms);
        call.wait(60_000);
        proptest::prop_assert!(call.ear.poll_timeout().is_none());
    }
}
