//! Everything outside fails by a seed: models with garbage, partial or no answers, tools and
//! receivers that hang, flood, redirect or reset, storage that fails before, half-way and after a commit, and killed
//! runners. For every seed, the remaining records are bounded and correct.
use sidetone_engine::storage::jobs::JobKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone_engine::base::limits::{DELIVERY_RESPONSE_BYTES_MAX, TOOL_RESPONSE_BYTES_MAX};
use sidetone_engine::engine::PreparedResponse;
use sidetone_engine::ports::{HttpError, HttpReply, HttpRequest};
use sidetone_tests::Choices;
use sidetone_tests::faults::{FaultPlan, FaultyDatabase, until_stalled};

const RUNS: usize = 4;
/// Enough for the maximum number of attempts with expiring leases.
const ROUNDS_MAX: usize = 2_000;
const ROUND_MS: i64 = 20_000;

#[test]
fn records_are_bounded_and_correct_whatever_fails() {
    let range = std::env::var("SIDETONE_FAULT_SEEDS").unwrap_or_else(|_| "0..60".to_owned());
    let (first, end) = range.split_once("..").map_or_else(
        || (range.parse().unwrap(), range.parse::<u64>().unwrap() + 1),
        |(first, end)| (first.parse().unwrap(), end.parse().unwrap()),
    );
    let mut met = BTreeMap::new();
    for seed in first..end {
        println!("SIDETONE_FAULT_SEEDS={seed}");
        for (what, count) in one(seed) {
            *met.entry(what).or_insert(0) += count;
        }
    }
    println!("{met:?}");
    if end - first >= 60 {
        for what in ["completed", "error", "tool", "tool failed", "delivered"] {
            assert!(met.get(what).is_some_and(|count| *count > 0), "did not occur: {what} in {met:?}");
        }
    }
}

/// The requests that were sent, by kind.
#[derive(Default)]
struct Outside {
    choices: Option<Choices>,
    /// The arguments of each tool call, by its id. Every try has the same ones.
    tools: BTreeMap<String, Vec<u8>>,
    events: BTreeMap<String, Vec<u8>>,
    accepted: BTreeSet<String>,
}

fn one(seed: u64) -> BTreeMap<&'static str, usize> {
    let database = Arc::new(FaultyDatabase::default());
    let settings = [
        ("SIDETONE_PROVIDERS", r#"{"m": {"base_url": "http://model.example/v1"}}"#),
        ("SIDETONE_MODELS", r#"{"m/x": {"input_microusd_per_1m_tokens": 1000000}}"#),
        ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1"),
    ];
    let sandbox = Sandbox::over(database.clone(), &settings);
    let runs = prepare(&sandbox);
    let outside = Arc::new(Mutex::new(Outside { choices: Some(Choices(seed)), ..Outside::default() }));
    let ours = outside.clone();
    sandbox.answer_http_with(move |request| answer(&mut ours.lock().unwrap(), request));
    database.start_plan(FaultPlan::from_seed(seed));
    let mut rounds = 0;
    while !settled(&sandbox, &runs) {
        rounds += 1;
        assert!(rounds < ROUNDS_MAX, "the runs do not end");
        if rounds == ROUNDS_MAX / 4 {
            // From here on storage works, and everything must complete.
            database.start_plan(FaultPlan::default());
        }
        database.start_job_runner();
        // A killed runner never completes; one with failing storage returns an error. Both are tried again later.
        let _ = until_stalled(sandbox.services().run_due_jobs("runner", JobKind::ALL, 8));
        sandbox.advance(ROUND_MS);
    }
    database.start_job_runner();
    database.start_plan(FaultPlan::default());
    outside.lock().unwrap().choices = None;
    sandbox.advance(100 * 60 * 60 * 1000);
    sandbox.run_jobs();
    check(&sandbox, &runs, &outside.lock().unwrap())
}

fn prepare(sandbox: &Sandbox) -> Vec<String> {
    let make = |path: &str, body: Value| {
        let reply = sandbox.post(path, body);
        assert_eq!(reply.status, 201, "{}", reply.json);
        reply["id"].as_str().unwrap().to_owned()
    };
    let tool = make("/tools", json!({"name": "lookup", "url": "http://tool.example/", "timeout_ms": 1_000}));
    make("/webhooks", json!({"url": "http://hook.example/", "events": ["*"]}));
    let assistant = make("/assistants", json!({"name": "A", "instructions": "Help.", "model": "m/x"}));
    sandbox.put(&format!("/assistants/{assistant}/tools"), json!({"tool_ids": [tool]}));
    let persona = make("/simulations/personas", json!({"name": "P", "system_prompt": "x"}));
    let evaluations = json!([{"kind": "judge", "role": "any", "includes": "x"}]);
    let scenario =
        make("/simulations/scenarios", json!({"name": "S", "instructions": "x", "evaluations": evaluations}));
    let simulation = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    let simulation = make("/simulations", simulation);
    (0..RUNS).map(|n| make(&format!("/simulations/{simulation}/runs"), json!({"seed": n}))).collect()
}

fn settled(sandbox: &Sandbox, runs: &[String]) -> bool {
    let engine = sandbox.engine();
    runs.iter().all(|run| {
        let request = http::Request::get(format!("/simulations/runs/{run}"))
            .header("authorization", format!("Bearer {}", sandbox.key()))
            .body(Bytes::new())
            .unwrap();
        let Some(PreparedResponse::Complete(response)) = until_stalled(engine.handle(request, None)) else {
            return false;
        };
        let run: Value = serde_json::from_slice(response.into_parts().0.body()).unwrap_or_default();
        run["status"] == "completed" || run["status"] == "error"
    })
}

fn answer(outside: &mut Outside, request: &HttpRequest) -> Result<HttpReply, HttpError> {
    let header = |name: &str| {
        let found = request.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    if request.url.contains("tool.example") {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let arguments = body["arguments"].to_string().into_bytes();
        let first = outside.tools.entry(header("idempotency-key")).or_insert_with(|| arguments.clone());
        assert_eq!(*first, arguments, "one id, one tool call");
    }
    let id = header("webhook-id");
    if request.url.contains("hook.example") {
        let first = outside.events.entry(id.clone()).or_insert_with(|| request.body.to_vec());
        assert_eq!(*first, request.body, "one id, one event");
    }
    let Some(choices) = &mut outside.choices else {
        outside.accepted.insert(id);
        return Ok(reply(200, "ok"));
    };
    let fault = choices.below(12);
    if request.url.contains("model.example") {
        return model(choices, fault);
    }
    match fault {
        0 => Err(HttpError::Timeout),
        1 => Err(HttpError::Failed("reset".to_owned())),
        2 => Ok(reply(500, "no")),
        3 => Ok(reply(302, "elsewhere")),
        4 => {
            // For a delivery, only the status matters.
            outside.accepted.insert(id);
            let most = TOOL_RESPONSE_BYTES_MAX.max(DELIVERY_RESPONSE_BYTES_MAX);
            Ok(reply(200, &"flood ".repeat(most)))
        }
        5 => Ok(reply(429, "")),
        _ => {
            outside.accepted.insert(id);
            Ok(reply(200, "ok"))
        }
    }
}

/// A chat completion, or a fault instead.
fn model(choices: &mut Choices, fault: u64) -> Result<HttpReply, HttpError> {
    let call = |name: &str, arguments: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}},
            {"id": "b", "type": "function", "function": {"name": "lookup", "arguments": "{\"n\": 1}"}}]})
    };
    let say = |text: &str| json!({"role": "assistant", "content": text});
    let message = match (fault, choices.below(8)) {
        (0, _) => return Err(HttpError::Timeout),
        (1, 0) => return Ok(reply(400, r#"{"error": {"message": "too long"}}"#)),
        (1, _) => return Ok(reply(503, "")),
        (2, 0) => return Ok(reply(200, "<html>")),
        (2, 1) => return Ok(reply(200, "data: {\"choices\": [{\"delta\": {\"content\": \"He")),
        (2, _) => return Ok(reply(429, "")),
        (3, _) => call("no_such_tool", "{}"),
        (4, _) => call("lookup", "{\"half"),
        (5, _) => call("hang_up", "{}"),
        (6 | 7, _) => call("lookup", "{\"x\": \"y\"}"),
        (8, _) => say(
            r#"{"passed": true, "matched_index": 0, "reason": "r", "summary": "s", "sentiment": "neutral"}"#,
        ),
        (9, _) => say(""),
        (_, n) => say(&format!("Line {n}.")),
    };
    let body = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": message,
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 900, "completion_tokens": 5}});
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Ok(HttpReply { status: 200, headers, body: body.to_string().into() })
}

fn reply(status: u16, body: &str) -> HttpReply {
    HttpReply { status, headers: Vec::new(), body: Bytes::from(body.to_owned()) }
}

fn check(sandbox: &Sandbox, runs: &[String], outside: &Outside) -> BTreeMap<&'static str, usize> {
    let mut met = BTreeMap::new();
    let mut meet = |what| *met.entry(what).or_insert(0) += 1;
    let mut called = BTreeSet::new();
    for id in runs {
        let run = sandbox.get(&format!("/simulations/runs/{id}")).json;
        let call = &run["call"];
        match run["status"].as_str() {
            Some("completed") => meet("completed"),
            _ => {
                meet("error");
                assert!(run["error"]["code"].is_string() && run["passed"].is_null(), "{run:#}");
            }
        }
        assert_eq!(call["status"], "ended", "{run:#}");
        assert!(call["transcript"].to_string().len() <= 1_048_576);
        let rows = call["transcript"].as_array().unwrap();
        for (place, row) in rows.iter().enumerate() {
            assert_eq!(row["index"], place);
            match row["role"].as_str() {
                Some("tool_call") => {
                    let fresh = called.insert(row["tool_call_id"].as_str().unwrap().to_owned());
                    assert!(fresh, "two calls have the same id: {row}");
                }
                Some("tool_result") => meet(if row["is_error"] == true { "tool failed" } else { "tool" }),
                _ => {}
            }
        }
        assert!(call["costs"]["total_microusd"].as_i64() <= run["cost_microusd"].as_i64());
    }
    // The transcript of a run that was given up contains all calls from its journal, so every sent call is in a transcript.
    for id in outside.tools.keys() {
        assert!(called.contains(id), "a sent call is not in any transcript: {id}");
    }
    assert_eq!(sandbox.get("/calls").json["stats"]["total"], runs.len());
    let webhook = sandbox.get("/webhooks").json[0].clone();
    let path = format!("/webhooks/{}/deliveries?limit=1000", webhook["id"].as_str().unwrap());
    let deliveries = sandbox.get(&path).json;
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for delivery in deliveries["deliveries"].as_array().unwrap() {
        *told.entry(delivery["type"].as_str().unwrap()).or_default() += 1;
        match delivery["status"].as_str() {
            Some("delivered") => {
                meet("delivered");
                assert!(outside.accepted.contains(delivery["event_id"].as_str().unwrap()), "{delivery}");
            }
            Some("failed") => meet("given up"),
            _ => panic!("still pending: {delivery}"),
        }
    }
    for kind in ["call.started", "call.ended", "call.analyzed"] {
        assert_eq!(told.get(kind), Some(&runs.len()), "{told:?}");
    }
    let over = ["simulation.run.completed", "simulation.run.error"].map(|kind| told.get(kind).unwrap_or(&0));
    assert_eq!(over[0] + over[1], runs.len(), "{told:?}");
    met
}
