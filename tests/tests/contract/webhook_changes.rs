//! Webhooks created, deleted or disabled during a conversation: its end goes to the webhooks of that moment.
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sidetone_engine::ports::HttpReply;
use sidetone_tests::{Created, World};

use crate::deliveries::list;

/// The webhooks at the start of the conversation.
struct Hooks {
    stays: Created,
    deleted: Created,
    disabled: Created,
}

impl Hooks {
    fn new(world: &World) -> Self {
        Self { stays: hook(world), deleted: hook(world), disabled: hook(world) }
    }

    /// Deletes one webhook, disables one, and creates a new one.
    fn change(&self, world: &World) -> Created {
        world.delete(format!("/webhooks/{}", self.deleted.id)).empty();
        world.patch(format!("/webhooks/{}", self.disabled.id), json!({"enabled": false})).ok();
        hook(world)
    }

    #[track_caller]
    fn check(&self, world: &World, newcomer: &Created, expected: &[&str]) {
        assert_eq!(told(world, newcomer), expected, "the new webhook");
        assert_eq!(told(world, &self.stays), expected, "the unchanged webhook");
        assert_eq!(told(world, &self.disabled), [""; 0], "the disabled webhook");
        world.get(format!("/webhooks/{}/deliveries", self.deleted.id)).refused("not_found");
    }
}

/// Subscribes to events at the end only, so that no delivery precedes the change.
fn hook(world: &World) -> Created {
    let events = ["call.ended", "call.analyzed", "simulation.run.completed"];
    world.create("/webhooks", json!({"url": "https://receiver.example/", "events": events}))
}

/// The event types of its deliveries, oldest first.
fn told(world: &World, hook: &Created) -> Vec<String> {
    let deliveries = list(world, hook, "");
    deliveries.iter().rev().map(|one| one["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_live_conversation_notifies_the_webhooks_at_its_end() {
    let world = World::new();
    let hooks = Hooks::new(&world);
    let mut client = world.start_conversation(&world.assistant().id);
    let call_id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    let newcomer = hooks.change(&world);
    client.send(r#"{"type": "hang_up"}"#);
    client.expect("call_ended");
    world.settled_call(&call_id);
    hooks.check(&world, &newcomer, &["call.ended", "call.analyzed"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_run_that_waits_for_a_tool_notifies_the_webhooks_at_its_end() {
    let world = World::with_manual_clock();
    let assistant = world.create("/assistants", json!({"name": "Shop", "instructions": "Be brief."}));
    let parameters = json!({"type": "object", "required": ["order_id"],
        "properties": {"order_id": {"type": "string", "description": "The order's number"}}});
    let tool = world.create(
        "/tools",
        json!({"name": "order_status", "description": "Looks up the status of an order.",
               "url": "https://shop.example/order-status", "parameters": parameters}),
    );
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let run = run_of(&world, &assistant, json!({"name": "Ada", "system_prompt": "You are in a hurry."}));
    let requests = changed_during(&world, &run, |_| HttpReply {
        status: 200,
        headers: Vec::new(),
        body: json!({"status": "shipped"}).to_string().into(),
    });
    assert_eq!(requests, 1, "the tool was called");
}

#[test]
fn a_run_that_waits_for_a_model_notifies_the_webhooks_at_its_end() {
    let world = World::with_settings(&[("SIDETONE_OPENAI_API_KEY", "sk-hush")]);
    let assistant = world.create(
        "/assistants",
        json!({"name": "Shop", "instructions": "Be brief.", "model": "openai/some-model"}),
    );
    let persona = json!({"name": "Ada", "system_prompt": "You are in a hurry.", "model": "builtin/rules"});
    let run = run_of(&world, &assistant, persona);
    let requests = changed_during(&world, &run, |_| HttpReply {
        status: 200,
        headers: Vec::new(),
        body: json!({"choices": [{"message": {"content": "It is on its way."}, "finish_reason": "stop"}]})
            .to_string()
            .into(),
    });
    assert!(requests >= 1, "the model was asked");
}

fn run_of(world: &World, assistant: &Created, persona: Value) -> Created {
    let persona = world.create("/simulations/personas", persona);
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Order", "instructions": "Ask \"What is the status of order A-17?\".", "evaluations": []}),
    );
    let simulation = world.create(
        "/simulations",
        json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
    );
    world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}))
}

/// Executes the run and makes all changes during its first request; returns the number of requests except deliveries.
#[track_caller]
fn changed_during(
    world: &World,
    run: &Created,
    answer: impl Fn(&str) -> HttpReply + Send + Sync + 'static,
) -> usize {
    let sandbox = world.sandbox().unwrap();
    let hooks = Arc::new(Hooks::new(world));
    let newcomer = Arc::new(Mutex::new(None));
    sandbox.answer_http_with(move |request| Ok(answer(&request.url)));
    let (other, changed, made) = (world.clone(), hooks.clone(), newcomer.clone());
    sandbox.meanwhile(move || *made.lock().unwrap() = Some(changed.change(&other)));
    let run = world.settle(&run.id);
    assert_eq!(run["status"], "completed", "{run:#}");
    let newcomer = newcomer.lock().unwrap().take().expect("a request was sent");
    hooks.check(world, &newcomer, &["call.ended", "call.analyzed", "simulation.run.completed"]);
    sandbox.sent_http().iter().filter(|request| !request.url.contains("receiver.example")).count()
}
