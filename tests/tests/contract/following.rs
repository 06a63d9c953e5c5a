//! Following calls and runs: server-sent events while they go on.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sidetone_tests::follower::{Event, Follower, events_of};
use sidetone_tests::{Browser, LiveClient, World};

const GREETING: &str = "Hello, front desk.";
const QUESTION: &str = "When do you open on Saturday?";

fn front_desk(world: &World, settings: Value) -> String {
    let mut body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING});
    body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let assistant = world.create("/assistants", body);
    let hours =
        world.create("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."}));
    world.put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [hours.id]})).ok();
    assistant.id
}

/// The rows as a client has them that replaces each by its index.
fn rows_of(events: &[Event]) -> Vec<Value> {
    let rows = events.iter().filter(|event| event.kind == "transcript");
    let rows: BTreeMap<u64, Value> =
        rows.map(|event| (event.data["index"].as_u64().unwrap(), event.data.clone())).collect();
    rows.into_values().collect()
}

#[track_caller]
fn ids_count_up(events: &[Event]) {
    let ids: Vec<i64> = events.iter().map(|event| event.id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

#[test]
fn what_has_ended_is_told_at_once() {
    let world = World::new();
    let call = world.runs_call();
    let stored = world.get(format!("/calls/{}", call.id)).ok().json;
    let run = stored["simulation_run_id"].as_str().unwrap();
    for (path, whole) in [
        (format!("/calls/{}", call.id), stored.clone()),
        (format!("/simulations/runs/{run}"), world.get(format!("/simulations/runs/{run}")).ok().json),
    ] {
        let path = format!("{path}/events");
        let reply = world.get(&path).ok();
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert_eq!(
            (reply.header("cache-control"), reply.header("x-accel-buffering")),
            (Some("no-store"), Some("no"))
        );
        let events = events_of(&reply.body);
        ids_count_up(&events);
        assert_eq!(Value::from(rows_of(&events)), stored["transcript"]);
        let ended = events.last().unwrap();
        assert_eq!((ended.kind.as_str(), &ended.data), ("ended", &whole));

        let after = |id: String| world.call_with(Method::GET, &path, None, &[("last-event-id", &id)]);
        assert_eq!(events_of(&after(events[0].id.to_string()).ok().body), events[1..]);
        after(ended.id.to_string()).empty();
        // The id of another call: it begins anew.
        for id in [ended.id + 1, 999_999_999_999_999] {
            assert_eq!(events_of(&after(id.to_string()).ok().body), events);
        }
        assert_eq!(events_of(&after(String::new()).ok().body), events);
        for id in ["x", "-1", "1.5", "1000000000000000", "99999999999999999999"] {
            let refused = after(id.to_owned()).refused("invalid_parameter");
            assert_eq!(refused.fields(), ["Last-Event-ID"], "{id:?}");
        }
        let head = world.call(Method::HEAD, &path, None);
        assert!(head.status == 200 && head.body.is_empty(), "{head:?}");
        world.other().get(&path).refused("not_found");
    }
}

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs connections")]
fn a_call_is_followed_while_it_goes_on() {
    let world = World::new();
    let mut client = world.start_conversation(&front_desk(&world, json!({})));
    let id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    let path = format!("/calls/{id}/events");
    let mut follower = Follower::open(&world, &path, None).ok().unwrap();
    let status = follower.expect("status");
    assert_eq!((&status.data["status"], &status.data["id"]), (&json!("in_progress"), &json!(id)));
    assert_eq!(status.data["transcript"], Value::Null);
    let greeting = follower.expect("transcript");
    assert_eq!((&greeting.data["index"], &greeting.data["text"]), (&json!(0), &json!(GREETING)));

    client.hear();
    let asked = Instant::now();
    client.say(QUESTION);
    client.hear();
    let question = follower.expect("transcript");
    // One that nobody tells of changes looks every ten seconds.
    assert!(asked.elapsed() < Duration::from_secs(8), "told after {:?}", asked.elapsed());
    assert_eq!((&question.data["role"], &question.data["text"]), (&json!("user"), &json!(QUESTION)));
    // One that connects again is told what it has missed, and nothing else.
    let mut again = Follower::open(&world, &path, Some(question.id)).ok().unwrap();
    assert!(again.expect("transcript").data["text"].as_str().unwrap().contains("open at ten"));
    // The id of another call: it begins anew.
    let mut other = Follower::open(&world, &path, Some(9_999)).ok().unwrap();
    assert_eq!(other.expect("status").data["id"], json!(id));

    client.send(r#"{"type": "hang_up"}"#);
    client.expect("call_ended");
    for follower in [&mut follower, &mut again] {
        let rest = follower.rest();
        ids_count_up(&rest);
        let ended = rest.last().unwrap();
        assert_eq!((ended.kind.as_str(), &ended.data["status"]), ("ended", &json!("ended")), "{rest:?}");
        let call = world.settled_call(&id);
        assert_eq!(ended.data["transcript"], call["transcript"]);
    }
    let rest = world.call_with(Method::GET, &path, None, &[("last-event-id", "1000000")]).ok();
    assert_eq!(events_of(&rest.body).last().unwrap().data["status"], "ended");
}

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs connections")]
fn a_spoken_call_tells_its_turns_and_what_was_cut() {
    let world = World::new();
    let mut browser = Browser::open(&world, &front_desk(&world, json!({"voice": "builtin/tone"})), "tone");
    let id = browser.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    let mut follower = Follower::open(&world, &format!("/calls/{id}/events"), None).ok().unwrap();
    browser.until("the beginning of the greeting", |browser| (browser.played_ms() > 200).then_some(()));
    // What is said is written every half second for whoever follows: the line is seen before it is cut.
    let mut events = vec![follower.expect("status"), follower.expect("transcript")];
    browser.say(QUESTION);
    browser.hear();
    browser.wait(200);
    browser.hang_up();
    events.extend(follower.rest());
    ids_count_up(&events);
    let call = world.settled_call(&id);
    assert_eq!(Value::from(rows_of(&events)), call["transcript"], "{events:?}");
    assert_eq!(rows_of(&events)[0]["interrupted"], true);
    let greeting: Vec<_> = events.iter().map(|event| &event.data).filter(|row| row["index"] == 0).collect();
    let (last, before) = greeting.split_last().unwrap();
    assert!(!before.is_empty() && last.get("in_progress").is_none(), "{greeting:?}");
    for row in before {
        let flags = (&row["in_progress"], &row["interrupted"], &row["intended_text"]);
        assert_eq!(flags, (&json!(true), &json!(false), &json!(GREETING)), "not cut yet: {row}");
    }
    let turns: BTreeMap<i64, &Value> = (events.iter().filter(|event| event.kind == "turn"))
        .map(|event| (event.data["end_of_speech_ms"].as_i64().unwrap(), &event.data))
        .collect();
    assert_eq!(json!(turns.into_values().collect::<Vec<_>>()), call["turns"]);
    assert_eq!(kinds(&events).last(), Some(&"ended"));
}

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs connections")]
fn a_run_is_followed_while_it_goes_on() {
    let world = World::with_fakes();
    let assistant = world.create(
        "/assistants",
        json!({"name": "Desk", "instructions": "Be kind.", "first_message": GREETING, "model": "fake/tools"}),
    );
    // The progress of a run is stored before it calls a tool.
    let tool = world.unreachable_tool();
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let simulation = world.simulation_of(&assistant.id);
    let run = world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
    let path = format!("/simulations/runs/{}/events", run.id);
    let mut events: Vec<Event> = Vec::new();
    // A slow machine takes longer than a stream does.
    while events.last().is_none_or(|event| event.kind != "ended") {
        let last = events.last().map(|event| event.id);
        events.extend(Follower::open(&world, &path, last).ok().unwrap().rest());
    }
    ids_count_up(&events);
    assert_eq!(kinds(&events)[0], "status", "{events:?}");
    let ended = &events.last().unwrap().data;
    assert_eq!((&ended["id"], &ended["status"]), (&json!(run.id), &json!("completed")));
    assert_eq!(Value::from(rows_of(&events)), ended["call"]["transcript"]);
    assert_eq!(*ended, world.get(format!("/simulations/runs/{}", run.id)).ok().json);
}

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs connections")]
fn a_stream_ends_with_its_key_and_with_its_call() {
    let world = World::new();
    let (mut client, path) = live_call(&world);
    client.hear();
    let key = world.create("/keys", json!({"name": "for a while"}));
    let guest = world.with_key(key["key"].as_str().unwrap());
    let mut theirs = Follower::open(&guest, &path, None).ok().unwrap();
    let mut ours = Follower::open(&world, &path, None).ok().unwrap();
    theirs.expect("status");
    theirs.expect("transcript");
    world.delete(format!("/keys/{}", key.id)).empty();
    client.say(QUESTION);
    client.hear();
    assert_eq!(theirs.rest(), [], "a revoked key follows nothing");
    assert_eq!(
        kinds(&[ours.expect("status"), ours.expect("transcript"), ours.expect("transcript")])[1],
        "transcript"
    );
    client.send(r#"{"type": "hang_up"}"#);
    client.expect("call_ended");
    assert_eq!(ours.rest().last().unwrap().kind, "ended");
    guest.get(&path).refused("unauthorized");
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs our own server's sockets")]
fn one_workspace_cannot_take_the_places_of_all() {
    let world = World::of_its_own(&[]);
    let neighbour = world.other();
    let (_client, path) = live_call(&world);
    let mut held = Vec::new();
    let refused = loop {
        match Follower::open(&world, &path, None) {
            Ok(follower) => held.push(follower),
            Err(refused) => break refused.refused("unavailable"),
        }
        assert!(held.len() < 1_000, "no limit");
    };
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert!(held.len() >= 100, "{}", held.len());
    let (_theirs, path_of_theirs) = live_call(&neighbour);
    let mut follower = Follower::open(&neighbour, &path_of_theirs, None).ok().unwrap();
    follower.expect("status");
    // A place is free again once its client has gone.
    drop(held);
    let gone = Instant::now();
    while Follower::open(&world, &path, None).is_err() {
        assert!(gone.elapsed() < Duration::from_secs(30), "the places are not returned");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A conversation in progress, and where it is followed.
fn live_call(world: &World) -> (LiveClient<'_>, String) {
    let mut client = world.start_conversation(&front_desk(world, json!({})));
    let id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    (client, format!("/calls/{id}/events"))
}

#[test]
fn of_a_run_whose_call_was_deleted_the_end_is_told_once() {
    let world = World::new();
    let run = world.run();
    let call_id = world.settle(&run.id)["call_id"].as_str().unwrap().to_owned();
    world.settled_call(&call_id);
    world.delete(format!("/calls/{call_id}")).empty();
    let path = format!("/simulations/runs/{}/events", run.id);
    let events = events_of(&world.get(&path).ok().body);
    let ended = events.last().unwrap();
    assert_eq!((ended.kind.as_str(), &ended.data["status"]), ("ended", &json!("completed")));
    for id in [ended.id, ended.id + 1, 40] {
        world.call_with(Method::GET, &path, None, &[("last-event-id", &id.to_string())]).empty();
    }
}

/// The id of another call that has got further.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn what_has_not_begun_is_followed_from_its_beginning() {
    let world = World::with_manual_clock();
    let run = world.run();
    let path = format!("/simulations/runs/{}/events", run.id);
    for after in [2_i64, 3, 9_999] {
        let id = after.to_string();
        let reply = world.call_with(Method::GET, &path, None, &[("last-event-id", &id)]).ok();
        let events = events_of(&reply.body);
        assert_eq!((events[0].id, events[0].kind.as_str()), (1, "status"), "{after}: {events:?}");
    }
}
