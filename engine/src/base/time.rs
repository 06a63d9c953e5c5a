//! RFC 3339 UTC times with milliseconds. Written by hand: a date library adds 40 KB to the Worker, and little of it would
//! be used.

mod calendar;
mod http_date;
mod months;
mod rfc3339;
mod timestamp;

pub use calendar::is_date;
pub use http_date::from_http_date;
pub use months::{MONTHS_SHORT, month_name, month_number};
pub use timestamp::Timestamp;

use calendar::{FIRST_DAY, LAST_DAY};

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// `1750000000123` → `2025-06-15T15:06:40.123Z`. A time before the year 0 or after 9999 becomes the nearest one in that
/// range.
pub fn format(ms: i64) -> String {
    let ms = ms.clamp(FIRST_DAY * MS_PER_DAY, (LAST_DAY + 1) * MS_PER_DAY - 1);
    let (year, month, day) = calendar::date(ms.div_euclid(MS_PER_DAY));
    let ms = ms.rem_euclid(MS_PER_DAY);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// [`format()`] for an optional time.
pub fn format_optional(ms: Option<i64>) -> Option<String> {
    ms.map(format)
}

/// The start of a range: the first millisecond of a day (`2026-01-31`, UTC), or the time itself; `None` when the text is neither.
pub fn from(text: &str) -> Option<i64> {
    match rfc3339::day(text) {
        Some(day) => Some(day * MS_PER_DAY),
        None => rfc3339::time(text).map(|time| time.ms + i64::from(time.and_more)),
    }
}

/// The exclusive end of a range: the first millisecond after a day or a time; `None` when the text is neither.
pub fn until(text: &str) -> Option<i64> {
    match rfc3339::day(text) {
        Some(day) => Some((day + 1) * MS_PER_DAY),
        None => rfc3339::time(text).map(|time| time.ms + 1),
    }
}

/// Parses ASCII digits only: no sign, no space.
fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_includes_all_of_its_last_day_or_time() {
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
    fn other_texts_are_rejected() {
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
            "2026-01-31T",
            "2026-01-31TZ",
            "2026-01-31T24:00:00Z",
            "2026-01-31T09:60:00Z",
            "2026-01-31T09:00:61Z",
            "2026-01-31T09:00:00.Z",
            "2026-01-31T09:00:00.0123456789Z",
            "2026-01-31T9:00:00Z",
            "2026-01-31T09:00:00+24:00",
            "2026-01-31T09:00:00+02:60",
            "2026-01-31T09:00:00+02:",
            "2026-01-31T09:00:00+02:0",
            "2026-01-31T09:00:00+é:00",
            "2026-01-31T09:00:00ZZ",
            "2026-01-31T09:00:00+02:00Z",
            "2026-01-31T+9:00:00Z",
        ] {
            assert_eq!((from(bad), until(bad)), (None, None), "{bad:?}");
        }
    }

    #[test]
    fn milliseconds_are_always_written() {
        assert_eq!(format(1_750_000_000_123), "2025-06-15T15:06:40.123Z");
        assert_eq!(format(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(format(951_782_400_000), "2000-02-29T00:00:00.000Z");
    }

    #[test]
    fn years_beyond_four_digits_are_clamped() {
        assert_eq!(format(i64::MIN), "0000-01-01T00:00:00.000Z");
        assert_eq!(format(i64::MAX), "9999-12-31T23:59:59.999Z");
    }

    proptest! {
        #[test]
        fn formatted_times_parse_to_the_same_time(ms in FIRST_DAY * MS_PER_DAY..(LAST_DAY + 1) * MS_PER_DAY) {
            let text = format(ms);
            prop_assert_eq!((from(&text), until(&text)), (Some(ms), Some(ms + 1)));
            prop_assert_eq!(from(&text[..10]), Some(ms.div_euclid(MS_PER_DAY) * MS_PER_DAY));
        }

        #[test]
        fn offsets_are_converted_to_utc(
            ms in -62_000_000_000_000i64..253_000_000_000_000,
            offset in -1439i64..1440,
        ) {
            let sign = if offset < 0 { '-' } else { '+' };
            let (hour, minute) = (offset.abs() / 60, offset.abs() % 60);
            let local = format(ms + offset * 60_000);
            for colon in ["", ":"] {
                let text = local.replace('Z', &format!("{sign}{hour:02}{colon}{minute:02}"));
                prop_assert_eq!(from(&text), Some(ms), "{}", text);
            }
        }

        #[test]
        fn no_text_panics(
            text in "[-0-9T:.Z+é ]{0,30}|[0-9]{4}-[01][0-9]-[0-3][0-9]T.{0,20}",
            any in any::<String>(),
        ) {
            for text in [text, any] {
                let (from, until, _) = (from(&text), until(&text), from_http_date(&text));
                prop_assert_eq!(from.is_some(), until.is_some());
                prop_assert!(from <= until);
            }
        }
    }
}
