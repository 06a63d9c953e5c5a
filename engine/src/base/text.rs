//! Comparing and truncating spoken text.
use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

/// Normalises case, white space, typography and Unicode composition.
///
/// Two texts with the same words give the same bytes: `Straße` and `STRASSE`, `é` in one code point or two, any run of
/// white space and one space, `can’t` and `can't`.
#[must_use]
pub fn casefold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in composed(&plain_marks(text)).split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        if word.is_ascii() {
            out.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        } else {
            // First to lower case: the capital `ẞ` has no other upper case, while `ß` becomes `SS`.
            let upper = word.chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase);
            // In upper case, `ŉ` has an apostrophe.
            out.extend(upper.flat_map(char::to_lowercase).map(|char| plain_mark(char).unwrap_or(char)));
        }
    }
    out
}

/// Replaces typographic marks by those of a keyboard: apostrophes, quotation marks, hyphens and dashes, full-width, mathematical
/// and circled letters and digits, `…`. Marks that cannot be seen are left out.
#[must_use]
pub fn plain_marks(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            char if is_invisible(char) => {}
            '…' => out.push_str("..."),
            char => out.push(plain_mark(char).unwrap_or(char)),
        }
    }
    Cow::Owned(out)
}

fn plain_mark(char: char) -> Option<char> {
    Some(match char {
        '‘' | '’' | '‚' | '‛' | 'ʼ' | 'ʹ' | '′' | '´' => '\'',
        '“' | '”' | '„' | '‟' | '«' | '»' | '″' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' | '\u{fe58}' | '\u{fe63}' => '-',
        '\u{ff01}'..='\u{ff5e}' => return char::from_u32(u32::from(char) - 0xfee0),
        // Thirteen alphabets of mathematics, circled letters, those in brackets and boxes, and five rows of digits.
        '\u{1d400}'..='\u{1d6a3}' => return letter((u32::from(char) - 0x1d400) % 52),
        '\u{24b6}'..='\u{24e9}' => return letter(u32::from(char) - 0x24b6),
        '\u{249c}'..='\u{24b5}' => return letter(u32::from(char) - 0x249c + 26),
        '\u{1f130}'..='\u{1f149}' => return letter(u32::from(char) - 0x1f130),
        '\u{1f150}'..='\u{1f169}' => return letter(u32::from(char) - 0x1f150),
        '\u{1f170}'..='\u{1f189}' => return letter(u32::from(char) - 0x1f170),
        '\u{1d7ce}'..='\u{1d7ff}' => return char::from_digit((u32::from(char) - 0x1d7ce) % 10, 10),
        // The letters that the alphabets leave out.
        '\u{2102}'..='\u{2134}' => {
            let place = "ℂℊℋℌℍℎℐℑℒℓℕℙℚℛℜℝℤℨℬℭℯℰℱℳℴ".chars().position(|letter| letter == char)?;
            return "CgHHHhIILlNPQRRRZZBCeEFMo".chars().nth(place);
        }
        _ => return None,
    })
}

/// The letter at the place, from `A` to `Z` and then from `a` to `z`.
fn letter(place: u32) -> Option<char> {
    char::from_u32(if place < 26 { u32::from('A') + place } else { u32::from('a') + place - 26 })
}

/// Unicode's `Default_Ignorable_Code_Point`: soft hyphens, zero-width spaces and joiners, marks of direction, byte order marks.
const fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether models accept the text as the name of a function, apart from its length.
#[must_use]
pub fn is_function_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
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

/// Whether a text that somebody may have made up is shown as it is, in its line: it has at most so many characters, and each of
/// them fits a name.
#[must_use]
pub fn is_line(text: &str, chars_max: u64) -> bool {
    text.chars().count() as u64 <= chars_max && !text.chars().any(is_unfit_for_names)
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
    fn folds_typography() {
        for (one, other) in [
            ("I can’t", "I can't"),
            ("BD‑17", "BD-17"),
            ("9–5 — or −1", "9-5 - or -1"),
            ("“Yes” „no“ «so»", "\"Yes\" \"no\" \"so\""),
            ("ﬁnd the oﬃce", "find the office"),
            ("co\u{ad}op\u{200b}", "coop"),
            ("２０：３０", "20:30"),
            ("Wait…", "wait..."),
            ("𝐫𝐞𝐟𝐮𝐧𝐝 𝟗𝟎 ℎ𝓮𝕃𝖕 Ⓐⓩ 🅱", "refund 90 help az b"),
            ("re\u{34f}f\u{202e}und\u{e0020}", "refund"),
            ("10\u{202f}000\u{a0}€", "10 000 €"),
        ] {
            assert_eq!(casefold(one), casefold(other));
            assert_eq!(casefold(&casefold(one)), casefold(one));
        }
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
