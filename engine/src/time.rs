//! Times on the wire: RFC 3339 UTC with milliseconds.
use jiff::Timestamp;

/// `1750000000123` → `2025-06-15T15:06:40.123Z`.
pub fn format(ms: i64) -> String {
    let clamped = ms.clamp(Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
    Timestamp::from_millisecond(clamped).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

/// An optional time.
pub fn format_optional(ms: Option<i64>) -> Option<String> {
    ms.map(format)
}

/// The first millisecond of a day (`2026-01-31`, UTC), or a time's; `None` when the text is neither.
pub fn from(text: &str) -> Option<i64> {
    match day(text) {
        Some(day) => Some(day),
        None => {
            nanoseconds(text).and_then(|ns| i64::try_from((ns + NS_PER_MS - 1).div_euclid(NS_PER_MS)).ok())
        }
    }
}

/// The first millisecond that is past a day or a time; `None` when the text is neither.
pub fn until(text: &str) -> Option<i64> {
    match day(text) {
        Some(day) => Some(day + MS_PER_DAY),
        None => nanoseconds(text).and_then(|ns| i64::try_from(ns.div_euclid(NS_PER_MS) + 1).ok()),
    }
}

const NS_PER_MS: i128 = 1_000_000;
const MS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

fn day(text: &str) -> Option<i64> {
    let digits = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if text.len() != "2026-01-31".len() || !digits {
        return None;
    }
    let day: jiff::civil::Date = text.parse().ok()?;
    i64::try_from(day.duration_since(jiff::civil::date(1970, 1, 1)).as_millis()).ok()
}

/// RFC 3339: the separator and the offset are there.
fn nanoseconds(text: &str) -> Option<i128> {
    let separated = text.as_bytes().get(10).is_some_and(|byte| matches!(byte, b'T' | b't'));
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"-+:.TtZz".contains(&byte));
    if !separated || !plain || day(&text[..10]).is_none() {
        return None;
    }
    text.parse::<Timestamp>().ok().map(Timestamp::as_nanosecond)
}

#[cfg(test)]
mod tests {
    use super::{from, until};

    #[test]
    fn a_range_takes_in_all_of_its_last_day_or_time() {
        let day = 1_769_817_600_000;
        assert_eq!(from("2026-01-31"), Some(day));
        assert_eq!(until("2026-01-31"), Some(day + 86_400_000));
        assert_eq!(from("2026-01-31T09:00:00Z"), Some(day + 9 * 3_600_000));
        assert_eq!(until("2026-01-31T09:00:00Z"), Some(day + 9 * 3_600_000 + 1));
        assert_eq!(from("2026-01-31T11:00:00.5+02:00"), Some(day + 9 * 3_600_000 + 500));
        assert_eq!(from("2026-01-31T00:00:00.0001Z"), Some(day + 1));
        assert_eq!(until("2026-01-31T00:00:00.0001Z"), Some(day + 1));
    }

    #[test]
    fn what_is_neither_a_day_nor_a_time_is_refused() {
        for bad in [
            "",
            "yesterday",
            "2026",
            "2026-1-31",
            "2026-02-30",
            "31-01-2026",
            "2026-01-31T09:00:00",
            "2026-01-31 09:00:00Z",
            "2026-01-31T25:00:00Z",
            "2026-01-31T09:00:00Z[UTC]",
            "1769817600000",
            "-2026-01-31",
            "2026-01-31Z",
            "2026-01-é",
            "é2026-01-31T09:00:00Z",
            " 2026-01-31",
            "2026-13-01T00:00:00Z",
        ] {
            assert_eq!((from(bad), until(bad)), (None, None), "{bad:?}");
        }
    }

    #[test]
    fn milliseconds_are_always_written() {
        assert_eq!(super::format(1_750_000_000_123), "2025-06-15T15:06:40.123Z");
        assert_eq!(super::format(0), "1970-01-01T00:00:00.000Z");
    }
}
