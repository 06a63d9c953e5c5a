//! The system's clock, random bytes and cores.
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sidetone_engine::ports::{BoxFuture, Clock, Random};

/// The processor cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The wall clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// The operating system's random bytes.
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::expect_used, reason = "without randomness no key is safe: stopping is safer")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system provides random bytes");
    }
}
