//! Parses the full-date and date-time of RFC 3339.

use crate::base::time::calendar::{day_number, is_date};
use crate::base::time::digits;

pub(super) struct Time {
    /// Whole milliseconds since 1970, rounded down.
    pub ms: i64,
    /// Whether a fraction of a millisecond was dropped.
    pub and_more: bool,
}

/// `2026-01-31` as days since 1970.
pub(super) fn day(text: &str) -> Option<i64> {
    if text.len() != "2026-01-31".len() {
        return None;
    }
    let mut parts = text.splitn(3, '-');
    let [year, month, day] = [4, 2, 2].map(|length| field(parts.next(), length));
    let (year, month, day) = (year?, month?, day?);
    is_date(year, month, day).then(|| day_number(year, month, day))
}

/// `2026-01-31T09:00:00.5+02:00`. The offset is required; the seconds, the offset's minutes and its colon are optional.
pub(super) fn time(text: &str) -> Option<Time> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, offset) = rest.split_at(at);
    let (clock, fraction) = clock.split_once('.').map_or((clock, "0"), |(clock, fraction)| (clock, fraction));
    if !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let nanoseconds = digits(fraction)? * 10_i64.pow(9 - fraction.len() as u32);
    let minutes = day(date)? * 24 * 60 - minutes_east(offset)?;
    Some(Time {
        ms: minutes * 60_000 + seconds(clock)? * 1000 + nanoseconds / 1_000_000,
        and_more: nanoseconds % 1_000_000 > 0,
    })
}

/// `09:00:00` or `09:00` as seconds since midnight. A leap second becomes the second before it.
pub(super) fn seconds(clock: &str) -> Option<i64> {
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (field(parts.next(), 2)?, field(parts.next(), 2)?);
    let second = parts.next().map_or(Some(0), |second| field(Some(second), 2))?;
    let is_time = hour < 24 && minute < 60 && second <= 60;
    is_time.then_some((hour * 60 + minute) * 60 + second.min(59))
}

/// `Z`, `+02:00`, `+0200` or `+02`.
pub(super) fn minutes_east(offset: &str) -> Option<i64> {
    let sign = match offset.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return matches!(offset, "Z" | "z").then_some(0),
    };
    let (hour, minute) = offset[1..].split_at_checked(2)?;
    let minute = if minute.is_empty() { "00" } else { minute.strip_prefix(':').unwrap_or(minute) };
    let (hour, minute) = (field(Some(hour), 2)?, field(Some(minute), 2)?);
    (hour < 24 && minute < 60).then_some(sign * (hour * 60 + minute))
}

fn field(part: Option<&str>, length: usize) -> Option<i64> {
    part.filter(|part| part.len() == length).and_then(digits)
}
