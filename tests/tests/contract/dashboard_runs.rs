//! The pages of simulation runs: what came of each evaluation, and where in the conversation.
use serde_json::{Value, json};
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

/// An address that no other test uses.
fn address(name: &str) -> String {
    format!("{name}-{}@runs.example", std::process::id())
}

/// A visitor with an assistant and a simulation of three evaluations, and the simulation's id.
fn simulated(world: &World, name: &str) -> (Visitor, World, String) {
    let mut visitor = Visitor::signed_in(world, &address(name));
    let api = visitor.api(world);
    let assistant = api.assistant().id;
    let evaluations = json!([
        {"kind": "transcript", "role": "any", "includes": "Saturday"},
        {"kind": "transcript_excludes", "role": "any", "includes": "Saturday"},
        {"kind": "tool_call", "role": "any", "includes": "find_slot"},
    ]);
    let scenario = json!({"name": "Hours", "instructions": "Ask \"When do you open on Saturday?\"", "evaluations": evaluations});
    let id = |path: &str, body: Value| api.post(path, body).created()["id"].as_str().unwrap().to_owned();
    let scenario = id("/simulations/scenarios", scenario);
    let persona = id("/simulations/personas", json!({"name": "Hurried", "system_prompt": "Be brief."}));
    let simulation = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    let simulation = id("/simulations", simulation);
    (visitor, api, simulation)
}

fn run(api: &World, simulation: &str) -> Value {
    let started = api.post(format!("/simulations/{simulation}/runs"), json!({"mode": "chat"})).created();
    let id = started["id"].as_str().unwrap().to_owned();
    api.settle(&id);
    api.get(format!("/simulations/runs/{id}")).ok().json
}

/// A time in a conversation as the transcript shows it.
fn moment(ms: i64) -> String {
    format!("{}:{:02}.{}", ms / 60_000, ms / 1000 % 60, ms / 100 % 10)
}

#[test]
fn two_runs_are_compared_by_their_evaluations_and_their_starts() {
    let world = World::new();
    let (mut visitor, api, simulation) = simulated(&world, "compare");
    let runs = [run(&api, &simulation), run(&api, &simulation)];
    let [one, other] = runs.each_ref().map(|run| run["id"].as_str().unwrap());
    let page = text(&visitor.get(&format!("/dashboard/simulations/runs/{one}/compare/{other}")));
    let table = page.split("aria-label=\"Evaluations of both runs\"").nth(1).expect("a table");
    let table = table.split("</table>").next().unwrap();
    for (result, times) in [("Passed", 2), ("Failed", 4)] {
        assert_eq!(table.matches(&format!(">{result}<")).count(), times, "{result}: {table}");
    }
    assert_eq!(table.matches("has no tool of this name").count(), 2, "why, for each run: {table}");
    for run in &runs {
        let start = run["started_at"].as_str().unwrap();
        let time = format!("<time datetime=\"{start}\"");
        let same = runs.iter().filter(|other| other["started_at"] == start).count();
        assert_eq!(page.matches(&time).count(), same, "above each conversation: {page}");
    }
    assert!(!page.contains("just now"), "{page}");
}

/// A line of a conversation is called by its time wherever a page speaks of it.
#[test]
fn lines_are_called_by_their_time() {
    let world = World::new();
    let (mut visitor, api, simulation) = simulated(&world, "lines");
    let runs = [run(&api, &simulation), run(&api, &simulation)];
    let [one, other] = runs.each_ref().map(|run| run["id"].as_str().unwrap());
    let found = &runs[0]["evaluations"][0];
    let index = usize::try_from(found["matched_index"].as_i64().unwrap()).unwrap();
    assert_eq!(found["reason"], "Found in a line of the user.");
    let time = moment(runs[0]["call"]["transcript"][index]["start_ms"].as_i64().unwrap());
    let pages = [
        text(&visitor.get(&format!("/dashboard/simulations/runs/{one}"))),
        text(&visitor.get(&format!("/dashboard/simulations/runs/{one}/compare/{other}"))),
    ];
    for page in pages {
        assert!(page.contains(&format!("#row-{index}\">At {time}</a>")), "{time}: {page}");
        assert!(page.contains(&format!(">{time}</button>")), "as the transcript shows it: {page}");
        assert!(!page.contains(" row 1") && !page.contains("Row "), "{page}");
    }
}

/// Calls of people and those of simulations are told apart.
#[test]
fn the_overview_tells_calls_from_simulations() {
    let world = World::new();
    let (mut visitor, api, simulation) = simulated(&world, "overview");
    run(&api, &simulation);
    run(&api, &simulation);
    let assistant = api.get("/assistants").ok().json[0]["id"].as_str().unwrap().to_owned();
    let mut client = api.start_conversation(&assistant);
    client.expect("call_started");
    client.send(r#"{"type": "hang_up"}"#);
    client.expect("call_ended");
    let page = text(&visitor.get("/dashboard"));
    let calls = page.split("<dt>Calls</dt>").nth(1).unwrap().split("</div>").next().unwrap();
    assert!(calls.starts_with("<dd>3<") && calls.contains("1 by telephone or browser"), "{calls}");
    assert!(calls.contains("source=simulation\">2 simulated"), "{calls}");
}

/// Numbers and JSON in a row of a form; what is empty is left out.
#[test]
fn a_row_of_a_form_restricts_a_tool_call() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("arguments"));
    let rows = json!([
        {"kind": "tool_call", "role": "any", "includes": "book", "arguments": "{\"guests\": 4}", "times": "2"},
        {"kind": "transcript", "role": "user", "includes": "ten", "arguments": "", "times": " "},
    ]);
    let scenario = [("name", "Booking"), ("instructions", "Book."), ("evaluations", &*rows.to_string())];
    visitor.act("create_simulation_scenario", "/dashboard/simulations/scenarios/new", &scenario);
    let scenario = visitor.api(&world).get("/simulations/scenarios").ok().json[0].clone();
    let stored = json!([
        {"kind": "tool_call", "role": "any", "includes": "book", "arguments": {"guests": 4}, "times": 2},
        {"kind": "transcript", "role": "user", "includes": "ten"},
    ]);
    assert_eq!(scenario["evaluations"], stored);
    let path = format!("/dashboard/simulations/scenarios/{}", scenario["id"].as_str().unwrap());
    let page = text(&visitor.get(&path));
    assert!(page.contains("{&quot;guests&quot;:4}</textarea>") && page.contains("\n2</textarea>"), "{page}");
}

/// What nothing decides is neither passed nor failed, and the page says why.
#[test]
fn a_run_that_is_not_decided_says_why() {
    let world = World::new();
    let (mut visitor, api, simulation) = simulated(&world, "open");
    let scenario =
        api.get(format!("/simulations/{simulation}")).ok()["scenario_id"].as_str().unwrap().to_owned();
    let evaluations = json!([{"kind": "judge", "role": "any", "includes": "The assistant is polite."}]);
    api.patch(format!("/simulations/scenarios/{scenario}"), json!({"evaluations": evaluations})).ok();
    let run = run(&api, &simulation);
    let page = text(&visitor.get(&format!("/dashboard/simulations/runs/{}", run["id"].as_str().unwrap())));
    assert!(
        page.contains("Not decided") && page.contains("builtin/rules cannot decide this criterion"),
        "{page}"
    );
    assert!(page.contains("0 of 1 passed"), "{page}");
    let assistant = run["assistant_id"].as_str().unwrap();
    let batch = api.post("/simulations/runs/batch", json!({"assistant_id": assistant})).created();
    api.settle(batch["runs"][0]["id"].as_str().unwrap());
    let page = format!("/dashboard/simulations/batches/{}", batch["batch_id"].as_str().unwrap());
    let page = text(&visitor.get(&page));
    assert!(page.contains("0 passed, 0 failed, 1 not decided"), "{page}");
}

/// The API's words for the kinds of evaluations are beside plain ones.
#[test]
fn kinds_of_evaluations_have_plain_labels() {
    let world = World::new();
    let (mut visitor, api, simulation) = simulated(&world, "kinds");
    let page = text(&visitor.get("/dashboard/simulations/scenarios/new"));
    // Without a row, the list is sent as an empty one.
    assert!(page.contains("<input type=\"hidden\" name=\"evaluations[].kind\" value=\"\">"), "{page}");
    let row = page.split("<div class=\"rowform\">").nth(1).unwrap();
    let row = row.split("</div>").next().unwrap();
    let choices: Vec<_> = row.split("<option value=\"").skip(1).collect();
    assert!(choices.iter().any(|choice| choice.starts_with("tool_call\"")), "{row}");
    for choice in choices {
        let value = choice.split('"').next().unwrap();
        let label = choice.split('>').nth(1).unwrap().split('<').next().unwrap();
        assert!(!label.is_empty() && label != value, "{choice}");
    }
    let run = run(&api, &simulation);
    let page = text(&visitor.get(&format!("/dashboard/simulations/runs/{}", run["id"].as_str().unwrap())));
    assert!(page.contains("<span title=\"tool_call\">Calls <code>find_slot</code></span>"), "{page}");
}
