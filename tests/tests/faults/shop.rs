//! A client's day: it sets up a shop's assistant, changes it, tries it, and repeats requests without an
//! acknowledgement. The final state is the same whatever fails in between.
use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use regex::{Captures, Regex};
use serde_json::{Value, json};
use sidetone_tests::Reply;
use sidetone_tests::faults::{Counts, FaultHarness, FaultPlan};

/// More retries than this mean that a fault is permanent.
const TRIES_MAX: usize = 400;
/// Longer than any lease and any pause in this scenario.
const LONG_MS: i64 = 15 * 60 * 1000;
/// The maximum number of sweeps until every run must be over.
const SWEEPS_MAX: usize = 40;

/// The final state from the client's point of view.
pub struct Day {
    /// All readable state, with ids and times replaced by the order of their appearance.
    pub told: Vec<String>,
    /// The number of faults that occurred.
    pub counts: Counts,
}

/// Plays the day under a plan.
pub fn day(harness: &FaultHarness, plan: &FaultPlan) -> Day {
    let mut client = Client { harness, acknowledged: Vec::new(), deleted: Vec::new() };
    harness.start_plan(plan);
    let shop = client.shop();
    let runs = client.runs(&shop);
    let counts = harness.stop_plan();
    settle(harness, &runs);
    client.nothing_is_done_again(&runs);
    each_effect_has_one_id(harness, &runs);
    assert!(!harness.endpoint.calls().is_empty(), "the day includes tool calls");
    Day { told: client.told(&runs), counts }
}

/// Completes every run by the cron alone.
pub fn settle(harness: &FaultHarness, runs: &[String]) {
    for _ in 0..SWEEPS_MAX {
        let open = |run: &&String| {
            let status = harness.world.get(format!("/simulations/runs/{run}")).ok()["status"].clone();
            status == "queued" || status == "running"
        };
        if runs.iter().find(open).is_none() {
            return;
        }
        harness.pass(LONG_MS);
        harness.sweep();
    }
    panic!("a run is not over: {:?}", harness.world.get("/simulations/runs").ok().json);
}

/// The endpoint received exactly the calls in the transcripts, each with one id.
pub fn each_effect_has_one_id(harness: &FaultHarness, runs: &[String]) {
    let mut heard: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for call in harness.endpoint.calls() {
        heard.entry(call.run_id).or_default().insert(call.id);
    }
    for run_id in runs {
        let run = harness.world.get(format!("/simulations/runs/{run_id}")).ok();
        let rows = run["call"]["transcript"].as_array().expect("a transcript").iter();
        let called: BTreeSet<String> = rows
            .filter(|row| row["role"] == "tool_call")
            .map(|row| row["tool_call_id"].as_str().expect("every call has an id").to_owned())
            .collect();
        assert_eq!(heard.remove(run_id).unwrap_or_default(), called, "{run_id}");
    }
    assert!(heard.is_empty(), "calls of unknown runs: {heard:?}");
}

struct Shop {
    assistant: String,
    simulations: [String; 2],
}

struct Client<'a> {
    harness: &'a FaultHarness,
    /// Created resources: path, Idempotency-Key, body, response.
    acknowledged: Vec<(String, String, Value, Value)>,
    /// Paths of what was deleted.
    deleted: Vec<String>,
}

impl Client<'_> {
    fn shop(&mut self) -> Shop {
        let tool = self.create(
            "/tools",
            json!({"name": "order_status", "url": self.harness.endpoint.url(), "description": "Looks up the status of an order",
                   "parameters": {"type": "object", "properties": {}}}),
        );
        let hours =
            self.create("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."}));
        let assistant = self.create(
            "/assistants",
            json!({"name": "Desk", "instructions": "Be brief.", "first_message": "Shop, hello!"}),
        );
        let path = format!("/assistants/{assistant}");
        self.put(&format!("{path}/tools"), json!({"tool_ids": [tool]}));
        self.put(&format!("{path}/knowledge"), json!({"knowledge_ids": [hours]}));
        self.patch(&path, 3, json!({"name": "Front desk"}));
        let persona =
            self.create("/simulations/personas", json!({"name": "Ada", "system_prompt": "Be kind."}));
        let simulations = [
            "Ask \"When do you open on Saturday?\"",
            "Ask \"What is the status of my order?\" Then ask \"And what is the status of the other order?\"",
        ]
        .map(|instructions| {
            let evaluations = json!([{"kind": "transcript", "role": "assistant", "includes": "open at ten"}]);
            let scenario = self.create(
                "/simulations/scenarios",
                json!({"name": "Question", "instructions": instructions, "evaluations": evaluations}),
            );
            let body = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
            self.create("/simulations", body)
        });
        self.patch(&path, 4, json!({"instructions": "Be very brief."}));
        let spare = self.create("/knowledge", json!({"name": "Spare", "content": "Nobody needs it."}));
        self.delete(&format!("/knowledge/{spare}"));
        self.create("/webhooks", json!({"url": "https://example.com/events", "events": ["call.ended"]}));
        Shop { assistant, simulations }
    }

    /// Starts runs, one by one and as a batch, while the clock and the cron advance.
    fn runs(&mut self, shop: &Shop) -> Vec<String> {
        let mut runs = Vec::new();
        for (seed, simulation) in shop.simulations.iter().cycle().take(4).enumerate() {
            runs.push(self.create(&format!("/simulations/{simulation}/runs"), json!({"seed": seed})));
            self.harness.pass(20_000);
        }
        self.harness.sweep();
        let body = json!({"assistant_id": shop.assistant, "seed": 99});
        let batch = self.post("/simulations/runs/batch", body);
        let of_batch = batch["runs"].as_array().expect("a batch lists its runs").iter();
        runs.extend(of_batch.map(|run| run["id"].as_str().expect("an id").to_owned()));
        self.harness.pass(70_000);
        self.harness.sweep();
        self.patch(&format!("/assistants/{}", shop.assistant), 5, json!({"name": "Night desk"}));
        runs
    }

    fn create(&mut self, path: &str, body: Value) -> String {
        self.post(path, body)["id"].as_str().expect("an id").to_owned()
    }

    fn post(&mut self, path: &str, body: Value) -> Value {
        let key = format!("request {}", self.acknowledged.len());
        let answer = self.answered(Method::POST, path, Some(&body), &[("idempotency-key", &key)]);
        let json = answer.created().json;
        self.acknowledged.push((path.to_owned(), key, body, json.clone()));
        json
    }

    fn put(&self, path: &str, body: Value) {
        self.answered(Method::PUT, path, Some(&body), &[]).ok();
    }

    /// A change of the revision that the client knows. If the first try was committed without
    /// acknowledgement, the retry finds its own change.
    fn patch(&self, path: &str, revision: u64, body: Value) {
        let if_match = format!("\"{revision}\"");
        let reply = self.answered(Method::PATCH, path, Some(&body), &[("if-match", &if_match)]);
        if reply.status == 409 {
            reply.refused("revision_conflict");
        } else {
            reply.ok();
        }
        let read = self.answered(Method::GET, path, None, &[]).ok();
        assert_eq!(read["revision"], revision + 1, "the change was applied once");
        let body = body.as_object().expect("a PATCH is an object");
        body.iter().for_each(|(name, value)| assert_eq!(read[name.as_str()], *value));
    }

    fn delete(&mut self, path: &str) {
        let reply = self.answered(Method::DELETE, path, None, &[]);
        if reply.status == 404 {
            reply.refused("not_found");
        } else {
            reply.empty();
        }
        self.deleted.push(path.to_owned());
    }

    /// Repeats a request until the response is not retryable.
    fn answered(&self, method: Method, path: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> Reply {
        for _ in 0..TRIES_MAX {
            let reply = self.harness.call(method.clone(), path, body, headers);
            if reply.status != 503 {
                return reply;
            }
            let reply = reply.refused("unavailable");
            assert!(reply.header("retry-after").is_some(), "{reply:?}");
        }
        panic!("{method} {path}: never answered")
    }

    /// Repeats all acknowledged requests and runs the queue and the cron once more; nothing must change.
    fn nothing_is_done_again(&self, runs: &[String]) {
        let calls = self.harness.endpoint.calls().len();
        for (path, key, body, answer) in &self.acknowledged {
            let again = self.harness.call(Method::POST, path, Some(body), &[("idempotency-key", key)]);
            if self.deleted.contains(&format!("{path}/{}", answer["id"].as_str().unwrap_or_default())) {
                again.refused("not_found");
                continue;
            }
            let again = again.created();
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path}");
            assert_eq!(again.json, *answer, "{path}");
        }
        self.harness.pass(LONG_MS);
        self.harness.sweep();
        assert_eq!(self.harness.endpoint.calls().len(), calls, "a completed run sends no calls");
        let list = self.harness.world.get("/simulations/runs").ok();
        assert_eq!(list["pagination"]["total"], runs.len(), "{list:?}");
    }

    fn told(&self, runs: &[String]) -> Vec<String> {
        let lists = [
            "/assistants",
            "/tools",
            "/knowledge",
            "/webhooks",
            "/simulations/personas",
            "/simulations/scenarios",
            "/simulations",
        ];
        let runs = runs.iter().map(|run| format!("/simulations/runs/{run}"));
        let paths = lists.map(str::to_owned).into_iter().chain(runs);
        // A snapshot's id is a digest of a configuration that contains ids and ports.
        let named = r"[a-z]+_[0-9a-hjkmnp-tv-z]{26}|\b[0-9a-f]{64}\b|whsec_[\w+/=]+";
        let time_or_port = r"\d{4}-\d\d-\d\dT[\d:.]+Z|127\.0\.0\.1:\d+";
        let volatile = Regex::new(&format!("({named})|{time_or_port}")).expect("a pattern");
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        paths
            .map(|path| {
                let text = self.harness.world.get(&path).ok().json.to_string();
                let named = volatile.replace_all(&text, |found: &Captures<'_>| {
                    if found.get(1).is_none() {
                        return "<time or port>".to_owned();
                    }
                    let count = names.len();
                    format!("<{}>", *names.entry(found[0].to_owned()).or_insert(count))
                });
                named.into_owned()
            })
            .collect()
    }
}
