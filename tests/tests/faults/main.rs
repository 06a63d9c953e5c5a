//! Planned faults, on the Sandbox or (`SIDETONE_TEST_HOST=worker`) on workerd with its own D1 and queue: failing storage,
//! lost, repeated and late hints, killed consumers. Nothing acknowledged is lost, and no effect happens twice under two ids.
//! The binary (`SIDETONE_TEST_HOST=native`) does not support fault plans.
//!
//! `SIDETONE_FAULT_SEEDS=17` selects a seed, `SIDETONE_FAULT_SEEDS=0..500` a range.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod homes;
mod shop;

use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::limits::{JOB_LEASE_MS, TOOL_TIMEOUT_MS_DEFAULT};
use sidetone_tests::edge::Edge;
use sidetone_tests::faults::{Endpoint, FaultHarness, FaultPlan, HintFault, Moment};
use sidetone_tests::host::{host, only_on};
use sidetone_tests::process::{Folder, bootstrap_key};

/// Batches of a job runner for a run with two tool calls: claim, two extensions, finish.
const STEPS: usize = 4;
/// How long to wait for the end of a run after its hint.
const RUN_MS: u64 = 60_000;
/// The delay of a slow tool: longer than a run of the cron, and within the tool's deadline.
const SLOW_MS: u64 = 4_000;
const _: () = assert!(SLOW_MS < TOOL_TIMEOUT_MS_DEFAULT.unsigned_abs());
/// After this time, the lease of a run that waits for a tool has expired.
const LEASE_LOST_MS: i64 = JOB_LEASE_MS + TOOL_TIMEOUT_MS_DEFAULT + 1;

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn nothing_acknowledged_is_lost_and_no_effect_is_duplicated() {
    let mut met = 0;
    for seed in seeds() {
        // Printed before a failure.
        println!("SIDETONE_FAULT_SEEDS={seed}");
        let day = shop::day(&harness(), &FaultPlan::from_seed(seed));
        println!("{:?}", day.counts);
        met += day.counts.met;
        for (told, reference) in day.told.iter().zip(without_faults()) {
            assert_eq!(told, reference, "seed {seed}");
        }
    }
    assert!(met > 0, "no fault occurred");
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn a_day_without_faults_has_the_same_result_on_every_host() {
    assert_eq!(shop::day(&harness(), &FaultPlan::default()).told, *without_faults());
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn the_queue_alone_completes_a_run() {
    let harness = harness();
    let run = start(&harness, &simulation(&harness));
    let over = finished_by_queue(&harness, &run);
    assert_eq!(over["status"], "completed", "{over}");
    let counts = harness.counts();
    assert_eq!((counts.hints, counts.deliveries, counts.sweeps), (1, 1, 0));
    shop::each_effect_has_one_id(&harness, &[run]);
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn the_cron_finishes_a_run_whose_hint_was_lost() {
    for fault in [HintFault::Lose, HintFault::Refuse] {
        let harness = harness();
        harness.start_plan(&FaultPlan::hints(&[fault]));
        let run = start(&harness, &simulation(&harness));
        harness.pass(0);
        assert_eq!(read(&harness, &run)["status"], "queued", "the hint was lost");
        let delivered = harness.counts().deliveries;
        harness.sweep();
        assert_eq!(read(&harness, &run)["status"], "completed", "{fault:?}");
        let counts = harness.counts();
        // Further hints are about jobs that other tests have left behind. workerd delivers those of the cron at once.
        assert!(counts.hints >= 1);
        let delivered = if harness.is_edge() { delivered } else { counts.deliveries };
        assert_eq!((delivered, counts.sweeps), (0, 1));
        shop::each_effect_has_one_id(&harness, &[run]);
    }
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn repeated_and_late_hints_change_nothing() {
    for (fault, deliveries) in [(HintFault::Double, 2), (HintFault::Late, 1)] {
        let harness = harness();
        harness.start_plan(&FaultPlan::hints(&[fault]));
        let run = start(&harness, &simulation(&harness));
        if !harness.is_edge() {
            harness.pass(2_000);
        }
        assert_eq!(finished_by_queue(&harness, &run)["status"], "completed");
        harness.wait_until(|counts| counts.deliveries == deliveries);
        harness.pass(0);
        assert_eq!(harness.endpoint.calls().len(), 2, "{fault:?}: each tool call is sent once");
        shop::each_effect_has_one_id(&harness, &[run]);
    }
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn the_run_of_a_consumer_killed_at_any_step_is_completed_by_the_next() {
    let harness = harness();
    let simulation = simulation(&harness);
    let first = start(&harness, &simulation);
    let reference = finished_by_queue(&harness, &first);
    let mut runs = vec![first];
    for step in 1..=STEPS {
        for moment in [Moment::Before, Moment::After] {
            harness.start_plan(&FaultPlan::kill(step, moment));
            let run = start(&harness, &simulation);
            harness.wait_until(|counts| counts.met == 1);
            harness.stop_plan();
            harness.pass(LEASE_LOST_MS);
            harness.sweep();
            let over = read(&harness, &run);
            assert_eq!(over["status"], "completed", "step {step}, {moment:?}: {over}");
            let same = |name: &str| assert_eq!(over[name], reference[name], "step {step}, {moment:?}");
            ["passed", "evaluations", "seed"].into_iter().for_each(same);
            assert_eq!(texts(&over), texts(&reference), "step {step}, {moment:?}");
            runs.push(run);
        }
    }
    shop::each_effect_has_one_id(&harness, &runs);
}

/// Not on the Sandbox, because its queue is part of the test.
#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs workerd's own queue")]
fn the_queue_redelivers_the_hint_of_a_killed_consumer() {
    only_on(&["worker"]);
    let harness = harness();
    harness.start_plan(&FaultPlan::kill(2, Moment::Before));
    let run = start(&harness, &simulation(&harness));
    harness.wait_until(|counts| counts.met == 1);
    harness.pass(LEASE_LOST_MS);
    harness.wait_until(|counts| counts.deliveries == 2);
    assert_eq!(finished_by_queue(&harness, &run)["status"], "completed");
    assert_eq!(harness.counts().sweeps, 0);
    shop::each_effect_has_one_id(&harness, &[run]);
}

/// Not on the Sandbox, because it never waits.
#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs jobs that run side by side in workerd")]
fn a_slow_consumer_that_lost_its_lease_stops() {
    only_on(&["worker"]);
    let harness = harness();
    let simulation = simulation(&harness);
    let mut runs = Vec::new();
    let mut calls = 0;
    // The consumer waits for the first tool call, or for the last one, after which it only has to finish. The call in progress
    // is sent again with its id; calls with a stored result are not.
    for (waits_for, in_all) in [(1, 3), (2, 3)] {
        harness.endpoint.answer_after(SLOW_MS);
        let run = start(&harness, &simulation);
        harness.endpoint.wait_for_calls(calls + waits_for);
        harness.endpoint.answer_after(0);
        // Its lease expires meanwhile, and the cron takes over the run.
        harness.pass(LEASE_LOST_MS);
        harness.sweep();
        let over = read(&harness, &run);
        assert_eq!(over["status"], "completed", "{over}");
        std::thread::sleep(Duration::from_millis(SLOW_MS));
        assert_eq!(read(&harness, &run), over, "the result does not change afterwards");
        assert_eq!(harness.endpoint.calls().len(), calls + in_all, "the slow consumer sent no further calls");
        calls += in_all;
        runs.push(run);
    }
    shop::each_effect_has_one_id(&harness, &runs);
}

/// workerd and its processes are killed while a run waits for a tool, and restarted on
/// the same state.
#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs workerd to kill")]
fn a_run_survives_the_kill_of_workerd() {
    only_on(&["worker"]);
    let state = Folder::new();
    let endpoint = Endpoint::start();
    endpoint.answer_after(2_000);
    let edge = Edge::faulty_on(state.path());
    let harness = FaultHarness::at(edge.clone(), bootstrap_key(0), endpoint.clone());
    let run = start(&harness, &simulation(&harness));
    endpoint.wait_for_calls(1);
    assert_eq!(read(&harness, &run)["status"], "running");
    edge.kill();

    endpoint.answer_after(0);
    let harness = FaultHarness::at(Edge::faulty_on(state.path()), bootstrap_key(0), endpoint);
    assert_eq!(read(&harness, &run)["status"], "running", "the lease is still valid");
    harness.sweep();
    assert_eq!(read(&harness, &run)["status"], "running", "the lease is still valid");
    harness.pass(LEASE_LOST_MS);
    harness.sweep();
    let over = read(&harness, &run);
    assert_eq!(over["status"], "completed", "{over}");
    assert_eq!(harness.endpoint.calls().len(), 3, "the interrupted call was sent again");
    shop::each_effect_has_one_id(&harness, &[run]);
}

/// A queued run of the simulation.
fn start(harness: &FaultHarness, simulation: &str) -> String {
    let path = format!("/simulations/{simulation}/runs");
    let run = harness.call(Method::POST, &path, Some(&json!({"seed": 7})), &[]).created();
    run["id"].as_str().expect("an id").to_owned()
}

/// A simulation that calls a tool twice.
fn simulation(harness: &FaultHarness) -> String {
    let create = |path: &str, body: Value| {
        let made = harness.call(Method::POST, path, Some(&body), &[]).created();
        made["id"].as_str().expect("an id").to_owned()
    };
    let tool = create(
        "/tools",
        json!({"name": "order_status", "url": harness.endpoint.url(),
               "description": "Looks up the status of an order", "parameters": {"type": "object", "properties": {}}}),
    );
    let assistant = create("/assistants", json!({"name": "Desk", "instructions": "Be brief."}));
    let tools = json!({"tool_ids": [tool]});
    harness.call(Method::PUT, &format!("/assistants/{assistant}/tools"), Some(&tools), &[]).ok();
    let persona = create("/simulations/personas", json!({"name": "Ada", "system_prompt": "Be kind."}));
    let instructions =
        "Ask \"What is the status of my order?\" Then ask \"And what is the status of the other order?\"";
    let scenario = create("/simulations/scenarios", json!({"name": "Orders", "instructions": instructions}));
    create("/simulations", json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}))
}

fn read(harness: &FaultHarness, run: &str) -> Value {
    harness.world.get(format!("/simulations/runs/{run}")).ok().json
}

fn finished_by_queue(harness: &FaultHarness, run: &str) -> Value {
    let started = Instant::now();
    loop {
        let read = read(harness, run);
        if read["status"] == "completed" || read["status"] == "error" {
            return read;
        }
        assert!(started.elapsed() < Duration::from_millis(RUN_MS), "the run is not over: {read}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The texts of the transcript.
fn texts(run: &Value) -> Vec<&Value> {
    run["call"]["transcript"].as_array().expect("a transcript").iter().map(|row| &row["text"]).collect()
}

fn harness() -> FaultHarness {
    FaultHarness::on_host(host())
}

/// The result without faults, which is the same on every host.
fn without_faults() -> &'static Vec<String> {
    static TOLD: OnceLock<Vec<String>> = OnceLock::new();
    TOLD.get_or_init(|| shop::day(&FaultHarness::on_host("sandbox"), &FaultPlan::default()).told)
}

fn seeds() -> Range<u64> {
    let number =
        |text: &str| text.parse().expect("SIDETONE_FAULT_SEEDS is a number or a range such as 0..500");
    match std::env::var("SIDETONE_FAULT_SEEDS") {
        Ok(text) => match text.split_once("..") {
            Some((first, end)) => number(first)..number(end),
            None => number(&text)..number(&text) + 1,
        },
        Err(_) if host() == "sandbox" => 0..100,
        Err(_) => 0..4,
    }
}
