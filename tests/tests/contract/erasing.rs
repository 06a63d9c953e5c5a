//! Deleting calls: at a request, and after the days that a workspace keeps them. Nothing of what was said is left.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sidetone::sandbox::memory;
use sidetone_engine::base::ids::{CallId, Id as _};
use sidetone_engine::base::limits::{RETENTION_CALLS_MAX, RETENTION_CHUNKS_MAX};
use sidetone_engine::base::time::Timestamp;
use sidetone_engine::ports::Database as _;
use sidetone_engine::sql;
use sidetone_engine::storage::batch::Batch;
use sidetone_engine::storage::calls::{EndedCall, NewCall, write};
use sidetone_engine::storage::events::{self, EventKind, Subscribers};
use sidetone_tests::counted::Counted;
use sidetone_tests::direct_access::wait;
use sidetone_tests::{Created, World, example};

const DAY_MS: i64 = 86_400_000;

/// An ended call whose caller says `word`.
fn call_saying(world: &World, word: &str) -> Created {
    let new = example::new_call(world);
    let mut ended = example::ended_call();
    ended.transcript[1].text = format!("My name is {word}.");
    record(world, &new, &ended);
    let json = world.get(format!("/calls/{}", new.id)).ok().json;
    Created { id: new.id.to_string(), json }
}

fn record(world: &World, new: &NewCall, ended: &EndedCall) {
    world.write(write::record(new, Some(ended), Some(&example::analysis())));
}

/// A word that occurs nowhere else, unlike any other from its second letter on. Ids repeat from world to world, and the
/// tests share the binary's files: hence the count.
fn marker() -> String {
    static MARKERS: AtomicU32 = AtomicU32::new(0);
    let world = World::with_settings(&[]);
    let id: String = example::new_call(&world).id.to_string();
    let count = MARKERS.fetch_add(1, Ordering::Relaxed);
    format!("zqx{}{count:04}", id.trim_start_matches("call_").to_lowercase())
}

/// Emits an event about a call like a job.
fn announce(world: &World, kind: EventKind, call: &Value) {
    let (engine, workspace_id) = (world.direct_access(), world.workspace_id());
    let rows = wait(engine.ports().database.read(vec![events::subscribers(&workspace_id)])).unwrap();
    let subscribers = Subscribers::read(&rows[0]).unwrap();
    let now_ms = engine.ports().clock.now_ms();
    let mut batch = Batch::default();
    let id = CallId::from_stored(call["id"].as_str().unwrap());
    let about = kind.of_call(&id);
    batch.emit(&engine, &workspace_id, &subscribers, about, now_ms, || Ok(json!({ "call": call }))).unwrap();
    wait(batch.write(&engine)).unwrap();
}

/// Rows of the workspace that contain a word, where texts of calls may be.
fn rows_with(world: &World, word: &str) -> i64 {
    let select = sql!(
        "SELECT (SELECT COUNT(*) FROM events WHERE workspace_id = :workspace_id AND instr(body, :word))
           + (SELECT COUNT(*) FROM call_transcripts WHERE workspace_id = :workspace_id AND instr(content, :word))
           + (SELECT COUNT(*) FROM call_words WHERE workspace_id = :workspace_id AND instr(heads || COALESCE(said, ''), :word))
           + (SELECT COUNT(*) FROM runs WHERE workspace_id = :workspace_id AND instr(last_line, :word))
           + (SELECT COUNT(*) FROM deliveries WHERE workspace_id = :workspace_id AND instr(last_response, :word)) AS found",
        workspace_id = &world.workspace_id(),
        word = word
    );
    let rows = wait(world.direct_access().ports().database.read(vec![select])).unwrap();
    rows[0].first().unwrap().integer("found").unwrap()
}

fn sweep(world: &World) {
    wait(world.direct_access().sweep()).unwrap();
}

#[test]
fn a_deleted_call_is_gone_with_everything_that_tells_about_it() {
    let world = World::new();
    let hook = world.webhook();
    world.patch(format!("/webhooks/{}", hook.id), json!({"events": ["*"]})).ok();
    let (word, kept) = (marker(), world.a_call());
    let call = call_saying(&world, &word);
    world.store(&call.id, &example::recording(16_000)).unwrap();
    for kind in [EventKind::RecordingReady, EventKind::CallEnded] {
        announce(&world, kind, &world.get(format!("/calls/{}", call.id)).ok().json);
    }
    assert_eq!(rows_with(&world, &word), 4, "a transcript, its words, and two events");
    let logged = |world: &World| world.get("/events").ok().ids().len();
    assert_eq!(logged(&world), 2);
    let path = format!("/calls/{}", call.id);
    let search = format!("/calls?search={word}");
    assert_eq!(world.get(&search).ok()["stats"]["total"], 1);

    world.other().delete(&path).refused("not_found");
    world.get(&path).ok();
    assert_eq!(world.delete(&path).status, 204);

    world.delete(&path).refused("not_found");
    for path in [path.clone(), format!("{path}/recording"), format!("{path}/waveform")] {
        world.get(path).refused("not_found");
    }
    assert_eq!(world.call(Method::DELETE, &format!("{path}/recording"), None).status, 404);
    let found = world.get(&search).ok().json;
    assert_eq!((&found["stats"]["total"], &found["calls"]), (&json!(0), &json!([])));
    let all = world.get("/calls").ok().json;
    assert_eq!((all["stats"]["total"].clone(), all["calls"][0]["id"].clone()), (json!(1), json!(kept.id)));
    assert_eq!(all["stats"]["total_cost_microusd"], kept["costs"]["total_microusd"]);
    assert_eq!(rows_with(&world, &word), 0);
    assert_eq!(logged(&world), 0);
    for delivery in
        world.get(format!("/webhooks/{}/deliveries", hook.id)).ok()["deliveries"].as_array().unwrap()
    {
        // Attempted before the deletion, on hosts that deliver by themselves.
        assert_eq!((&delivery["status"], &delivery["last_response"]), (&json!("canceled"), &Value::Null));
    }
}

#[test]
fn events_of_an_earlier_version_go_with_their_call_too() {
    let world = World::new();
    let hook = world.webhook();
    world.patch(format!("/webhooks/{}", hook.id), json!({"events": ["*"]})).ok();
    for reads_first in [false, true] {
        let word = marker();
        let call = call_saying(&world, &word);
        announce(&world, EventKind::CallEnded, &world.get(format!("/calls/{}", call.id)).ok().json);
        assert_eq!(rows_with(&world, &word), 3, "a transcript, its words, and an event");
        // An earlier version did not store which call it is about.
        world.write(vec![sql!(
            "UPDATE events SET call_id = NULL WHERE workspace_id = :workspace_id",
            workspace_id = &world.workspace_id()
        )]);
        if reads_first {
            sweep(&world);
            let unread = sql!(
                "SELECT 1 AS one FROM events WHERE call_id IS NULL AND workspace_id = :workspace_id",
                workspace_id = &world.workspace_id()
            );
            assert!(wait(world.direct_access().ports().database.read(vec![unread])).unwrap()[0].is_empty());
        }
        assert_eq!(world.delete(format!("/calls/{}", call.id)).status, 204);
        assert_eq!(rows_with(&world, &word), 0);
    }
}

#[test]
fn a_call_in_progress_is_not_deleted() {
    let world = World::new();
    let new = example::new_call(&world);
    world.write(write::insert(&new));
    let path = format!("/calls/{}", new.id);
    world.delete(&path).refused("call_in_progress");
    assert_eq!(world.get(&path).ok()["status"], "ringing");
    world.write(write::end(&new.workspace_id, &new.id, &example::ended_call(), None));
    assert_eq!(world.delete(&path).status, 204);
    // What comes late changes nothing.
    let mut late = write::repriced(&new.workspace_id, &new.id, 9, 99);
    late.extend(write::analyzed(&new.workspace_id, &new.id, &example::analysis()));
    late.extend(write::carried(&new.workspace_id, &new.id, "CA1"));
    world.write(late);
    let list = world.get("/calls").ok().json;
    assert_eq!((&list["calls"], &list["stats"]["total"]), (&json!([]), &json!(0)));
}

#[test]
fn a_run_keeps_its_results_without_its_call() {
    let world = World::new();
    let run = world.run();
    let before = world.settle(&run.id);
    let call_id = before["call_id"].as_str().unwrap().to_owned();
    assert_eq!(world.delete(format!("/calls/{call_id}")).status, 204);
    let after = world.get(format!("/simulations/runs/{}", run.id)).ok().json;
    for name in ["status", "passed", "evaluations", "turns", "cost_microusd", "completed_at"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    for name in ["call_id", "call", "last_line"] {
        assert_eq!(after[name], Value::Null, "{name}");
    }
    assert_eq!(world.delete(format!("/simulations/runs/{}", run.id)).status, 204);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn deliveries_of_a_deleted_call_are_dropped_or_keep_no_text() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let hook = world.webhook();
    world.patch(format!("/webhooks/{}", hook.id), json!({"events": ["*"]})).ok();
    let list = format!("/webhooks/{}/deliveries", hook.id);
    let call = call_saying(&world, "zebra");
    announce(&world, EventKind::CallEnded, &call.json);
    sandbox.answer_http(500, "I do not know zebra.");
    assert_eq!(sandbox.run_jobs(), 1);
    announce(&world, EventKind::CallAnalyzed, &call.json);
    let ids: Vec<Value> =
        world.get(&list).ok()["deliveries"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids.len(), 2);

    assert_eq!(world.delete(format!("/calls/{}", call.id)).status, 204);
    let left = world.get(&list).ok().json;
    let left = left["deliveries"].as_array().unwrap();
    assert_eq!(left.len(), 1, "the one that was attempted: {left:?}");
    let [status, attempts, due, response] =
        ["status", "attempts", "next_attempt_at", "last_response"].map(|name| left[0][name].clone());
    assert_eq!(
        (left[0]["id"].clone(), status, attempts, due, response),
        (ids[1].clone(), json!("canceled"), json!(1), Value::Null, Value::Null)
    );
    let again = format!("{list}/{}/redeliver", ids[1].as_str().unwrap());
    world.post(again, json!({})).refused("not_found");
    sandbox.answer_http(200, "");
    for _ in 0..3 {
        sandbox.advance(DAY_MS);
        sandbox.run_jobs();
    }
    assert_eq!(sandbox.sent_http().len(), 1, "nothing more is sent");
}

#[test]
#[cfg_attr(test_host = "worker", ignore = "looks into storage")]
fn what_runs_were_started_with_goes_with_their_calls_though_one_failed() {
    let world = World::new();
    let (word, path) = (marker(), format!("/simulations/{}/runs", world.simulation().id));
    let runs = [7, 8].map(|seed| {
        world.settle(&world.create(&path, json!({"seed": seed, "variables": {"name": word}})).id)
    });
    world.write(vec![sql!(
        "UPDATE runs SET status = 'error', passed = NULL WHERE id = :id",
        id = runs[0]["id"].as_str().unwrap()
    )]);
    for run in &runs {
        world.delete(format!("/calls/{}", run["call_id"].as_str().unwrap())).empty();
    }
    let kept = sql!(
        "SELECT COUNT(*) AS kept FROM snapshots WHERE workspace_id = :workspace_id AND instr(content, :word)",
        workspace_id = &world.workspace_id(),
        word = word.as_str()
    );
    let rows = wait(world.direct_access().ports().database.read(vec![kept])).unwrap();
    assert_eq!(rows[0].first().unwrap().integer("kept").unwrap(), 0);
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "reads the binary's files")]
fn the_files_of_the_database_contain_nothing_of_a_deleted_call() {
    let world = World::new();
    let folder = world.native().unwrap().data();
    let word = marker();
    // Another process reads them: closing a file of the database ends the locks that SQLite has on it in this one.
    let in_files = || {
        let found = std::process::Command::new("grep")
            .args(["-rilaF", "--", word.as_str()])
            .arg(folder)
            .env("LC_ALL", "C")
            .output()
            .expect("grep runs");
        String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let call = call_saying(&world, &word);
    let document = world.create("/knowledge", json!({"name": "Note", "content": format!("About {word}.")}));
    assert!(!in_files().is_empty(), "the word is found where it is");
    assert_eq!(world.delete(format!("/calls/{}", call.id)).status, 204);
    assert_eq!(world.delete(format!("/knowledge/{}", document.id)).status, 204);
    let until = Instant::now() + Duration::from_secs(90);
    loop {
        sweep(&world);
        let left = in_files();
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < until, "{word} is still in {left:?}");
        std::thread::sleep(Duration::from_secs(1));
        // The binary empties its log after a write.
        world.write(vec![sql!("DELETE FROM used_test_tokens WHERE expires_at < 0")]);
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn words_of_deleted_calls_leave_the_text_index() {
    let world = World::with_manual_clock();
    let word = marker();
    let call = call_saying(&world, &word);
    for n in 0..60 {
        call_saying(&world, &format!("number{n}"));
    }
    let hex: String = word.bytes().map(|byte| format!("{byte:02X}")).collect();
    let indexed = || {
        let select =
            sql!("SELECT COUNT(*) AS found FROM call_index_data WHERE instr(hex(block), :word)", word = &hex);
        let rows = wait(world.direct_access().ports().database.read(vec![select])).unwrap();
        rows[0].first().unwrap().integer("found").unwrap()
    };
    assert!(indexed() > 0);
    assert_eq!(world.delete(format!("/calls/{}", call.id)).status, 204);
    sweep(&world);
    assert_eq!(indexed(), 0);
    assert_eq!(world.get("/calls?search=number5").ok()["stats"]["total"], 11, "the others are found");
    let rest = sql!("SELECT 1 AS one FROM search_erasures");
    assert!(wait(world.direct_access().ports().database.read(vec![rest])).unwrap()[0].is_empty());
}

#[test]
fn retention_is_a_setting_of_the_workspace() {
    let world = World::new();
    let workspace = world.get("/workspace").ok().json;
    for name in ["call_retention_days", "recording_retention_days"] {
        assert_eq!(workspace[name], Value::Null, "{name}: by default everything is kept");
        for days in [1, 3_650] {
            assert_eq!(world.patch("/workspace", json!({name: days})).ok()[name], days);
        }
        for wrong in [json!(0), json!(3_651), json!(1.5), json!("7"), json!(-1)] {
            world.patch("/workspace", json!({name: wrong})).refused("validation_failed");
        }
        assert_eq!(world.get("/workspace").ok()[name], 3_650);
        assert_eq!(world.patch("/workspace", json!({name: null})).ok()[name], Value::Null);
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn calls_and_recordings_are_kept_as_long_as_the_workspace_says() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let other = world.other();
    let now_ms = sandbox.services().ports().clock.now_ms();
    let recorded = |world: &World, age_ms: i64| {
        let mut new = example::new_call(world);
        let mut ended = example::ended_call();
        new.started_at = Timestamp::from_ms(now_ms - age_ms - 60_000);
        ended.ended_at = Timestamp::from_ms(now_ms - age_ms);
        record(world, &new, &ended);
        world.store(&new.id, &example::recording(800)).unwrap();
        new.id.to_string()
    };
    let (old, young) = (recorded(&world, 5 * DAY_MS), recorded(&world, DAY_MS));
    let others = recorded(&other, 5 * DAY_MS);
    let mut running = example::new_call(&world);
    running.started_at = Timestamp::from_ms(now_ms - 9 * DAY_MS);
    world.write(write::insert(&running));
    let kept = |world: &World, id: &str| {
        let call = world.get(format!("/calls/{id}"));
        (call.status, call.status == 200 && !call.json["recording"].is_null())
    };
    sweep(&world);
    assert_eq!(kept(&world, &old), (200, true), "without a setting, everything is kept");

    world.patch("/workspace", json!({"call_retention_days": 5, "recording_retention_days": 2})).ok();
    sweep(&world);
    assert_eq!(kept(&world, &old), (200, true), "not a moment too early");
    sandbox.advance(1);
    sweep(&world);
    assert_eq!(kept(&world, &old), (404, false));
    world.get(format!("/calls/{}", running.id)).ok();
    // Recordings count from when they were stored.
    assert_eq!(kept(&world, &young), (200, true));
    sandbox.advance(2 * DAY_MS);
    sweep(&world);
    assert_eq!(kept(&world, &young), (200, false));
    world.get(format!("/calls/{young}/recording")).refused("not_found");
    sandbox.advance(3 * DAY_MS);
    sweep(&world);
    assert_eq!(kept(&world, &young), (404, false));
    assert_eq!(world.get("/calls").ok()["stats"]["total"], 1, "the call in progress is left");
    assert_eq!(kept(&other, &others), (200, true), "another workspace keeps what it wants");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_large_workspace_does_not_delay_the_retention_of_others() {
    // Both workspaces in one database.
    let world = World::over(Arc::new(memory()));
    let small = world.other();
    let a_sweep = RETENTION_CHUNKS_MAX * usize::try_from(RETENTION_CALLS_MAX).unwrap();
    let many = a_sweep + 5;
    // All but the ids are equal, so the statements of a call are made once.
    let first = example::new_call(&world);
    let statements = write::record(&first, Some(&example::ended_call()), None);
    for _ in 0..many {
        let id = example::new_id(&world);
        let again = statements.iter().cloned().map(|mut statement| {
            for value in &mut statement.params {
                if *value == (&first.id).into() {
                    *value = (&id).into();
                }
            }
            statement
        });
        world.write(again.collect());
    }
    small.a_call();
    for world in [&world, &small] {
        world.patch("/workspace", json!({"call_retention_days": 1})).ok();
    }
    world.sandbox().unwrap().advance(30 * DAY_MS);
    let left = |world: &World| world.get("/calls").ok()["stats"]["total"].as_i64().unwrap();
    assert_eq!((left(&world), left(&small)), (many as i64, 1));
    sweep(&world);
    let rest = many as i64 - (a_sweep as i64 - RETENTION_CALLS_MAX);
    assert_eq!((left(&world), left(&small)), (rest, 0), "one turn of a sweep was the small one's");
    sweep(&world);
    assert_eq!(left(&world), 0);
}

/// How many groups the calls of assistants have.
fn groups(world: &World) -> i64 {
    let select = sql!(
        "SELECT COUNT(*) AS found FROM call_groups WHERE workspace_id = :workspace_id AND assistant_id <> ''",
        workspace_id = &world.workspace_id()
    );
    let rows = wait(world.direct_access().ports().database.read(vec![select])).unwrap();
    rows[0].first().unwrap().integer("found").unwrap()
}

#[test]
fn what_calls_are_counted_by_goes_with_the_last_of_them() {
    let world = World::new();
    let inline = |greeting: &str| {
        let body = json!({
            "assistant": {"name": "Draft", "instructions": "Be kind.", "first_message": greeting},
            "persona": {"system_prompt": "Polite."}, "scenario": {"instructions": "Say \"Hello.\""},
        });
        let started = world.post("/simulations/runs/inline", body).created();
        let run = world.settle(started["runs"][0]["id"].as_str().unwrap());
        run["call_id"].as_str().unwrap().to_owned()
    };
    let calls = [inline("Hi."), inline("Hi."), inline("Good morning.")];
    let of_all = groups(&world);
    assert!(of_all >= 2, "{of_all}");
    let stats = |world: &World| world.get("/calls").ok()["stats"].clone();
    world.delete(format!("/calls/{}", calls[2])).empty();
    sweep(&world);
    let of_one = groups(&world);
    assert!((1..of_all).contains(&of_one), "{of_one} of {of_all}");
    // Another call has the same groups.
    world.delete(format!("/calls/{}", calls[0])).empty();
    sweep(&world);
    assert_eq!(stats(&world)["total"], 1);
    assert!(groups(&world) >= 1);
    world.delete(format!("/calls/{}", calls[1])).empty();
    // A group that is used again before the sweep stays.
    let again = inline("Hi.");
    sweep(&world);
    assert_eq!(world.get(format!("/calls/{again}")).ok()["status"], "ended");
    assert_eq!(stats(&world)["by_outcome"]["completed"], 1);
    world.delete("/calls?source=simulation").ok();
    sweep(&world);
    assert_eq!(groups(&world), 0);
    assert_eq!(stats(&world)["total"], 0);
}

/// Of a workspace with many calls, the statements that delete some of them look at these alone.
#[test]
fn listed_calls_are_deleted_by_their_ids() {
    let database = Arc::new(Counted::default());
    let world = World::over(database.clone());
    call_saying(&world, "zebra");
    let metadata = json!({"name": "Desk", "instructions": "Be kind.", "first_message": "Hi."});
    let body = json!({"assistant": metadata, "metadata": {"day": "one"},
        "persona": {"system_prompt": "Polite."}, "scenario": {"instructions": "Say \"Hello.\""}});
    let started = world.post("/simulations/runs/inline", body).created();
    world.settle(started["runs"][0]["id"].as_str().unwrap());
    assert_eq!(world.delete("/calls?metadata.day=one").ok()["deleted"], 1);
    let statements = database.written();
    assert!(statements.len() > 20, "the batch that deletes");
    let mut checked = 0;
    for statement in statements.iter().filter(|statement| statement.sql.contains("FROM calls")) {
        let mut plan = statement.clone();
        plan.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql).into();
        let rows = wait(database.read(vec![plan])).unwrap();
        for row in rows[0].iter() {
            let step = row.text("detail").unwrap();
            let all = step.starts_with("SCAN calls")
                || step.starts_with("SEARCH calls USING") && step.contains("(workspace_id=?)");
            assert!(!all, "{step}: {}", statement.sql);
            checked += usize::from(step.contains("SEARCH calls"));
        }
    }
    assert!(checked > 10, "{checked}");
}

#[test]
fn what_a_run_was_started_with_goes_with_its_call() {
    let world = World::new();
    let body = |patient: &str| {
        json!({
            "assistant": {"name": "Desk", "instructions": "Be kind.", "first_message": "Hello {{patient}}."},
            "persona": {"system_prompt": "Polite."}, "scenario": {"instructions": "Say \"Hello.\""},
            "variables": {"patient": patient}, "metadata": {"case": patient},
        })
    };
    let anna = marker();
    let start =
        |key: &str, patient: &str| world.post_once("/simulations/runs/inline", key, body(patient)).created();
    let [one, other] = [start(&anna, &anna), start(&format!("{anna} again"), &anna)]
        .map(|started| world.settle(started["runs"][0]["id"].as_str().unwrap()));
    let snapshot = format!("/snapshots/{}", one["snapshot"].as_str().unwrap());
    assert_eq!(one["snapshot"], other["snapshot"]);
    assert!(world.get(&snapshot).ok().json.to_string().contains(&anna));

    let delete = |run: &Value| world.delete(format!("/calls/{}", run["call_id"].as_str().unwrap())).empty();
    delete(&one);
    world.get(&snapshot).ok();
    let mut left = world.get(format!("/simulations/runs/{}", one["id"].as_str().unwrap())).ok().json;
    assert_eq!((&left["snapshot"], &left["status"]), (&Value::Null, &json!("completed")));
    let again = |key: &str| world.post_once("/simulations/runs/inline", key, body(&anna));
    assert!(again(&anna).refused("not_found")["error"]["message"].as_str().unwrap().contains("was deleted"));
    again(&format!("{anna} again")).created();

    delete(&other);
    world.get(&snapshot).refused("not_found");
    left = world.get("/simulations/runs").ok().json;
    assert!(!left.to_string().contains(&anna));
    // Without values of their own, runs keep their snapshots.
    let plain = json!({"assistant": {"name": "Desk", "instructions": "Be kind.", "first_message": "Hi."},
        "persona": {"system_prompt": "Polite."}, "scenario": {"instructions": "Say \"Hello.\""}});
    let started = world.post("/simulations/runs/inline", plain).created();
    let run = world.settle(started["runs"][0]["id"].as_str().unwrap());
    delete(&run);
    world.get(format!("/snapshots/{}", run["snapshot"].as_str().unwrap())).ok();
}

#[test]
fn what_was_deleted_is_not_read_by_repeating_its_creation() {
    let world = World::new();
    for (path, body) in [
        ("/knowledge", json!({"name": "Hours", "content": "We open at nine."})),
        ("/assistants", json!({"name": "Desk", "instructions": "Be kind."})),
        ("/tools", json!({"name": "look_up", "url": "https://tools.example/look_up"})),
        ("/simulations/personas", json!({"name": "Ada", "system_prompt": "Brief."})),
        ("/webhooks", json!({"url": "https://hooks.example/", "events": ["call.ended"]})),
    ] {
        let key = format!("{path} {}", marker());
        let made = world.post_once(path, &key, body.clone()).created();
        let one = format!("{path}/{}", made["id"].as_str().unwrap());
        world.delete(&one).empty();
        world.post_once(path, &key, body).refused("not_found");
    }
}
