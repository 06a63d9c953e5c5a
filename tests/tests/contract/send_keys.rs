//! The field `keys` of an assistant. What is pressed on a telephone is in `phones/keys.rs`.
use serde_json::{Value, json};
use sidetone_tests::{Created, World};

fn with_keys(world: &World) -> Created {
    world.create("/assistants", json!({"name": "Caller", "instructions": "Be kind.", "keys": true}))
}

fn send_keys(world: &World) -> Created {
    world.create("/tools", json!({"name": "send_keys", "url": "https://example.com/hook"}))
}

#[test]
fn an_assistant_with_keys_has_no_other_tool_of_that_name() {
    let world = World::new();
    let (assistant, tool, other) = (with_keys(&world), send_keys(&world), world.a_tool());
    let path = format!("/assistants/{}", assistant.id);
    let refused = |reply: sidetone_tests::Reply, field: &str| {
        let error = reply.refused("validation_failed").naming(&[field]).json["error"].clone();
        assert!(error.to_string().contains("with `keys` has a tool `send_keys` of its own"), "{error}");
    };
    refused(world.put(format!("{path}/tools"), json!({"tool_ids": [other.id, tool.id]})), "tool_ids");
    world.put(format!("{path}/tools"), json!({"tool_ids": [other.id]})).ok();
    // Neither by another way.
    world.patch(&path, json!({"keys": false})).ok();
    world.put(format!("{path}/tools"), json!({"tool_ids": [tool.id]})).ok();
    refused(world.patch(&path, json!({"keys": true})), "keys");
    world.patch(format!("/tools/{}", tool.id), json!({"name": "post_keys"})).ok();
    world.patch(&path, json!({"keys": true})).ok();
    refused(world.patch(format!("/tools/{}", tool.id), json!({"name": "send_keys"})), "name");
    let read = world.get(&path).ok();
    assert_eq!((&read["keys"], &read["tool_ids"]), (&json!(true), &json!([tool.id])));
    assert_eq!(world.get(format!("/tools/{}", tool.id)).ok()["name"], "post_keys");
}

#[test]
fn a_revision_whose_tool_got_that_name_is_not_restored() {
    let world = World::new();
    let (assistant, tool) = (with_keys(&world), world.a_tool());
    let path = format!("/assistants/{}", assistant.id);
    world.put(format!("{path}/tools"), json!({"tool_ids": [tool.id]})).ok();
    world.patch(&path, json!({"keys": false})).ok();
    world.patch(format!("/tools/{}", tool.id), json!({"name": "send_keys"})).ok();
    world.post(format!("{path}/revisions/2/restore"), json!({})).refused("validation_failed");
    let restored = world.post(format!("{path}/revisions/1/restore"), json!({})).ok();
    assert_eq!((&restored["keys"], &restored["tool_ids"]), (&json!(true), &json!([])));
}

/// Nobody in a simulation has a telephone.
#[test]
fn a_run_presses_no_keys() {
    let world = World::new();
    let assistant = with_keys(&world);
    let persona = world.create("/simulations/personas", json!({"name": "Menu", "system_prompt": "A menu."}));
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Menu", "instructions": "Say \"Please press the key 2 for sales.\"",
               "evaluations": [{"kind": "tool_call", "role": "any", "includes": "send_keys"}]}),
    );
    let simulation = world.create(
        "/simulations",
        json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
    );
    for mode in ["chat", "voice"] {
        let run = world.create(&format!("/simulations/{}/runs", simulation.id), json!({"mode": mode}));
        let run: Value = world.settle(&run.id);
        assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(false)), "{run}");
        let rows = run["call"]["transcript"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["role"] != "tool_call"), "{rows:?}");
    }
}
