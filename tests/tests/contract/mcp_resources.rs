//! Resources: guides, assistants and calls, in pages, of one workspace.
use std::collections::BTreeSet;

use serde_json::{Value, json};
use sidetone_tests::{Reply, World};

use super::mcp::{request, result};

fn page(world: &World, cursor: Option<&Value>) -> Value {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    result(&world.mcp(request("resources/list", params)).ok())
}

/// All resources, and the number of pages.
fn all(world: &World) -> (Vec<Value>, usize) {
    let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let page = page(world, cursor.as_ref());
        seen.extend(page["resources"].as_array().unwrap().clone());
        pages += 1;
        cursor = page.get("nextCursor").cloned();
        assert_ne!(cursor, Some(Value::Null), "left out, never null");
        if cursor.is_none() {
            return (seen, pages);
        }
    }
}

fn uris(resources: &[Value], kind: &str) -> Vec<String> {
    let uris = resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned());
    uris.filter(|uri| uri.starts_with(&format!("sidetone://{kind}/"))).collect()
}

fn read(world: &World, uri: &str) -> Reply {
    world.mcp(request("resources/read", json!({ "uri": uri }))).ok()
}

fn content(world: &World, uri: &str) -> Value {
    let result = result(&read(world, uri));
    let contents = result["contents"].as_array().unwrap();
    assert_eq!((contents.len(), &contents[0]["uri"]), (1, &json!(uri)), "{result}");
    contents[0].clone()
}

#[test]
fn resources_are_listed_in_pages_and_read() {
    let world = World::new();
    let assistants: Vec<String> = (0..60).map(|_| world.assistant().id).collect();
    let calls: Vec<String> = (0..3).map(|_| world.a_call().id).collect();
    let (resources, pages) = all(&world);
    assert_eq!(pages, 3, "50 assistants, 10 assistants, the calls");
    for resource in &resources {
        assert!(resource["name"].is_string() && resource["title"].is_string(), "{resource}");
        assert!(resource["mimeType"].is_string(), "{resource}");
    }
    let of = |kind: &str, ids: &[String]| -> BTreeSet<String> {
        ids.iter().map(|id| format!("sidetone://{kind}/{id}")).collect()
    };
    assert_eq!(BTreeSet::from_iter(uris(&resources, "assistants")), of("assistants", &assistants));
    assert_eq!(BTreeSet::from_iter(uris(&resources, "calls")), of("calls", &calls));
    assert_eq!(resources.len(), 63 + uris(&resources, "guides").len(), "no resource twice");

    for (kind, id, path) in [("assistants", &assistants[7], "/assistants"), ("calls", &calls[1], "/calls")] {
        let content = content(&world, &format!("sidetone://{kind}/{id}"));
        assert_eq!(content["mimeType"], "application/json");
        let rest = world.get(format!("{path}/{id}")).ok();
        assert_eq!(
            content["text"].as_str().unwrap().as_bytes(),
            &rest.body[..],
            "the exact JSON of the REST read"
        );
    }
}

#[test]
fn guides_are_the_pages_of_the_documentation() {
    let world = World::new();
    let (resources, _) = all(&world);
    let guides = uris(&resources, "guides");
    assert!(guides.contains(&"sidetone://guides/testing".to_owned()), "{guides:?}");
    for uri in guides {
        let content = content(&world, &uri);
        assert_eq!(content["mimeType"], "text/markdown", "{uri}");
        let name = uri.rsplit('/').next().unwrap();
        let page = format!("{}/../docs/{name}.md", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(content["text"].as_str().unwrap(), std::fs::read_to_string(page).unwrap(), "{uri}");
    }
}

#[test]
fn only_the_latest_calls_are_listed() {
    let world = World::new();
    let calls: Vec<String> = (0..205).map(|_| world.a_call().id).collect();
    let (resources, pages) = all(&world);
    assert_eq!(uris(&resources, "calls").len(), 200);
    assert_eq!(pages, 5, "the assistants, and four pages of calls");
    content(&world, &format!("sidetone://calls/{}", calls[0]));
}

#[test]
fn templates_are_listed() {
    let world = World::new();
    let list = result(&world.mcp(request("resources/templates/list", json!({}))).ok());
    let templates = list["resourceTemplates"].as_array().unwrap();
    let uris: Vec<&str> = templates.iter().map(|one| one["uriTemplate"].as_str().unwrap()).collect();
    assert_eq!(uris, ["sidetone://assistants/{id}", "sidetone://calls/{id}", "sidetone://guides/{name}"]);
    let refused = world.mcp(request("resources/templates/list", json!({"cursor": "x"}))).ok();
    assert_eq!(refused["error"]["code"], -32602);
}

#[test]
fn nothing_of_another_workspace_is_listed_or_read() {
    let world = World::new();
    let (assistant, call) = (world.assistant().id, world.a_call().id);
    let other = world.other();
    let (resources, _) = all(&other);
    assert_eq!(resources.len(), uris(&resources, "guides").len());
    for uri in [format!("sidetone://assistants/{assistant}"), format!("sidetone://calls/{call}")] {
        content(&world, &uri);
        assert_eq!(read(&other, &uri)["error"]["code"], -32002, "{uri}");
    }
}

#[test]
fn what_is_no_resource_is_refused() {
    let world = World::new();
    for uri in [
        "sidetone://calls/call_1",
        "sidetone://calls/",
        "sidetone://assistants/asst_1/tools",
        "sidetone://guides/../README",
        "sidetone://guides/benchmarks",
        "https://example.com/",
        "file:///etc/passwd",
        "",
    ] {
        let reply = read(&world, uri);
        assert_eq!(reply["error"]["code"], -32002, "{uri}: {reply:?}");
    }
    for params in [json!({}), json!({"uri": 7})] {
        let reply = world.mcp(request("resources/read", params)).ok();
        assert_eq!(reply["error"]["code"], -32602);
    }
    for cursor in
        [json!("x"), json!(""), json!(7), json!("Y2FsbHMvMA"), json!("Y2FsbHMvNQ"), json!("YXNzaXN0YW50cy8h")]
    {
        let reply = world.mcp(request("resources/list", json!({ "cursor": cursor }))).ok();
        assert_eq!(reply["error"]["code"], -32602, "{cursor}: {reply:?}");
    }
    let stranger = world.with_key("sidetone_wrong").from_elsewhere();
    for (method, params) in [
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/list", json!({"cursor": "x"})),
        ("resources/read", json!({"uri": "sidetone://guides/tools"})),
        ("resources/read", json!({"uri": "sidetone://calls/call_1"})),
    ] {
        let reply = stranger.mcp(request(method, params));
        assert_eq!((reply.status, reply.code()), (401, "unauthorized"), "{method}");
    }
}

#[test]
fn a_large_result_says_how_to_ask_for_less() {
    let world = World::new();
    for _ in 0..3 {
        world.create("/assistants", json!({"name": "Long", "instructions": "x".repeat(30_000)}));
    }
    let list = world.tool("list_assistants", json!({})).ok();
    assert!(list.advice.as_deref().is_some_and(|advice| advice.contains("`limit`")), "{:?}", list.advice);
    assert_eq!(world.tool("list_assistants", json!({"limit": 1})).ok().advice, None);
    for _ in 0..120 {
        world.a_call();
    }
    let advice = |asked: Value| world.tool("list_calls", asked).ok().advice.unwrap_or_default();
    let all = advice(json!({"view": "full", "limit": 120}));
    assert!(all.contains("`view: summary` or a `limit` below 120"), "{all}");
    let summaries = advice(json!({"limit": 120}));
    assert!(summaries.contains("`limit` below 120") && !summaries.contains("view"), "{summaries}");
    let list = world.tool("list_calls", json!({})).ok();
    assert_eq!((list.advice, &list.json["pagination"]["total"]), (None, &json!(120)));
    let calls = list.json["calls"].as_array().unwrap();
    assert!(calls.len() == 20 && calls.iter().all(|call| call["transcript"].is_null()), "{}", calls.len());
    let runs = world.tool("list_simulation_runs", json!({})).ok();
    assert_eq!(runs.json["pagination"]["limit"], 20);
    assert_eq!(world.get("/calls").ok()["calls"].as_array().map(Vec::len), Some(120), "REST gives all");
}
