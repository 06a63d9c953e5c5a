use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::super::failure::{refused, temporary};
use super::super::testing::{Bench, message, play, samples, settings, steps};
use super::super::{SpeechApi, new};
use super::*;

/// What a voice was told, and what it reports next.
#[derive(Default)]
struct Script {
    heard: Vec<String>,
    events: VecDeque<SynthesizerEvent>,
}

/// A voice that reports what the test says.
struct Scripted(Arc<Mutex<Script>>);

impl Scripted {
    fn note(&self, note: String) {
        self.0.lock().unwrap().heard.push(note);
    }
}

impl Synthesizer for Scripted {
    fn speak(&mut self, _: i64, line: LineId, text: &str) {
        self.note(format!("{line}:{text}"));
    }
    fn finish(&mut self, _: i64, line: LineId) {
        self.note(format!("{line} finish"));
    }
    fn cancel(&mut self, _: i64, line: LineId) {
        self.note(format!("{line} cancel"));
    }
    fn close(&mut self, _: i64) {
        self.note("close".to_owned());
    }
    fn arrived(&mut self, _: i64, _: ExchangeId, _: Arrival) {}
    fn tick(&mut self, _: i64) {}
    fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }
    fn poll_event(&mut self) -> Option<SynthesizerEvent> {
        self.0.lock().unwrap().events.pop_front()
    }
    fn poll_timeout(&self) -> Option<i64> {
        None
    }
    fn billed_chars(&self) -> Vec<u64> {
        vec![10]
    }
}

/// Two voices by a script, the second one behind the first.
struct Stage {
    bench: Bench,
    scripts: [Arc<Mutex<Script>>; 2],
}

impl Stage {
    fn new() -> Self {
        let scripts: [Arc<Mutex<Script>>; 2] = Default::default();
        let [first, second] =
            [0, 1].map(|n| -> Box<dyn Synthesizer> { Box::new(Scripted(Arc::clone(&scripts[n]))) });
        Self { bench: Bench::new(Fallback::new(first, vec![second])), scripts }
    }

    /// A voice reports something.
    fn tell(&mut self, voice: usize, events: impl IntoIterator<Item = SynthesizerEvent>) {
        self.scripts[voice].lock().unwrap().events.extend(events);
        self.bench.arrive(0, Arrival::End);
    }

    /// What a voice was told since the last look.
    fn heard(&mut self, voice: usize) -> Vec<String> {
        std::mem::take(&mut self.scripts[voice].lock().unwrap().heard)
    }
}

fn audio(line: LineId, count: usize) -> SynthesizerEvent {
    SynthesizerEvent::Audio { line, samples: samples(count) }
}

fn words(line: LineId, words: &[(usize, i64)]) -> SynthesizerEvent {
    let words =
        words.iter().map(|(text_end, end_ms)| WordTime { text_end: *text_end, end_ms: *end_ms }).collect();
    SynthesizerEvent::Words { line, words }
}

fn failed(line: LineId) -> SynthesizerEvent {
    SynthesizerEvent::Failed { line, failure: temporary("it broke") }
}

fn done(line: LineId) -> SynthesizerEvent {
    SynthesizerEvent::Done { line }
}

#[test]
fn the_next_voice_goes_on_after_the_last_word() {
    let mut stage = Stage::new();
    stage.bench.speak(1, "One two three.");
    stage.bench.line(1, " Four five.");
    assert_eq!(stage.heard(0), ["1:One two three.", "1: Four five.", "1 finish"]);
    // A second of audio; the time of the third word lies behind it.
    stage.tell(0, [words(1, &[(3, 300), (7, 900), (14, 1_400)]), audio(1, 24_000)]);
    assert_eq!(stage.bench.of(1).words_of("One two three."), [("One", 300), ("One two", 900)]);
    stage.tell(0, [failed(1)]);
    assert_eq!(stage.heard(1), ["1: three.", "1: Four five.", "1 finish"]);
    assert_eq!(stage.bench.of(1).voice_failures.len(), 1);
    stage.tell(
        1,
        [
            audio(1, 12_000),
            words(1, &[(7, 400)]),
            audio(1, 12_000),
            words(1, &[(12, 700), (18, 990)]),
            done(1),
        ],
    );
    let told = stage.bench.of(1);
    assert!(told.is_done && told.failure.is_none());
    assert_eq!(told.samples.len(), 48_000);
    let text = "One two three. Four five.";
    let times: Vec<_> = told.words_of(text)[2..].iter().map(|(words, ms)| (words.len(), *ms)).collect();
    assert_eq!(times, [(14, 1_400), (19, 1_700), (25, 1_990)]);
    assert_eq!(stage.bench.voice.billed_chars(), [10, 10]);
}

#[test]
fn without_word_times_the_audio_is_measured_by_parts_and_pace() {
    let mut stage = Stage::new();
    stage.bench.speak(1, "Ten chars.");
    stage.bench.line(1, " Then some more words to speak.");
    // The first part took a second, ten characters; half a second more is five: " Then".
    stage.tell(
        0,
        [audio(1, 24_000), SynthesizerEvent::PartEnd { line: 1, text_end: 10 }, audio(1, 12_000), failed(1)],
    );
    assert_eq!(stage.heard(1), ["1: some more words to speak.", "1 finish"]);
    assert_eq!(stage.bench.of(1).part_ends, [10]);
    stage.tell(1, [audio(1, 100), SynthesizerEvent::PartEnd { line: 1, text_end: 26 }, done(1)]);
    assert_eq!(stage.bench.of(1).part_ends, [10, 15 + 26]);
}

#[test]
fn a_part_that_did_not_end_is_estimated_within_itself() {
    let mut stage = Stage::new();
    stage.bench.speak(1, "A few words here.");
    stage.bench.line(1, " And the rest.");
    // Ten seconds are more than the part can be; what follows it has not been spoken.
    stage.tell(0, [audio(1, 240_000), failed(1)]);
    assert_eq!(stage.heard(1), ["1: And the rest.", "1 finish"]);

    let mut stage = Stage::new();
    stage.bench.line(1, "Nothing of it was heard.");
    stage.tell(0, [failed(1)]);
    assert_eq!(stage.heard(1), ["1:Nothing of it was heard.", "1 finish"]);
}

#[test]
fn a_line_that_was_spoken_to_its_end_is_done_and_later_text_goes_to_the_next_voice() {
    let mut stage = Stage::new();
    stage.bench.speak(1, "One two.");
    stage.tell(0, [audio(1, 24_000), words(1, &[(3, 300), (8, 900)]), failed(1)]);
    assert_eq!(stage.heard(1), [""; 0]);
    stage.bench.speak(1, " Three.");
    assert_eq!(stage.heard(1), ["1: Three."]);
    stage.tell(1, [audio(1, 24_000), words(1, &[(7, 900)]), failed(1)]);
    stage.bench.finish(1);
    assert!(stage.bench.of(1).is_done);
}

#[test]
fn when_all_voices_fail_the_line_fails_with_the_last_reason() {
    let mut stage = Stage::new();
    stage.bench.line(1, "One.");
    stage.tell(0, [failed(1)]);
    stage.tell(1, [SynthesizerEvent::Failed { line: 1, failure: refused("the second", 401, "") }]);
    assert_eq!(stage.bench.failure(1).message, "the second answered with status 401");
    stage.heard(0);
    stage.heard(1);
    // Both rest, and the second for ever.
    stage.bench.line(2, "Two.");
    assert_eq!(stage.heard(0), ["2:Two.", "2 finish"]);
    stage.tell(0, [audio(2, 5), done(2)]);
    assert!(stage.bench.of(2).is_done);
}

#[test]
fn a_voice_that_failed_rests_for_a_minute() {
    let mut stage = Stage::new();
    stage.bench.line(1, "One.");
    stage.tell(0, [failed(1)]);
    stage.tell(1, [audio(1, 5), done(1)]);
    stage.bench.line(2, "Two.");
    assert_eq!(stage.heard(1).last().unwrap(), "2 finish");
    stage.tell(1, [audio(2, 5), done(2)]);
    stage.bench.pass(REST_MS);
    stage.heard(0);
    stage.bench.line(3, "Three.");
    assert_eq!(stage.heard(0), ["2:Three.", "2 finish"]);
}

#[test]
fn lines_wait_for_their_turn_and_a_cancelled_one_is_cancelled_there() {
    let mut stage = Stage::new();
    stage.bench.line(1, "One.");
    stage.bench.line(2, "Two.");
    assert_eq!(stage.heard(0), ["1:One.", "1 finish"]);
    stage.tell(0, [audio(1, 5)]);
    stage.bench.cancel(1);
    assert_eq!(stage.heard(0), ["1 cancel", "2:Two.", "2 finish"]);
    // What a voice still reports of a line that it was told to forget is not passed on.
    stage.tell(0, [audio(1, 5), failed(1), audio(2, 9), done(2)]);
    assert_eq!((stage.bench.of(2).samples.len(), stage.bench.of(2).is_done), (9, true));
    stage.bench.close();
    assert_eq!(stage.heard(0), ["close"]);
    assert_eq!(stage.heard(1), ["close"]);
}

#[test]
fn exchanges_of_different_voices_are_kept_apart() {
    let base = |kind| new(kind, settings("https://api.example.com"));
    let voices = vec![base(SpeechApi::Deepgram), base(SpeechApi::Cartesia)];
    let mut bench = Bench::new(Fallback::new(base(SpeechApi::OpenAi), voices));
    bench.line(1, "One.");
    bench.pass(0);
    let (id, _) = bench.requests().remove(0);
    bench.head(id, 401, "");
    bench.arrive(id, Arrival::End);
    let (id, request) = bench.connect();
    assert!(request.url.contains("/speak"));
    let refused = crate::speech::exchange::ExchangeFailure::Rejected { status: 401, body: String::new() };
    bench.arrive(id, Arrival::Failed(refused));
    let (id, request) = bench.connect();
    assert!(request.url.contains("/tts/websocket"));
    bench.arrive(id, Arrival::Opened);
    assert_eq!(bench.messages().len(), 2);
    bench.json(id, serde_json::json!({ "type": "chunk", "context_id": "line-1", "data": "AQABAA==" }));
    bench.json(id, serde_json::json!({ "type": "done", "context_id": "line-1" }));
    assert!(bench.of(1).is_done);
    assert_eq!(bench.of(1).voice_failures.len(), 2);
}

#[test]
fn words_within_a_number_of_characters() {
    for (text, chars, expected) in [
        (" one two", 3, ""),
        (" one two", 4, " one"),
        (" one two", 7, " one"),
        (" one two", 8, " one two"),
        (" one two", 99, " one two"),
        ("你好世界", 2, "你好"),
        ("", 5, ""),
    ] {
        assert_eq!(&text[..words_within(text, chars)], expected, "{text:?} {chars}");
    }
}

proptest! {
    #[test]
    fn any_arrivals_keep_the_rules(steps in steps(message(&[
        ("contextId", &[r#""line-1""#, r#""line-2""#, r#""line-3""#, r#""x""#]),
        ("context_id", &[r#""line-1""#, r#""line-2""#, r#""line-3""#, r#""x""#]),
        ("type", &[r#""chunk""#, r#""timestamps""#, r#""done""#, r#""Flushed""#, r#""error""#, r#""Cleared""#]),
        ("data", &[r#""AAAA""#, r#""AQ==""#, r#""?""#]),
        ("audio", &[r#""AAAA""#, r#""AQ==""#, "null"]),
        ("isFinal", &["true", "null"]),
        ("word_timestamps", &[r#"{"words":["a","b"],"start":[0,1],"end":[0.0001,0.5]}"#]),
    ]))) {
        let voice = |kind| new(kind, settings("wss://api.example.com"));
        let others = vec![voice(SpeechApi::ElevenLabs), voice(SpeechApi::OpenAi), voice(SpeechApi::Deepgram)];
        play(Fallback::new(voice(SpeechApi::Cartesia), others), steps);
    }
}
