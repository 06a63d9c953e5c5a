//! The texts that are given to the synthesizer: no further ahead of what is heard than it takes to speak without a gap.
use std::collections::VecDeque;

use super::{Mouth, Voice};
use crate::base::limits::{SPEECH_AHEAD_CHARS, SPEECH_AHEAD_CHARS_PER_S, SPEECH_AHEAD_MS};
use crate::speech::synthesizer::LineId;

/// What the synthesizer is given next.
#[derive(Debug)]
enum Next {
    Text(LineId, String),
    End(LineId),
}

impl Next {
    const fn line(&self) -> LineId {
        match self {
            Self::Text(line, _) | Self::End(line) => *line,
        }
    }
}

/// What the synthesizer was given, and what waits.
#[derive(Debug, Default)]
pub(super) struct GivenTexts {
    waiting: VecDeque<Next>,
    /// Characters that were given since the assistant was silent.
    chars: usize,
    /// How much audio had been heard then.
    since_ms: i64,
    /// Nothing is given before.
    held_until_ms: Option<i64>,
}

impl GivenTexts {
    pub(super) fn text(&mut self, line: LineId, text: &str) {
        self.waiting.push_back(Next::Text(line, text.to_owned()));
    }

    /// Gives nothing before this time.
    pub(super) const fn hold(&mut self, until_ms: i64) {
        self.held_until_ms = Some(until_ms);
    }

    /// When it gives again, if something waits for that.
    pub(super) fn held_until_ms(&self) -> Option<i64> {
        self.held_until_ms.filter(|_| !self.waiting.is_empty())
    }

    pub(super) fn end(&mut self, line: LineId) {
        self.waiting.push_back(Next::End(line));
    }

    /// Nothing more of the line is spoken.
    pub(super) fn drop_line(&mut self, line: LineId) {
        self.waiting.retain(|next| next.line() != line);
    }

    fn may_go_on(&self, heard_ms: i64, waiting_ms: i64) -> bool {
        let heard_ms = usize::try_from(heard_ms - self.since_ms).unwrap_or(0);
        let allowed = SPEECH_AHEAD_CHARS + heard_ms.saturating_mul(SPEECH_AHEAD_CHARS_PER_S) / 1_000;
        self.chars < allowed && waiting_ms < SPEECH_AHEAD_MS
    }
}

impl Voice {
    /// The assistant speaks after silence.
    pub(super) fn begin_giving(&mut self, now_ms: i64) {
        let (since_ms, _) = self.player.heard_and_waiting_ms(now_ms);
        self.given = GivenTexts { since_ms, ..GivenTexts::default() };
    }

    /// Gives the synthesizer what may be spoken by now.
    pub(super) fn give_texts(&mut self, now_ms: i64) {
        let Mouth::Speech(synthesizer) = &mut self.mouth else { return };
        if self.given.waiting.is_empty() || self.given.held_until_ms.is_some_and(|at_ms| now_ms < at_ms) {
            return;
        }
        self.given.held_until_ms = None;
        let (heard_ms, mut waiting_ms) = self.player.heard_and_waiting_ms(now_ms);
        while let Some(next) = self.given.waiting.front() {
            if matches!(next, Next::Text(..)) && !self.given.may_go_on(heard_ms, waiting_ms) {
                return;
            }
            match self.given.waiting.pop_front() {
                Some(Next::Text(line, text)) => {
                    let chars = text.chars().count();
                    self.given.chars += chars;
                    // At least so much audio comes of it.
                    waiting_ms += (chars * 1_000 / SPEECH_AHEAD_CHARS_PER_S) as i64;
                    synthesizer.speak(now_ms, line, &text);
                }
                Some(Next::End(line)) => synthesizer.finish(now_ms, line),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::speech::audio::Rate;
    use crate::speech::exchange::{Arrival, ExchangeId, Transmit};
    use crate::speech::player::PlayerOutput;
    use crate::speech::synthesizer::{Synthesizer, SynthesizerEvent};
    use crate::speech::tone::ToneDecoder;
    use crate::speech::voice::{Ear, TurnTaking};

    /// Speaks 15 characters in a second, as soon as it is given them.
    #[derive(Clone, Default)]
    struct Prompt {
        events: Arc<Mutex<VecDeque<SynthesizerEvent>>>,
        given: Arc<Mutex<String>>,
    }

    impl Synthesizer for Prompt {
        fn speak(&mut self, _: i64, line: LineId, text: &str) {
            self.given.lock().unwrap().push_str(text);
            let samples = vec![1; text.chars().count() * 24_000 / 15];
            self.events.lock().unwrap().push_back(SynthesizerEvent::Audio { line, samples });
        }

        fn finish(&mut self, _: i64, line: LineId) {
            self.events.lock().unwrap().push_back(SynthesizerEvent::Done { line });
        }

        fn cancel(&mut self, _: i64, _: LineId) {}

        fn close(&mut self, _: i64) {}

        fn arrived(&mut self, _: i64, _: ExchangeId, _: Arrival) {}

        fn tick(&mut self, _: i64) {}

        fn poll_transmit(&mut self) -> Option<Transmit> {
            None
        }

        fn poll_event(&mut self) -> Option<SynthesizerEvent> {
            self.events.lock().unwrap().pop_front()
        }

        fn poll_timeout(&self) -> Option<i64> {
            None
        }

        fn billed_chars(&self) -> Vec<u64> {
            vec![self.given.lock().unwrap().chars().count() as u64]
        }
    }

    fn voice_of(prompt: &Prompt) -> Voice {
        let ear = Ear::Tone(Box::new(ToneDecoder::new(Rate::Khz8)));
        let mouth = Mouth::Speech(Box::new(prompt.clone()));
        Voice::new(Rate::Khz8, ear, mouth, TurnTaking::default(), false)
    }

    const SENTENCE: &str = "This is one of many sentences of a long answer. ";

    #[test]
    fn a_long_line_is_synthesized_as_it_is_heard_and_has_no_gap() {
        let prompt = Prompt::default();
        let mut voice = voice_of(&prompt);
        let chars = |prompt: &Prompt| prompt.given.lock().unwrap().chars().count();
        let text = SENTENCE.repeat(200);
        voice.say(0, &text);
        assert!(chars(&prompt) < SPEECH_AHEAD_CHARS + SENTENCE.len(), "{}", chars(&prompt));
        let (mut until_ms, mut marks) = (0, VecDeque::new());
        for now_ms in (0..700_000).step_by(20) {
            while let Some(&(at_ms, mark)) = marks.front().filter(|(at_ms, _)| *at_ms <= now_ms) {
                voice.played(at_ms, mark);
                marks.pop_front();
            }
            voice.tick(now_ms);
            while let Some(output) = voice.poll_output(now_ms) {
                match output {
                    PlayerOutput::Audio(_) => {
                        assert!(until_ms == 0 || until_ms > now_ms, "a gap at {now_ms}");
                        until_ms = until_ms.max(now_ms) + 20;
                    }
                    PlayerOutput::Mark(mark) => marks.push_back((until_ms, mark)),
                    PlayerOutput::Clear => panic!("nothing is cut"),
                }
            }
            let spoken = usize::try_from(now_ms * 15 / 1_000).unwrap();
            assert!(chars(&prompt) < spoken + SPEECH_AHEAD_CHARS + 2 * SENTENCE.len(), "{now_ms}");
        }
        assert!(!voice.is_speaking() && chars(&prompt) > text.len() - 300, "{}", chars(&prompt));
    }

    #[test]
    fn what_waits_of_a_line_that_is_cut_is_never_synthesized() {
        let prompt = Prompt::default();
        let mut voice = voice_of(&prompt);
        voice.say(0, &SENTENCE.repeat(100));
        voice.key_pressed(100);
        let given = prompt.given.lock().unwrap().len();
        voice.say(200, "Yes, please.");
        assert_eq!(prompt.given.lock().unwrap().get(given..), Some("Yes, please."));
    }
}
