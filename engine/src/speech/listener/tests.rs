//! Scenarios with a scripted transcriber and a sound that the detector takes for a voice.
use super::scripted::Script;
use super::*;
use crate::speech::arrival_clock::ArrivalClock;
use crate::speech::exchange::SpeechFault;
use crate::speech::speech_like::speech_like;

struct Scene {
    listener: Listener,
    script: Script,
    now_ms: i64,
    heard: Vec<(i64, Heard)>,
}

impl Scene {
    fn new() -> Self {
        Self::of(Script::default())
    }

    fn of(script: Script) -> Self {
        let listener = Listener::new(Rate::Khz16, Box::new(script.clone()), Patience::default(), "en");
        Self { listener, script, now_ms: 0, heard: Vec::new() }
    }

    fn hear(&mut self, ms: i64, is_voice: bool) {
        let sound = if is_voice { speech_like(ms, Rate::Khz16, 120.0) } else { vec![0; (ms * 16) as usize] };
        for samples in sound.chunks_exact(320) {
            self.now_ms += 20;
            self.listener.hear(self.now_ms, self.now_ms, samples);
            self.listener.tick(self.now_ms);
            while let Some(heard) = self.listener.poll_heard() {
                self.heard.push((self.now_ms, heard));
            }
        }
    }

    /// Nothing arrives.
    fn wait(&mut self, ms: i64) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            self.now_ms += 20;
            self.listener.tick(self.now_ms);
            while let Some(heard) = self.listener.poll_heard() {
                self.heard.push((self.now_ms, heard));
            }
        }
    }

    fn transcribed(&self, event: TranscriberEvent) {
        self.script.transcribed(event);
    }

    fn said(&self) -> Vec<(i64, &str)> {
        self.heard
            .iter()
            .filter_map(|(at_ms, heard)| match heard {
                Heard::Said { text, .. } | Heard::SaidLate { text, .. } => Some((*at_ms, text.as_str())),
                _ => None,
            })
            .collect()
    }
}

/// The transcriber lost what was said.
fn lost() -> TranscriberEvent {
    TranscriberEvent::Failed(SpeechFailure {
        message: "It failed".into(),
        fault: SpeechFault::Provider,
        is_temporary: true,
    })
}

#[test]
fn a_turn_ends_after_silence_when_its_words_are_complete() {
    let mut scene = Scene::new();
    scene.hear(500, false);
    scene.hear(1_500, true);
    scene.hear(300, false);
    assert!(scene.heard.iter().any(|(_, heard)| *heard == Heard::VoiceBegan), "{:?}", scene.heard);
    scene.transcribed(TranscriberEvent::Final("When do you open?".into()));
    scene.hear(3_000, false);
    let said = scene.said();
    assert_eq!(said.len(), 1, "{:?}", scene.heard);
    assert_eq!(said[0].1, "When do you open?");
    assert!((2_400..2_700).contains(&said[0].0), "{said:?}");
}

#[test]
fn a_turn_whose_audio_stops_coming_ends() {
    let mut scene = Scene::new();
    scene.hear(500, false);
    scene.hear(1_500, true);
    // A line that works may be this late.
    scene.wait(1_200);
    assert!(!scene.heard.iter().any(|(_, heard)| *heard == Heard::VoiceEnded), "{:?}", scene.heard);
    assert!(scene.listener.poll_timeout().is_some_and(|at_ms| at_ms <= 3_500), "it is ticked in time");
    scene.wait(400);
    assert!(scene.heard.iter().any(|(_, heard)| *heard == Heard::VoiceEnded), "{:?}", scene.heard);
    scene.transcribed(TranscriberEvent::Final("When do you open?".into()));
    scene.wait(1_000);
    assert_eq!(scene.said().iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["When do you open?"]);
    let until_ms = scene.heard.iter().find_map(|(_, heard)| match heard {
        Heard::Said { until_ms, .. } => Some(*until_ms),
        _ => None,
    });
    assert!(until_ms.is_some_and(|until_ms| (1_900..2_100).contains(&until_ms)), "{until_ms:?}");
    // What comes then is heard as before.
    scene.hear(200, false);
    scene.hear(1_000, true);
    scene.hear(400, false);
    scene.transcribed(TranscriberEvent::Final("And on Sunday?".into()));
    scene.hear(2_000, false);
    assert_eq!(scene.said().len(), 2, "{:?}", scene.heard);
}

#[test]
fn words_that_the_transcriber_lost_are_no_cough() {
    let last = |voice_ms: i64, event: TranscriberEvent| {
        let mut scene = Scene::new();
        scene.hear(500, false);
        scene.hear(voice_ms, true);
        scene.hear(600, false);
        scene.transcribed(event);
        scene.hear(5_000, false);
        scene.heard.pop().map(|(_, heard)| heard)
    };
    assert_eq!(last(1_500, lost()), Some(Heard::NotUnderstood));
    assert_eq!(last(1_500, TranscriberEvent::Final(String::new())), Some(Heard::NoWords));
    assert_eq!(last(120, lost()), Some(Heard::NoWords), "a cough");
}

#[test]
fn a_turn_that_lost_a_part_is_said_with_the_rest() {
    let mut scene = Scene::new();
    scene.hear(1_500, true);
    scene.hear(400, false);
    scene.transcribed(TranscriberEvent::Final("I would like a table for".into()));
    scene.hear(800, true);
    scene.hear(400, false);
    scene.transcribed(lost());
    scene.hear(5_000, false);
    assert_eq!(scene.said().len(), 1);
    assert!(!scene.heard.iter().any(|(_, heard)| *heard == Heard::NotUnderstood), "{:?}", scene.heard);
}

#[test]
fn an_unfinished_sentence_waits_for_its_end() {
    let mut scene = Scene::new();
    scene.hear(1_500, true);
    scene.hear(300, false);
    scene.transcribed(TranscriberEvent::Final("I would like a table for".into()));
    scene.hear(500, false);
    assert!(scene.said().is_empty());
    scene.hear(800, true);
    scene.hear(300, false);
    scene.transcribed(TranscriberEvent::Final("two people.".into()));
    scene.hear(2_000, false);
    let texts: Vec<_> = scene.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["I would like a table for two people."]);
}

#[test]
fn speech_without_words_is_no_turn() {
    let mut scene = Scene::new();
    scene.hear(500, false);
    scene.hear(600, true);
    scene.hear(500, false);
    scene.transcribed(TranscriberEvent::Final(String::new()));
    scene.hear(1_000, false);
    assert!(scene.said().is_empty());
    assert!(scene.heard.iter().any(|(_, heard)| *heard == Heard::NoWords));
}

#[test]
fn a_late_transcript_ends_the_turn_at_once() {
    let mut scene = Scene::new();
    scene.hear(1_000, true);
    scene.hear(6_000, false);
    assert!(scene.said().is_empty());
    scene.transcribed(TranscriberEvent::Final("Hello.".into()));
    scene.hear(40, false);
    assert_eq!(scene.said().len(), 1);
}

#[test]
fn who_speaks_in_vain_is_not_left_waiting() {
    let failures = |scene: &Scene| -> Vec<SpeechFailure> {
        let failed = scene.heard.iter().filter_map(|(_, heard)| match heard {
            Heard::Failed(failure) => Some(failure.clone()),
            _ => None,
        });
        failed.collect()
    };
    let mut scene = Scene::new();
    for _ in 0..2 {
        scene.hear(1_000, true);
        scene.hear(1_000, false);
        scene.transcribed(lost());
        scene.hear(4_000, false);
    }
    let told = failures(&scene);
    assert_eq!(
        told.iter().map(|failure| failure.is_temporary).collect::<Vec<_>>(),
        [true, false],
        "{told:?}"
    );

    // The transcriber says nothing at all. Its driver is woken in time, and the person is asked again before they are given up.
    let mut scene = Scene::new();
    for _ in 0..2 {
        scene.hear(1_000, true);
        scene.hear(5_000, false);
    }
    let due_ms = scene.listener.poll_timeout().unwrap();
    assert!(failures(&scene).is_empty() && (12_900..=13_300).contains(&due_ms), "{due_ms}");
    scene.wait(due_ms - scene.now_ms + 20);
    let last: Vec<_> = scene.heard.iter().rev().take(2).map(|(_, heard)| heard).collect();
    assert!(
        matches!(last[..], [Heard::NotUnderstood, Heard::Failed(failure)] if failure.is_temporary),
        "{last:?}"
    );
    // Both utterances fail: that is told and no other loss.
    scene.transcribed(lost());
    scene.transcribed(lost());
    scene.hear(2_000, false);
    assert!(failures(&scene).iter().all(|failure| failure.is_temporary), "{:?}", scene.heard);
    scene.hear(1_000, true);
    scene.hear(11_900, false);
    assert!(failures(&scene).iter().all(|failure| failure.is_temporary), "{:?}", scene.heard);
    scene.hear(500, false);
    assert!(failures(&scene).last().is_some_and(|failure| !failure.is_temporary), "{:?}", scene.heard);
}

#[test]
fn a_loss_before_others_does_not_keep_the_person_waiting() {
    let mut scene = Scene::new();
    scene.hear(1_000, true);
    scene.hear(5_000, false);
    scene.hear(1_000, true);
    scene.hear(2_000, false);
    scene.transcribed(lost());
    scene.hear(4_500, false);
    assert!(scene.heard.iter().any(|(_, heard)| *heard == Heard::NotUnderstood), "{:?}", scene.heard);
}

#[test]
fn who_still_speaks_when_their_words_are_given_up_is_asked_again_afterwards() {
    let mut scene = Scene::new();
    scene.hear(1_000, true);
    scene.hear(10_500, false);
    scene.hear(3_000, true);
    let is_asked = |scene: &Scene| scene.heard.iter().any(|(_, heard)| *heard == Heard::NotUnderstood);
    assert!(!is_asked(&scene), "{:?}", scene.heard);
    scene.hear(500, false);
    assert!(is_asked(&scene), "{:?}", scene.heard);
}

#[test]
fn a_result_is_awaited_while_words_come() {
    let mut scene = Scene::new();
    scene.hear(1_500, true);
    for words in ["And", "And what", "And what does a check-up"] {
        scene.transcribed(TranscriberEvent::Partial(words.into()));
        scene.hear(500, false);
    }
    assert!(scene.said().is_empty(), "{:?}", scene.heard);
    scene.transcribed(TranscriberEvent::Final("And what does a check-up cost?".into()));
    scene.hear(20, false);
    assert_eq!(scene.said().last().map(|(_, text)| *text), Some("And what does a check-up cost?"));
    // Not for ever.
    scene.hear(1_500, true);
    for words in 0..10 {
        scene.transcribed(TranscriberEvent::Partial(format!("And {words}.")));
        scene.hear(400, false);
    }
    let said = scene.said();
    assert!(said.len() == 2 && (7_500..7_600).contains(&said[1].0), "{said:?}");
}

#[test]
fn words_after_their_result_are_said() {
    let late = |told: &str, wait_ms: i64| {
        let mut scene = Scene::new();
        scene.hear(1_500, true);
        scene.hear(250, false);
        scene.transcribed(TranscriberEvent::Final(told.into()));
        scene.hear(wait_ms, false);
        let text = "When do you open on Saturday?".to_owned();
        scene.transcribed(TranscriberEvent::Late { told: told.to_owned(), text });
        scene.hear(2_000, false);
        scene.said().into_iter().map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
    };
    // The turn is held: it is one.
    assert_eq!(late("When do you open on", 300), ["When do you open on Saturday?"]);
    assert_eq!(late("When do you open on", 2_500), ["When do you open on", "Saturday?"]);
    assert_eq!(late("", 2_500), ["When do you open on Saturday?"]);
    assert_eq!(late("When do you open on Saturday", 2_500), ["When do you open on Saturday"]);
}

#[test]
fn a_turn_that_its_provider_ends_late_is_said_once() {
    let mut scene = Scene::of(Script::with_turns());
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::Partial("Hello".into()));
    scene.hear(6_000, false);
    assert_eq!(scene.said().len(), 1, "{:?}", scene.heard);
    scene.transcribed(TranscriberEvent::TurnEnded("Hello.".into()));
    scene.hear(500, false);
    assert_eq!(scene.said().len(), 1, "{:?}", scene.heard);
    // The next turn may have the same words.
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::TurnEnded("Hello?".into()));
    scene.hear(500, false);
    assert_eq!(scene.said().last().map(|(_, text)| *text), Some("Hello?"));
}

#[test]
fn what_follows_in_a_turn_of_the_provider_is_said_without_what_was_said() {
    let mut scene = Scene::of(Script::with_turns());
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::Partial("I would like a table".into()));
    scene.hear(6_000, false);
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::Partial("I would like a table for two".into()));
    scene.hear(100, true);
    assert!(
        scene.heard.iter().any(|(_, heard)| *heard == Heard::Words("for two".into())),
        "{:?}",
        scene.heard
    );
    scene.transcribed(TranscriberEvent::TurnEnded("I would like a table, for two.".into()));
    scene.hear(500, false);
    let said: Vec<_> = scene.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["I would like a table", "for two."]);
}

#[test]
fn whoever_goes_on_when_their_provider_has_ended_the_turn_is_heard() {
    let mut scene = Scene::of(Script::with_turns());
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::TurnEnded("I would like to".into()));
    scene.hear(1_000, true);
    let said = scene.heard.iter().position(|(_, heard)| matches!(heard, Heard::Said { .. })).unwrap();
    let began = scene.heard.iter().rposition(|(_, heard)| *heard == Heard::VoiceBegan).unwrap();
    assert!(began > said && scene.heard[began].0 - scene.heard[said].0 <= 300, "{:?}", scene.heard);
    scene.transcribed(TranscriberEvent::Partial("record a name".into()));
    scene.hear(600, false);
    scene.transcribed(TranscriberEvent::TurnEnded("record a name, please.".into()));
    scene.hear(100, false);
    let Some((_, Heard::Said { duration_ms, until_ms, .. })) = scene.heard.last() else {
        panic!("{:?}", scene.heard)
    };
    assert!((800..=1_100).contains(duration_ms) && (1_900..=2_100).contains(until_ms), "{:?}", scene.heard);
}

#[test]
fn a_turn_that_ends_with_its_voice_is_over() {
    let mut scene = Scene::of(Script::with_turns());
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::TurnEnded("Yes.".into()));
    scene.hear(100, true);
    scene.hear(3_000, false);
    let after = scene.heard.iter().skip_while(|(_, heard)| !matches!(heard, Heard::Said { .. })).skip(1);
    assert_eq!(after.collect::<Vec<_>>(), Vec::<&(i64, Heard)>::new());
}

#[test]
fn what_is_being_said_when_the_call_ends_is_said() {
    let mut scene = Scene::new();
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::Partial("Cancel my".into()));
    scene.hear(20, true);
    scene.listener.close(scene.now_ms);
    scene.transcribed(TranscriberEvent::Final("Cancel my table.".into()));
    scene.listener.tick(scene.now_ms + 300);
    scene.listener.end_turn();
    let last = std::iter::from_fn(|| scene.listener.poll_heard()).last();
    let Some(Heard::Said { text, until_ms, .. }) = last else { panic!("{last:?}") };
    assert_eq!(text, "Cancel my table.");
    assert!((900..=1_020).contains(&until_ms), "{until_ms}");
    assert!(!scene.listener.awaits_words());
}

#[test]
fn last_words_without_a_result_are_told_as_far_as_they_are_known() {
    let last = |partial: Option<&str>, voice_ms: i64| {
        let mut scene = Scene::new();
        scene.hear(500, false);
        scene.hear(voice_ms, true);
        if let Some(partial) = partial {
            scene.transcribed(TranscriberEvent::Partial(partial.into()));
            scene.hear(20, true);
        }
        scene.listener.close(scene.now_ms);
        scene.listener.end_turn();
        std::iter::from_fn(|| scene.listener.poll_heard()).last()
    };
    assert!(matches!(last(Some("Cancel my"), 1_000), Some(Heard::Said { text, .. }) if text == "Cancel my"));
    assert_eq!(last(None, 1_000), Some(Heard::NotUnderstood));
    assert_ne!(last(None, 100), Some(Heard::NotUnderstood), "a cough");
}

#[test]
fn words_that_come_after_their_turn_are_said() {
    // The turn ends with what is known after the longest wait.
    let early = |result: &str| {
        let mut scene = Scene::new();
        scene.hear(1_500, true);
        scene.transcribed(TranscriberEvent::Partial("Cancel my table".into()));
        scene.hear(6_000, false);
        assert_eq!(scene.said().len(), 1, "{:?}", scene.heard);
        scene.transcribed(TranscriberEvent::Final(result.into()));
        scene
    };
    let mut scene = early("Cancel my table for Saturday.");
    scene.hear(1_000, false);
    assert_eq!(scene.said()[1].1, "for Saturday.", "{:?}", scene.heard);
    // The same, corrected.
    let mut scene = early("Cancel my tables.");
    scene.hear(1_000, false);
    assert_eq!(scene.said().len(), 1, "{:?}", scene.heard);
    // The person says more meanwhile: it is one turn.
    let mut scene = early("");
    scene.hear(100, false);
    let mut scene = Scene { heard: Vec::new(), ..scene };
    scene.hear(1_500, true);
    scene.transcribed(TranscriberEvent::Partial("And the room".into()));
    scene.hear(6_000, false);
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::Final("And the room on Sunday.".into()));
    scene.hear(300, false);
    scene.transcribed(TranscriberEvent::Final("Please.".into()));
    scene.hear(3_000, false);
    let said: Vec<_> = scene.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["And the room", "on Sunday. Please."]);
}

#[test]
fn what_was_understood_before_a_loss_is_kept() {
    let mut scene = Scene::new();
    for _ in 0..3 {
        scene.hear(1_500, true);
        scene.transcribed(TranscriberEvent::Partial("I would like a table.".into()));
        scene.hear(400, false);
        scene.transcribed(lost());
        scene.hear(5_000, false);
    }
    assert!(scene.said().iter().all(|(_, text)| *text == "I would like a table."), "{:?}", scene.heard);
    assert_eq!(scene.said().len(), 3);
    // Nobody speaks in vain, so the call goes on.
    let is_for_good = |heard: &Heard| matches!(heard, Heard::Failed(failure) if !failure.is_temporary);
    assert!(!scene.heard.iter().any(|(_, heard)| is_for_good(heard)), "{:?}", scene.heard);
}

#[test]
fn after_the_end_of_the_call_nothing_but_results_ends_a_turn() {
    let mut scene = Scene::new();
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::Partial("Counsel my table".into()));
    scene.hear(20, true);
    scene.listener.close(scene.now_ms);
    scene.listener.tick(scene.now_ms + 2_500);
    scene.transcribed(TranscriberEvent::Final("Cancel my table for Saturday.".into()));
    scene.listener.tick(scene.now_ms + 2_600);
    scene.listener.end_turn();
    let said = std::iter::from_fn(|| scene.listener.poll_heard());
    let said: Vec<_> =
        said.filter(|heard| matches!(heard, Heard::Said { .. } | Heard::SaidLate { .. })).collect();
    assert!(
        matches!(&said[..], [Heard::Said { text, .. }] if text == "Cancel my table for Saturday."),
        "{said:?}"
    );
}

#[test]
fn words_of_a_lost_turn_may_be_said_again() {
    let mut scene = Scene::of(Script::with_turns());
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::Partial("Yes".into()));
    scene.hear(300, false);
    scene.transcribed(lost());
    scene.hear(6_000, false);
    scene.hear(1_000, true);
    scene.transcribed(TranscriberEvent::TurnEnded("Yes".into()));
    scene.hear(500, false);
    let said: Vec<_> = scene.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["Yes", "Yes"], "{:?}", scene.heard);
}

/// On a machine that is busy for a while, audio comes late and then at once: the recording closes the gap again.
#[test]
fn a_turn_that_begins_in_late_audio_begins_where_it_was_spoken() {
    /// Between these times nothing arrives; after it, what was spoken meanwhile.
    const BUSY_MS: [i64; 2] = [900, 1_200];
    let begins_ms = 1_000;
    let sound = [vec![0; 16 * 1_000], speech_like(1_500, Rate::Khz16, 120.0), vec![0; 16 * 1_000]].concat();
    let mut clock = ArrivalClock::new(Rate::Khz16);
    let script = Script::default();
    let mut listener = Listener::new(Rate::Khz16, Box::new(script.clone()), Patience::default(), "en");
    let mut lag_ms = 0;
    for (spoken_ms, samples) in (20..).step_by(20).zip(sound.chunks_exact(320)) {
        // It catches up slowly: the voice is detected while the gap is still open.
        lag_ms = match spoken_ms {
            _ if spoken_ms > BUSY_MS[0] && lag_ms == 0 && spoken_ms < BUSY_MS[1] => BUSY_MS[1] - BUSY_MS[0],
            _ => (lag_ms - 5).max(0),
        };
        let now_ms = spoken_ms + lag_ms;
        listener.hear(now_ms, clock.arrived(now_ms, samples.len()) / 16, samples);
        listener.tick(now_ms);
    }
    script.transcribed(TranscriberEvent::Final("When do you open?".into()));
    listener.tick(5_000);
    let said = std::iter::from_fn(|| listener.poll_heard()).find_map(|heard| match heard {
        Heard::Said { duration_ms, until_ms, .. } => Some([until_ms - duration_ms, until_ms]),
        _ => None,
    });
    let late_ms = said.expect("a turn").map(|at_ms| at_ms - begins_ms);
    assert!(late_ms[0].abs() <= 50 && (late_ms[1] - 1_500).abs() <= 50, "{late_ms:?}");
}
