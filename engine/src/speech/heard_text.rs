//! What a person heard of a line when its playback stopped.
use super::speakable::Speakable;
use super::synthesizer::WordTime;
use super::vocabulary::end_of_whole_words;

/// How long a character takes when nothing is known yet: a slow speaker, so that too little counts as heard.
const CHAR_MS: i64 = 75;

/// A part of a line, as it was given to the synthesizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenPart {
    /// The text. All parts of the line joined are the line.
    pub source: String,
    /// What was given to the synthesizer, made of `source`.
    pub spoken: Speakable,
    /// The part's audio so far.
    pub audio_ms: i64,
    /// Whether that is all of its audio.
    pub is_complete: bool,
}

/// The part of a line that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardText {
    /// The text up to the end of a word; empty when nothing was heard.
    pub text: String,
    /// Whether it is known from the times of the words, or because a whole part was heard. Otherwise it is estimated from the
    /// length of the audio.
    pub is_exact: bool,
}

/// What was heard of a line after `heard_ms` of its audio. `words` are the times of its words, if the synthesizer has them,
/// with positions in the spoken text of all parts joined.
///
/// ```
/// use sidetone_engine::speech::heard_text::{SpokenPart, heard_text};
/// use sidetone_engine::speech::speakable::Speakable;
///
/// let source = "That is **all** I know.".to_owned();
/// let spoken = Speakable::new(&source, "en");
/// let part = SpokenPart { source, spoken, audio_ms: 1_900, is_complete: true };
/// assert_eq!(heard_text(&[part], &[], 1_150).text, "That is **all**");
/// ```
#[must_use]
pub fn heard_text(parts: &[SpokenPart], words: &[WordTime], heard_ms: i64) -> HeardText {
    if heard_ms <= 0 {
        return HeardText { text: String::new(), is_exact: true };
    }
    let mut text = String::new();
    let mut spoken_before = 0;
    let mut ms_before = 0;
    for part in parts {
        let whole_ms = part.whole_ms();
        let heard_in_part_ms = heard_ms - ms_before;
        if heard_in_part_ms >= whole_ms {
            text.push_str(&part.source);
            spoken_before += part.spoken.text().len();
            ms_before += whole_ms;
            continue;
        }
        let spoken = part.spoken.text();
        // Words of this part; without any, the times are unknown.
        let within = spoken_before..=spoken_before + spoken.len();
        let known: Vec<&WordTime> = words
            .iter()
            .filter(|word| word.text_end > *within.start() && within.contains(&word.text_end))
            .collect();
        let is_exact = !known.is_empty();
        let end = if is_exact {
            let heard = known
                .iter()
                .filter(|word| word.end_ms <= heard_ms)
                .map(|word| word.text_end - spoken_before)
                .max();
            end_of_word(spoken, heard.unwrap_or(0))
        } else {
            end_of_whole_words(spoken, proportion(spoken, heard_in_part_ms, whole_ms))
        };
        text.push_str(part.source.get(..part.spoken.source_offset(end)).unwrap_or_default());
        text.truncate(text.trim_end().len());
        return HeardText { text, is_exact };
    }
    text.truncate(text.trim_end().len());
    HeardText { text, is_exact: true }
}

impl SpokenPart {
    /// The length of the part's audio, estimated while it is not complete.
    fn whole_ms(&self) -> i64 {
        if self.is_complete {
            return self.audio_ms;
        }
        // More is to come, however much there is.
        estimated_ms(self.spoken.text().chars().count()).max(self.audio_ms.saturating_add(1))
    }
}

/// How long so many characters take.
pub(super) fn estimated_ms(chars: usize) -> i64 {
    i64::try_from(chars).unwrap_or(i64::MAX).saturating_mul(CHAR_MS)
}

/// The position that `part` of `whole` is in the text.
fn proportion(text: &str, part: i64, whole: i64) -> usize {
    let chars = text.chars().count() as i64;
    let heard = usize::try_from(chars.saturating_mul(part) / whole.max(1)).unwrap_or(0);
    text.char_indices().nth(heard).map_or(text.len(), |(place, _)| place)
}

/// The end of a word with the punctuation after it.
fn end_of_word(text: &str, end: usize) -> usize {
    let mut end = end.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == 0 {
        return 0;
    }
    let after = &text[end..];
    let punctuation =
        after.len() - after.trim_start_matches(|c: char| !c.is_alphanumeric() && !c.is_whitespace()).len();
    end + punctuation
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(source: &str, audio_ms: i64) -> SpokenPart {
        let spoken = Speakable::new(source, "en");
        SpokenPart { source: source.to_owned(), spoken, audio_ms, is_complete: true }
    }

    fn heard(parts: &[SpokenPart], words: &[WordTime], ms: i64) -> (String, bool) {
        let heard = heard_text(parts, words, ms);
        (heard.text, heard.is_exact)
    }

    #[test]
    fn nothing_heard_is_no_text() {
        assert_eq!(heard(&[part("Hello there.", 900)], &[], 0), (String::new(), true));
        assert_eq!(heard(&[], &[], 500), (String::new(), true));
    }

    #[test]
    fn word_times_are_exact() {
        let parts = [part("Write to **a@b.co**, please. ", 3_000), part("Good bye.", 800)];
        let spoken = parts[0].spoken.text().to_owned();
        assert_eq!(spoken, "Write to a at b dot co, please. ");
        let words: Vec<WordTime> = ["Write", "to", "a", "at", "b", "dot", "co", "please"]
            .iter()
            .scan((0, 0), |(from, ms), word| {
                *from += spoken[*from..].find(word).unwrap() + word.len();
                *ms += 300;
                Some(WordTime { text_end: *from, end_ms: *ms })
            })
            .collect();
        assert_eq!(heard(&parts, &words, 299), (String::new(), true));
        assert_eq!(heard(&parts, &words, 600), ("Write to".to_owned(), true));
        // An address that was read in part was not heard.
        assert_eq!(heard(&parts, &words, 1_300).0, "Write to");
        assert_eq!(heard(&parts, &words, 2_100).0, "Write to **a@b.co**,");
        assert_eq!(heard(&parts, &words, 2_500).0, "Write to **a@b.co**, please.");
        // The second part has no times: half of it.
        assert_eq!(heard(&parts, &words, 3_400), ("Write to **a@b.co**, please. Good".to_owned(), false));
        assert_eq!(heard(&parts, &words, 3_800), ("Write to **a@b.co**, please. Good bye.".to_owned(), true));
        assert_eq!(heard(&parts, &words, 9_000).0, "Write to **a@b.co**, please. Good bye.");
    }

    #[test]
    fn without_times_the_audio_is_divided_by_the_text() {
        let parts = [part("One two three four. ", 2_000)];
        for (ms, text) in
            [(100, ""), (350, "One"), (690, "One"), (710, "One two"), (1_999, "One two three four.")]
        {
            assert_eq!(heard(&parts, &[], ms), (text.to_owned(), false), "{ms}");
        }
    }

    #[test]
    fn audio_that_is_still_coming_does_not_count_as_all() {
        let mut parts = [part("One two three four five six seven eight.", 500)];
        parts[0].is_complete = false;
        assert_eq!(heard(&parts, &[], 500), ("One".to_owned(), false));
        parts[0].audio_ms = 100_000;
        assert!(!heard(&parts, &[], 99_999).1);
    }

    #[test]
    fn a_script_without_spaces_is_cut_between_characters() {
        assert_eq!(heard(&[part("今日は予約できません。", 1_100)], &[], 500).0, "今日は予約");
    }

    proptest! {
        #[test]
        fn more_is_heard_as_time_goes_on(
            texts in prop::collection::vec("[a-z* .@&]{0,30}", 0..4),
            times in prop::collection::vec(0_i64..6_000, 1..12),
        ) {
            let parts: Vec<SpokenPart> = texts.iter().map(|text| part(text, text.len() as i64 * 50)).collect();
            let line = texts.concat();
            let mut times = times;
            times.sort_unstable();
            let mut before = 0;
            for ms in times {
                let heard = heard_text(&parts, &[], ms).text;
                prop_assert!(line.starts_with(&heard) && heard.len() >= before, "{heard:?} of {line:?}");
                before = heard.len();
            }
        }
    }
}
