//! Conversations with each speech provider's own protocol.
use serde_json::{Value, json};
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::browser::{Browser, RATE};
use sidetone_tests::fakes;
use sidetone_tests::fakes::speech::CHAR_MS;

use crate::speech::{hears_ms, speak};
use crate::support::{Desk, GREETING, lines, texts};

const VOICES: [&str; 3] = ["deepgram/aura-2-thalia-en", "elevenlabs/voice-1", "cartesia/voice-1"];
const TRANSCRIBERS: [&str; 3] = ["deepgram/nova-3", "deepgram/flux-general-en", "live/gpt-live-transcribe"];
const ASKED: &str = "When do you open on Saturday?";

/// A desk with this voice and this transcriber, which hears what the test announces with the returned term.
fn desk(voice: &str, transcriber: &str) -> (Desk, String) {
    let desk = Desk::new("twilio");
    let term = format!("term {}", desk.number);
    let assistant = json!({"voice": voice, "transcriber": transcriber, "keyterms": [term], "language": "en"});
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    (desk, term)
}

fn a_person_talks(voice: &str, transcriber: &str) {
    let (desk, term) = desk(voice, transcriber);
    fakes::shared_speech().will_hear(&term, &[ASKED]);
    let (id, mut person) = desk.connected();
    let greeting_ms = GREETING.len() as i64 * CHAR_MS;
    hears_ms(&person, greeting_ms);
    speak(&person, 1_200);
    hears_ms(&person, greeting_ms + "On Saturday we open at ten.".len() as i64 * CHAR_MS);
    // The last mark is on its way.
    std::thread::sleep(std::time::Duration::from_millis(700));
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(
        lines(&call)[..3],
        [("assistant", GREETING), ("user", ASKED), ("assistant", "On Saturday we open at ten.")],
        "{voice}, {transcriber}: {call}"
    );
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert!(texts(&call, "system").is_empty(), "no failure: {call}");
}

#[test]
fn each_voice_is_heard() {
    VOICES.iter().for_each(|voice| a_person_talks(voice, TRANSCRIBERS[0]));
}

/// Whoever talks in the browser sees the words while they are said; they are gone once the line is in the transcript.
#[test]
fn the_page_of_a_test_shows_words_while_they_are_said() {
    let (desk, term) = desk(VOICES[0], TRANSCRIBERS[0]);
    fakes::shared_speech().will_hear(&term, &[ASKED]);
    let mut browser = Browser::open(&desk.world, &desk.assistant.id, "speech");
    browser.expect("call_started");
    browser.hear_ms(GREETING.len() as i64 * CHAR_MS);
    browser.speak(&speech_like(1_200, RATE, 120.0));
    assert_eq!(browser.expect("user_words")["text"], "When", "what the provider has understood so far");
    let words = browser.until("the end of the turn", |browser| {
        let is_line = |message: &Value| message["type"] == "user_text";
        let at = browser.messages.iter().position(is_line)?;
        let words = browser.messages.iter().take(at).filter(|message| message["type"] == "user_words");
        Some(words.map(|message| message["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    });
    assert_eq!(words.last().map(String::as_str), Some(""), "{words:?}");
    assert!(words.iter().all(|text| text.is_empty() || ASKED.starts_with(text)), "{words:?}");
}

#[test]
fn each_transcriber_understands() {
    TRANSCRIBERS.iter().for_each(|transcriber| a_person_talks(VOICES[0], transcriber));
}

/// Providers that tell when a word is spoken let a line be cut by the word.
#[test]
fn an_interrupted_line_is_cut_at_a_word() {
    const LONG: &str = "Welcome to the front desk of the house by the lake, where everybody is well all day.";
    for voice in VOICES {
        let (desk, term) = desk(voice, TRANSCRIBERS[0]);
        desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"first_message": LONG})).ok();
        fakes::shared_speech().will_hear(&term, &[ASKED]);
        let (id, mut person) = desk.connected();
        hears_ms(&person, 1_500);
        speak(&person, 1_000);
        hears_ms(&person, 2_800);
        person.hang_up();
        let call = desk.over(&id);
        let row = &call["transcript"][0];
        let heard = row["text"].as_str().unwrap();
        assert!(row["interrupted"] == true && row["intended_text"] == LONG, "{voice}: {call}");
        assert!(LONG.starts_with(heard) && LONG.as_bytes()[heard.len()] == b' ', "at a word: {row}");
        let ms = heard.chars().count() as i64 * CHAR_MS;
        let spoken_ms = row["end_ms"].as_i64().unwrap() - row["start_ms"].as_i64().unwrap();
        assert!((ms - spoken_ms).abs() <= 15 * CHAR_MS, "{voice}: {ms}, {spoken_ms}: {row}");
        assert_eq!(texts(&call, "user")[0], ASKED, "{call}");
    }
}

#[test]
fn a_server_without_voices_is_noted() {
    let (desk, _) = desk("live/alloy", "deepgram/nova-3");
    let (id, mut person) = desk.connected();
    std::thread::sleep(std::time::Duration::from_secs(3));
    person.hang_up();
    let call = desk.over(&id);
    assert!(!texts(&call, "system").is_empty(), "{call}");
}
