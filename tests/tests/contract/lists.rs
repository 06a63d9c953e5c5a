//! Lists in parts: walked to the end, bounded in bytes, over REST and MCP; and how much a workspace can have.
use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::limits;
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Operation;
use sidetone_engine::ports::statement::Statement;
use sidetone_tests::call::{properties, schemas};
use sidetone_tests::{Call, World};

/// The operations whose list continues with `after`.
fn lists() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(|operation| takes(operation, "after"))
}

fn takes(operation: &Operation, parameter: &str) -> bool {
    properties(schemas(operation).query.as_ref()).any(|(name, _)| name == parameter)
}

#[test]
fn every_list_comes_in_parts() {
    for operation in OPERATIONS {
        let world = World::new();
        let is_list = operation.id.starts_with("list_");
        assert_eq!(is_list, takes(operation, "limit"), "{}", operation.id);
        assert_eq!(is_list, takes(operation, "after") || takes(operation, "page"), "{}", operation.id);
        if is_list {
            // An empty list and the end of a list have no `Link`.
            assert_eq!(
                Call::valid(&world, operation).rest(&world).ok().header("link"),
                None,
                "{}",
                operation.id
            );
        }
    }
}

#[test]
fn a_list_is_walked_to_its_end_while_it_changes() {
    let world = World::new();
    let mut ids = make_assistants(&world, 250);
    ids.reverse();
    let all = world.get("/assistants?limit=1000").ok();
    assert_eq!(all.ids(), ids, "newest first");
    assert_eq!(all.next(), None);
    assert_eq!(world.get("/assistants").ok().ids(), ids, "the default");

    let (mut seen, mut path) = (Vec::new(), Some("/assistants?limit=33".to_owned()));
    let mut deleted = BTreeSet::new();
    while let Some(here) = path {
        let reply = world.get(&here).ok();
        path = reply.next();
        seen.extend(reply.ids());
        // What was seen goes, the cursor's row too; what is new comes before the first part; one further on goes.
        world.delete(format!("/assistants/{}", seen[seen.len() - 1]));
        world.assistant();
        if let Some(later) = ids.get(seen.len() + 40) {
            world.delete(format!("/assistants/{later}"));
            deleted.insert(later.clone());
        }
    }
    let expected: Vec<&String> = ids.iter().filter(|id| !deleted.contains(*id)).collect();
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected, "no row twice and none lost");
}

#[test]
fn a_list_has_a_thousand_rows_and_a_page_two_hundred_unless_told() {
    let world = World::new();
    world.assistant();
    multiply(&world, "assistants", limits::LIST_ROWS_DEFAULT + 1);
    let all = usize::try_from(limits::LIST_ROWS_DEFAULT).expect("a small number");
    let list = world.get("/assistants").ok();
    assert_eq!((list.ids().len(), list.next().is_some()), (all, true));
    let tool = world.tool("list_assistants", json!({})).ok();
    assert_eq!((tool.json.as_array().map(Vec::len), tool.next.is_some()), (Some(all), true));
    let advice = tool.advice.expect("a large result says how to go on");
    assert!(advice.contains("smaller `limit`") && advice.contains("`next` as `after`"), "{advice}");
    for path in ["/calls", "/simulations/runs"] {
        assert_eq!(world.get(path).ok()["pagination"]["limit"], limits::PAGE_ROWS_DEFAULT, "{path}");
    }
}

#[test]
fn filters_and_limit_stay_in_the_link() {
    let world = World::new();
    let assistant = world.assistant();
    let mine: Vec<String> = (0..5).map(|_| world.simulation_of(&assistant.id).id).collect();
    world.simulation();
    let (mut seen, mut path) =
        (Vec::new(), Some(format!("/simulations?assistant_id={}&limit=2", assistant.id)));
    while let Some(here) = path {
        assert!(here.contains("limit=2") && here.contains(&assistant.id), "{here}");
        let reply = world.get(&here).ok();
        seen.extend(reply.ids());
        path = reply.next();
    }
    assert_eq!(seen, mine.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn every_list_is_walked_over_rest_and_mcp() {
    for operation in lists() {
        let world = World::new();
        fill(&world, operation);
        let call = Call::valid(&world, operation);
        let all = call.with_query("limit", json!(1000)).rest(&world).ok();
        let all = all.json.as_array().expect("an array").clone();
        let (mut rest, mut path) = (Vec::new(), Some(call.with_query("limit", json!(1)).uri()));
        while let Some(here) = path {
            let reply = world.get(&here).ok();
            rest.extend(reply.json.as_array().expect("an array").clone());
            path = reply.next();
        }
        assert_eq!(rest, all, "{}", operation.id);
        let (mut tool, mut after) = (Vec::new(), None::<String>);
        loop {
            let call = call.with_query("limit", json!(1));
            let call = match &after {
                Some(after) => call.with_query("after", json!(after)),
                None => call,
            };
            let reply = call.tool(&world).ok();
            tool.extend(reply.json.as_array().expect("an array").clone());
            after = reply.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(tool, all, "{}", operation.id);
    }
}

#[test]
fn pages_have_a_link_to_the_next_one() {
    let world = World::new();
    let simulation = world.simulation();
    for _ in 0..3 {
        world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
    }
    let first = world.get("/simulations/runs?limit=2").ok();
    let second = world.get(first.next().expect("a second page")).ok();
    assert_eq!((second["runs"].as_array().map(Vec::len), second.next()), (Some(1), None));
}

#[test]
fn what_continues_no_list_is_refused() {
    for operation in lists() {
        let world = World::new();
        fill(&world, operation);
        let call = Call::valid(&world, operation);
        let reply = call.with_query("limit", json!(1)).rest(&world).ok();
        let good = reply.next().and_then(|next| Some(next.split_once("after=")?.1.to_owned()));
        let mut garbage =
            vec!["x".to_owned(), "asst_".to_owned(), "%".to_owned(), "AAAA".to_owned(), "é".to_owned()];
        if let Some(good) = good {
            garbage.extend([format!("{good}="), format!("{good}A"), good[..good.len() - 2].to_owned()]);
        }
        for bad in garbage {
            let call = call.with_query("after", json!(bad));
            call.rest(&world).refused("validation_failed").naming(&["after"]);
            call.tool(&world).refused("validation_failed").naming(&["after"]);
        }
    }
}

#[test]
fn the_end_of_another_workspaces_list_shows_nothing_of_it() {
    let world = World::new();
    let stranger = world.other();
    make_assistants(&world, 3);
    let next = world.get("/assistants?limit=1").ok().next().expect("more");
    assert_eq!(stranger.get(next).ok().json, json!([]));
}

#[test]
fn a_part_is_bounded_in_bytes() {
    let world = World::new();
    let plain = "x".repeat(32_768);
    // As JSON each takes six bytes.
    let escaped = "\u{1}".repeat(32_768);
    for n in 0..200 {
        world.create(
            "/assistants",
            json!({"name": "Large", "instructions": if n < 150 { &plain } else { &escaped }}),
        );
    }
    let (mut seen, mut parts, mut path) = (BTreeSet::new(), 0, Some("/assistants?limit=1000".to_owned()));
    while let Some(here) = path {
        let reply = world.get(&here).ok();
        assert!(reply.body.len() <= limits::PAGE_BYTES_MAX + 1_000, "{} bytes", reply.body.len());
        assert!(!reply.ids().is_empty());
        for id in reply.ids() {
            assert!(seen.insert(id), "a row twice");
        }
        parts += 1;
        path = reply.next();
    }
    assert_eq!(seen.len(), 200);
    assert!(parts >= 4, "{parts}");
}

#[test]
fn a_workspace_can_have_so_many_and_no_more() {
    let limited = [
        ("create_assistant", "assistants", limits::ASSISTANTS_MAX),
        ("create_tool", "tools", limits::TOOLS_MAX),
        ("create_knowledge_document", "documents", limits::DOCUMENTS_MAX),
        ("create_webhook", "webhooks", limits::WEBHOOKS_MAX),
        ("create_simulation_persona", "personas", limits::PERSONAS_MAX),
        ("create_simulation_scenario", "scenarios", limits::SCENARIOS_MAX),
        ("create_simulation", "simulations", limits::SIMULATIONS_MAX),
        ("bind_number", "numbers", limits::NUMBERS_MAX),
        ("create_api_key", "api_keys", limits::KEYS_MAX),
    ];
    let created: Vec<&str> = limited.iter().map(|(operation, ..)| *operation).collect();
    for operation in OPERATIONS.iter().filter(|operation| operation.id.starts_with("create_")) {
        // A token is signed and not stored; calls are history.
        let is_kept = !operation.id.ends_with("_token") && !operation.id.ends_with("_call");
        assert_eq!(created.contains(&operation.id), is_kept, "{}", operation.id);
    }
    for (id, table, most) in limited {
        let operation = OPERATIONS.iter().find(|operation| operation.id == id).expect("an operation");
        let world = World::new();
        let neighbour = world.other();
        let (one, call, theirs) = (
            Call::valid(&world, operation),
            Call::valid(&world, operation),
            Call::valid(&neighbour, operation),
        );
        // A call of `bind_number` has a number that is bound already.
        let call = if id == "bind_number" { call.with_path(&world.phone_number()) } else { call };
        let made = one.rest(&world);
        assert!(made.status < 300, "{made:?}");
        multiply(&world, table, most);
        let refusal = call.rest(&world).refused("limit_reached");
        let details = &refusal["error"]["details"];
        assert_eq!(details["limit"], json!(most), "{id}: {refusal:?}");
        assert!(details["of"].as_str().is_some_and(|of| of.ends_with('s')), "{id}: {refusal:?}");
        assert_eq!(&call.tool(&world).refused("limit_reached").json["error"]["details"], details, "{id}");
        assert!(theirs.rest(&neighbour).status < 300, "{id}: another workspace has its own");
        if id == "bind_number" {
            // What exists can be changed.
            one.rest(&world).ok();
            world.delete(one.uri());
        } else {
            let path = operation.path.to_owned() + "/" + made["id"].as_str().expect("an id");
            assert_eq!(world.delete(path).status, 204);
        }
        assert!(call.rest(&world).status < 300, "{id}: after one was deleted");
    }
}

/// Copies a row of the workspace until there are `most`.
fn multiply(world: &World, table: &str, most: i64) {
    let (key, columns) = match table {
        "numbers" => ("number", "assistant_id, provider, region, created_at, updated_at"),
        "api_keys" => ("id", "name, hint, created_at"),
        "assistants" => (
            "id",
            "name, instructions, first_message, model, voice, pipeline_mode, revision, created_at, updated_at",
        ),
        "tools" => (
            "id",
            "url, method, description, parameters, timeout_ms, secret_version, revision, created_at, updated_at",
        ),
        "documents" => ("id", "content, source, size_bytes, revision, created_at, updated_at"),
        "webhooks" => ("id", "url, events, enabled, secret_version, revision, created_at, updated_at"),
        "personas" => ("id", "name, system_prompt, revision, created_at, updated_at"),
        "scenarios" => ("id", "name, instructions, evaluations, revision, created_at, updated_at"),
        "simulations" => {
            ("id", "assistant_id, persona_id, scenario_id, name, revision, created_at, updated_at")
        }
        other => panic!("no columns of {other}"),
    };
    // Columns that are unique.
    let unique = match table {
        "tools" | "documents" => "name, ",
        "api_keys" => "hash, ",
        _ => "",
    };
    let fresh = if unique.is_empty() { "" } else { "'copy ' || :ws || n, " };
    let text = format!(
        "WITH RECURSIVE numbered (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbered WHERE n < :most),
         model AS (SELECT * FROM {table} WHERE workspace_id = :ws LIMIT 1)
         INSERT INTO {table} (workspace_id, {key}, {unique}{columns})
         SELECT :ws, :ws || '_' || n, {fresh}{columns} FROM numbered CROSS JOIN model
         WHERE n > (SELECT COUNT(*) FROM {table} WHERE workspace_id = :ws)"
    );
    let workspace = world.workspace_id();
    let statement = Statement::named(&text, vec![("most", most.into())]).in_workspace(&workspace);
    world.write(vec![statement]);
}

/// Puts three rows into the list.
fn fill(world: &World, list: &Operation) {
    let create =
        OPERATIONS.iter().find(|operation| operation.path == list.path && operation.method == Method::POST);
    for _ in 0..3 {
        match create {
            Some(create) => assert_eq!(Call::valid(world, create).rest(world).status, 201),
            None if list.path == "/numbers" => drop(world.binding()),
            None => {}
        }
    }
}

/// The ids, oldest first.
fn make_assistants(world: &World, count: usize) -> Vec<String> {
    (0..count).map(|_| world.assistant().id).collect()
}

#[test]
fn the_documents_show_parameters_and_the_header() {
    let world = World::new();
    let document = world.get("/openapi.json").ok().json;
    for operation in OPERATIONS.iter().filter(|operation| operation.id.starts_with("list_")) {
        let described = &document["paths"][operation.path]["get"];
        assert!(described["responses"]["200"]["headers"]["Link"].is_object(), "{}", operation.id);
        let names: Vec<&Value> =
            described["parameters"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
        assert!(names.contains(&&json!("limit")), "{}: {names:?}", operation.id);
    }
}
