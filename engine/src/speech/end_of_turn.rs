//! When a person has finished speaking: from silence, and from what was said.
use super::vocabulary::{Vocabulary, words_of};

/// How long to wait for more, in ms since the person last spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// After a sentence or a plain answer.
    pub min_ms: i64,
    /// After words that plainly go on.
    pub unfinished_ms: i64,
    /// In addition after digits, which people read out with pauses.
    pub digits_ms: i64,
    /// Never longer, once the words are known.
    pub max_ms: i64,
}

impl Patience {
    /// What suits most callers.
    pub const DEFAULT: Self = Self { min_ms: 500, unfinished_ms: 1_500, digits_ms: 500, max_ms: 3_000 };
}

impl Default for Patience {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A person's turn up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnSoFar<'a> {
    /// When the person last spoke.
    pub voiced_until_ms: i64,
    /// What was understood, from all utterances of the turn; empty while nothing is.
    pub text: &'a str,
    /// How long after [`voiced_until_ms`](Self::voiced_until_ms) the final transcript may take, if it has not arrived.
    pub final_wait_ms: Option<i64>,
    /// The language as a BCP 47 tag. In an unknown one only punctuation and digits count.
    pub language: &'a str,
}

/// When the turn ends, unless the person speaks again or a transcript arrives. In the past when a transcript was late: the
/// turn is then over at once.
///
/// ```
/// use sidetone_engine::speech::end_of_turn::{Patience, TurnSoFar, turn_ends_at_ms};
///
/// let mut turn = TurnSoFar {
///     voiced_until_ms: 10_000,
///     text: "I would like a table for",
///     final_wait_ms: None,
///     language: "en",
/// };
/// assert_eq!(turn_ends_at_ms(Patience::default(), &turn), 11_500);
/// turn.text = "I would like a table for two.";
/// assert_eq!(turn_ends_at_ms(Patience::default(), &turn), 10_500);
/// ```
#[must_use]
pub fn turn_ends_at_ms(patience: Patience, turn: &TurnSoFar) -> i64 {
    let wait_ms = match Ending::of(turn.text, Vocabulary::of(turn.language)) {
        Ending::Complete => patience.min_ms,
        // Many transcribers write no punctuation: half-way.
        Ending::Open => i64::midpoint(patience.min_ms, patience.unfinished_ms),
        Ending::Unfinished => patience.unfinished_ms,
        Ending::Digits => patience.min_ms + patience.digits_ms,
        Ending::MoreDigits => patience.unfinished_ms + patience.digits_ms,
    };
    let wait_ms = wait_ms.max(patience.min_ms).min(patience.max_ms.max(patience.min_ms));
    turn.voiced_until_ms.saturating_add(wait_ms.max(turn.final_wait_ms.unwrap_or(0)))
}

/// How a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// As sentences and answers do. Nothing, too: there is nothing that could go on.
    Complete,
    /// Nothing tells.
    Open,
    /// In the middle of a sentence.
    Unfinished,
    /// With digits that may be all.
    Digits,
    /// With digits, or letters of a spelling, that probably go on.
    MoreDigits,
}

impl Ending {
    fn of(text: &str, known: &Vocabulary) -> Self {
        let words = words_of(text);
        let Some(last) = words.last() else { return Self::Complete };
        let mark = text
            .trim_end_matches(|character: char| character.is_whitespace() || "\"'”’»)]".contains(character));
        let goes_on =
            mark.ends_with("...") || mark.ends_with([',', '،', '、', '，', ':', '：', '-', '–', '—', '…']);
        let stops = mark.ends_with(['.', '!', '。', '！', '।', '۔', '．']);
        // A transcriber writes a question mark from the words, a full stop often from silence alone.
        if mark.ends_with(['?', '？', '؟']) {
            return Self::Complete;
        }
        if ends_with_digits(&words, known) {
            return if stops { Self::Digits } else { Self::MoreDigits };
        }
        if goes_on || known.unfinished.contains(&last.as_str()) {
            return Self::Unfinished;
        }
        let is_answer = words.len() <= 3 && known.answers.contains(&words.join(" ").as_str());
        if stops || is_answer { Self::Complete } else { Self::Open }
    }
}

/// Whether the words end with a number: in digits, or with two number words, since one may be anything ("this one").
fn ends_with_digits(words: &[String], known: &Vocabulary) -> bool {
    let is_number = |word: &String| known.digits.contains(&word.as_str());
    match words {
        [.., last] if last.contains(|character: char| character.is_numeric()) => true,
        [.., one, two] => is_number(one) && is_number(two),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait_ms(text: &str, language: &str) -> i64 {
        let turn = TurnSoFar { voiced_until_ms: 0, text, final_wait_ms: None, language };
        turn_ends_at_ms(Patience::default(), &turn)
    }

    #[test]
    fn the_wait_follows_what_was_said() {
        for (text, expected_ms) in [
            ("I need a new appointment.", 500),
            ("Can you help me?", 500),
            ("yes", 500),
            ("No, thank you", 500),
            ("Okay", 500),
            ("I need an appointment", 1_000),
            ("I need an appointment and", 1_500),
            // Transcribers that write a full stop after everything.
            ("I need an appointment for.", 1_500),
            ("I need, um...", 1_500),
            ("Well,", 1_500),
            ("My number is 555", 2_000),
            ("My number is five five", 2_000),
            ("At 5.", 1_000),
            ("This one", 1_000),
            ("He said “stop.”", 500),
        ] {
            assert_eq!(wait_ms(text, "en"), expected_ms, "{text}");
        }
    }

    #[test]
    fn other_languages() {
        for (text, language, expected_ms) in [
            ("Ich hätte gern einen Termin und", "de-DE", 1_500),
            ("Genau", "de", 500),
            ("Quiero una mesa para", "es", 1_500),
            ("d'accord", "fr", 500),
            ("予約をお願いします。", "ja", 500),
            ("予約を、", "ja", 1_500),
            ("and", "tlh", 1_000),
        ] {
            assert_eq!(wait_ms(text, language), expected_ms, "{text}");
        }
    }

    #[test]
    fn a_transcript_is_awaited() {
        let mut turn =
            TurnSoFar { voiced_until_ms: 1_000, text: "", final_wait_ms: Some(1_660), language: "en" };
        assert_eq!(turn_ends_at_ms(Patience::default(), &turn), 2_660);
        // It arrives at 2,000: the turn has been over since 1,500.
        (turn.text, turn.final_wait_ms) = ("Yes.", None);
        assert_eq!(turn_ends_at_ms(Patience::default(), &turn), 1_500);
    }

    #[test]
    fn the_settings_bound_the_wait() {
        let turn = TurnSoFar { voiced_until_ms: 0, text: "it is 5 5", final_wait_ms: None, language: "en" };
        assert_eq!(turn_ends_at_ms(Patience { max_ms: 1_200, ..Patience::default() }, &turn), 1_200);
        assert_eq!(
            turn_ends_at_ms(Patience { min_ms: 2_500, max_ms: 100, ..Patience::default() }, &turn),
            2_500
        );
    }

    proptest! {
        #[test]
        fn every_text_ends_within_the_bounds(text in "\\PC{0,60}", language in "[a-z]{0,3}") {
            let wait_ms = wait_ms(&text, &language);
            prop_assert!((500..=3_000).contains(&wait_ms), "{wait_ms}");
        }
    }
}
