//! What fails, and what the run says about it.
use super::*;

#[test]
fn a_voice_that_fails_for_good_is_named() {
    let world = World::with_phones();
    let run = Case::new("fake/unknown", "fake/scribe").run(&world);
    assert_eq!((&run["status"], &run["passed"]), (&json!("error"), &Value::Null), "{run:#}");
    assert_eq!(run["error"]["code"], "speech_failed", "{run:#}");
    assert_eq!(run["call"]["ended_reason"], "speech_failed", "{run:#}");
    assert!(!texts(&run, "system").is_empty(), "{run:#}");
    assert!(texts(&run, "user").is_empty(), "{run:#}");
}

#[test]
fn a_callers_model_that_fails_is_named() {
    let world = World::with_phones();
    let mut case = Case::new("fake/alto", "fake/scribe");
    case.caller = "fake/rejects";
    let run = case.run(&world);
    assert_eq!(run["status"], "error", "{run:#}");
    assert!(run["error"]["message"].as_str().unwrap().starts_with("The caller's model failed"), "{run:#}");
    assert_eq!(run["call"]["ended_reason"], "model_failed", "{run:#}");
}

#[test]
fn a_callers_model_that_hangs_is_not_taken_for_a_silent_caller() {
    let world = World::with_phones();
    let mut case = Case::new("fake/alto", "fake/scribe");
    case.caller = "fake/hangs";
    let run = case.run(&world);
    assert_eq!(
        (&run["status"], &run["error"]["code"]),
        (&json!("error"), &json!("model_timeout")),
        "{run:#}"
    );
    assert_ne!(run["call"]["fault"], "caller", "{run:#}");
    // The request that was dropped costs what it is estimated to cost.
    assert!(run["cost_microusd"].as_i64().unwrap() > 0, "{run:#}");
}

#[test]
fn an_assistants_model_that_fails_is_named() {
    let world = World::with_phones();
    let mut case = Case::new("fake/alto", "fake/scribe");
    case.assistant["model"] = json!("fake/rejects");
    case.caller = "builtin/rules";
    let run = case.run(&world);
    assert_eq!(run["status"], "error", "{run:#}");
    assert!(run["error"]["message"].as_str().unwrap().starts_with("The assistant's model failed"), "{run:#}");
    assert_eq!(texts(&run, "user"), [ASKED], "what was said stays: {run:#}");
}

#[test]
fn what_is_not_understood_ends_in_silence() {
    let world = World::with_phones();
    let mut case = Case::new("fake/alto", "fake/scribe");
    case.scenario["conditions"] = json!({"packet_loss": 100});
    let run = case.run(&world);
    assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(false)), "{run:#}");
    assert_eq!(run["call"]["ended_reason"], "silence", "{run:#}");
    assert!(texts(&run, "system").iter().all(|text| text.starts_with("Not understood")), "{run:#}");
}

#[test]
fn the_cost_limit_ends_the_conversation() {
    let world = World::with_phones();
    let path = Case::new("fake/alto", "fake/scribe").made_in(&world);
    let run = world.create(&path, json!({"mode": "voice", "max_cost_microusd": 1}));
    let run = finished(|| world.get(format!("/simulations/runs/{}", run.id)).ok().json);
    assert_eq!(run["call"]["ended_reason"], "cost_limit", "{run:#}");
    assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(false)));
}

#[test]
fn a_voice_that_cannot_talk_on_a_line_is_refused() {
    let world = World::with_phones();
    let path = Case::new("builtin/browser", "").made_in(&world);
    let refused = world.post(&path, json!({"mode": "voice"})).refused("validation_failed");
    refused.naming(&["mode"]);
    world.post(&path, json!({"mode": "chat"})).created();
}
