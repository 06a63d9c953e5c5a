//! `GET /events`: what happened, whether a webhook was told or not.
use serde_json::{Value, json};
use sidetone_engine::sql;
use sidetone_tests::{Created, World};

use super::deliveries::test as test_webhook;

/// Waits until the run's events are written, and returns the run.
fn settled_run(world: &World) -> (Value, Vec<Value>) {
    let run = world.run();
    let run = world.settle(&run.id);
    (run, all(world, ""))
}

fn all(world: &World, query: &str) -> Vec<Value> {
    world.get(format!("/events?{query}")).ok().json.as_array().unwrap().clone()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn events_are_listed_without_a_webhook() {
    let world = World::new();
    assert_eq!(all(&world, ""), Vec::<Value>::new());
    let (run, events) = settled_run(&world);
    assert_eq!(
        types(&events),
        ["simulation.run.completed", "call.analyzed", "call.ended", "call.started"],
        "newest first"
    );
    let (run_id, call_id) = (&run["id"], &run["call_id"]);
    let workspace_id = world.get("/workspace").ok()["id"].clone();
    for event in &events {
        let data = match event["type"] == "simulation.run.completed" {
            true => json!({"run": {"id": run_id}}),
            false => json!({"call": {"id": call_id}}),
        };
        assert!(event["id"].as_str().unwrap().starts_with("evt_"), "{event}");
        assert_eq!(
            *event,
            json!({"id": event["id"], "type": event["type"], "created_at": event["created_at"],
                   "workspace_id": workspace_id, "data": data})
        );
    }
    assert_eq!(events[0]["created_at"], run["completed_at"]);
    assert_eq!(world.tool("list_events", json!({})).ok().json, Value::from(events));
    assert_eq!(all(&world.other(), ""), Vec::<Value>::new());
}

#[test]
fn an_event_has_the_id_of_its_deliveries() {
    let world = World::new();
    let webhook = world.webhook();
    let delivery = test_webhook(&world, &webhook);
    let events = all(&world, "");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["id"], delivery["event_id"]);
    assert_eq!(events[0]["created_at"], delivery["created_at"]);
    assert_eq!(events[0]["data"], json!({"webhook": {"id": webhook.id}}));
    // It stays when the webhook goes: it happened.
    world.delete(format!("/webhooks/{}", webhook.id)).empty();
    assert_eq!(all(&world, ""), events);
}

#[test]
fn events_are_filtered_by_type_and_time() {
    let world = World::new();
    let webhook = world.webhook();
    let (_, of_run) = settled_run(&world);
    test_webhook(&world, &webhook);
    let events = all(&world, "");
    assert_eq!(events.len(), of_run.len() + 1);
    assert_eq!(types(&all(&world, "type=call.ended")), ["call.ended"]);
    assert_eq!(types(&all(&world, "type=webhook.test")), ["webhook.test"]);
    assert_eq!(types(&all(&world, "type=simulation.run.error")), Vec::<&str>::new());
    for event in &events {
        let at = event["created_at"].as_str().unwrap();
        let expected: Vec<&Value> =
            events.iter().filter(|one| one["created_at"] == event["created_at"]).collect();
        let found = all(&world, &format!("date_from={at}&date_to={at}"));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{at}");
        let kind = event["type"].as_str().unwrap();
        assert!(all(&world, &format!("type={kind}&date_from={at}&date_to={at}")).contains(event), "{at}");
        let day = &at[..10];
        assert!(all(&world, &format!("date_from={day}&date_to={day}")).contains(event), "{day}");
    }
    for nothing in ["date_to=1999-12-31", "date_from=9999-01-01"] {
        assert_eq!(all(&world, nothing), Vec::<Value>::new(), "{nothing}");
    }
    assert_eq!(all(&world, "date_from=0001-01-01&date_to=9999-12-31"), events);
    world.get("/events?type=call.exploded").refused("validation_failed").naming(&["type"]);
    world
        .get("/events?date_from=yesterday&date_to=2026-13-01")
        .refused("invalid_parameter")
        .naming(&["date_from", "date_to"]);
}

#[test]
fn events_come_in_parts_with_their_filters() {
    let world = World::new();
    let webhook = world.webhook();
    let made: Vec<Created> = (0..7).map(|_| test_webhook(&world, &webhook)).collect();
    let newest_first: Vec<String> =
        made.iter().rev().map(|delivery| delivery["event_id"].as_str().unwrap().to_owned()).collect();
    for filter in [
        "",
        "type=webhook.test",
        "date_from=2000-01-01&date_to=9998-01-01",
        "type=webhook.test&date_from=2000-01-01&date_to=9998-01-01",
    ] {
        let (mut seen, mut path) = (Vec::new(), Some(format!("/events?{filter}&limit=3")));
        while let Some(here) = path {
            let reply = world.get(&here).ok();
            seen.extend(reply.ids());
            path = reply.next();
        }
        assert_eq!(seen, newest_first, "{filter}");
    }
}

#[test]
fn events_go_with_the_call_that_they_tell_about() {
    let world = World::new();
    let (run, events) = settled_run(&world);
    let (_, both) = settled_run(&world);
    assert_eq!(both.len(), 2 * events.len());
    let call_id = run["call_id"].as_str().unwrap();
    assert_eq!(world.delete(format!("/calls/{call_id}")).status, 204);
    let left = all(&world, "");
    assert_eq!(left, both[..both.len() - events.len()], "those of the other call stay");
}

#[test]
fn the_events_of_a_run_go_with_it() {
    let world = World::new();
    let webhook =
        json!({"url": "https://receiver.example/", "events": ["simulation.run.completed", "call.ended"]});
    let webhook = world.create("/webhooks", webhook).id;
    let (one, _) = settled_run(&world);
    let told = |kind: &str| {
        let list = world.get(format!("/webhooks/{webhook}/deliveries")).ok();
        let told = |one: &&Value| one["type"] == kind && one["status"] != "canceled";
        list["deliveries"].as_array().unwrap().iter().filter(told).count()
    };
    assert_eq!((told("simulation.run.completed"), told("call.ended")), (1, 1));
    let others: Vec<Value> = (0..3).map(|_| settled_run(&world).0).collect();
    let of_runs = || -> Vec<Value> {
        let events = all(&world, "type=simulation.run.completed");
        events.iter().map(|event| event["data"]["run"]["id"].clone()).collect()
    };
    let ids = |runs: &[Value]| -> Vec<Value> { runs.iter().rev().map(|run| run["id"].clone()).collect() };
    let of_calls = all(&world, "type=call.ended");
    world.delete(format!("/simulations/runs/{}", one["id"].as_str().unwrap())).empty();
    assert_eq!(of_runs(), ids(&others));
    assert_eq!(
        (told("simulation.run.completed"), told("call.ended")),
        (3, 4),
        "nobody is told of it any more"
    );
    let simulation = others[0]["simulation_id"].as_str().unwrap();
    world.delete(format!("/simulations/runs?simulation_id={simulation}")).ok();
    assert_eq!(of_runs(), ids(&others[1..]));
    world.tool("delete_simulation_run", json!({"id": others[1]["id"]})).ok();
    assert_eq!(of_runs(), ids(&others[2..]));
    assert_eq!(all(&world, "type=call.ended"), of_calls, "calls stay, and so do their events");
    let call = others[2]["call_id"].as_str().unwrap();
    world.delete(format!("/calls/{call}")).empty();
    assert_eq!(of_runs(), Vec::<Value>::new(), "it tells about the call, too");
    assert!(!all(&world, "type=call.ended").iter().any(|event| event["data"]["call"]["id"] == json!(call)));
}

#[test]
fn an_event_that_went_with_its_run_cannot_be_sent_again() {
    let world = World::new();
    let webhook = json!({"url": "https://receiver.example/", "events": ["simulation.run.completed"]});
    let webhook = world.create("/webhooks", webhook).id;
    let (run, _) = settled_run(&world);
    let list = format!("/webhooks/{webhook}/deliveries");
    let id = world.get(&list).ok()["deliveries"][0]["id"].as_str().unwrap().to_owned();
    // As after an attempt.
    world.write(vec![sql!(
        "UPDATE deliveries SET attempts = 1 WHERE workspace_id = :workspace_id",
        workspace_id = &world.workspace_id()
    )]);
    world.delete(format!("/simulations/runs/{}", run["id"].as_str().unwrap())).empty();
    let refusal = world.post(format!("{list}/{id}/redeliver"), json!({})).refused("not_found");
    let message = refusal["error"]["message"].as_str().unwrap();
    assert!(message.contains("call or run"), "{message}");
    world.get(format!("/calls/{}", run["call_id"].as_str().unwrap())).ok();
}
