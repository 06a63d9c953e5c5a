//! Databases that do not answer: whose requests that concerns, and what is true afterwards.
use std::sync::Arc;

use http::Method;
use serde_json::json;
use sidetone::Sandbox;
use sidetone::database::Memory;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::ports::statement::Statement;
use sidetone_engine::ports::{Database, Shards};
use sidetone_engine::sql;
use sidetone_tests::faults::{FaultyDatabase, StorageFault};
use sidetone_tests::process::bootstrap_key;

use crate::product::{MINUTE_MS, assistant, bind_to, get, named, send, with_bootstrap_keys};

/// Three databases and their directory, which fail on demand, with a workspace of a customer in each.
struct Service {
    directory: Arc<FaultyDatabase>,
    shards: Vec<Arc<FaultyDatabase>>,
    isolate: Sandbox,
    keys: Vec<String>,
}

impl Service {
    fn new() -> Self {
        let directory = Arc::new(FaultyDatabase::over(Memory::directory().unwrap()));
        let shards: Vec<Arc<FaultyDatabase>> =
            (0..3).map(|_| Arc::new(FaultyDatabase::over(memory()))).collect();
        let all = named(shards.iter().map(|shard| shard.clone() as Arc<dyn Database>));
        let isolate = with_bootstrap_keys(Shards { directory: directory.clone(), all });
        // Each goes to the emptiest database, and the first two have one already.
        let mut keys: Vec<String> =
            (0..4).map(|n| isolate.create_workspace(&format!("customer {n}"))).collect();
        keys.rotate_left(1);
        keys.truncate(3);
        for (shard, key) in shards.iter().zip(&keys) {
            let hash = crate::cluster::hash(key);
            assert_eq!(
                count(&**shard, sql!("SELECT COUNT(*) AS n FROM api_keys WHERE hash = :hash", hash = hash)),
                1
            );
            assert_eq!(get(&isolate, key).status, 200);
        }
        Self { directory, shards, isolate, keys }
    }

    fn statuses(&self, isolate: &Sandbox) -> Vec<u16> {
        self.keys.iter().map(|key| get(isolate, key).status).collect()
    }

    fn healthz(&self) -> u16 {
        // An answer is kept for a second.
        self.isolate.advance(1_000);
        let request = http::Request::builder().uri("/healthz").body(bytes::Bytes::new()).unwrap();
        self.isolate.send(request).status
    }
}

fn count(database: &dyn Database, statement: Statement) -> i64 {
    block_on(database.read(vec![statement])).unwrap()[0].first().unwrap().integer("n").unwrap()
}

#[test]
fn a_database_that_is_away_takes_only_its_own_workspaces_along() {
    let service = Service::new();
    assert_eq!(service.healthz(), 200);
    service.shards[1].set_disconnected(true);
    assert_eq!(service.statuses(&service.isolate), [200, 503, 200]);
    let other = service.isolate.another_process();
    assert_eq!(service.statuses(&other), [200, 503, 200], "the directory knows the others");
    assert_eq!(get(&other, &bootstrap_key(0)).status, 503, "it may be there");
    assert_eq!(service.healthz(), 503);
    service.shards[1].set_disconnected(false);
    assert_eq!(service.statuses(&service.isolate), [200, 200, 200]);
    assert_eq!(get(&other, &bootstrap_key(0)).status, 200);
    assert_eq!(service.healthz(), 200);
}

#[test]
fn without_the_directory_the_keys_that_are_remembered_go_on() {
    let service = Service::new();
    service.directory.set_disconnected(true);
    assert_eq!(service.statuses(&service.isolate), [200, 200, 200]);
    let made = send(&service.isolate, &service.keys[0], Method::POST, "/keys", Some(json!({"name": "new"})));
    assert_eq!(made.status, 201, "its first request will search for it");
    assert_eq!(service.statuses(&service.isolate.another_process()), [503, 503, 503]);
    assert_eq!(service.healthz(), 503);
    service.directory.set_disconnected(false);
    assert_eq!(get(&service.isolate.another_process(), made["key"].as_str().unwrap()).status, 200);
}

#[test]
fn a_workspace_that_nobody_told_the_directory_of_blocks_no_number() {
    const NUMBER: &str = "+14155550123";
    let service = Service::new();
    let (one, other) = (&service.keys[0], &service.keys[1]);
    let [of_one, of_other] = [one, other].map(|key| assistant(&service.isolate, key));
    // As if a person had made it in the dashboard.
    for forget in [sql!("DELETE FROM keys"), sql!("DELETE FROM workspaces")] {
        block_on(service.directory.write(vec![forget])).unwrap();
    }
    service.shards[0].fail_write(1, StorageFault::Before);
    assert_eq!(bind_to(&service.isolate, one, &of_one, NUMBER), 503, "between its claim and its binding");
    assert_eq!(count(&*service.directory, sql!("SELECT COUNT(*) AS n FROM numbers")), 1);
    assert_eq!(bind_to(&service.isolate, other, &of_other, NUMBER), 409, "it may still be about to");
    service.isolate.advance(MINUTE_MS);
    assert_eq!(bind_to(&service.isolate, other, &of_other, NUMBER), 200, "it has not");
}

#[test]
fn a_binding_whose_response_was_lost_keeps_its_number() {
    const NUMBER: &str = "+14155550123";
    let service = Service::new();
    let (one, other) = (&service.keys[0], &service.keys[1]);
    let [of_one, of_other] = [one, other].map(|key| assistant(&service.isolate, key));
    service.shards[0].fail_write(1, StorageFault::After);
    assert_eq!(bind_to(&service.isolate, one, &of_one, NUMBER), 503);
    service.isolate.advance(MINUTE_MS);
    assert_eq!(bind_to(&service.isolate, other, &of_other, NUMBER), 409);
    assert_eq!(bind_to(&service.isolate, one, &of_one, NUMBER), 200);
}
