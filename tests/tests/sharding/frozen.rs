//! A workspace that is locked stays byte for byte as it is, whoever works on the database, and nobody else is held up.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Effects;
use sidetone_engine::ports::statement::{Statement, Value};
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::moves::lock;
use sidetone_engine::storage::workspace_rows::{TABLES, Window};
use sidetone_tests::{Call, World};

use crate::cluster::{Cluster, Shards};
use crate::furnished::furnished;

/// A page of everything.
pub const ALL: Window = Window { rows: 10_000, looked_at: 100_000, bytes: 100_000_000 };
const DAY_MS: i64 = 86_400_000;

pub type Stored = BTreeMap<&'static str, Vec<Vec<Value>>>;

/// The rows of a workspace, by table.
pub fn rows(shards: &Shards, id: &WorkspaceId) -> Stored {
    let page = |table| block_on(ALL.read(shards.at(0), table, id, &[])).unwrap().rows;
    TABLES.iter().map(|table| (table.name, page(table))).collect()
}

/// As a freeze does it, once nothing is under way.
fn freeze(services: &Services, id: &WorkspaceId) {
    let write = |batch| block_on(services.ports().database.write(batch)).map(drop).unwrap();
    write(vec![sql!(
        "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
         VALUES (:id, 'exp_1', 'frozen', 0, '', '', 0, 0)",
        id = id
    )]);
    block_on(lock::arm(services, id)).unwrap();
    write(vec![
        lock::guard_armed(id).unwrap(),
        sql!("DELETE FROM jobs_away WHERE workspace_id = :id", id = id),
        sql!(
            "INSERT INTO jobs_away (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
             SELECT workspace_id, id, kind, subject_id, due_at, attempts, created_at FROM jobs WHERE workspace_id = :id",
            id = id
        ),
        sql!("DELETE FROM jobs WHERE workspace_id = :id", id = id),
        set_lock(id, 2),
    ]);
}

/// Whatever holds a job's lease has lost it.
fn cancel(world: &World, id: &WorkspaceId) {
    world.write(vec![
        set_lock(id, 0),
        sql!(
            "INSERT INTO jobs (id, workspace_id, kind, subject_id, due_at, attempts, created_at)
             SELECT id, workspace_id, kind, subject_id, 0, attempts, created_at FROM jobs_away WHERE workspace_id = :id",
            id = id
        ),
        sql!("DELETE FROM jobs_away WHERE workspace_id = :id", id = id),
    ]);
}

fn set_lock(id: &WorkspaceId, lock: i64) -> Statement {
    sql!("UPDATE moves SET lock = :lock WHERE workspace_id = :id", lock = lock, id = id)
}

#[test]
fn a_frozen_workspace_stays_as_it_is_and_holds_nobody_up() {
    let cluster = Cluster::with_settings(1, &[("SIDETONE_ARCHIVE_DAYS", "1")]);
    let (tenant, id) = furnished(&cluster, 0);
    let (neighbour, beside) = furnished(&cluster, 0);
    let (id, beside) = (WorkspaceId::from_stored(id), WorkspaceId::from_stored(beside));
    let sandbox = tenant.sandbox().unwrap();
    // Calls that nobody ends any more end by themselves.
    for _ in 0..30 {
        sandbox.advance(DAY_MS / 24);
        cluster.run_jobs();
    }
    let writes = OPERATIONS.iter().filter(|operation| operation.effects != Effects::Read);
    let calls: Vec<Call> = writes.map(|operation| Call::valid(&tenant, operation)).collect();
    for world in [&tenant, &neighbour] {
        world.patch("/workspace", json!({"call_retention_days": 1, "recording_retention_days": 1})).ok();
    }
    tenant.run();
    freeze(&tenant.direct_access(), &id);
    let (before, beside_before) = (rows(&cluster.shards, &id), rows(&cluster.shards, &beside));

    let written: Vec<&str> = calls
        .iter()
        .filter(|call| match call.rest(&tenant).status {
            503 => true,
            // What writes nothing, such as the signature of a link, goes on.
            status => {
                assert_eq!(status, call.operation.success.status(), "{}", call.operation.id);
                println!("{} is no write", call.operation.id);
                false
            }
        })
        .map(|call| call.operation.id)
        .collect();
    assert!(written.len() + 3 > calls.len(), "refused: {written:?}");
    assert_eq!(rows(&cluster.shards, &id), before);
    let services = sandbox.services();
    for _ in 0..60 {
        sandbox.advance(DAY_MS);
        assert!(block_on(sandbox.engine().start("host")).is_ok());
        cluster.run_jobs();
        while block_on(services.sweep()).unwrap().more {}
    }
    let after = rows(&cluster.shards, &id);
    for (table, rows) in &before {
        assert_eq!(&after[table], rows, "{table}");
    }
    let beside_after = rows(&cluster.shards, &beside);
    for table in [
        "idempotency_keys",
        "calls",
        "events",
        "deliveries",
        "event_log",
        "used_test_tokens",
        "search_erasures",
    ] {
        let (before, after) = (beside_before[table].len(), beside_after[table].len());
        assert!(before > after || after == 0, "{table} of the neighbour: {before} rows, then {after}");
        assert!(before > 0, "{table}: nothing was to be deleted");
    }

    // Canceled, it goes on.
    cancel(&tenant, &id);
    assert!(cluster.run_jobs() > 0);
    tenant.from_elsewhere().assistant();
    while block_on(services.sweep()).unwrap().more {}
    assert!(rows(&cluster.shards, &id)["calls"].len() < before["calls"].len());
}

/// Freezes the workspace just before the `nth` write from now; what it was then.
fn freeze_before_write(
    cluster: &Cluster,
    tenant: &World,
    id: &WorkspaceId,
    nth: u32,
) -> Arc<Mutex<Option<Stored>>> {
    let (services, shards, id) = (tenant.direct_access(), cluster.shards.clone(), id.clone());
    let then = Arc::new(Mutex::new(None));
    let noted = then.clone();
    let hook = move || {
        freeze(&services, &id);
        *noted.lock().unwrap() = Some(rows(&shards, &id));
    };
    cluster.shards.before_write(nth, Box::new(hook));
    then
}

#[test]
fn a_request_that_read_before_the_lock_writes_nothing() {
    let cluster = Cluster::new(1);
    let (tenant, id) = cluster.workspace(0);
    let id = WorkspaceId::from_stored(id);
    let path = format!("/assistants/{}", tenant.assistant().id);
    let then = freeze_before_write(&cluster, &tenant, &id, 1);
    tenant.patch(&path, json!({"name": "Reception"})).refused("workspace_moving");
    assert_eq!(then.lock().unwrap().take(), Some(rows(&cluster.shards, &id)));
    assert_eq!(tenant.get(&path).ok()["name"], "Front desk");
    cancel(&tenant, &id);
    assert_eq!(tenant.patch(&path, json!({"name": "Reception"})).ok()["revision"], 2);
}

#[test]
fn a_run_that_was_under_way_at_the_lock_writes_nothing_and_ends_when_it_is_lifted() {
    let reference = {
        let world = World::over(Shards::new(1));
        world.settle(&world.run().id)
    };
    for nth in 1..=2 {
        let cluster = Cluster::new(1);
        let (tenant, id) = cluster.workspace(0);
        let id = WorkspaceId::from_stored(id);
        let path = format!("/simulations/runs/{}", tenant.run().id);
        let then = freeze_before_write(&cluster, &tenant, &id, nth);
        cluster.run_jobs();
        assert_eq!(then.lock().unwrap().take(), Some(rows(&cluster.shards, &id)), "write {nth}");
        cancel(&tenant, &id);
        assert!(cluster.run_jobs() > 0, "write {nth}");
        let run = tenant.get(&path).ok();
        assert_eq!(run["status"], "completed", "write {nth}: {run:?}");
        assert_eq!(run["call"]["transcript"], reference["call"]["transcript"]);
    }
}
