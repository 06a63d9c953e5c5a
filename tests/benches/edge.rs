//! The cost of the Worker in workerd, compared with a minimal Worker. Build it with
//! `.ci/worker`, run this with `cargo bench -p sidetone-tests --bench edge`;
//! `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! Ours is the deployed Worker. The bare Worker (`tests/worker/bare`) is plain JavaScript: one
//! SELECT by primary key, its row as JSON. Both run in one workerd on the same D1 database, each
//! on its own socket (`tests/worker/bench/serve.mjs`), and get the same load in short turns.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "support/workerd.rs"]
mod workerd;

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use sidetone_tests::compare::compare;
use sidetone_tests::load::{Load, requests};
use sidetone_tests::process::{Client, bootstrap_key};
use workerd::Workerd;

const ASSISTANTS: usize = 50;
const CONNECTIONS: usize = 16;
const TURN_MS: u64 = 700;
/// The minimum of our rate divided by the bare Worker's.
const RATIO_MIN: f64 = 0.7;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests --bench edge`");
        return ExitCode::SUCCESS;
    }
    let key = bootstrap_key(1);
    let workerd = Workerd::start(&[("SIDETONE_BOOTSTRAP_KEYS", &key)]);
    let paths = fill(&mut Client::new(workerd.ours, &key));
    check_same(&workerd, &key, &paths);

    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let load = |address| Load {
        address,
        connections: CONNECTIONS,
        time: Duration::from_millis(TURN_MS),
        requests: requests("GET", &paths, &key, &[]),
        status: 200,
    };
    let result = compare(&load(workerd.ours), workerd.pid, &load(workerd.bare), workerd.pid);
    let holds = result.ratio >= RATIO_MIN;
    println!("{:<44} {:>10} {:>10} {:>7}  bound", "", "ours", "bare", "ratio");
    println!(
        "{:<44} {:>10.0} {:>10.0} {:>7.2}  >= {RATIO_MIN} {} (req/s)",
        format!("GET /assistants/{{id}}, {CONNECTIONS} connections"),
        result.ours.rate,
        result.other.rate,
        result.ratio,
        if holds { "holds" } else { "MISSED" }
    );
    result.print();
    match std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() {
        Ok("1") if !holds => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Creates realistic assistants with a page of instructions each; returns their paths.
fn fill(client: &mut Client) -> Vec<String> {
    let instructions = "You answer the telephone of a bicycle shop. Be brief and kind. ".repeat(16);
    let create = |number| {
        let body = json!({"name": format!("Front desk {number}"), "instructions": instructions,
            "first_message": "Good morning, what can I do for you?"});
        let made = client.expect(201, "POST", "/assistants", Some(&body));
        format!("/assistants/{}", made["id"].as_str().expect("an id"))
    };
    (0..ASSISTANTS).map(create).collect()
}

/// Checks that our response contains the bare Worker's fields.
fn check_same(workerd: &Workerd, key: &str, paths: &[String]) {
    let (mut ours, mut bare) = (Client::new(workerd.ours, key), Client::new(workerd.bare, key));
    for path in paths {
        let (ours, bare) = (ours.expect(200, "GET", path, None), bare.expect(200, "GET", path, None));
        for field in ["id", "name", "instructions", "first_message", "model", "voice", "revision"] {
            assert_eq!(ours[field], bare[field], "{path}: {field}");
        }
    }
}
