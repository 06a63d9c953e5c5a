//! The source of a move when its process dies, or two ask for different things at once: whoever asks again gets to the same end.
use std::sync::{Arc, Mutex};

use sidetone::database::Memory;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::moves::cancel_export::cancel_export;
use sidetone_engine::storage::moves::erase::{Erasing, erase};
use sidetone_engine::storage::moves::freeze::{Freeze, close, freeze};
use sidetone_engine::storage::moves::release::{Receiver, Released, release};
use sidetone_engine::storage::moves::{Move, Refusal, State, Step};
use sidetone_engine::storage::workspace_rows::TABLES;
use sidetone_tests::World;

use crate::cluster::Cluster;
use crate::frozen::ALL;
use crate::schema::{ask, texts};

const IMPORT: &str = "imp_01kas3v8hq4x7m2n5p6r9t0w1z";
const ANOTHER: &str = "imp_01kas3v8hq4x7m2n5p6r9t0w20";

/// A database of which one write is cut off.
pub struct Failing {
    inner: Memory,
    /// Writes before the one that fails; `None`: none will.
    left: Mutex<Option<u32>>,
    /// Whether that one is made, and only its answer is lost.
    is_made: bool,
}

impl Failing {
    pub fn new(is_made: bool) -> Arc<Self> {
        Arc::new(Self { inner: memory(), left: Mutex::new(None), is_made })
    }

    pub fn fail_after(&self, writes: u32) {
        *self.left.lock().unwrap() = Some(writes);
    }

    pub fn has_failed(&self) -> bool {
        self.left.lock().unwrap().is_none()
    }

    /// From now on, none fails.
    pub fn recover(&self) {
        *self.left.lock().unwrap() = None;
    }
}

impl Database for Failing {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.inner.read(batch)
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        let left = *self.left.lock().unwrap();
        *self.left.lock().unwrap() = left.and_then(|left| left.checked_sub(1));
        let fails = left == Some(0);
        Box::pin(async move {
            let cut_off = DatabaseError::Unavailable("the process has died".to_owned());
            if fails && !self.is_made {
                return Err(cut_off);
            }
            let rows = self.inner.write(batch).await;
            if fails { Err(cut_off) } else { rows }
        })
    }
}

/// The result of a step, which is asked for again after a failure.
fn again<T>(step: impl Fn() -> Step<T>) -> T {
    for _ in 0..3 {
        if let Ok(outcome) = step() {
            return outcome.unwrap();
        }
    }
    panic!("it fails again and again");
}

fn until_frozen(services: &Services, id: &WorkspaceId) {
    again(|| block_on(close(services, id)));
    assert_eq!(again(|| block_on(freeze(services, id, true))), Freeze::Frozen);
}

fn hand_over(services: &Services, id: &WorkspaceId, to: &str) -> Step<Released> {
    let export_id = block_on(Move::of(services, id)).unwrap().unwrap().id;
    let receiver =
        Receiver { export_id: &export_id, import_id: to, base_url: "https://edge.example", instead_of: None };
    block_on(release(services, id, receiver))
}

fn triggers(database: &Memory) -> usize {
    texts(&ask(database, "SELECT name AS text FROM sqlite_schema WHERE type = 'trigger'", &[])).len()
}

/// Does the same once for each write that it makes, with that write cut off. How many writes there are.
fn with_each_write_cut_off(act: impl Fn(&Services, &WorkspaceId), check: impl Fn(&World, &Memory)) -> u32 {
    let mut writes = 0;
    for is_made in [false, true] {
        for nth in 0.. {
            let database = Failing::new(is_made);
            let world = World::over(database.clone());
            let id = world.workspace_id();
            world.assistant();
            world.a_tool();
            world.webhook();
            database.fail_after(nth);
            act(&world.direct_access(), &id);
            let has_failed = database.has_failed();
            // What is asked for from here on may write.
            database.recover();
            check(&world, &database.inner);
            if !has_failed {
                writes = nth;
                break;
            }
        }
    }
    writes
}

#[test]
fn a_workspace_is_handed_over_and_erased_whatever_write_is_lost() {
    let act = |services: &Services, id: &WorkspaceId| {
        until_frozen(services, id);
        let code = again(|| hand_over(services, id, IMPORT)).code.to_text();
        assert_eq!(again(|| hand_over(services, id, IMPORT)).code.to_text(), code);
        while let Erasing::Rows(_) = again(|| block_on(erase(services, id))) {}
    };
    let check = |world: &World, database: &Memory| {
        world.get("/assistants").refused("workspace_moved");
        let id = WorkspaceId::from_stored(
            texts(&ask(database, "SELECT workspace_id AS text FROM moves WHERE state = 'gone'", &[]))
                .remove(0),
        );
        for table in TABLES {
            let rows = block_on(ALL.read(database, table, &id, &[])).unwrap().rows;
            let is_left = ["workspaces", "api_keys", "search_erasures"].contains(&table.name);
            assert_eq!(rows.is_empty(), !is_left, "{}", table.name);
        }
        assert_eq!(triggers(database), 9);
    };
    let writes = with_each_write_cut_off(act, check);
    assert!(writes > 15, "{writes}");
}

#[test]
fn an_export_is_canceled_whatever_write_is_lost() {
    let act = |services: &Services, id: &WorkspaceId| {
        until_frozen(services, id);
        again(|| block_on(cancel_export(services, id)));
    };
    let check = |world: &World, database: &Memory| {
        assert_eq!(triggers(database), 0);
        world.assistant();
        assert!(texts(&ask(database, "SELECT id AS text FROM moves", &[])).is_empty());
    };
    let writes = with_each_write_cut_off(act, check);
    assert!(writes > 12, "{writes}");
}

/// A frozen workspace; just before the next write to its database, something else happens to it.
fn frozen_and(
    cluster: &Cluster,
    act: impl FnOnce(&Services, &WorkspaceId) + Send + 'static,
) -> (Services, WorkspaceId) {
    let (tenant, id) = cluster.workspace(0);
    tenant.assistant();
    let (services, id) = (tenant.direct_access(), WorkspaceId::from_stored(id));
    until_frozen(&services, &id);
    let theirs = (services.clone(), id.clone());
    cluster.shards.before_write(1, Box::new(move || act(&theirs.0, &theirs.1)));
    (services, id)
}

#[test]
fn of_two_who_decide_at_once_the_first_one_does() {
    let cluster = Cluster::new(1);
    let (services, id) = frozen_and(&cluster, |services, id| {
        hand_over(services, id, ANOTHER).unwrap().unwrap();
    });
    assert_eq!(hand_over(&services, &id, IMPORT).unwrap().unwrap_err(), Refusal::ReleasedElsewhere);

    let (services, id) = frozen_and(&cluster, |services, id| {
        hand_over(services, id, IMPORT).unwrap().unwrap();
    });
    assert_eq!(block_on(cancel_export(&services, &id)).unwrap().unwrap_err(), Refusal::Moved);
    hand_over(&services, &id, IMPORT).unwrap().unwrap();

    let (services, id) = frozen_and(&cluster, |services, id| {
        block_on(cancel_export(services, id)).unwrap().unwrap();
    });
    assert_eq!(hand_over(&services, &id, IMPORT).unwrap().unwrap_err(), Refusal::NotFrozen);

    let (services, id) = frozen_and(&cluster, |services, id| {
        hand_over(services, id, IMPORT).unwrap().unwrap();
        block_on(erase(services, id)).unwrap().unwrap();
    });
    // The code is good as long as the tombstone is there.
    hand_over(&services, &id, IMPORT).unwrap().unwrap();
    while let Erasing::Rows(_) = block_on(erase(&services, &id)).unwrap().unwrap() {}
    hand_over(&services, &id, IMPORT).unwrap().unwrap();
}

/// Canceling has lifted the lock, and the row of the move is there until the triggers are dropped: whoever has read before that it
/// is frozen hands nothing over, and erases nothing.
#[test]
fn what_was_just_canceled_is_not_handed_over() {
    let canceled = |services: &Services, id: &WorkspaceId| {
        let row = sql!("UPDATE moves SET state = 'canceled', lock = 0 WHERE workspace_id = :id", id = id);
        block_on(services.ports().database.write(vec![row])).unwrap();
    };
    let cluster = Cluster::new(1);
    let (services, id) = frozen_and(&cluster, canceled);
    assert_eq!(hand_over(&services, &id, IMPORT).unwrap().unwrap_err(), Refusal::NotFrozen);
    assert_eq!(block_on(Move::of(&services, &id)).unwrap().unwrap().state, State::Canceled);
    // It runs here.
    let keys = "SELECT id AS text FROM api_keys WHERE workspace_id = ?1 AND revoked_at IS NULL";
    assert!(!texts(&ask(cluster.shards.at(0), keys, &[&id])).is_empty());
    block_on(cancel_export(&services, &id)).unwrap().unwrap();
    assert_eq!(triggers(cluster.shards.at(0)), 0);
}

/// Whoever cancels once more, because an answer was lost, may be overtaken by the next export.
#[test]
fn a_late_repetition_of_canceling_leaves_the_next_export_frozen() {
    let cluster = Cluster::new(1);
    let (tenant, id) = cluster.workspace(0);
    tenant.assistant();
    let (services, id) = (tenant.direct_access(), WorkspaceId::from_stored(id));
    let theirs = (services.clone(), id.clone());
    cluster.shards.before_write(1, Box::new(move || until_frozen(&theirs.0, &theirs.1)));
    assert!(!block_on(cancel_export(&services, &id)).unwrap().unwrap(), "it was not moving");
    assert_eq!(triggers(cluster.shards.at(0)), TABLES.len() * 3);
    assert_eq!(block_on(Move::of(&services, &id)).unwrap().unwrap().state, State::Frozen);
}
