//! Personas, scenarios and the simulations that pair them with an assistant.
use serde_json::{Value, json};
use sidetone_tests::World;

#[test]
fn create_change_and_delete_a_persona() {
    let world = World::new();
    let made = world.persona();
    assert!(made.id.starts_with("pers_"));
    assert_eq!(
        made.json,
        json!({"id": made.id, "name": "Ada", "system_prompt": "You are in a hurry.", "model": null,
               "metadata": {}, "created_at": made["created_at"], "updated_at": made["created_at"]})
    );
    let path = format!("/simulations/personas/{}", made.id);
    assert_eq!(world.get(&path).ok().json, made.json);
    assert_eq!(world.get("/simulations/personas").ok().json, json!([made.json]));
    assert_eq!(world.patch(&path, json!({"name": "Grace"})).ok()["system_prompt"], "You are in a hurry.");
    world
        .post("/simulations/personas", json!({}))
        .refused("validation_failed")
        .naming(&["name", "system_prompt"]);
    for over in ["x".repeat(32_769), "é".repeat(16_385)] {
        world
            .patch(&path, json!({"system_prompt": over}))
            .refused("validation_failed")
            .naming(&["system_prompt"]);
    }
    world.patch(&path, json!({"system_prompt": "é".repeat(16_384)})).ok();
    world.delete(&path).empty();
    world.get(&path).refused("not_found");
}

#[test]
fn the_caller_and_the_judge_have_their_own_models() {
    let world = World::new();
    for (path, field) in [
        (format!("/simulations/personas/{}", world.persona().id), "model"),
        (format!("/simulations/scenarios/{}", world.scenario().id), "judge_model"),
    ] {
        assert_eq!(world.patch(&path, json!({field: "builtin/rules"})).ok()[field], "builtin/rules");
        for bad in ["rules", "nobody/gpt", ""] {
            world.patch(&path, json!({field: bad})).refused("validation_failed").naming(&[field]);
        }
        assert_eq!(world.patch(&path, json!({field: null})).ok()[field], Value::Null);
    }
}

#[test]
fn create_change_and_delete_a_scenario() {
    let world = World::new();
    let evaluations = json!([
        {"kind": "transcript", "role": "assistant", "includes": "booked"},
        {"kind": "transcript_excludes", "role": "any", "includes": "sorry"},
        {"kind": "tool_call", "role": "tool", "includes": "book", "arguments": {"guests": 4, "at": {"hour": 19}}, "times": 1},
        {"kind": "tool_not_called", "role": "any", "includes": "cancel"},
        {"kind": "no_tool_error", "role": "any", "includes": "*"},
        {"kind": "judge", "role": "user", "includes": "The caller is happy."},
    ]);
    let body = json!({"name": "Booking", "instructions": "Book a table.", "evaluations": evaluations});
    let made = world.create("/simulations/scenarios", body);
    assert!(made.id.starts_with("scen_"));
    assert_eq!(
        made.json,
        json!({"id": made.id, "name": "Booking", "instructions": "Book a table.", "evaluations": evaluations, "judge_model": null, "judge_votes": 1, "tool_mocks": {},
               "conditions": {"packet_loss": 0, "jitter_ms": 0, "noise_db": null, "talk_over": 0, "slow_talker": false},
               "variables": {}, "metadata": {}, "created_at": made["created_at"], "updated_at": made["created_at"]})
    );
    let path = format!("/simulations/scenarios/{}", made.id);
    assert_eq!(world.get(&path).ok().json, made.json);
    assert_eq!(world.get("/simulations/scenarios").ok().json, json!([made.json]));
    assert_eq!(world.patch(&path, json!({"evaluations": []})).ok()["evaluations"], json!([]));
    assert_eq!(world.scenario()["evaluations"], json!([]));
    world.delete(&path).empty();
    world.get(&path).refused("not_found");
    world
        .post("/simulations/scenarios", json!({}))
        .refused("validation_failed")
        .naming(&["name", "instructions"]);
}

#[test]
fn the_error_names_an_invalid_evaluation() {
    let world = World::new();
    let path = format!("/simulations/scenarios/{}", world.scenario().id);
    let good = json!({"kind": "judge", "role": "any", "includes": "x"});
    for (bad, field) in [
        (json!({"kind": "vibes", "role": "any", "includes": "x"}), "evaluations[1].kind"),
        (json!({"kind": "", "includes": "x"}), "evaluations[1].kind"),
        (json!({"role": "any", "includes": "x"}), "evaluations[1].kind"),
        (json!({"kind": "judge", "role": "caller", "includes": "x"}), "evaluations[1].role"),
        (json!({"kind": "judge", "role": null, "includes": "x"}), "evaluations[1].role"),
        (json!({"kind": "judge", "role": "any"}), "evaluations[1].includes"),
        (json!({"kind": "judge", "role": "any", "includes": ""}), "evaluations[1].includes"),
        (json!({"kind": "judge", "role": "any", "includes": " \n\t"}), "evaluations[1].includes"),
        (json!({"kind": "judge", "role": "any", "includes": "x".repeat(2_001)}), "evaluations[1].includes"),
        (json!({"kind": "judge", "role": "any", "includes": "x", "weight": 1}), "evaluations[1].weight"),
        (json!({"kind": "tool_call", "includes": "x", "times": 0}), "evaluations[1].times"),
        (json!({"kind": "tool_call", "includes": "x", "times": 101}), "evaluations[1].times"),
        (json!({"kind": "tool_call", "includes": "x", "arguments": []}), "evaluations[1].arguments"),
        (
            json!({"kind": "tool_call", "includes": "x", "arguments": {"a": "x".repeat(4_100)}}),
            "evaluations[1].arguments",
        ),
        (json!({"kind": "judge", "includes": "x", "times": 1}), "evaluations[1].times"),
        (json!({"kind": "tool_not_called", "includes": "x", "arguments": {}}), "evaluations[1].arguments"),
        (json!("judge"), "evaluations[1]"),
        (json!(null), "evaluations[1]"),
    ] {
        let reply = world.patch(&path, json!({"evaluations": [good, bad]})).refused("validation_failed");
        assert_eq!(reply.fields(), [field], "{bad}");
    }
    let sixty_five: Vec<&Value> = std::iter::repeat_n(&good, 65).collect();
    world
        .patch(&path, json!({"evaluations": sixty_five}))
        .refused("validation_failed")
        .naming(&["evaluations"]);
    world.patch(&path, json!({"evaluations": sixty_five[1..]})).ok();
    for votes in [0, 10] {
        world
            .patch(&path, json!({"judge_votes": votes}))
            .refused("validation_failed")
            .naming(&["judge_votes"]);
    }
    assert_eq!(world.patch(&path, json!({"judge_votes": 9})).ok()["judge_votes"], 9);
}

#[test]
fn the_default_name_is_persona_and_scenario() {
    let world = World::new();
    let (assistant, persona, scenario) = (world.assistant().id, world.persona().id, world.scenario().id);
    let ids = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    let made = world.create("/simulations", ids.clone());
    assert!(made.id.starts_with("sim_"));
    assert_eq!(
        made.json,
        json!({"id": made.id, "assistant_id": assistant, "persona_id": persona, "scenario_id": scenario,
               "name": "Ada × Booking", "last_run": null, "metadata": {}, "created_at": made["created_at"], "updated_at": made["created_at"]})
    );
    let mut named = ids.clone();
    named["name"] = "Rush hour".into();
    let named = world.create("/simulations", named);
    assert_eq!(named["name"], "Rush hour");
    let mut null = ids;
    null["name"] = Value::Null;
    assert_eq!(world.create("/simulations", null)["name"], "Ada × Booking");
    let path = format!("/simulations/{}", named.id);
    assert_eq!(world.patch(&path, json!({"name": null})).ok()["name"], "Ada × Booking");
    let unchanged = world.get(&path).ok();
    assert_eq!(world.patch(&path, json!({})).ok().json, unchanged.json);
    world.delete(&path).empty();
    world.get(&path).refused("not_found");
}

#[test]
fn a_default_name_from_two_long_names_fits() {
    let world = World::new();
    let long = "é".repeat(120);
    let persona = world.create("/simulations/personas", json!({"name": long, "system_prompt": "x"})).id;
    let scenario = world.create("/simulations/scenarios", json!({"name": long, "instructions": "x"})).id;
    let ids = json!({"assistant_id": world.assistant().id, "persona_id": persona, "scenario_id": scenario});
    let made = world.create("/simulations", ids);
    let name = made["name"].as_str().unwrap();
    assert_eq!(name, format!("{long} × {long}"));
    world.patch(format!("/simulations/{}", made.id), json!({"name": name})).ok();
}

#[test]
fn a_simulation_refers_only_to_resources_of_its_workspace() {
    let world = World::new();
    let other = world.other();
    let theirs = json!({"assistant_id": other.assistant().id, "persona_id": other.persona().id, "scenario_id": other.scenario().id});
    let all = ["assistant_id", "persona_id", "scenario_id"];
    world.post("/simulations", theirs.clone()).refused("validation_failed").naming(&all);
    world.post("/simulations", json!({})).refused("validation_failed").naming(&all);
    let mine = world.simulation();
    let path = format!("/simulations/{}", mine.id);
    for field in all {
        let theirs =
            world.patch(&path, json!({field: theirs[field]})).refused("validation_failed").naming(&[field]);
        let unknown =
            world.patch(&path, json!({field: "nope"})).refused("validation_failed").naming(&[field]);
        assert_eq!(theirs["error"]["message"], unknown["error"]["message"]);
    }
    assert_eq!(world.get(&path).ok().json, mine.json);
}

#[test]
fn simulations_are_listed_by_assistant() {
    let world = World::new();
    let (one, two) = (world.assistant().id, world.assistant().id);
    let (a, b, c) =
        (world.simulation_of(&one).id, world.simulation_of(&two).id, world.simulation_of(&one).id);
    assert_eq!(world.get("/simulations").ok().ids(), [&*c, &*b, &*a]);
    assert_eq!(world.get(format!("/simulations?assistant_id={one}")).ok().ids(), [&*c, &*a]);
    assert_eq!(world.get(format!("/simulations?assistant_id={two}")).ok().ids(), [&*b]);
    assert_eq!(world.get("/simulations?assistant_id=asst_nope").ok().json, json!([]));
    assert_eq!(world.other().get(format!("/simulations?assistant_id={one}")).ok().json, json!([]));
}

#[test]
fn a_simulation_shows_its_latest_run() {
    let world = World::new();
    let simulation = world.simulation();
    let last = || world.get(format!("/simulations/{}", simulation.id)).ok()["last_run"].clone();
    assert_eq!((&simulation["last_run"], last()), (&json!(null), json!(null)));
    let start = || world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7})).id;
    let first = start();
    world.settle(&first);
    let second = start();
    let run = world.settle(&second);
    let shown = json!({"id": second, "status": run["status"], "passed": run["passed"]});
    assert_eq!(last(), shown);
    assert_eq!(world.get("/simulations").ok().json[0]["last_run"], shown);
    world.delete(format!("/simulations/runs/{second}")).empty();
    assert_eq!(last()["id"], first.as_str());
}

#[test]
fn deleting_a_persona_or_scenario_deletes_its_simulations() {
    let world = World::new();
    let assistant = world.assistant().id;
    let kept = world.simulation_of(&assistant).id;
    let [first, second] = [world.simulation_of(&assistant), world.simulation_of(&assistant)];
    let run = world.create(&format!("/simulations/{}/runs", first.id), json!({}));
    world.delete(format!("/simulations/personas/{}", first["persona_id"].as_str().unwrap())).empty();
    world.get(format!("/simulations/{}", first.id)).refused("not_found");
    world.delete(format!("/simulations/scenarios/{}", second["scenario_id"].as_str().unwrap())).empty();
    assert_eq!(world.get("/simulations").ok().ids(), [kept]);
    // The other resource of each pair and completed runs remain.
    world.get(format!("/simulations/scenarios/{}", first["scenario_id"].as_str().unwrap())).ok();
    world.get(format!("/simulations/personas/{}", second["persona_id"].as_str().unwrap())).ok();
    world.get(format!("/simulations/runs/{}", run.id)).ok();
}
