//! Reads that make something cheaper: one number, and lists of calls without what was said.
use serde_json::{Value, json};
use sidetone_tests::World;

#[test]
fn a_number_is_read_by_itself() {
    let world = World::new();
    let bound = world.binding();
    let encoded = bound.id.replace('+', "%2B");
    for spelling in [&bound.id, &encoded, &encoded.replace("%2B", "%2b")] {
        assert_eq!(world.get(format!("/numbers/{spelling}")).ok().json, bound.json, "{spelling}");
    }
    assert_eq!(world.tool("get_number", json!({"number": bound.id})).ok().json, bound.json);
    let unbound = format!("/numbers/{}", world.phone_number());
    world.get(&unbound).refused("not_found");
    world.other().get(format!("/numbers/{}", bound.id)).refused("not_found");
    for wrong in ["4155550123", "%2B1", "+1415555012x"] {
        world.get(format!("/numbers/{wrong}")).refused("invalid_parameter").naming(&["number"]);
        let number = wrong.replace("%2B", "+");
        world.tool("get_number", json!({"number": number})).refused("invalid_parameter").naming(&["number"]);
    }
    world.delete(format!("/numbers/{}", bound.id)).empty();
    world.get(format!("/numbers/{}", bound.id)).refused("not_found");
}

#[test]
fn a_list_of_calls_leaves_out_what_was_said() {
    let world = World::new();
    let calls = [world.a_call(), world.a_call(), world.a_call()];
    let full = world.get("/calls").ok().json;
    let summary = world.get("/calls?view=summary").ok().json;
    assert_eq!(world.get("/calls?view=full").ok().json, full, "the default");
    assert_eq!(world.tool("list_calls", json!({"view": "summary", "limit": 200})).ok().json, summary);
    let mut expected = full.clone();
    for call in expected["calls"].as_array_mut().unwrap() {
        assert!(call["transcript"].is_array() && call["analysis"].is_object(), "{call}");
        call["transcript"] = Value::Null;
        call["analysis"] = Value::Null;
    }
    assert_eq!(summary, expected, "statistics, sentiment, outcome and costs stay");
    assert_eq!(summary["calls"][0]["sentiment"], "positive");
    // Order, pages and filters are the same.
    for query in
        ["sort=cost&order=asc", "limit=2&page=2", "outcome=completed&sort=duration_ms", "search=saturday"]
    {
        let ids = |view: &str| {
            let list = world.get(format!("/calls?{query}&view={view}")).ok().json;
            list["calls"].as_array().unwrap().iter().map(|call| call["id"].clone()).collect::<Vec<_>>()
        };
        assert!(!ids("full").is_empty(), "{query}");
        assert_eq!(ids("summary"), ids("full"), "{query}");
    }
    let next = world.get("/calls?view=summary&limit=2").ok().next().expect("a second page");
    assert!(next.contains("view=summary"), "{next}");
    assert_eq!(world.get(format!("/calls/{}", calls[0].id)).ok().json, calls[0].json, "a read has all of it");
    world.get("/calls?view=short").refused("validation_failed").naming(&["view"]);
}
