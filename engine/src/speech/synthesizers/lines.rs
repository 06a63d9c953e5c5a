//! The lines at hand, and what is reported of them. Holds every protocol to the rules of [`super::super::synthesizer`].
use std::collections::VecDeque;
use std::ops::Range;

use super::RATE;
use super::failure::temporary;
use super::word_map::{WordMap, is_ideograph};
use crate::base::setting::Secret;
use crate::base::text::hide_words;
use crate::speech::exchange::SpeechFailure;
use crate::speech::synthesizer::{LineId, SynthesizerEvent};

/// The most lines at a time.
const LINES_MAX: usize = 64;
/// The most text of a line.
pub(super) const LINE_TEXT_BYTES_MAX: usize = 64 * 1024;
/// The most audio of a line: ten minutes.
pub(super) const LINE_AUDIO_MS_MAX: i64 = 600_000;
/// How long the first audio of a line is awaited.
pub(super) const FIRST_AUDIO_MS: i64 = 3_000;
/// How long more audio is awaited that must come.
pub(super) const STALL_MS: i64 = 5_000;
/// The pace of the fastest voices, in letters per second.
const FASTEST_CHARS_PER_S: i64 = 22;
/// A pace is measured over so much audio at least.
const PACE_MS_MIN: i64 = 2_000;

/// A line that has not ended.
#[derive(Debug)]
pub(super) struct Line {
    /// Its id.
    pub(super) id: LineId,
    /// All its text so far.
    pub(super) text: String,
    /// The parts to speak; those without a word are left out.
    pub(super) parts: Vec<Range<usize>>,
    /// Whether it has no more text.
    pub(super) is_finished: bool,
    samples: u64,
    words: WordMap,
    /// The end of the text that is known to be spoken, and at which ms of its audio.
    spoken: usize,
    spoken_ms: i64,
}

impl Line {
    /// The text of a part.
    pub(super) fn part(&self, index: usize) -> Option<&str> {
        self.parts.get(index).and_then(|range| self.text.get(range.clone()))
    }

    /// Its audio so far, in ms.
    pub(super) fn audio_ms(&self) -> i64 {
        audio_ms(self.samples)
    }

    /// Whether its audio is probably all of its text up to `end`, for a voice of this pace.
    fn is_probably_spoken(&self, end: usize, pace: &Pace) -> bool {
        let rest = self.text.get(self.spoken..end).unwrap_or_default();
        let rest_ms = self.audio_ms() - self.spoken_ms;
        self.samples > 0 && rest_ms >= if has_words(rest) { pace.least_ms(rest) } else { 0 }
    }

    fn speaks_until(&mut self, end: usize, at_ms: i64) {
        (self.spoken, self.spoken_ms) = (end, at_ms);
    }
}

/// How fast a voice speaks, as far as it was heard.
#[derive(Debug, Default)]
struct Pace {
    weight: i64,
    ms: i64,
}

impl Pace {
    fn spoke(&mut self, text: &str, ms: i64) {
        self.weight += weight(text);
        self.ms += ms.max(0);
    }

    /// The least audio that is all of a text.
    fn least_ms(&self, text: &str) -> i64 {
        let fastest_ms = weight(text) * 1_000 / FASTEST_CHARS_PER_S;
        match self.ms >= PACE_MS_MIN && self.weight > 0 {
            true => fastest_ms.max(weight(text) * self.ms * 9 / (self.weight * 10)),
            false => fastest_ms,
        }
    }
}

/// The length of a text in letters: an ideograph or a digit takes as long as several.
fn weight(text: &str) -> i64 {
    let of = |c: char| match c {
        c if is_ideograph(c) => 4,
        c if c.is_numeric() => 2,
        _ => 1,
    };
    text.chars().map(of).sum()
}

/// Up to when a voice was at work, when so much more of its audio has arrived: one far slower than speech makes no progress.
pub(super) fn at_work_until_ms(until_ms: i64, now_ms: i64, samples: usize) -> i64 {
    now_ms.min(until_ms.saturating_add(2 * audio_ms(samples as u64)))
}

/// The duration of audio in ms.
pub(super) fn audio_ms(samples: u64) -> i64 {
    i64::try_from(samples.saturating_mul(1_000) / u64::from(RATE.hz())).unwrap_or(i64::MAX)
}

/// The lines at hand, in order.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// What no message of a failure contains: the provider's key.
    hidden: Option<Secret>,
    open: VecDeque<Line>,
    newest: Option<LineId>,
    pace: Pace,
    events: VecDeque<SynthesizerEvent>,
}

impl Lines {
    /// The same, of a provider with this key.
    pub(super) fn hiding(mut self, key: Option<&Secret>) -> Self {
        self.hidden = key.cloned();
        self
    }

    /// Adds text. Text of a line that has ended is ignored.
    pub(super) fn speak(&mut self, id: LineId, text: &str) {
        let Some(line) = self.line(id) else { return };
        if line.is_finished {
            return;
        }
        if line.text.len() + text.len() > LINE_TEXT_BYTES_MAX {
            self.fail(id, temporary("The line is too long to speak"));
            return;
        }
        let start = line.text.len();
        line.text.push_str(text);
        if has_words(text) {
            line.parts.push(start..start + text.len());
        }
    }

    /// The line has no more text.
    pub(super) fn finish(&mut self, id: LineId) {
        let Some(line) = self.line(id) else { return };
        line.is_finished = true;
        if line.parts.is_empty() {
            self.fail(id, temporary("The line has no words to speak"));
        }
    }

    /// The open line with this id; a new one if the id is new.
    fn line(&mut self, id: LineId) -> Option<&mut Line> {
        if self.newest.is_none_or(|newest| id > newest) {
            self.newest = Some(id);
            let (text, parts, words) = (String::new(), Vec::new(), WordMap::default());
            self.open.push_back(Line {
                id,
                text,
                parts,
                is_finished: false,
                samples: 0,
                words,
                spoken: 0,
                spoken_ms: 0,
            });
            if self.open.len() > LINES_MAX {
                self.fail(id, temporary("Too many lines wait to be spoken"));
                return None;
            }
        }
        self.open.iter_mut().find(|line| line.id == id)
    }

    /// Forgets a line and what has not been taken of its events.
    pub(super) fn cancel(&mut self, id: LineId) {
        self.newest = self.newest.max(Some(id));
        self.open.retain(|line| line.id != id);
        self.events.retain(|event| line_of(event) != id);
    }

    /// Forgets all lines.
    pub(super) fn clear(&mut self) {
        *self = Self { newest: Some(LineId::MAX), ..Self::default() };
    }

    /// The line whose turn it is.
    pub(super) fn front(&self) -> Option<&Line> {
        self.open.front()
    }

    /// An open line.
    pub(super) fn get(&self, id: LineId) -> Option<&Line> {
        self.open.iter().find(|line| line.id == id)
    }

    fn get_mut(&mut self, id: LineId) -> Option<&mut Line> {
        self.open.iter_mut().find(|line| line.id == id)
    }

    /// Reports audio. `false`: the line has ended, because of this audio at the latest.
    pub(super) fn audio(&mut self, id: LineId, samples: Vec<i16>) -> bool {
        let Some(line) = self.get_mut(id) else { return false };
        if samples.is_empty() {
            return true;
        }
        line.samples += samples.len() as u64;
        if line.audio_ms() > LINE_AUDIO_MS_MAX {
            self.fail(id, temporary("The voice made more than ten minutes of audio for one line"));
            return false;
        }
        self.events.push_back(SynthesizerEvent::Audio { line: id, samples });
        true
    }

    /// Reports words with their ends in ms from the beginning of the line's audio.
    pub(super) fn words(&mut self, id: LineId, words: &[(String, f64)]) {
        let Some(line) = self.get_mut(id) else { return };
        let limit = LINE_AUDIO_MS_MAX as f64;
        let mut found = Vec::new();
        for (word, end_ms) in words {
            let end_ms = if end_ms.is_finite() { end_ms.clamp(0.0, limit) as i64 } else { continue };
            if let Some(time) = line.words.find(&line.text, word, end_ms)
                && time.text_end > line.spoken
            {
                line.speaks_until(time.text_end, end_ms);
                found.push(time);
            }
        }
        if !found.is_empty() {
            self.events.push_back(SynthesizerEvent::Words { line: id, words: found });
        }
    }

    /// The audio so far speaks a part to its end.
    pub(super) fn part_end(&mut self, id: LineId, index: usize) {
        let Some(line) = self.open.iter_mut().find(|line| line.id == id) else { return };
        if let Some(range) = line.parts.get(index)
            && range.end > line.spoken
            && line.samples > 0
        {
            let (text_end, at_ms) = (range.end, line.audio_ms());
            let text = line.text.get(line.spoken..text_end).unwrap_or_default();
            self.pace.spoke(text, at_ms - line.spoken_ms);
            line.speaks_until(text_end, at_ms);
            self.events.push_back(SynthesizerEvent::PartEnd { line: id, text_end });
        }
    }

    /// Whether the audio of an open line is probably all of its text up to the end of a part; up to its end if no part is
    /// named.
    pub(super) fn is_probably_spoken(&self, id: LineId, part: Option<usize>) -> bool {
        self.get(id).is_some_and(|line| {
            let end = part.and_then(|index| line.parts.get(index)).map_or(line.text.len(), |part| part.end);
            line.is_probably_spoken(end, &self.pace)
        })
    }

    /// The provider has spoken the whole line.
    pub(super) fn complete(&mut self, id: LineId, provider: &str) {
        match self.open.iter().find(|line| line.id == id) {
            Some(line) if line.samples == 0 => {
                self.fail(id, temporary(format!("{provider} made no audio for the line")));
            }
            Some(line) => {
                let text = line.text.get(line.spoken..).filter(|text| has_words(text));
                if let Some(text) = text {
                    self.pace.spoke(text, line.audio_ms() - line.spoken_ms);
                }
                self.open.retain(|line| line.id != id);
                self.events.push_back(SynthesizerEvent::Done { line: id });
            }
            None => {}
        }
    }

    /// The line cannot be completed.
    pub(super) fn fail(&mut self, id: LineId, failure: SpeechFailure) {
        if self.get(id).is_some() {
            let failure = match &self.hidden {
                // A server may quote it in an error.
                Some(key) => SpeechFailure {
                    message: hide_words(&failure.message, &[key.reveal()], "(hidden)"),
                    ..failure
                },
                None => failure,
            };
            self.open.retain(|line| line.id != id);
            self.events.push_back(SynthesizerEvent::Failed { line: id, failure });
        }
    }

    /// No line can be completed.
    pub(super) fn fail_all(&mut self, failure: &SpeechFailure) {
        while let Some(line) = self.open.front() {
            let id = line.id;
            self.fail(id, failure.clone());
        }
    }

    /// Reports what a voice below reported, of an open line.
    pub(super) fn report(&mut self, event: SynthesizerEvent) {
        if self.get(line_of(&event)).is_some() {
            self.events.push_back(event);
        }
    }

    /// The next event.
    pub(super) fn poll_event(&mut self) -> Option<SynthesizerEvent> {
        self.events.pop_front()
    }
}

/// The line that an event is about.
pub(super) fn line_of(event: &SynthesizerEvent) -> LineId {
    match event {
        SynthesizerEvent::Audio { line, .. }
        | SynthesizerEvent::Words { line, .. }
        | SynthesizerEvent::PartEnd { line, .. }
        | SynthesizerEvent::VoiceFailed { line, .. }
        | SynthesizerEvent::Done { line }
        | SynthesizerEvent::Failed { line, .. } => *line,
    }
}

/// Whether a voice says something for a text.
pub(in crate::speech) fn has_words(text: &str) -> bool {
    text.chars().any(|c| c.is_alphanumeric() || "%&+=@#$€£¥§°".contains(c))
}

/// Little-endian 16-bit samples in pieces of any size: a piece may end inside a sample.
#[derive(Debug, Default)]
pub(super) struct Pcm {
    half: Option<u8>,
}

impl Pcm {
    /// The samples that are complete.
    pub(super) fn samples(&mut self, bytes: &[u8]) -> Vec<i16> {
        let mut samples = Vec::with_capacity(bytes.len() / 2 + 1);
        let mut rest = bytes;
        if let (Some(low), Some((high, after))) = (self.half, bytes.split_first()) {
            samples.push(i16::from_le_bytes([low, *high]));
            self.half = None;
            rest = after;
        }
        let (pairs, odd) = rest.as_chunks::<2>();
        samples.extend(pairs.iter().map(|pair| i16::from_le_bytes(*pair)));
        if let Some(low) = odd.first() {
            self.half = Some(*low);
        }
        samples
    }
}

/// Splits text into pieces of at most `bytes_max` bytes, between words where there are any.
pub(super) fn pieces(text: &str, bytes_max: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > bytes_max {
        let limit = rest.floor_char_boundary(bytes_max);
        let head = rest.get(..limit).unwrap_or_default();
        let cut = head.rfind(char::is_whitespace).map_or(limit, |at| rest.ceil_char_boundary(at + 1));
        let Some((piece, after)) = rest.split_at_checked(cut).filter(|_| cut > 0) else { break };
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces.retain(|piece| has_words(piece));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_that_is_long_enough_is_probably_all() {
        let mut lines = Lines::default();
        let tell = |lines: &mut Lines, ms: usize| lines.audio(1, vec![1; ms * 24]);
        lines.speak(1, "We open at ten in the morning. ");
        lines.speak(1, "See you.");
        tell(&mut lines, 1_300);
        assert!(!lines.is_probably_spoken(1, Some(0)), "no voice is so fast");
        tell(&mut lines, 300);
        assert!(lines.is_probably_spoken(1, Some(0)) && !lines.is_probably_spoken(1, None));
        // This voice is slow.
        tell(&mut lines, 1_400);
        lines.part_end(1, 0);
        tell(&mut lines, 600);
        assert!(!lines.is_probably_spoken(1, None));
        tell(&mut lines, 200);
        assert!(lines.is_probably_spoken(1, None));
        // The time of the last word is known, and its audio is missing.
        let mut lines = Lines::default();
        lines.speak(1, "See you.");
        lines.words(1, &[("See".to_owned(), 300.0), ("you".to_owned(), 700.0)]);
        tell(&mut lines, 600);
        assert!(!lines.is_probably_spoken(1, None));
        tell(&mut lines, 100);
        assert!(lines.is_probably_spoken(1, None));
    }

    #[test]
    fn a_trickle_of_audio_is_no_work() {
        let mut until_ms = 1_000;
        for now_ms in [2_000, 3_000, 4_000] {
            until_ms = at_work_until_ms(until_ms, now_ms, 1);
        }
        assert_eq!(until_ms, 1_000);
        assert_eq!(at_work_until_ms(1_000, 2_000, 12_000), 2_000, "half as fast as speech");
    }

    #[test]
    fn no_failure_contains_the_key() {
        let key = Secret::new("Short1");
        let mut lines = Lines::default().hiding(Some(&key));
        lines.speak(1, "Hello.");
        lines.fail(1, temporary("answered: Incorrect key provided: Bearer=short1, for \"Short1\"."));
        let Some(SynthesizerEvent::Failed { failure, .. }) = lines.poll_event() else { panic!("no failure") };
        assert_eq!(failure.message, "answered: Incorrect key provided: (hidden) for (hidden)");
    }
}
