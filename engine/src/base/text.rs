//! How spoken text is compared and cut.
use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

/// The text with case, white space and Unicode composition folded away.
///
/// Two texts fold to the same bytes when a reader would call them the same words: `Straße` and
/// `STRASSE`, `é` in one code point or two, any run of white space and one blank.
#[must_use]
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in composed(text).split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        if word.is_ascii() {
            out.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        } else {
            out.extend(word.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase));
        }
    }
    out
}

/// The text with every run of white space made one blank, otherwise as it is.
#[must_use]
pub fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// The text, cut at a character boundary and marked by `…` when it is longer than `bytes_max`.
#[must_use]
pub fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub('…'.len_utf8()));
    text.truncate(end);
    text.push('…');
    text
}

/// The text, cut at a character boundary to `bytes_max` bytes, with a mark that tells how long it
/// was. When there is no room for the mark, nothing but the mark is left.
#[must_use]
pub fn cut_telling(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let mark = format!("… (cut, {} bytes in all)", text.len());
    text.truncate(text.floor_char_boundary(bytes_max.saturating_sub(mark.len())));
    text.push_str(&mark);
    text
}

/// NFC, so that an accent typed as a second code point is the same letter.
fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folds_case_white_space_and_composition() {
        assert_eq!(folded("  We OPEN\u{a0}at\r\n\tNine "), "we open at nine");
        assert_eq!(folded("Straße"), folded("STRASSE"));
        assert_eq!(folded("Cafe\u{301}"), folded("CAFÉ"));
        assert_eq!(folded("ΟΔΟΣ"), folded("οδος"));
        assert_ne!(folded("cafe"), folded("café"));
        assert_eq!(folded(" \u{2003}\n"), "");
    }

    #[test]
    fn cuts_at_a_character() {
        assert_eq!(cut("héllo".into(), 6), "héllo");
        assert_eq!(cut("hééééé".into(), 7), "héé…".chars().take(2).collect::<String>() + "…");
        assert_eq!(cut("abcdef".into(), 0), "…");
        assert_eq!(cut_telling("é".repeat(16), 32), "é".repeat(16));
        assert_eq!(cut_telling("é".repeat(17), 31), "éé… (cut, 34 bytes in all)");
        assert_eq!(cut_telling("é".repeat(17), 1), "… (cut, 34 bytes in all)");
    }

    proptest! {
        #[test]
        fn folding_twice_changes_nothing(text in ".{0,40}") {
            let once = folded(&text);
            prop_assert_eq!(folded(&once), once);
        }
    }
}
