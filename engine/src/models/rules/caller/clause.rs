//! The words of one instruction.

/// An instruction as words: as written, and in lower case without the punctuation around them.
#[derive(Debug, Clone)]
pub(super) struct Clause<'a> {
    raw: Vec<&'a str>,
    low: Vec<String>,
}

impl<'a> Clause<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let raw: Vec<&str> = text.split_whitespace().collect();
        let low = raw.iter().map(|word| lowered(word)).collect();
        Self { raw, low }
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    /// The word at a place in lower case; empty beyond the end.
    pub(super) fn word(&self, at: usize) -> &str {
        self.low.get(at).map_or("", String::as_str)
    }

    /// The word at a place as it is written.
    pub(super) fn written(&self, at: usize) -> &'a str {
        self.raw.get(at).copied().unwrap_or_default()
    }

    /// The text from a word on.
    pub(super) fn from(&self, at: usize) -> String {
        self.raw.get(at..).unwrap_or_default().join(" ")
    }

    /// The text of some words.
    pub(super) fn between(&self, from: usize, to: usize) -> String {
        self.raw.get(from..to).unwrap_or_default().join(" ")
    }

    /// How many words the first of the phrases has that begins at a place.
    pub(super) fn phrase_at(&self, at: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().find_map(|phrase| {
            let mut len = 0;
            for word in phrase.split(' ') {
                if self.word(at + len) != word {
                    return None;
                }
                len += 1;
            }
            Some(len)
        })
    }

    /// How many words the first of the phrases has that begins the clause.
    pub(super) fn begins(&self, phrases: &[&str]) -> Option<usize> {
        self.phrase_at(0, phrases)
    }

    /// The first place from `from` on that has one of the words.
    pub(super) fn find(&self, from: usize, words: &[&str]) -> Option<usize> {
        (from..self.len()).find(|at| words.contains(&self.word(*at)))
    }

    /// Whether a phrase is anywhere.
    pub(super) fn has(&self, phrases: &[&str]) -> bool {
        (0..self.len()).any(|at| self.phrase_at(at, phrases).is_some())
    }

    /// Whether a mark that separates parts of a sentence follows the word.
    pub(super) fn pauses_after(&self, at: usize) -> bool {
        self.written(at).ends_with([',', ';', ':'])
    }
}

/// A word in lower case, without the punctuation around it, with straight apostrophes.
pub(super) fn lowered(word: &str) -> String {
    let core = word.trim_matches(|char: char| !char.is_alphanumeric());
    core.to_lowercase().replace('\u{2019}', "'")
}
