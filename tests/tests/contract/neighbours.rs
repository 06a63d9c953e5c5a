//! What one workspace does is not felt by another: places of job queues, the sweep, turns at the database, memory for bodies.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone::database::Memory;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::ids::WorkspaceId;
use sidetone_engine::base::limits::{
    BODY_BYTES_MAX, DELIVERIES_AT_ONCE, EVENT_KEPT_MS, IDEMPOTENCY_WINDOW_MS, RUNS_AT_ONCE,
    UNKNOWN_BODIES_BYTES_MAX,
};
use sidetone_engine::engine::{Admission, PendingRequest, Room};
use sidetone_engine::jobs::{ClaimedJob, QueueWorker, Step};
use sidetone_engine::ports::statement::{Rows, Statement, asker, only_removes};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError, HttpError, JobQueue};
use sidetone_engine::sql;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::{Created, World};

/// Places of runs that a single workspace does not get.
const PLACES_OF_OTHERS: usize = 8;
const PLACES: usize = RUNS_AT_ONCE as usize;
const SOON: Duration = Duration::from_secs(30);

/// Workspaces feel each other only there; and the workers of a host that does not end are of one database.
fn in_one_database() -> World {
    World::over(Arc::new(memory()))
}

/// Queues runs of one simulation.
fn queue_runs(world: &World, simulation: &Created, count: usize) -> Vec<Created> {
    let path = format!("/simulations/{}/runs", simulation.id);
    (0..count).map(|seed| world.create(&path, json!({"seed": seed}))).collect()
}

/// Runs with this status.
fn total(world: &World, status: &str) -> i64 {
    let list = world.get(format!("/simulations/runs?status={status}")).ok();
    list["pagination"]["total"].as_i64().unwrap()
}

fn workers(world: &World) -> [QueueWorker; 3] {
    let started = block_on(world.sandbox().unwrap().engine().start("host")).unwrap();
    let Ok(workers) = started.workers.try_into() else { panic!("another number of queues") };
    workers
}

fn run_all(jobs: impl IntoIterator<Item = ClaimedJob>) {
    jobs.into_iter().for_each(|job| assert_eq!(block_on(job.run()), None));
}

/// A simulation whose caller asks once for something that a tool knows.
fn simulation_with_tool(world: &World, url: &str, timeout_ms: i64) -> Created {
    let body = json!({"name": "order_status", "url": url, "timeout_ms": timeout_ms,
        "description": "Looks up the status of an order", "parameters": {"type": "object", "properties": {}}});
    let tool = world.create("/tools", body);
    let assistant = world.assistant();
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let persona = world.persona();
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Question", "instructions": "Ask \"What is the status of my order?\""}),
    );
    world.create(
        "/simulations",
        json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
    )
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the steps of a worker")]
fn a_newcomers_run_starts_while_another_workspace_has_all_its_places() {
    let a = in_one_database();
    let b = a.other();
    queue_runs(&a, &a.simulation(), PLACES + 20);
    let [mut calls, _, mut runs] = workers(&a);
    assert_eq!((calls.queue(), runs.queue()), (JobQueue::Calls, JobQueue::Runs));
    let held = block_on(runs.step(0)).jobs;
    assert_eq!((held.len(), total(&a, "running")), (PLACES, PLACES as i64));
    let idle = block_on(runs.step(PLACES));
    assert!(idle.jobs.is_empty() && idle.wait_ms <= 250, "A waits for its own");
    let run = queue_runs(&b, &b.simulation(), 1).remove(0);
    let step = block_on(runs.step(PLACES));
    assert_eq!(step.jobs.len(), 1, "B does not wait for A");
    run_all(step.jobs);
    assert_eq!(b.get(format!("/simulations/runs/{}", run.id)).ok()["status"], "completed");
    assert_eq!((total(&a, "running"), total(&a, "queued")), (PLACES as i64, 20));
    // Calls have a queue of their own.
    hang_up_job(&b);
    let step = block_on(calls.step(0));
    assert_eq!(step.jobs.len(), 1, "a hang-up is not behind runs");
    run_all(step.jobs);
    run_all(held);
    a.sandbox().unwrap().run_jobs();
    assert_eq!(total(&a, "completed"), PLACES as i64 + 20);
}

/// Adds a hang-up of a call whose line has ended meanwhile.
fn hang_up_job(world: &World) {
    let statement = sql!(
        "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, attempts, created_at) VALUES (:ws, :id, 'hang_up', :call, 0, 0, 0)",
        id = format!("job_{}", world.count()),
        call = "call_1"
    );
    world.write(vec![statement.in_workspace(&world.workspace_id())]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the steps of a worker")]
fn when_all_places_are_taken_a_run_gives_way_at_its_next_step_and_goes_on_later() {
    let a = in_one_database();
    let sandbox = a.sandbox().unwrap();
    let simulation = a.simulation();
    queue_runs(&a, &simulation, PLACES);
    let [_, _, mut runs] = workers(&a);
    let mut held = block_on(runs.step(0)).jobs;
    for _ in 0..PLACES_OF_OTHERS {
        let other = a.other();
        queue_runs(&other, &other.simulation(), 1);
        held.extend(block_on(runs.step(held.len())).jobs);
    }
    assert_eq!(held.len(), PLACES + PLACES_OF_OTHERS, "all places are taken");
    let late = a.other();
    queue_runs(&late, &late.simulation(), 1);
    let Step { jobs, until_running, .. } = block_on(runs.step(held.len()));
    assert_eq!((jobs.len(), until_running), (0, Some(held.len() - 1)), "waits for one place");
    let asked_again = block_on(runs.step(held.len()));
    assert!(asked_again.jobs.is_empty());
    // A's oldest run gives way instead of going on.
    let first = held.remove(0);
    assert_eq!(block_on(first.run()), None);
    drop(first);
    assert_eq!((total(&a, "running"), total(&a, "completed")), (PLACES as i64, 0));
    let step = block_on(runs.step(held.len()));
    assert_eq!(step.jobs.len(), 1);
    run_all(step.jobs);
    assert_eq!(total(&late, "completed"), 1);
    // One was asked, not more; the attempt of the one that gave way does not count.
    run_all(held);
    assert_eq!((total(&a, "running"), total(&a, "completed")), (1, PLACES as i64 - 1));
    let attempts = sql!("SELECT attempts FROM jobs");
    let rows = block_on(sandbox.services().ports().database.read(vec![attempts])).unwrap();
    assert_eq!(rows[0].first().unwrap().integer("attempts").unwrap(), 0);
    assert_eq!(block_on(runs.step(0)).jobs.iter().map(|job| block_on(job.run())).collect::<Vec<_>>(), [None]);
    assert_eq!(total(&a, "completed"), PLACES as i64);
    // Its result is that of a run that was not interrupted.
    let list = a.get("/simulations/runs?status=completed&limit=100").ok();
    let passed: Vec<&Value> = list["runs"].as_array().unwrap().iter().map(|run| &run["error"]).collect();
    assert!(passed.iter().all(|error| error.is_null()), "{passed:?}");
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own runner")]
fn runs_with_a_slow_tool_and_hanging_receivers_delay_nobody_else() {
    let a = World::with_fakes();
    let b = a.other();
    let slow = Receiver::start(ReceiverBehaviour::Hang);
    let runs_of_a = queue_runs(&a, &simulation_with_tool(&a, &slow.url(), 20_000), PLACES + 10);
    slow.wait_for(PLACES, SOON);
    for _ in 0..150 {
        let webhook = a.create("/webhooks", json!({"url": slow.url(), "events": ["*"]}));
        a.create(&format!("/webhooks/{}/test", webhook.id), json!({}));
    }
    let well = Receiver::start(ReceiverBehaviour::Status(200));
    let webhook = b.create("/webhooks", json!({"url": well.url(), "events": ["*"]}));
    b.create(&format!("/webhooks/{}/test", webhook.id), json!({}));
    well.wait_for(1, SOON);
    let run = queue_runs(&b, &b.simulation(), 1).remove(0);
    assert_eq!(b.settle(&run.id)["status"], "completed");
    assert!(total(&a, "completed") < runs_of_a.len() as i64, "B did not wait for A");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the steps of a worker")]
fn hanging_receivers_of_a_workspace_leave_places_for_others() {
    let a = in_one_database();
    let b = a.other();
    for world in std::iter::repeat_n(&a, 200).chain([&b]) {
        let webhook = world.webhook();
        world.create(&format!("/webhooks/{}/test", webhook.id), json!({}));
    }
    let [_, mut deliveries, _] = workers(&a);
    let first = block_on(deliveries.step(0)).jobs;
    assert!((125..=129).contains(&first.len()), "{}", first.len());
    let leased = sql!("SELECT COUNT(*) AS held FROM jobs WHERE lease IS NOT NULL AND workspace_id = :ws");
    let read = vec![leased.in_workspace(&b.workspace_id())];
    let rows = block_on(a.sandbox().unwrap().services().ports().database.read(read)).unwrap();
    assert_eq!(rows[0].first().unwrap().integer("held").unwrap(), 1, "B's is among them");
}

/// A 200 counts although its body never ends, but its job makes room for others after one round, as if nothing had come.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the steps of a worker")]
fn a_receiver_whose_bodies_never_end_has_one_round_at_a_time() {
    let world = in_one_database();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    for _ in 0..2 * DELIVERIES_AT_ONCE {
        world.create(&format!("/webhooks/{}/test", webhook.id), json!({}));
        let body = [Ok(Bytes::from_static(b"ok")), Err(HttpError::Timeout)];
        sandbox.answer_http_chunks(200, &[], body);
    }
    let [_, mut deliveries, _] = workers(&world);
    let jobs = block_on(deliveries.step(0)).jobs;
    sandbox.sent_http();
    run_all(jobs);
    assert_eq!(sandbox.sent_http().len(), DELIVERIES_AT_ONCE);
    let count = sql!("SELECT COUNT(*) AS delivered FROM deliveries WHERE status = 'delivered'");
    let rows = block_on(sandbox.services().ports().database.read(vec![count])).unwrap();
    let delivered = rows[0].first().unwrap().integer("delivered").unwrap();
    assert_eq!(delivered, i64::try_from(DELIVERIES_AT_ONCE).unwrap());
}

/// A database whose batches take turns; it notes for whom they are.
struct TakesTurns {
    memory: Memory,
    askers: Mutex<Vec<String>>,
}

impl TakesTurns {
    fn note(&self, batch: &[Statement]) {
        self.askers.lock().unwrap().extend(asker(batch).map(str::to_owned));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.askers.lock().unwrap())
    }
}

impl Database for TakesTurns {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.note(&batch);
        self.memory.read(batch)
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.note(&batch);
        self.memory.write(batch)
    }

    fn takes_turns(&self) -> bool {
        true
    }
}

/// A workspace may have a thousand keys. Each is the workspace from its first batch on, and until it is revoked.
#[test]
fn a_key_is_no_neighbour_of_its_own() {
    let database = Arc::new(TakesTurns { memory: memory(), askers: Mutex::default() });
    let world = World::over(database.clone());
    let workspace = world.workspace_id().to_string();
    let is_of_workspace =
        |askers: &[String]| !askers.is_empty() && askers.iter().all(|one| *one == workspace);
    let [reading, writing] = [world.api_key(), world.api_key()];
    let with = |made: &Created| world.with_key(made["key"].as_str().unwrap());
    database.take();
    with(&reading).get("/calls?search=word").ok();
    let askers = database.take();
    assert!(is_of_workspace(&askers), "{askers:?}");
    with(&writing).assistant();
    let askers = database.take();
    assert!(is_of_workspace(&askers), "{askers:?}");
    world.delete(format!("/keys/{}", reading.id)).empty();
    with(&reading).get("/assistants").refused("unauthorized");
    database.take();
    with(&reading).get("/calls?search=word").refused("unauthorized");
    let askers = database.take();
    assert!(!askers.contains(&workspace), "a revoked key takes no turn of its workspace's: {askers:?}");
}

/// A request with this key, of which the head has arrived.
fn with_body(world: &World, key: &str) -> PendingRequest {
    let head = http::Request::post("/assistants").header("authorization", format!("Bearer {key}"));
    let (head, ()) = head.body(()).unwrap().into_parts();
    match world.sandbox().unwrap().engine().begin(head, None, None::<()>) {
        Admission::ReadBody(pending) => pending,
        Admission::Respond(_) | Admission::Socket(..) => panic!("its body is not read"),
    }
}

/// As many large bodies as somebody with this key has room for.
fn bodies(world: &World, key: &str) -> Vec<PendingRequest> {
    let has_room = |body: &mut PendingRequest| block_on(body.room_for(BODY_BYTES_MAX)) == Room::Taken;
    std::iter::repeat_with(|| with_body(world, key))
        .map_while(|mut body| has_room(&mut body).then_some(body))
        .collect()
}

/// Whoever has a key that was revoked takes nothing of its former workspace's, and has no share of their own.
#[test]
fn bodies_with_a_revoked_key_are_a_strangers() {
    let bootstrap = ApiKey::from_bytes([17; 32]).as_str().to_owned();
    let world = World::over_with(Arc::new(memory()), &[("SIDETONE_BOOTSTRAP_KEYS", &bootstrap)]);
    let strangers = usize::try_from(UNKNOWN_BODIES_BYTES_MAX).unwrap() / BODY_BYTES_MAX;
    let made = world.api_key();
    let revoked = made["key"].as_str().unwrap();
    world.with_key(revoked).get("/assistants").ok();
    assert!(bodies(&world, revoked).len() > strangers, "as long as it is good");
    world.delete(format!("/keys/{}", made.id)).empty();
    let held = bodies(&world, revoked);
    assert!(held.len() <= strangers, "{}", held.len());
    assert!(bodies(&world, world.key()).len() > strangers);
    drop(held);

    let first = world.with_key(&bootstrap);
    assert!(bodies(&world, &bootstrap).len() > strangers, "it would open a workspace");
    let listed = first.get("/keys").ok();
    first.delete(format!("/keys/{}", listed.ids()[0])).empty();
    assert!(bodies(&world, &bootstrap).len() <= strangers);
}

/// Rows of an age that the sweep removes, `count` of each kind.
fn expired(workspace_id: &WorkspaceId, count: i64) -> Vec<Statement> {
    let of_each = [
        "INSERT INTO idempotency_keys (workspace_id, key, fingerprint, status, created_at)
         SELECT :ws, 'old_' || value, '', 200, 0 FROM generate",
        "INSERT INTO used_test_tokens (id, workspace_id, expires_at) SELECT 'old_' || value, :ws, 0 FROM generate",
        "INSERT INTO test_token_values (id, workspace_id, expires_at, variables, metadata)
         SELECT 'old_' || value, :ws, 0, '{}', '{}' FROM generate",
        "INSERT INTO carrier_tokens (provider, id, request, expires_at) SELECT 'vonage', 'old_' || value, :ws, 0 FROM generate",
        "INSERT INTO events (id, workspace_id, type, body, created_at)
         SELECT printf('evt_00%08d', value), :ws, 'webhook.test', '{}', 0 FROM generate",
        "INSERT INTO events (id, workspace_id, type, body, created_at)
         SELECT printf('evt_01%08d', value), :ws, 'webhook.test', '{}', 0 FROM generate WHERE value <= 100",
        "INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, type, body_bytes, status, attempts, failures, created_at)
         SELECT printf('dlv_00%08d', value), :ws, 'hook_1', printf('evt_00%08d', value), 'webhook.test', 2, 'delivered', 1, 0, 0 FROM generate",
    ];
    let rows = |insert: &str| {
        sql!(
            format!(
                "WITH RECURSIVE generate (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM generate WHERE value < CAST(:count AS INTEGER)) {insert}"
            ),
            count = count
        )
        .in_workspace(workspace_id)
    };
    of_each.into_iter().map(rows).collect()
}

fn left(world: &World) -> Vec<i64> {
    let count = |table: &str| sql!(format!("SELECT COUNT(*) AS rows FROM {table}"));
    let tables = [
        "idempotency_keys",
        "used_test_tokens",
        "test_token_values",
        "carrier_tokens",
        "events",
        "deliveries",
    ];
    let rows = block_on(world.sandbox().unwrap().services().ports().database.read(tables.map(count).into()));
    rows.unwrap().iter().map(|rows| rows.first().unwrap().integer("rows").unwrap()).collect()
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the steps of a worker")]
fn the_sweep_goes_on_until_nothing_expired_is_left() {
    let world = in_one_database();
    let sandbox = world.sandbox().unwrap();
    world.write(expired(&world.workspace_id(), 20_000));
    let [_, mut deliveries, _] = workers(&world);
    sandbox.advance(EVENT_KEPT_MS + IDEMPOTENCY_WINDOW_MS);
    // One round: some of each kind, so that none waits for another.
    assert!(block_on(sandbox.services().sweep()).expect("a sweep").more);
    assert_eq!(left(&world), [19_500, 19_500, 19_500, 19_500, 19_600, 19_500]);
    let mut sweeps = 0;
    while left(&world).iter().any(|rows| *rows > 0) {
        let Step { jobs, .. } = block_on(deliveries.step(0));
        assert_eq!(jobs.len(), 1, "the sweep runs beside the jobs");
        let while_sweeping = block_on(deliveries.step(1));
        assert!(while_sweeping.jobs.is_empty() && while_sweeping.wait_ms <= 100, "the next one is near");
        run_all(jobs);
        sweeps += 1;
        assert!(sweeps < 5, "{:?}", left(&world));
    }
    assert!(sweeps > 1);
}

/// A database whose disk can be full.
struct OnADisk {
    memory: Memory,
    is_full: AtomicBool,
}

impl Database for OnADisk {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.memory.read(batch)
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        if self.is_full.load(Ordering::SeqCst) && !only_removes(&batch) {
            return Box::pin(async { Err(DatabaseError::Unavailable("the disk is full".to_owned())) });
        }
        self.memory.write(batch)
    }
}

/// Merging the words of deleted calls out of the text index takes room, and waits for it. Nothing else does.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn on_a_full_disk_the_sweep_goes_on() {
    let database = Arc::new(OnADisk { memory: memory(), is_full: AtomicBool::new(false) });
    let world = World::over(database.clone());
    let sandbox = world.sandbox().unwrap();
    let keys = expired(&world.workspace_id(), 1_200).swap_remove(0);
    let words = sql!(
        "INSERT INTO search_erasures (workspace_id, merging) VALUES (:id, 0)",
        id = &world.workspace_id()
    );
    world.write(vec![keys, words]);
    sandbox.advance(IDEMPOTENCY_WINDOW_MS);
    database.is_full.store(true, Ordering::SeqCst);
    let mut jobs = sandbox.engine().scheduled_jobs("host");
    let mut incidents = Vec::new();
    while let Some(report) = block_on(jobs.next()) {
        incidents.extend(report.incidents);
    }
    assert!(incidents.iter().any(|incident| incident.contains("the disk is full")), "{incidents:?}");
    assert_eq!(left(&world)[0], 0);
    database.is_full.store(false, Ordering::SeqCst);
    block_on(sandbox.services().sweep()).unwrap();
    let rest = sql!("SELECT 1 AS one FROM search_erasures");
    assert!(block_on(database.read(vec![rest])).unwrap()[0].is_empty());
}

/// Prints how many rows a second the sweep removes; 13 a second before.
#[test]
#[ignore = "a measurement: run it with --ignored --nocapture"]
#[allow(clippy::print_stdout, reason = "a measurement")]
fn rows_a_second_that_the_sweep_removes() {
    let world = in_one_database();
    let sandbox = world.sandbox().unwrap();
    world.write(expired(&world.workspace_id(), 100_000));
    sandbox.advance(EVENT_KEPT_MS + IDEMPOTENCY_WINDOW_MS);
    let before: i64 = left(&world).iter().sum();
    let began = std::time::Instant::now();
    let rounds = (1..).find(|_| !block_on(sandbox.services().sweep()).unwrap().more).unwrap();
    let (rows, seconds) = (before - left(&world).iter().sum::<i64>(), began.elapsed().as_secs_f64());
    println!("{rows} rows in {rounds} rounds: {:.0} a second", rows as f64 / seconds);
}
