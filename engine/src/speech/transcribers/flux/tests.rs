use super::*;
use crate::base::limits::SPEECH_EVENTS_MAX;
use crate::ports::SocketMessage;
use crate::speech::exchange::SpeechFault;
use crate::speech::transcribers::test_driver::{Driver, failure, partial, settings};
use TranscriberEvent::{LikelyEnd, Resumed, TurnEnded};
use serde_json::json;

fn driver(model: &str) -> Driver {
    let mut call = Driver::new(KIND, settings(model), Rate::Khz8);
    call.hear(1_000, 0);
    call
}

fn opened() -> Driver {
    let mut call = driver("flux-general-en");
    call.open();
    call.text(json!({"type": "Connected", "request_id": "r", "sequence_id": 0}));
    call
}

fn info(event: &str, turn: u32, end: f64, text: &str) -> Value {
    json!({
        "type": "TurnInfo", "request_id": "r", "sequence_id": 3, "event": event, "turn_index": turn,
        "audio_window_start": 0.0, "audio_window_end": end, "transcript": text,
        "words": [{"word": "x", "confidence": 0.9}], "end_of_turn_confidence": 0.6, "trigger": "model",
    })
}

#[test]
fn connects_with_what_each_model_takes() {
    let url = driver("flux-general-en").connection().url;
    assert_eq!(
        url,
        "wss://stt.example/v2/listen?model=flux-general-en&encoding=mulaw&sample_rate=8000\
         &eager_eot_threshold=0.5&eot_timeout_ms=3000&keyterm=Sidetone&keyterm=blue+whale"
    );
    assert!(driver("flux-general-multi").connection().url.contains("&language_hint=en&"));
}

#[test]
fn a_dialogue() {
    let mut call = opened();
    call.began();
    call.hear(800, 500);
    call.text(info("StartOfTurn", 0, 1.2, "I"));
    call.text(info("Update", 0, 1.4, "I would"));
    call.text(info("Update", 0, 1.6, "I would"));
    call.text(info("EagerEndOfTurn", 0, 1.7, "I would like"));
    call.text(info("TurnResumed", 0, 1.8, "I would like a"));
    call.hear(240, 0);
    call.ended();
    call.text(info("EagerEndOfTurn", 0, 1.9, "I would like a whale."));
    call.text(info("EndOfTurn", 0, 2.0, "I would like a whale."));
    call.text(info("EndOfTurn", 0, 2.0, "I would like a whale."));
    call.text(info("SomethingNew", 1, 2.0, "x"));
    assert_eq!(
        call.events(),
        [
            partial("I"),
            partial("I would"),
            LikelyEnd("I would like".into()),
            Resumed,
            partial("I would like a"),
            LikelyEnd("I would like a whale.".into()),
            TurnEnded("I would like a whale.".into()),
        ]
    );
    call.hear(4_000, 0);
    call.text(info("Update", 1, 6.0, ""));
    assert_eq!(call.events(), []);
    call.close();
    assert_eq!(call.sent_texts(), [r#"{"type":"CloseStream"}"#]);
    call.arrive(Arrival::Closed { code: 1000, reason: String::new() });
    assert_eq!(call.events(), []);
}

#[test]
fn a_turn_that_ends_before_our_detector_notices_needs_no_other() {
    let mut call = opened();
    call.began();
    call.hear(500, 500);
    call.text(info("StartOfTurn", 0, 1.2, "Yes."));
    call.text(info("EndOfTurn", 0, 1.5, "Yes."));
    call.hear(100, 0);
    call.ended();
    call.hear(10_000, 0);
    assert_eq!(call.events(), [partial("Yes."), TurnEnded("Yes.".into())]);
}

#[test]
fn several_utterances_of_ours_are_one_turn() {
    let mut call = opened();
    call.utter(500);
    call.text(info("StartOfTurn", 0, 1.5, "My number is"));
    call.hear(500, 0);
    call.utter(500);
    call.text(info("EndOfTurn", 0, 2.5, "My number is four."));
    call.hear(10_000, 0);
    assert_eq!(call.events(), [partial("My number is"), TurnEnded("My number is four.".into())]);
}

#[test]
fn a_cough_is_an_empty_turn() {
    let mut call = opened();
    call.utter(200);
    call.text(info("Update", 0, 1.5, ""));
    call.hear(KIND.final_wait_ms(), 0);
    assert_eq!(call.events(), [TurnEnded(String::new())]);
}

#[test]
fn a_service_that_never_says_anything_is_no_silence() {
    let mut call = driver("flux-general-en");
    call.open();
    call.utter(500);
    call.hear(KIND.final_wait_ms(), 0);
    let events = call.events();
    let silent = failure(&events);
    assert_eq!((silent.fault, silent.is_temporary), (SpeechFault::Provider, true), "{silent:?}");
    assert!(silent.message.contains("did not answer in time"), "{silent:?}");
    assert!(call.transmits().iter().any(|transmit| matches!(transmit, Transmit::Connect { id: 1, .. })));
}

#[test]
fn a_service_that_says_nothing_any_more_is_no_silence() {
    let mut call = opened();
    call.text(info("Update", 0, 0.5, ""));
    call.utter(500);
    call.hear(KIND.final_wait_ms(), 0);
    assert!(failure(&call.events()).message.contains("did not answer in time"));
}

#[test]
fn a_turn_that_does_not_end_is_ended() {
    let mut call = opened();
    call.utter(500);
    call.text(info("StartOfTurn", 0, 1.5, "And then"));
    call.sent();
    call.hear(KIND.final_wait_ms(), 0);
    assert_eq!(call.sent_texts(), [r#"{"type":"ForceEndTurn"}"#]);
    call.text(info("EndOfTurn", 0, 2.5, "And then"));
    assert_eq!(call.events(), [partial("And then"), TurnEnded("And then".into())]);

    // Nor when it is told to.
    call.utter(500);
    call.text(info("StartOfTurn", 1, 6.5, "So"));
    call.hear(KIND.final_wait_ms() + SPEECH_RESULT_LATE_MS, 0);
    assert_eq!(call.events(), [partial("So"), TurnEnded("So".into())]);
    assert!(call.transmits().iter().any(|transmit| matches!(transmit, Transmit::Connect { id: 1, .. })));
}

#[test]
fn silence_stands_in_for_audio_that_stopped() {
    let mut call = opened();
    call.began();
    call.hear(400, 500);
    call.sent();
    call.wait(2_100);
    let silence = call.sent_bytes();
    let silent = silence.iter().filter(|byte| **byte == crate::speech::g711::SILENCE).count();
    assert_eq!((silence.len(), silent), (8 * 2_000, 8 * 1_960));
    assert_eq!(call.transcriber.billed_ms(), 1_000 + 400 + 2_000 - 40);
}

#[test]
fn a_break_in_mid_turn_is_mended() {
    let mut call = opened();
    call.began();
    call.hear(800, 500);
    call.text(info("StartOfTurn", 0, 1.6, "I would"));
    call.text(info("EagerEndOfTurn", 0, 1.7, "I would"));
    call.break_off();
    call.hear(200, 500);
    call.sent();
    call.open();
    assert_eq!(call.sent_bytes().len(), 8 * 1_920 + 8 * 80, "the turn is heard again");
    call.hear(240, 0);
    call.ended();
    call.text(info("Update", 0, 1.9, "I would like"));
    call.text(info("EndOfTurn", 0, 2.1, "I would like one."));
    assert_eq!(
        call.events(),
        [
            partial("I would"),
            LikelyEnd("I would".into()),
            Resumed,
            partial("I would like"),
            TurnEnded("I would like one.".into()),
        ]
    );
}

#[test]
fn refusals_breaks_and_garbage() {
    let mut call = driver("flux-general-en");
    call.utter(100);
    call.refuse(403, "");
    assert_eq!(failure(&call.events()).fault, SpeechFault::Operator);

    let mut call = driver("flux-general-en");
    call.utter(100);
    for _ in 0..4 {
        call.refuse(200, "<html>");
        call.wait(2_500);
    }
    assert_eq!(failure(&call.events()).fault, SpeechFault::Provider);

    let mut call = opened();
    call.utter(500);
    for noise in [
        "",
        "{}",
        r#"{"type":"TurnInfo"}"#,
        r#"{"type":"TurnInfo","event":"EndOfTurn","audio_window_end":-1e99}"#,
    ] {
        call.text(noise);
    }
    assert_eq!(call.events(), [TurnEnded(String::new())]);
    call.began();
    call.text(
        json!({"type": "Error", "code": "INTERNAL_SERVER_ERROR", "description": "sorry", "sequence_id": 9}),
    );
    assert!(matches!(call.transmits().last(), Some(Transmit::Connect { id: 1, .. })));
    for _ in 0..3 {
        call.break_off();
        call.wait(2_000);
    }
    call.ended();
    call.open();
    call.text(info("EndOfTurn", 0, 0.1, "Hello"));
    assert_eq!(call.events(), [TurnEnded("Hello".into())], "the attempts begin anew with the utterance");
}

#[test]
fn a_flood_is_bounded() {
    let mut flood = Flux::new(&settings("flux-general-en"), Rate::Khz8);
    flood.hear(0, &[0; 8_000]);
    flood.arrived(0, 0, Arrival::Opened);
    for n in 0..500 {
        let event = ["EndOfTurn", "EagerEndOfTurn", "TurnResumed", "Update"][n % 4];
        let text = info(event, 0, 0.0, &format!("{n} {}", "word ".repeat(5_000))).to_string();
        flood.arrived(0, 0, Arrival::Message(SocketMessage::Text(text)));
        flood.hear(0, &[1; 800]);
    }
    let told: Vec<_> = std::iter::from_fn(|| flood.poll_event()).collect();
    assert!(told.len() <= SPEECH_EVENTS_MAX + 1, "{}", told.len());
    assert!(flood.log.end() - flood.log.start() <= 80_000);
}

#[test]
fn at_the_end_of_a_call_the_last_words_come() {
    let mut call = opened();
    call.utter(500);
    call.text(info("StartOfTurn", 0, 1.5, "Bye"));
    call.close();
    call.arrive(Arrival::Closed { code: 1000, reason: String::new() });
    assert_eq!(call.events(), [partial("Bye"), TurnEnded("Bye".into())]);

    let mut call = opened();
    call.utter(500);
    call.close();
    call.wait(3_000);
    assert!(failure(&call.events()).message.contains("when the call was over"));
}

#[test]
fn words_that_were_heard_stay_when_the_end_of_the_turn_has_none() {
    let mut call = opened();
    call.began();
    call.hear(800, 500);
    call.text(info("StartOfTurn", 0, 1.2, "When"));
    call.text(info("Update", 0, 1.4, "When do you open"));
    call.hear(240, 0);
    call.ended();
    call.text(info("EagerEndOfTurn", 0, 1.9, ""));
    call.text(info("EndOfTurn", 0, 2.0, ""));
    assert_eq!(call.events().last(), Some(&TurnEnded("When do you open".into())));
}
