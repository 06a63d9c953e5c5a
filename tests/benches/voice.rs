//! Conversations on the telephone with voices of a provider. Run with `cargo bench -p sidetone-tests --bench voice`;
//! `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The release binary runs in its own process. This process plays the carriers, a hundred callers who speak every eight
//! seconds, and a server for transcription, model and voice that answers each request after 100 ms. Our share of a turn is
//! what remains between the transcriber's answer and the first audio on the line.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "support/conversations.rs"]
mod conversations;
#[path = "support/desk.rs"]
mod desk;
#[path = "support/speech_stand_in.rs"]
mod speech_stand_in;

use std::process::ExitCode;
use std::time::Duration;

use desk::quantile_us;

const SHARE_P99_MS: f64 = 20.0;
const GAP_MS: f64 = 60.0;
const INTERRUPTION_P99_MS: f64 = 60.0;
const CPU_S_PER_CALL_MINUTE: f64 = 0.15;
const MEMORY_KB_PER_CALL: u64 = 300;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let measured = conversations::measure();
    println!(
        "{} calls at once, {} turns each, on {} cores",
        conversations::CALLS,
        conversations::TURNS,
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    println!("{:<52} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "most", "bound");
    let mut kept = row("our share of a turn, ms", &measured.shares, |_, p99, _| p99, SHARE_P99_MS);
    kept &= row("gap in the playback of an answer, ms", &measured.gaps, |_, _, most| most, GAP_MS);
    let what = "speech over the assistant to the order to discard, ms";
    kept &= row(what, &measured.interruptions, |_, p99, _| p99, INTERRUPTION_P99_MS);
    let (cpu, memory) = (measured.cpu_s_per_call_minute, measured.memory_kb_per_call);
    println!("CPU of a call-minute {cpu:.3} s, bound {CPU_S_PER_CALL_MINUTE}");
    println!("memory of a call beside its recording {memory} KB, bound {MEMORY_KB_PER_CALL}");
    println!("memory of a call with its recording {} KB", measured.recorded_memory_kb_per_call);
    for error in &measured.errors {
        println!("  {error}");
    }
    kept &= cpu <= CPU_S_PER_CALL_MINUTE && memory <= MEMORY_KB_PER_CALL && measured.errors.is_empty();
    println!("all bounds: {}", if kept { "kept" } else { "MISSED" });
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints a line; whether what counts is within the bound.
fn row(what: &str, times: &[Duration], counts: fn(f64, f64, f64) -> f64, bound_ms: f64) -> bool {
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|share| quantile_us(times, share) / 1e3);
    println!("{what:<52} {p50:>8.1} {p99:>8.1} {most:>8.1} {bound_ms:>8.0}");
    counts(p50, p99, most) <= bound_ms
}
