//! Results that come after their turn is over: words that were not told with it are said, too.
use super::{Heard, Listener, Turn, join, words_after};

/// An utterance of a turn that is over, without its result.
#[derive(Debug, Default)]
pub(super) struct LateUtterance {
    /// The words of it that were told with its turn.
    told: String,
    /// When the last voice of the turn was.
    until_ms: i64,
}

impl LateUtterance {
    /// What the result tells beyond the words that were told. Where it corrects these, what comes after as many words.
    fn beyond(&self, text: &str) -> String {
        // Languages without blanks go on in the middle of a word.
        let rest = text.trim_start().strip_prefix(self.told.trim()).or_else(|| words_after(&self.told, text));
        rest.map(str::to_owned).unwrap_or_else(|| {
            let told = self.told.split_whitespace().count();
            text.split_whitespace().skip(told).collect::<Vec<_>>().join(" ")
        })
    }
}

impl Listener {
    /// A turn is over. Its utterances without a result get one later.
    pub(super) fn await_late_results(&mut self, turn: &Turn) {
        let count = self.pending.saturating_sub(self.late.len());
        for nth in 0..count {
            // What was told before it was final belongs to the oldest.
            let told = if nth == 0 { turn.partial.clone() } else { String::new() };
            self.late.push_back(LateUtterance { told, until_ms: turn.voiced_until_ms });
        }
    }

    /// The result of an utterance whose turn is over.
    pub(super) fn finalised_late(&mut self, late: &LateUtterance, text: &str) {
        let text = late.beyond(text);
        if text.trim().is_empty() {
            return;
        }
        match &mut self.turn {
            // The person is speaking again: it is one turn with what they say now.
            Some(turn) => {
                join(&mut turn.words, &text);
                self.heard.push_back(Heard::Words(turn.text()));
            }
            None => self.heard.push_back(Heard::SaidLate { text, until_ms: late.until_ms }),
        }
    }
}
