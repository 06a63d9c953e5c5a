//! Old transcripts go to the storage of blobs (`SIDETONE_ARCHIVE_DAYS`), and nothing reads differently.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone::sandbox::{MemoryBlobs, memory};
use sidetone_engine::base::ids::{Id, WorkspaceId};
use sidetone_engine::base::limits::{
    ARCHIVE_REMOVAL_PAUSE_MS, ARCHIVE_REMOVALS_MAX, RECORDING_RETRY_MS, RETENTION_WORKSPACES_MAX,
};
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};
use sidetone_engine::sql;
use sidetone_engine::storage::calls::write;
use sidetone_tests::World;
use sidetone_tests::direct_access::wait;
use sidetone_tests::example;
use sidetone_tests::visitor::Visitor;

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

fn key(world: &World, call_id: &str) -> BlobKey {
    BlobKey::transcript(&world.workspace_id(), &Id::from_stored(call_id)).unwrap()
}

fn blob(world: &World, call_id: &str) -> Option<Bytes> {
    let services = world.direct_access();
    let key = key(world, call_id);
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
    let (batch_id, run_id, of_run) = failed_batch(&world);
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    let services = world.direct_access();
    let key = |call_id: &str| key(&world, call_id);
    // In a list, it is in no other's way.
    let listed = |path: &str, call_id: &str| {
        let calls = world.get(path).ok().json["calls"].clone();
        calls.as_array().unwrap().iter().find(|call| call["id"] == call_id).unwrap()["transcript"].clone()
    };
    let lists_without_it = || {
        let whole = world.get(format!("/calls/{other}")).ok().json["transcript"].clone();
        for path in ["/calls", "/calls?search=zebras", "/calls?sort=duration_ms"] {
            assert_eq!(listed(path, &call_id), Value::Null, "{path}");
            assert_eq!(listed(path, &other), whole, "{path}");
        }
    };
    let changed =
        String::from_utf8(blob(&world, &call_id).unwrap().to_vec()).unwrap().replace("zebras", "zebus ");
    wait(services.ports().blobs.put(&key(&call_id), changed.into())).unwrap();
    world.get(format!("/calls/{call_id}")).refused("unavailable");
    lists_without_it();
    wait(services.ports().blobs.delete(&key(&call_id))).unwrap();
    world.get(format!("/calls/{call_id}")).refused("unavailable");
    lists_without_it();
    world.get("/calls?view=summary").ok();
    // Nor is it in a batch.
    let turn =
        || world.get(format!("/simulations/batches/{batch_id}")).ok().json["failures"][0]["turn"].clone();
    assert_ne!(turn(), Value::Null);
    wait(services.ports().blobs.delete(&key(&of_run))).unwrap();
    assert_eq!(turn(), Value::Null);
    world.get(format!("/simulations/runs/{run_id}")).refused("unavailable");
}

/// Nobody knows then whether anything is lost.
#[test]
fn a_storage_of_blobs_that_does_not_answer_has_lost_no_transcript() {
    let full: Arc<Full> = Arc::default();
    let world = World::over_all(Arc::new(memory()), full.clone(), &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    long_call(&world, 30);
    let before = world.get("/calls").ok().json;
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    assert_eq!(transcripts(&world), (0, 1));
    full.refuse(&[""]);
    world.get("/calls").refused("unavailable");
    world.get("/calls?view=summary").ok();
    full.refuse(&[]);
    assert_eq!(world.get("/calls").ok().json, before);
}

/// How many calls still have the files of their transcripts.
fn left(world: &World, calls: &[String]) -> usize {
    let services = world.direct_access();
    let blobs = &services.ports().blobs;
    // What does not tell its size is there.
    calls.iter().filter(|id| !matches!(wait(blobs.size(&key(world, id))), Ok(None))).count()
}

/// Deletes calls whose transcripts are archived.
fn delete(world: &World, calls: &[String]) {
    assert_eq!(left(world, calls), calls.len());
    for call_id in calls {
        assert_eq!(world.delete(format!("/calls/{call_id}")).status, 204);
    }
}

/// The operator learns of it, whoever sees the gap.
#[test]
fn a_list_that_lacks_transcripts_is_logged() {
    const EMAIL: &str = "ada@archive.example";
    let world = archiving();
    let api = Visitor::signed_in(&world, EMAIL).api(&world);
    let lost: Vec<String> = (0..5).map(|_| long_call(&api, 30)).collect();
    pass(&world, 3 * DAY_MS);
    sweep(&api);
    assert_eq!(transcripts(&api), (0, 5));
    let services = api.direct_access();
    for call_id in &lost {
        wait(services.ports().blobs.delete(&key(&api, call_id))).unwrap();
    }
    let logged = || world.count_logged("is missing, and 2 more");
    api.get("/calls").ok();
    assert_eq!(logged(), 1);
    let mut visitor = Visitor::signed_in(&world, EMAIL);
    for (page, lines) in [("/dashboard/calls", 2), ("/dashboard", 3)] {
        assert_eq!(visitor.get(page).status, 200);
        assert_eq!(logged(), lines, "{page}");
    }
}

#[test]
fn a_transcript_that_cannot_be_removed_is_in_nobodys_way() {
    let full: Arc<Full> = Arc::default();
    let world = World::over_all(Arc::new(memory()), full.clone(), &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    let [stuck, well] = [(); 2].map(|()| world.other());
    // Of so many together, a round cannot try each alone.
    let [of_stuck, of_well] = [&stuck, &well]
        .map(|world| (0..ARCHIVE_REMOVALS_MAX / 2).map(|_| long_call(world, 3)).collect::<Vec<_>>());
    pass(&world, 3 * DAY_MS);
    sweep(&world);

    // A single one costs a few requests.
    delete(&stuck, &of_stuck[..1]);
    delete(&well, &of_well[..5]);
    pass(&world, DAY_MS);
    full.refuse(&[&*stuck.workspace_id()]);
    let failed = wait(world.direct_access().sweep()).unwrap_err();
    assert!(format!("{failed:?}").contains("no room"), "{failed:?}");
    assert_eq!((left(&stuck, &of_stuck[..1]), left(&well, &of_well[..5])), (1, 0));

    // Many take several rounds.
    delete(&stuck, &of_stuck[1..]);
    delete(&well, &of_well[5..]);
    pass(&world, DAY_MS);
    for _ in 0..4 {
        drop(wait(world.direct_access().sweep()));
        pass(&world, ARCHIVE_REMOVAL_PAUSE_MS);
    }
    assert_eq!((left(&stuck, &of_stuck), left(&well, &of_well)), (of_stuck.len(), 0));
    full.refuse(&[]);
    pass(&world, RECORDING_RETRY_MS);
    sweep(&world);
    assert_eq!(left(&stuck, &of_stuck), 0);
}

/// Those that fail are tried again between the rounds, and come after those that were not tried yet.
#[test]
fn many_transcripts_that_cannot_be_removed_starve_no_other() {
    let full: Arc<Full> = Arc::default();
    let world = World::over_all(Arc::new(memory()), full.clone(), &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    let [stuck, well] = [(); 2].map(|()| world.other());
    let [of_stuck, of_well] = [(&stuck, 60), (&well, 40)]
        .map(|(world, count)| (0..count).map(|_| long_call(world, 3)).collect::<Vec<_>>());
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    delete(&stuck, &of_stuck);
    pass(&world, 1);
    delete(&well, &of_well);
    pass(&world, DAY_MS);
    full.refuse(&[&*stuck.workspace_id()]);
    for _ in 0..8 {
        drop(wait(world.direct_access().sweep()));
        pass(&world, RECORDING_RETRY_MS);
    }
    full.refuse(&[]);
    assert_eq!((left(&stuck, &of_stuck), left(&well, &of_well)), (of_stuck.len(), 0));
}

#[test]
fn while_storage_does_not_answer_few_requests_remove_transcripts() {
    let full: Arc<Full> = Arc::default();
    let world = World::over_all(Arc::new(memory()), full.clone(), &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    let calls: Vec<String> = (0..40).map(|_| long_call(&world, 3)).collect();
    pass(&world, 3 * DAY_MS);
    sweep(&world);
    delete(&world, &calls);
    pass(&world, DAY_MS);
    full.refuse(&[""]);
    let requests = || full.removals.load(Ordering::Relaxed);
    assert!(wait(world.direct_access().sweep()).is_err());
    assert_eq!(requests(), 6, "40 calls, 20, 10, 5, 2 and 1");
    pass(&world, ARCHIVE_REMOVAL_PAUSE_MS);
    wait(world.direct_access().sweep()).unwrap();
    assert_eq!(requests(), 6, "it waits");
    full.refuse(&[]);
    pass(&world, RECORDING_RETRY_MS);
    sweep(&world);
    assert_eq!(left(&world, &calls), 0);
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
    pass(&world, 3 * DAY_MS);
    let failed = wait(world.direct_access().sweep()).unwrap_err();
    assert!(format!("{failed:?}").contains("no room"), "{failed:?}");
    assert_eq!(transcripts(&well), (0, 1));
    full.refuse(&[]);
    pass(&world, DAY_MS);
    sweep(&world);
    assert_eq!((transcripts(&one), transcripts(&two)), ((0, 1), (0, 1)));
}

#[test]
fn more_workspaces_than_a_round_looks_at_cannot_be_archived() {
    let full: Arc<Full> = Arc::default();
    let world = World::over_all(Arc::new(memory()), full.clone(), &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    let stuck: Vec<World> = (0..=RETENTION_WORKSPACES_MAX).map(|_| world.other()).collect();
    let well = world.other();
    stuck.iter().chain([&well]).for_each(|world| drop(long_call(world, 30)));
    let ids: Vec<WorkspaceId> = stuck.iter().map(World::workspace_id).collect();
    full.refuse(&ids.iter().map(|id| &**id).collect::<Vec<_>>());
    pass(&world, 3 * DAY_MS);
    for _ in 0..2 {
        assert!(wait(world.direct_access().sweep()).is_err());
    }
    assert_eq!(transcripts(&well), (0, 1));
    full.refuse(&[]);
    sweep(&world);
    assert!(stuck.iter().all(|world| transcripts(world) == (0, 1)));
}

/// Blobs that refuse keys with one of these texts.
#[derive(Default)]
struct Full {
    memory: MemoryBlobs,
    refused: Mutex<Vec<String>>,
    /// The requests that remove something.
    removals: AtomicUsize,
}

impl Full {
    fn refuse(&self, texts: &[&str]) {
        *self.refused.lock().unwrap() = texts.iter().map(|text| (*text).to_owned()).collect();
    }

    fn answer(&self, key: &BlobKey) -> Result<(), BlobError> {
        match self.refused.lock().unwrap().iter().any(|text| key.as_str().contains(text)) {
            true => Err(BlobError("no room".to_owned())),
            false => Ok(()),
        }
    }
}

impl Blobs for Full {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        match self.answer(key) {
            Ok(()) => self.memory.put(key, bytes),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        match self.answer(key) {
            Ok(()) => self.memory.size(key),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        match self.answer(key) {
            Ok(()) => self.memory.get(key, range),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        self.delete_all(vec![key.clone()])
    }

    /// In one request, which removes all of them or none.
    fn delete_all(&self, keys: Vec<BlobKey>) -> BoxFuture<'_, Result<(), BlobError>> {
        self.removals.fetch_add(1, Ordering::Relaxed);
        match keys.iter().try_for_each(|key| self.answer(key)) {
            Ok(()) => self.memory.delete_all(keys),
            Err(error) => Box::pin(async { Err(error) }),
        }
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
