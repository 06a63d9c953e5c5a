//! What one workspace feels of another: B does its work while A does its worst, next to B alone. Run with
//! `cargo bench -p sidetone-tests --bench neighbours`; `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The release binary runs in its own process, with a fresh data folder for each scenario. A scenario is a file in
//! `neighbours/` and an entry of [`SCENARIOS`].
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "neighbours/hanging_receivers.rs"]
mod hanging_receivers;
#[path = "neighbours/scene.rs"]
mod scene;
#[path = "neighbours/slow_runs.rs"]
mod slow_runs;

use std::process::ExitCode;

use scene::{Felt, Scene};

/// A's worst, and what B measures.
struct Scenario {
    name: &'static str,
    /// Returns once A's load is complete; it lasts longer than B's measurement.
    load: fn(&Scene),
    /// B's delays in milliseconds.
    measure: fn(&Scene) -> Vec<f64>,
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "a run, A runs slow tools", load: slow_runs::load, measure: slow_runs::measure },
    Scenario {
        name: "a delivery, A's receivers hang",
        load: hanging_receivers::load,
        measure: hanging_receivers::measure,
    },
];

/// How much longer B may wait at the 99th percentile than alone: a factor and a margin.
const P99_FACTOR_MAX: f64 = 3.0;
const P99_MARGIN_MS: f64 = 20.0;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    println!(
        "{:<34} {:<12} {:>9} {:>9} {:>9} {:>9}",
        "B waits for", "", "p50 ms", "p99 ms", "worst ms", "peak MB"
    );
    let mut kept = true;
    for scenario in SCENARIOS {
        let scene = Scene::start();
        let alone = Felt::of((scenario.measure)(&scene), &scene);
        (scenario.load)(&scene);
        let beside = Felt::of((scenario.measure)(&scene), &scene);
        alone.print(scenario.name, "alone");
        beside.print("", "beside A");
        let bound_ms = alone.p99_ms * P99_FACTOR_MAX + P99_MARGIN_MS;
        if beside.p99_ms > bound_ms {
            kept = false;
            println!("{:<34} p99 MISSED its bound of {bound_ms:.1} ms", "");
        }
    }
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
