//! The text of an answer while the model writes it, by sentences; a long one begins with its first clause.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::speech::sentence_cutter::SentenceCutter;

/// Shared by the request, which adds what the model writes, and by who speaks it, who takes the sentences.
///
/// A request may fail and be repeated. That is not possible any more once a sentence was taken, because it may have been
/// heard.
#[derive(Debug, Clone, Default)]
pub struct Written(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    cutter: SentenceCutter,
    /// Bytes of the text so far, in this attempt.
    bytes: usize,
    /// Complete sentences that were not taken.
    ready: String,
    has_begun: bool,
    was_taken: bool,
    is_cut_short: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            cutter: SentenceCutter::that_begins_early(),
            bytes: 0,
            ready: String::new(),
            has_begun: false,
            was_taken: false,
            is_cut_short: false,
        }
    }
}

impl Written {
    /// Whether the model has begun to write; true once.
    pub fn take_beginning(&self) -> bool {
        let mut state = self.state();
        let begins = state.bytes > 0 && !state.has_begun;
        state.has_begun |= begins;
        begins
    }

    /// The complete sentences since the last call, if any.
    pub fn take(&self) -> Option<String> {
        let mut state = self.state();
        let text = std::mem::take(&mut state.ready);
        state.was_taken |= !text.is_empty();
        (!text.is_empty()).then_some(text)
    }

    /// Whether a sentence was taken.
    pub(super) fn was_taken(&self) -> bool {
        self.state().was_taken
    }

    /// Whether the model reached its token limit in the middle of its answer.
    pub fn is_cut_short(&self) -> bool {
        self.state().is_cut_short
    }

    pub(in crate::models) fn cut_short(&self) {
        self.state().is_cut_short = true;
    }

    /// Of an answer that is whole and was not said yet.
    #[must_use]
    pub fn unsaid(&self) -> Self {
        let state = State { is_cut_short: self.is_cut_short(), ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// The size of what the model has written.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// The attempt has failed: forgets what it wrote. Returns whether the model may be asked again.
    pub(in crate::models) fn forget(&self) -> bool {
        let mut state = self.state();
        state.ready.clear();
        if !state.was_taken {
            *state = State { has_begun: state.has_begun, ..State::default() };
        }
        !state.was_taken
    }

    /// The same by words: what is spoken already waits for no end of a sentence.
    pub(in crate::models) fn update_words(&self, text: &str) {
        let mut state = self.state();
        // Chinese and Japanese have no spaces.
        let ends_word = |c: char| {
            c.is_whitespace()
                || matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
        };
        let end = text.char_indices().rfind(|(_, c)| ends_word(*c)).map_or(0, |(at, c)| at + c.len_utf8());
        let end = end.max(state.bytes);
        state.take_until(text, end);
    }

    /// Also its last word is whole.
    pub(in crate::models) fn ends_word(&self, text: &str) {
        self.state().take_until(text, text.len());
    }

    /// All that the model has written in this attempt.
    pub(super) fn update(&self, text: &str) {
        let mut state = self.state();
        let Some(more) = text.get(state.bytes..).filter(|more| !more.is_empty()) else { return };
        state.bytes = text.len();
        let sentences = state.cutter.push(more);
        state.ready.extend(sentences);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_until(&mut self, text: &str, end: usize) {
        let Some(more) = text.get(self.bytes..end).filter(|more| !more.is_empty()) else { return };
        self.bytes = end;
        self.ready.push_str(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_taken_once_each() {
        let written = Written::default();
        written.update("We open at nine o'clock. And");
        assert_eq!(written.take().as_deref(), Some("We open at nine o'clock. "));
        assert_eq!(written.take(), None);
        written.update("We open at nine o'clock. And we close at five in the afternoon. Bye");
        assert_eq!(written.take().as_deref(), Some("And we close at five in the afternoon. "));
        assert_eq!(written.bytes(), 67);
    }

    #[test]
    fn words_are_taken_as_they_come() {
        let written = Written::default();
        for (text, word) in [
            ("We", None),
            ("We open", Some("We ")),
            ("We open at", Some("open ")),
            ("We open at ", Some("at ")),
            ("We open at 十时", Some("十时")),
        ] {
            written.update_words(text);
            assert_eq!(written.take().as_deref(), word, "{text}");
        }
    }

    #[test]
    fn an_attempt_of_which_nothing_was_taken_is_forgotten() {
        let written = Written::default();
        assert!(!written.take_beginning());
        written.update("We open at nine o'clock. And");
        assert!(written.take_beginning() && !written.take_beginning());
        assert!(written.forget());
        assert_eq!((written.take(), written.bytes()), (None, 0));
        written.update("I do not know anything of that. Ask my colleague, please. And");
        assert!(written.take().is_some() && written.was_taken());
        written.update(
            "I do not know anything of that. Ask my colleague, please. And then ask me once more. Or",
        );
        assert!(!written.forget());
        assert_eq!((written.take(), written.was_taken()), (None, true), "nothing more of it is said");
    }
}
