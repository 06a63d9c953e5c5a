//! Metadata: kept with resources, runs and calls, filtered by, and sent along.
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::visitor::Visitor;
use sidetone_tests::{Reply, World};

const SOON: Duration = Duration::from_secs(30);

/// A body that creates a resource at each of these paths.
fn bodies(world: &World) -> [(&'static str, Value); 7] {
    [
        ("/assistants", json!({"name": "Desk", "instructions": "Be kind."})),
        ("/tools", json!({"name": "find_slot", "url": "https://example.com/slots"})),
        ("/knowledge", json!({"name": "Hours", "content": "We open at ten."})),
        ("/webhooks", json!({"url": "https://receiver.example/", "events": ["*"]})),
        ("/simulations/personas", json!({"name": "Ada", "system_prompt": "You are in a hurry."})),
        ("/simulations/scenarios", json!({"name": "Booking", "instructions": "Book a table."})),
        (
            "/simulations",
            json!({"assistant_id": world.assistant().id, "persona_id": world.persona().id,
                   "scenario_id": world.scenario().id}),
        ),
    ]
}

/// The metadata of the resource, from its list where it has no read of its own.
fn read(world: &World, path: &str, id: &str) -> Value {
    let list = world.get(path).ok().json;
    let listed = list.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap()["metadata"].clone();
    if path != "/webhooks" {
        assert_eq!(world.get(format!("{path}/{id}")).ok()["metadata"], listed, "{path}");
    }
    listed
}

#[test]
fn every_resource_keeps_it() {
    let world = World::new();
    for (path, mut body) in bodies(&world) {
        body["metadata"] = json!({"order id": "7", "é": "", "a.b": "x y"});
        let made = world.create(path, body.clone());
        assert_eq!(made["metadata"], body["metadata"], "{path}");
        assert_eq!(read(&world, path, &made.id), body["metadata"]);
        let one = format!("{path}/{}", made.id);
        // Other fields leave it alone, and a new one replaces all of it.
        let other = if path == "/webhooks" { json!({"enabled": false}) } else { json!({"name": "renamed"}) };
        assert_eq!(world.patch(&one, other).ok()["metadata"], body["metadata"], "{path}");
        let changed = world.patch(&one, json!({"metadata": {"a": "1"}})).ok();
        assert_eq!(changed["metadata"], json!({"a": "1"}), "{path}");
        assert_eq!(read(&world, path, &made.id), json!({"a": "1"}));
        let again = world.patch(&one, json!({"metadata": {"a": "1"}})).ok();
        assert_eq!(again.json, changed.json, "{path}: nothing has changed");
        assert_eq!(world.patch(&one, json!({"metadata": {}})).ok()["metadata"], json!({}), "{path}");
        world.other().patch(&one, json!({"metadata": {"a": "2"}})).refused("not_found");
    }
}

#[test]
fn a_number_keeps_it_until_it_is_given_another() {
    let world = World::new();
    let mut body =
        json!({"assistant_id": world.assistant().id, "provider": "twilio", "metadata": {"team": "sales"}});
    let path = &format!("/numbers/{}", world.phone_number());
    assert_eq!(world.put(path, body.clone()).ok()["metadata"], json!({"team": "sales"}));
    body.as_object_mut().unwrap().remove("metadata");
    assert_eq!(world.put(path, body.clone()).ok()["metadata"], json!({"team": "sales"}));
    body["region"] = json!("ie1");
    assert_eq!(world.put(path, body.clone()).ok()["metadata"], json!({"team": "sales"}));
    assert_eq!(world.get("/numbers").ok().json[0]["metadata"], json!({"team": "sales"}));
    body["metadata"] = json!({});
    assert_eq!(world.put(path, body).ok()["metadata"], json!({}));
}

#[test]
fn a_restored_revision_has_that_of_its_time() {
    let world = World::new();
    let body = json!({"name": "Desk", "instructions": "Be kind.", "metadata": {"stage": "one"}});
    let path = format!("/assistants/{}", world.create("/assistants", body).id);
    assert_eq!(world.patch(&path, json!({"metadata": {"stage": "two"}})).ok()["revision"], 2);
    let restored = world.post(format!("{path}/revisions/1/restore"), json!({})).ok();
    assert_eq!((&restored["metadata"], &restored["revision"]), (&json!({"stage": "one"}), &json!(3)));
}

#[test]
fn what_is_wrong_with_it_is_named() {
    let world = World::new();
    let run = format!("/simulations/{}/runs", world.simulation().id);
    let many = |count: usize| -> Value { (0..count).map(|n| (format!("name {n}"), json!("x"))).collect() };
    let long = "x".repeat(65);
    for (bad, field) in [
        (json!({"": "x"}), "metadata.".to_owned()),
        (json!({long.clone(): "x"}), format!("metadata.{}…", &long[..64])),
        (json!({"a[b": "x"}), "metadata.a[b".to_owned()),
        (json!({"a\"b": "x"}), "metadata.a\"b".to_owned()),
        (json!({"a\nb": "x"}), "metadata.a\nb".to_owned()),
        (json!({"a": 1}), "metadata.a".to_owned()),
        (json!({"a": null}), "metadata.a".to_owned()),
        (json!({"a": ["x"]}), "metadata.a".to_owned()),
        (json!({"a": "x".repeat(513)}), "metadata.a".to_owned()),
        (json!({"a": "é".repeat(257)}), "metadata.a".to_owned()),
        (many(51), "metadata".to_owned()),
        ((0..9).map(|n| (n.to_string(), json!("x".repeat(500)))).collect(), "metadata".to_owned()),
        (json!([]), "metadata".to_owned()),
        (json!("x"), "metadata".to_owned()),
        (Value::Null, "metadata".to_owned()),
    ] {
        for (path, mut body) in bodies(&world) {
            body["metadata"] = bad.clone();
            world.post(path, body).refused("validation_failed").naming(&[&field]);
        }
        let body = json!({"metadata": bad});
        world.post(&run, body.clone()).refused("validation_failed").naming(&[&field]);
        let id = run.split('/').nth(2).unwrap();
        let over_mcp = world.tool("start_simulation_run", json!({"id": id, "confirm": true, "data": body}));
        over_mcp.refused("validation_failed").naming(&[&field]);
    }
    let longest = json!({"x".repeat(64): "é".repeat(256)});
    assert_eq!(world.create(&run, json!({"metadata": longest}))["metadata"], longest);
    world.create(&run, json!({"metadata": many(50)}));
}

/// Three calls of runs: two of the campaign `a`, one of `b`.
fn three_calls(world: &World) -> Vec<String> {
    let path = format!("/simulations/{}/runs", world.simulation().id);
    let call = |metadata: Value| {
        let run = world.create(&path, json!({"metadata": metadata}));
        assert_eq!(run["metadata"], metadata);
        let run = world.settle(&run.id);
        assert_eq!((&run["metadata"], &run["call"]["metadata"]), (&metadata, &metadata));
        run["call_id"].as_str().unwrap().to_owned()
    };
    vec![
        call(json!({"campaign": "a", "order id": "1"})),
        call(json!({"campaign": "a", "order id": "2", "note": "100% & more"})),
        call(json!({"campaign": "b", "order id": "1"})),
    ]
}

fn ids(list: &Reply) -> Vec<String> {
    let calls = list["calls"].as_array().unwrap();
    assert_eq!(list["stats"]["total"], calls.len(), "the statistics are of the same calls");
    assert_eq!(list["pagination"]["total"], calls.len());
    calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn calls_are_filtered_by_it() {
    let world = World::new();
    let calls = three_calls(&world);
    for (query, found) in [
        ("", vec![2, 1, 0]),
        ("metadata.campaign=a", vec![1, 0]),
        ("metadata.campaign=b", vec![2]),
        ("metadata.campaign=a&metadata.order%20id=1", vec![0]),
        // As clients write it that are made from the OpenAPI document.
        ("metadata%5Bcampaign%5D=a&metadata[order+id]=2", vec![1]),
        ("metadata.note=100%25%20%26%20more", vec![1]),
        ("metadata.campaign=A", vec![]),
        ("metadata.campaign=", vec![]),
        ("metadata.Campaign=a", vec![]),
        ("metadata.campaign=a&source=simulation&order=asc", vec![0, 1]),
        ("metadata.campaign=a&source=inbound", vec![]),
        ("metadata.campaign=a&date_from=2100-01-01", vec![]),
        ("metadata.campaign=a&sort=duration_ms&order=asc&page=1", vec![0, 1]),
    ] {
        let listed = ids(&world.get(format!("/calls?{query}")).ok());
        let mut wanted: Vec<String> = found.into_iter().map(|at| calls[at].clone()).collect();
        if query.contains("duration") {
            wanted = listed.clone();
            assert_eq!(wanted.len(), 2);
        }
        assert_eq!(listed, wanted, "{query}");
    }
    let both = format!("/calls?metadata.campaign=a&search={}", calls[0]);
    assert_eq!(ids(&world.get(both).ok()), [calls[0].clone()]);
    let neither = format!("/calls?metadata.campaign=b&search={}", calls[0]);
    assert_eq!(ids(&world.get(neither).ok()), [""; 0]);
    let page = world.get("/calls?metadata.campaign=a&limit=1").ok();
    assert_eq!((&page["calls"][0]["id"], &page["pagination"]["total"]), (&json!(calls[1]), &json!(2)));
    let next = world.get(page.next().expect("another page")).ok();
    assert_eq!(next["calls"][0]["id"], calls[0].as_str());
    let over_mcp = world.tool("list_calls", json!({"metadata": {"campaign": "a", "order id": "2"}})).ok();
    assert_eq!(over_mcp["calls"][0]["id"], calls[1].as_str());
    assert_eq!(over_mcp["stats"]["total"], 1);
    // Another workspace has none of them.
    let stranger = world.other();
    assert_eq!(ids(&stranger.get("/calls?metadata.campaign=a").ok()), [""; 0]);
    // Nobody finds a deleted call.
    world.delete(format!("/calls/{}", calls[0])).empty();
    assert_eq!(ids(&world.get("/calls?metadata.campaign=a").ok()), [calls[1].clone()]);
}

#[test]
fn a_filter_has_a_form_and_a_limit() {
    let world = World::new();
    for (query, code, field) in [
        ("metadata=a", "invalid_parameter", "metadata"),
        ("metadata.a=1&metadata.a=2", "invalid_parameter", "metadata.a"),
        ("metadata.a=1&metadata[a]=2", "invalid_parameter", "metadata[a]"),
        ("metadata[a=1", "validation_failed", "metadata[a"),
        ("metadata.=1", "validation_failed", "metadata."),
        ("metadat.a=1", "validation_failed", "metadat.a"),
        (
            "metadata.1=1&metadata.2=1&metadata.3=1&metadata.4=1&metadata.5=1&metadata.6=1",
            "validation_failed",
            "metadata",
        ),
    ] {
        world.get(format!("/calls?{query}")).refused(code).naming(&[field]);
    }
    // Other lists do not have it.
    world.get("/simulations/runs?metadata.a=1").refused("validation_failed").naming(&["metadata.a"]);
    for bad in [json!("a"), json!(7), json!([]), Value::Null] {
        world.tool("list_calls", json!({"metadata": bad})).refused("invalid_parameter").naming(&["metadata"]);
    }
    let mended = world.tool("list_calls", json!({"metadata": "{\"campaign\": \"a\"}"})).ok();
    assert_eq!(mended["calls"], json!([]));
}

#[test]
fn events_and_tools_are_told() {
    let world = World::with_fakes();
    let events = Receiver::start(ReceiverBehaviour::Status(204));
    let slots = Receiver::start(ReceiverBehaviour::Status(200));
    let subscribed = json!(["call.ended", "simulation.run.completed"]);
    world
        .create("/webhooks", json!({"url": events.url(), "events": subscribed, "metadata": {"team": "ops"}}));
    let tool = world
        .create("/tools", json!({"name": "find_slot", "url": slots.url(), "metadata": {"kind": "calendar"}}));
    let body = json!({"name": "Desk", "instructions": "Be kind.", "model": "fake/tools"});
    let assistant = world.create("/assistants", body).id;
    world.put(format!("/assistants/{assistant}/tools"), json!({"tool_ids": [tool.id]})).ok();
    let persona = json!({"name": "Ada", "system_prompt": "You are brief.", "model": "builtin/rules"});
    let persona = world.create("/simulations/personas", persona).id;
    let scenario = json!({"name": "Slot", "instructions": "\"Is there a slot?\""});
    let scenario = world.create("/simulations/scenarios", scenario).id;
    let body = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    let simulation = world.create("/simulations", body).id;
    let metadata = json!({"order": "7"});
    let run = world.create(&format!("/simulations/{simulation}/runs"), json!({"metadata": metadata}));
    let run = world.settle(&run.id);
    assert_eq!(run["status"], "completed", "{run}");
    let told: Value = serde_json::from_slice(&slots.wait_for(1, SOON)[0].body).unwrap();
    assert_eq!(told["call"]["metadata"], metadata, "{told}");
    let sent = events.wait_for(2, SOON);
    for event in sent {
        let event: Value = serde_json::from_slice(&event.body).unwrap();
        let call = if event["type"] == "call.ended" {
            &event["data"]["call"]
        } else {
            &event["data"]["run"]["call"]
        };
        assert_eq!((&call["metadata"], &call["variables"]), (&metadata, &json!({})), "{event}");
    }
}

/// The forms of the dashboard do not offer metadata and variables, and leave them alone.
#[test]
fn the_dashboard_keeps_it() {
    let world = World::new();
    let email = format!("metadata-{}@practice.example", std::process::id());
    let mut visitor = Visitor::signed_in(&world, &email);
    let api = visitor.api(&world);
    let (metadata, variables) = (json!({"order": "7"}), json!({"name": "Ada"}));
    for (path, mut body) in bodies(&api) {
        body["metadata"] = metadata.clone();
        if path.ends_with("scenarios") {
            body["variables"] = variables.clone();
        }
        let made = api.create(path, body);
        let (operation, field, value) = match path {
            "/assistants" => ("update_assistant", "name", "Renamed"),
            "/tools" => ("update_tool", "name", "renamed"),
            "/knowledge" => ("update_knowledge_document", "name", "Renamed"),
            "/webhooks" => ("update_webhook", "url", "https://renamed.example/"),
            "/simulations/personas" => ("update_simulation_persona", "name", "Renamed"),
            "/simulations/scenarios" => ("update_simulation_scenario", "name", "Renamed"),
            _ => ("update_simulation", "name", "Renamed"),
        };
        // A simulation has no page of its own.
        let page = match path {
            "/simulations" => "/dashboard/simulations".to_owned(),
            _ => format!("/dashboard{path}/{}", made.id),
        };
        visitor.act(operation, &page, &[("id", &made.id), (field, value)]);
        let list = api.get(path).ok().json;
        let after = list.as_array().unwrap().iter().find(|one| one["id"] == made.id.as_str()).unwrap();
        assert_eq!((&after[field], &after["metadata"]), (&json!(value), &metadata), "{path}");
        if path.ends_with("scenarios") {
            assert_eq!(after["variables"], variables);
        }
    }
    let assistant = api.assistant().id;
    let bound = json!({"assistant_id": assistant, "provider": "twilio", "metadata": metadata});
    let number = world.phone_number();
    api.put(format!("/numbers/{number}"), bound).ok();
    let fields = [("number", number.as_str()), ("assistant_id", assistant.as_str()), ("provider", "telnyx")];
    visitor.act("bind_number", "/dashboard/numbers", &fields);
    let after = api.get("/numbers").ok().json[0].clone();
    assert_eq!((&after["provider"], &after["metadata"]), (&json!("telnyx"), &metadata));
}
