//! The memory of conversations: an assistant counts once, what does not fit is refused or waits, and what ends gives back.
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use sidetone_tests::{LiveClient, World};

/// The least budget.
const SETTINGS: &[(&str, &str)] = &[("SIDETONE_MEMORY_MB", "24")];

/// Numbers the tools: their names are unique in a workspace.
static TOOLS: AtomicUsize = AtomicUsize::new(0);

/// An assistant with 64 tools, as many as one can have, that takes half of the memory.
fn large_assistant(world: &World) -> String {
    assistant_with_tools(world, 1_380, &"🎧".repeat(1_900))
}

/// An assistant with 64 tools of 27 KB, that takes a third of the memory and can be run: a snapshot has at most 1.8 MB.
fn assistant_to_run(world: &World) -> String {
    assistant_with_tools(world, 1_170, "")
}

fn assistant_with_tools(world: &World, choices: usize, description: &str) -> String {
    let words: Vec<String> = (0..choices).map(|n| format!("choice number {n:06}")).collect();
    let parameters = json!({"type": "object", "properties": {"choice": {"type": "string", "enum": words}}});
    let tools: Vec<String> = (0..64)
        .map(|_| {
            let number = TOOLS.fetch_add(1, Ordering::Relaxed);
            let tool = json!({"name": format!("tool_{number}"), "url": "https://tools.example/x",
                "parameters": parameters, "description": description});
            world.create("/tools", tool).id
        })
        .collect();
    let assistant = world.create("/assistants", json!({"name": "Large", "instructions": "Be kind."}));
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": tools})).ok();
    assistant.id
}

/// A conversation, or the status of its refusal.
fn connect<'a>(world: &'a World, assistant: &str) -> Result<LiveClient<'a>, u16> {
    let token = world.test_token(assistant);
    world.connect(token["websocket_url"].as_str().unwrap()).map_err(|refusal| refusal.status)
}

fn start_run(world: &World, assistant: &str) -> String {
    let simulation = world.simulation_of(assistant);
    world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7})).id
}

#[test]
fn an_assistant_in_use_counts_once() {
    let world = World::with_settings(SETTINGS);
    let large = large_assistant(&world);
    let open: Vec<_> = std::iter::from_fn(|| connect(&world, &large).ok()).take(100).collect();
    assert!((8..40).contains(&open.len()), "{}", open.len());
    let other = world.other();
    let small = other.assistant().id;
    assert!(connect(&other, &small).is_ok(), "another workspace finds room");
}

#[test]
fn a_conversation_that_is_recorded_counts_for_its_recording() {
    let world = World::with_settings(SETTINGS);
    let rooms = [true, false].map(|record| {
        let body =
            json!({"name": "Desk", "instructions": "Be kind.", "voice": "builtin/tone", "record": record});
        let assistant = world.create("/assistants", body).id;
        let spoken = || {
            let url = world.test_token(&assistant)["websocket_url"].as_str().unwrap().to_owned();
            world.connect(&format!("{url}&audio=tone")).ok()
        };
        let open: Vec<_> = std::iter::from_fn(spoken).take(100).collect();
        let count = open.len();
        drop(open);
        world.sandbox().unwrap().kill_conversations();
        count
    });
    let [recorded, unrecorded] = rooms;
    assert!(recorded > 4 && recorded * 2 < unrecorded, "{rooms:?}");
}

#[test]
fn memory_that_is_given_back_is_free_for_the_next() {
    let world = World::with_settings(SETTINGS);
    let (one, other) = (large_assistant(&world), large_assistant(&world));
    for assistant in [&one, &other, &one] {
        let mut client = connect(&world, assistant).unwrap();
        let another = if assistant == &one { &other } else { &one };
        let token = world.test_token(another);
        let url = token["websocket_url"].as_str().unwrap();
        let refusal = world.connect(url).err().unwrap();
        assert_eq!(refusal.status, 503);
        let path = url.split_once(".example").unwrap().1;
        world.get(path).refused("unavailable");
        client.send(r#"{"type": "hang_up"}"#);
        client.rest();
        drop(client);
        drop(world.connect(url).expect("the token is still valid"));
        world.sandbox().unwrap().kill_conversations();
    }
}

#[test]
fn a_change_reaches_the_next_conversation_and_not_those_under_way() {
    let world = World::with_settings(SETTINGS);
    let assistant = world
        .create("/assistants", json!({"name": "Desk", "instructions": "Be kind.", "first_message": "One."}));
    let tool = world.create(
        "/tools",
        json!({"name": "refund", "url": "https://tools.example/x", "description": "Refunds money."}),
    );
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let mut before = connect(&world, &assistant.id).unwrap();
    before.expect("call_started");
    assert_eq!(before.hear(), "One.");
    world.patch(format!("/tools/{}", tool.id), json!({"description": "Cancels orders."})).ok();
    let mut after = connect(&world, &assistant.id).unwrap();
    after.expect("call_started");
    assert_eq!(after.hear(), "One.");
    world.patch(format!("/assistants/{}", assistant.id), json!({"first_message": "Two."})).ok();
    let mut last = connect(&world, &assistant.id).unwrap();
    last.expect("call_started");
    assert_eq!(last.hear(), "Two.");
    for (client, helps_with) in
        [(&mut before, "refunds money"), (&mut after, "cancels orders"), (&mut last, "cancels orders")]
    {
        client.say("Whatever is that?");
        let answer = client.hear().to_lowercase();
        assert!(answer.contains(helps_with), "{answer}");
    }
}

#[test]
fn a_run_waits_for_memory_and_loses_no_attempt() {
    let world = World::with_settings(SETTINGS);
    let sandbox = world.sandbox().unwrap();
    let client = connect(&world, &large_assistant(&world)).unwrap();
    let run = start_run(&world, &assistant_to_run(&world));
    for _ in 0..20 {
        sandbox.run_jobs();
        let run = world.get(format!("/simulations/runs/{run}")).ok();
        assert_eq!((&run["status"], &run["started_at"]), (&json!("queued"), &json!(null)), "{run:?}");
        sandbox.advance(5_000);
    }
    drop(client);
    sandbox.kill_conversations();
    sandbox.advance(30_000);
    assert_eq!(world.settle(&run)["status"], "completed");
}

#[test]
fn a_run_shares_the_assistant_of_a_conversation() {
    let world = World::with_settings(SETTINGS);
    let sandbox = world.sandbox().unwrap();
    let (used, other) = (assistant_to_run(&world), assistant_to_run(&world));
    let filler = assistant_with_tools(&world, 600, "");
    let _clients = [&filler, &used].map(|assistant| connect(&world, assistant).unwrap());
    let other = start_run(&world, &other);
    let run = start_run(&world, &used);
    sandbox.run_jobs();
    assert_eq!(world.get(format!("/simulations/runs/{run}")).ok()["status"], "completed");
    let waiting = world.get(format!("/simulations/runs/{other}")).ok();
    assert_eq!(waiting["status"], "queued", "there is no memory for a second such assistant");
    sandbox.kill_conversations();
    sandbox.advance(30_000);
    assert_eq!(world.settle(&other)["status"], "completed");
}
