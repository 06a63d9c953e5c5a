//! A batch with tools, knowledge and a judge: all resources and events agree.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sidetone_engine::storage::signing::webhook_signature;

use crate::support::{Fixture, rows};

#[test]
fn a_batch_completes_with_consistent_records() {
    let fixture = Fixture::new("tools");
    let evaluations = json!([
        {"kind": "transcript", "role": "assistant", "includes": "hello"},
        {"kind": "tool_call", "role": "any", "includes": "lookup"},
        {"kind": "judge", "role": "user", "includes": "order A-17"},
    ]);
    fixture.simulation(&["Where is order A-17?", "And ärger über order 18?"], evaluations.clone());
    fixture.simulation(&["Hello, order A-17 please"], evaluations);
    let batch = fixture
        .world
        .post("/simulations/runs/batch", json!({"assistant_id": fixture.assistant.id, "seed": 3}));
    let batch = batch.created();
    let ids: Vec<&str> =
        batch["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    let runs: Vec<Value> = ids.iter().map(|id| fixture.world.settle(id)).collect();

    let mut tool_ids = BTreeSet::new();
    for run in &runs {
        assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(true)), "{run:#}");
        let call = fixture.world.get(format!("/calls/{}", run["call_id"].as_str().unwrap())).ok().json;
        assert_eq!(run["call"], call);
        assert_eq!(call["source"], "simulation");
        assert_eq!(call["status"], "ended");
        assert_eq!((&call["outcome"], &call["fault"]), (&json!("completed"), &json!("none")));
        assert_eq!(call["ended_reason"], "user_hung_up");
        assert_eq!(call["simulation_run_id"], run["id"]);
        assert_eq!(call["assistant_revision"], run["assistant_revision"]);
        assert_eq!(call["model"], "fake/tools");
        assert_eq!(
            call["analysis"],
            json!({"summary": "They asked and were told.", "sentiment": "positive", "outcome": null, "method": "model"})
        );
        assert_eq!(call["sentiment"], "positive");
        // The call costs what its tokens cost. The run also pays for caller and judge.
        let llm = call["costs"]["llm_microusd"].as_i64().unwrap();
        assert_eq!(call["costs"]["total_microusd"], llm);
        assert!(llm > 0 && call["usage"]["llm_input_tokens"].as_i64().unwrap() > 0, "{call:#}");
        assert!(run["cost_microusd"].as_i64().unwrap() > llm, "{run:#}");
        let calls = rows(&run["call"]["transcript"], "tool_call");
        let results = rows(&run["call"]["transcript"], "tool_result");
        assert_eq!(calls.len(), results.len());
        for (made, result) in calls.iter().zip(results) {
            assert_eq!(made["tool_name"], "lookup");
            assert_eq!(made["tool_call_id"], result["tool_call_id"]);
            assert_eq!((&result["text"], &result["is_error"]), (&json!("ok"), &json!(false)));
            assert!(tool_ids.insert(made["tool_call_id"].as_str().unwrap().to_owned()));
        }
    }
    tools_were_called_once(&fixture, &tool_ids);
    events_say_the_same(&fixture, &runs);

    let list = fixture.world.get("/calls?source=simulation&search=A-17").ok();
    assert_eq!(list["stats"]["total"], 2);
    assert_eq!(list["stats"]["by_outcome"]["completed"], 2);
    let cost: i64 = runs.iter().map(|run| run["call"]["costs"]["total_microusd"].as_i64().unwrap()).sum();
    assert_eq!(list["stats"]["total_cost_microusd"], cost);
    let spent: i64 = runs.iter().map(|run| run["cost_microusd"].as_i64().unwrap()).sum();
    assert_eq!(fixture.world.get("/workspace").ok()["spent_this_month_microusd"], spent);
}

/// One signed request for each tool call in the transcripts, with its id.
fn tools_were_called_once(fixture: &Fixture, ids: &BTreeSet<String>) {
    let secret = fixture.tool_made["signing_secret"].as_str().unwrap();
    let received = fixture.tool.received();
    let keys: BTreeSet<String> =
        received.iter().map(|one| one.header("idempotency-key").to_owned()).collect();
    assert_eq!((&keys, received.len()), (ids, ids.len()));
    for one in &received {
        let id = one.header("webhook-id");
        let timestamp_s = one.header("webhook-timestamp").parse().unwrap();
        let expected = webhook_signature(secret, id, timestamp_s, &one.body);
        assert_eq!(one.header("webhook-signature"), expected);
        let body: Value = serde_json::from_slice(&one.body).unwrap();
        assert_eq!((&body["type"], &body["id"]), (&json!("tool.call"), &json!(id)));
        assert!(body["call"]["id"].as_str().unwrap().starts_with("call_"));
        assert_eq!(body["call"]["source"], "simulation");
    }
}

/// Four events per run, each delivered once, with the resources as read.
fn events_say_the_same(fixture: &Fixture, runs: &[Value]) {
    let secret = fixture.webhook_made["signing_secret"].as_str().unwrap();
    let events = fixture.events(4 * runs.len());
    let ids: BTreeSet<&str> = events.iter().map(|(_, body, _)| body["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len());
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, body, received) in &events {
        *kinds.entry(kind.as_str()).or_default() += 1;
        let timestamp_s = received.header("webhook-timestamp").parse().unwrap();
        let id = body["id"].as_str().unwrap();
        assert_eq!(
            received.header("webhook-signature"),
            webhook_signature(secret, id, timestamp_s, &received.body)
        );
        match kind.as_str() {
            "call.started" => assert_eq!(body["data"]["call"]["status"], "in_progress"),
            "simulation.run.completed" => {
                assert!(runs.contains(&body["data"]["run"]), "the event contains the run as read");
            }
            _ => {
                let told = &body["data"]["call"];
                assert!(runs.iter().any(|run| run["call"] == *told), "the event contains the call as read");
            }
        }
    }
    let each = runs.len();
    let expected = ["call.analyzed", "call.ended", "call.started", "simulation.run.completed"];
    assert_eq!(kinds, expected.map(|kind| (kind, each)).into());
}

#[test]
fn answers_without_token_counts_cost_an_estimate() {
    let fixture = Fixture::new("no-usage");
    let simulation = fixture.simulation(&["One", "Two", "Three", "Four", "Five"], json!([]));
    let path = format!("/simulations/{}/runs", simulation.id);
    let start = |max: i64| {
        let run = fixture.world.create(&path, json!({"seed": 7, "max_cost_microusd": max}));
        fixture.world.settle(&run.id)
    };
    let whole = start(1_000_000);
    let call = &whole["call"];
    assert_eq!((&whole["status"], &call["ended_reason"]), (&json!("completed"), &json!("user_hung_up")));
    let answers = rows(&call["transcript"], "assistant").len() as i64 - 1;
    let usage = &call["usage"];
    // The answers of the conversation except its first line, and two attempts at an analysis.
    assert_eq!(usage["llm_uncounted_answers"], answers + 2, "{usage}");
    assert_eq!((&usage["llm_input_tokens"], &usage["llm_output_tokens"]), (&json!(0), &json!(0)));
    assert!(call["costs"]["llm_microusd"].as_i64().unwrap() > 0, "{call}");
    let most = whole["cost_microusd"].as_i64().unwrap();
    assert_eq!(fixture.world.get("/workspace").ok()["spent_this_month_microusd"], most);
    assert_eq!(start(most / 3)["call"]["ended_reason"], "cost_limit");
    fixture.world.patch("/workspace", json!({"monthly_spend_limit_microusd": most})).ok();
    fixture.world.post(&path, json!({})).refused("spend_limit_reached");
}

#[test]
fn a_judge_votes_as_often_as_the_scenario_says() {
    let fixture = Fixture::new("echo");
    let evaluations = json!([{"kind": "judge", "role": "user", "includes": "one"}]);
    let simulation = fixture.simulation(&["One", "Two"], evaluations);
    let scenario = format!("/simulations/scenarios/{}", simulation["scenario_id"].as_str().unwrap());
    for (votes, passed, split) in [
        (1, json!(true), Value::Null),
        (2, Value::Null, json!({"passed": 1, "failed": 1, "undecided": 0})),
        (3, json!(true), json!({"passed": 2, "failed": 1, "undecided": 0})),
        (5, Value::Null, json!({"passed": 2, "failed": 2, "undecided": 1})),
    ] {
        let change = json!({"judge_model": "fake/judge-of-two-minds", "judge_votes": votes});
        fixture.world.patch(&scenario, change).ok();
        let run = fixture.world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
        let run = fixture.world.settle(&run.id);
        let evaluation = &run["evaluations"][0];
        assert_eq!((&run["passed"], &evaluation["passed"]), (&passed, &passed), "{votes}: {evaluation}");
        assert_eq!(evaluation["votes"], split, "{votes}");
        if votes == 3 {
            assert_eq!(evaluation["reason"], "It was said.");
        }
    }
}

#[test]
fn a_run_ends_at_its_cost_limit() {
    let fixture = Fixture::new("echo");
    let simulation = fixture.simulation(&["One", "Two", "Three", "Four", "Five"], json!([]));
    let start = |max: i64| {
        let body = json!({"seed": 7, "max_cost_microusd": max});
        let run = fixture.world.create(&format!("/simulations/{}/runs", simulation.id), body);
        fixture.world.settle(&run.id)
    };
    let whole = start(1_000_000);
    assert_eq!(whole["call"]["ended_reason"], "user_hung_up");
    let most = whole["cost_microusd"].as_i64().unwrap();
    let cut = start(most / 3);
    assert_eq!(
        (&cut["status"], &cut["passed"]),
        (&json!("completed"), &json!(null)),
        "it has no evaluations"
    );
    assert_eq!(cut["call"]["ended_reason"], "cost_limit");
    assert_eq!(cut["call"]["fault"], "operator");
    assert!(cut["turns"].as_i64().unwrap() < whole["turns"].as_i64().unwrap());
    assert_eq!(start(0)["call"]["ended_reason"], "cost_limit");
    // The workspace's spending limit rejects the next run before it is queued.
    let world = &fixture.world;
    world.patch("/workspace", json!({"monthly_spend_limit_microusd": 1})).ok();
    let refused = world.post(format!("/simulations/{}/runs", simulation.id), json!({}));
    refused.refused("spend_limit_reached");
    world
        .post("/simulations/runs/batch", json!({"assistant_id": fixture.assistant.id}))
        .refused("spend_limit_reached");
    world.patch("/workspace", json!({"monthly_spend_limit_microusd": null})).ok();
    assert_eq!(start(1_000_000)["status"], "completed");
}
