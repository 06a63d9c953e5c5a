//! The clock, compared with those of servers that have answered. Carriers and providers refuse what is signed at another
//! time than theirs.
use std::sync::{Mutex, PoisonError};

use sidetone_engine::ports::Clock as _;

use super::Finding;
use crate::system::SystemClock;
use crate::text::counted;

/// Signatures are refused beyond it.
const APART_SECONDS_MAX: i64 = 60;
/// A header has whole seconds, and takes some time to arrive.
const APART_SECONDS_FEW: i64 = 5;

/// How far other clocks are ahead of ours, in seconds.
#[derive(Default)]
pub struct Dates(Mutex<Vec<i64>>);

impl Dates {
    /// Notes the `Date` of an answer that has just arrived.
    pub fn note(&self, date: &str) {
        let Ok(theirs) = httpdate::parse_http_date(date) else { return };
        let Ok(theirs) = theirs.duration_since(std::time::UNIX_EPOCH) else { return };
        let apart = i64::try_from(theirs.as_secs()).unwrap_or(0) - SystemClock.now_ms().div_euclid(1_000);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(apart);
    }

    /// What the middle one of them says: one server may be wrong.
    pub fn finding(&self) -> Finding {
        const CHECK: &str = "clock";
        let mut apart = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        apart.sort_unstable();
        let Some(middle) = apart.get(apart.len() / 2).copied() else {
            return Finding::good(CHECK, "not compared: nobody else's clock could be asked");
        };
        let how = if middle > 0 { "behind" } else { "ahead of" };
        let servers = counted(apart.len() as u64, "server");
        let told = format!("{} s {how} those of {servers}", middle.abs());
        match middle.abs() {
            0..=APART_SECONDS_FEW => Finding::good(CHECK, format!("as those of {servers}")),
            seconds if seconds <= APART_SECONDS_MAX => {
                Finding::warning(CHECK, format!("{told}; synchronize it (timedatectl set-ntp true)"))
            }
            _ => Finding::problem(
                CHECK,
                format!("{told}: signatures are refused; synchronize it (timedatectl set-ntp true)"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    fn dates(apart: &[i64]) -> State {
        let dates = Dates::default();
        for seconds in apart {
            let now = std::time::SystemTime::now();
            let other = match u64::try_from(*seconds) {
                Ok(ahead) => now + std::time::Duration::from_secs(ahead),
                Err(_) => now - std::time::Duration::from_secs(seconds.unsigned_abs()),
            };
            dates.note(&httpdate::fmt_http_date(other));
        }
        dates.finding().state
    }

    #[test]
    fn the_middle_clock_decides_and_none_is_no_problem() {
        assert_eq!(dates(&[]), State::Good);
        assert_eq!(dates(&[0, 1, 86_400]), State::Good, "one is wrong");
        assert_eq!((dates(&[30]), dates(&[-30])), (State::Warning, State::Warning));
        assert_eq!((dates(&[3_600, 3_601]), dates(&[-3_600])), (State::Problem, State::Problem));
    }
}
