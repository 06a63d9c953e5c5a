//! Models that are slow, wrong, broken or endless: a bounded run that says so.
use serde_json::json;

use crate::support::{Bench, rows};

#[test]
fn a_model_that_recovers_is_asked_again() {
    for model in ["broken-once", "rate-limited", "cut"] {
        let bench = Bench::new(model);
        let run = bench.run(&["Hello there"]);
        assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(true)), "{model}: {run:#}");
        assert_eq!(rows(&run["transcript"], "assistant").last().unwrap()["text"], "Hello there", "{model}");
    }
}

#[test]
fn a_model_that_does_not_ends_the_run_in_error_and_the_call_says_whose_fault_it_is() {
    for (model, code, fault) in [
        ("broken", "model_unavailable", "provider"),
        ("no-quota", "model_rate_limited", "operator"),
        ("rejects", "model_rejected", "provider"),
        ("garbage", "model_garbled", "provider"),
        ("cut-always", "model_unavailable", "provider"),
        ("says-nothing", "model_garbled", "provider"),
        ("endless", "model_garbled", "provider"),
    ] {
        let bench = Bench::new(model);
        let run = bench.run(&["Hello there"]);
        assert_eq!((&run["status"], &run["passed"]), (&json!("error"), &json!(null)), "{model}: {run:#}");
        assert_eq!(run["error"]["code"], code, "{model}: {}", run["error"]);
        let call = &run["call"];
        assert_eq!(
            (&call["status"], &call["outcome"], &call["ended_reason"], &call["fault"]),
            (&json!("ended"), &json!("failed"), &json!("model_failed"), &json!(fault)),
            "{model}: {call:#}"
        );
        assert_eq!(rows(&run["transcript"], "user").len(), 1, "{model}: what was said until then is there");
        let kinds: Vec<String> = bench.events(4).into_iter().map(|(kind, _, _)| kind).collect();
        assert!(kinds.contains(&"simulation.run.error".to_owned()), "{model}: {kinds:?}");
    }
}

#[test]
fn a_model_that_misuses_tools_is_told_and_goes_on() {
    for (model, words) in
        [("unknown-tool", "There is no such tool"), ("bad-arguments", "must be a JSON object")]
    {
        let bench = Bench::new(model);
        let run = bench.run(&["Where is it?"]);
        assert_eq!(run["status"], "completed", "{model}: {run:#}");
        let result = rows(&run["transcript"], "tool_result")[0];
        assert_eq!(result["is_error"], true, "{model}");
        assert!(result["text"].as_str().unwrap().contains(words), "{model}: {result}");
        assert_eq!(bench.tool.count(), 0, "{model}: nothing was called");
    }
}

#[test]
fn parallel_calls_go_out_together_and_odd_shapes_are_read() {
    for model in [
        "parallel-tools",
        "shape-zero-index",
        "shape-whole",
        "shape-no-index",
        "shape-stop",
        "shape-one-byte",
    ] {
        let bench = Bench::new(model);
        let run = bench.run(&["Where is it?"]);
        assert_eq!(run["status"], "completed", "{model}: {run:#}");
        assert_eq!(rows(&run["transcript"], "tool_call").len(), bench.tool.count(), "{model}");
        assert!(bench.tool.count() >= 1, "{model}");
    }
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    let bench = Bench::new("repeats");
    let lines: Vec<String> = (0..12).map(|n| format!("Line {n}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let run = bench.run(&lines);
    assert_eq!(run["call"]["ended_reason"], "assistant_repeating", "{run:#}");
    assert_eq!((&run["call"]["fault"], &run["passed"]), (&json!("assistant"), &json!(false)));
}

#[test]
fn an_assistant_may_hang_up() {
    let run = Bench::new("says-goodbye").run(&["Hello", "Still there?"]);
    assert_eq!(run["call"]["ended_reason"], "assistant_ended");
    assert_eq!(rows(&run["transcript"], "assistant").last().unwrap()["text"], "Goodbye, and thank you.");
}
