use super::*;
use crate::base::limits::{SPEECH_CLOSE_MS, SPEECH_TEXT_BYTES_MAX};
use crate::ports::SocketMessage;
use crate::speech::exchange::SpeechFault;
use crate::speech::transcribers::test_driver::{Driver, failure, final_, partial, settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

fn driver() -> Driver {
    Driver::new(KIND, settings("gpt-live-transcribe"), Rate::Khz8)
}

fn opened() -> Driver {
    let mut call = driver();
    call.hear(1_000, 7);
    call.open();
    call.text(json!({"type": "session.created", "event_id": "e", "session": {"type": "transcription"}}));
    call
}

fn committed(item: &str, previous: Option<&str>) -> Value {
    json!({"type": "input_audio_buffer.committed", "event_id": "e", "item_id": item, "previous_item_id": previous})
}

fn transcription(what: &str, item: &str, rest: Value) -> Value {
    let mut message = json!({
        "type": format!("conversation.item.input_audio_transcription.{what}"),
        "event_id": "e", "item_id": item, "content_index": 0,
    });
    message.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    message
}

fn delta(item: &str, text: &str) -> Value {
    transcription("delta", item, json!({"delta": text}))
}

fn completed(item: &str, text: &str) -> Value {
    transcription("completed", item, json!({"transcript": text, "usage": {"type": "duration", "seconds": 1}}))
}

/// The samples sent, and the other messages.
fn split(texts: Vec<String>) -> (usize, Vec<Value>) {
    let mut samples = 0;
    let mut others = Vec::new();
    for text in texts {
        let message: Value = serde_json::from_str(&text).unwrap();
        match message["audio"].as_str() {
            Some(audio) => samples += STANDARD.decode(audio).unwrap().len() / 2,
            None => others.push(message),
        }
    }
    (samples, others)
}

#[test]
fn connects_and_describes_the_session() {
    let mut call = driver();
    call.hear(20, 0);
    let request = call.connection();
    assert_eq!(request.url, "wss://stt.example/realtime?intent=transcription&model=gpt-live-transcribe");
    assert_eq!(request.headers, [("authorization", "Bearer key-of-the-operator".to_owned())]);
    call.open();
    let (_, sent) = split(call.sent_texts());
    assert_eq!(sent[0]["type"], "session.update");
    assert_eq!(sent[0]["session"]["type"], "transcription");
    let expected = json!({
        "format": {"type": "audio/pcm", "rate": 24_000},
        "transcription": {"model": "gpt-live-transcribe", "language": "en", "prompt": "Sidetone, blue whale"},
        "turn_detection": null,
    });
    assert_eq!(sent[0]["session"]["audio"]["input"], expected);
    call.text(json!({"type": "transcription_session.created", "session": {}}));
    let (_, sent) = split(call.sent_texts());
    assert_eq!(sent[0]["type"], "transcription_session.update");
    assert_eq!(sent[0]["session"]["input_audio_format"], "pcm16");

    let mut openai = settings("gpt-realtime-whisper");
    openai.base_url = "https://api.openai.com/v1".into();
    let mut call = Driver::new(KIND, openai, Rate::Khz8);
    call.hear(20, 0);
    assert_eq!(call.connection().url, "wss://api.openai.com/v1/realtime?intent=transcription");
    call.open();
    assert!(!call.sent_texts().concat().contains("prompt"), "this model takes no prompt");
}

#[test]
fn a_dialogue() {
    let mut call = opened();
    call.sent();
    call.utter(1_000);
    let (samples, sent) = split(call.sent_texts());
    assert_eq!(samples, 24 * (500 + 1_000 + 240), "the utterance, and half a second before it");
    assert_eq!(sent, [json!({"type": "input_audio_buffer.commit", "event_id": "commit_0"})]);
    call.text(committed("item_1", None));
    call.text(json!({"type": "conversation.item.added", "item": {"id": "item_1", "role": "user"}, "previous_item_id": null}));
    call.text(delta("item_1", "I would"));
    call.text(delta("item_1", " like"));
    call.text(delta("item_1", " one."));
    call.text(completed("item_1", "I would like one.\n"));
    assert_eq!(
        call.events(),
        [
            partial("I would"),
            partial("I would like"),
            partial("I would like one."),
            final_("I would like one.")
        ]
    );
    // What is repeated is nobody else's.
    call.utter(500);
    call.text(completed("item_1", "I would like one."));
    assert_eq!(call.events(), []);
    call.text(committed("item_2", Some("item_1")));
    call.text(completed("item_2", ""));
    assert_eq!(call.events(), [final_("")]);
    assert_eq!(call.transcriber.billed_ms(), 1_740 + 740);
    // Words that were heard stay when the end has none.
    call.utter(500);
    call.text(delta("item_3", "Two."));
    call.text(completed("item_3", ""));
    assert_eq!(call.events(), [partial("Two."), final_("Two.")]);
    call.close();
    assert!(matches!(call.transmits().last(), Some(Transmit::Drop { id: 0 })));
    assert_eq!(call.transcriber.poll_timeout(), None);
}

#[test]
fn results_are_ordered_by_items_and_not_by_arrival() {
    let mut call = opened();
    call.utter(500);
    call.utter(500);
    call.utter(500);
    call.text(committed("a", None));
    // The second item's commit is announced after its words, and the third's by its predecessor alone.
    call.text(json!({"type": "conversation.item.created", "item": {"id": "b"}, "previous_item_id": "a"}));
    call.text(json!({"type": "conversation.item.created", "item": {"id": "c"}, "previous_item_id": "b"}));
    call.text(completed("c", "Three."));
    call.text(completed("b", "Two."));
    assert_eq!(call.events(), []);
    call.text(completed("a", "One."));
    assert_eq!(call.events(), [final_("One."), final_("Two."), final_("Three.")]);
}

#[test]
fn failed_and_empty_items() {
    let mut call = opened();
    call.utter(500);
    call.text(committed("a", None));
    let error = json!({"type": "transcription_error", "code": "audio_unintelligible", "message": "sorry", "param": null});
    call.text(transcription("failed", "a", json!({"error": error})));
    let told = call.events();
    assert_eq!(failure(&told).message, "the transcription server failed: sorry");
    call.utter(500);
    call.text(json!({"type": "error", "error": {"type": "invalid_request_error", "code": "input_audio_buffer_commit_empty",
        "message": "buffer too small", "event_id": "commit_1"}}));
    assert_eq!(call.events(), [final_("")]);
    // A beta server does not understand our first message.
    call.text(json!({"type": "error", "error": {"type": "invalid_request_error", "message": "unknown field", "event_id": "session"}}));
    assert_eq!(call.events(), []);
    assert!(!call.transmits().iter().any(|transmit| matches!(transmit, Transmit::Connect { id: 1, .. })));
}

#[test]
fn a_server_that_commits_by_itself_loses_no_words() {
    let mut call = opened();
    call.began();
    call.hear(1_000, 5);
    call.text(committed("a", None));
    call.text(completed("a", "I would like"));
    call.hear(500, 5);
    call.ended();
    call.text(committed("b", Some("a")));
    call.text(delta("b", "a whale."));
    call.text(completed("b", "a whale."));
    assert_eq!(call.events(), [partial("I would like a whale."), final_("I would like a whale.")]);
}

#[test]
fn breaks_in_mid_utterance_and_before_the_result_are_mended() {
    let mut call = opened();
    call.utter(500);
    call.text(committed("a", None));
    call.text(delta("a", "On"));
    call.began();
    call.hear(300, 5);
    call.events();
    call.sent();
    call.break_off();
    call.hear(200, 5);
    call.open();
    let (samples, sent) = split(call.sent_texts());
    assert_eq!(sent[1], json!({"type": "input_audio_buffer.commit", "event_id": "commit_0"}));
    assert_eq!(samples, 24 * (1_240 + 480), "the first whole, the second as far as whole messages go");
    call.hear(240, 0);
    call.ended();
    call.text(committed("x", None));
    call.text(committed("y", Some("x")));
    call.text(completed("x", "One."));
    call.text(completed("y", "Two."));
    assert_eq!(call.events(), [final_("One."), final_("Two.")]);
}

#[test]
fn late_results() {
    let mut call = opened();
    call.utter(500);
    call.text(committed("a", None));
    call.text(delta("a", "Half a"));
    call.hear(2 * SPEECH_RESULT_LATE_MS, 0);
    assert_eq!(call.events(), [partial("Half a"), final_("Half a")]);
    call.utter(500);
    for _ in 0..3 {
        call.wait(7_000);
        call.open();
        assert_eq!(call.events(), []);
    }
    call.wait(7_000);
    assert_eq!(failure(&call.events()).message, "the transcription server did not answer in time");
}

#[test]
fn fatal_and_passing_errors() {
    for (code, message) in [
        ("invalid_api_key", "the transcription server rejected the API key: no"),
        ("insufficient_quota", "the transcription server has no credit left for this account: no"),
        ("billing_hard_limit_reached", "the transcription server does not serve this account: no"),
    ] {
        let mut call = opened();
        call.utter(100);
        call.text(json!({"type": "error", "error": {"type": "x", "code": code, "message": "no"}}));
        let told = call.events();
        assert_eq!((failure(&told).message.as_str(), failure(&told).is_temporary), (message, false));
        call.utter(100);
        assert_eq!(failure(&call.events()).fault, SpeechFault::Operator);
    }
    let mut call = opened();
    let error = json!({"type": "invalid_request_error", "code": "session_expired", "message": "60 minutes"});
    call.text(json!({"type": "error", "error": error}));
    assert!(call.transmits().iter().any(|transmit| matches!(transmit, Transmit::Connect { id: 1, .. })));

    let mut call = driver();
    call.hear(20, 0);
    call.refuse(
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-abc***def.","code":"invalid_api_key"}}"#,
    );
    call.utter(100);
    let told = call.events();
    assert_eq!(
        failure(&told).message,
        "the transcription server rejected the API key (401): Incorrect API key provided: …"
    );

    let mut call = driver();
    call.hear(20, 0);
    call.utter(100);
    for _ in 0..4 {
        call.refuse(200, "<html>");
        call.wait(2_500);
    }
    assert_eq!(failure(&call.events()).fault, SpeechFault::Provider);
}

#[test]
fn garbage_and_floods_are_bounded() {
    let mut flood = OpenaiRealtime::new(&settings("m"));
    flood.hear(0, &[0; 24_000]);
    flood.arrived(0, 0, Arrival::Opened);
    flood.speech_began(0);
    let mut say = |message: String| flood.arrived(0, 0, Arrival::Message(SocketMessage::Text(message)));
    for noise in ["", "{}", "[]", r#"{"type":null}"#, r#"{"type":"response.done"}"#] {
        say(noise.to_owned());
    }
    for n in 0..500 {
        say(delta("a", &"word ".repeat(1_000)).to_string());
        say(committed(&format!("item {n}"), Some("a")).to_string());
        say(completed(&format!("item {n}"), &"word ".repeat(1_000)).to_string());
        say(committed(&"x".repeat(10_000), None).to_string());
    }
    flood.hear(0, &vec![0; 2_400_000]);
    assert!(flood.utterances[0].text.len() <= SPEECH_TEXT_BYTES_MAX);
    assert!(flood.utterances[0].before.len() <= SPEECH_TEXT_BYTES_MAX);
    assert!(flood.done_items.len() <= ITEMS_KEPT);
    assert!(flood.log.end() - flood.log.start() <= 240_000);
    assert!(std::iter::from_fn(|| flood.poll_event()).count() <= 2);
    flood.arrived(0, 0, Arrival::Message(SocketMessage::Text(r#"{"type":"error","error":[1]}"#.into())));
    assert!(!flood.link.is_open(), "an error without a reason ends the connection");
}

#[test]
fn silence_sends_and_keeps_nothing() {
    let mut call = opened();
    call.sent();
    call.hear(20_000, 0);
    assert_eq!(call.sent(), []);
    call.utter(20);
    let (samples, _) = split(call.sent_texts());
    assert_eq!(samples, 24 * 760);
    // Hardly any audio is filled up to what can be committed.
    let mut call = driver();
    call.hear(20, 0);
    call.open();
    call.ended();
    assert_eq!(split(call.sent_texts()).0, 24 * 200);
}

#[test]
fn at_the_end_of_a_call_the_last_words_come() {
    let mut call = opened();
    call.utter(500);
    call.began();
    call.hear(200, 5);
    call.close();
    call.text(committed("a", None));
    call.text(completed("a", "Bye."));
    assert_eq!(call.events(), [final_("Bye.")]);
    assert!(matches!(call.transmits().last(), Some(Transmit::Drop { .. })));

    let mut call = opened();
    call.utter(500);
    call.close();
    call.wait(SPEECH_CLOSE_MS);
    failure(&call.events());
    assert_eq!(call.transcriber.poll_timeout(), None);
}
