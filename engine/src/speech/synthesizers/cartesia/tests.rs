use proptest::prelude::*;

use super::super::lines::STALL_MS;
use super::super::streaming::Streaming;
use super::super::testing::{Bench, message, pcm, play, samples, settings, steps};
use super::*;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFault, Transmit};

fn bench() -> Bench {
    Bench::new(Streaming::new(Cartesia::new(settings("wss://api.example.com"))))
}

fn chunk(context: &str, count: usize) -> Value {
    let data = STANDARD.encode(pcm(&samples(count)));
    json!({ "type": "chunk", "data": data, "done": false, "status_code": 206, "step_time": 9.1, "context_id": context })
}

fn done(context: &str) -> Value {
    json!({ "type": "done", "done": true, "status_code": 200, "context_id": context })
}

#[test]
fn two_lines_with_words() {
    let mut bench = bench();
    bench.pass(0);
    let (id, request) = bench.connect();
    assert_eq!(request.url, "wss://api.example.com/tts/websocket?cartesia_version=2026-08-14");
    let headers = [("authorization", "Bearer key-1".to_owned()), ("cartesia-version", VERSION.to_owned())];
    assert_eq!(request.headers, headers);
    bench.arrive(id, Arrival::Opened);
    bench.speak(1, "Hello there.");
    let first = bench.messages();
    let expected = json!({
        "context_id": "line-1", "model_id": "model-1", "transcript": "Hello there. ", "voice": { "id": "voice-1" },
        "output_format": { "container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000 },
        "continue": true, "max_buffer_delay_ms": 0, "add_timestamps": true, "use_normalized_timestamps": false,
        "language": "en", "generation_config": { "speed": 1.5 },
    });
    assert_eq!(first, std::slice::from_ref(&expected));
    bench.finish(1);
    let mut end = expected;
    end["transcript"] = json!("");
    end["continue"] = json!(false);
    assert_eq!(bench.messages(), [end]);

    bench.json(id, chunk("line-1", 2_400));
    let times =
        json!({ "words": ["Hello", "<break time='1s'/>there."], "start": [0.0, 0.4], "end": [0.35, 0.8] });
    bench.json(id, json!({ "type": "timestamps", "context_id": "line-1", "word_timestamps": times }));
    bench.json(id, chunk("line-1", 2_400));
    bench.json(id, json!({ "type": "flush_done", "context_id": "line-1", "flush_id": 1, "done": false }));
    assert!(!bench.of(1).is_done);
    bench.json(id, done("line-1"));
    assert!(bench.of(1).is_done);
    assert_eq!(bench.of(1).samples.len(), 4_800);
    assert_eq!(bench.of(1).words_of("Hello there."), [("Hello", 350), ("Hello there.", 800)]);

    bench.line(2, "Bye.");
    assert_eq!(bench.messages()[0]["context_id"], "line-2");
    bench.json(id, chunk("line-2", 7));
    bench.json(id, done("line-2"));
    assert!(bench.of(2).is_done);
}

#[test]
fn a_cancelled_line_is_cancelled_there_and_what_comes_of_it_is_ignored() {
    let mut bench = bench();
    bench.line(1, "A long line.");
    let id = bench.open();
    bench.json(id, chunk("line-1", 7));
    bench.messages();
    bench.cancel(1);
    assert_eq!(bench.messages(), [json!({ "context_id": "line-1", "cancel": true })]);
    bench.line(2, "Yes?");
    bench.json(id, chunk("line-1", 7));
    bench.json(id, done("line-1"));
    let late = json!({ "type": "error", "context_id": "line-1", "status_code": 400, "message": "context has closed" });
    bench.json(id, late);
    bench.json(id, chunk("line-2", 5));
    bench.json(id, done("line-2"));
    assert_eq!((bench.of(2).samples.len(), bench.of(2).is_done), (5, true));
}

#[test]
fn errors_of_a_line_and_of_the_connection() {
    let mut bench = bench();
    bench.line(1, "One.");
    let id = bench.open();
    let unknown = json!({ "type": "error", "title": "Voice not found", "message": "no voice-1", "status_code": 404,
        "error_code": "voice_not_found", "context_id": "line-1" });
    bench.json(id, unknown);
    let failure = bench.failure(1);
    assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Operator, false));
    bench.line(2, "Two.");
    bench.json(id, chunk("line-2", 5));
    bench.json(id, json!({ "type": "error", "message": "overloaded", "status_code": 503 }));
    let failure = bench.failure(2);
    assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Provider, true));
    assert!(bench.sent.contains(&Transmit::Drop { id }));
    bench.line(3, "Three.");
    let id = bench.open();
    bench.json(id, json!({ "type": "chunk", "context_id": "line-3" }));
    assert!(bench.failure(3).message.contains("cannot be read"));
}

#[test]
fn only_lines_that_made_audio_are_billed() {
    let error =
        |code: u16| json!({ "type": "error", "message": "no", "status_code": code, "context_id": "line-1" });
    let billed = |play: &dyn Fn(&mut Bench, ExchangeId)| {
        let mut bench = bench();
        bench.speak(1, "One.");
        let id = bench.open();
        assert_eq!(bench.voice.billed_chars(), [4], "as long as it may make audio");
        play(&mut bench, id);
        bench.voice.billed_chars()
    };
    assert_eq!(billed(&|bench, id| bench.json(id, error(404))), [0]);
    assert_eq!(billed(&|bench, id| bench.json(id, json!({ "type": "error", "status_code": 401 }))), [0]);
    assert_eq!(billed(&|bench, _| bench.pass(3_000)), [0], "too late");
    let sent_again = billed(&|bench, id| {
        bench.broken(id);
        bench.pass(500);
        bench.open();
    });
    assert_eq!(sent_again, [4], "once");
    let never_again = billed(&|bench, id| {
        bench.broken(id);
        for pause_ms in [500, 2_000] {
            bench.pass(pause_ms);
            let (id, _) = bench.connect();
            bench.broken(id);
        }
    });
    assert_eq!(never_again, [0]);
    let broke_off = billed(&|bench, id| {
        bench.json(id, chunk("line-1", 7));
        bench.speak(1, " Two.");
        bench.json(id, error(503));
    });
    assert_eq!(broke_off, [4 + 5]);
    assert_eq!(billed(&|bench, _| bench.cancel(1)), [4], "the provider was at work on it");
}

#[test]
fn a_line_whose_end_is_not_told_is_done_if_its_audio_can_be_all() {
    let ends = |chunks: usize| {
        let mut bench = bench();
        bench.line(1, "We open at ten.");
        let id = bench.open();
        let times = json!({ "words": ["We", "open", "at", "ten."], "start": [0, 0, 0, 0], "end": [0.2, 0.5, 0.6, 1.0] });
        bench.json(id, json!({ "type": "timestamps", "context_id": "line-1", "word_timestamps": times }));
        (0..chunks).for_each(|_| bench.json(id, chunk("line-1", 2_400)));
        bench.pass(STALL_MS);
        assert!(bench.sent.contains(&Transmit::Drop { id }), "the connection is not used again");
        bench.of(1)
    };
    assert!(ends(10).is_done);
    assert_eq!(
        ends(6).failure.map(|failure| failure.message),
        Some("Cartesia stopped in the middle of the line".into())
    );
}

#[test]
fn the_connection_is_renewed_while_nobody_speaks() {
    let mut bench = bench();
    bench.pass(0);
    let id = bench.open();
    bench.speak(1, "One.");
    bench.json(id, chunk("line-1", 5));
    bench.pass(Cartesia::CONNECTION_MS_MAX + 60_000);
    assert!(!bench.sent.contains(&Transmit::Drop { id }), "not in the middle of a line");
    bench.finish(1);
    bench.json(id, done("line-1"));
    bench.pass(0);
    assert!(bench.sent.contains(&Transmit::Drop { id }));
    bench.open();
}

proptest! {
    #[test]
    fn any_arrivals_keep_the_rules(steps in steps(message(&[
        ("context_id", &[r#""line-1""#, r#""line-2""#, r#""line-3""#, r#""line-4""#, r#""x""#]),
        ("type", &[r#""chunk""#, r#""timestamps""#, r#""done""#, r#""chunk""#, r#""error""#]),
        ("data", &[r#""AAAA""#, r#""AQ==""#, r#""?""#, "null"]),
        ("status_code", &["400", "503", "99999"]),
        ("word_timestamps", &[r#"{"words":["a","b"],"start":[0,1],"end":[0.5,1e308]}"#, "3"]),
    ]))) {
        play(Streaming::new(Cartesia::new(settings("wss://api.example.com"))), steps);
    }
}
