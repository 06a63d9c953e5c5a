//! The cost of telephone calls. Run with `cargo bench -p sidetone-tests --bench phones`;
//! `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The release binary runs in its own process and has an account with each of the four carriers, whose fakes run in this
//! one. First, incoming calls arrive one after the other: the time of their webhooks over TCP, compared with the time of
//! signature, parsing and answer alone, measured in this process. Then 500 placed calls ring at once, and their carriers
//! report what happens, some of it twice.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "support/announcements.rs"]
mod announcements;
#[path = "support/callbacks.rs"]
mod callbacks;
#[path = "support/desk.rs"]
mod desk;
#[path = "support/ringing.rs"]
mod ringing;

use std::process::ExitCode;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let share = announcements::measure();
    let share_kept = bound(
        &format!("greatest share {:.1}%, bound {:.0}%", share * 100.0, announcements::SHARE_MAX * 100.0),
        share <= announcements::SHARE_MAX,
    );
    let errors = ringing::measure();
    let errors_kept = bound(&format!("{errors} errors, bound 0"), errors == 0);
    match (share_kept && errors_kept) || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn bound(what: &str, kept: bool) -> bool {
    println!("{what}: {}", if kept { "kept" } else { "MISSED" });
    kept
}
