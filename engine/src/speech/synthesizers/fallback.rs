//! Several voices as one: when a voice fails, the next one goes on in the middle of the line.
use std::collections::VecDeque;

use super::lines::{Lines, audio_ms, has_words, line_of};
use super::word_map::is_ideograph;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use crate::speech::synthesizer::{LineId, Synthesizer, SynthesizerEvent, WordTime};

/// How long a voice that failed is not asked first.
const REST_MS: i64 = 60_000;
/// How fast voices speak, where nothing better is known: characters in a second.
const CHARS_PER_S: f64 = 15.0;
/// A pace is measured over so much audio at least.
const PACE_MS_MIN: i64 = 500;
/// After so much audio without a word time, the words are estimated.
const WORDLESS_MS_MAX: i64 = 1_500;

/// A voice with others that take its place.
///
/// 1. The audio that a failed voice made stays. The next voice gets the text that has not been spoken: after the last word
///    whose time is known, else after the last part that is complete and as many words of the next as fit the audio.
/// 2. Lines are given to the voices one at a time, so a line that changes its voice stays before the next one.
/// 3. A voice that failed rests for a minute, or for the rest of the call if another attempt cannot succeed.
pub struct Fallback {
    voices: Vec<Voice>,
    lines: Lines,
    progress: Option<Progress>,
    is_closed: bool,
}

struct Voice {
    synthesizer: Box<dyn Synthesizer>,
    last_line: LineId,
    /// Until when it is not asked first; `i64::MAX` for the rest of the call.
    rests_until_ms: i64,
    has_started: bool,
}

/// The line that is being spoken.
struct Progress {
    line: LineId,
    /// The text before this has been spoken, or given to the voice at work.
    given: usize,
    tried: Vec<usize>,
    attempt: Option<Attempt>,
    last_failure: Option<SpeechFailure>,
}

/// A voice at work on a line.
struct Attempt {
    voice: usize,
    line: LineId,
    /// Where its text begins in the line's.
    start: usize,
    is_finish_sent: bool,
    /// Audio of the line from voices before, in ms.
    base_ms: i64,
    samples: u64,
    /// Words that its audio has not reached yet. If the voice fails, they are never spoken.
    words: VecDeque<WordTime>,
    has_words: bool,
    /// How far the line's text is known to be spoken, and at which ms of its audio.
    known: usize,
    known_ms: i64,
}

impl Fallback {
    /// `first`, with `others` in the order in which they take its place. The same voice may come twice: it then gets another
    /// attempt at the rest of a line whose connection broke.
    #[must_use]
    pub fn new(first: Box<dyn Synthesizer>, others: Vec<Box<dyn Synthesizer>>) -> Self {
        let voices = std::iter::once(first)
            .chain(others)
            .map(|synthesizer| Voice {
                synthesizer,
                last_line: 0,
                rests_until_ms: i64::MIN,
                has_started: false,
            })
            .collect();
        Self { voices, lines: Lines::default(), progress: None, is_closed: false }
    }

    /// Gives text to voices and takes what they report, until nothing more happens.
    fn settle(&mut self, now_ms: i64) {
        while !self.is_closed {
            self.abandon_ended(now_ms);
            self.give(now_ms);
            if !self.take(now_ms) {
                return;
            }
        }
        while self.voices.iter_mut().any(|voice| voice.synthesizer.poll_event().is_some()) {}
    }

    /// Cancels the attempt at a line that has ended here.
    fn abandon_ended(&mut self, now_ms: i64) {
        let has_ended = |progress: &mut Progress| self.lines.get(progress.line).is_none();
        let ended = self.progress.take_if(has_ended).and_then(|progress| progress.attempt);
        if let Some(attempt) = ended
            && let Some(voice) = self.voices.get_mut(attempt.voice)
        {
            voice.synthesizer.cancel(now_ms, attempt.line);
        }
    }

    /// Gives the text at hand to a voice.
    fn give(&mut self, now_ms: i64) {
        loop {
            let Some(line) = self.lines.front() else { return };
            let (id, is_finished) = (line.id, line.is_finished);
            let progress = self.progress.get_or_insert_with(|| Progress {
                line: id,
                given: 0,
                tried: Vec::new(),
                attempt: None,
                last_failure: None,
            });
            let next = line.parts.iter().map(|part| part.end).find(|end| {
                let rest = line.text.get(progress.given..*end).unwrap_or_default();
                has_words(rest)
            });
            let Some(end) = next else {
                match &mut progress.attempt {
                    Some(attempt) if is_finished && !attempt.is_finish_sent => {
                        attempt.is_finish_sent = true;
                        if let Some(voice) = self.voices.get_mut(attempt.voice) {
                            voice.synthesizer.finish(now_ms, attempt.line);
                        }
                    }
                    // The voice that failed had spoken all of it.
                    None if is_finished && !line.parts.is_empty() => {
                        if let Some(failure) = progress.last_failure.take() {
                            self.lines.report(SynthesizerEvent::VoiceFailed { line: id, failure });
                        }
                        self.progress = None;
                        self.lines.complete(id, "The voice");
                        continue;
                    }
                    _ => {}
                }
                return;
            };
            if progress.attempt.is_none() {
                let Some(voice) = choose(&self.voices, &progress.tried, now_ms) else {
                    let failure = progress.last_failure.take();
                    self.progress = None;
                    if let Some(failure) = failure {
                        self.lines.fail(id, failure);
                    }
                    continue;
                };
                if let Some(failure) = progress.last_failure.clone() {
                    self.lines.report(SynthesizerEvent::VoiceFailed { line: id, failure });
                }
                progress.tried.push(voice);
                let base_ms = self.lines.get(id).map_or(0, |line| line.audio_ms());
                progress.attempt =
                    self.voices.get_mut(voice).map(|at| at.begin(voice, progress.given, base_ms));
            }
            let text =
                self.lines.get(id).and_then(|line| line.text.get(progress.given..end)).unwrap_or_default();
            progress.given = end;
            if let Some(attempt) = &progress.attempt
                && let Some(voice) = self.voices.get_mut(attempt.voice)
            {
                voice.synthesizer.speak(now_ms, attempt.line, text);
            }
        }
    }

    /// Takes what the voices report. `true`: the line's voice may have more to do.
    fn take(&mut self, now_ms: i64) -> bool {
        let mut has_changed = false;
        for index in 0..self.voices.len() {
            while let Some(event) =
                self.voices.get_mut(index).and_then(|voice| voice.synthesizer.poll_event())
            {
                let attempt = self.progress.as_ref().and_then(|progress| progress.attempt.as_ref());
                if attempt.is_some_and(|attempt| attempt.voice == index && attempt.line == line_of(&event)) {
                    has_changed |= self.took(now_ms, event);
                }
            }
        }
        has_changed
    }

    /// Takes an event of the attempt at work. `true`: the attempt is over.
    fn took(&mut self, now_ms: i64, event: SynthesizerEvent) -> bool {
        let Some(progress) = &mut self.progress else { return false };
        let line = progress.line;
        let Some(attempt) = &mut progress.attempt else { return false };
        match event {
            SynthesizerEvent::Audio { samples, .. } => {
                attempt.samples = attempt.samples.saturating_add(samples.len() as u64);
                let is_open = self.lines.audio(line, samples);
                attempt.reach(attempt.audio_ms(), line, &mut self.lines);
                return !is_open;
            }
            SynthesizerEvent::Words { words, .. } => {
                let start = attempt.start;
                attempt.has_words = true;
                attempt.words.extend(
                    words.into_iter().map(|word| WordTime { text_end: start + word.text_end, ..word }),
                );
                attempt.reach(attempt.audio_ms(), line, &mut self.lines);
            }
            SynthesizerEvent::PartEnd { text_end, .. } => {
                let text_end = attempt.start + text_end;
                attempt.known(text_end, attempt.audio_ms());
                self.lines.report(SynthesizerEvent::PartEnd { line, text_end });
            }
            SynthesizerEvent::VoiceFailed { failure, .. } => {
                self.lines.report(SynthesizerEvent::VoiceFailed { line, failure });
            }
            SynthesizerEvent::Done { .. } => {
                attempt.reach(i64::MAX, line, &mut self.lines);
                self.progress = None;
                self.lines.complete(line, "The voice");
                return true;
            }
            SynthesizerEvent::Failed { failure, .. } => {
                if let Some(line) = self.lines.get(line) {
                    progress.given = attempt.spoken(&line.text, &line.parts);
                }
                if let Some(voice) = self.voices.get_mut(attempt.voice) {
                    let until_ms =
                        if failure.is_temporary { now_ms.saturating_add(REST_MS) } else { i64::MAX };
                    voice.rests_until_ms = voice.rests_until_ms.max(until_ms);
                }
                (progress.attempt, progress.last_failure) = (None, Some(failure));
                return true;
            }
        }
        false
    }
}

/// The next voice for a line: the first that does not rest, else the first that may recover, else any that is left.
fn choose(voices: &[Voice], tried: &[usize], now_ms: i64) -> Option<usize> {
    let left = || voices.iter().enumerate().filter(|(index, _)| !tried.contains(index));
    let rank = |voice: &Voice| match voice.rests_until_ms {
        until_ms if until_ms <= now_ms => 0,
        i64::MAX => 2,
        _ => 1,
    };
    left().min_by_key(|(_, voice)| rank(voice)).map(|(index, _)| index)
}

impl Voice {
    fn begin(&mut self, voice: usize, start: usize, base_ms: i64) -> Attempt {
        self.has_started = true;
        self.last_line += 1;
        Attempt {
            voice,
            line: self.last_line,
            start,
            is_finish_sent: false,
            base_ms,
            samples: 0,
            words: VecDeque::new(),
            has_words: false,
            known: start,
            known_ms: 0,
        }
    }
}

impl Attempt {
    /// The audio that this voice made, in ms.
    fn audio_ms(&self) -> i64 {
        audio_ms(self.samples)
    }

    fn known(&mut self, text_end: usize, at_ms: i64) {
        if text_end >= self.known {
            (self.known, self.known_ms) = (text_end, at_ms);
        }
    }

    /// Reports the words up to a time of this voice's audio.
    fn reach(&mut self, until_ms: i64, line: LineId, lines: &mut Lines) {
        let mut words = Vec::new();
        while let Some(word) = self.words.pop_front_if(|word| word.end_ms <= until_ms) {
            self.known(word.text_end, word.end_ms);
            words.push(WordTime { end_ms: self.base_ms.saturating_add(word.end_ms), ..word });
        }
        if !words.is_empty() {
            lines.report(SynthesizerEvent::Words { line, words });
        }
    }

    /// How far the line's text has been spoken: the end of a word or part.
    fn spoken(&self, text: &str, parts: &[std::ops::Range<usize>]) -> usize {
        let rest_ms = self.audio_ms().saturating_sub(self.known_ms);
        if self.samples == 0 || (self.has_words && rest_ms <= WORDLESS_MS_MAX) {
            return self.known;
        }
        let before = text.get(self.start..self.known).unwrap_or_default().chars().count();
        let per_ms = if self.known_ms >= PACE_MS_MIN && before > 0 {
            before as f64 / self.known_ms as f64
        } else {
            CHARS_PER_S / 1_000.0
        };
        let chars = (rest_ms as f64 * per_ms) as usize;
        let part_end = parts.iter().map(|part| part.end).find(|end| *end > self.known).unwrap_or(text.len());
        let part = text.get(self.known..part_end).unwrap_or_default();
        self.known + words_within(part, chars)
    }
}

/// The end in bytes of the last word that is complete within so many characters.
fn words_within(text: &str, chars: usize) -> usize {
    let mut end = 0;
    let mut last = ' ';
    for (count, (at, c)) in text.char_indices().enumerate() {
        let is_end =
            !last.is_whitespace() && (c.is_whitespace() || (is_ideograph(last) && c.is_alphanumeric()));
        if is_end {
            end = at;
        }
        if count >= chars {
            return end;
        }
        last = c;
    }
    text.len()
}

impl Synthesizer for Fallback {
    fn speak(&mut self, now_ms: i64, line: LineId, text: &str) {
        if !self.is_closed {
            self.lines.speak(line, text);
            self.settle(now_ms);
        }
    }

    fn finish(&mut self, now_ms: i64, line: LineId) {
        if !self.is_closed {
            self.lines.finish(line);
            self.settle(now_ms);
        }
    }

    fn cancel(&mut self, now_ms: i64, line: LineId) {
        self.lines.cancel(line);
        self.settle(now_ms);
    }

    fn close(&mut self, now_ms: i64) {
        self.lines.clear();
        self.progress = None;
        self.is_closed = true;
        for voice in self.voices.iter_mut() {
            voice.synthesizer.close(now_ms);
        }
        self.settle(now_ms);
    }

    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        let count = self.voices.len();
        if let Some(voice) = self.voices.get_mut(id as usize % count.max(1)) {
            voice.synthesizer.arrived(now_ms, id / count as ExchangeId, arrival);
        }
        self.settle(now_ms);
    }

    fn tick(&mut self, now_ms: i64) {
        for (index, voice) in self.voices.iter_mut().enumerate() {
            // The others open no connection before they are needed.
            if index == 0 || voice.has_started {
                voice.has_started = true;
                voice.synthesizer.tick(now_ms);
            }
        }
        self.settle(now_ms);
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        let count = self.voices.len() as ExchangeId;
        for (index, voice) in self.voices.iter_mut().enumerate() {
            if let Some(transmit) = voice.synthesizer.poll_transmit() {
                let outer = |id: ExchangeId| id.wrapping_mul(count).wrapping_add(index as ExchangeId);
                return Some(match transmit {
                    Transmit::Request { id, request } => Transmit::Request { id: outer(id), request },
                    Transmit::Connect { id, request } => Transmit::Connect { id: outer(id), request },
                    Transmit::Send { id, message } => Transmit::Send { id: outer(id), message },
                    Transmit::Drop { id } => Transmit::Drop { id: outer(id) },
                });
            }
        }
        None
    }

    fn poll_event(&mut self) -> Option<SynthesizerEvent> {
        self.lines.poll_event()
    }

    fn poll_timeout(&self) -> Option<i64> {
        let used = self.voices.iter().enumerate().filter(|(index, voice)| *index == 0 || voice.has_started);
        used.filter_map(|(_, voice)| voice.synthesizer.poll_timeout()).min()
    }

    fn billed_chars(&self) -> Vec<u64> {
        self.voices.iter().flat_map(|voice| voice.synthesizer.billed_chars()).collect()
    }
}

#[cfg(test)]
mod tests;
