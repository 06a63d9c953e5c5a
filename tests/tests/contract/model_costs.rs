//! The cost of model requests is counted even if their results could not be stored. Always on the Sandbox, over a
//! database that fails on demand.
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::JOB_LEASE_MS;
use sidetone_engine::ports::{HttpReply, HttpRequest};
use sidetone_engine::storage::jobs::JobKind;
use sidetone_tests::faults::{FaultyDatabase, StorageFault};
use sidetone_tests::{Created, World};

/// The cost of each request in this file.
const REQUEST_MICROUSD: i64 = 11;

/// The number of model requests.
#[derive(Default)]
struct ModelRequests {
    total: AtomicI64,
    analyses: AtomicI64,
}

impl ModelRequests {
    fn total(&self) -> i64 {
        self.total.load(Ordering::SeqCst)
    }

    fn analyses(&self) -> i64 {
        self.analyses.load(Ordering::SeqCst)
    }
}

/// A service whose storage fails on the second write after the first analysis is requested.
fn world() -> (World, Arc<ModelRequests>, Created) {
    failing_at(Some(2))
}

/// A service whose storage fails on this write after the first analysis is requested.
fn failing_at(write: Option<usize>) -> (World, Arc<ModelRequests>, Created) {
    let database = Arc::new(FaultyDatabase::default());
    let rates = r#"{"openai/m": {"input_microusd_per_1m_tokens": 1000000, "output_microusd_per_1m_tokens": 1000000}}"#;
    let settings = [("SIDETONE_OPENAI_API_KEY", "sk-hush"), ("SIDETONE_MODELS", rates)];
    let world = World::over_with(database.clone(), &settings);
    let requests = Arc::<ModelRequests>::default();
    let counts = requests.clone();
    world.sandbox().unwrap().answer_http_with(move |request: &HttpRequest| {
        counts.total.fetch_add(1, Ordering::SeqCst);
        let mut words = "It is on its way.";
        if String::from_utf8_lossy(&request.body).contains("You look back") {
            if counts.analyses.fetch_add(1, Ordering::SeqCst) == 0
                && let Some(write) = write
            {
                database.fail_write(write, StorageFault::Before);
            }
            words = r#"{"summary": "An order.", "sentiment": "neutral"}"#;
        }
        let body = json!({"choices": [{"message": {"content": words}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 1}});
        Ok(HttpReply { status: 200, headers: Vec::new(), body: body.to_string().into() })
    });
    let assistant = world
        .create("/assistants", json!({"name": "Shop", "instructions": "Be brief.", "model": "openai/m"}));
    (world, requests, assistant)
}

#[test]
fn a_run_whose_end_is_written_later_is_analyzed_once() {
    let (world, requests, assistant) = world();
    let persona = world.create(
        "/simulations/personas",
        json!({"name": "Ada", "system_prompt": "You are in a hurry.", "model": "builtin/rules"}),
    );
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Order", "instructions": "Ask \"Where is order A-17?\".", "evaluations": []}),
    );
    let simulation = world.create(
        "/simulations",
        json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
    );
    world.patch("/workspace", json!({"monthly_spend_limit_microusd": 5_000})).ok();
    let run = world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
    let sandbox = world.sandbox().unwrap();
    assert_eq!(incidents(&world), 1);
    let read = || world.get(format!("/simulations/runs/{}", run.id)).ok().json;
    assert_eq!((requests.analyses(), &read()["status"]), (1, &json!("running")), "the end was not stored");
    // The run holds its money until the next process has ended it.
    let reserved = || world.get("/workspace").ok()["reserved_microusd"].clone();
    assert_eq!((reserved(), &read()["max_cost_microusd"]), (json!(5_000), &json!(5_000)));
    sandbox.advance(JOB_LEASE_MS);
    let over = world.settle(&run.id);
    assert_eq!(reserved(), 0);
    assert_eq!((&over["status"], requests.analyses()), (&json!("completed"), 1), "{over:#}");
    assert_eq!(over["call"]["analysis"]["method"], "model");
    let cost = requests.total() * REQUEST_MICROUSD;
    assert_eq!(
        (&over["cost_microusd"], &over["call"]["costs"]["llm_microusd"]),
        (&json!(cost), &json!(cost))
    );
    assert_eq!(this_month(&world), json!(cost));
}

#[test]
fn a_repeated_analysis_is_charged_again() {
    let (world, requests, assistant) = world();
    let mut client = world.start_conversation(&assistant.id);
    let call_id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    client.say("Where is order A-17?");
    client.hear();
    client.send(r#"{"type": "hang_up"}"#);
    client.rest();
    let sandbox = world.sandbox().unwrap();
    assert_eq!(incidents(&world), 1);
    assert_eq!(requests.analyses(), 1);
    assert!(
        world.get(format!("/calls/{call_id}")).ok().json["analysis"].is_null(),
        "the analysis was not stored"
    );
    sandbox.advance(JOB_LEASE_MS);
    assert_eq!(world.settled_call(&call_id)["analysis"]["method"], "model");
    assert_eq!(requests.analyses(), 2);
    assert_eq!(this_month(&world), json!(requests.total() * REQUEST_MICROUSD));
}

/// A call that is deleted while it is analyzed holds no money back, not even if the process dies over it.
#[test]
fn a_call_that_is_deleted_during_its_analysis_holds_no_money() {
    for fails_at in [None, Some(2)] {
        let (world, requests, assistant) = failing_at(fails_at);
        world.patch("/workspace", json!({"monthly_spend_limit_microusd": 5_000})).ok();
        let mut client = world.start_conversation(&assistant.id);
        let call_id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
        client.say("Where is order A-17?");
        client.hear();
        let (other, path) = (world.clone(), format!("/calls/{call_id}"));
        client.send(r#"{"type": "hang_up"}"#);
        client.rest();
        let sandbox = world.sandbox().unwrap();
        sandbox.meanwhile(move || {
            other.delete(&path).empty();
        });
        incidents(&world);
        assert_eq!(requests.analyses(), 1);
        world.get(format!("/calls/{call_id}")).refused("not_found");
        let reserved = || world.get("/workspace").ok()["reserved_microusd"].as_i64().unwrap();
        assert_eq!(reserved() > 0, fails_at.is_some());
        while block_on(sandbox.services().sweep()).unwrap().more {}
        assert_eq!(reserved(), 0);
    }
}

/// Runs due jobs once; returns the number of failures.
fn incidents(world: &World) -> usize {
    let engine = world.sandbox().unwrap().services();
    block_on(engine.run_due_jobs("sandbox", JobKind::ALL, 32)).unwrap().incidents.len()
}

fn this_month(world: &World) -> Value {
    world.get("/workspace").ok()["spent_this_month_microusd"].clone()
}
