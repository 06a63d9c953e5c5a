//! The binary is killed (SIGKILL) while calls are placed, come in, are talked over and told of by four carriers, and
//! started again: between the intent on disk and the carrier's answer, between a callback and its commit, and whenever
//! else. Clients try again under their Idempotency-Key, carriers send again what was not taken. No call is placed twice,
//! none is missing in the log, each ends once and is told of once.
//!
//! `SIDETONE_CRASH_ROUNDS` says how many seeds (3), `SIDETONE_CRASH_SEED` which is the first.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
mod clients;
mod log;
mod phones;
mod round;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[test]
fn no_call_is_placed_twice_or_lost_whenever_the_process_is_killed() {
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
