//! Faults by plan, on the Sandbox or (`SIDETONE_TEST_HOST=worker`) on workerd with its own D1 and queue:
//! storage that fails before, half-way and after, hints lost, doubled and late, consumers killed. Nothing
//! that was acknowledged is lost, and no effect happens twice under two ids. Nothing can be made to fail by plan in the
//! binary (`SIDETONE_TEST_HOST=native`).
//!
//! `SIDETONE_FAULT_SEEDS=17` repeats a seed, `SIDETONE_FAULT_SEEDS=0..500` tries many.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod shop;

use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::limits::{JOB_LEASE_MS, TOOL_TIMEOUT_MS_DEFAULT};
use sidetone_tests::edge::Edge;
use sidetone_tests::faults::{Endpoint, FaultPlan, HintFault, Moment, Rig};
use sidetone_tests::host::{host, only_on};
use sidetone_tests::process::{Folder, bootstrap_key};

/// Batches that a job runner makes for a run with two tool calls: claim, two extensions, finish.
const STEPS: usize = 4;
/// A run whose hint arrived is over by then.
const RUN_MS: u64 = 10_000;
/// A slow tool's answer; the cron is through before it.
const SLOW_MS: u64 = 2_000;
/// By then whoever held the lease of a run that waits for a tool has lost it.
const LEASE_LOST_MS: i64 = JOB_LEASE_MS + TOOL_TIMEOUT_MS_DEFAULT + 1;

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn nothing_acknowledged_is_lost_and_nothing_is_done_twice() {
    let mut met = 0;
    for seed in seeds() {
        // The last line before a failure.
        println!("SIDETONE_FAULT_SEEDS={seed}");
        let day = shop::day(&rig(), &FaultPlan::from_seed(seed));
        println!("{:?}", day.counts);
        met += day.counts.met;
        for (told, reference) in day.told.iter().zip(without_faults()) {
            assert_eq!(told, reference, "seed {seed}");
        }
    }
    assert!(met > 0, "no fault was met");
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn a_day_without_faults_is_the_same_on_every_host() {
    assert_eq!(shop::day(&rig(), &FaultPlan::default()).told, *without_faults());
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn the_queue_alone_brings_a_run_to_its_end() {
    let rig = rig();
    let run = start(&rig, &simulation(&rig));
    let over = finished_by_queue(&rig, &run);
    assert_eq!(over["status"], "completed", "{over}");
    let counts = rig.counts();
    assert_eq!((counts.hints, counts.deliveries, counts.sweeps), (1, 1, 0));
    shop::each_effect_has_one_id(&rig, &[run]);
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn the_cron_finishes_a_run_whose_hint_was_lost() {
    for fault in [HintFault::Lose, HintFault::Refuse] {
        let rig = rig();
        rig.rage(&FaultPlan::hints(&[fault]));
        let run = start(&rig, &simulation(&rig));
        rig.pass(0);
        assert_eq!(read(&rig, &run)["status"], "queued", "nobody knows of it");
        rig.sweep();
        assert_eq!(read(&rig, &run)["status"], "completed", "{fault:?}");
        let counts = rig.counts();
        assert_eq!((counts.hints, counts.deliveries, counts.sweeps), (1, 0, 1));
        shop::each_effect_has_one_id(&rig, &[run]);
    }
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn a_hint_that_comes_twice_or_late_changes_nothing() {
    for (fault, deliveries) in [(HintFault::Double, 2), (HintFault::Late, 1)] {
        let rig = rig();
        rig.rage(&FaultPlan::hints(&[fault]));
        let run = start(&rig, &simulation(&rig));
        if !rig.is_edge() {
            rig.pass(2_000);
        }
        assert_eq!(finished_by_queue(&rig, &run)["status"], "completed");
        rig.wait_until(|counts| counts.deliveries == deliveries);
        rig.pass(0);
        assert_eq!(rig.endpoint.calls().len(), 2, "{fault:?}: each call once");
        shop::each_effect_has_one_id(&rig, &[run]);
    }
}

#[test]
#[cfg_attr(test_host = "native", ignore = "needs faults by plan")]
fn a_consumer_killed_at_any_step_leaves_its_run_to_the_next() {
    let rig = rig();
    let simulation = simulation(&rig);
    let first = start(&rig, &simulation);
    let reference = finished_by_queue(&rig, &first);
    let mut runs = vec![first];
    for step in 1..=STEPS {
        for moment in [Moment::Before, Moment::After] {
            rig.rage(&FaultPlan::kill(step, moment));
            let run = start(&rig, &simulation);
            rig.wait_until(|counts| counts.met == 1);
            rig.calm();
            rig.pass(LEASE_LOST_MS);
            rig.sweep();
            let over = read(&rig, &run);
            assert_eq!(over["status"], "completed", "step {step}, {moment:?}: {over}");
            let same = |name: &str| assert_eq!(over[name], reference[name], "step {step}, {moment:?}");
            ["passed", "evaluations", "seed"].into_iter().for_each(same);
            assert_eq!(texts(&over), texts(&reference), "step {step}, {moment:?}");
            runs.push(run);
        }
    }
    shop::each_effect_has_one_id(&rig, &runs);
}

/// Not on the Sandbox, whose queue is the test's own.
#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs workerd's own queue")]
fn the_queue_itself_repeats_the_hint_of_a_consumer_that_was_killed() {
    only_on(&["worker"]);
    let rig = rig();
    rig.rage(&FaultPlan::kill(2, Moment::Before));
    let run = start(&rig, &simulation(&rig));
    rig.wait_until(|counts| counts.met == 1);
    rig.pass(LEASE_LOST_MS);
    rig.wait_until(|counts| counts.deliveries == 2);
    assert_eq!(finished_by_queue(&rig, &run)["status"], "completed");
    assert_eq!(rig.counts().sweeps, 0);
    shop::each_effect_has_one_id(&rig, &[run]);
}

/// Not on the Sandbox, where nothing waits.
#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs jobs that run side by side in workerd")]
fn a_consumer_that_was_only_slow_gives_way() {
    only_on(&["worker"]);
    let rig = rig();
    let simulation = simulation(&rig);
    let mut runs = Vec::new();
    let mut calls = 0;
    // It waits for the first tool call, or for the last, after which it only has to finish. The one whose result
    // it waits for goes out again under its id; one whose result was taken down does not.
    for (waits_for, in_all) in [(1, 3), (2, 3)] {
        rig.endpoint.answer_after(SLOW_MS);
        let run = start(&rig, &simulation);
        rig.endpoint.wait_for_calls(calls + waits_for);
        rig.endpoint.answer_after(0);
        // Its lease runs out meanwhile, and the cron takes the run over.
        rig.pass(LEASE_LOST_MS);
        rig.sweep();
        let over = read(&rig, &run);
        assert_eq!(over["status"], "completed", "{over}");
        std::thread::sleep(Duration::from_millis(SLOW_MS));
        assert_eq!(read(&rig, &run), over, "what is over stays as it is");
        assert_eq!(rig.endpoint.calls().len(), calls + in_all, "the slow one called nobody any more");
        calls += in_all;
        runs.push(run);
    }
    shop::each_effect_has_one_id(&rig, &runs);
}

/// workerd and everything around it are killed while a run waits for a tool, and started again on
/// the same state.
#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs workerd to kill")]
fn workerd_killed_in_the_middle_of_a_run_loses_nothing() {
    only_on(&["worker"]);
    let state = Folder::new();
    let endpoint = Endpoint::start();
    endpoint.answer_after(2_000);
    let edge = Edge::faulty_on(state.path());
    let rig = Rig::at(edge.clone(), bootstrap_key(0), endpoint.clone());
    let run = start(&rig, &simulation(&rig));
    endpoint.wait_for_calls(1);
    assert_eq!(read(&rig, &run)["status"], "running");
    edge.kill();

    endpoint.answer_after(0);
    let rig = Rig::at(Edge::faulty_on(state.path()), bootstrap_key(0), endpoint);
    assert_eq!(read(&rig, &run)["status"], "running", "the lease is still good");
    rig.sweep();
    assert_eq!(read(&rig, &run)["status"], "running", "the lease is still good");
    rig.pass(LEASE_LOST_MS);
    rig.sweep();
    let over = read(&rig, &run);
    assert_eq!(over["status"], "completed", "{over}");
    assert_eq!(rig.endpoint.calls().len(), 3, "the call that was cut off came again");
    shop::each_effect_has_one_id(&rig, &[run]);
}

/// A queued run of the simulation.
fn start(rig: &Rig, simulation: &str) -> String {
    let path = format!("/simulations/{simulation}/runs");
    let run = rig.call(Method::POST, &path, Some(&json!({"seed": 7})), &[]).created();
    run["id"].as_str().expect("an id").to_owned()
}

/// A simulation whose runs call a tool twice.
fn simulation(rig: &Rig) -> String {
    let create = |path: &str, body: Value| {
        let made = rig.call(Method::POST, path, Some(&body), &[]).created();
        made["id"].as_str().expect("an id").to_owned()
    };
    let tool = create(
        "/tools",
        json!({"name": "order_status", "url": rig.endpoint.url(),
               "description": "Looks up the status of an order", "parameters": {"type": "object", "properties": {}}}),
    );
    let assistant = create("/assistants", json!({"name": "Desk", "instructions": "Be brief."}));
    let tools = json!({"tool_ids": [tool]});
    rig.call(Method::PUT, &format!("/assistants/{assistant}/tools"), Some(&tools), &[]).ok();
    let persona = create("/simulations/personas", json!({"name": "Ada", "system_prompt": "Be kind."}));
    let instructions =
        "Ask \"What is the status of my order?\" Then ask \"And what is the status of the other order?\"";
    let scenario = create("/simulations/scenarios", json!({"name": "Orders", "instructions": instructions}));
    create("/simulations", json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}))
}

fn read(rig: &Rig, run: &str) -> Value {
    rig.world.get(format!("/simulations/runs/{run}")).ok().json
}

fn finished_by_queue(rig: &Rig, run: &str) -> Value {
    let started = Instant::now();
    loop {
        let read = read(rig, run);
        if read["status"] == "completed" || read["status"] == "error" {
            return read;
        }
        assert!(started.elapsed() < Duration::from_millis(RUN_MS), "the run is not over: {read}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What was said.
fn texts(run: &Value) -> Vec<&Value> {
    run["transcript"].as_array().expect("a transcript").iter().map(|row| &row["text"]).collect()
}

fn rig() -> Rig {
    Rig::on_host(host())
}

/// What every host tells when nothing fails.
fn without_faults() -> &'static Vec<String> {
    static TOLD: OnceLock<Vec<String>> = OnceLock::new();
    TOLD.get_or_init(|| shop::day(&Rig::on_host("sandbox"), &FaultPlan::default()).told)
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
