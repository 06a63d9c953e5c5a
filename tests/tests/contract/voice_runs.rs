//! Voice runs: caller and assistant through the whole audio path, on every host to the same bytes.
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone_engine::ports::HttpError;
use sidetone_tests::World;
use sidetone_tests::example::sha256;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

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
    let rows = run["call"]["transcript"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["text"] == "When do you open on Saturday?"), "{rows:?}");
    assert!(rows.windows(2).all(|pair| pair[0]["start_ms"].as_i64() <= pair[1]["start_ms"].as_i64()));
    assert!(rows.last().unwrap()["end_ms"].as_i64().unwrap() <= duration_ms);
    let turn = &call["turns"][0];
    assert!(turn["end_of_speech_ms"].is_i64() && turn["heard_first_ms"].is_i64(), "{turn}");
    // The statistics of the list count the same turns.
    let ms = |turn: &Value, step: &str| turn[step].as_i64();
    let turns = call["turns"].as_array().unwrap().iter();
    let mut waits: Vec<i64> =
        turns.filter_map(|turn| Some(ms(turn, "heard_first_ms")? - ms(turn, "end_of_speech_ms")?)).collect();
    assert_eq!(call["waits_ms"], json!(waits));
    assert_eq!(
        world.get("/calls?limit=1").ok()["calls"][0]["waits_ms"],
        json!(waits),
        "a list has them, too"
    );
    waits.sort_unstable();
    let stats = world.get("/calls?limit=1").ok()["stats"]["waits"].clone();
    assert_eq!(stats["turns"], waits.len());
    assert_eq!(
        (&stats["p50_ms"], &stats["p99_ms"]),
        (&json!(waits[(waits.len() - 1) / 2]), &json!(waits.last()))
    );
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
    assert_eq!(one["call"]["transcript"], other["call"]["transcript"]);
    assert_eq!(one["call"]["turns"], other["call"]["turns"]);
    let (file, again) = (recording(&worlds[0], &one), recording(&worlds[1], &other));
    assert!(file == again, "the bytes differ");
    assert_eq!(sha256(&file), "529e2f2947fd5f19df5855fb1bbe34f6fad3359be6fda074cf3715de6e1dd021");
}

/// The events of a voice run, each sent once, and the recording is complete when it is announced.
#[test]
fn a_recording_is_announced_once() {
    for (record, expected) in [
        (
            true,
            &["call.started", "call.ended", "recording.ready", "call.analyzed", "simulation.run.completed"][..],
        ),
        (false, &["call.started", "call.ended", "call.analyzed", "simulation.run.completed"][..]),
    ] {
        let world = World::with_fakes();
        let receiver = Receiver::start(ReceiverBehaviour::Status(204));
        let webhook = world.create("/webhooks", json!({"url": receiver.url(), "events": ["*"]}));
        let simulation = simulation(&world, json!({}), json!({"record": record}));
        let run =
            world.create(&format!("/simulations/{simulation}/runs"), json!({"mode": "voice", "seed": 7}));
        let run = world.settle(&run.id);
        receiver.wait_for(expected.len(), Duration::from_secs(30));
        let list = world.get(format!("/webhooks/{}/deliveries", webhook.id)).ok();
        let mut events: Vec<(&str, &str)> = (list["deliveries"].as_array().unwrap().iter())
            .map(|one| (one["event_id"].as_str().unwrap(), one["type"].as_str().unwrap()))
            .collect();
        events.sort_unstable();
        let types: Vec<&str> = events.iter().map(|(_, one)| *one).collect();
        assert_eq!(types, expected);
        let Some((id, _)) = events.iter().find(|(_, one)| *one == "recording.ready") else { continue };
        let received = receiver.received();
        let body = received
            .iter()
            .map(|one| serde_json::from_slice::<Value>(&one.body).unwrap())
            .find(|body| body["id"] == *id)
            .unwrap();
        assert_eq!(body["data"]["call"]["id"], run["call_id"]);
        assert_eq!(body["data"]["call"]["recording"], run["call"]["recording"]);
        assert!(!run["call"]["recording"].is_null());
        assert!(recording(&world, &run).len() > 44);
    }
}

/// A model of a provider writes in pieces. However they are cut, the run sounds the same.
#[test]
fn the_pieces_of_an_answer_do_not_change_the_recording() {
    let conditions = json!({"packet_loss": 1, "noise_db": -40, "talk_over": 50});
    let mut expected: Option<(Value, Bytes)> = None;
    for piece_bytes in [1, 7, 100_000, 7] {
        let world = World::with_settings(&[("SIDETONE_OPENAI_API_KEY", "sk-hush")]);
        for nth in 0..20 {
            let words = format!("We open at nine on Saturday. That is answer {nth}. Come early!");
            let pieces = written(&words, piece_bytes);
            let sandbox = world.sandbox().unwrap();
            sandbox.answer_http_chunks(200, &[("content-type", "text/event-stream")], pieces);
        }
        let simulation = simulation(&world, conditions.clone(), json!({"model": "openai/m"}));
        let path = format!("/simulations/{simulation}/runs");
        let run = world.create(&path, json!({"mode": "voice", "seed": 42}));
        let run = world.settle(&run.id);
        assert_eq!(run["status"], "completed", "{run}");
        let rows = run["call"]["transcript"].as_array().unwrap();
        assert!(
            rows.iter().any(|row| row["text"].as_str().unwrap().contains("That is answer 0.")),
            "{rows:?}"
        );
        let heard = (json!([run["call"]["transcript"], run["call"]["turns"]]), recording(&world, &run));
        let (words, file) = expected.get_or_insert_with(|| heard.clone());
        assert_eq!(*words, heard.0, "in pieces of {piece_bytes} bytes");
        assert!(*file == heard.1, "in pieces of {piece_bytes} bytes, the recording differs");
    }
}

/// An answer as a provider streams it, word by word, in pieces of this size.
fn written(words: &str, piece_bytes: usize) -> Vec<Result<Bytes, HttpError>> {
    let delta = |word| format!("data: {}\n\n", json!({"choices": [{"delta": {"content": word}}]}));
    let mut body: String = words.split_inclusive(' ').map(delta).collect();
    body.push_str("data: [DONE]\n\n");
    body.as_bytes().chunks(piece_bytes).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect()
}

/// One assistant with everything it has, and the same suite in both pipelines, without a provider: what is said, which tools
/// are called and what is judged do not depend on the pipeline.
#[test]
fn the_same_suite_passes_in_both_pipelines() {
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Status(200));
    let assistant = world.create(
        "/assistants",
        json!({"name": "Shop", "instructions": "Help the shop's customers.", "first_message": "Shop, hello!",
            "transfers": [{"name": "Sales", "number": "+4930123456"}]}),
    );
    let path = format!("/assistants/{}", assistant.id);
    let hours = world.create(
        "/knowledge",
        json!({"name": "Hours", "content": "We open at nine on Saturday. We are closed on Sunday."}),
    );
    world.put(format!("{path}/knowledge"), json!({"knowledge_ids": [hours.id]})).ok();
    let tool = world.create(
        "/tools",
        json!({"name": "find_order", "description": "Finds an order.", "url": receiver.url(),
            "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}}}),
    );
    world.put(format!("{path}/tools"), json!({"tool_ids": [tool.id]})).ok();
    let persona = world.persona();
    let simulation = |name: &str, instructions: &str, conditions: Value, evaluations: Value| {
        let scenario = json!({"name": name, "instructions": instructions, "conditions": conditions,
            "evaluations": evaluations});
        let scenario = world.create("/simulations/scenarios", scenario);
        let body =
            json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id});
        world.create("/simulations", body).id.clone()
    };
    let suite = [
        simulation(
            "Hours",
            "Ask \"When do you open on Saturday?\", then \"Tell me a joke.\"",
            json!({}),
            json!([{"kind": "transcript", "role": "assistant", "includes": "at nine on Saturday"}]),
        ),
        simulation(
            "Order",
            "Say \"Find my order 7, please.\"",
            json!({"noise_db": -50, "slow_talker": true}),
            json!([{"kind": "tool_call", "role": "tool", "includes": "find_order"},
                {"kind": "transcript", "role": "assistant", "includes": "Ok."}]),
        ),
        simulation(
            "Impatience",
            "Ask \"When do you open on Saturday?\"",
            json!({"talk_over": 100}),
            json!([{"kind": "transcript", "role": "user", "includes": "Saturday"}]),
        ),
        simulation(
            "Sales",
            "Say \"Please transfer me to Sales.\"",
            json!({}),
            json!([{"kind": "tool_call", "role": "tool", "includes": "transfer_call"}]),
        ),
    ];
    let results = ["cascading", "realtime"].map(|pipeline| {
        let revision = world.patch(&path, json!({"pipeline_mode": pipeline})).ok()["revision"].clone();
        let run = |simulation: &String| {
            let body = json!({"mode": "voice", "seed": 11});
            let run = world.create(&format!("/simulations/{simulation}/runs"), body);
            let run = world.settle(&run.id);
            assert_eq!(
                (&run["status"], &run["passed"]),
                (&json!("completed"), &json!(true)),
                "{pipeline}: {run}"
            );
            assert_eq!(run["assistant_revision"], revision);
            let row = |row: &Value| json!([row["role"], row["text"], row["interrupted"], row["is_error"]]);
            let rows: Vec<Value> = run["call"]["transcript"].as_array().unwrap().iter().map(row).collect();
            // The tool takes its time.
            let has_waited = rows.iter().any(|row| row[1].as_str().unwrap().starts_with("find_order("));
            let heard =
                (!has_waited).then(|| (run["call"]["turns"].clone(), sha256(&recording(&world, &run))));
            (rows, run["evaluations"].clone(), heard)
        };
        suite.each_ref().map(run)
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(receiver.count(), 2, "once in each");
}

#[test]
fn a_caller_who_talks_over_the_assistant_interrupts_it() {
    let world = World::new();
    let run = voice_run(&world, json!({"talk_over": 100}));
    let rows = run["call"]["transcript"].as_array().unwrap();
    let cut = rows.iter().find(|row| row["interrupted"] == true).expect("an interrupted row");
    assert_eq!(cut["role"], "assistant");
    assert!(cut["intended_text"].as_str().unwrap().len() > cut["text"].as_str().unwrap().len());
}

#[test]
fn extreme_conditions_end_truthfully() {
    let all =
        json!({"packet_loss": 100, "jitter_ms": 1_000, "noise_db": 0, "talk_over": 100, "slow_talker": true});
    let audible = json!({"jitter_ms": 60, "noise_db": -90, "talk_over": 100, "slow_talker": true});
    for (conditions, understood) in [
        (json!({"packet_loss": 100}), false),
        (json!({"jitter_ms": 1_000}), false),
        (json!({"noise_db": 0}), false),
        (json!({"packet_loss": 0, "jitter_ms": 0, "noise_db": -90, "talk_over": 0}), true),
        (json!({"talk_over": 100}), true),
        (json!({"slow_talker": true}), true),
        (audible, true),
        (all, false),
    ] {
        let worlds = [(); 2].map(|()| World::new());
        let [run, again] = worlds.each_ref().map(|world| voice_run(world, conditions.clone()));
        assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(understood)), "{run}");
        let rows = run["call"]["transcript"].as_array().unwrap();
        let lines = rows.iter().filter(|row| row["role"] == "user").count();
        assert_eq!(lines > 0, understood, "{conditions}: {rows:?}");
        // Who is understood says goodbye. Whoever is not ends as on a telephone, of silence.
        let call = &run["call"];
        let (reason, fault) = if understood { ("user_hung_up", "none") } else { ("silence", "caller") };
        let end = (call["ended_reason"].clone(), call["outcome"].clone(), call["fault"].clone());
        assert_eq!(end, (json!(reason), json!("completed"), json!(fault)), "{conditions}");
        assert_eq!(call["recording"]["duration_ms"], call["duration_ms"], "{conditions}");
        assert!(rows.iter().all(|row| row["end_ms"].as_i64() <= call["duration_ms"].as_i64()), "{rows:?}");
        assert_eq!(run["call"]["transcript"], again["call"]["transcript"], "{conditions}");
        assert_eq!(call["turns"], again["call"]["turns"], "{conditions}");
        let [one, other] =
            [(&worlds[0], &run), (&worlds[1], &again)].map(|(world, run)| recording(world, run));
        assert!(one == other, "{conditions}: the bytes differ");
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

/// A model that hears and speaks has a voice of its own, but whoever calls it needs one, too.
#[test]
fn a_voice_run_needs_a_voice_for_its_caller() {
    let world = World::with_settings(&[(
        "SIDETONE_PROVIDERS",
        r#"{"local": {"base_url": "http://127.0.0.1:9/v1", "realtime_url": "ws://127.0.0.1:9/v1/realtime"}}"#,
    )]);
    let own = json!({"pipeline_mode": "realtime", "model": "local/talks"});
    let simulation = simulation(&world, json!({}), own);
    let refused = world.post(format!("/simulations/{simulation}/runs"), json!({"mode": "voice"}));
    assert!(refused.json.to_string().contains("SIDETONE_DEFAULT_VOICE"), "{}", refused.json);
    refused.refused("validation_failed").naming(&["mode"]);
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

fn recording(world: &World, run: &Value) -> Bytes {
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
    let persona = world.create(
        "/simulations/personas",
        json!({"name": "Ada", "system_prompt": "A patient customer.", "model": "builtin/rules"}),
    );
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Hours",
        "instructions": "Ask \"When do you open on Saturday?\".", "conditions": conditions,
        "evaluations": [{"kind": "transcript", "role": "user", "includes": "Saturday"}]}),
    );
    let body = json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id});
    world.create("/simulations", body).id.clone()
}
