//! A recorded person on the line of each carrier: what they say is answered, interrupts or does not, and transcript and
//! recording agree. The recogniser is a fake: it says what the recorded sounds mean.
//!
//! `RECORDINGS=$(.ci/recordings) cargo test -p sidetone-tests --test phones -- --ignored recorded_caller --test-threads 4`
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_tests::fakes;
use sidetone_tests::fakes::speech::CHAR_MS;
use sidetone_tests::recordings;

use crate::recordings::{channels, find, lines_agree, resampled, whole_line};
use crate::speech::hears_ms;
use crate::support::{Desk, Person, lines, texts};

with_each_carrier!(
    #[ignore = "needs the recordings that .ci/recordings fetches"]
    a_recorded_person_is_answered_and_interrupts,
);

const LINE: &str = "Welcome to the front desk of the house by the lake, where everybody is well all day.";
const SUNDAY: &str =
    "On Sunday we open at noon, and the garden behind the house stays open until it is dark.";
const SATURDAY: &str = "On Saturday we open at ten.";
/// A short word, which the recogniser takes for a cough, and the letter M, which it takes for an acknowledgement.
const COUGH: &str = "with";
const MHM: &str = "letters/m";
/// What the person says as questions: with its pauses, each is one turn.
const QUESTIONS: [(&str, &str); 2] = [
    ("check-number-dial-again", "When do you open on Sunday?"),
    ("queue-thankyou", "When do you open on Saturday?"),
];

/// A prompt as the line carries it, with silence afterwards.
fn says(person: &Person, name: &str) {
    let rate = person.rate();
    let mut sound = prompt(name, rate.hz());
    sound.extend(vec![0; rate.frame_samples() * 50]);
    person.say(&sound);
}

/// The audible part of a prompt.
fn prompt(name: &str, rate_hz: u32) -> Vec<i16> {
    let samples = recordings::samples(&recordings::prompts().join(name).with_extension("wav"));
    let (from, until) = recordings::audible(&samples);
    resampled(&samples[from..until], Rate::Khz8, rate_hz)
}

fn a_recorded_person_is_answered_and_interrupts(provider: &'static str) {
    let desk = Desk::new(provider);
    let term = format!("term {}", desk.number);
    let assistant = json!({
        "voice": "deepgram/aura-2-thalia-en", "transcriber": "deepgram/nova-3", "keyterms": [term],
        "language": "en", "first_message": LINE,
    });
    let path = format!("/assistants/{}", desk.assistant.id);
    desk.world.patch(&path, assistant).ok();
    let documents = [SUNDAY, SATURDAY]
        .map(|content| desk.world.create("/knowledge", json!({"name": content, "content": content})).id);
    desk.world.put(format!("{path}/knowledge"), json!({"knowledge_ids": documents})).ok();
    let [(first, sunday), (second, saturday)] = QUESTIONS;
    fakes::shared_speech().will_hear(&term, &["", "Mhm.", sunday, saturday]);

    let (id, mut person) = desk.connected();
    let line_ms = |text: &str| text.len() as i64 * CHAR_MS;
    hears_ms(&person, 1_000);
    says(&person, COUGH);
    hears_ms(&person, 3_000);
    says(&person, MHM);
    hears_ms(&person, line_ms(LINE));
    let paused = person.cleared().len();
    std::thread::sleep(Duration::from_millis(1_000));
    says(&person, first);
    hears_ms(&person, line_ms(LINE) + 1_500);
    says(&person, second);
    let before_ms = person.rate().ms_of(person.heard().len());
    hears_ms(&person, before_ms + line_ms(SATURDAY) / 2);
    // The rest of the answer, and its last mark.
    person.until_quiet(1_000);
    person.hang_up();

    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    let [(_, cut)] = lines(&call)[2..3] else { panic!("{call}") };
    assert_eq!(
        lines(&call),
        [
            ("assistant", LINE),
            ("user", sunday),
            ("assistant", cut),
            ("user", saturday),
            ("assistant", SATURDAY)
        ],
        "{call}"
    );
    assert_eq!(texts(&call, "system"), [""; 0]);
    assert!(paused >= 2, "the sounds paused the first line: {paused}");
    let ([caller, assistant], rate_hz) =
        channels(&desk.world.get(format!("/calls/{id}/recording")).ok().body);
    let rate = person_rate(rate_hz);
    let row = |nth: usize| &call["transcript"][nth];
    assert!(whole_line(&assistant, rate, row(0)) > 400, "both pauses are in the recording");
    whole_line(&assistant, rate, row(4));
    assert!(
        row(2)["intended_text"] == SUNDAY && SUNDAY.starts_with(cut) && cut.len() < SUNDAY.len() / 2,
        "{call}"
    );
    assert_eq!(lines_agree(&assistant, rate_hz, &call), 1, "{call}");
    for (nth, name) in [(1, first), (3, second)] {
        is_where_its_row_says(&caller, rate, row(nth), &prompt(name, rate_hz));
    }
}

/// To 50 ms: all of what was said, and its first and its last part by themselves.
fn is_where_its_row_says(caller: &[i16], rate: Rate, row: &Value, said: &[i16]) {
    const PART_MS: usize = 500;
    let [start_ms, end_ms] = ["start_ms", "end_ms"].map(|name| row[name].as_i64().unwrap());
    let (found_ms, alike) = find(caller, rate.hz(), said, start_ms);
    let late_ms = [start_ms - found_ms, end_ms - found_ms - rate.ms_of(said.len())];
    assert!(alike > 0.8 && late_ms.iter().all(|ms| ms.abs() <= 50), "{late_ms:?}, {alike}: {row}");
    let part = PART_MS * rate.hz() as usize / 1_000;
    let last_ms = end_ms - PART_MS as i64;
    for (about_ms, part) in [(start_ms, &said[..part]), (last_ms, &said[said.len() - part..])] {
        let (found_ms, alike) = find(caller, rate.hz(), part, about_ms);
        assert!(alike > 0.8 && (found_ms - about_ms).abs() <= 50, "{found_ms}, {about_ms}, {alike}: {row}");
    }
}

fn person_rate(hz: u32) -> Rate {
    if hz == 16_000 { Rate::Khz16 } else { Rate::Khz8 }
}
