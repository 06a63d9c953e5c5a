//! The assistant's own words that come back from the person's telephone.
use super::vocabulary::words_of;

/// A few equal words may be a choice ("Tuesday") or a repetition by the person; from this many on they are echo.
const CERTAIN_WORDS: usize = 3;
/// Words compared: those of the longest utterance that can be echo, and of a minute of speech.
const HEARD_WORDS_MAX: usize = 64;
const PLAYED_WORDS_MAX: usize = 256;

/// Whether words that arrived are the assistant's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Echo {
    /// They are other words.
    No,
    /// They are one or two words that were played one after the other. That is echo on a line that has shown echo before, and
    /// otherwise a person who repeats a word.
    Possible,
    /// Three words of four or more were played in this order.
    Yes,
}

/// Compares the words that arrived with what was played lately.
///
/// ```
/// use sidetone_engine::speech::echo::{Echo, echo};
///
/// let played = "We have a table on Monday or on Tuesday.";
/// assert_eq!(echo("a table on monday", played), Echo::Yes);
/// assert_eq!(echo("Tuesday", played), Echo::Possible);
/// assert_eq!(echo("I cannot on Monday", played), Echo::No);
/// ```
#[must_use]
pub fn echo(heard: &str, played: &str) -> Echo {
    let heard: Vec<String> = words_of(heard).into_iter().take(HEARD_WORDS_MAX).collect();
    let mut played = words_of(played);
    // The latest words are those that can still come back.
    played.drain(..played.len().saturating_sub(PLAYED_WORDS_MAX));
    if heard.is_empty() {
        return Echo::No;
    }
    if heard.len() < CERTAIN_WORDS {
        let is_played = played.windows(heard.len()).any(|words| words == heard);
        return if is_played { Echo::Possible } else { Echo::No };
    }
    // Transcribers miss a word of an echo, or hear one more.
    let length = heard.len() + heard.len().div_ceil(4);
    let most = (0..played.len())
        .map(|begin| common_words(&heard, &played[begin..(begin + length).min(played.len())]))
        .max()
        .unwrap_or(0);
    if most >= CERTAIN_WORDS && most * 4 >= heard.len() * 3 { Echo::Yes } else { Echo::No }
}

/// The number of words that both have in the same order (the longest common subsequence).
fn common_words(one: &[String], other: &[String]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for word in one {
        let mut diagonal = 0;
        for (place, candidate) in other.iter().enumerate() {
            let above = row[place + 1];
            row[place + 1] = if word == candidate { diagonal + 1 } else { above.max(row[place]) };
            diagonal = above;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAYED: &str = "Thank you. Your appointment is on Friday at half past nine. Is there anything else I can do for you?";

    #[test]
    fn words_that_come_back_are_echo_even_when_misheard() {
        for heard in [
            "your appointment is on friday",
            "appointment is on Friday at half past mine",
            "anything else can do for you",
            "is there a anything else I can do for you?",
        ] {
            assert_eq!(echo(heard, PLAYED), Echo::Yes, "{heard}");
        }
    }

    #[test]
    fn a_persons_own_words_are_not() {
        for heard in [
            "",
            "No that is all",
            "Can I come on Thursday at nine",
            "Is Friday the only day",
            "you for do can I else",
        ] {
            assert_eq!(echo(heard, PLAYED), Echo::No, "{heard}");
        }
        assert_eq!(echo("half past nine", ""), Echo::No);
        assert_eq!(echo("Friday", PLAYED), Echo::Possible);
        assert_eq!(echo("nine past", PLAYED), Echo::No);
    }

    #[test]
    fn long_texts_are_compared_by_their_latest_words() {
        let long = format!("{} {PLAYED}", "word ".repeat(2_000));
        assert_eq!(echo("your appointment is on friday", &long), Echo::Yes);
        assert_eq!(echo(&long, &long), Echo::Yes);
    }

    proptest! {
        #[test]
        fn every_part_of_what_was_played_is_echo(from in 0_usize..17, words in 3_usize..20) {
            let played = words_of(PLAYED);
            let part = &played[from..(from + words).min(played.len())];
            prop_assert_eq!(echo(&part.join(" "), PLAYED), Echo::Yes);
        }
    }
}
