//! A line that the assistant speaks: its text in parts, the audio of each, and how much of the text was heard.
use super::audio::Rate;
use super::heard_text::{SpokenPart, estimated_ms, heard_text};
use super::player::LineProgress;
use super::sentence_cutter::SentenceCutter;
use super::speakable::Speakable;
use super::synthesizer::{LineId, WordTime};
use super::synthesizers::has_words;

/// A line being synthesized or played.
#[derive(Debug)]
pub struct SpokenLine {
    /// The line.
    pub id: LineId,
    /// Whether it is complete and has nothing to speak: it gets no audio.
    pub is_wordless: bool,
    /// Whether it was given to its voice a second time.
    pub is_tried_again: bool,
    /// Whether its voice failed before all of its audio was there.
    pub is_broken_off: bool,
    /// Empty if the text passes evenly with the audio.
    parts: Vec<SpokenPart>,
    words: Vec<WordTime>,
    /// How many of the words the audio has reached.
    reached: usize,
    /// The audio so far, in samples of its voice and in ms.
    samples: usize,
    audio_ms: i64,
    /// Characters of a text without parts, and whether one of them is a letter or a digit.
    even_chars: usize,
    has_even_words: bool,
}

impl SpokenLine {
    /// A line without text. Its text passes evenly with its audio, as in the tone code, unless it gets
    /// [parts](Self::add_text).
    #[must_use]
    pub const fn new(id: LineId) -> Self {
        Self {
            id,
            is_wordless: false,
            is_tried_again: false,
            is_broken_off: false,
            parts: Vec::new(),
            words: Vec::new(),
            reached: 0,
            samples: 0,
            audio_ms: 0,
            even_chars: 0,
            has_even_words: false,
        }
    }

    /// Adds text that passes evenly with the line's audio.
    pub fn add_even_text(&mut self, text: &str) {
        self.even_chars += text.chars().count();
        self.has_even_words |= has_words(text);
    }

    /// Adds text that ends with a sentence. Returns the texts to synthesize one after the other; empty ones have nothing to
    /// speak.
    pub fn add_text(&mut self, text: &str, language: &str) -> impl Iterator<Item = &str> {
        let mut cutter = SentenceCutter::default();
        let mut sources = cutter.push(text);
        sources.extend(cutter.finish());
        let before = self.parts.len();
        self.parts.extend(sources.into_iter().map(|source| SpokenPart {
            spoken: Speakable::new(&source, language),
            source,
            audio_ms: 0,
            is_complete: false,
        }));
        self.parts.iter().skip(before).map(|part| part.spoken.text())
    }

    /// Whether its text passes evenly with its audio, and has come.
    #[must_use]
    pub const fn is_even(&self) -> bool {
        self.even_chars > 0
    }

    /// The texts to synthesize so far, without those that have nothing to speak.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.spoken.text()).filter(|text| !text.trim().is_empty())
    }

    /// Whether a voice has something to say of its text so far.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.has_even_words || self.parts.iter().any(|part| has_words(part.spoken.text()))
    }

    /// Whether any audio was made.
    #[must_use]
    pub const fn has_audio(&self) -> bool {
        self.audio_ms > 0
    }

    /// The line has so many samples more. What they have of a further ms counts with the next ones.
    pub fn add_samples(&mut self, samples: usize, rate: Rate) {
        let before_ms = rate.ms_of(self.samples);
        self.samples += samples;
        self.add_audio(rate.ms_of(self.samples) - before_ms);
    }

    /// The line has this much more audio.
    fn add_audio(&mut self, ms: i64) {
        self.audio_ms += ms;
        let before: i64 = self.parts.iter().filter(|part| part.is_complete).map(|part| part.audio_ms).sum();
        if let Some(part) = self.parts.iter_mut().find(|part| !part.is_complete) {
            part.audio_ms = self.audio_ms - before;
        }
        self.reach();
    }

    /// When its words are spoken. They may be told before their audio, which may never come.
    pub fn add_words(&mut self, words: Vec<WordTime>) {
        self.words.extend(words);
        self.reach();
    }

    /// Ends the parts whose words the audio has reached.
    fn reach(&mut self) {
        while let Some(word) =
            self.words.get(self.reached).filter(|word| word.end_ms <= self.audio_ms).copied()
        {
            self.reached += 1;
            self.part_ends(word.text_end, word.end_ms);
        }
    }

    /// The audio so far speaks the text up to here.
    pub fn text_ends(&mut self, text_end: usize) {
        self.part_ends(text_end, self.audio_ms);
    }

    /// All of its audio is there.
    pub fn complete(&mut self) {
        let mut before = 0;
        for part in &mut self.parts {
            if !part.is_complete {
                part.audio_ms = self.audio_ms - before;
                part.is_complete = true;
            }
            before += part.audio_ms;
        }
    }

    /// How much of the text was heard, in thousandths of its bytes, at the end of a word.
    #[must_use]
    pub fn heard_permille(&self, progress: Option<LineProgress>) -> u32 {
        let Some(progress) = progress else { return 0 };
        let is_silent = self.has_even_words && self.audio_ms == 0;
        if is_silent {
            return 0;
        }
        if progress.is_complete
            && !self.is_broken_off
            && progress.heard_ms >= progress.audio_ms
            && self.parts.iter().all(|part| part.is_complete)
        {
            return 1_000;
        }
        if self.parts.is_empty() {
            // More audio is to come, however much there is.
            let is_whole = progress.is_complete && !self.is_broken_off;
            let expected_ms = if is_whole { 0 } else { estimated_ms(self.even_chars) };
            let permille = progress.heard_ms * 1_000 / progress.audio_ms.max(expected_ms).max(1);
            return u32::try_from(permille).unwrap_or(0).min(1_000);
        }
        let whole: usize = self.parts.iter().map(|part| part.source.len()).sum();
        let heard = heard_text(&self.parts, &self.words, progress.heard_ms).text.len();
        u32::try_from((heard * 1_000).div_ceil(whole.max(1))).unwrap_or(1_000).min(1_000)
    }

    /// Ends all parts whose text ends at or before `text_end`, where the line's audio is at `at_ms`.
    fn part_ends(&mut self, text_end: usize, at_ms: i64) {
        let (mut end, mut before) = (0, 0);
        for part in &mut self.parts {
            end += part.spoken.text().len();
            if end > text_end {
                break;
            }
            if !part.is_complete {
                part.audio_ms = (at_ms - before).max(0);
                part.is_complete = true;
            }
            before += part.audio_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_model_that_speaks_was_heard_as_far_as_it_sounded() {
        let heard = |line: &SpokenLine, ms| {
            let progress =
                LineProgress { line: 1, heard_ms: ms, audio_ms: ms, is_complete: true, heard_until_ms: None };
            line.heard_permille(Some(progress))
        };
        let mut line = SpokenLine::new(1);
        line.add_even_text("We are closed on Sunday. ");
        assert_eq!(heard(&line, 0), 0, "no sound was made");
        // Pieces that are shorter than a ms.
        for _ in 0..100 {
            line.add_samples(4, Rate::Khz8);
        }
        assert_eq!(heard(&line, 50), 1_000);
        line.is_broken_off = true;
        assert!((1..500).contains(&heard(&line, 50)), "{}", heard(&line, 50));
    }

    #[test]
    fn words_whose_audio_never_came_were_not_heard() {
        let mut line = SpokenLine::new(1);
        let text = "We open at ten.";
        assert_eq!(line.add_text(text, "en").collect::<Vec<_>>(), [text]);
        let word = |text_end, end_ms| WordTime { text_end, end_ms };
        line.add_words(vec![word(2, 200), word(7, 500), word(10, 700), word(15, 1_000)]);
        let heard = |line: &SpokenLine, ms| {
            let progress =
                LineProgress { line: 1, heard_ms: ms, audio_ms: ms, is_complete: true, heard_until_ms: None };
            line.heard_permille(Some(progress)) as usize * text.len() / 1_000
        };
        line.add_samples(4_800, Rate::Khz8);
        assert_eq!(heard(&line, 600), "We open".len());
        line.add_samples(3_200, Rate::Khz8);
        assert_eq!(heard(&line, 1_000), text.len());
    }
}
