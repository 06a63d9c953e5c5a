//! Voice runs: caller and assistant through the whole audio path, on every host to the same bytes.
use serde_json::{Value, json};
use sidetone_tests::World;
use sidetone_tests::example::sha256;

#[test]
fn a_voice_run_is_spoken_and_recorded() {
    let world = World::new();
    let run = voice_run(&world, json!({}));
    assert_eq!(
        (&run["status"], &run["passed"], &run["mode"]),
        (&json!("completed"), &json!(true), &json!("voice"))
    );
    let call = &run["call"];
    assert_eq!(call["source"], "simulation");
    let duration_ms = call["duration_ms"].as_i64().unwrap();
    assert_eq!(call["recording"]["duration_ms"], duration_ms);
    let rows = run["transcript"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["text"] == "When do you open on Saturday?"), "{rows:?}");
    assert!(rows.windows(2).all(|pair| pair[0]["start_ms"].as_i64() <= pair[1]["start_ms"].as_i64()));
    assert!(rows.last().unwrap()["end_ms"].as_i64().unwrap() <= duration_ms);
    let turn = &call["turns"][0];
    assert!(turn["end_of_speech_ms"].is_i64() && turn["heard_first_ms"].is_i64(), "{turn}");
    let file = recording(&world, &run);
    assert_eq!(i64::try_from(file.len()).unwrap(), 44 + duration_ms * 32);
}

/// The same hash on every host, and after every change that does not mean to change how a run sounds.
#[test]
fn the_recording_is_the_same_on_every_host() {
    let conditions =
        json!({"packet_loss": 1, "jitter_ms": 61, "noise_db": -40, "talk_over": 50, "slow_talker": true});
    let worlds = [(); 2].map(|()| World::new());
    let [one, other] = [0, 1].map(|place: usize| voice_run(&worlds[place], conditions.clone()));
    assert_eq!(one["transcript"], other["transcript"]);
    assert_eq!(one["call"]["turns"], other["call"]["turns"]);
    let (file, again) = (recording(&worlds[0], &one), recording(&worlds[1], &other));
    assert!(file == again, "the bytes differ");
    assert_eq!(sha256(&file), "291de1421ec4a043be41b1bc3b3a3313bfae84bc442e0696ec11c2b9d8bdbc0c");
}

#[test]
fn a_caller_who_talks_over_the_assistant_interrupts_it() {
    let world = World::new();
    let run = voice_run(&world, json!({"talk_over": 100}));
    let rows = run["transcript"].as_array().unwrap();
    let cut = rows.iter().find(|row| row["interrupted"] == true).expect("an interrupted row");
    assert_eq!(cut["role"], "assistant");
    assert!(cut["intended_text"].as_str().unwrap().len() > cut["text"].as_str().unwrap().len());
}

#[test]
fn extreme_conditions_end_truthfully() {
    for conditions in [json!({"packet_loss": 100}), json!({"jitter_ms": 1_000}), json!({"noise_db": 0})] {
        let world = World::new();
        let run = voice_run(&world, conditions);
        assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(false)), "{run}");
        let rows = run["transcript"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["role"] != "user"), "nothing was understood: {rows:?}");
        assert!(!run["call"]["recording"].is_null());
    }
}

#[test]
fn what_the_line_loses_is_counted() {
    for (loss, share) in [(0, 0..=0), (30, 20..=40), (100, 100..=100)] {
        let world = World::new();
        let run = voice_run(&world, json!({"packet_loss": loss}));
        assert_eq!(run["status"], "completed", "{run}");
        let waveform = world.get(format!("/calls/{}/waveform", run["call_id"].as_str().unwrap())).ok().json;
        let [missing_ms, duration_ms] =
            ["missing_ms", "duration_ms"].map(|name| waveform[name].as_i64().unwrap());
        assert!(share.contains(&(missing_ms * 100 / duration_ms)), "{missing_ms} of {duration_ms} ms");
    }
}

#[test]
fn an_assistant_that_records_nothing_has_no_recording() {
    let world = World::new();
    let simulation = simulation(&world, json!({}), json!({"record": false}));
    let run = world.create(&format!("/simulations/{simulation}/runs"), json!({"mode": "voice"}));
    assert_eq!(world.settle(&run.id)["call"]["recording"], Value::Null);
}

#[test]
fn conditions_out_of_range_are_refused() {
    let world = World::new();
    for (name, bad) in
        [("packet_loss", 101), ("jitter_ms", 1_001), ("noise_db", 1), ("noise_db", -91), ("talk_over", -1)]
    {
        let mut conditions = json!({});
        conditions[name] = bad.into();
        let body = json!({"name": "Hours", "instructions": "Ask.", "conditions": conditions});
        world.post("/simulations/scenarios", body).refused("validation_failed");
    }
}

fn recording(world: &World, run: &Value) -> bytes::Bytes {
    let id = run["call_id"].as_str().unwrap();
    world.get(format!("/calls/{id}/recording")).ok().body
}

fn voice_run(world: &World, conditions: Value) -> Value {
    let simulation = simulation(world, conditions, json!({}));
    let run = world.create(&format!("/simulations/{simulation}/runs"), json!({"mode": "voice", "seed": 42}));
    world.settle(&run.id)
}

fn simulation(world: &World, conditions: Value, more: Value) -> String {
    let mut assistant = json!({"name": "Shop", "instructions": "Help the shop's customers.",
        "first_message": "Shop, hello! This call may be recorded. How can I help you today?"});
    assistant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let assistant = world.create("/assistants", assistant);
    let document = world.create(
        "/knowledge",
        json!({"name": "Hours",
        "content": "We open at nine on Saturday. We are closed on Sunday."}),
    );
    world
        .put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [document.id]}))
        .ok();
    let persona =
        world.create("/simulations/personas", json!({"name": "Ada", "system_prompt": "A patient customer."}));
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Hours",
        "instructions": "Ask \"When do you open on Saturday?\".", "conditions": conditions,
        "evaluations": [{"kind": "transcript", "role": "user", "includes": "Saturday"}]}),
    );
    let body = json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id});
    world.create("/simulations", body).id.clone()
}
