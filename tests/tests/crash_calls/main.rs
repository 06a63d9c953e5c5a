//! The binary is killed (SIGKILL) and restarted while four carriers place, announce, connect and report calls: between the
//! stored intent and the carrier's response, between a callback and its commit, and at random moments. Clients retry with
//! their Idempotency-Key, and carriers repeat callbacks that were not accepted. No call is placed twice, none is missing in
//! the log, and each ends once with one set of events.
//!
//! `SIDETONE_CRASH_ROUNDS` sets the number of seeds (3), `SIDETONE_CRASH_SEED` the first one.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
mod clients;
mod log;
mod phones;
mod round;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[test]
fn kills_never_duplicate_or_lose_a_call() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("SIDETONE_CRASH_ROUNDS").unwrap_or(3);
    let first = number("SIDETONE_CRASH_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()))
    });
    sidetone_tests::process::binary();
    for seed in first..first + rounds {
        println!("SIDETONE_CRASH_SEED={seed} SIDETONE_CRASH_ROUNDS=1");
        let started = Instant::now();
        let told = round::run(seed);
        println!("  {told}; {:.1} s", started.elapsed().as_secs_f64());
    }
}
