//! The words of a turn that has not ended: they may still change, so they are shown and not kept.
use super::Voice;

/// What was understood so far, and whether that is news.
#[derive(Debug, Default)]
pub(super) struct WordsSoFar {
    text: String,
    is_news: bool,
}

impl WordsSoFar {
    pub(super) fn change(&mut self, text: String) {
        self.is_news |= text != self.text;
        self.text = text;
    }

    /// The turn is over.
    pub(super) fn clear(&mut self) {
        self.change(String::new());
    }
}

impl Voice {
    /// The words of the person's present turn, if they changed since the last call; empty once it is over.
    pub fn take_words_so_far(&mut self) -> Option<&str> {
        std::mem::take(&mut self.words_so_far.is_news).then_some(self.words_so_far.text.as_str())
    }
}
