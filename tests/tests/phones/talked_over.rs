//! Sounds over the assistant's line that do not cut it, and words that do.
use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::fakes;
use sidetone_tests::fakes::speech::CHAR_MS;

use crate::recordings::{channels, whole_line};
use crate::speech::hears_ms;
use crate::support::{Desk, Person, texts};

with_each_carrier!(a_cough_only_pauses_a_line);

/// Tells the words while they are said.
const TRANSCRIBER: &str = "deepgram/nova-3";
const LINE: &str = "Welcome to the front desk of the house by the lake, where everybody is well all day.";
const LINE_MS: i64 = LINE.len() as i64 * CHAR_MS;
const ANSWER_MS: i64 = "On Saturday we open at ten.".len() as i64 * CHAR_MS;
/// When the caller makes a sound.
const OVER_MS: i64 = 1_500;

/// What happened in a call in which the caller makes a sound over the assistant's first line.
struct TalkedOver {
    call: Value,
    /// The assistant's channel of the recording.
    assistant: Vec<i16>,
    rate: Rate,
    /// How often the line was paused or cut.
    clears: usize,
}

/// The sound lasts `sound_ms` and is understood as `said`; the caller listens for `listens_ms` of audio in total.
fn talk_over(
    (provider, transcriber): (&'static str, &str),
    speech: Value,
    sound_ms: i64,
    said: &[&str],
    listens_ms: i64,
) -> TalkedOver {
    let desk = Desk::new(provider);
    let term = format!("term {}", desk.number);
    let assistant = json!({
        "voice": "deepgram/aura-2-thalia-en", "transcriber": transcriber, "keyterms": [term], "language": "en",
        "first_message": LINE, "speech": speech,
    });
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    fakes::shared_speech().will_hear(&term, said);
    fakes::shared().will_hear(&term, said);
    let (id, mut person) = desk.connected();
    hears_ms(&person, OVER_MS);
    makes_a_sound(&person, sound_ms);
    hears_ms(&person, listens_ms);
    // The last mark is on its way.
    std::thread::sleep(std::time::Duration::from_millis(700));
    let clears = person.cleared().len();
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert!(texts(&call, "system").is_empty(), "no failure: {call}");
    let ([_, assistant], rate_hz) = channels(&desk.world.get(format!("/calls/{id}/recording")).ok().body);
    let rate = if rate_hz == 16_000 { Rate::Khz16 } else { Rate::Khz8 };
    TalkedOver { call, assistant, rate, clears }
}

pub fn makes_a_sound(person: &Person, ms: i64) {
    let rate = person.rate();
    let mut samples = speech_like(ms, rate, 120.0);
    samples.extend(vec![0; rate.frame_samples() * 50]);
    person.say(&samples);
}

impl TalkedOver {
    fn line(&self) -> &Value {
        &self.call["transcript"][0]
    }

    /// The line is whole in the transcript and in the recording. Returns how long it was paused, in ms.
    fn is_whole(&self) -> i64 {
        let row = self.line();
        assert_eq!((&row["text"], &row["interrupted"]), (&json!(LINE), &json!(false)), "{}", self.call);
        whole_line(&self.assistant, self.rate, row)
    }
}

/// Nobody has said anything, so the assistant goes on where it stopped.
fn a_cough_only_pauses_a_line(provider: &'static str) {
    let over = talk_over((provider, TRANSCRIBER), json!({}), 350, &[], LINE_MS);
    assert!(over.clears > 0, "it was paused");
    assert!(over.is_whole() > 200, "a pause of that length is in the recording");
    assert!(texts(&over.call, "user").is_empty(), "{}", over.call);
    assert_eq!(over.call["transcript"].as_array().unwrap().len(), 1, "{}", over.call);
}

#[test]
fn an_acknowledgement_only_pauses_a_line() {
    let over = talk_over(("plivo", TRANSCRIBER), json!({}), 400, &["Mhm."], LINE_MS);
    assert!(over.clears > 0 && over.is_whole() > 200, "paused: {}", over.call);
    assert_eq!(over.call["transcript"].as_array().unwrap().len(), 1, "{}", over.call);
}

/// A telephone without echo cancellation returns what it plays.
#[test]
fn the_assistants_own_words_only_pause_a_line() {
    let over =
        talk_over(("telnyx", "fake/scribe"), json!({}), 1_200, &["the front desk of the house"], LINE_MS);
    assert!(over.clears > 0 && over.is_whole() > 200, "paused: {}", over.call);
    assert_eq!(over.call["transcript"].as_array().unwrap().len(), 1, "{}", over.call);
}

#[test]
fn a_line_that_cannot_be_interrupted_is_answered_after_its_end() {
    let question = "When do you open on Saturday?";
    let over = talk_over(
        ("vonage", TRANSCRIBER),
        json!({"interruptible": false}),
        1_200,
        &[question],
        LINE_MS + ANSWER_MS,
    );
    assert_eq!(over.clears, 0, "it was not even paused");
    assert!(over.is_whole().abs() <= 150, "{}", over.call);
    assert_eq!(texts(&over.call, "user"), [question]);
    assert_eq!(texts(&over.call, "assistant")[1], "On Saturday we open at ten.", "{}", over.call);
}

#[test]
fn as_many_words_as_the_author_wants_cut_a_line() {
    let speech = json!({"interruption_words_min": 4});
    let over = talk_over(("twilio", TRANSCRIBER), speech, 1_200, &["No, stop, wait, please."], OVER_MS + 200);
    let row = over.line();
    assert!(row["interrupted"] == true && row["intended_text"] == LINE, "{}", over.call);
    assert_eq!(texts(&over.call, "user"), ["No, stop, wait, please."]);
}

#[test]
fn fewer_words_than_the_author_wants_only_pause_a_line() {
    let speech = json!({"interruption_words_min": 4});
    let over = talk_over(("vonage", TRANSCRIBER), speech, 800, &["No, stop."], LINE_MS);
    assert!(over.clears > 0 && over.is_whole() > 200, "paused: {}", over.call);
}

/// A transcriber that tells single words tells those of an echo first: they are no interruption until they are no echo.
#[test]
fn the_first_words_of_an_echo_only_pause_a_line() {
    let echo = "the front desk of the house";
    let over = talk_over(("telnyx", TRANSCRIBER), json!({}), 1_200, &[echo], LINE_MS);
    assert!(over.clears > 0 && over.is_whole() > 200, "paused: {}", over.call);
    assert_eq!(over.call["transcript"].as_array().unwrap().len(), 1, "{}", over.call);
}
