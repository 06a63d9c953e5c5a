//! Comparing and truncating spoken text.
use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

/// Normalises case, white space and Unicode composition.
///
/// Two texts with the same words give the same bytes: `Straße` and `STRASSE`, `é` in one code point or two, any run of
/// white space and one space.
#[must_use]
pub fn casefold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in composed(text).split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        if word.is_ascii() {
            out.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        } else {
            // First to lower case: the capital `ẞ` has no other upper case, while `ß` becomes `SS`.
            let upper = word.chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase);
            out.extend(upper.flat_map(char::to_lowercase));
        }
    }
    out
}

/// Replaces every run of white space with one space and trims both ends.
#[must_use]
pub fn collapse_whitespace(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Replaces the words that contain one of `hidden`, in whatever case, and every run of white space with one space.
#[must_use]
pub fn hide_words(text: &str, hidden: &[&str], placeholder: &str) -> String {
    let hidden: Vec<String> =
        hidden.iter().filter(|part| !part.is_empty()).map(|part| part.to_ascii_lowercase()).collect();
    let shown = |word| {
        let lower = str::to_ascii_lowercase(word);
        if hidden.iter().any(|part| lower.contains(part)) { placeholder } else { word }
    };
    text.split_whitespace().map(shown).collect::<Vec<_>>().join(" ")
}

/// Whether a name may not have the character: it breaks the line, or turns the direction of what follows.
#[must_use]
pub fn is_unfit_for_names(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What is wrong with a name that has such a character.
pub const UNFIT_NAME: &str =
    "must have no line breaks, control characters or marks that turn the direction of the text";

/// Replaces control characters other than white space with spaces: JSON would write each in six bytes.
#[must_use]
pub fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !c.is_whitespace() { ' ' } else { c }).collect()
}

/// Truncates the text at a character boundary and appends `…` when it is longer than `bytes_max`.
#[must_use]
pub fn truncate(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub('…'.len_utf8()));
    text.truncate(end);
    text.push('…');
    text
}

/// Truncates the text at a character boundary to `bytes_max` bytes, including a note with the original length. When there
/// is no room for the note, only the note remains.
#[must_use]
pub fn truncate_with_note(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let mark = format!("… (cut, {} bytes in all)", text.len());
    text.truncate(text.floor_char_boundary(bytes_max.saturating_sub(mark.len())));
    text.push_str(&mark);
    text
}

/// NFC, so that an accent in a separate code point gives the same letter.
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
        assert_eq!(casefold("  We OPEN\u{a0}at\r\n\tNine "), "we open at nine");
        assert_eq!(casefold("Straße"), casefold("STRASSE"));
        assert_eq!(casefold("STRAẞE"), casefold("STRASSE"));
        assert_eq!(casefold("Cafe\u{301}"), casefold("CAFÉ"));
        assert_eq!(casefold("ΟΔΟΣ"), casefold("οδος"));
        assert_ne!(casefold("cafe"), casefold("café"));
        assert_eq!(casefold(" \u{2003}\n"), "");
    }

    #[test]
    fn truncates_at_a_character_boundary() {
        assert_eq!(truncate("héllo".into(), 6), "héllo");
        assert_eq!(truncate("hééééé".into(), 7), "héé…".chars().take(2).collect::<String>() + "…");
        assert_eq!(truncate("abcdef".into(), 0), "…");
        assert_eq!(truncate_with_note("é".repeat(16), 32), "é".repeat(16));
        assert_eq!(truncate_with_note("é".repeat(17), 31), "éé… (cut, 34 bytes in all)");
        assert_eq!(truncate_with_note("é".repeat(17), 1), "… (cut, 34 bytes in all)");
    }

    proptest! {
        #[test]
        fn folding_twice_changes_nothing(text in ".{0,40}") {
            let once = casefold(&text);
            prop_assert_eq!(casefold(&once), once);
        }
    }
}
