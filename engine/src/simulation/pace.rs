//! How long a line takes in a conversation that nobody speaks.

/// Time one character takes to say, about 15 a second.
pub const SPOKEN_CHAR_MS: i64 = 65;
/// Time the shortest line takes.
pub const SPOKEN_MS_MIN: i64 = 300;

/// How long it takes to say the text, in ms. It depends on nothing else, so that a simulation
/// repeats to the byte.
#[must_use]
pub fn spoken_ms(text: &str) -> i64 {
    let chars = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    chars.saturating_mul(SPOKEN_CHAR_MS).max(SPOKEN_MS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_time_by_its_length() {
        assert_eq!(spoken_ms(""), 300);
        assert_eq!(spoken_ms("Hi"), 300);
        assert_eq!(spoken_ms("éééééééééé"), 650);
    }
}
