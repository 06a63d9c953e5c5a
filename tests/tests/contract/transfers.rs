//! Assistants that hand conversations over to people: their configuration, and what happens where there is no telephone.
use serde_json::{Value, json};
use sidetone_tests::World;

fn sales() -> Value {
    json!({"name": "Sales", "number": "+442071838750", "when": "They want to buy something."})
}

/// An assistant on the built-in model that can hand over to two people.
fn desk(world: &World) -> String {
    let transfers = json!([sales(), {"name": "Support", "number": "+442071838751"}]);
    let body = json!({"name": "Desk", "instructions": "Be kind.", "transfers": transfers});
    world.create("/assistants", body).id
}

#[test]
fn an_assistant_lists_whom_it_can_hand_over_to() {
    let world = World::new();
    let path = format!("/assistants/{}", desk(&world));
    let support = json!({"name": "Support", "number": "+442071838751", "when": ""});
    assert_eq!(world.get(&path).ok()["transfers"], json!([sales(), support]));
    assert_eq!(world.patch(&path, json!({"transfers": []})).ok()["transfers"], json!([]));
    let restored = world.post(format!("{path}/revisions/1/restore"), json!({})).ok();
    assert_eq!(restored["transfers"], json!([sales(), support]));
    let with = |name: &str, value: Value| {
        let mut one = sales();
        one[name] = value;
        one
    };
    for (transfers, field) in [
        (json!([sales(), sales()]), "transfers[1].name"),
        (json!([with("name", json!(""))]), "transfers[0].name"),
        (json!([with("name", json!("x".repeat(65)))]), "transfers[0].name"),
        (json!([with("number", json!("0207 183 8750"))]), "transfers[0].number"),
        (json!([with("number", json!("sip:ada@example.com"))]), "transfers[0].number"),
        (json!([with("when", json!("x".repeat(501)))]), "transfers[0].when"),
        (json!([with("whom", json!("x"))]), "transfers[0].whom"),
        (json!([{"name": "Sales"}]), "transfers[0].number"),
        (
            Value::from((0..17).map(|nth| with("name", json!(format!("{nth}")))).collect::<Vec<_>>()),
            "transfers",
        ),
        (json!("Sales"), "transfers"),
    ] {
        world.patch(&path, json!({ "transfers": transfers })).refused("validation_failed").naming(&[field]);
    }
}

#[test]
fn a_simulation_shows_when_an_assistant_hands_over() {
    let world = World::new();
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Purchase", "instructions": "Say \"Please transfer me to Sales.\"",
               "evaluations": [{"kind": "tool_call", "role": "tool", "includes": "transfer_call"}]}),
    );
    let simulation =
        json!({"assistant_id": desk(&world), "persona_id": world.persona().id, "scenario_id": scenario.id});
    let simulation = world.create("/simulations", simulation);
    for mode in ["chat", "voice"] {
        let path = format!("/simulations/{}/runs", simulation.id);
        let run = world.post(path, json!({"mode": mode, "seed": 7})).created();
        let run = world.settle(run["id"].as_str().unwrap());
        assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(true)), "{run}");
        let call = world.get(format!("/calls/{}", run["call_id"].as_str().unwrap())).ok().json;
        assert_eq!((&call["ended_reason"], &call["outcome"]), (&json!("transferred"), &json!("completed")));
        let last = call["transcript"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["role"], "tool_result", "{call}");
        assert_eq!(last["text"], "Transferred. Nobody was called, because this is not a telephone call.");
    }
}

#[test]
fn a_test_in_the_browser_ends_where_a_call_would_be_handed_over() {
    let world = World::new();
    let assistant = desk(&world);
    let mut client = world.start_conversation(&assistant);
    let call_id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    client.say("Please transfer me to Sales.");
    assert_eq!(client.expect("tool_call")["name"], "transfer_call");
    assert_eq!(client.expect("tool_result")["is_error"], false);
    assert_eq!(client.expect("call_ended")["ended_reason"], "transferred");
    let call = world.settled_call(&call_id);
    assert_eq!((&call["ended_reason"], &call["fault"]), (&json!("transferred"), &json!("none")), "{call}");
    world.expect_replay(&call);
}

#[test]
fn an_attached_tool_cannot_have_the_name_of_the_one_that_hands_over() {
    let world = World::new();
    let tool = world.create("/tools", json!({"name": "transfer_call", "url": "https://example.com/hook"}));
    let assistant = format!("/assistants/{}", desk(&world));
    let refused = |reply: sidetone_tests::Reply, field: &str| {
        let message = reply.refused("validation_failed").naming(&[field]).json["error"].to_string();
        assert!(message.contains("with `transfers` has a tool `transfer_call` of its own"), "{message}");
    };
    let attached = json!({"tool_ids": [tool.id]});
    refused(world.put(format!("{assistant}/tools"), attached.clone()), "tool_ids");
    world.patch(format!("/tools/{}", tool.id), json!({"name": "renamed"})).ok();
    world.put(format!("{assistant}/tools"), attached).ok();
    refused(world.patch(format!("/tools/{}", tool.id), json!({"name": "transfer_call"})), "name");
    world.patch(&assistant, json!({"transfers": []})).ok();
    world.patch(format!("/tools/{}", tool.id), json!({"name": "transfer_call"})).ok();
    refused(world.patch(&assistant, json!({"transfers": [sales()]})), "transfers");
    // `keys` gives no tool of that name.
    world.patch(&assistant, json!({"keys": true})).ok();
}
