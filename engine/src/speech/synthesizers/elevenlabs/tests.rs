use proptest::prelude::*;

use super::super::streaming::Streaming;
use super::super::testing::{Bench, message, pcm, play, samples, settings, steps};
use super::*;
use crate::speech::exchange::{Arrival, ExchangeFailure, SpeechFault, Transmit};

fn bench() -> Bench {
    Bench::new(Streaming::new(ElevenLabs::new(settings("wss://api.example.com/v1"))))
}

fn init(context: &str) -> Value {
    json!({ "text": " ", "context_id": context, "voice_settings": { "speed": 1.2 } })
}

fn text_of(context: &str, text: &str) -> Value {
    json!({ "text": text, "context_id": context })
}

fn close(context: &str) -> Value {
    json!({ "context_id": context, "close_context": true })
}

/// Audio with a tenth of a second for each character.
fn chunk(context: &str, chars: &str) -> Value {
    let chars: Vec<String> = chars.chars().map(String::from).collect();
    let starts: Vec<usize> = (0..chars.len()).map(|n| n * 100).collect();
    json!({
        "audio": STANDARD.encode(pcm(&samples(2_400 * chars.len()))),
        "contextId": context,
        "alignment": { "chars": chars, "charStartTimesMs": starts, "charDurationsMs": vec![100; chars.len()] },
        "normalizedAlignment": { "chars": ["x"], "charStartTimesMs": [0], "charDurationsMs": [1] },
    })
}

fn last(context: &str) -> Value {
    json!({ "audio": null, "isFinal": true, "contextId": context })
}

#[test]
fn two_lines_with_words() {
    let mut bench = bench();
    bench.pass(0);
    let (id, request) = bench.connect();
    assert_eq!(
        request.url,
        "wss://api.example.com/v1/text-to-speech/voice%2D1/multi-stream-input?model_id=model-1&language_code=en\
         &output_format=pcm_24000&auto_mode=true&sync_alignment=true&inactivity_timeout=180"
    );
    assert_eq!(request.headers, [("xi-api-key", "key-1".to_owned())]);
    bench.arrive(id, Arrival::Opened);
    bench.speak(1, "Hello there.");
    assert_eq!(bench.messages(), [init("line-1"), text_of("line-1", "Hello there. ")]);
    bench.speak(1, " How are you?");
    bench.finish(1);
    let flush = json!({ "context_id": "line-1", "flush": true });
    assert_eq!(bench.messages(), [text_of("line-1", "How are you? "), flush, close("line-1")]);
    bench.line(2, "Bye.");
    assert_eq!(bench.messages(), [0; 0]);

    bench.json(id, chunk("line-1", "Hello th"));
    bench.json(id, chunk("line-1", "ere. "));
    bench.json(id, chunk("line-1", "How are you?"));
    bench.json(id, last("line-1"));
    let told = bench.of(1);
    assert!(told.is_done);
    assert_eq!(told.samples.len(), 2_400 * 25);
    let text = "Hello there. How are you?";
    let words = [
        ("Hello", 500),
        ("Hello there.", 1_200),
        ("Hello there. How", 1_600),
        ("Hello there. How are", 2_000),
        (text, 2_500),
    ];
    assert_eq!(told.words_of(text), words);

    assert_eq!(bench.messages().first(), Some(&init("line-2")));
    bench.json(id, chunk("line-2", "Bye."));
    bench.json(id, json!({ "is_final": true, "context_id": "line-2" }));
    assert!(bench.of(2).is_done);
    bench.close();
    assert_eq!(bench.messages(), [json!({ "close_socket": true })]);
}

#[test]
fn a_cancelled_line_closes_its_context_and_what_comes_of_it_is_ignored() {
    let mut bench = bench();
    bench.speak(1, "A long line.");
    let id = bench.open();
    bench.json(id, chunk("line-1", "A lo"));
    bench.messages();
    bench.cancel(1);
    assert_eq!(bench.messages(), [close("line-1")]);
    bench.line(2, "Yes?");
    assert_eq!(bench.messages().first(), Some(&init("line-2")));
    bench.json(id, chunk("line-1", "ng"));
    bench.json(id, last("line-1"));
    bench.json(id, chunk("line-2", "Yes?"));
    bench.json(id, last("line-2"));
    assert_eq!((bench.of(2).samples.len(), bench.of(2).is_done), (9_600, true));
}

#[test]
fn at_most_five_contexts_are_open() {
    let mut bench = bench();
    bench.speak(1, "One.");
    let id = bench.open();
    bench.cancel(1);
    for line in 2..=5 {
        bench.speak(line, "More.");
        bench.cancel(line);
    }
    bench.messages();
    bench.line(6, "Six.");
    assert_eq!(bench.messages(), [0; 0]);
    bench.json(id, last("line-3"));
    assert_eq!(bench.messages().first(), Some(&init("line-6")));
    bench.json(id, chunk("line-6", "Six."));
    bench.json(id, last("line-6"));
    assert!(bench.of(6).is_done);

    // The others are never ended: the connection is replaced when a fifth one comes.
    bench.speak(7, "Seven.");
    bench.cancel(7);
    bench.messages();
    bench.pass(CLOSE_MS);
    assert!(bench.sent.contains(&Transmit::Drop { id }));
}

#[test]
fn signs_of_life_name_only_a_context_that_is_open() {
    let mut bench = bench();
    bench.pass(0);
    bench.open();
    bench.pass(KEEPALIVE_MS);
    assert_eq!(bench.messages(), [json!({ "text": "" })]);
    bench.speak(1, "One.");
    bench.messages();
    bench.pass(2_000);
    bench.json(0, chunk("line-1", "One."));
    bench.pass(KEEPALIVE_MS);
    assert_eq!(bench.messages(), [text_of("line-1", "")]);
    bench.finish(1);
    bench.messages();
    bench.pass(4_999);
    assert!(bench.messages().iter().all(|message| *message == json!({ "text": "" })));
}

#[test]
fn refused_keys_unknown_voices_and_errors() {
    for (reason, fault) in [
        ("invalid_api_key", SpeechFault::Operator),
        ("A voice with voice_id voice-1 does not exist.", SpeechFault::Operator),
        ("This request exceeds your quota", SpeechFault::Operator),
        ("Input timeout exceeded", SpeechFault::Provider),
    ] {
        let mut bench = bench();
        bench.line(1, "One.");
        let id = bench.open();
        bench.closed(id, 1008, reason);
        bench.pass(3_000);
        assert_eq!(bench.failure(1).fault, fault, "{reason}");
    }
    let mut bench = bench();
    bench.line(1, "One.");
    let (id, _) = bench.connect();
    bench.arrive(id, Arrival::Failed(ExchangeFailure::Rejected { status: 403, body: String::new() }));
    assert_eq!(bench.failure(1).fault, SpeechFault::Operator);
    bench.line(2, "Two.");
    let id = bench.open();
    bench.json(id, json!({ "message": "The system is busy", "error": "system_busy", "code": 1008 }));
    assert_eq!(bench.failure(2).fault, SpeechFault::Provider);
}

#[test]
fn garbage_and_times_out_of_range_are_no_words() {
    let mut bench = bench();
    bench.line(1, "One two three.");
    let id = bench.open();
    let odd = json!({
        "contextId": "line-1", "audio": STANDARD.encode(pcm(&samples(10))),
        "alignment": { "chars": ["One", " ", "two", " ", 7, "three.", " "],
            "charStartTimesMs": [-5e300, 0, 1e300, 0, 0, 100], "charDurationsMs": [0, 0, 1e300, 0, 0, 100, 1, 1] },
    });
    bench.json(id, odd);
    for text in
        ["{}", "[1]", r#"{"contextId":"other","audio":"AA"}"#, r#"{"contextId":"line-1","alignment":7}"#, "<"]
    {
        bench.arrive(id, Arrival::Message(SocketMessage::Text(text.to_owned())));
    }
    let ends: Vec<i64> = bench.of(1).words.iter().map(|word| word.end_ms).collect();
    assert_eq!(ends, [0, 600_000]);
    bench.json(id, json!({ "contextId": "line-1", "audio": "no base64" }));
    assert!(bench.failure(1).message.contains("cannot be read"));
}

#[test]
fn a_context_that_ends_before_its_text_has_failed() {
    let mut bench = bench();
    bench.speak(1, "One,");
    let id = bench.open();
    bench.json(id, chunk("line-1", "One,"));
    bench.json(id, last("line-1"));
    assert!(bench.failure(1).is_temporary);
    bench.line(2, "Two.");
    bench.json(id, last("line-2"));
    assert!(bench.failure(2).message.contains("no audio"));
}

proptest! {
    #[test]
    fn any_arrivals_keep_the_rules(steps in steps(message(&[
        ("contextId", &[r#""line-1""#, r#""line-2""#, r#""line-3""#, r#""line-4""#, r#""x""#]),
        ("audio", &[r#""AAAA""#, r#""AQ==""#, r#""?""#, "null", "1"]),
        ("isFinal", &["true", "null", r#""true""#]),
        ("alignment", &[r#"{"chars":["a"," ","b"," "],"charStartTimesMs":[0,1,2,3],"charDurationsMs":[1,1,1,1]}"#, "3"]),
        ("error", &[r#""system_busy""#]),
    ]))) {
        play(Streaming::new(ElevenLabs::new(settings("wss://api.example.com/v1"))), steps);
    }
}
