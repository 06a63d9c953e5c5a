//! `/openapi-3.0.json`: the same service in the words of OpenAPI 3.0.
use std::collections::BTreeSet;

use serde_json::Value;
use sidetone_tests::World;

#[test]
fn it_says_the_same_in_words_of_its_own() {
    let world = World::new();
    let latest = world.get("/openapi.json").ok().json;
    let older = world.get("/openapi-3.0.json").ok().json;
    assert_eq!(older["openapi"], "3.0.3");
    assert_eq!(older.get("webhooks"), None);
    assert_eq!(names(&older["components"]["schemas"]), names(&latest["components"]["schemas"]));
    assert_eq!(names(&older["paths"]), names(&latest["paths"]));
    for (path, methods) in latest["paths"].as_object().unwrap() {
        assert_eq!(names(&older["paths"][path]), names(methods), "{path}");
    }
    let all = ["$ref and more", "a list of types", "const", "examples", "null", "propertyNames"];
    assert_eq!(words_of_3_1(&latest), all.into());
    assert_eq!(words_of_3_1(&older), [].into());
}

/// Generators write one file for each group, and would write one over the other.
#[test]
fn events_and_operations_have_groups_of_their_own() {
    let document = World::new().get("/openapi.json").ok().json;
    let (operations, events) = (groups(&document["paths"]), groups(&document["webhooks"]));
    assert!(operations.contains("Webhooks") && !events.is_empty(), "{operations:?} {events:?}");
    assert!(operations.is_disjoint(&events), "{operations:?} {events:?}");
}

fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn groups(paths: &Value) -> BTreeSet<&str> {
    let operations =
        paths.as_object().unwrap().values().flat_map(|methods| methods.as_object().unwrap().values());
    operations.map(|operation| operation["tags"][0].as_str().unwrap()).collect()
}

fn words_of_3_1(value: &Value) -> BTreeSet<&'static str> {
    match value {
        Value::Array(items) => items.iter().flat_map(words_of_3_1).collect(),
        Value::Object(object) => {
            let mut found = BTreeSet::new();
            for (there, word) in [
                (object.get("type").is_some_and(Value::is_array), "a list of types"),
                (object.get("type").is_some_and(|kind| kind == "null"), "null"),
                (object.get("examples").is_some_and(Value::is_array), "examples"),
                (object.contains_key("const"), "const"),
                (object.contains_key("propertyNames"), "propertyNames"),
                (object.contains_key("$ref") && object.len() > 1, "$ref and more"),
            ] {
                if there {
                    found.insert(word);
                }
            }
            let children =
                object.iter().filter(|(name, _)| !["example", "default", "enum"].contains(&name.as_str()));
            found.extend(children.flat_map(|(_, child)| words_of_3_1(child)));
            found
        }
        _ => BTreeSet::new(),
    }
}
