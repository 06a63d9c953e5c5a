//! The duration of a line in a conversation without speech.

/// The duration of one character, about 15 a second.
pub const SPOKEN_CHAR_MS: i64 = 65;
/// The duration of the shortest line.
pub const SPOKEN_MS_MIN: i64 = 300;

/// The duration of the spoken text, in ms. It depends on nothing else, so that simulations are reproducible byte for
/// byte.
#[must_use]
pub fn spoken_ms(text: &str) -> i64 {
    let chars = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    chars.saturating_mul(SPOKEN_CHAR_MS).max(SPOKEN_MS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duration_depends_on_the_length() {
        assert_eq!(spoken_ms(""), 300);
        assert_eq!(spoken_ms("Hi"), 300);
        assert_eq!(spoken_ms("éééééééééé"), 650);
    }
}
