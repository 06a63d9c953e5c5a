//! Numbers in words.

/// A number below twenty.
pub(super) fn below_twenty(word: &str) -> Option<u64> {
    const NAMES: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    place(&NAMES, word)
}

/// Twenty, thirty …
pub(super) fn tens(word: &str) -> Option<u64> {
    const NAMES: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    Some((place(&NAMES, word)? + 2) * 10)
}

/// What the number before the word is multiplied by.
pub(super) fn scale(word: &str) -> Option<u64> {
    match word {
        "dozen" => Some(12),
        "hundred" => Some(100),
        "thousand" => Some(1_000),
        "million" => Some(1_000_000),
        _ => None,
    }
}

/// Third to thirty-first, without the compounds; `first` and `second` mean too much else.
pub(super) fn ordinal(word: &str) -> Option<u32> {
    const NAMES: [&str; 20] = [
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
        "twentieth",
    ];
    match word {
        "thirtieth" => Some(30),
        _ => u32::try_from(place(&NAMES, word)? + 1).ok(),
    }
}

/// The number of a month, 1 to 12.
pub(super) fn month(word: &str) -> Option<u32> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let is = |name: &&str| {
        **name == *word
            || word.len() == 3 && name.starts_with(word)
            || word == "sept" && name.starts_with(word)
    };
    u32::try_from(NAMES.iter().position(is)? + 1).ok()
}

fn place(names: &[&str], word: &str) -> Option<u64> {
    u64::try_from(names.iter().position(|name| *name == word)?).ok()
}
