//! Callers and lines that are hard to understand: silence, music, two who talk at once, lost and bunched audio.
use std::f64::consts::TAU;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::speech::audio::{FRAME_MS, Rate};
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::fakes;
use sidetone_tests::fakes::openai::speech::CHAR_MS;

use crate::speech::{desk, hears_ms, speak};
use crate::support::{GREETING, lines, texts};

with_each_carrier!(
    a_caller_who_says_nothing,
    music_is_no_turn,
    a_line_that_loses_a_third,
    half_a_second_in_one_message,
    a_clock_that_is_fast,
    a_clock_that_is_slow,
);

const QUESTION: &str = "When do you open on Saturday?";
const ANSWER: &str = "On Saturday we open at ten.";
const GREETING_MS: i64 = GREETING.len() as i64 * CHAR_MS;

fn a_caller_who_says_nothing(provider: &'static str) {
    let (desk, _) = desk(provider, "fake/alto");
    let (id, mut person) = desk.connected();
    hears_ms(&person, GREETING_MS);
    person.say(&vec![0; samples(person.rate(), 3_000)]);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!((texts(&call, "user"), texts(&call, "assistant")), (vec![], vec![GREETING]), "{call}");
    assert_eq!(call["costs"]["stt_microusd"], 0, "nothing was transcribed");
}

/// Music may be taken for a voice; but where no words are, nobody spoke.
fn music_is_no_turn(provider: &'static str) {
    let (desk, _) = desk(provider, "fake/alto");
    let (id, mut person) = desk.connected();
    hears_ms(&person, GREETING_MS);
    let rate = person.rate();
    let mut song = music(rate, 8_000);
    song.extend(vec![0; samples(rate, 1_500)]);
    person.say(&song);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!((texts(&call, "user"), texts(&call, "assistant")), (vec![], vec![GREETING]), "{call}");
}

/// The assistant stops, and its line ends where it stopped, however late the caller's words are known.
#[test]
fn both_talk_at_once_for_a_minute() {
    let (desk, term) = desk("twilio", "fake/alto");
    let long = "I will tell you everything about the shop and its history. ".repeat(8);
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"first_message": long})).ok();
    fakes::shared().will_hear(&term, &["When do you open on Saturday?", "And so on.", "And so forth."]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, 2_000);
    let rate = person.rate();
    let mut speech = speech_like(60_000, rate, 120.0);
    speech.extend(vec![0; samples(rate, 2_500)]);
    person.say(&speech);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    let rows = call["transcript"].as_array().unwrap();
    let greeting = rows.iter().find(|row| row["role"] == "assistant").unwrap();
    let heard_ms = greeting["end_ms"].as_i64().unwrap() - greeting["start_ms"].as_i64().unwrap();
    assert!(greeting["interrupted"] == true && heard_ms < 10_000, "{greeting}");
    let text = greeting["text"].as_str().unwrap();
    let said_ms = text.chars().count() as i64 * CHAR_MS;
    assert!((said_ms - heard_ms).abs() <= 1_000, "{said_ms} ms of words in {heard_ms} ms");
    let said = texts(&call, "user").join(" ");
    assert!(said.starts_with("When do you open on Saturday?"), "{said}");
    ordered(rows);
}

fn a_line_that_loses_a_third(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/alto");
    fakes::shared().will_hear(&term, &[QUESTION]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, GREETING_MS);
    let rate = person.rate();
    // Frames do not come in place of lost ones, so the rest comes in time.
    person.mute();
    let began = Instant::now();
    const SPOKEN_MS: i64 = 3_000;
    let mut speech = speech_like(SPOKEN_MS / 2, rate, 120.0);
    speech.extend(vec![0; samples(rate, SPOKEN_MS / 2)]);
    let spoken = speech.chunks_exact(rate.frame_samples()).enumerate();
    let spoken = spoken.map(|(n, frame)| (n % 3 != 1).then_some(frame));
    // Silence follows without losses until some of the answer was heard: after a delay, only audio that comes in time tells
    // what of it was lost.
    let silence = vec![0_i16; rate.frame_samples()];
    let frames = spoken.chain(std::iter::repeat(Some(&silence[..]))).take(3_000);
    for (n, frame) in (0_i64..).zip(frames) {
        let due = Duration::from_millis((n * FRAME_MS).unsigned_abs());
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        if let Some(frame) = frame {
            person.raw_media(person.frame(frame));
        }
        if n * FRAME_MS >= SPOKEN_MS && rate.ms_of(person.heard().len()) >= GREETING_MS + 600 {
            break;
        }
    }
    hears_ms(&person, GREETING_MS + 600);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!(texts(&call, "user"), [QUESTION]);
    ordered(call["transcript"].as_array().unwrap());
    let waveform = desk.world.get(format!("/calls/{id}/waveform")).ok().json;
    let missing_ms = waveform["missing_ms"].as_i64().unwrap();
    // The last losses may be less than what is waited for, and the frames of a busy machine late.
    assert!((SPOKEN_MS / 3 - 100..=SPOKEN_MS / 3 + 200).contains(&missing_ms), "{missing_ms} ms");
}

fn half_a_second_in_one_message(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/alto");
    fakes::shared().will_hear(&term, &[QUESTION]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, GREETING_MS);
    let rate = person.rate();
    person.mute();
    let mut speech = speech_like(1_500, rate, 120.0);
    speech.extend(vec![0; samples(rate, 1_500)]);
    let began = Instant::now();
    for (n, piece) in (1_u32..).zip(speech.chunks(samples(rate, 500))) {
        // A pause that took too long does not delay the next piece.
        std::thread::sleep((Duration::from_millis(500) * n).saturating_sub(began.elapsed()));
        person.raw_media(person.frame(piece));
    }
    hears_ms(&person, GREETING_MS + 600);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!(texts(&call, "user"), [QUESTION]);
    let said = call["transcript"].as_array().unwrap().iter().find(|row| row["role"] == "user").unwrap();
    let ms = said["end_ms"].as_i64().unwrap() - said["start_ms"].as_i64().unwrap();
    assert!((1_000..=2_000).contains(&ms), "{said}");
}

fn a_clock_that_is_fast(provider: &'static str) {
    talks_at(provider, 1.1);
}

fn a_clock_that_is_slow(provider: &'static str) {
    talks_at(provider, 0.9);
}

/// A line that sends and plays this much faster than time passes.
fn talks_at(provider: &'static str, pace: f64) {
    const SPOKEN_MS: i64 = 2_000;
    let (desk, term) = desk(provider, "fake/alto");
    fakes::shared().will_hear(&term, &[QUESTION]);
    let (id, person) = desk.place();
    let mut person = person.at_pace(pace);
    person.ring();
    person.answer();
    hears_ms(&person, GREETING_MS);
    speak(&person, SPOKEN_MS);
    hears_ms(&person, GREETING_MS + ANSWER.len() as i64 * CHAR_MS);
    std::thread::sleep(Duration::from_millis(700));
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!(lines(&call), [("assistant", GREETING), ("user", QUESTION), ("assistant", ANSWER)], "{call}");
    let rows = call["transcript"].as_array().unwrap();
    ordered(rows);
    // Each row lasts as long as its sound did.
    for (row, sound_ms) in rows.iter().zip([GREETING_MS, SPOKEN_MS, ANSWER.len() as i64 * CHAR_MS]) {
        let ms = row["end_ms"].as_i64().unwrap() - row["start_ms"].as_i64().unwrap();
        let real_ms = (sound_ms as f64 / pace) as i64;
        assert!((ms - real_ms).abs() <= 300, "{ms} instead of {real_ms} ms: {row}");
    }
}

const fn samples(rate: Rate, ms: i64) -> usize {
    (rate.hz() as i64 * ms / 1_000) as usize
}

/// A melody of chords, a note every 400 ms.
fn music(rate: Rate, ms: i64) -> Vec<i16> {
    const NOTES: [f64; 5] = [262.0, 330.0, 392.0, 523.0, 440.0];
    let at = |place: usize| {
        let seconds = place as f64 / f64::from(rate.hz());
        let note = NOTES[(seconds / 0.4) as usize % NOTES.len()];
        let decay = 1.0 - seconds % 0.4;
        let chord = [1.0, 1.25, 1.5].map(|times| (TAU * note * times * seconds).sin());
        (chord.iter().sum::<f64>() * 3_000.0 * decay) as i16
    };
    (0..samples(rate, ms)).map(at).collect()
}

/// The rows are in the order of their beginnings, and none ends before it begins.
fn ordered(rows: &[Value]) {
    let ms = |row: &Value, name: &str| row[name].as_i64().unwrap();
    assert!(rows.iter().all(|row| ms(row, "start_ms") <= ms(row, "end_ms")), "{rows:?}");
    assert!(rows.is_sorted_by_key(|row| ms(row, "start_ms")), "{rows:?}");
}
