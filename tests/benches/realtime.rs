//! What a service adds to a model that hears and speaks, on the telephone. Run with
//! `cargo bench -p sidetone-tests --bench realtime`; `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The release binary runs in its own process. This process plays the carriers, a hundred callers who speak every eight
//! seconds, and a server of the Realtime protocol. Our share of the way in is the time from a frame of the caller on the line to
//! its audio at the model; that of the way out is the time from the first audio of an answer to the line.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "support/desk.rs"]
mod desk;
#[path = "support/realtime_calls.rs"]
mod realtime_calls;
#[path = "support/realtime_stand_in.rs"]
mod realtime_stand_in;

use std::process::ExitCode;
use std::time::Duration;

use desk::quantile_us;

const SHARE_P99_MS: f64 = 5.0;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let measured = realtime_calls::measure();
    println!(
        "{} calls at once, {} turns each, on {} cores",
        realtime_calls::CALLS,
        realtime_calls::TURNS,
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    println!("{:<52} {:>8} {:>8} {:>8} {:>8} {:>8}", "our share, ms", "times", "p50", "p99", "most", "bound");
    let mut kept = row("in: a frame on the line to the model", &measured.ways_in);
    kept &= row("out: audio of the model to the line", &measured.ways_out);
    println!("CPU of a call-minute {:.3} s", measured.cpu_s_per_call_minute);
    for error in &measured.errors {
        println!("  {error}");
    }
    kept &= measured.errors.is_empty();
    println!("all bounds: {}", if kept { "kept" } else { "MISSED" });
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints a line; whether what counts is within the bound.
fn row(what: &str, times: &[Duration]) -> bool {
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|share| quantile_us(times, share) / 1e3);
    println!("{what:<52} {:>8} {p50:>8.2} {p99:>8.2} {most:>8.2} {SHARE_P99_MS:>8.0}", times.len());
    p99 <= SHARE_P99_MS
}
