//! Slow, wrong, broken or endless models: every run is bounded and reports the failure.
use serde_json::json;

use crate::support::{Fixture, rows};

#[test]
fn temporary_failures_of_a_model_are_retried() {
    for model in ["broken-once", "rate-limited", "cut"] {
        let fixture = Fixture::new(model);
        let run = fixture.run(&["Hello there"]);
        assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(null)), "{model}: {run:#}");
        assert_eq!(
            rows(&run["call"]["transcript"], "assistant").last().unwrap()["text"],
            "Hello there",
            "{model}"
        );
    }
}

/// Its sessions are spoken: see the setting `text_model`.
#[test]
fn a_realtime_model_leaves_what_is_written_to_another_one() {
    let fixture = Fixture::new("echo");
    let realtime = json!({"model": "live/talks", "pipeline_mode": "realtime"});
    fixture.world.patch(format!("/assistants/{}", fixture.assistant.id), realtime).ok();
    let run = fixture.run(&["Hello there"]);
    assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(null)), "{run:#}");
    assert_eq!(rows(&run["call"]["transcript"], "assistant").last().unwrap()["text"], "Hello there");
}

#[test]
fn permanent_failures_of_a_model_end_the_run_and_its_call_has_the_fault() {
    for (model, code, fault) in [
        ("broken", "model_unavailable", "provider"),
        ("no-quota", "model_rate_limited", "operator"),
        ("rejects", "model_rejected", "provider"),
        ("no-such-model", "model_rejected", "operator"),
        ("garbage", "model_garbled", "provider"),
        ("cut-always", "model_unavailable", "provider"),
        ("says-nothing", "model_garbled", "provider"),
        ("endless", "model_garbled", "provider"),
    ] {
        let fixture = Fixture::new(model);
        let run = fixture.run(&["Hello there"]);
        assert_eq!((&run["status"], &run["passed"]), (&json!("error"), &json!(null)), "{model}: {run:#}");
        assert_eq!(run["error"]["code"], code, "{model}: {}", run["error"]);
        let call = &run["call"];
        assert_eq!(
            (&call["status"], &call["outcome"], &call["ended_reason"], &call["fault"]),
            (&json!("ended"), &json!("failed"), &json!("model_failed"), &json!(fault)),
            "{model}: {call:#}"
        );
        assert_eq!(
            rows(&run["call"]["transcript"], "user").len(),
            1,
            "{model}: the transcript contains the conversation so far"
        );
        let kinds: Vec<String> = fixture.events(4).into_iter().map(|(kind, _, _)| kind).collect();
        assert!(kinds.contains(&"simulation.run.error".to_owned()), "{model}: {kinds:?}");
    }
}

#[test]
fn a_model_gets_an_error_for_invalid_tool_calls_and_continues() {
    for (model, words) in [
        ("unknown-tool", "There is no such tool"),
        ("bad-arguments", "must be a JSON object"),
        ("unfit-arguments", "do not fit"),
    ] {
        let fixture = Fixture::new(model);
        let run = fixture.run(&["Where is it?"]);
        assert_eq!(run["status"], "completed", "{model}: {run:#}");
        let result = rows(&run["call"]["transcript"], "tool_result")[0];
        assert_eq!(result["is_error"], true, "{model}");
        assert!(result["text"].as_str().unwrap().contains(words), "{model}: {result}");
        assert_eq!(fixture.tool.count(), 0, "{model}: no tool was called");
    }
}

/// A call that never went out was not made, whatever looks at the transcript.
#[test]
fn a_refused_tool_call_counts_as_not_made() {
    let fixture = Fixture::new("unfit-arguments");
    let evaluations = json!([{"kind": "tool_call", "includes": "lookup"}]);
    let simulation = fixture.simulation(&["Where is it?"], evaluations);
    let run = fixture.world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
    let run = fixture.world.settle(&run.id);
    let call = rows(&run["call"]["transcript"], "tool_call")[0];
    assert_eq!(call["is_error"], true, "{call}");
    let result = rows(&run["call"]["transcript"], "tool_result")[0];
    let why = "The arguments do not fit the tool's parameters: order must be a string";
    assert!(result["text"].as_str().unwrap().starts_with(why), "{result}");
    let evaluation = &run["evaluations"][0];
    assert_eq!((&run["passed"], &evaluation["passed"]), (&json!(false), &json!(false)), "{evaluation}");
    assert_eq!(fixture.tool.count(), 0);
}

#[test]
fn parallel_tool_calls_and_unusual_shapes_work() {
    for model in [
        "parallel-tools",
        "shape-zero-index",
        "shape-whole",
        "shape-no-index",
        "shape-stop",
        "shape-one-byte",
    ] {
        let fixture = Fixture::new(model);
        let run = fixture.run(&["Where is it?"]);
        assert_eq!(run["status"], "completed", "{model}: {run:#}");
        assert_eq!(rows(&run["call"]["transcript"], "tool_call").len(), fixture.tool.count(), "{model}");
        assert!(fixture.tool.count() >= 1, "{model}");
    }
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    let fixture = Fixture::new("repeats");
    let lines: Vec<String> = (0..12).map(|n| format!("Line {n}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let run = fixture.run(&lines);
    assert_eq!(run["call"]["ended_reason"], "assistant_repeating", "{run:#}");
    assert_eq!((&run["call"]["fault"], &run["passed"]), (&json!("assistant"), &json!(null)));
}

#[test]
fn an_assistant_may_hang_up() {
    let run = Fixture::new("says-goodbye").run(&["Hello", "Still there?"]);
    assert_eq!(run["call"]["ended_reason"], "assistant_ended");
    assert_eq!(
        rows(&run["call"]["transcript"], "assistant").last().unwrap()["text"],
        "Goodbye, and thank you."
    );
}
