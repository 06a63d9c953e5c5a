//! A run whose runner fails at the last write: the next runner completes it with the same result.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::JOB_ATTEMPTS_MAX;
use sidetone_engine::ports::HttpReply;
use sidetone_engine::storage::jobs::JobKind;
use sidetone_tests::faults::{FaultyDatabase, StorageFault};

/// Longer than the interval between a run's progress notes.
const ANSWER_MS: u64 = 5_000;
/// After this time every released job is due.
const LATER_MS: i64 = 6_000_000;

#[test]
fn a_run_with_a_failed_last_write_is_completed_by_the_next_runner() {
    for evaluations in [json!([]), json!([{"kind": "judge", "role": "any", "includes": "polite"}])] {
        let (run, _) = taken_over(&evaluations, 1);
        assert_eq!((&run["status"], &run["error"]), (&json!("completed"), &Value::Null), "{run:#}");
        let passed = if evaluations == json!([]) { Value::Null } else { true.into() };
        assert_eq!(run["passed"], passed, "{run:#}");
        assert_eq!(run["call"]["ended_reason"], "assistant_ended", "{run:#}");
    }
}

#[test]
fn a_run_that_is_given_up_sends_no_further_requests() {
    let tries = usize::try_from(JOB_ATTEMPTS_MAX).unwrap();
    let (run, analysed) = taken_over(&json!([]), tries);
    assert_eq!(run["error"]["code"], "gave_up", "{run:#}");
    assert_eq!(run["call"]["analysis"]["method"], "rule", "{run:#}");
    assert_eq!(analysed, tries);
}

/// The run, after this number of runners failed to write its result, and the number of analyses of its call.
fn taken_over(evaluations: &Value, failures: usize) -> (Value, usize) {
    let database = Arc::new(FaultyDatabase::default());
    let settings = [("SIDETONE_PROVIDERS", r#"{"m": {"base_url": "http://model.example/v1"}}"#)];
    let sandbox = Sandbox::over(database.clone(), &settings);
    let run = prepare(&sandbox, evaluations);
    let (analysed, clock) = (Arc::new(AtomicUsize::new(0)), sandbox.services().ports().clock.clone());
    let count = analysed.clone();
    sandbox.answer_http_with(move |request| {
        block_on(clock.sleep(ANSWER_MS));
        let asked = String::from_utf8_lossy(&request.body).into_owned();
        if asked.contains("You look back at") && count.fetch_add(1, Ordering::SeqCst) < failures {
            // The next write would end the run.
            database.fail_write(1, StorageFault::Before);
        }
        Ok(answer(&asked))
    });
    for _ in 0..failures {
        // The runner reports the failure and releases the run.
        let turn = block_on(sandbox.services().run_due_jobs("runner", JobKind::ALL, 1)).unwrap();
        assert_eq!(turn.incidents.len(), 1, "{turn:?}");
        sandbox.advance(LATER_MS);
    }
    sandbox.run_jobs();
    let run = sandbox.get(&format!("/simulations/runs/{run}")).json;
    (run, analysed.load(Ordering::SeqCst))
}

fn prepare(sandbox: &Sandbox, evaluations: &Value) -> String {
    let make = |path: &str, body: Value| {
        let reply = sandbox.post(path, body);
        assert_eq!(reply.status, 201, "{}", reply.json);
        reply["id"].as_str().unwrap().to_owned()
    };
    let assistant = make(
        "/assistants",
        json!({"name": "A", "instructions": "Help.", "first_message": "Hello!", "model": "m/x"}),
    );
    let persona = make("/simulations/personas", json!({"name": "P", "system_prompt": "x"}));
    let scenario =
        make("/simulations/scenarios", json!({"name": "S", "instructions": "x", "evaluations": evaluations}));
    let simulation = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    let simulation = make("/simulations", simulation);
    make(&format!("/simulations/{simulation}/runs"), json!({"seed": 1}))
}

/// The model's answer in each of its roles.
fn answer(asked: &str) -> HttpReply {
    let message = if asked.contains("You look back at") {
        json!({"content": r#"{"summary": "They met.", "sentiment": "neutral"}"#})
    } else if asked.contains("You rule on") {
        json!({"content": r#"{"passed": true, "matched_index": 0, "reason": "It was."}"#})
    } else if asked.contains("You play a person") {
        json!({"content": "Hello, and goodbye."})
    } else {
        json!({"content": "Goodbye.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "end_call", "arguments": "{}"}}]})
    };
    let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5}});
    HttpReply { status: 200, headers: Vec::new(), body: Bytes::from(body.to_string()) }
}
