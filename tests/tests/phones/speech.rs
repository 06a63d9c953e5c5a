//! Conversations with a voice and a transcriber of a provider.
use serde_json::json;
use sidetone_engine::speech::audio::FRAME_MS;
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::example::LONG_ANSWER;
use sidetone_tests::fakes;
use sidetone_tests::fakes::openai::speech::CHAR_MS;

use crate::support::{Desk, GREETING, Person, texts};

with_each_carrier!(a_person_talks_with_a_providers_voice, a_failed_voice_is_replaced_and_noted);

/// A desk that speaks with this voice of the fake, and hears what the test announces.
pub fn desk(provider: &'static str, voice: &str) -> (Desk, String) {
    let desk = Desk::new(provider);
    let term = format!("term {}", desk.number);
    let assistant =
        json!({"voice": voice, "transcriber": "fake/scribe", "keyterms": [term], "language": "en"});
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    (desk, term)
}

/// Speaks in real time, with silence afterwards.
pub fn speak(person: &Person, ms: i64) {
    let rate = person.rate();
    let mut samples = speech_like(ms, rate, 120.0);
    samples.extend(vec![0; rate.frame_samples() * 50]);
    person.say(&samples);
}

/// Waits until this much speech has been heard in total, but for a frame: what does not fill one is left out when the end of
/// the audio is told after its sound was over. A text lasts [`CHAR_MS`] a character.
pub fn hears_ms(person: &Person, ms: i64) {
    let rate = person.rate();
    person.hear_until("speech", |heard| (rate.ms_of(heard.len()) + FRAME_MS >= ms).then_some(()));
}

fn a_person_talks_with_a_providers_voice(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/alto");
    desk.knows(LONG_ANSWER);
    fakes::shared().will_hear(&term, &["When do you open on Saturday?"]);
    let (id, mut person) = desk.connected();
    let greeting_ms = GREETING.len() as i64 * CHAR_MS;
    hears_ms(&person, greeting_ms);
    speak(&person, 1_200);
    hears_ms(&person, greeting_ms + 600);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!(texts(&call, "user"), ["When do you open on Saturday?"]);
    let turns = call["turns"].as_array().unwrap();
    let ms = |step: &str| turns[0][step].as_i64().unwrap_or_else(|| panic!("{turns:?}"));
    let steps = ["end_of_speech_ms", "transcript_ms", "model_first_ms", "speech_first_ms", "heard_first_ms"];
    assert!(turns.len() == 1 && steps.is_sorted_by_key(|step| ms(step)), "{turns:?}");
    // Half a second of silence ends a turn.
    assert!(ms("end_of_speech_ms") >= greeting_ms && ms("transcript_ms") - ms("end_of_speech_ms") >= 500);
    let costs = &call["costs"];
    assert!(
        costs["stt_microusd"].as_i64().unwrap() > 0 && costs["tts_microusd"].as_i64().unwrap() > 0,
        "{costs}"
    );
    let row = call["transcript"].as_array().unwrap().iter().rfind(|row| row["role"] == "assistant").unwrap();
    assert_eq!(row["interrupted"], true, "hung up in the middle: {row}");
    assert!(row["intended_text"].as_str().unwrap_or_default().contains("open at ten"), "{row}");
    assert!(texts(&call, "assistant").starts_with(&[GREETING]), "{call}");
}

fn a_failed_voice_is_replaced_and_noted(provider: &'static str) {
    let (desk, _) = desk(provider, "fake/page");
    let (id, mut person) = desk.connected();
    hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "system").len(), 1, "{call}");
}
