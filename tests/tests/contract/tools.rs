//! HTTP tools: names, parameters, timeouts, the secret shown once.
use serde_json::{Value, json};
use sidetone_tests::World;

#[test]
fn a_new_tool_has_defaults_and_shows_its_secret_once() {
    let world = World::new();
    let made =
        world.post("/tools", json!({"name": "find_slot", "url": "https://example.com/slots"})).created();
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("tool_"));
    let secret = made["signing_secret"].as_str().unwrap().to_owned();
    is_secret(&secret);
    let mut shown = made.json.clone();
    shown.as_object_mut().unwrap().remove("signing_secret");
    assert_eq!(
        shown,
        json!({
            "id": id, "name": "find_slot", "url": "https://example.com/slots", "method": "POST", "description": "",
            "parameters": {"type": "object", "properties": {}}, "timeout_ms": 5000,
            "metadata": {}, "created_at": made["created_at"], "updated_at": made["created_at"],
        })
    );
    let path = format!("/tools/{id}");
    assert_eq!(world.get(&path).ok().json, shown);
    assert_eq!(world.get("/tools").ok().json, json!([shown]));
    let patched = world.patch(&path, json!({"description": "Finds a free slot."})).ok();
    assert!(patched["signing_secret"].is_null());
    assert_ne!(world.a_tool()["signing_secret"], secret.as_str(), "each tool has its own secret");
}

#[test]
fn names_are_valid_function_names() {
    let world = World::new();
    for good in ["a", "_", "_1", "A9_z", &"a".repeat(64)] {
        let made = world.create("/tools", json!({"name": good, "url": "https://example.com/"}));
        assert_eq!(made["name"], good);
    }
    let made = world.a_tool();
    for bad in ["", "1a", "a-b", "a b", "a.b", "é", "ａ", "a\n", " a", "a\u{200b}", &"a".repeat(65)] {
        let body = json!({"name": bad, "url": "https://example.com/"});
        world.post("/tools", body).refused("validation_failed").naming(&["name"]);
        world
            .patch(format!("/tools/{}", made.id), json!({"name": bad}))
            .refused("validation_failed")
            .naming(&["name"]);
    }
}

#[test]
fn names_are_unique_in_the_workspace() {
    let world = World::new();
    let body = json!({"name": "book", "url": "https://example.com/"});
    let first = world.create("/tools", body.clone());
    world.post("/tools", body.clone()).refused("name_taken").naming(&["name"]);
    let second = world.a_tool();
    let path = format!("/tools/{}", second.id);
    world.patch(&path, json!({"name": "book"})).refused("name_taken").naming(&["name"]);
    world.patch(format!("/tools/{}", first.id), json!({"name": "book"})).ok();
    world.post("/tools", json!({"name": "Book", "url": "https://example.com/"})).created();
    world.other().post("/tools", body.clone()).created();
    world.delete(format!("/tools/{}", first.id)).empty();
    world.patch(&path, json!({"name": "book"})).ok();
}

#[test]
fn parameters_are_a_json_schema_of_an_object() {
    let world = World::new();
    let schema = json!({"type": "object", "required": ["day"], "additionalProperties": false, "properties": {
        "day": {"type": "string", "format": "date", "description": "ISO date"},
        "party": {"type": "integer", "minimum": 1, "maximum": 20}}});
    let made =
        world.create("/tools", json!({"name": "a", "url": "https://example.com/", "parameters": schema}));
    assert_eq!(made["parameters"], schema);
    let before: Vec<&String> = schema.as_object().unwrap().keys().collect();
    let after: Vec<&String> = made["parameters"].as_object().unwrap().keys().collect();
    assert_eq!(after, before, "properties keep their order");
    let path = format!("/tools/{}", made.id);
    for (bad, field) in [
        (json!({"type": "array"}), "parameters.type"),
        (json!({"type": "object", "properties": []}), "parameters.properties"),
        (json!({"type": "object", "properties": {"a": {"type": "text"}}}), "parameters.properties.a.type"),
        (json!({"type": "object", "required": "a"}), "parameters.required"),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": "1"}}}),
            "parameters.properties.a.minimum",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
            "parameters.properties.a.pattern",
        ),
    ] {
        let reply = world.patch(&path, json!({"parameters": bad})).refused("validation_failed");
        assert_eq!(reply.fields(), [field], "{bad}");
    }
    let reply = world.patch(&path, json!({"parameters": {}})).refused("validation_failed");
    assert!(reply.fields()[0].starts_with("parameters"), "{reply:?}");
    assert_eq!(world.get(&path).ok()["parameters"], schema);
}

#[test]
fn timeouts_are_100_ms_to_30_s() {
    let world = World::new();
    for good in [json!(100), json!(30_000), json!(250.0)] {
        let body =
            json!({"name": format!("t{}", world.count()), "url": "https://example.com/", "timeout_ms": good});
        let made = world.create("/tools", body);
        assert_eq!(made["timeout_ms"].as_i64(), good.as_f64().map(|ms| ms as i64));
    }
    for bad in
        [json!(99), json!(30_001), json!(0), json!(-1), json!(100.5), json!(1e300), json!("100"), json!(true)]
    {
        let body = json!({"name": "t", "url": "https://example.com/", "timeout_ms": bad});
        world.post("/tools", body).refused("validation_failed").naming(&["timeout_ms"]);
    }
}

#[test]
fn only_the_five_methods_in_capitals_are_accepted() {
    let world = World::new();
    let path = format!("/tools/{}", world.a_tool().id);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        assert_eq!(world.patch(&path, json!({"method": method})).ok()["method"], method);
    }
    for bad in ["post", "HEAD", "", "POST "] {
        world.patch(&path, json!({"method": bad})).refused("validation_failed").naming(&["method"]);
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let world = World::new();
    let body = json!({"name": "1", "url": "http://example.com/", "parameters": {"type": "array"}});
    let reply = world.post("/tools", body).refused("validation_failed");
    assert_eq!(reply.fields(), ["name", "parameters.type", "url"]);
    world.post("/tools", json!({})).refused("validation_failed").naming(&["name", "url"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_patch_that_changes_nothing_keeps_updated_at() {
    let world = World::with_manual_clock();
    let made = world.a_tool();
    let path = format!("/tools/{}", made.id);
    world.sandbox().unwrap().advance(1_000);
    assert_eq!(world.patch(&path, json!({"method": "POST"})).ok()["updated_at"], made["updated_at"]);
    let changed = world.patch(&path, json!({"method": "GET"})).ok();
    assert_eq!(changed["created_at"], made["created_at"]);
    assert_ne!(changed["updated_at"], made["updated_at"]);
}

#[track_caller]
pub fn is_secret(secret: &str) {
    let encoded = secret.strip_prefix("whsec_").expect("whsec_…");
    assert_eq!(encoded.len(), 44, "base64 of 32 bytes: {secret}");
    assert!(encoded.ends_with('='), "{secret}");
}

#[test]
fn a_signing_secret_depends_on_the_server_secret() {
    let secret_of = |settings: &[(&str, &str)]| -> Value {
        World::with_settings(settings).a_tool()["signing_secret"].clone()
    };
    let usual = secret_of(&[]);
    assert_eq!(usual, secret_of(&[]));
    assert_ne!(usual, secret_of(&[("SIDETONE_SECRET", "another secret of the server")]));
}
