//! Speech providers that fail, each in its protocol.
use serde_json::{Value, json};
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::fakes;
use sidetone_tests::fakes::openai::speech::PAGE;
use sidetone_tests::fakes::speech::CHAR_MS;
use sidetone_tests::host::host;

use crate::speech::{hears_ms, speak};
use crate::support::{Desk, GREETING, Person, texts};

/// What the assistant says when the transcriber lost what it was told.
const ASKED_AGAIN: &str = "Sorry, I did not catch that. Could you say it again?";

/// What its operator reads when nobody is understood.
const ADVICE: &str = ". Nothing of what the caller said could be understood, twice in a row: check the transcriber's provider \
                      and its address, or choose another transcriber";

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

/// Voices that fail, as `fakes::speech::FAULTS` and `fakes::openai::speech` have them, and the row of the call that says so.
const VOICES: [(&str, &str); 16] = [
    ("deepgram/aura-2-refuses", "Deepgram answered with status 401: refused"),
    ("deepgram/aura-2-hangs", "Deepgram made no audio within 3 s"),
    ("deepgram/aura-2-breaks", "Deepgram closed the connection with code 1006"),
    ("deepgram/aura-2-babbles", "Deepgram made no audio within 3 s"),
    ("elevenlabs/refuses", "ElevenLabs answered with status 401: refused"),
    ("elevenlabs/hangs", "ElevenLabs made no audio within 3 s"),
    ("elevenlabs/breaks", "ElevenLabs closed the connection with code 1006"),
    ("elevenlabs/babbles", "ElevenLabs made no audio within 3 s"),
    ("cartesia/refuses", "Cartesia reported an error: Unauthorized, Invalid API key."),
    ("cartesia/hangs", "Cartesia made no audio within 3 s"),
    ("cartesia/breaks", "Cartesia closed the connection with code 1008: it misbehaves"),
    ("cartesia/babbles", "Cartesia made no audio within 3 s"),
    (
        "barred/alto",
        "The speech server answered with status 401: Incorrect API key provided: (hidden) You can find your API key at \
         (address) invalid_api_key",
    ),
    ("fake/hangs", "The speech server made no audio within 3 s"),
    ("fake/breaks", "The speech server could not be reached, or the connection broke"),
    (
        "fake/page",
        "The speech server answered with status 200 and text/html instead of audio samples; check its base URL, and that \
         it can answer with pcm",
    ),
];
/// Transcribers that fail, after which somebody may be understood again.
const TRANSCRIBERS: [(&str, &str); 12] = [
    ("deepgram/nova-hangs", "Deepgram gave no answer for too long"),
    ("deepgram/nova-breaks", "Deepgram closed the connection (code 1006)"),
    ("deepgram/nova-babbles", "Deepgram sent messages that cannot be read"),
    ("deepgram/flux-general-hangs", "Deepgram Flux did not answer in time"),
    ("deepgram/flux-general-breaks", "Deepgram Flux closed the connection (code 1006)"),
    ("deepgram/flux-general-babbles", "Deepgram Flux sent messages that cannot be read"),
    ("live/gpt-live-hangs", "the transcription server gave no answer for too long"),
    ("live/gpt-live-breaks", "the transcription server closed the connection (code 1006)"),
    ("live/gpt-live-babbles", "the transcription server gave no answer for too long"),
    ("fake/lone-stops", "the transcription server broke off its answer"),
    (
        "fake/lone-page",
        "the transcription server answered with status 200 and not as this protocol does; check the base URL",
    ),
    ("fake/lone-empty", "the transcription server sent a reply without a text"),
];
/// Transcribers that accept no key: the operator has to correct it.
const REFUSING: [(&str, &str); 4] = [
    ("deepgram/nova-refuses", "Deepgram rejected the API key (401)"),
    ("deepgram/flux-refuses", "Deepgram Flux rejected the API key (401)"),
    ("shut/gpt-live-transcribe", "the transcription server rejected the API key (401)"),
    (
        "barred/scribe",
        "the transcription server rejected the API key (401): Incorrect API key provided: … You can find your API key \
         at …",
    ),
];

/// Runs all cases at once: most of them wait.
fn at_once(cases: &'static [(&'static str, &'static str)], check: fn(&'static str, &'static str)) {
    std::thread::scope(|scope| {
        let running = cases.iter().map(|(name, row)| scope.spawn(move || check(name, row)));
        running.collect::<Vec<_>>().into_iter().for_each(|case| case.join().unwrap());
    });
}

/// Whether this was said of what failed. How a connection broke is known to the host alone: the Worker has other words for it.
/// On a busy machine, the attempts to connect again may last as long as a voice is waited for.
fn is(said: &str, row: &str, name: &str) -> bool {
    let is_hosts = host() == "worker" && ["breaks", "stops"].iter().any(|fault| name.ends_with(fault));
    let provider = row.split(" c").next().unwrap_or_default();
    let is_broken = name.ends_with("breaks") && is_late(said, row);
    is_broken || if is_hosts { said.starts_with(provider) } else { said == row }
}

/// Whether this was said of a voice that was given up before it told how it fails, as any may be on a busy machine.
fn is_late(said: &str, row: &str) -> bool {
    let providers = ["Deepgram", "ElevenLabs", "Cartesia", "The speech server"];
    let provider = providers.into_iter().find(|provider| row.starts_with(*provider));
    provider.is_some_and(|provider| said.strip_prefix(provider) == Some(" made no audio within 3 s"))
}

/// What is said first where a busy machine takes so long to ask a transcriber that hangs again that nobody waits for it. How
/// it failed follows, unless the call ends before.
const WAITED_FOR: &str = "The transcriber did not answer within 12 s";

/// What is said of a transcriber from which something was still to come.
const PENDING: &str = "had not answered when the call was over";

/// A call in which what is looked at is seen, and not only that a busy machine was late.
fn in_time(name: &str, call: impl FnMut() -> Value, is_seen: impl FnMut(&Value) -> bool) -> Value {
    let seen = std::iter::repeat_with(call).take(3).find(is_seen);
    seen.unwrap_or_else(|| panic!("{name} was late three times"))
}

/// The call says this of what failed, once, and whoever reads it learns no key.
#[track_caller]
fn says(call: &Value, name: &str, row: &str) {
    let rows = texts(call, "system");
    let is_told = match rows[..] {
        [said] => is(said, row, name),
        [WAITED_FOR, said] => is(said, row, name) || said.ends_with(PENDING),
        _ => false,
    };
    assert!(is_told, "{name}: {rows:?}");
    assert!(!call.to_string().contains(fakes::speech::KEY), "{name}: {call}");
}

#[test]
fn the_next_voice_takes_over() {
    at_once(&VOICES, |voice, row| {
        // One that was late has not shown how it fails: it is called again.
        let is_seen = |call: &Value| {
            !texts(call, "system").iter().any(|said| is_late(said, row) && !is(said, row, voice))
        };
        says(&in_time(voice, || taken_over(voice), is_seen), voice, row);
    });
}

/// A call of a desk with this voice, whose greeting another voice has spoken.
fn taken_over(voice: &str) -> Value {
    let (desk, id, mut person) = call(voice, "deepgram/nova-3");
    hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
    std::thread::sleep(std::time::Duration::from_millis(700));
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "assistant"), [GREETING], "whole, and once: {voice}: {call}");
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    // 15,000 µ$ for a thousand characters: the voice that made no sound costs nothing.
    let cost = GREETING.len() as i64 * 15;
    assert_eq!(call["costs"]["tts_microusd"], cost, "{voice}: {}", call["costs"]);
    call
}

#[test]
fn a_call_goes_on_without_words_of_a_failed_transcriber() {
    at_once(&TRANSCRIBERS, |transcriber, row| {
        let (desk, id, mut person) = call("fake/alto", transcriber);
        hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
        speak(&person, 1_000);
        // It is known that nothing was understood. The blank between two sentences is not spoken.
        hears_ms(&person, (GREETING.len() + ASKED_AGAIN.len() - 1) as i64 * CHAR_MS - 40);
        std::thread::sleep(std::time::Duration::from_millis(700));
        person.hang_up();
        let call = desk.over(&id);
        assert!(texts(&call, "user").is_empty(), "{transcriber}: {call}");
        says(&call, transcriber, row);
        assert_eq!(texts(&call, "assistant"), [GREETING, ASKED_AGAIN], "{transcriber}: {call}");
        desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    });
}

/// A caller who was never understood, twice, is not left on the line, however the transcriber fails.
#[test]
fn a_caller_whom_no_transcriber_understands_ends_the_call() {
    // It is asked for longer than a silence of the caller lasts, so before the second try no row tells of the first one.
    const HANGING: (&str, &str) = ("fake/lone-hangs", "the transcription server did not answer in time");
    const CASES: [(&str, &str); 13] = {
        let mut cases = [HANGING; 13];
        cases.split_at_mut(12).0.copy_from_slice(&TRANSCRIBERS);
        cases
    };
    at_once(&CASES, |transcriber, row| {
        let (desk, id, person) = call("fake/alto", transcriber);
        hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
        // Both are in vain before the caller is asked whether they are there.
        speak(&person, 1_000);
        std::thread::sleep(std::time::Duration::from_secs(5));
        speak(&person, 1_000);
        // Where they are lost together, the caller is asked to say it again, 12 s after the first of them.
        std::thread::sleep(std::time::Duration::from_secs(12));
        if desk.call(&id)["status"] == "in_progress" {
            speak(&person, 1_000);
        }
        let call = desk.over(&id);
        let said = texts(&call, "assistant");
        assert_eq!(said.first().copied(), Some(GREETING), "{transcriber}: {call}");
        // The second try may interrupt it.
        assert!(said.iter().skip(1).all(|text| ASKED_AGAIN.starts_with(text)), "{transcriber}: {call}");
        assert!(texts(&call, "user").is_empty(), "{transcriber}: {call}");
        let end = json!({"ended_reason": "speech_failed", "outcome": "failed", "fault": "provider"});
        desk.expect(&call, &end);
        let rows = texts(&call, "system");
        // Audio that came late may be heard as one utterance more, which is pending when the call ends.
        let is_pending = |said: &&&str| said.ends_with("when the call was over");
        let told = &rows[..rows.len() - usize::from(rows.last().filter(is_pending).is_some())];
        let (last, before) = told.split_last().unwrap();
        // What is tried again meanwhile may fail in another way.
        let is_late =
            |said: &str| said.contains("did not answer with") || said.contains("did not answer in time");
        assert!(
            before.iter().all(|said| is_late(said) || is(said, row, transcriber)),
            "{transcriber}: {rows:?}"
        );
        assert!(before.len() <= 4 && last.ends_with(ADVICE), "{transcriber}: {rows:?}");
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
    at_once(&REFUSING, |transcriber, row| {
        let (desk, id, person) = call("fake/alto", transcriber);
        speak(&person, 1_000);
        let call = desk.over(&id);
        assert!(texts(&call, "user").is_empty(), "{call}");
        says(&call, transcriber, row);
        desk.expect(
            &call,
            &json!({"ended_reason": "speech_failed", "outcome": "failed", "fault": "operator"}),
        );
    });
}

/// One line without a sound does not end the call, and the second does, however the voice fails.
#[test]
fn an_assistant_that_is_never_heard_ends_the_call() {
    // No other voice takes over from these.
    const LONE: [(&str, &str); 3] = [
        ("elevenlabs/lone-breaks", "ElevenLabs closed the connection with code 1006"),
        (
            "fake/lone-page",
            "The speech server answered with status 200 and text/html instead of audio samples; check its base URL, \
             and that it can answer with pcm",
        ),
        ("fake/lone-mute", "The speech server made no audio for the text"),
    ];
    at_once(&LONE, |voice, row| {
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
        let rows = texts(&call, "system");
        // One of the lines may be given up before the voice tells how it fails, but not all of them.
        assert!(
            (2..=3).contains(&rows.len())
                && rows.iter().all(|said| is(said, row, voice) || is_late(said, row))
                && rows.iter().any(|said| is(said, row, voice)),
            "{voice}: {rows:?}"
        );
        let end = json!({"ended_reason": "speech_failed", "outcome": "failed", "fault": "provider"});
        desk.expect(&call, &end);
        assert_eq!(call["costs"]["tts_microusd"], 0, "{voice}: {call}");
    });
}

/// Who says something and hangs up in the middle of it, or at once after it, has said it.
#[test]
fn words_before_a_hang_up_are_in_the_transcript() {
    const TRANSCRIBERS: [(&str, &str); 4] = [
        ("fake/scribe", ""),
        ("deepgram/nova-3", ""),
        ("deepgram/flux-general-en", ""),
        ("live/gpt-live-transcribe", ""),
    ];
    const SAID: &str = "When do you open on Saturday?";
    fn hangs_up(transcriber: &'static str) -> Value {
        let (desk, id, mut person) = call("fake/alto", transcriber);
        let term = format!("term {}", desk.number);
        fakes::shared().will_hear(&term, &[SAID]);
        hears_ms(&person, GREETING.len() as i64 * CHAR_MS);
        person.say(&speech_like(1_500, person.rate(), 120.0));
        person.hang_up();
        let call = desk.over(&id);
        desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
        call
    }
    at_once(&TRANSCRIBERS, |transcriber, _| {
        // A transcriber has three seconds for it, which a busy machine may take.
        let is_seen = |call: &Value| !texts(call, "system").iter().any(|said| said.ends_with(PENDING));
        let call = in_time(transcriber, || hangs_up(transcriber), is_seen);
        assert_eq!(texts(&call, "user"), [SAID], "{transcriber}: {call}");
        assert_eq!(texts(&call, "system"), [""; 0], "{transcriber}: {call}");
        let row = call["transcript"].as_array().unwrap().last().unwrap();
        let (end_ms, duration_ms) = (row["end_ms"].as_i64().unwrap(), call["duration_ms"].as_i64().unwrap());
        assert!(
            end_ms <= duration_ms && end_ms > duration_ms - 1_500,
            "{transcriber}: {row} of {duration_ms} ms"
        );
    });
}
