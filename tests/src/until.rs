//! Waiting for what happens elsewhere.
use std::time::{Duration, Instant};

/// Asks every 50 ms until there is something, which has to be within `timeout`.
#[track_caller]
pub fn until<T>(what: &str, timeout: Duration, mut there: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
