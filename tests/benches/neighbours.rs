//! What one workspace feels of another: B does its work while A does its worst, next to B alone. Run with
//! `cargo bench -p sidetone-tests --bench neighbours`; `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The release binary runs in its own process, with a fresh data folder for each scenario. A scenario is a file in
//! `neighbours/` and an entry of [`SCENARIOS`]; `-- searches` plays those whose file's name begins so.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "neighbours/hanging_receivers.rs"]
mod hanging_receivers;
#[path = "neighbours/live_places.rs"]
mod live_places;
#[path = "neighbours/mixture.rs"]
mod mixture;
#[path = "neighbours/scene.rs"]
mod scene;
#[path = "neighbours/searches.rs"]
mod searches;
#[path = "neighbours/slow_runs.rs"]
mod slow_runs;
#[path = "neighbours/stalled_bodies.rs"]
mod stalled_bodies;
#[path = "neighbours/unfinished_heads.rs"]
mod unfinished_heads;
#[path = "neighbours/unread_lists.rs"]
mod unread_lists;

use std::process::ExitCode;

use scene::{BASE_MB, Felt, PEAK_MB_MAX, Scene};

/// A's worst, and what B measures.
struct Scenario {
    name: &'static str,
    /// Returns once A's load is complete; it lasts longer than B's measurement.
    load: fn(&Scene),
    /// B's delays in milliseconds.
    measure: fn(&Scene) -> Vec<f64>,
}

/// All scenes, by the beginning of their files' names, which an argument selects.
macro_rules! scenarios {
    ($($file:ident: $name:literal),+ $(,)?) => {
        &[$((stringify!($file), Scenario { name: $name, load: $file::load, measure: $file::measure })),+]
    };
}

const SCENARIOS: &[(&str, Scenario)] = scenarios! {
    slow_runs: "a run, A runs slow tools",
    hanging_receivers: "a delivery, A's receivers hang",
    live_places: "a browser test, A has all it gets",
    stalled_bodies: "a POST, 64 bodies stall",
    unfinished_heads: "a GET, 150 heads and 236 silences",
    searches: "a GET and a search, A searches",
    unread_lists: "a GET, A does not read its lists",
    mixture: "everything, A does all of this",
};

/// How much longer B may wait at the 99th percentile than alone: a factor and a margin. The margin is for what B alone
/// never meets on a machine with two cores, where A's clients and the service share them with B: a turn of the scheduler
/// behind two busy threads, and a commit (an fsync) that is under way.
const P99_FACTOR_MAX: f64 = 3.0;
const P99_MARGIN_MS: f64 = 20.0;
/// Refusals that are printed.
const SHOWN: usize = 3;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!(
        "{:<38} {:<9} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "B waits for", "", "p50 ms", "p99 ms", "worst ms", "refused", "peak MB"
    );
    let mut kept = true;
    for (file, scenario) in SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|wanted| file.starts_with(wanted.as_str())) {
            kept &= play(scenario);
        }
    }
    println!("memory: at most {PEAK_MB_MAX} MB, {BASE_MB} of it for other things than conversations");
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints what B feels; false when a bound is missed.
fn play(scenario: &Scenario) -> bool {
    let scene = Scene::start();
    let alone = Felt::of((scenario.measure)(&scene), &scene);
    (scenario.load)(&scene);
    let beside = Felt::of((scenario.measure)(&scene), &scene);
    alone.print(scenario.name, "alone");
    beside.print("", "beside A");
    let mut missed = Vec::new();
    let bound_ms = alone.p99_ms * P99_FACTOR_MAX + P99_MARGIN_MS;
    if beside.p99_ms > bound_ms {
        missed.push(format!("p99 MISSED its bound of {bound_ms:.1} ms"));
    }
    if beside.peak_mb > PEAK_MB_MAX as f64 {
        missed.push(format!("memory MISSED its bound of {PEAK_MB_MAX} MB"));
    }
    if !beside.refused.is_empty() {
        missed.push(format!("REFUSED {} times", beside.refused.len()));
        missed.extend(beside.refused.iter().take(SHOWN).cloned());
    }
    missed.iter().for_each(|what| println!("    {what}"));
    missed.is_empty()
}
