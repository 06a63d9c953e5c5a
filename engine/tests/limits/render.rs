//! Numbers as the documentation writes them.

pub fn count(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().ok().unwrap().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub fn characters(number: impl TryInto<u64>) -> String {
    format!("{} characters", count(number))
}

pub fn plain_bytes(number: impl TryInto<u64>) -> String {
    format!("{} bytes", count(number))
}

/// In the largest unit that gives a whole number.
pub fn bytes(number: impl TryInto<u64>) -> String {
    let number: u64 = number.try_into().ok().unwrap();
    if number.is_multiple_of(1 << 20) {
        format!("{} MiB", count(number >> 20))
    } else if number.is_multiple_of(1 << 10) {
        format!("{} KiB", count(number >> 10))
    } else {
        plain_bytes(number)
    }
}

/// Millions of bytes, to a tenth.
pub fn megabytes(number: usize) -> String {
    assert_eq!(number % 100_000, 0);
    format!("{}.{} MB", number / 1_000_000, number / 100_000 % 10)
}

/// In the largest unit that gives a whole number; a single day is 24 hours.
pub fn duration(ms: u64) -> String {
    const HOUR_MS: u64 = 60 * 60 * 1_000;
    for (unit_ms, unit) in [(24 * HOUR_MS, "day"), (HOUR_MS, "hour"), (60_000, "minute")] {
        let number = ms / unit_ms;
        if ms.is_multiple_of(unit_ms) && number > u64::from(unit == "day") {
            return format!("{number} {unit}{}", if number == 1 { "" } else { "s" });
        }
    }
    assert_eq!(ms % 1_000, 0, "{ms}");
    format!("{} s", ms / 1_000)
}

pub fn dollars(microusd: i64) -> String {
    assert_eq!(microusd % 1_000_000, 0);
    format!("{} US dollar", microusd / 1_000_000)
}

/// A small number in words.
pub fn word(number: impl TryInto<usize>) -> &'static str {
    const WORDS: &str = "zero one two three four five six seven eight nine ten eleven twelve";
    WORDS.split(' ').nth(number.try_into().ok().unwrap()).unwrap()
}
