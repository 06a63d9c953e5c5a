//! Finds the words that a provider says it spoke in the text that it was given.
//!
//! Providers normalise what they speak, split words, and add marks of their own. Their words only move a cursor over our
//! text; the text itself is never taken from them.
use crate::speech::synthesizer::WordTime;

/// How many words of the text may be skipped to find a spoken word.
const SKIP_MAX: usize = 12;
/// The longest word that is compared, in characters.
const WORD_CHARS_MAX: usize = 200;

/// The cursor of one line.
#[derive(Debug, Default)]
pub(super) struct WordMap {
    /// Where the next word begins to be looked for, in bytes.
    at: usize,
    /// Characters of the word at `at` that have been spoken already.
    spoken: usize,
    /// The time of the last word; times never go back.
    end_ms: i64,
}

impl WordMap {
    /// The end of `word` in `text`, if it is there.
    pub(super) fn find(&mut self, text: &str, word: &str, end_ms: i64) -> Option<WordTime> {
        let word = key(&without_tags(word));
        if word.is_empty() {
            return None;
        }
        for (index, (start, end)) in words_from(text, self.at).take(SKIP_MAX).enumerate() {
            let whole = key(text.get(start..end).unwrap_or_default());
            let spoken = if index == 0 { self.spoken } else { 0 };
            let Some(rest) = whole.get(spoken..) else { continue };
            let found = if rest.starts_with(&word) {
                spoken + word.len()
            } else if index == 0 && word.iter().all(|c| is_ideograph(*c)) {
                // Text without spaces: one word of it is a sentence.
                match rest.windows(word.len()).position(|window| window == word) {
                    Some(skipped) => spoken + skipped + word.len(),
                    None => continue,
                }
            } else {
                continue;
            };
            return self.reached(text, (start, end), &whole, found, end_ms);
        }
        None
    }

    /// Moves the cursor behind `found` characters of a word. Inside a word, only a place between ideographs is an end.
    fn reached(
        &mut self,
        text: &str,
        (start, end): (usize, usize),
        whole: &[char],
        found: usize,
        end_ms: i64,
    ) -> Option<WordTime> {
        self.end_ms = self.end_ms.max(end_ms);
        if found >= whole.len() {
            (self.at, self.spoken) = (end, 0);
            return Some(WordTime { text_end: end, end_ms: self.end_ms });
        }
        (self.at, self.spoken) = (start, found);
        let last = found.checked_sub(1).and_then(|last| whole.get(last))?;
        if !is_ideograph(*last) {
            return None;
        }
        let mut left = found;
        for (offset, c) in text.get(start..end)?.char_indices() {
            left = left.saturating_sub(c.to_lowercase().filter(|c| c.is_alphanumeric()).count());
            if left == 0 {
                return Some(WordTime { text_end: start + offset + c.len_utf8(), end_ms: self.end_ms });
            }
        }
        None
    }
}

/// The words of `text` from a byte on, by white space.
fn words_from(text: &str, at: usize) -> impl Iterator<Item = (usize, usize)> {
    let rest = text.get(at..).unwrap_or_default();
    rest.split_whitespace().map(move |word| {
        let start = at + (word.as_ptr() as usize - rest.as_ptr() as usize);
        (start, start + word.len())
    })
}

/// What is compared of a word: its letters and digits, in lower case.
fn key(word: &str) -> Vec<char> {
    let letters = word.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric());
    letters.take(WORD_CHARS_MAX).collect()
}

/// A word without marks such as `<break>`.
fn without_tags(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, tag)) = rest.split_once('<') {
        out.push_str(before);
        match tag.split_once('>') {
            Some((_, after)) => rest = after,
            None => return out + tag,
        }
    }
    out + rest
}

/// Whether each character is a word, as in Chinese and Japanese.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(text: &str, words: &[&str]) -> Vec<String> {
        let mut map = WordMap::default();
        let found = words.iter().enumerate().filter_map(|(n, word)| map.find(text, word, n as i64));
        found.map(|time| text[..time.text_end].to_owned()).collect()
    }

    #[test]
    fn words_move_the_cursor_over_our_text() {
        assert_eq!(ends("Hello, you!", &["Hello", "you"]), ["Hello,", "Hello, you!"]);
        assert_eq!(ends("well-known fact", &["well", "known", "fact"]), ["well-known", "well-known fact"]);
        assert_eq!(
            ends("Costs 20 € here", &["Costs", "twenty", "euros", "here"]),
            ["Costs", "Costs 20 € here"]
        );
        assert_eq!(ends("A b", &["<spell>A</spell>", "—", "<break/>b"]), ["A", "A b"]);
        assert_eq!(ends("你好。再见", &["你", "好", "再", "见"]), ["你", "你好", "你好。再", "你好。再见"]);
        assert_eq!(ends("one two", &["three", "<", ""]), [""; 0]);
    }

    proptest! {
        #[test]
        fn ends_lie_between_characters_and_never_go_back(
            text in "\\PC{0,60}", words in prop::collection::vec("\\PC{0,6}", 0..12), times: Vec<i64>
        ) {
            let mut map = WordMap::default();
            let mut last = (0, i64::MIN);
            for (word, ms) in words.iter().chain(text.split(' ').map(str::to_owned).collect::<Vec<_>>().iter())
                .zip(times.iter().chain(std::iter::repeat(&0)))
            {
                if let Some(time) = map.find(&text, word, *ms) {
                    prop_assert!(text.is_char_boundary(time.text_end));
                    prop_assert!(time.text_end >= last.0 && time.end_ms >= last.1);
                    last = (time.text_end, time.end_ms);
                }
            }
        }
    }
}
