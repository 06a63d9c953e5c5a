//! Results that come after their turn is over: words that were not told with it are said, too.
use super::unheard::LATE_MS;
use super::words::{join, words_after};
use super::{Heard, Listener, Turn};

/// A transcriber that told words so lately is at work: the result that it owes is awaited longer.
const STILL_TELLS_MS: i64 = 1_000;

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
        let told = self.told.trim();
        // Languages without blanks go on in the middle of what looks like a word.
        let in_word = || text.trim_start().strip_prefix(told).filter(|_| !told.is_ascii());
        let rest = words_after(told, text).or_else(in_word).map(|rest| rest.trim().to_owned());
        rest.unwrap_or_else(|| {
            let told = told.split_whitespace().count();
            text.split_whitespace().skip(told).collect::<Vec<_>>().join(" ")
        })
    }
}

impl Listener {
    /// When the words of a turn are awaited no more: the person is asked for them again, whatever is still tried.
    pub(super) fn gives_up_at_ms(&self) -> Option<i64> {
        let is_awaited = |turn: &&Turn| !turn.is_given_up && turn.text().is_empty() && !self.is_closed;
        let turn = self.turn.as_ref().filter(is_awaited).filter(|_| self.pending > self.late.len());
        Some(turn?.first_ended_ms? + LATE_MS)
    }

    /// How long after the end of speech the result is awaited of a transcriber that tells words meanwhile.
    pub(super) fn wait_while_told_ms(&self, turn: &Turn) -> i64 {
        match turn.told_ms {
            // Its words come with the result.
            Some(_) if !self.transcriber.has_words_meanwhile() => self.patience.max_ms,
            Some(told_ms) if !self.transcriber.detects_turns() => {
                (told_ms + STILL_TELLS_MS - turn.voiced_until_ms).min(self.patience.max_ms)
            }
            _ => 0,
        }
    }

    /// A turn is over. Its utterances without a result get one later.
    pub(super) fn await_late_results(&mut self, turn: &Turn) {
        let count = self.pending.saturating_sub(self.late.len());
        for nth in 0..count {
            // What was told before it was final belongs to the oldest.
            let told = if nth == 0 { turn.partial.clone() } else { String::new() };
            self.late.push_back(LateUtterance { told, until_ms: turn.voiced_until_ms });
        }
    }

    /// Words came after the result of their utterance.
    pub(super) fn told_late(&mut self, told: &str, text: &str) {
        if let Some(turn) = &mut self.turn
            && let Some(before) = turn.words.strip_suffix(told)
        {
            turn.words = before.trim_end().to_owned();
            join(&mut turn.words, text);
            self.heard.push_back(Heard::Words(turn.text()));
            return;
        }
        let late = LateUtterance { told: told.to_owned(), until_ms: self.last_until_ms };
        self.finalised_late(&late, text);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_not_told_again() {
        for (told, text, beyond) in [
            ("", "Cancel it.", "Cancel it."),
            ("Cancel my table", "Cancel my table, for Saturday.", "for Saturday."),
            ("Cancel my table", "Cancel my table.", ""),
            ("Counsel my table", "Cancel my table for Saturday.", "for Saturday."),
            ("予約を", "予約をお願いします。", "お願いします。"),
        ] {
            let late = LateUtterance { told: told.to_owned(), until_ms: 0 };
            assert_eq!(late.beyond(text), beyond, "{told}: {text}");
        }
    }
}
