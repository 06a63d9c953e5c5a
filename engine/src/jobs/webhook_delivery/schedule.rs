//! The retry schedule of deliveries.
use crate::base::limits::{DELIVERY_JITTER_PERCENT_MAX, DELIVERY_RETRY_MS};
use crate::base::time;
use crate::ports::Random;

/// The pause after this many failed attempts, without jitter; `None` after the last attempt. `Retry-After` of the receiver
/// can extend the pause up to the one after the next failure: it can slow deliveries down, but not stop them.
pub fn pause_ms(failures: i64, retry_after_ms: Option<i64>) -> Option<i64> {
    let at = usize::try_from(failures - 1).ok()?;
    let planned = *DELIVERY_RETRY_MS.get(at)?;
    let longest = DELIVERY_RETRY_MS.get(at + 1).copied().unwrap_or(planned).max(planned);
    Some(retry_after_ms.unwrap_or(0).clamp(planned, longest))
}

/// The pause with random jitter added.
pub fn with_jitter(pause_ms: i64, random: &dyn Random) -> i64 {
    let mut bytes = [0; 2];
    random.fill(&mut bytes);
    let share = i64::from(u16::from_le_bytes(bytes));
    pause_ms + pause_ms * DELIVERY_JITTER_PERCENT_MAX * share / (100 * i64::from(u16::MAX))
}

/// A `Retry-After` value, seconds or a date (RFC 9110, 10.2.3), as milliseconds from now.
pub fn retry_after_ms(value: &str, now_ms: i64) -> Option<i64> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u32>() {
        return Some(i64::from(seconds) * 1000);
    }
    Some(time::from_http_date(value)?.saturating_sub(now_ms).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_is_as_documented() {
        let pauses: Vec<_> = (1..=8).map(|failures| pause_ms(failures, None)).collect();
        let seconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map(|seconds| Some(seconds * 1000));
        assert_eq!(pauses[..7], seconds);
        assert_eq!(pauses[7], None);
    }

    #[test]
    fn retry_after_extends_a_pause_up_to_the_next_one() {
        for (failures, asked, pause) in [
            (1, 0, 5_000),
            (1, 60_000, 60_000),
            (1, 86_400_000, 300_000),
            (6, 86_400_000, 36_000_000),
            (7, 86_400_000, 36_000_000),
        ] {
            assert_eq!(pause_ms(failures, Some(asked)), Some(pause), "{failures} {asked}");
        }
        assert_eq!(pause_ms(8, Some(1)), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now_ms = 784_111_777_000; // Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110
        assert_eq!(retry_after_ms("120", now_ms), Some(120_000));
        assert_eq!(retry_after_ms(" 0 ", now_ms), Some(0));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:51:37 GMT", now_ms), Some(120_000));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:00:00 GMT", now_ms), Some(0));
        for nonsense in ["", "-1", "soon", "1.5", "99999999999999999999", "Sun, 99 Nov 1994"] {
            assert_eq!(retry_after_ms(nonsense, now_ms), None, "{nonsense}");
        }
    }

    #[test]
    fn jitter_adds_at_most_a_tenth() {
        struct All(u8);
        impl Random for All {
            fn fill(&self, bytes: &mut [u8]) {
                bytes.fill(self.0);
            }
        }
        assert_eq!(with_jitter(36_000_000, &All(0)), 36_000_000);
        assert_eq!(with_jitter(36_000_000, &All(0xff)), 39_600_000);
    }
}
