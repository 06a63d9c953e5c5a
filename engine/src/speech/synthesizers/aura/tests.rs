use proptest::prelude::*;

use super::super::streaming::Streaming;
use super::super::testing::{Bench, message, pcm, play, samples, settings, steps};
use super::*;
use crate::speech::exchange::{Arrival, ExchangeFailure, SpeechFault, Transmit};

fn bench() -> Bench {
    Bench::new(Streaming::new(Aura::new(settings("https://api.example.com/v1/"))))
}

fn speak(text: &str) -> Value {
    json!({ "type": "Speak", "text": text })
}

fn flush() -> Value {
    json!({ "type": "Flush" })
}

fn flushed(n: u64) -> Value {
    json!({ "type": "Flushed", "sequence_id": n })
}

#[test]
fn two_lines_are_spoken_one_after_the_other() {
    let mut bench = bench();
    bench.pass(0);
    let (id, request) = bench.connect();
    assert_eq!(
        request.url,
        "wss://api.example.com/v1/speak?model=voice-1&encoding=linear16&sample_rate=24000&speed=1.5"
    );
    assert_eq!(request.headers, [("authorization", "Token key-1".to_owned())]);
    bench.arrive(id, Arrival::Opened);
    bench.speak(1, "Hello there.");
    assert_eq!(bench.messages(), [speak("Hello there. "), flush()]);
    bench.speak(1, " How are you?");
    bench.finish(1);
    assert_eq!(bench.messages(), [speak("How are you? "), flush()]);
    bench.line(2, "Bye.");
    assert_eq!(bench.messages(), [0; 0], "the second line waits for the end of the first");

    let audio = pcm(&samples(600));
    bench.json(id, json!({ "type": "Metadata", "request_id": "r" }));
    // A piece may end inside a sample.
    bench.binary(id, &audio[..501]);
    bench.binary(id, &audio[501..1_000]);
    bench.json(id, flushed(0));
    assert_eq!(bench.of(1).part_ends, [12]);
    bench.binary(id, &audio[1_000..]);
    assert!(!bench.of(1).is_done);
    bench.json(id, flushed(1));
    assert!(bench.of(1).is_done);
    assert_eq!((bench.of(1).samples, bench.of(1).part_ends), (samples(600), vec![12, 25]));

    assert_eq!(bench.messages(), [speak("Bye. "), flush()]);
    bench.binary(id, &pcm(&samples(5)));
    bench.json(id, flushed(2));
    assert!(bench.of(2).is_done);
    assert_eq!(bench.voice.billed_chars(), [12 + 13 + 4]);
    bench.close();
    assert_eq!(bench.messages(), [json!({ "type": "Close" })]);
}

#[test]
fn after_clear_audio_is_discarded_until_cleared() {
    let mut bench = bench();
    bench.line(1, "A long line.");
    let id = bench.open();
    bench.messages();
    bench.binary(id, &pcm(&samples(10)));
    bench.cancel(1);
    assert_eq!(bench.messages(), [json!({ "type": "Clear" })]);
    bench.line(2, "Yes?");
    assert_eq!(bench.messages(), [0; 0]);
    bench.binary(id, &pcm(&samples(10)));
    bench.json(id, flushed(0));
    bench.json(id, json!({ "type": "Cleared", "sequence_id": 1 }));
    assert_eq!(bench.messages(), [speak("Yes? "), flush()]);
    bench.binary(id, &pcm(&samples(7)));
    bench.json(id, flushed(2));
    assert_eq!((bench.of(2).samples.len(), bench.of(2).is_done), (7, true));
}

#[test]
fn a_connection_that_does_not_clear_is_replaced() {
    let mut bench = bench();
    bench.line(1, "A long line.");
    bench.open();
    bench.cancel(1);
    bench.line(2, "Yes?");
    bench.pass(CLEAR_MS);
    assert!(bench.sent.iter().any(|sent| matches!(sent, Transmit::Drop { id: 0 })));
    let id = bench.open();
    assert_eq!(bench.messages(), [speak("Yes? "), flush()]);
    bench.binary(id, &pcm(&samples(7)));
    bench.json(id, flushed(0));
    assert!(bench.of(2).is_done);
}

#[test]
fn flushes_stay_within_the_limit() {
    let mut bench = bench();
    bench.speak(1, "One.");
    let id = bench.open();
    for _ in 0..30 {
        bench.speak(1, " More.");
    }
    let count = |messages: &[Value]| messages.iter().filter(|message| **message == flush()).count();
    assert_eq!(count(&bench.messages()), FLUSHES_MAX - FLUSHES_KEPT);
    bench.finish(1);
    assert_eq!(count(&bench.messages()), 1, "the text without a flush gets one at the end");
    bench.binary(id, &pcm(&samples(7)));
    for n in 0..13 {
        assert!(!bench.of(1).is_done);
        bench.json(id, flushed(n));
    }
    assert!(bench.of(1).is_done);
    assert_eq!(bench.of(1).part_ends.last(), Some(&184));

    // Seven lines more use up the rest; the next one waits.
    for line in 2..9 {
        bench.line(line, "Yes.");
        bench.binary(id, &pcm(&samples(7)));
        bench.json(id, flushed(0));
        assert!(bench.of(line).is_done);
    }
    bench.pass(40_000);
    bench.messages();
    bench.line(9, "Late.");
    assert_eq!(bench.messages(), [speak("Late. ")]);
    bench.pass(10_000);
    assert_eq!(bench.messages(), [0; 0], "waiting is no failure");
    bench.pass(10_000);
    assert_eq!(bench.messages(), [flush()]);
    bench.binary(id, &pcm(&samples(7)));
    bench.json(id, flushed(0));
    assert!(bench.of(9).is_done);
}

#[test]
fn a_connection_is_replaced_before_it_is_an_hour_old() {
    let mut bench = bench();
    bench.line(1, "One.");
    let id = bench.open();
    bench.binary(id, &pcm(&samples(7)));
    bench.json(id, flushed(0));
    bench.messages();
    bench.pass(Aura::CONNECTION_MS_MAX);
    const { assert!(Aura::CONNECTION_MS_MAX < 3_600_000) };
    assert_eq!(bench.sent.first(), Some(&Transmit::Drop { id }));
    let next = bench.open();
    assert_ne!(next, id);
}

#[test]
fn a_refused_key_fails_the_line_at_once_and_names_the_operator() {
    let mut bench = bench();
    bench.line(1, "One.");
    let (id, _) = bench.connect();
    let body =
        r#"{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials at api.example.com."}"#.to_owned();
    bench.arrive(id, Arrival::Failed(ExchangeFailure::Rejected { status: 401, body }));
    let failure = bench.failure(1);
    assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Operator, false));
    assert!(failure.message.contains("401") && !failure.message.contains("example"), "{}", failure.message);
}

#[test]
fn three_failed_attempts_fail_the_line_and_the_next_line_tries_again() {
    let mut bench = bench();
    bench.line(1, "One.");
    let (id, _) = bench.connect();
    bench.broken(id);
    assert!(bench.sent.is_empty());
    bench.pass(500);
    let (id, _) = bench.connect();
    bench.broken(id);
    bench.pass(1_999);
    assert!(bench.sent.is_empty());
    bench.pass(1);
    let (id, _) = bench.connect();
    bench.broken(id);
    let failure = bench.failure(1);
    assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Provider, true));
    assert!(!failure.message.contains("10.0.0.1"));
    bench.line(2, "Two.");
    let id = bench.open();
    bench.binary(id, &pcm(&samples(7)));
    bench.json(id, flushed(0));
    assert!(bench.of(2).is_done);
}

#[test]
fn a_lost_connection_repeats_a_line_that_was_not_heard_and_fails_one_that_was() {
    let mut bench = bench();
    bench.line(1, "One.");
    let id = bench.open();
    bench.messages();
    bench.closed(id, 1011, "");
    bench.pass(500);
    let id = bench.open();
    assert_eq!(bench.messages(), [speak("One. "), flush()]);
    bench.binary(id, &pcm(&samples(7)));
    bench.closed(id, 1006, "");
    let failure = bench.failure(1);
    assert_eq!((bench.of(1).samples.len(), failure.is_temporary), (7, true));
    // It worked, so it is opened again at once, before the next line.
    bench.open();
    bench.line(2, "Two.");
    assert_eq!(bench.messages(), [speak("Two. "), flush()]);
}

#[test]
fn an_idle_connection_that_closes_is_opened_again_when_it_is_needed() {
    let mut bench = bench();
    bench.pass(0);
    let id = bench.open();
    bench.closed(id, 1000, "idle");
    bench.pass(60_000);
    assert!(bench.sent.is_empty());
    bench.line(1, "One.");
    bench.open();
    assert_eq!(bench.messages(), [speak("One. "), flush()]);
}

#[test]
fn no_audio_late_audio_and_silence_in_the_middle_are_failures() {
    let mut bench = bench();
    bench.line(1, "One.");
    let id = bench.open();
    bench.json(id, flushed(0));
    assert!(bench.failure(1).message.contains("no audio"));

    bench.line(2, "Two.");
    bench.pass(2_999);
    assert_eq!(bench.of(2).failure, None);
    bench.pass(1);
    assert!(bench.failure(2).message.contains("3 s"));

    // What comes late of the second line must not be heard in the third.
    bench.line(3, "Three.");
    bench.binary(id, &pcm(&samples(7)));
    let id = bench.open();
    assert_eq!(bench.of(3).samples.len(), 0);
    bench.binary(id, &pcm(&samples(7)));
    bench.pass(5_000);
    assert!(bench.failure(3).message.contains("middle"));
}

#[test]
fn errors_and_garbage() {
    let mut bench = bench();
    bench.line(1, "One.");
    let id = bench.open();
    for text in ["", "{", "[]", "null", "<html>", r#"{"type":7}"#, r#"{"type":"Warning","code":"x"}"#] {
        bench.arrive(id, Arrival::Message(SocketMessage::Text(text.to_owned())));
    }
    bench.json(id, flushed(9));
    bench.json(id, flushed(10));
    assert!(bench.of(1).failure.is_some(), "no audio before the flush was answered");
    bench.line(2, "Two.");
    bench.json(id, json!({ "type": "Error", "code": "MODEL", "description": "model not found: voice-1" }));
    assert_eq!(bench.failure(2).fault, SpeechFault::Operator);
    bench.line(3, "Three.");
    for pause_ms in [0, 500, 2_000] {
        assert_eq!(bench.of(3).failure, None);
        bench.pass(pause_ms);
        let id = bench.open();
        bench.binary(id, &[0; 4 * 1024 * 1024 + 1]);
    }
    let failure = bench.failure(3);
    assert!(failure.message.contains("4 MiB") && failure.is_temporary, "{failure:?}");
}

#[test]
fn audio_of_a_line_is_bounded_however_fast_it_comes() {
    let mut bench = bench();
    bench.line(1, "One.");
    let id = bench.open();
    bench.messages();
    let minute = vec![1; 24_000 * 2 * 60];
    for _ in 0..10 {
        bench.binary(id, &minute);
    }
    assert_eq!(bench.of(1).failure, None);
    bench.binary(id, &minute);
    assert!(bench.failure(1).message.contains("ten minutes"));
    assert_eq!(bench.of(1).samples.len(), 24_000 * 600);
    assert_eq!(bench.messages(), [json!({ "type": "Clear" })]);
}

#[test]
fn lines_without_words_and_too_much_text_fail() {
    let mut bench = bench();
    bench.line(1, " … !");
    assert!(bench.failure(1).message.contains("no words"));
    bench.finish(2);
    assert!(bench.failure(2).message.contains("no words"));
    bench.speak(3, &"word ".repeat(20_000));
    assert!(bench.failure(3).message.contains("too long"));
    bench.finish(3);
    assert!(bench.sent.is_empty());
    // Text that no message can hold goes in several.
    bench.line(4, &"word ".repeat(1_000));
    bench.open();
    let messages = bench.messages();
    assert_eq!(messages.len(), 4);
    assert!(messages.iter().all(|message| message.to_string().len() < 2_000));
}

#[test]
fn lines_that_wait_are_bounded() {
    let mut bench = bench();
    for line in 1..=65 {
        bench.line(line, "Wait.");
    }
    assert_eq!(bench.of(64).failure, None);
    assert!(bench.failure(65).message.contains("Too many"));
    bench.pass(3_000);
    assert!(bench.failure(1).is_temporary);
    bench.line(66, "There is room again.");
    assert_eq!(bench.of(66).failure, None);
}

proptest! {
    #[test]
    fn any_arrivals_keep_the_rules(steps in steps(message(&[
        ("type", &[r#""Flushed""#, r#""Cleared""#, r#""Error""#, r#""Metadata""#, "1"]),
        ("description", &[r#""unauthorized""#, r#""busy""#]),
    ]))) {
        play(Streaming::new(Aura::new(settings("wss://api.example.com/v1"))), steps);
    }
}
