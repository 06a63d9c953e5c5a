//! The platform's clock and randomness.
use std::time::Duration;

use sidetone_engine::ports::{BoxFuture, Clock, Random};
use worker::Delay;

/// The wall clock. It stands still between two calls of the platform, by the platform's decision.
pub struct PlatformClock;

impl Clock for PlatformClock {
    fn now_ms(&self) -> i64 {
        worker::js_sys::Date::now() as i64
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        Box::pin(Delay::from(Duration::from_millis(ms)))
    }
}

/// `crypto.getRandomValues`.
pub struct PlatformRandom;

impl Random for PlatformRandom {
    #[expect(clippy::expect_used, reason = "without randomness no key is safe: better to stop")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the platform gives random bytes");
    }
}
