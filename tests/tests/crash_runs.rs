//! The binary is killed (SIGKILL) during a batch of runs with tools and webhooks, on a
//! provider's models, and restarted: every run ends, every tool call in a transcript was sent
//! with one id, every event arrives with one id, and no call is left open.
//!
//! `SIDETONE_CRASH_ROUNDS` sets the number of seeds (3), `SIDETONE_CRASH_SEED` the first one.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::{Choices, fakes};

const SIMULATIONS: usize = 12;
const KILLS: u64 = 3;
/// The scenario answers in its place.
const MOCKED_TOOL: &str = "price";
/// Its answers, which a run gets in this order.
const MOCKED_RESULTS: [&str; 3] = ["seven", "eight", "nine"];
const TIMEOUT: Duration = Duration::from_secs(90);

#[test]
fn a_batch_completes_despite_kills() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("SIDETONE_CRASH_ROUNDS").unwrap_or(3);
    let first = number("SIDETONE_CRASH_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()))
    });
    for seed in first..first + rounds {
        println!("SIDETONE_CRASH_SEED={seed} SIDETONE_CRASH_ROUNDS=1");
        one_batch(seed);
    }
}

fn one_batch(seed: u64) {
    let mut choices = Choices(seed);
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(9);
    let fakes = fakes::settings();
    let mut settings = vec![("SIDETONE_BOOTSTRAP_KEYS", key.as_str())];
    settings.extend(fakes.iter().map(|(name, value)| (*name, value.as_str())));
    let tool = Receiver::start(ReceiverBehaviour::Status(200));
    let webhook = Receiver::start(ReceiverBehaviour::Status(204));
    let mut server = Server::start(&data, &settings);
    let batch =
        start(&mut server.connect(&key), &tool, &webhook, choices.one_of(&["tools", "parallel-tools"]));
    for _ in 0..KILLS {
        std::thread::sleep(Duration::from_millis(choices.below(250)));
        server.kill();
        server = Server::start(&data, &settings);
    }
    let mut client = server.connect(&key);
    let runs = settled(&mut client, &batch);
    let calls = check_tools(&runs, &tool);
    let events = check_events(&runs, &webhook);
    let open = client.expect(200, "GET", "/calls", None);
    let calls_listed = open["calls"].as_array().expect("calls");
    assert_eq!(calls_listed.len(), SIMULATIONS, "one call per run");
    assert!(calls_listed.iter().all(|call| call["status"] == "ended"));
    println!(
        "{SIMULATIONS} runs over {KILLS} kills: {calls} tool calls in {} requests, {events} events in {} requests",
        tool.count(),
        webhook.count()
    );
    assert!(server.stop().success(), "the server stops cleanly");
}

/// Returns the batch's id.
fn start(client: &mut Client, tool: &Receiver, webhook: &Receiver, model: &str) -> String {
    let mut make = |path: &str, body: Value| text(&client.expect(201, "POST", path, Some(&body))["id"]);
    let tools: Vec<String> = ["lookup", "book", MOCKED_TOOL]
        .iter()
        .map(|name| make("/tools", json!({"name": name, "url": tool.url(), "timeout_ms": 5_000})))
        .collect();
    make("/webhooks", json!({"url": webhook.url(), "events": ["*"]}));
    let persona = make(
        "/simulations/personas",
        json!({"name": "Ada", "system_prompt": "You are in a hurry.", "model": "fake/caller"}),
    );
    let scenario = make(
        "/simulations/scenarios",
        json!({"name": "Order", "instructions": "Say \"Order 7?\", then \"Order 8?\", then \"Order 9?\".",
               "evaluations": [{"kind": "judge", "role": "user", "includes": "order 9"}],
               "tool_mocks": {(MOCKED_TOOL): MOCKED_RESULTS.map(|text| json!({"result": text}))},
               "judge_model": "fake/judge"}),
    );
    let assistant = make(
        "/assistants",
        json!({"name": "Shop", "instructions": "Help.", "first_message": "Hello!", "model": format!("fake/{model}")}),
    );
    for _ in 0..SIMULATIONS {
        make(
            "/simulations",
            json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}),
        );
    }
    client.expect(200, "PUT", &format!("/assistants/{assistant}/tools"), Some(&json!({"tool_ids": tools})));
    let batch = json!({"assistant_id": assistant, "seed": 5});
    text(&client.expect(201, "POST", "/simulations/runs/batch", Some(&batch))["batch_id"])
}

/// Waits for the end of all runs and reads them.
fn settled(client: &mut Client, batch: &str) -> Vec<Value> {
    let deadline = Instant::now() + TIMEOUT;
    let list = loop {
        let list = client.expect(200, "GET", &format!("/simulations/runs?batch_id={batch}"), None);
        let runs = list["runs"].as_array().expect("runs").clone();
        let over = runs.iter().filter(|run| run["status"] == "completed").count();
        if over == SIMULATIONS {
            break runs;
        }
        assert!(Instant::now() < deadline, "{over} of {SIMULATIONS} runs are over: {list:#}");
        std::thread::sleep(Duration::from_millis(50));
    };
    list.iter()
        .map(|run| client.expect(200, "GET", &format!("/simulations/runs/{}", text(&run["id"])), None))
        .collect()
}

/// Each tool call in a transcript was sent with its id and arguments, and no other calls were sent.
fn check_tools(runs: &[Value], tool: &Receiver) -> usize {
    let mut expected: BTreeMap<String, Value> = BTreeMap::new();
    for run in runs {
        assert_eq!(run["passed"], true, "{run:#}");
        let rows = run["call"]["transcript"].as_array().expect("a transcript");
        let of_endpoint = |row: &&Value| row["tool_name"] != MOCKED_TOOL;
        for row in rows.iter().filter(|row| row["role"] == "tool_call").filter(of_endpoint) {
            let twice = expected.insert(text(&row["tool_call_id"]), row["arguments"].clone());
            assert!(twice.is_none(), "two calls have the same id: {row}");
        }
        let results = || rows.iter().filter(|row| row["role"] == "tool_result");
        let mocked: Vec<&Value> = results().filter(|row| !of_endpoint(row)).map(|row| &row["text"]).collect();
        assert!(mocked.is_empty() || mocked == MOCKED_RESULTS, "{mocked:?}");
        for row in results().filter(of_endpoint) {
            assert_eq!((&row["text"], &row["is_error"]), (&json!("ok"), &json!(false)), "{row}");
        }
    }
    let mut sent: BTreeMap<String, Value> = BTreeMap::new();
    for one in tool.received() {
        let body: Value = serde_json::from_slice(&one.body).expect("a whole body");
        let id = one.header("idempotency-key").to_owned();
        let arguments = body["arguments"].clone();
        let first = sent.entry(id).or_insert_with(|| arguments.clone());
        assert_eq!(*first, arguments, "every request of a call has the same arguments");
    }
    assert_eq!(sent, expected, "the sent calls match the transcripts");
    expected.len()
}

/// Each run has its four events, each with one id; repeated requests are identical.
fn check_events(runs: &[Value], webhook: &Receiver) -> usize {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for received in webhook.received() {
            let body: Value = serde_json::from_slice(&received.body).expect("a whole body");
            let id = text(&body["id"]);
            let first = bodies.entry(id.clone()).or_insert_with(|| received.body.clone());
            assert_eq!(*first, received.body);
            let data = &body["data"];
            let subject = data["call"]["id"].as_str().or(data["run"]["id"].as_str()).expect("a subject");
            told.entry(format!("{} {subject}", text(&body["type"]))).or_default().insert(id);
        }
        let each = |run: &Value| {
            let (run_id, call_id) = (text(&run["id"]), text(&run["call_id"]));
            [
                format!("call.started {call_id}"),
                format!("call.ended {call_id}"),
                format!("call.analyzed {call_id}"),
                format!("simulation.run.completed {run_id}"),
            ]
        };
        let expected: BTreeSet<String> = runs.iter().flat_map(each).collect();
        let arrived: BTreeSet<String> = told.keys().cloned().collect();
        if arrived == expected {
            assert!(told.values().all(|ids| ids.len() == 1), "one id per event: {told:?}");
            return expected.len();
        }
        let missing: Vec<_> = expected.difference(&arrived).collect();
        assert!(
            Instant::now() < deadline,
            "missing {missing:?}, unexpected {:?}",
            arrived.difference(&expected)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}
