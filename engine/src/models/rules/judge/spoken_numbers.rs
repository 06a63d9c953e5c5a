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
        "thousand" | "grand" => Some(1_000),
        "million" => Some(1_000_000),
        "billion" => Some(1_000_000_000),
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

fn place(names: &[&str], word: &str) -> Option<u64> {
    u64::try_from(names.iter().position(|name| *name == word)?).ok()
}
