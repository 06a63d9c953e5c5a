//! Somebody speaks over the assistant: what pauses it, what cuts it, and what does neither.
use super::*;
use crate::speech::end_of_turn::Patience;
use crate::speech::listener::scripted::Script;
use crate::speech::speech_like::speech_like;
use crate::speech::tone::ToneEncoder;
use crate::speech::transcriber::TranscriberEvent::{Final, Partial};

const RATE: Rate = Rate::Khz16;
const STATEMENT: &str =
    "We are open every day from ten in the morning to six in the evening, on Sundays, too.";

/// A line that plays in real time, and somebody at its other end.
struct Scene {
    voice: Voice,
    script: Script,
    now_ms: i64,
    plays_until_ms: i64,
    /// The marks that the line will return, each with its time.
    marks: Vec<(i64, u64)>,
    events: Vec<(i64, VoiceEvent)>,
}

impl Scene {
    fn new(turn_taking: TurnTaking) -> Self {
        let script = Script::default();
        let listener = Listener::new(RATE, Box::new(script.clone()), Patience::default(), "en");
        let voice = Voice::new(RATE, Ear::Speech(Box::new(listener)), Mouth::Tone, turn_taking, false);
        Self { voice, script, now_ms: 0, plays_until_ms: 0, marks: Vec::new(), events: Vec::new() }
    }

    fn say(&mut self, text: &str) -> i64 {
        self.voice.say(self.now_ms, text);
        self.play();
        ToneEncoder::duration_ms(text)
    }

    fn play(&mut self) {
        while let Some(output) = self.voice.poll_output(self.now_ms) {
            match output {
                PlayerOutput::Audio(_) => {
                    self.plays_until_ms = self.plays_until_ms.max(self.now_ms) + 20;
                }
                PlayerOutput::Mark(mark) => self.marks.push((self.plays_until_ms, mark)),
                PlayerOutput::Clear => {
                    self.plays_until_ms = self.now_ms;
                    self.marks.iter_mut().for_each(|(at_ms, _)| *at_ms = self.now_ms.min(*at_ms));
                }
            }
        }
        while let Some(event) = self.voice.poll_event() {
            self.events.push((self.now_ms, event));
        }
    }

    fn hear(&mut self, ms: i64, is_voice: bool) {
        let sound = if is_voice { speech_like(ms, RATE, 120.0) } else { vec![0; (ms * 16) as usize] };
        for samples in sound.chunks_exact(RATE.frame_samples()) {
            self.now_ms += 20;
            let due = self.marks.iter().take_while(|(at_ms, _)| *at_ms <= self.now_ms).count();
            for (_, mark) in self.marks.drain(..due).collect::<Vec<_>>() {
                self.voice.played(self.now_ms, mark);
            }
            self.voice.hear(self.now_ms, samples);
            self.voice.tick(self.now_ms);
            self.play();
        }
    }

    fn understood(&self, text: &str) {
        self.script.transcribed(Final(text.to_owned()));
    }

    /// When such an event was, each time.
    fn times(&self, is_it: impl Fn(&VoiceEvent) -> bool) -> Vec<i64> {
        self.events.iter().filter(|(_, event)| is_it(event)).map(|(at_ms, _)| *at_ms).collect()
    }

    fn paused(&self) -> Vec<i64> {
        self.times(|event| *event == VoiceEvent::Paused)
    }

    fn resumed(&self) -> Vec<i64> {
        self.times(|event| *event == VoiceEvent::Resumed)
    }

    fn said(&self) -> Vec<&str> {
        let said = self.events.iter().filter_map(|(_, event)| match event {
            VoiceEvent::Said { text, .. } => Some(text.as_str()),
            _ => None,
        });
        said.collect()
    }

    fn cut(&self) -> Vec<u32> {
        let cut = self.events.iter().filter_map(|(_, event)| match event {
            VoiceEvent::Cut(heard) => Some(heard[0]),
            _ => None,
        });
        cut.collect()
    }
}

fn is_spoken(event: &VoiceEvent) -> bool {
    matches!(event, VoiceEvent::Spoken { .. })
}

#[test]
fn a_line_that_begins_while_the_person_speaks_waits_for_them() {
    let mut scene = Scene::new(TurnTaking::default());
    scene.hear(1_000, true);
    scene.say(STATEMENT);
    assert_eq!(scene.paused(), [1_000], "at once: nothing of it is heard");
    assert_eq!(scene.plays_until_ms, 0);
    scene.hear(1_000, true);
    scene.hear(400, false);
    scene.understood("No, on Mondays.");
    scene.hear(1_000, false);
    assert_eq!((scene.cut(), scene.said()), (vec![0], vec!["No, on Mondays."]));
    // Without words, it goes on in a moment.
    let mut scene = Scene::new(TurnTaking::default());
    scene.hear(1_000, true);
    let duration_ms = scene.say(STATEMENT);
    scene.hear(200, true);
    scene.hear(duration_ms + 4_000, false);
    assert_eq!((scene.paused().len(), scene.resumed().len()), (1, 1), "{:?}", scene.events);
    assert_eq!(scene.times(is_spoken).len(), 1, "{:?}", scene.events);
}

#[test]
fn a_cough_and_an_acknowledgement_pause_a_line_and_cut_nothing() {
    for text in ["", "Mhm."] {
        let mut scene = Scene::new(TurnTaking::default());
        let duration_ms = scene.say(STATEMENT);
        scene.hear(1_000, false);
        scene.hear(500, true);
        scene.hear(400, false);
        scene.understood(text);
        scene.hear(duration_ms + 4_000, false);
        assert_eq!((scene.paused().len(), scene.resumed().len()), (1, 1), "{text:?}: {:?}", scene.events);
        assert_eq!(
            (scene.cut(), scene.said(), scene.times(is_spoken).len()),
            (vec![], vec![], 1),
            "{text:?}"
        );
    }
}

#[test]
fn a_voice_without_words_pauses_a_line_only_for_a_while() {
    let mut scene = Scene::new(TurnTaking::default());
    let duration_ms = scene.say(STATEMENT);
    scene.hear(1_000, false);
    scene.hear(duration_ms + 5_000, true);
    let (paused, resumed) = (scene.paused(), scene.resumed());
    assert_eq!((paused.len(), resumed.len()), (1, 1), "{:?}", scene.events);
    assert!((3_900..=4_100).contains(&(resumed[0] - paused[0])), "{paused:?} {resumed:?}");
    assert_eq!(scene.times(is_spoken).len(), 1, "{:?}", scene.events);
    // Words still cut what pauses no more.
    let mut scene = Scene::new(TurnTaking::default());
    scene.say(&STATEMENT.repeat(5));
    scene.hear(6_000, true);
    assert_eq!((scene.paused().len(), scene.resumed().len()), (1, 1), "{:?}", scene.events);
    scene.script.transcribed(Partial("Can you stop now".into()));
    scene.hear(100, true);
    assert_eq!(scene.cut().len(), 1, "{:?}", scene.events);
}

#[test]
fn noise_that_comes_and_goes_pauses_a_line_a_few_times_and_no_more() {
    for gap_ms in [300, 2_500] {
        let mut scene = Scene::new(TurnTaking::default());
        scene.say(&STATEMENT.repeat(5));
        for _ in 0..20 {
            scene.hear(400, true);
            scene.hear(gap_ms, false);
        }
        scene.hear(10_000, false);
        assert!((1..=3).contains(&scene.paused().len()), "{gap_ms}: {:?}", scene.paused());
        assert_eq!(scene.paused().len(), scene.resumed().len());
        let (paused, resumed) = (scene.paused(), scene.resumed());
        let longest_ms = paused.iter().zip(&resumed).map(|(from, until)| until - from).max();
        assert!(longest_ms.unwrap() <= 4_100, "{gap_ms}: {paused:?} {resumed:?}");
        assert_eq!(scene.times(is_spoken).len(), 1, "{gap_ms}");
        // The next line is paused again.
        let before = scene.paused().len();
        scene.say(STATEMENT);
        scene.hear(500, true);
        assert_eq!(scene.paused().len(), before + 1, "{gap_ms}");
    }
}

#[test]
fn a_short_word_at_the_end_of_a_question_answers_it() {
    // A word of the question may be an answer; all of it is an echo.
    for (before_end_ms, answer, expected) in [
        (400, "Yes.", vec!["Yes."]),
        (2_000, "Yes.", vec![]),
        (400, "Right.", vec!["Right."]),
        (400, "Is that right.", vec![]),
    ] {
        let mut scene = Scene::new(TurnTaking { interruption_words_min: 3, ..TurnTaking::default() });
        let duration_ms = scene.say(&format!("{STATEMENT} {STATEMENT} Is that right?"));
        scene.hear((duration_ms - before_end_ms) / 20 * 20, false);
        scene.hear(500, true);
        scene.hear(300, false);
        scene.understood(answer);
        scene.hear(6_000, false);
        assert_eq!(scene.said(), expected, "{before_end_ms}: {:?}", scene.events);
        assert_eq!(scene.cut().len(), expected.len());
    }
}

#[test]
fn fewer_words_than_interrupt_only_pause() {
    for (text, cuts) in [("Stop it.", 0), ("Stop it right now.", 1)] {
        let mut scene = Scene::new(TurnTaking { interruption_words_min: 3, ..TurnTaking::default() });
        scene.say(STATEMENT);
        scene.hear(1_000, false);
        scene.hear(800, true);
        scene.hear(300, false);
        scene.understood(text);
        scene.hear(2_000, false);
        assert_eq!((scene.paused().len(), scene.cut().len(), scene.said().len()), (1, cuts, cuts), "{text}");
        assert_eq!(scene.resumed().len(), 1 - cuts, "{text}");
    }
}

#[test]
fn nothing_pauses_or_cuts_an_uninterruptible_line() {
    let mut scene = Scene::new(TurnTaking { interruptible: false, ..TurnTaking::default() });
    let duration_ms = scene.say(STATEMENT);
    scene.hear(1_000, false);
    scene.hear(1_000, true);
    scene.voice.key_pressed(scene.now_ms);
    scene.hear(300, false);
    scene.understood("I want to speak to a person.");
    scene.hear(duration_ms, false);
    assert_eq!((scene.paused(), scene.cut()), (vec![], vec![]), "{:?}", scene.events);
    assert_eq!(scene.said(), ["I want to speak to a person."]);
    assert_eq!(scene.times(is_spoken).len(), 1);
    // The same for tones.
    let mut voice = Voice::tone(RATE, TurnTaking { interruptible: false, ..TurnTaking::default() }, false);
    voice.say(0, STATEMENT);
    while voice.poll_output(0).is_some() {}
    for (nth, samples) in ToneEncoder::speak("Stop.", RATE).chunks(RATE.frame_samples()).enumerate() {
        voice.hear(20 * (1 + nth as i64), samples);
    }
    let events: Vec<_> = std::iter::from_fn(|| voice.poll_event()).collect();
    assert!(events.iter().any(|event| matches!(event, VoiceEvent::Said { .. })), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, VoiceEvent::Cut(_))), "{events:?}");
}
