//! How late this process is with the audio of the conversations that it has. Whoever would begin another asks first: a process
//! that is late would hurt those that are under way.
use std::sync::{Mutex, PoisonError};

use crate::base::limits::{AUDIO_LATE_MS, LATE_AUDIO_MIN, LATENESS_WINDOW_MS};

/// Counts what was due for the audio of all conversations: in the current window, and in the one before it.
#[derive(Debug, Default)]
pub(crate) struct Lateness(Mutex<Windows>);

#[derive(Debug, Default)]
struct Windows {
    /// Which window `current` is, from the epoch.
    number: i64,
    current: Count,
    before: Count,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    due: u64,
    late: u64,
}

impl Lateness {
    /// At `now_ms`, a conversation gets to what was due for its audio `late_ms` ago.
    pub fn note(&self, now_ms: i64, late_ms: i64) {
        self.at(now_ms, |windows| {
            windows.current.due += 1;
            windows.current.late += u64::from(late_ms > AUDIO_LATE_MS);
        });
    }

    /// Whether more than this share of what was due lately was late. A few are chance, whatever their share.
    pub fn exceeds(&self, percent: u64, now_ms: i64) -> bool {
        self.at(now_ms, |windows| {
            let due = windows.before.due + windows.current.due;
            let late = windows.before.late + windows.current.late;
            late >= LATE_AUDIO_MIN && late * 100 > due * percent
        })
    }

    fn at<T>(&self, now_ms: i64, look: impl FnOnce(&mut Windows) -> T) -> T {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now_ms.div_euclid(LATENESS_WINDOW_MS);
        // A clock that was set back begins a new window, too.
        if number != windows.number {
            let is_next = number == windows.number + 1;
            windows.before = if is_next { windows.current } else { Count::default() };
            windows.current = Count::default();
            windows.number = number;
        }
        look(&mut windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes so much in each second, of which so many are late.
    fn run(lateness: &Lateness, seconds: std::ops::Range<i64>, due: u64, late: u64) {
        for second in seconds {
            for nth in 0..due {
                lateness.note(second * 1_000, if nth < late { AUDIO_LATE_MS + 1 } else { AUDIO_LATE_MS });
            }
        }
    }

    #[test]
    fn a_process_is_late_while_a_share_of_its_audio_is() {
        let lateness = Lateness::default();
        assert!(!lateness.exceeds(1, 0), "nothing was due");
        run(&lateness, 0..5, 1_000, 10);
        assert!(!lateness.exceeds(1, 5_000), "1 percent");
        run(&lateness, 5..6, 1_000, 21);
        assert!(lateness.exceeds(1, 6_000), "more, with the window before");
        assert!(!lateness.exceeds(2, 6_000));
        run(&lateness, 6..15, 1_000, 0);
        assert!(!lateness.exceeds(1, 15_000), "two windows later");
    }

    #[test]
    fn a_few_late_ones_are_chance() {
        let lateness = Lateness::default();
        run(&lateness, 0..1, LATE_AUDIO_MIN - 1, LATE_AUDIO_MIN - 1);
        assert!(!lateness.exceeds(1, 500));
        run(&lateness, 0..1, 1, 1);
        assert!(lateness.exceeds(1, 500));
        assert!(!lateness.exceeds(100, 500), "all of it may be late");
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        for gap in [2, 1_000, -1] {
            let lateness = Lateness::default();
            run(&lateness, 10..11, 100, 100);
            assert!(!lateness.exceeds(1, 10_000 + gap * LATENESS_WINDOW_MS), "{gap}");
        }
    }
}
