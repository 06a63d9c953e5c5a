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

#[cfg(test)]
mod tests {
    #[test]
    fn milliseconds_are_always_written() {
        assert_eq!(super::format(1_750_000_000_123), "2025-06-15T15:06:40.123Z");
        assert_eq!(super::format(0), "1970-01-01T00:00:00.000Z");
    }
}
