//! Old transcripts go to the storage of blobs (`SIDETONE_ARCHIVE_DAYS`), and nothing reads differently.
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone::sandbox::{MemoryBlobs, memory};
use sidetone_engine::base::ids::WorkspaceId;
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};
use sidetone_engine::sql;
use sidetone_engine::storage::calls::write;
use sidetone_tests::World;
use sidetone_tests::direct_access::wait;
use sidetone_tests::example;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A world that archives what is older than a day.
fn archiving() -> World {
    World::with_settings(&[("SIDETONE_ARCHIVE_DAYS", "1")])
}

/// An ended call of so many rows.
fn long_call(world: &World, rows: usize) -> String {
    let new = example::new_call(world);
    let mut ended = example::ended_call();
    let row = ended.transcript[1].clone();
    for n in 0..rows {
        let mut more = row.clone();
        more.text = format!("Line {n} of a long story about zebras.");
        ended.transcript.push(more);
    }
    world.write(write::record(&new, Some(&ended), Some(&example::analysis())));
    new.id.to_string()
}

fn pass(world: &World, ms: i64) {
    world.sandbox().unwrap().advance(ms);
}

fn sweep(world: &World) {
    while wait(world.direct_access().sweep()).unwrap().more {}
}

/// What the database has of the transcripts: how many are in it, and how many are archived.
fn transcripts(world: &World) -> (i64, i64) {
    let select = sql!(
        "SELECT COUNT(*) FILTER (WHERE content <> '[]') AS here, COUNT(*) FILTER (WHERE archive_bytes > 0) AS archived
         FROM call_transcripts WHERE workspace_id = :workspace_id",
        workspace_id = &world.workspace_id()
    );
    let rows = wait(world.direct_access().ports().database.read(vec![select])).unwrap();
    let row = rows[0].first().unwrap();
    (row.integer("here").unwrap(), row.integer("archived").unwrap())
}

/// Everything that shows what was said.
fn reads(world: &World, call_id: &str, run_id: &str, batch_id: &str) -> Vec<String> {
    [
        format!("/calls/{call_id}"),
        "/calls".to_owned(),
        "/calls?view=summary".to_owned(),
        "/calls?search=zebras".to_owned(),
        "/calls?sort=duration_ms&order=asc&limit=2".to_owned(),
        format!("/calls/{call_id}/events"),
        format!("/simulations/runs/{run_id}"),
        format!("/simulations/runs/{run_id}/events"),
        "/simulations/runs".to_owned(),
        format!("/simulations/batches/{batch_id}"),
    ]
    .iter()
    .map(|path| String::from_utf8(world.get(path).ok().body.to_vec()).unwrap())
    .collect()
}

/// A batch of a run that fails, the run, and its call.
fn failed_batch(world: &World) -> (String, String, String) {
    let body = json!({
        "assistant": {"name": "Desk", "instructions": "Be kind.", "first_message": "Blue Door Dental, hello."},
        "persona": {"name": "Ada", "system_prompt": "Brief."},
        "scenario": {"name": "Hours", "instructions": "Ask \"When do you open on Saturday?\" Then ask \"And on Sunday?\"",
            "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "zebra"},
                            {"kind": "transcript_excludes", "role": "assistant", "includes": "hello"}]},
    });
    let started = world.post("/simulations/runs/inline", body).created();
    let run = &started["runs"][0];
    let run_id = run["id"].as_str().unwrap().to_owned();
    world.sandbox().unwrap().run_jobs();
    let read = world.get(format!("/simulations/runs/{run_id}")).ok();
    assert_eq!(read["passed"], false, "{read:?}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&run["batch_id"]), run_id, text(&read["call_id"]))
}

fn blob(world: &World, call_id: &str) -> Option<Bytes> {
    let services = world.direct_access();
    let workspace_id: WorkspaceId = world.workspace_id();
    let key =
        BlobKey::transcript(&workspace_id, &sidetone_engine::base::ids::Id::from_stored(call_id)).unwrap();
    let blobs: &dyn Blobs = &*services.ports().blobs;
    let bytes = wait(blobs.size(&key)).unwrap()?;
    wait(blobs.get(&key, ByteRange { first: 0, bytes })).unwrap()
}

#[test]
fn what_is_archived_reads_the_same() {
    let world = archiving();
    let call_id = long_call(&world, 30);
    (0..50).for_each(|_| drop(long_call(&world, 3)));
    let (batch_id, run_id, of_run) = failed_batch(&world);
    world.other().get(format!("/calls/{call_id}")).refused("not_found");
    let before = reads(&world, &call_id, &run_id, &batch_id);
    let (here, archived) = transcripts(&world);
    assert!(here >= 52 && archived == 0, "{here} {archived}");

    sweep(&world);
    assert_eq!(transcripts(&world), (here, 0), "nothing is old");
    // The sandbox's clock; nothing else that is read here expires.
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    assert_eq!(transcripts(&world), (0, here));
    assert_eq!(reads(&world, &call_id, &run_id, &batch_id), before);
    assert!(blob(&world, &of_run).is_some());
    world.other().get(format!("/calls/{call_id}")).refused("not_found");

    // Of a deleted call nothing is left, once nobody can be writing it.
    assert_eq!(world.delete(format!("/calls/{call_id}")).status, 204);
    world.get(format!("/calls/{call_id}")).refused("not_found");
    assert!(blob(&world, &call_id).is_some());
    pass(&world, DAY_MS);
    sweep(&world);
    assert!(blob(&world, &call_id).is_none());
    assert!(blob(&world, &of_run).is_some(), "of the others everything is");
}

#[test]
fn a_transcript_that_is_damaged_is_not_passed_off_as_the_call() {
    let world = archiving();
    let (call_id, other) = (long_call(&world, 30), long_call(&world, 30));
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    let services = world.direct_access();
    let key =
        BlobKey::transcript(&world.workspace_id(), &sidetone_engine::base::ids::Id::from_stored(&call_id))
            .unwrap();
    let changed =
        String::from_utf8(blob(&world, &call_id).unwrap().to_vec()).unwrap().replace("zebras", "zebus ");
    wait(services.ports().blobs.put(&key, changed.into())).unwrap();
    world.get(format!("/calls/{call_id}")).refused("unavailable");
    world.get(format!("/calls/{other}")).ok();
    wait(services.ports().blobs.delete(&key)).unwrap();
    world.get(format!("/calls/{call_id}")).refused("unavailable");
    world.get("/calls?view=summary").ok();
}

#[test]
fn a_process_that_died_while_it_archived_has_lost_nothing() {
    let world = archiving();
    let call_id = long_call(&world, 30);
    let before = world.get(format!("/calls/{call_id}")).ok().json;
    // It had marked the transcript, and may have written its blob.
    world.write(vec![sql!("UPDATE call_transcripts SET archive_bytes = 0")]);
    assert_eq!(world.get(format!("/calls/{call_id}")).ok().json, before);
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    assert_eq!(transcripts(&world), (0, 1));
    assert_eq!(world.get(format!("/calls/{call_id}")).ok().json, before);
}

/// After an outage, the job of an analysis runs when its transcript was archived already.
#[test]
fn a_late_analysis_reads_what_was_archived() {
    let world = archiving();
    let desk = world.create(
        "/assistants",
        json!({"name": "Desk", "instructions": "Be kind.", "first_message": "Hello."}),
    );
    let talk = || {
        let mut live = world.start_conversation(&desk.id);
        let started = live.expect("call_started");
        live.hear();
        for line in [
            "I would like to book a table for four on Friday evening, please.",
            "My name is Ada Lovelace, and I live in London.",
            "That is wonderful, thank you very much. You have been a great help today, and I am happy with everything.",
        ] {
            live.say(line);
            live.hear();
        }
        live.send(r#"{"type": "hang_up"}"#);
        live.rest();
        started["call"]["id"].as_str().unwrap().to_owned()
    };
    let expected = world.settled_call(&talk())["analysis"].clone();
    let late = talk();
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    assert_eq!(transcripts(&world).0, 0);
    assert_eq!(world.settled_call(&late)["analysis"], expected);
}

/// A blob that cannot be written is reported, and keeps nothing else of the sweep waiting.
#[test]
fn a_full_storage_of_blobs_is_in_the_way_of_nothing_else() {
    let full: Arc<Full> = Arc::default();
    full.refuse(&[""]);
    let world = World::over_all(Arc::new(memory()), full, &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    let call_id = long_call(&world, 30);
    pass(&world, 3 * DAY_MS);
    let failed = wait(world.direct_access().sweep()).unwrap_err();
    assert!(format!("{failed:?}").contains("no room"), "{failed:?}");
    assert_eq!(transcripts(&world), (1, 0));
    world.get(format!("/calls/{call_id}")).ok();
}

#[test]
fn workspaces_that_cannot_be_archived_are_in_nobodys_way() {
    let full: Arc<Full> = Arc::default();
    let world = World::over_all(Arc::new(memory()), full.clone(), &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    let [one, two, well] = [(); 3].map(|()| world.other());
    for world in [&one, &two, &well] {
        long_call(world, 30);
    }
    full.refuse(&[&*one.workspace_id(), &*two.workspace_id()]);
    // It comes last.
    world.write(vec![sql!(
        "UPDATE workspaces SET archived_until = 1 WHERE id = :id",
        id = &well.workspace_id()
    )]);
    pass(&world, 3 * DAY_MS);
    let failed = wait(world.direct_access().sweep()).unwrap_err();
    assert!(format!("{failed:?}").contains("no room"), "{failed:?}");
    assert_eq!(transcripts(&well), (0, 1));
    full.refuse(&[]);
    pass(&world, DAY_MS);
    sweep(&world);
    assert_eq!((transcripts(&one), transcripts(&two)), ((0, 1), (0, 1)));
}

/// Blobs that refuse keys with one of these texts.
#[derive(Default)]
struct Full {
    memory: MemoryBlobs,
    refused: Mutex<Vec<String>>,
}

impl Full {
    fn refuse(&self, texts: &[&str]) {
        *self.refused.lock().unwrap() = texts.iter().map(|text| (*text).to_owned()).collect();
    }
}

impl Blobs for Full {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        if self.refused.lock().unwrap().iter().any(|text| key.as_str().contains(text)) {
            return Box::pin(async { Err(BlobError("no room".to_owned())) });
        }
        self.memory.put(key, bytes)
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        self.memory.size(key)
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        self.memory.get(key, range)
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        self.memory.delete(key)
    }
}

#[test]
fn without_the_setting_nothing_is_archived() {
    let world = World::with_settings(&[]);
    long_call(&world, 30);
    pass(&world, 400 * DAY_MS);
    sweep(&world);
    assert_eq!(transcripts(&world), (1, 0));
}

#[test]
fn a_clock_that_was_ahead_does_not_stop_it() {
    let world = archiving();
    long_call(&world, 30);
    world.write(vec![
        sql!("UPDATE workspaces SET archived_until = 4102444800000"),
        sql!("INSERT OR REPLACE INTO service_facts (name, value) VALUES ('next_archiving', '4102444800000')"),
    ]);
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    assert_eq!(transcripts(&world), (0, 1));
}
