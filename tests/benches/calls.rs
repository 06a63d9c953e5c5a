//! The cost of a long call log: every kind of list over a million calls compared with ten thousand calls, searches of
//! other workspaces beside a million calls compared with none, and the rate of writes at either size. Run with `cargo bench -p sidetone-tests --bench calls`. `SIDETONE_BENCH_ENFORCE=1` makes a missed
//! bound an error, `SIDETONE_BENCH_CALLS` sets a size other than a million.
//!
//! Both logs are SQLite files as the binary has them, queried in this process, one request after the other. Requests
//! alternate between the two, and the slowest of the fastest quarter counts, because other load on the machine only makes
//! requests slower.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark"
)]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "support/call_log.rs"]
mod call_log;

use std::process::ExitCode;
use std::time::Instant;

use call_log::{ASSISTANTS, CallLog};

const SMALL_CALLS: usize = 10_000;
const LARGE_CALLS: usize = 1_000_000;
/// Times each request is made on either side.
const TURNS: usize = 25;
/// The allowed ratio for a hundred times the calls.
const RATIO_MAX: f64 = 3.0;
/// The allowed ratio of a search beside the large log, and a margin: finding a word in a larger index takes some tenths of
/// a millisecond, which is most of a search that finds nothing.
const NEIGHBOUR_RATIO_MAX: f64 = 2.0;
const NEIGHBOUR_MARGIN_US: f64 = 500.0;
/// Calls written to measure the write rate.
const INGESTED_CALLS: usize = 10_000;

fn main() -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let calls = std::env::var("SIDETONE_BENCH_CALLS").ok().and_then(|text| text.parse().ok());
    let calls: usize = calls.unwrap_or(LARGE_CALLS);
    let mut small = CallLog::filled(SMALL_CALLS);
    let mut large = CallLog::filled(calls);
    println!("\n{:<64} {SMALL_CALLS:>10} {calls:>10} {:>7}", "", "ratio");
    let mut missed = Vec::new();
    for (title, query) in questions() {
        // The number of the last page depends on the size of the log.
        let of = |log: &CallLog| query.replace("{last}", &(log.calls() / 200).to_string());
        let (of_small, of_large) = (of(&small), of(&large));
        let (mut small_us, mut large_us) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            small_us.push(small.ask_us(&of_small));
            large_us.push(large.ask_us(&of_large));
        }
        let (small_us, large_us) = (quartile(small_us), quartile(large_us));
        let ratio = large_us / small_us;
        let holds = ratio <= RATIO_MAX;
        let verdict = if holds { "holds" } else { "MISSED" };
        println!("{title:<64} {small_us:>10.0} {large_us:>10.0} {ratio:>7.2}  <= {RATIO_MAX} {verdict} (us)");
        if !holds {
            missed.push(title);
        }
    }
    searches(&large, &mut missed);
    for (title, at_once) in [("finished calls, one a batch", false), ("finished calls, 100 a batch", true)] {
        let rate = |log: &mut CallLog| {
            let started = Instant::now();
            log.write(INGESTED_CALLS, if at_once { 100 } else { 1 });
            INGESTED_CALLS as f64 / started.elapsed().as_secs_f64()
        };
        let (small_rate, large_rate) = (rate(&mut small), rate(&mut large));
        let ratio = small_rate / large_rate;
        println!("{title:<64} {small_rate:>10.0} {large_rate:>10.0} {ratio:>7.2}  (calls/s written)");
    }
    let (small_rate, large_rate) = (lives(&mut small), lives(&mut large));
    println!(
        "{:<64} {small_rate:>10.0} {large_rate:>10.0} {:>7.2}  (calls/s written)",
        "calls begun, ended and analysed, a batch each",
        small_rate / large_rate
    );
    if missed.is_empty() {
        println!("all bounds hold");
        return ExitCode::SUCCESS;
    }
    println!("missed: {}", missed.join("; "));
    match std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() {
        Ok("1") => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Searches of workspaces that have few calls, in a database of their own and in that of the large log.
fn searches(large: &CallLog, missed: &mut Vec<String>) {
    println!("\n{:<64} {:>10} {:>10} {:>7}", "", "alone", "beside", "ratio");
    let alone = CallLog::filled(0);
    for calls in [0, 1_000] {
        let (alone, beside) = (alone.neighbour(calls), large.neighbour(calls));
        for search in ["b", "ba", "call", "zanzibar", "b c"] {
            let query = format!("limit=20&search={}", search.replace(' ', "%20"));
            let (mut alone_us, mut beside_us) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                alone_us.push(alone.ask_us(&query));
                beside_us.push(beside.ask_us(&query));
            }
            let (alone_us, beside_us) = (quartile(alone_us), quartile(beside_us));
            let title = format!("search for `{search}` among {calls} calls");
            let ratio = beside_us / alone_us;
            let holds = beside_us <= alone_us * NEIGHBOUR_RATIO_MAX + NEIGHBOUR_MARGIN_US;
            let verdict = if holds { "holds" } else { "MISSED" };
            println!(
                "{title:<64} {alone_us:>10.0} {beside_us:>10.0} {ratio:>7.2}  <= {NEIGHBOUR_RATIO_MAX} {verdict} (us)"
            );
            if !holds {
                missed.push(title);
            }
        }
    }
}

fn lives(log: &mut CallLog) -> f64 {
    const LIVES: usize = 2_000;
    let started = Instant::now();
    log.live(LIVES);
    LIVES as f64 / started.elapsed().as_secs_f64()
}

/// Titles and queries. A limit of 1 measures the statistics.
fn questions() -> Vec<(String, String)> {
    let filters = [
        ("assistant", format!("assistant_id=asst_{}", ASSISTANTS / 2)),
        ("source", "source=inbound".to_owned()),
        ("rare source", "source=browser".to_owned()),
        ("model", "model=example/1".to_owned()),
        ("voice", "voice=example/2".to_owned()),
        ("outcome", "outcome=completed".to_owned()),
        ("rare outcome", "outcome=canceled".to_owned()),
        ("sentiment", "sentiment=negative".to_owned()),
        ("unknown assistant", "assistant_id=asst_none".to_owned()),
        ("ten months", "date_from=2025-02-10&date_to=2025-12-10".to_owned()),
        ("ten months, cut days", "date_from=2025-02-10T10:00:00Z&date_to=2025-12-10T11:00:00Z".to_owned()),
        ("30 days, assistant", "date_from=2025-06-01&date_to=2025-06-30&assistant_id=asst_3".to_owned()),
        ("assistant, source, sentiment", "assistant_id=asst_3&source=outbound&sentiment=positive".to_owned()),
    ];
    let mut all = vec![
        ("list".to_owned(), String::new()),
        ("list, ascending".to_owned(), "order=asc".to_owned()),
        ("list, last page".to_owned(), "page={last}".to_owned()),
        ("list, last page of ten a row".to_owned(), "page={last}0&limit=20".to_owned()),
        ("list, source, far page".to_owned(), "source=inbound&page=25".to_owned()),
        ("list, selective word".to_owned(), "search=zanzibar".to_owned()),
        ("list, id".to_owned(), "search=call_00000000000000000000004242".to_owned()),
        ("list by duration".to_owned(), "sort=duration_ms".to_owned()),
        ("list by end".to_owned(), "sort=ended_at&order=asc".to_owned()),
        ("list by cost".to_owned(), "sort=cost".to_owned()),
        ("list by cost, assistant".to_owned(), "sort=cost&assistant_id=asst_3&limit=20".to_owned()),
    ];
    for (title, query) in &filters {
        // Twenty rows, because the small log has that many for every filter. Otherwise the responses would differ in size.
        all.push((format!("list, {title}"), format!("{query}&limit=20")));
    }
    all.push(("statistics".to_owned(), "limit=1".to_owned()));
    for (title, query) in &filters {
        all.push((format!("statistics, {title}"), format!("{query}&limit=1")));
    }
    all
}

fn quartile(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 4]
}
