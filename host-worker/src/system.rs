//! The platform's clock and random bytes.
use std::cell::RefCell;
use std::time::Duration;

use sidetone_engine::ports::{BoxFuture, Clock, Random};
use worker::Delay;

/// The wall clock. The platform advances it only during I/O.
pub struct PlatformClock;

impl Clock for PlatformClock {
    fn now_ms(&self) -> i64 {
        worker::js_sys::Date::now() as i64
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        Box::pin(Delay::from(Duration::from_millis(ms)))
    }
}

/// `crypto.getRandomValues`, buffered: every request requires random bytes for its id, and a call costs more than the
/// bytes. Each byte is used once.
pub struct PlatformRandom;

const POOL_BYTES: usize = 512;

thread_local! {
    static POOL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Random for PlatformRandom {
    fn fill(&self, bytes: &mut [u8]) {
        if bytes.len() > POOL_BYTES {
            return fill_from_platform(bytes);
        }
        POOL.with_borrow_mut(|pool| {
            if pool.len() < bytes.len() {
                pool.resize(POOL_BYTES, 0);
                fill_from_platform(pool);
            }
            bytes.copy_from_slice(&pool.split_off(pool.len() - bytes.len()));
        });
    }
}

#[expect(clippy::expect_used, reason = "without randomness no key is safe: stopping is safer")]
fn fill_from_platform(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the platform provides random bytes");
}
