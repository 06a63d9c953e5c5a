//! Texts for people: numbers, and what comes from elsewhere.
use sidetone_engine::base::text::is_unfit_for_names;

/// Text from elsewhere without control characters, which a terminal would obey, and without what shows it in another order:
/// separators of lines and marks that turn the direction.
pub(crate) fn clean(text: &str) -> String {
    let is_unfit = |c: char| is_unfit_for_names(c) && c != '\n' && c != '\t';
    text.chars().map(|c| if is_unfit(c) { '\u{fffd}' } else { c }).collect()
}

/// `18,233`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `1,204 files`
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `4.1 GB`
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return counted(bytes, "byte");
    }
    let mut amount = bytes as f64 / 1_000.0;
    let mut unit = UNITS[0];
    for larger in UNITS.into_iter().skip(1) {
        // 999.95 would be shown as 1000.0.
        if amount < 999.95 {
            break;
        }
        (amount, unit) = (amount / 1_000.0, larger);
    }
    format!("{amount:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_is_replaced() {
        assert_eq!(clean("a\u{1b}[2J\tb\nc\r"), "a\u{fffd}[2J\tb\nc\u{fffd}");
        for mark in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain(['\u{2028}', '\u{2029}']) {
            assert_eq!(clean(&format!("a{mark}b")), "a\u{fffd}b", "{}", mark.escape_unicode());
        }
        // Emoji and many scripts need joiners.
        for text in ["👩\u{200d}🚀", "می\u{200c}خواهم", "שלום"] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn numbers_are_written_for_people() {
        let counts = [0, 7, 999, 1_000, 18_233, 1_234_567].map(count);
        assert_eq!(counts, ["0", "7", "999", "1,000", "18,233", "1,234,567"]);
        assert_eq!([1, 2_000].map(|some| counted(some, "file")), ["1 file", "2,000 files"]);
        let sizes = [1, 999, 1_000, 999_949, 999_950, 4_100_000_000, 12_345_000_000_000].map(size);
        assert_eq!(sizes, ["1 byte", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "4.1 GB", "12.3 TB"]);
    }
}
