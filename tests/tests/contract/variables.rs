//! Variables: what fills in `{{name}}` in the texts of an assistant, and what is refused.
use serde_json::{Value, json};
use sidetone_tests::{LiveClient, World, fakes};

const GREETING: &str = "Hello {{name}}, this is {{ shop }}.";

fn assistant(world: &World, first_message: &str) -> String {
    let body =
        json!({"name": "Caller", "instructions": "Speak with {{name}}.", "first_message": first_message});
    world.create("/assistants", body).id
}

/// A simulation of the assistant, whose scenario has these variables.
fn simulation(world: &World, assistant: &str, variables: &Value) -> String {
    let scenario = json!({"name": "Order", "instructions": "\"Goodbye.\"", "variables": variables});
    let scenario = world.create("/simulations/scenarios", scenario).id;
    let persona = json!({"name": "Ada", "system_prompt": "You are brief.", "model": "builtin/rules"});
    let persona = world.create("/simulations/personas", persona).id;
    let body = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    world.create("/simulations", body).id
}

fn first_line(conversation: &Value) -> &Value {
    &conversation["transcript"][0]["text"]
}

fn open<'a>(world: &'a World, assistant: &str, body: Value) -> LiveClient<'a> {
    let token = world.post(format!("/assistants/{assistant}/test-token"), body).ok();
    world.connect(token["websocket_url"].as_str().unwrap()).expect("the token is good")
}

#[test]
fn those_of_a_run_are_laid_over_those_of_its_scenario() {
    let world = World::new();
    let assistant = assistant(&world, GREETING);
    let simulation = simulation(&world, &assistant, &json!({"name": "Ada", "shop": "Bread & Co"}));
    let path = format!("/simulations/{simulation}/runs");
    for (sent, effective, line) in [
        (json!({}), json!({"name": "Ada", "shop": "Bread & Co"}), "Hello Ada, this is Bread & Co."),
        // What looks like a name in a value is text, and what nothing uses is kept.
        (
            json!({"name": "{{shop}} {{", "city": "Bonn"}),
            json!({"city": "Bonn", "name": "{{shop}} {{", "shop": "Bread & Co"}),
            "Hello {{shop}} {{, this is Bread & Co.",
        ),
        (json!({"name": ""}), json!({"name": "", "shop": "Bread & Co"}), "Hello , this is Bread & Co."),
    ] {
        let run = world.settle(&world.create(&path, json!({"variables": sent})).id);
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(first_line(&run["call"]), line);
        assert_eq!((&run["variables"], &run["call"]["variables"]), (&effective, &effective));
        let call = world.get(format!("/calls/{}", run["call_id"].as_str().unwrap())).ok().json;
        assert_eq!((&call["variables"], first_line(&call)), (&effective, &json!(line)));
        let listed = world.get("/calls?limit=1").ok().json;
        assert_eq!(listed["calls"][0]["variables"], Value::Null, "a list leaves them out");
    }
    let batch = json!({"assistant_id": assistant, "variables": {"shop": "Tea & Co"}});
    let batch = world.post("/simulations/runs/batch", batch).created();
    let run = world.settle(batch["runs"][0]["id"].as_str().unwrap());
    assert_eq!(first_line(&run["call"]), "Hello Ada, this is Tea & Co.");
}

#[test]
fn they_fill_in_the_instructions_that_a_model_is_given() {
    let world = World::with_fakes();
    let body = json!({"name": "Caller", "instructions": "Speak with {{name}}.", "model": "fake/echo"});
    let assistant = world.create("/assistants", body).id;
    let name = format!("Ada {}", assistant);
    let simulation = simulation(&world, &assistant, &json!({"name": name}));
    let run = world.settle(&world.create(&format!("/simulations/{simulation}/runs"), json!({})).id);
    assert_eq!(run["error"], Value::Null, "{run}");
    let mut client = open(&world, &assistant, json!({"variables": {"name": format!("Live {name}")}}));
    client.expect("call_started");
    client.say("Hello!");
    client.hear();
    let asked = fakes::shared().asked(fakes::KEY);
    let told: Vec<String> = asked.iter().map(|asked| asked.body.to_string()).collect();
    for wanted in [format!("Speak with {name}."), format!("Speak with Live {name}.")] {
        assert!(told.iter().any(|body| body.contains(&wanted)), "{wanted}");
    }
}

#[test]
fn the_time_and_the_callers_number_are_built_in() {
    let world = World::new();
    let assistant = world.create(
        "/assistants",
        json!({"name": "Clock", "instructions": "Be kind.", "first_message": "It is {{now}}, {{caller_number}}!"}),
    );
    let simulation = simulation(&world, &assistant.id, &json!({}));
    let path = format!("/simulations/{simulation}/runs");
    let run = world.settle(&world.create(&path, json!({})).id);
    let started_at = run["call"]["started_at"].as_str().unwrap();
    assert_eq!(first_line(&run["call"]), &json!(format!("It is {started_at}, !")));
    assert_eq!(run["variables"], json!({}));
    // Given values are used instead, so that a run can be repeated.
    let given = json!({"variables": {"now": "noon", "caller_number": "+14155550123"}});
    let run = world.settle(&world.create(&path, given).id);
    assert_eq!(first_line(&run["call"]), "It is noon, +14155550123!");
}

#[test]
fn a_conversation_in_the_browser_has_those_of_its_token() {
    let world = World::new();
    let assistant = assistant(&world, GREETING);
    let body = json!({"variables": {"name": "Ada", "shop": "us"}, "metadata": {"order": "7"}});
    let token = world.post(format!("/assistants/{assistant}/test-token"), body).ok();
    let url = token["websocket_url"].as_str().unwrap();
    let mut client = world.connect(url).expect("the token is good");
    let started = client.expect("call_started");
    assert_eq!(client.hear(), "Hello Ada, this is us.");
    let id = started["call"]["id"].as_str().unwrap();
    let call = world.get(format!("/calls/{id}")).ok().json;
    assert_eq!(call["variables"], json!({"name": "Ada", "shop": "us"}));
    assert_eq!(call["metadata"], json!({"order": "7"}));
    assert_eq!(world.connect(url).map(drop).unwrap_err().code(), "token_used");
    client.send(r#"{"type": "hang_up"}"#);
    client.expect("call_ended");
    let call = world.settled_call(id);
    assert_eq!((&call["variables"]["name"], &call["metadata"]["order"]), (&json!("Ada"), &json!("7")));
    // A repeated request under an Idempotency-Key gets the same token, with the same values.
    let body = json!({"variables": {"name": "Bob", "shop": "us"}});
    let path = format!("/assistants/{assistant}/test-token");
    let first = world.post_once(&path, "twice", body.clone()).ok();
    let again = world.post_once(&path, "twice", body).ok();
    assert_eq!(first["token"], again["token"]);
    let mut client = world.connect(again["websocket_url"].as_str().unwrap()).expect("the token is good");
    client.expect("call_started");
    assert_eq!(client.hear(), "Hello Bob, this is us.");
}

/// The texts may have changed since the variables were checked.
#[test]
fn what_is_left_out_is_noted_in_the_transcript() {
    let world = World::new();
    let assistant = assistant(&world, "Hello {{name}}!");
    let token =
        world.post(format!("/assistants/{assistant}/test-token"), json!({"variables": {"name": "Ada"}})).ok();
    world
        .patch(
            format!("/assistants/{assistant}"),
            json!({"first_message": "Hi {{name}}, {{ city}} {{city}}?"}),
        )
        .ok();
    let mut client = world.connect(token["websocket_url"].as_str().unwrap()).expect("the token is good");
    let id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    assert_eq!(client.hear(), "Hi Ada,  ?");
    client.send(r#"{"type": "hang_up"}"#);
    client.expect("call_ended");
    let call = world.settled_call(&id);
    let rows: Vec<_> =
        call["transcript"].as_array().unwrap().iter().map(|row| (&row["role"], &row["text"])).collect();
    assert_eq!(rows[0], (&json!("system"), &json!("Nothing was filled in for {{city}}")));
    assert_eq!(rows[1], (&json!("assistant"), &json!("Hi Ada,  ?")));
}

#[test]
fn names_without_a_value_are_refused_before_anything_starts() {
    let world = World::new();
    let assistant = assistant(&world, GREETING);
    let simulation = simulation(&world, &assistant, &json!({"zip": "1"}));
    let number = format!("/numbers/{}", world.phone_number());
    world.put(number, json!({"assistant_id": assistant, "provider": "twilio"})).ok();
    let order = json!({"assistant_id": assistant, "to": "+14155557777"});
    for (path, body) in [
        (format!("/simulations/{simulation}/runs"), json!({})),
        ("/simulations/runs/batch".to_owned(), json!({"assistant_id": assistant})),
        (format!("/assistants/{assistant}/test-token"), json!({})),
        ("/calls/outbound".to_owned(), order.clone()),
    ] {
        let refusal = world.post(&path, body.clone()).refused("missing_variables");
        assert_eq!(refusal.status, 422);
        assert_eq!(refusal["error"]["details"], json!({"names": ["name", "shop"]}), "{path}");
        let mut some = body;
        some["variables"] = json!({"shop": "us"});
        let refusal = world.post(&path, some).refused("missing_variables");
        assert_eq!(refusal["error"]["details"], json!({"names": ["name"]}), "{path}");
    }
    let dry = world.post("/calls/outbound?dry_run=true", order).created();
    assert_eq!(dry["would_place"], false);
    let found = |problem: &&Value| problem["code"] == "missing_variables";
    let problem = dry["problems"].as_array().unwrap().iter().find(found).unwrap();
    assert_eq!(problem["details"], json!({"names": ["name", "shop"]}));
    let arguments = json!({"id": simulation, "confirm": true, "data": {"variables": {"name": "Ada"}}});
    let refusal = world.tool("start_simulation_run", arguments).refused("missing_variables");
    assert_eq!(refusal["error"]["details"], json!({"names": ["shop"]}));
    for path in ["/calls", "/simulations/runs"] {
        assert_eq!(world.get(path).ok()["pagination"]["total"], 0, "{path}");
    }
    // The built-in ones have values, and a machine's message counts where one may answer.
    let voicemail =
        json!({"action": "leave_message", "message": "Call {{company}} back, {{caller_number}}."});
    world.patch(format!("/assistants/{assistant}"), json!({"voicemail": voicemail})).ok();
    let filled = json!({"name": "Ada", "shop": "us"});
    world.post(format!("/assistants/{assistant}/test-token"), json!({"variables": filled})).ok();
    let order = json!({"assistant_id": assistant, "to": "+14155557777", "variables": filled});
    let refusal = world.post("/calls/outbound", order).refused("missing_variables");
    assert_eq!(refusal["error"]["details"], json!({"names": ["company"]}));
}

/// One answer says what a whole batch needs.
#[test]
fn a_batch_names_what_any_of_its_runs_misses() {
    let world = World::new();
    let assistant = assistant(&world, GREETING);
    simulation(&world, &assistant, &json!({"name": "Ada"}));
    simulation(&world, &assistant, &json!({"shop": "us"}));
    simulation(&world, &assistant, &json!({"name": "Ada", "shop": "us"}));
    let body = |variables: Value| json!({"assistant_id": assistant, "variables": variables});
    let refusal = world.post("/simulations/runs/batch", body(json!({}))).refused("missing_variables");
    assert_eq!(refusal["error"]["details"], json!({"names": ["name", "shop"]}));
    let refusal =
        world.post("/simulations/runs/batch", body(json!({"name": "Eve"}))).refused("missing_variables");
    assert_eq!(refusal["error"]["details"], json!({"names": ["shop"]}));
    let batch = world.post("/simulations/runs/batch", body(json!({"name": "Eve", "shop": "you"}))).created();
    assert_eq!(batch["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn what_is_wrong_with_them_is_named() {
    let world = World::new();
    let assistant = world.assistant().id;
    let simulation = simulation(&world, &assistant, &json!({}));
    let many = |count: usize| -> Value { (0..count).map(|n| (format!("v{n}"), json!("x"))).collect() };
    let long = |bytes: usize, count: usize| -> Value {
        (0..count).map(|n| (format!("v{n:02}"), json!("x".repeat(bytes)))).collect()
    };
    let paths = [
        format!("/simulations/{simulation}/runs"),
        format!("/assistants/{assistant}/test-token"),
        "/simulations/scenarios".to_owned(),
    ];
    for path in &paths {
        let body = |variables: Value| match path.ends_with("scenarios") {
            true => json!({"name": "Order", "instructions": "Order.", "variables": variables}),
            false => json!({"variables": variables}),
        };
        for (bad, field) in [
            (json!({"Name": "x"}), "variables.Name"),
            (json!({"1st": "x"}), "variables.1st"),
            (json!({"": "x"}), "variables."),
            (json!({"a-b": "x"}), "variables.a-b"),
            (json!({"name": 7}), "variables.name"),
            (json!({"name": null}), "variables.name"),
            (json!({"name": {"first": "Ada"}}), "variables.name"),
            (json!({"name": "x".repeat(1_025)}), "variables.name"),
            (json!({"name": "é".repeat(513)}), "variables.name"),
            (many(65), "variables"),
            (long(1_000, 17), "variables"),
            (json!([]), "variables"),
            (json!("name"), "variables"),
            (Value::Null, "variables"),
        ] {
            world.post(path, body(bad)).refused("validation_failed").naming(&[field]);
        }
        for good in [many(64), long(1_000, 16), json!({"name": "a\nb", "x": "é".repeat(512)})] {
            let reply = world.post(path, body(good));
            assert!(reply.status < 300, "{path}: {reply:?}");
        }
    }
    // A text with its values is no longer than its field may be.
    world.patch(format!("/assistants/{assistant}"), json!({"first_message": "{{a}} ".repeat(3)})).ok();
    let three = |bytes: usize| json!({"variables": {"a": "x".repeat(bytes)}});
    for path in &paths[..2] {
        world.post(path, three(666)).refused("validation_failed").naming(&["variables"]);
        let reply = world.post(path, three(665));
        assert!(reply.status < 300, "{path}: {reply:?}");
    }
}

#[test]
fn only_so_many_tokens_with_values_wait() {
    let world = World::new();
    if world.sandbox().is_none() {
        return;
    }
    let path = format!("/assistants/{}/test-token", world.assistant().id);
    let body = json!({"variables": {"name": "Ada"}});
    for _ in 0..1_000 {
        world.post(&path, body.clone()).ok();
    }
    let refusal = world.post(&path, body.clone()).refused("limit_reached");
    assert_eq!(refusal["error"]["details"]["limit"], 1_000);
    world.post(&path, json!({})).ok();
    let stranger = world.other();
    stranger.post(format!("/assistants/{}/test-token", stranger.assistant().id), body.clone()).ok();
    // Those that have expired make room, although the sweep has not deleted them yet.
    world.sandbox().unwrap().advance(300_000);
    world.post(&path, body).ok();
}
