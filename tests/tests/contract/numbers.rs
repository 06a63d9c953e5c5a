//! Number bindings: a number belongs to one workspace.
use std::sync::Arc;

use http::Method;
use serde_json::json;
use sidetone_engine::sql;
use sidetone_tests::World;
use sidetone_tests::meanwhile::Meanwhile;

#[test]
fn bind_change_and_unbind_a_number() {
    let world = World::new();
    let (first, second) = (world.assistant().id, world.assistant().id);
    let number = world.phone_number();
    let path = format!("/numbers/{}", number.replace('+', "%2B"));
    let bound = world.put(&path, json!({"assistant_id": first, "provider": "twilio"})).ok();
    assert_eq!(
        bound.json,
        json!({"number": number, "assistant_id": first, "provider": "twilio", "region": null,
               "metadata": {}, "created_at": bound["created_at"], "updated_at": bound["created_at"],
               "last_callback_at": null})
    );
    assert_eq!(world.get("/numbers").ok().json, json!([bound.json]));
    let again = world.put(&path, json!({"assistant_id": first, "provider": "twilio", "region": null})).ok();
    assert_eq!(again.json, bound.json, "the same binding changes nothing");
    let moved = world.put(&path, json!({"assistant_id": second, "provider": "vonage", "region": "ie1"})).ok();
    assert_eq!(moved["assistant_id"], second.as_str());
    assert_eq!((&moved["region"], &moved["created_at"]), (&json!("ie1"), &bound["created_at"]));
    assert_eq!(
        world.put(&path, json!({"assistant_id": second, "provider": "vonage"})).ok()["region"],
        json!(null),
        "a PUT replaces the whole binding"
    );
    world.delete(&path).empty();
    assert_eq!(world.get("/numbers").ok().json, json!([]));
    world.delete(&path).refused("not_found");
}

#[test]
fn the_plus_in_the_path_may_be_encoded_or_literal() {
    let world = World::new();
    let assistant = world.assistant().id;
    let number = world.phone_number();
    for spelling in
        [number.clone(), number.replace('+', "%2B"), number.replace('+', "%2b"), number.replace('1', "%31")]
    {
        let reply = world
            .put(format!("/numbers/{spelling}"), json!({"assistant_id": assistant, "provider": "telnyx"}));
        assert_eq!(reply.ok()["number"], number.as_str(), "{spelling}");
    }
    assert_eq!(world.get("/numbers").ok().json.as_array().unwrap().len(), 1);
    world.delete(format!("/numbers/{number}")).empty();
}

#[test]
fn a_number_of_another_workspace_is_in_use() {
    let world = World::new();
    let bound = world.binding();
    let path = format!("/numbers/{}", bound.id);
    let other = world.other();
    let body = json!({"assistant_id": other.assistant().id, "provider": "twilio"});
    other.put(&path, body.clone()).refused("number_in_use");
    other.delete(&path).refused("not_found");
    assert_eq!(other.get("/numbers").ok().json, json!([]));
    assert_eq!(world.get("/numbers").ok().json, json!([bound.json]));
    world.delete(&path).empty();
    other.put(&path, body).ok();
    world
        .put(&path, json!({"assistant_id": world.assistant().id, "provider": "twilio"}))
        .refused("number_in_use");
}

#[test]
fn a_binding_needs_an_assistant_of_the_workspace_and_a_known_carrier() {
    let world = World::new();
    let path = format!("/numbers/{}", world.phone_number());
    let theirs = world.other().assistant().id;
    let reply =
        world.put(&path, json!({"assistant_id": theirs, "provider": "twilio"})).refused("validation_failed");
    let unknown = world
        .put(&path, json!({"assistant_id": "asst_nope", "provider": "twilio"}))
        .refused("validation_failed");
    assert_eq!(
        reply.naming(&["assistant_id"])["error"]["message"],
        unknown.naming(&["assistant_id"])["error"]["message"]
    );
    let mine = world.assistant().id;
    for provider in ["twilio", "telnyx", "plivo", "vonage"] {
        world.put(&path, json!({"assistant_id": mine, "provider": provider})).ok();
    }
    let wrong = world.put("/numbers/0113", json!({"provider": "twilio"})).refused("validation_failed");
    wrong.naming(&["assistant_id", "number"]);
    for provider in ["Twilio", "signalwire", ""] {
        world
            .put(&path, json!({"assistant_id": mine, "provider": provider}))
            .refused("validation_failed")
            .naming(&["provider"]);
    }
    for region in ["".to_owned(), "x".repeat(65)] {
        world
            .put(&path, json!({"assistant_id": mine, "provider": "twilio", "region": region}))
            .refused("validation_failed")
            .naming(&["region"]);
    }
}

#[test]
fn only_e164_numbers_are_accepted() {
    let world = World::new();
    let assistant = world.assistant().id;
    let body = json!({"assistant_id": assistant, "provider": "twilio"});
    let bad = [
        "14155550123",
        "%2014155550123",
        "+0155550123",
        "+1",
        "+123456",
        "+1234567890123456",
        "+1415555012a",
        "+1-415-555-0123",
        "+1%20415%20555%200123",
        "+(415)5550123",
        "%2B%2B14155550123",
        "+14155550123%00",
        "+14155550123%20",
        "+14155550123%0A",
        "++14155550123",
        "+",
        "%2B",
        "0014155550123",
        "tel:+14155550123",
        "+%D9%A1%D9%A4%D9%A1%D9%A5%D9%A5%D9%A5%D9%A0",
        "+%EF%BC%91%EF%BC%94%EF%BC%91%EF%BC%95%EF%BC%95%EF%BC%95%EF%BC%90",
        "asst_1",
        "-14155550123",
        "+1415555.123",
        "+1e10000000",
    ];
    for spelling in bad {
        let path = format!("/numbers/{spelling}");
        world.put(&path, body.clone()).refused("invalid_parameter").naming(&["number"]);
        world.call(Method::DELETE, &path, None).refused("invalid_parameter").naming(&["number"]);
    }
    for number in ["+1234567", "+123456789012345"] {
        // Another test may have bound it already, but it is a valid number.
        let reply = world.put(format!("/numbers/{number}"), body.clone());
        assert!(reply.status == 200 || reply.code() == "number_in_use", "{reply:?}");
        world.delete(format!("/numbers/{number}"));
    }
    assert_eq!(world.get("/numbers").ok().json, json!([]));
}

#[test]
fn of_two_concurrent_bindings_of_a_number_one_succeeds() {
    let world = World::new();
    let number = world.phone_number();
    let rivals: Vec<World> = (0..6).map(|_| world.other()).collect();
    let bodies: Vec<_> = rivals
        .iter()
        .map(|rival| json!({"assistant_id": rival.assistant().id, "provider": "plivo"}))
        .collect();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let path = format!("/numbers/{number}");
        let all: Vec<_> = rivals
            .iter()
            .zip(bodies)
            .map(|(rival, body)| {
                let path = path.clone();
                scope.spawn(move || rival.put(path, body).status)
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
}

#[test]
fn metadata_that_is_left_out_is_kept_as_it_is_now() {
    let database = Arc::new(Meanwhile::default());
    let world = World::over(database.clone());
    let (first, second) = (world.assistant().id, world.assistant().id);
    let path = "/numbers/+14155550177";
    world.put(path, json!({"assistant_id": first, "provider": "twilio", "metadata": {"a": "1"}})).ok();
    let change = r#"UPDATE numbers SET metadata = '{"a":"2"}'"#;
    database.before("INSERT INTO numbers", vec![sql!(change)]);
    let moved = world.put(path, json!({"assistant_id": second, "provider": "twilio"})).ok();
    assert!(database.has_happened());
    assert_eq!(moved["metadata"], json!({"a": "2"}));
    let read = world.get(path).ok();
    assert_eq!((&read["metadata"], &read["assistant_id"]), (&json!({"a": "2"}), &json!(second)));
}
