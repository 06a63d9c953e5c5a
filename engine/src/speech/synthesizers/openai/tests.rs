use proptest::prelude::*;
use serde_json::Value;

use super::super::testing::{Bench, message, pcm, play, samples, settings, steps};
use super::*;
use crate::speech::exchange::SpeechFault;

fn bench() -> Bench {
    Bench::new(OpenAi::new(settings("https://api.example.com/v1")))
}

/// The requests since the last look, by their text.
fn asked(bench: &mut Bench) -> Vec<(ExchangeId, String)> {
    let requests = bench.requests().into_iter();
    let text =
        |request: HttpRequest| serde_json::from_slice::<Value>(&request.body).unwrap()["input"].clone();
    requests.map(|(id, request)| (id, text(request).as_str().unwrap().to_owned())).collect()
}

fn answer(bench: &mut Bench, id: ExchangeId, count: usize) {
    bench.head(id, 200, "audio/pcm");
    bench.body(id, &pcm(&samples(count)));
    bench.arrive(id, Arrival::End);
}

#[test]
fn two_lines_with_a_request_for_each_part() {
    let mut bench = bench();
    bench.speak(1, "Hello there.");
    let (id, request) = bench.requests().remove(0);
    assert_eq!((request.method, request.url.as_str()), ("POST", "https://api.example.com/v1/audio/speech"));
    assert!(request.headers.contains(&("authorization", "Bearer key-1".to_owned())));
    assert_eq!(
        serde_json::from_slice::<Value>(&request.body).unwrap(),
        json!({ "model": "model-1", "input": "Hello there.", "voice": "voice-1", "response_format": "pcm", "speed": 1.5 })
    );
    bench.speak(1, " How are you?");
    bench.speak(1, " Good!");
    bench.finish(1);
    bench.line(2, "Bye.");
    assert!(bench.requests().is_empty(), "the next part waits for the first audio of this one");

    let audio = pcm(&samples(600));
    bench.head(id, 200, "audio/pcm");
    bench.body(id, &audio[..601]);
    let second = asked(&mut bench);
    assert_eq!(second, [(1, "How are you?".to_owned())]);
    // The second part is faster than the first, and waits.
    answer(&mut bench, 1, 50);
    assert_eq!(bench.of(1).samples.len(), 300);
    assert!(bench.requests().is_empty(), "one ahead, no more");
    bench.body(id, &audio[601..]);
    bench.arrive(id, Arrival::End);
    assert_eq!(bench.of(1).samples, [samples(600), samples(50)].concat());
    assert_eq!(bench.of(1).part_ends, [12, 25]);
    assert_eq!(asked(&mut bench), [(2, "Good!".to_owned())]);
    answer(&mut bench, 2, 7);
    assert!(bench.of(1).is_done);
    assert_eq!(asked(&mut bench), [(3, "Bye.".to_owned())]);
    answer(&mut bench, 3, 7);
    assert!(bench.of(2).is_done);
    assert_eq!(bench.voice.billed_chars(), [12 + 12 + 5 + 4]);
    assert_eq!(bench.voice.poll_timeout(), None);
}

#[test]
fn a_cancelled_line_is_dropped_and_the_next_one_goes_on() {
    let mut bench = bench();
    bench.speak(1, "One.");
    bench.line(1, " Two.");
    bench.line(2, "Three.");
    bench.head(0, 200, "audio/pcm");
    bench.body(0, &pcm(&samples(60)));
    bench.sent.clear();
    bench.cancel(1);
    let dropped: Vec<_> = bench.sent.extract_if(.., |sent| matches!(sent, Transmit::Drop { .. })).collect();
    assert_eq!(dropped, [Transmit::Drop { id: 0 }, Transmit::Drop { id: 1 }]);
    bench.body(0, &pcm(&samples(60)));
    bench.arrive(0, Arrival::End);
    assert_eq!(asked(&mut bench), [(2, "Three.".to_owned())]);
    answer(&mut bench, 2, 7);
    assert_eq!(bench.of(2).samples.len(), 7);
    assert!(bench.of(2).is_done);
    bench.line(3, "Four.");
    bench.close();
    assert!(bench.sent.contains(&Transmit::Drop { id: 3 }));
}

#[test]
fn refused_keys_and_unknown_voices_are_the_operators() {
    for (status, body) in [
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: key-1234567890123456789012345.","type":"invalid_request_error"}}"#,
        ),
        (400, r#"{"error":{"message":"Voice voice-1 not found"}}"#),
    ] {
        let mut bench = bench();
        bench.line(1, "One.");
        bench.head(0, status, "application/json");
        bench.body(0, body.as_bytes());
        bench.arrive(0, Arrival::End);
        let failure = bench.failure(1);
        assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Operator, false));
        assert!(failure.message.contains(&status.to_string()) && !failure.message.contains("1234567"));
        assert_eq!(bench.requests().len(), 1);
    }
}

#[test]
fn a_server_that_fails_once_is_asked_again() {
    let mut bench = bench();
    bench.line(1, "One.");
    bench.broken(0);
    bench.head(1, 200, "audio/pcm");
    bench.body(1, &pcm(&samples(60)));
    bench.broken(1);
    assert_eq!((bench.of(1).samples.len(), bench.failure(1).is_temporary), (60, true));
    bench.line(2, "Two.");
    for id in [2, 3] {
        bench.head(id, 503, "text/html");
        bench.body(id, b"<html>busy</html>");
        bench.arrive(id, Arrival::End);
    }
    assert_eq!(bench.failure(2).message, "The speech server answered with status 503");
    assert_eq!(bench.requests().len(), 4);
    bench.line(3, "Three.");
    for (id, body) in [(4, &b"slow down"[..]), (5, b"You exceeded your current quota")] {
        bench.head(id, 429, "text/plain");
        bench.body(id, body);
        bench.arrive(id, Arrival::End);
    }
    assert!(!bench.failure(3).is_temporary);
    assert_eq!(bench.requests().len(), 2, "an account without money is not asked again");
}

#[test]
fn other_bodies_with_status_200_are_failures() {
    for (content_type, body, named) in [
        ("text/html", "<html>", "text/html"),
        ("", "{\"error\": \"no such voice\"}", "text instead"),
        ("audio/mpeg", "ID3\u{4}0000000000000000000", "MP3"),
    ] {
        let mut bench = bench();
        bench.line(1, "One.");
        bench.head(0, 200, content_type);
        bench.body(0, body.as_bytes());
        let failure = bench.failure(1);
        assert!(
            failure.message.contains(named) && failure.message.contains("check its base URL"),
            "{failure:?}"
        );
        assert!(failure.is_temporary, "the next line may be spoken: {failure:?}");
        assert!(bench.sent.contains(&Transmit::Drop { id: 0 }));
    }
}

#[test]
fn no_audio_late_audio_and_silence_in_the_middle_are_failures() {
    let mut bench = bench();
    bench.line(1, "One.");
    bench.head(0, 200, "audio/pcm");
    bench.arrive(0, Arrival::End);
    assert!(bench.failure(1).message.contains("no audio"));

    bench.line(2, "Two.");
    bench.pass(2_999);
    assert_eq!(bench.of(2).failure, None);
    bench.pass(1);
    assert!(bench.failure(2).message.contains("3 s"));
    assert!(bench.sent.contains(&Transmit::Drop { id: 1 }));

    bench.line(3, "Three.");
    bench.head(2, 200, "audio/pcm");
    bench.body(2, &pcm(&samples(60)));
    bench.pass(400);
    bench.body(2, &pcm(&samples(4_800)));
    bench.pass(4_999);
    assert_eq!(bench.of(3).failure, None);
    bench.pass(1);
    assert!(bench.failure(3).message.contains("middle"));

    // A body that trickles without end.
    bench.line(4, "Four.");
    bench.head(3, 200, "audio/pcm");
    bench.body(3, &pcm(&samples(60)));
    for _ in 0..4 {
        bench.pass(1_000);
        bench.body(3, &[0; 2]);
    }
    bench.pass(1_000);
    assert!(bench.failure(4).message.contains("middle"));
}

#[test]
fn a_body_that_never_ends_is_done_when_its_audio_can_be_all() {
    let mut bench = bench();
    bench.speak(1, "We open at ten. ");
    bench.line(1, "See you.");
    let id = bench.requests()[0].0;
    bench.head(id, 200, "audio/pcm");
    bench.body(id, &pcm(&samples(24_000)));
    let next = bench.requests()[0].0;
    bench.head(next, 200, "audio/pcm");
    bench.body(next, &pcm(&samples(12_000)));
    bench.pass(5_000);
    assert!(bench.sent.contains(&Transmit::Drop { id }));
    assert_eq!((bench.of(1).samples.len(), bench.of(1).failure), (36_000, None), "the next part is spoken");
    bench.arrive(next, Arrival::End);
    assert!(bench.of(1).is_done);
}

#[test]
fn only_requests_that_made_audio_are_billed() {
    let billed = |play: fn(&mut Bench)| {
        let mut bench = bench();
        bench.line(1, "One.");
        assert_eq!(bench.voice.billed_chars(), [4], "as long as it may make audio");
        play(&mut bench);
        bench.voice.billed_chars()
    };
    for (status, content_type, body) in [
        (401, "application/json", "{}"),
        (400, "application/json", "{}"),
        (200, "text/html", "<html>"),
        (200, "audio/pcm", ""),
    ] {
        let mut bench = bench();
        bench.line(1, "One.");
        bench.head(0, status, content_type);
        bench.body(0, body.as_bytes());
        bench.arrive(0, Arrival::End);
        assert_eq!(
            (bench.failure(1).message.is_empty(), bench.voice.billed_chars()),
            (false, vec![0]),
            "{status}"
        );
    }
    let never_reached = billed(|bench| {
        bench.broken(0);
        bench.broken(1);
    });
    assert_eq!(never_reached, [0]);
    assert_eq!(billed(|bench| bench.pass(3_000)), [0], "too late");
    let at_the_second_attempt = billed(|bench| {
        bench.broken(0);
        answer(bench, 1, 60);
    });
    assert_eq!(at_the_second_attempt, [4]);
    let broke_off = billed(|bench| {
        bench.head(0, 200, "audio/pcm");
        bench.body(0, &pcm(&samples(60)));
        bench.broken(0);
    });
    assert_eq!(broke_off, [4]);
    assert_eq!(billed(|bench| bench.cancel(1)), [4], "the server was at work on it");
}

#[test]
fn too_much_audio_ahead_of_its_turn_is_asked_for_again() {
    let mut bench = bench();
    bench.speak(1, "One.");
    bench.line(1, " Two.");
    bench.head(0, 200, "audio/pcm");
    bench.body(0, &pcm(&samples(60)));
    bench.head(1, 200, "audio/pcm");
    bench.sent.clear();
    for _ in 0..61 {
        bench.body(1, &vec![1; 48_000]);
    }
    assert_eq!(bench.sent, [Transmit::Drop { id: 1 }]);
    bench.sent.clear();
    bench.arrive(0, Arrival::End);
    assert_eq!(asked(&mut bench), [(2, "Two.".to_owned())]);
    bench.head(2, 200, "audio/pcm");
    for _ in 0..601 {
        bench.body(2, &vec![1; 48_000]);
    }
    assert!(bench.failure(1).message.contains("ten minutes"));
}

#[test]
fn text_that_comes_later_is_spoken_before_the_next_line() {
    let mut bench = bench();
    bench.speak(1, "One.");
    bench.line(2, "Three.");
    answer(&mut bench, 0, 7);
    assert_eq!(asked(&mut bench).last(), Some(&(1, "Three.".to_owned())), "asked for ahead");
    answer(&mut bench, 1, 9);
    assert_eq!(bench.of(2).samples.len(), 0);
    bench.line(1, " Two.");
    assert_eq!(asked(&mut bench), [(2, "Two.".to_owned())]);
    answer(&mut bench, 2, 8);
    assert_eq!((bench.of(1).samples.len(), bench.of(2).samples.len()), (15, 9));
    assert!(bench.of(1).is_done && bench.of(2).is_done);
}

#[test]
fn wav_of_another_rate_is_converted() {
    let mut bench = bench();
    bench.line(1, "One.");
    bench.head(0, 200, "audio/wav");
    let mut wav =
        b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3E\0\0\0\x7D\0\0\x02\0\x10\0data\0\0\0\0".to_vec();
    wav.extend(pcm(&samples(1_600)));
    for byte in wav.chunks(111) {
        bench.body(0, byte);
    }
    bench.arrive(0, Arrival::End);
    assert!(bench.of(1).is_done);
    assert_eq!(bench.of(1).samples.len(), 2_400);
}

proptest! {
    #[test]
    fn any_arrivals_keep_the_rules(steps in steps(message(&[]))) {
        play(OpenAi::new(settings("https://api.example.com/v1")), steps);
    }
}
