//! Speech providers that break in the middle, or are slow: of a line, of a sentence.
use serde_json::json;
use sidetone_tests::fakes;
use sidetone_tests::fakes::speech::CHAR_MS;

use crate::speech::{hears_ms, speak};
use crate::support::{Desk, lines, texts};

const ASKED: &str = "When do you open on Saturday?";
/// What the operator pays for a thousand characters of a voice that breaks, and of the one that takes its place.
const RATES: [i64; 2] = [40_000, 15_000];

/// A voice breaks off in the middle of a line: the next one says the rest, and each is paid for what it was asked to say.
#[test]
fn the_next_voice_says_the_rest_of_a_line() {
    let cases = [
        ("deepgram/aura-2-stops", "ravens", "Deepgram closed the connection with code 1008: it stops"),
        ("elevenlabs/stops", "swallows", "ElevenLabs closed the connection with code 1008: it stops"),
        ("cartesia/stops", "herons", "Cartesia closed the connection with code 1008: it stops"),
        ("fake/stops", "starlings", "The speech server could not be reached, or the connection broke"),
    ];
    std::thread::scope(|scope| {
        for (voice, birds, row) in cases {
            scope.spawn(move || says_the_rest(voice, birds, row));
        }
    });
}

fn says_the_rest(voice: &str, birds: &str, row: &str) {
    let line = format!(
        "The tower of the old house by the lake is full of life, for among its guests are some {birds}."
    );
    let line_ms = line.len() as i64 * CHAR_MS;
    let desk = Desk::new("twilio");
    let assistant = json!({
        "voice": voice, "transcriber": "deepgram/nova-3", "language": "en", "first_message": line,
    });
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    let (id, mut person) = desk.connected();
    hears_ms(&person, line_ms - 400);
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let rate = person.rate();
    let heard_ms = person.hear_until("all", |heard| {
        Some(rate.ms_of(heard.chunks(160).filter(|frame| frame.iter().any(|one| *one != 0)).count() * 160))
    });
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "assistant"), [line.as_str()], "whole, and once: {voice}: {call}");
    assert_eq!(texts(&call, "system"), [row], "the failure is noted: {voice}: {call}");
    // The next voice begins at a word that was not heard, or was being spoken.
    let spoken = fakes::shared().spoken();
    let rest: Vec<_> = spoken.iter().filter(|text| line.ends_with(text.as_str()) && line != **text).collect();
    let own: Vec<_> = spoken.iter().filter(|text| **text == line).collect();
    let [rest] = rest[..] else { panic!("{voice}: {rest:?}") };
    assert_eq!(own.len(), usize::from(voice.starts_with("fake/")), "{voice}: {own:?}");
    let rest_ms = rest.len() as i64 * CHAR_MS;
    assert!((rest_ms - line_ms / 2).abs() <= 600, "{voice}: {rest:?}");
    assert!((heard_ms - line_ms).abs() <= 700, "{voice}: {heard_ms} of {line_ms} ms");
    let price = |chars: usize, rate: i64| (chars as i64 * rate + 999) / 1_000;
    let cost = price(line.len(), RATES[0]) + price(rest.len(), RATES[1]);
    assert_eq!(call["costs"]["tts_microusd"], cost, "{voice}: {}", call["costs"]);
}

/// Audio that comes more slowly than it plays has gaps, and the line is whole.
#[test]
fn a_slow_voice_says_its_line_once() {
    let voices = ["deepgram/aura-2-slow", "elevenlabs/slow", "cartesia/slow", "fake/slow"];
    std::thread::scope(|scope| {
        for voice in voices {
            scope.spawn(move || {
                let line = "Good morning, this is the front desk.";
                let desk = Desk::new("twilio");
                let assistant =
                    json!({"voice": voice, "transcriber": "deepgram/nova-3", "first_message": line});
                desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
                let (id, mut person) = desk.connected();
                let line_ms = line.len() as i64 * CHAR_MS;
                hears_ms(&person, line_ms);
                std::thread::sleep(std::time::Duration::from_millis(1_500));
                person.hang_up();
                let call = desk.over(&id);
                assert_eq!(
                    lines(&call),
                    [("assistant", line)],
                    "whole, once, without a failure: {voice}: {call}"
                );
                let row = &call["transcript"][0];
                let spoken_ms = row["end_ms"].as_i64().unwrap() - row["start_ms"].as_i64().unwrap();
                assert!(spoken_ms > line_ms * 5 / 4 && row["interrupted"] == false, "{voice}: {row}");
            });
        }
    });
}

/// A transcriber's connection breaks while the caller speaks. What was not understood for certain is sent again.
#[test]
fn a_transcriber_that_breaks_in_mid_sentence_hears_all_of_it() {
    const SAID_MS: i64 = 1_600;
    let transcribers = ["deepgram/nova-stops", "deepgram/flux-general-stops", "live/gpt-live-stops"];
    std::thread::scope(|scope| {
        for transcriber in transcribers {
            scope.spawn(move || {
                let desk = Desk::new("twilio");
                let term = format!("term {}", desk.number);
                let assistant = json!({
                    "voice": "fake/alto", "transcriber": transcriber, "keyterms": [term], "language": "en",
                    "first_message": "",
                });
                desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
                fakes::shared_speech().will_hear(&term, &[ASKED]);
                let (id, mut person) = desk.connected();
                speak(&person, SAID_MS);
                hears_ms(&person, 1_000);
                person.hang_up();
                let call = desk.over(&id);
                assert_eq!(texts(&call, "user"), [ASKED], "{transcriber}: {call}");
                assert!(texts(&call, "system").is_empty(), "nothing was lost: {transcriber}: {call}");
                let heard_ms = fakes::shared_speech().heard_ms(&term);
                let [heard_ms] = heard_ms[..] else { panic!("{transcriber}: {heard_ms:?}") };
                // The voice has quiet moments.
                assert!((SAID_MS - 100..=SAID_MS + 40).contains(&heard_ms), "{transcriber}: {heard_ms} ms");
            });
        }
    });
}
