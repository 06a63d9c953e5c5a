//! Speech providers that fail, each in its protocol.
use serde_json::json;
use sidetone_tests::fakes;
use sidetone_tests::fakes::openai::speech::PAGE;
use sidetone_tests::fakes::speech::{CHAR_MS, FAULTS};

use crate::speech::{hears_ms, speak};
use crate::support::{Desk, GREETING, Person, lines, texts};

/// What the assistant says when the transcriber lost what it was told.
const ASKED_AGAIN: &str = "Sorry, I did not catch that. Could you say it again?";

/// A call of a desk with this voice and this transcriber.
fn call(voice: &str, transcriber: &str) -> (Desk, String, Person) {
    let desk = Desk::new("twilio");
    let term = format!("term {}", desk.number);
    let assistant = json!({"voice": voice, "transcriber": transcriber, "keyterms": [term], "language": "en"});
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    fakes::shared_speech().will_hear(&term, &["When do you open on Saturday?"]);
    let (id, person) = desk.connected();
    (desk, id, person)
}

/// Runs all cases at once: most of them wait.
fn at_once(cases: impl Iterator<Item = String>, check: fn(&str)) {
    std::thread::scope(|scope| {
        let running: Vec<_> = cases.map(|case| scope.spawn(move || check(&case))).collect();
        running.into_iter().for_each(|case| case.join().unwrap());
    });
}

#[test]
fn the_next_voice_takes_over() {
    let voices = ["deepgram/aura-2-", "elevenlabs/", "cartesia/"];
    let cases = FAULTS.iter().flat_map(|(fault, _)| voices.map(|voice| format!("{voice}{fault}")));
    // Cartesia's voice is in its messages: the key is right until then.
    at_once(cases.filter(|case| case != "cartesia/refuses"), |voice| {
        let (desk, id, mut person) = call(voice, "deepgram/nova-3");
        hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
        std::thread::sleep(std::time::Duration::from_millis(700));
        person.hang_up();
        let call = desk.over(&id);
        assert_eq!(texts(&call, "assistant"), [GREETING], "whole, and once: {voice}: {call}");
        assert_eq!(texts(&call, "system").len(), 1, "{voice}: {call}");
        desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
        // 15,000 µ$ for a thousand characters: the voice that made no sound costs nothing.
        let cost = GREETING.len() as i64 * 15;
        assert_eq!(call["costs"]["tts_microusd"], cost, "{voice}: {}", call["costs"]);
    });
}

#[test]
fn a_call_goes_on_without_words_of_a_failed_transcriber() {
    let transcribers = ["deepgram/nova-", "deepgram/flux-general-", "live/gpt-live-"];
    let faults = FAULTS.iter().filter(|(fault, _)| *fault != "refuses");
    at_once(faults.flat_map(|(fault, _)| transcribers.map(|name| format!("{name}{fault}"))), |transcriber| {
        let (desk, id, mut person) = call("fake/alto", transcriber);
        hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
        speak(&person, 1_000);
        std::thread::sleep(std::time::Duration::from_secs(15));
        person.hang_up();
        let call = desk.over(&id);
        assert!(texts(&call, "user").is_empty(), "{transcriber}: {call}");
        assert!(!texts(&call, "system").is_empty(), "{transcriber}: {call}");
        assert_eq!(texts(&call, "assistant"), [GREETING, ASKED_AGAIN], "{transcriber}: {call}");
    });
}

/// A caller who was never understood, twice, is not left on the line, however the transcriber fails.
#[test]
fn a_caller_whom_no_transcriber_understands_ends_the_call() {
    let streams = ["deepgram/nova-", "deepgram/flux-general-", "live/gpt-live-"];
    let faults = FAULTS.iter().filter(|(fault, _)| *fault != "refuses");
    let cases = faults.flat_map(|(fault, _)| streams.map(|name| format!("{name}{fault}")));
    let files = ["fake/lone-page", "fake/lone-hangs", "fake/lone-empty"].map(str::to_owned);
    at_once(cases.chain(files), |transcriber| {
        let (desk, id, person) = call("fake/alto", transcriber);
        hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
        // Both are in vain before the caller is asked whether they are there.
        speak(&person, 1_000);
        std::thread::sleep(std::time::Duration::from_secs(5));
        speak(&person, 1_000);
        let call = desk.over(&id);
        let said = texts(&call, "assistant");
        assert_eq!(said.first().copied(), Some(GREETING), "{transcriber}: {call}");
        // The second try may interrupt it.
        assert!(said.iter().skip(1).all(|text| ASKED_AGAIN.starts_with(text)), "{transcriber}: {call}");
        assert!(texts(&call, "user").is_empty(), "{transcriber}: {call}");
        let end = json!({"ended_reason": "speech_failed", "outcome": "failed", "fault": "provider"});
        desk.expect(&call, &end);
        let rows = texts(&call, "system");
        assert!(
            rows.last().is_some_and(|row| row.contains("choose another transcriber")),
            "{transcriber}: {rows:?}"
        );
    });
}

/// One that fails once, between turns that it understood, fails no call.
#[test]
fn a_transcriber_that_recovers_is_listened_to() {
    let (desk, id, mut person) = call("fake/alto", "fake/scribe");
    let asked = "When do you open on Saturday?";
    // Each second utterance is answered with a page, in all its attempts.
    let answers = [&[asked][..], &[PAGE; 4], &[asked], &[PAGE; 4], &[asked]].concat();
    fakes::shared().will_hear(&format!("term {}", desk.number), &answers);
    hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
    for _ in 0..5 {
        speak(&person, 1_000);
        std::thread::sleep(std::time::Duration::from_secs(6));
    }
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "user"), [asked; 3], "{call}");
    assert_eq!(texts(&call, "system").len(), 2, "{call}");
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
}

#[test]
fn a_transcribers_wrong_key_ends_the_call() {
    at_once(
        ["deepgram/nova-refuses", "deepgram/flux-refuses", "shut/gpt-live-transcribe"]
            .map(str::to_owned)
            .into_iter(),
        |transcriber| {
            let (desk, id, person) = call("fake/alto", transcriber);
            speak(&person, 1_000);
            let call = desk.over(&id);
            assert_eq!(lines(&call).iter().filter(|(role, _)| *role == "user").count(), 0, "{call}");
            desk.expect(&call, &json!({"ended_reason": "speech_failed", "fault": "operator"}));
        },
    );
}

/// One line without a sound does not end the call, and the second does, however the voice fails.
#[test]
fn an_assistant_that_is_never_heard_ends_the_call() {
    // No other voice takes over from these.
    let voices = ["elevenlabs/lone-breaks", "fake/lone-page", "fake/lone-mute"];
    at_once(voices.map(str::to_owned).into_iter(), |voice| {
        let (desk, id, person) = call(voice, "deepgram/nova-3");
        let question = "When do you open on Saturday?";
        fakes::shared_speech().will_hear(&format!("term {}", desk.number), &[question, question]);
        for _ in 0..2 {
            std::thread::sleep(std::time::Duration::from_secs(3));
            speak(&person, 1_000);
        }
        let call = desk.over(&id);
        assert!(texts(&call, "assistant").iter().all(|text| text.is_empty()), "{voice}: {call}");
        assert!((1..=2).contains(&texts(&call, "user").len()), "heard after the first line: {voice}: {call}");
        assert_eq!(texts(&call, "system").len(), 2, "{voice}: {call}");
        let end = json!({"ended_reason": "speech_failed", "outcome": "failed", "fault": "provider"});
        desk.expect(&call, &end);
        assert_eq!(call["costs"]["tts_microusd"], 0, "{voice}: {call}");
    });
}
