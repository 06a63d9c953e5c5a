//! Earlier revisions of assistants: kept with every change, listed, restored.
use serde_json::{Value, json};
use sidetone_tests::World;

fn names(list: &Value) -> Vec<(i64, &str)> {
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| (row["revision"].as_i64().unwrap(), row["name"].as_str().unwrap())).collect()
}

#[test]
fn every_change_keeps_what_was_there() {
    let world = World::new();
    let (tool, document) = (world.a_tool().id, world.document(10).id);
    let made =
        world.create("/assistants", json!({"name": "One", "instructions": "Be kind.", "language": "en"}));
    let path = format!("/assistants/{}", made.id);
    let mut states = vec![made.json];
    let changes = [
        ("", json!({"name": "Two", "speech": {"speed": 1.5}, "record": false})),
        ("/tools", json!({"tool_ids": [tool]})),
        ("/knowledge", json!({"knowledge_ids": [document]})),
    ];
    for (place, body) in changes {
        let url = format!("{path}{place}");
        states.push(if place.is_empty() { world.patch(url, body) } else { world.put(url, body) }.ok().json);
    }
    // A deleted tool is detached, which makes another revision.
    world.delete(format!("/tools/{tool}")).empty();
    states.push(world.get(&path).ok().json);
    states.reverse();
    assert_eq!(world.get(format!("{path}/revisions")).ok().json, Value::Array(states));
    // What changes nothing makes no revision.
    world.patch(&path, json!({"name": "Two"})).ok();
    assert_eq!(world.get(format!("{path}/revisions")).ok().json.as_array().unwrap().len(), 5);
}

#[test]
fn a_restored_revision_is_a_new_one() {
    let world = World::new();
    let (tool, gone) = (world.a_tool().id, world.a_tool().id);
    let made = world.create("/assistants", json!({"name": "One", "instructions": "Be kind."}));
    let path = format!("/assistants/{}", made.id);
    world.put(format!("{path}/tools"), json!({"tool_ids": [gone, tool]})).ok();
    world.put(format!("{path}/tools"), json!({"tool_ids": []})).ok();
    world.patch(&path, json!({"name": "Two", "instructions": "Be brief."})).ok();
    world.delete(format!("/tools/{gone}")).empty();
    let restored = world.post(format!("{path}/revisions/2/restore"), json!({})).ok();
    assert_eq!((&restored["name"], &restored["revision"]), (&json!("One"), &json!(5)));
    assert_eq!(restored["tool_ids"], json!([tool]), "what exists no more is left out");
    assert_eq!(world.get(&path).ok().json, restored.json);
    let list = world.get(format!("{path}/revisions")).ok().json;
    assert_eq!(names(&list), [(5, "One"), (4, "Two"), (3, "One"), (2, "One"), (1, "One")]);
    world.post(format!("{path}/revisions/9/restore"), json!({})).refused("not_found");
    world.post(format!("{path}/revisions/x/restore"), json!({})).refused("not_found");
    for large in [1_i64 << 53, (1 << 53) + 1, i64::MAX] {
        world.post(format!("{path}/revisions/{large}/restore"), json!({})).refused("not_found");
    }
    // The current one is there already.
    assert_eq!(world.post(format!("{path}/revisions/5/restore"), json!({})).ok()["revision"], 5);
}

#[test]
fn a_restore_never_overwrites_a_change_that_was_not_seen() {
    let world = World::new();
    let made = world.assistant();
    let path = format!("/assistants/{}", made.id);
    world.patch(&path, json!({"name": "Two"})).ok();
    let url = format!("{path}/revisions/1/restore");
    let stale = world.request(http::Method::POST, &url).header("if-match", "\"1\"").body(bytes::Bytes::new());
    world.send(stale.unwrap()).refused("revision_conflict");
    assert_eq!(world.get(&path).ok()["name"], "Two");
}

#[test]
fn the_oldest_revisions_are_forgotten() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    for number in 0..60 {
        world.patch(&path, json!({"name": format!("Name {number}")})).ok();
    }
    let list = world.get(format!("{path}/revisions")).ok().json;
    let revisions: Vec<i64> = names(&list).into_iter().map(|(revision, _)| revision).collect();
    assert_eq!((revisions.len(), revisions[0], revisions[50]), (51, 61, 11));
    // They go with their assistant, and nobody else sees them.
    let stranger = world.other();
    stranger.get(format!("{path}/revisions")).refused("not_found");
    stranger.post(format!("{path}/revisions/20/restore"), json!({})).refused("not_found");
    world.delete(&path).empty();
    world.get(format!("{path}/revisions")).refused("not_found");
}
