//! Storage that fails, before a batch is committed or after: always on the Sandbox, over a database
//! that fails when it is told to.
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sidetone::database::Memory;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::limits::JOB_LEASE_MS;
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_engine::statement::{Rows, Statement};
use sidetone_tests::{Call, World};

#[test]
fn a_write_that_fails_is_a_503_and_a_retry_does_it_once() {
    for moment in [Moment::Before, Moment::After] {
        let (world, database) = flaky();
        for operation in OPERATIONS.iter().filter(|operation| operation.takes_idempotency_key()) {
            let call = Call::valid(&world, operation);
            let before = state(&world);
            // What is changed without being added to shows when.
            world.sandbox().unwrap().advance(1);
            let key = format!("{}-{moment:?}", operation.id);
            let body = Value::Object(call.body.clone().unwrap());
            database.fail_write(1, moment);
            let failed = world.post_once(call.uri(), &key, body.clone()).refused("unavailable");
            assert_eq!(failed.header("retry-after"), Some("1"), "{}", operation.id);
            assert!(!String::from_utf8_lossy(&failed.body).contains(SECRET_DETAIL), "{failed:?}");
            assert_eq!(
                state(&world) != before,
                moment == Moment::After,
                "{}: committed or not",
                operation.id
            );

            let retried = world.post_once(call.uri(), &key, body.clone()).created();
            let replayed = retried.header("idempotent-replayed").is_some();
            assert_eq!(replayed, moment == Moment::After, "{}", operation.id);
            let after = state(&world);
            assert!(after != before, "{}", operation.id);
            let again = world.post_once(call.uri(), &key, body).created();
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
            assert_eq!(state(&world), after, "{}: done once", operation.id);
            assert_eq!(retried["id"], again["id"]);
        }
    }
}

#[test]
fn every_operation_says_503_while_storage_is_away_and_works_afterwards() {
    for operation in OPERATIONS {
        let (world, database) = flaky();
        let call = Call::valid(&world, operation);
        database.away(true);
        call.rest(&world).refused("unavailable");
        call.tool(&world).refused("unavailable");
        let health = world.send_unchecked(http::Request::get("/healthz").body("".into()).unwrap());
        assert_eq!(health.status, 503);
        database.away(false);
        assert_eq!(call.rest(&world).status, operation.success.status(), "{}", operation.id);
    }
}

#[test]
fn a_stranger_learns_nothing_from_failing_storage() {
    let (world, database) = flaky();
    let stranger = world.with_key("sidetone_wrong");
    database.away(true);
    stranger.get("/assistants").refused("unauthorized");
}

#[test]
fn a_patch_whose_commit_is_not_acknowledged_is_there_or_not_but_never_half() {
    for moment in [Moment::Before, Moment::After] {
        let (world, database) = flaky();
        let path = format!("/assistants/{}", world.assistant().id);
        database.fail_write(1, moment);
        world.patch(&path, json!({"name": "New", "instructions": "New"})).refused("unavailable");
        let read = world.get(&path).ok();
        let expected =
            if moment == Moment::After { ("New", "New", 2) } else { ("Front desk", "Be kind.", 1) };
        assert_eq!(
            (&read["name"], &read["instructions"], &read["revision"]),
            (&json!(expected.0), &json!(expected.1), &json!(expected.2))
        );
        // Sent again it answers what it would have answered.
        assert_eq!(world.patch(&path, json!({"name": "New", "instructions": "New"})).ok()["revision"], 2);
    }
}

#[test]
fn a_running_run_cannot_be_deleted() {
    let (world, database) = flaky();
    let sandbox = world.sandbox().unwrap();
    let run = world.run();
    let path = format!("/simulations/runs/{}", run.id);
    // A process claims the run and loses its storage: the lease is still good.
    database.away_after_writes(1);
    assert!(block_on(sandbox.engine().run_due_jobs("lost", 32)).is_err());
    database.away(false);
    let read = world.get(&path).ok();
    assert_eq!(read["status"], "running");
    assert!(read["started_at"].is_string());
    world.delete(&path).refused("run_in_progress");
    world.tool("delete_simulation_run", json!({"id": run.id})).refused("run_in_progress");
    assert_eq!(sandbox.run_jobs(), 0, "nobody else takes it while the lease lasts");
    sandbox.advance(JOB_LEASE_MS + 1);
    assert_eq!(world.settle(&run.id)["status"], "completed");
    world.delete(&path).empty();
}

#[test]
fn a_run_whose_result_is_not_acknowledged_comes_to_the_same_end() {
    let reference = {
        let (world, _) = flaky();
        world.settle(&world.run().id)
    };
    for moment in [Moment::Before, Moment::After] {
        let (world, database) = flaky();
        let run = world.run();
        // The first write claims the run, the second stores its result.
        database.fail_write(2, moment);
        let turn = block_on(world.sandbox().unwrap().engine().run_due_jobs("first", 32));
        assert!(turn.is_err() || !turn.unwrap().incidents.is_empty(), "{moment:?}: the fault was not met");
        world.sandbox().unwrap().advance(JOB_LEASE_MS + 1);
        let over = world.settle(&run.id);
        assert_eq!(over["status"], "completed", "{over}");
        assert_eq!(over["transcript"], reference["transcript"], "{moment:?}");
        assert_eq!(over["evaluations"], reference["evaluations"], "{moment:?}");
        assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 1);
    }
}

const SECRET_DETAIL: &str = "disk sda1 is on fire";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// Memory that fails when it is told to.
struct Flaky {
    memory: Memory,
    away: AtomicBool,
    /// Writes that still succeed before everything fails; negative for no such plan.
    writes_left: AtomicI64,
    /// Which write from now fails, and when.
    planned: Mutex<Option<(u32, Moment)>>,
}

impl Flaky {
    fn away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
        self.writes_left.store(-1, Ordering::SeqCst);
    }

    fn away_after_writes(&self, writes: i64) {
        self.writes_left.store(writes, Ordering::SeqCst);
    }

    fn fail_write(&self, nth: u32, moment: Moment) {
        *self.planned.lock().unwrap() = Some((nth, moment));
    }

    fn due(&self) -> Option<Moment> {
        let mut planned = self.planned.lock().unwrap();
        let (left, moment) = (*planned)?;
        *planned = (left > 1).then_some((left - 1, moment));
        (left == 1).then_some(moment)
    }
}

impl Database for Flaky {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            if self.away.load(Ordering::SeqCst) {
                return Err(failure());
            }
            self.memory.read(batch).await
        })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            if self.away.load(Ordering::SeqCst) {
                return Err(failure());
            }
            if self.writes_left.load(Ordering::SeqCst) > 0
                && self.writes_left.fetch_sub(1, Ordering::SeqCst) == 1
            {
                self.away.store(true, Ordering::SeqCst);
            }
            match self.due() {
                None => self.memory.write(batch).await,
                Some(Moment::Before) => Err(failure()),
                Some(Moment::After) => self.memory.write(batch).await.and_then(|_| Err(failure())),
            }
        })
    }
}

fn failure() -> DatabaseError {
    DatabaseError::Unavailable(SECRET_DETAIL.to_owned())
}

fn flaky() -> (World, Arc<Flaky>) {
    let database = Arc::new(Flaky {
        memory: memory(),
        away: AtomicBool::new(false),
        writes_left: AtomicI64::new(-1),
        planned: Mutex::new(None),
    });
    (World::over(database.clone()), database)
}

/// Resources in the workspace.
/// All lists, and what was sent to each webhook.
fn state(world: &World) -> Vec<Value> {
    let lists = OPERATIONS
        .iter()
        .filter(|operation| operation.method == http::Method::GET && !operation.path.contains('{'))
        .map(|operation| operation.path.to_owned());
    let webhooks = world.get("/webhooks").ok().ids();
    let deliveries = webhooks.iter().map(|id| format!("/webhooks/{id}/deliveries"));
    lists.chain(deliveries).map(|path| world.get(path).ok().json).collect()
}
