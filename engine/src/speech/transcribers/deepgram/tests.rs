use super::*;
use crate::base::limits::{SPEECH_MESSAGE_BYTES_MAX, SPEECH_TEXT_BYTES_MAX};
use crate::speech::exchange::{ExchangeFailure, SpeechFault};
use crate::speech::transcribers::test_driver::{Driver, failure, final_, late, partial, settings};
use serde_json::json;

fn driver(rate: Rate) -> Driver {
    Driver::new(KIND, settings("nova-3"), rate)
}

/// As Deepgram sends it, with what we do not read.
fn results(start: f64, end: f64, text: &str, is_final: bool, from_finalize: bool) -> Value {
    json!({
        "type": "Results", "channel_index": [0, 1], "start": start, "duration": end - start,
        "is_final": is_final, "speech_final": is_final, "from_finalize": from_finalize,
        "channel": {"alternatives": [{"transcript": text, "confidence": 0.99,
            "words": [{"word": "x", "start": start, "end": end, "confidence": 0.9, "punctuated_word": "X"}]}]},
        "metadata": {"request_id": "r", "model_info": {"name": "general-nova-3"}},
    })
}

#[test]
fn connects_as_the_line_is() {
    let mut wide = driver(Rate::Khz24);
    wide.hear(20, 0);
    let request = wide.connection();
    assert_eq!(
        request.url,
        "wss://stt.example/v1/listen?model=nova-3&encoding=linear16&sample_rate=16000&channels=1\
         &interim_results=true&smart_format=true&endpointing=300&language=en-GB\
         &keyterm=Sidetone&keyterm=blue+whale"
    );
    assert_eq!(request.headers, [("authorization", "Token key-of-the-operator".to_owned())]);
    wide.open();
    wide.hear(40, 258);
    let bytes = wide.sent_bytes();
    assert_eq!((bytes.len(), bytes.last_chunk::<2>()), (3 * 640 - 640, Some(&[2, 1])));

    let mut phone = driver(Rate::Khz8);
    phone.hear(20, 0);
    assert!(phone.connection().url.contains("encoding=mulaw&sample_rate=8000"));
    phone.open();
    phone.hear(80, 0);
    assert_eq!(phone.sent_bytes(), [g711::SILENCE; 640]);
}

#[test]
fn a_dialogue() {
    let mut call = driver(Rate::Khz8);
    call.hear(1_000, 0);
    call.open();
    call.utter(1_000);
    let sent = call.sent();
    assert_eq!(sent.last(), Some(&SocketMessage::Text(r#"{"type":"Finalize"}"#.into())));
    let bytes: usize = sent.iter().map(|m| if let SocketMessage::Binary(b) = m { b.len() } else { 0 }).sum();
    assert_eq!(bytes, 8 * 2_240, "everything up to the end is sent before");
    call.text(json!({"type": "SpeechStarted", "channel": [0, 1], "timestamp": 1.0}));
    call.text(results(0.0, 1.5, "I would", false, false));
    call.text(results(0.0, 1.5, "I would", false, false));
    call.text(results(0.0, 1.9, "I would like", true, false));
    call.text(results(1.9, 2.1, "two", false, false));
    call.text(results(0.0, 1.9, "I would like", true, false));
    assert_eq!(call.events(), [partial("I would"), partial("I would like"), partial("I would like two")]);
    call.text(results(1.9, 2.24, "two whales.", true, true));
    call.text(json!({"type": "UtteranceEnd", "channel": [0, 1], "last_word_end": 2.0}));
    assert_eq!(call.events(), [final_("I would like two whales.")]);
    call.hear(500, 0);
    call.utter(600);
    call.text(results(2.24, 3.58, "", true, true));
    assert_eq!(call.events(), [final_("")]);
    assert_eq!(call.transcriber.billed_ms(), 3_580);
    call.close();
    assert_eq!(call.sent_texts().last().map(String::as_str), Some(r#"{"type":"CloseStream"}"#));
    call.text(json!({"type": "Metadata", "duration": 3.58}));
    call.arrive(Arrival::Closed { code: 1000, reason: String::new() });
    assert_eq!((call.events(), call.transcriber.poll_timeout()), (vec![], None));
}

#[test]
fn an_end_that_is_not_confirmed() {
    let mut call = driver(Rate::Khz16);
    call.hear(500, 0);
    call.open();
    call.utter(1_000);
    // Everything was finalised by itself, and the answer to Finalize does not come.
    call.text(results(0.0, 1.7, "Yes.", true, false));
    assert_eq!(call.events(), [final_("Yes.")]);

    call.utter(1_000);
    call.wait(10);
    call.text(results(1.7, 2.0, "No", false, false));
    call.wait(UNCONFIRMED_MS);
    assert_eq!(call.events(), [partial("No"), final_("No")]);
    // What belongs to it and comes later is nobody else's.
    call.utter(1_000);
    call.text(results(1.7, 2.98, "No.", true, true));
    call.text(results(1.7, 2.98, "No.", true, true));
    assert_eq!(call.events(), [late("No", "No.")]);
    call.text(results(2.98, 4.22, "Maybe.", true, true));
    assert_eq!(call.events(), [final_("Maybe.")]);
}

#[test]
fn words_that_were_heard_stay_when_the_final_result_is_empty() {
    let mut call = driver(Rate::Khz16);
    call.hear(500, 0);
    call.open();
    call.utter(1_000);
    call.text(results(0.0, 1.5, "When do you", false, false));
    call.text(results(0.0, 1.74, "", true, true));
    assert_eq!(call.events(), [partial("When do you"), final_("When do you")]);
    // The result itself comes late.
    call.wait(800);
    call.text(results(0.0, 1.74, "When do you open?", true, true));
    call.text(results(0.0, 1.74, "When do you open?", true, true));
    assert_eq!(call.events(), [late("When do you", "When do you open?")]);
    // Nobody spoke: the provider takes back what it heard in the noise.
    call.hear(500, 0);
    call.text(results(1.74, 2.1, "the", false, false));
    call.text(results(1.74, 2.2, "", true, false));
    call.utter(1_000);
    call.events();
    call.text(results(2.2, 3.48, "", true, true));
    assert_eq!(call.events(), [final_("")]);
}

#[test]
fn a_provider_that_is_behind_is_waited_for_while_it_tells_something() {
    let mut call = driver(Rate::Khz16);
    call.hear(500, 0);
    call.open();
    call.utter(1_000);
    let told = ["I", "I would", "I would like"];
    for text in told {
        call.wait(UNCONFIRMED_MS - 500);
        call.text(results(0.0, 1.2, text, false, false));
    }
    assert_eq!(call.events(), told.map(partial));
    call.text(results(0.0, 1.74, "I would like two.", true, true));
    assert_eq!(call.events(), [final_("I would like two.")]);
}

#[test]
fn utterances_keep_their_own_words() {
    let mut call = driver(Rate::Khz16);
    call.hear(500, 0);
    call.open();
    call.utter(760); // ends at 1.5 s
    call.hear(200, 0);
    call.utter(760); // ends at 2.7 s
    call.text(results(0.0, 1.5, "One.", true, true));
    call.text(results(1.5, 2.7, "Two.", true, true));
    assert_eq!(call.events(), [final_("One."), final_("Two.")]);
    // Words outside of any utterance are no part of a later one.
    call.hear(3_000, 0);
    call.text(results(2.7, 4.0, "[echo]", true, false));
    call.hear(2_000, 0);
    call.began();
    call.hear(500, 900);
    call.ended();
    call.text(results(4.0, 8.2, "Three.", true, true));
    let told = call.events();
    assert_eq!(told.last(), Some(&final_("Three.")), "{told:?}");
}

#[test]
fn a_break_in_mid_utterance_is_mended() {
    let mut call = driver(Rate::Khz8);
    call.hear(1_000, 0);
    call.open();
    call.began();
    call.hear(1_000, 500);
    call.text(results(0.0, 1.5, "I would like", true, false));
    call.text(results(1.5, 1.9, "to", false, false));
    call.sent();
    call.break_off();
    call.hear(500, 600);
    call.open();
    // From 1.5 s on, which was not final: 0.5 s of it, and what came during the break.
    let again = call.sent_bytes();
    assert_eq!(again.len(), 8 * 1_000);
    assert_eq!(again[0], g711::encode(&[500])[0]);
    call.hear(240, 0);
    call.ended();
    // The new connection's time begins at 1.5 s.
    call.text(results(0.0, 1.24, "to order.", true, true));
    let told = call.events();
    assert_eq!(told.last(), Some(&final_("I would like to order.")), "{told:?}");
}

#[test]
fn an_utterance_that_ended_before_the_break_is_finalised_again() {
    let mut call = driver(Rate::Khz8);
    call.hear(500, 0);
    call.open();
    call.utter(1_000);
    call.break_off();
    call.sent();
    call.hear(100, 0);
    call.open();
    let sent = call.sent();
    let finalize = SocketMessage::Text(r#"{"type":"Finalize"}"#.into());
    let at = sent.iter().position(|message| *message == finalize).unwrap();
    assert_eq!(at, sent[..at].iter().filter(|message| matches!(message, SocketMessage::Binary(_))).count());
    assert!(sent.len() > at + 1, "the audio after it follows");
    call.text(results(0.0, 1.74, "Hello.", true, true));
    assert_eq!(call.events().last(), Some(&final_("Hello.")));
}

#[test]
fn a_server_that_does_not_answer_is_asked_again_and_then_given_up() {
    let mut call = driver(Rate::Khz8);
    call.hear(500, 0);
    call.open();
    call.utter(500);
    for _ in 0..3 {
        call.wait(7_000);
        call.open();
        assert_eq!(call.events(), []);
    }
    call.wait(7_000);
    let told = call.events();
    assert_eq!(failure(&told).message, "Deepgram did not answer in time");
    // The next utterance gets another chance.
    call.utter(500);
    call.open();
    assert!(call.sent_texts().contains(&r#"{"type":"Finalize"}"#.to_owned()));
}

#[test]
fn a_refused_key_is_the_operators_fault_and_fails_every_utterance() {
    let mut call = driver(Rate::Khz8);
    call.hear(200, 0);
    call.began();
    call.hear(200, 9);
    call.refuse(401, r#"{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials key-of-the-operator"}"#);
    for _ in 0..2 {
        call.ended();
        let told = call.events();
        let failure = failure(&told);
        assert_eq!(failure.message, "Deepgram rejected the API key (401): Invalid credentials …");
        assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Operator, false));
        call.utter(100);
        call.events();
    }
    call.transmits();
    call.wait(60_000);
    assert_eq!(call.transmits(), [], "it is not tried again");
}

#[test]
fn pages_garbage_and_closing_in_mid_sentence() {
    let mut call = driver(Rate::Khz8);
    call.hear(100, 0);
    call.utter(500);
    for _ in 0..4 {
        call.refuse(200, "<!doctype html><title>Welcome</title>");
        call.wait(2_500);
    }
    let told = call.events();
    assert_eq!(failure(&told).fault, SpeechFault::Provider);

    let mut call = driver(Rate::Khz8);
    call.hear(100, 0);
    call.open();
    for noise in ["", "{", "[]", "null", "\"Results\"", r#"{"type":"Results","start":"x"}"#, r#"{"type":7}"#]
    {
        call.text(noise);
    }
    for odd in [
        r#"{"type":"Results"}"#,
        r#"{"type":"Results","is_final":null,"channel":{"alternatives":[]}}"#,
        r#"{"type":"Results","start":-5,"duration":1e308,"is_final":true,"channel":{}}"#,
        r#"{"type":"Whatever","channel":[0,1]}"#,
    ] {
        call.text(odd);
    }
    call.utter(500);
    call.arrive(Arrival::Closed { code: 1011, reason: "NET-0001 at stt.example".into() });
    call.open();
    call.text(results(0.0, 0.84, "Hello.", true, true));
    assert_eq!(call.events(), [final_("Hello.")]);
    call.text(json!({"type": "Error", "description": "overloaded", "message": "x", "variant": "Y"}));
    call.wait(500);
    assert!(matches!(call.transmits().last(), Some(Transmit::Connect { .. })));
    call.arrive(Arrival::Failed(ExchangeFailure::Timeout));
}

#[test]
fn silence_is_kept_alive_and_little_is_kept_of_it() {
    let mut call = driver(Rate::Khz8);
    call.hear(100, 0);
    call.open();
    call.sent();
    call.wait(11_000);
    assert_eq!(call.sent_texts(), [r#"{"type":"KeepAlive"}"#; 2]);
    call.hear(8_000, 0);
    call.break_off();
    call.sent();
    call.open();
    assert!(call.sent_bytes().len() <= 8 * 2_100);
}

#[test]
fn a_flood_of_any_kind_is_bounded() {
    let mut flood = Deepgram::new(&settings("nova-3"), Rate::Khz8);
    flood.hear(0, &[0; 8_000]);
    flood.arrived(0, 0, Arrival::Opened);
    flood.speech_began(0);
    for n in 0..2_000 {
        let text = results(0.0, 0.0001, &format!("word {n} {}", "very ".repeat(200)), n % 2 == 0, n % 3 == 0);
        flood.arrived(n, 0, Arrival::Message(SocketMessage::Text(text.to_string())));
        flood.hear(n, &[1; 8_000]);
    }
    assert!(flood.current.text.len() <= SPEECH_TEXT_BYTES_MAX);
    assert!(flood.log.end() - flood.log.start() <= 80_000);
    assert!(flood.events.pop().is_some() && flood.events.pop().is_none(), "partial texts replace each other");
    let huge = "x".repeat(SPEECH_MESSAGE_BYTES_MAX);
    let huge = results(0.0, 1.0, &huge, true, true).to_string();
    flood.arrived(3_000, 0, Arrival::Message(SocketMessage::Text(huge)));
    assert!(!flood.link.is_open(), "a message beyond the limit ends the connection");
}

#[test]
fn at_the_end_of_a_call_the_last_words_come() {
    let mut call = driver(Rate::Khz8);
    call.hear(100, 0);
    call.open();
    call.utter(500);
    call.text(results(0.0, 0.5, "Good", true, false));
    call.close();
    call.text(results(0.5, 0.7, "bye.", true, false));
    call.arrive(Arrival::Closed { code: 1000, reason: String::new() });
    assert_eq!(call.events().last(), Some(&final_("Good bye.")));
    call.utter(100);
    assert!(failure(&call.events()).message.contains("when the call was over"));

    let mut unreachable = driver(Rate::Khz8);
    unreachable.hear(100, 0);
    unreachable.utter(500);
    unreachable.close();
    failure(&unreachable.events());
    assert_eq!(unreachable.transcriber.poll_timeout(), None);
}
