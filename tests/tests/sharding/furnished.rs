//! A workspace with something of everything, and everything that can be read of one.
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Effects;
use sidetone_engine::sql;
use sidetone_engine::storage::spending;
use sidetone_tests::example::STARTED_AT_MS;
use sidetone_tests::{Call, World};

use crate::cluster::Cluster;

/// The interruptions are independent of each other, so that every core tests some.
/// A workspace with rows in every table: an example of each operation, and queued runs.
pub fn furnished(cluster: &Cluster, shard: usize) -> (World, String) {
    let (tenant, id) = cluster.workspace(shard);
    cluster.shards.pick(shard);
    for operation in OPERATIONS.iter().filter(|operation| operation.effects != Effects::Delete) {
        let call = Call::valid(&tenant, operation);
        let reply = if operation.takes_idempotency_key() {
            tenant.post_once(call.uri(), operation.id, Value::Object(call.body.clone().unwrap_or_default()))
        } else {
            call.rest(&tenant)
        };
        assert_eq!(reply.status, operation.success.status(), "{}: {reply:?}", operation.id);
    }
    interrupted_conversation(&tenant);
    // The rows of a run with a slow model.
    let mut rows = vec![sql!("INSERT INTO conversation_journal (workspace_id, conversation_id, place, entry)
         SELECT workspace_id, id, 0, '{}' FROM runs WHERE workspace_id = :workspace_id AND status = 'completed'", workspace_id = &id)];
    rows.push(sql!(
        "INSERT INTO spending_reservations (workspace_id, call_id, microusd, models_microusd)
         SELECT workspace_id, call_id, 5, 5 FROM live_calls WHERE workspace_id = :workspace_id",
        workspace_id = &id
    ));
    // The times of a spoken turn.
    rows.push(sql!(
        "INSERT INTO live_call_turns (workspace_id, call_id, place, content, change)
         SELECT workspace_id, call_id, 0, '{}', 1 FROM live_calls WHERE workspace_id = :workspace_id",
        workspace_id = &id
    ));
    // As after a deleted call.
    rows.push(sql!(
        "INSERT INTO search_erasures (workspace_id, merging) VALUES (:workspace_id, 0)",
        workspace_id = &id
    ));
    rows.push(sql!(
        "INSERT INTO archives_to_remove (call_id, workspace_id, due_at) VALUES ('call_' || substr(:workspace_id, 4), :workspace_id, :due)",
        workspace_id = &id,
        due = STARTED_AT_MS * 2
    ));
    // As of a workspace that is locked.
    rows.push(sql!(
        "INSERT INTO jobs_away (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
         SELECT workspace_id, 'job_' || substr(id, 5), 'simulation_run', id, 0, 0, created_at FROM runs
         WHERE workspace_id = :workspace_id LIMIT 1",
        workspace_id = &id
    ));
    rows.extend(spending::add(&WorkspaceId::from_stored(&*id), STARTED_AT_MS, 5));
    tenant.write(rows);
    // Some examples have executed jobs, so this adds queued runs.
    tenant.run();
    (tenant, id)
}

/// The bodies of all reads: each list, and each resource in it.
pub fn everything(tenant: &World) -> BTreeMap<String, Bytes> {
    let read = |path: &str| tenant.get(path).ok();
    let mut bodies = BTreeMap::new();
    for operation in OPERATIONS.iter().filter(|operation| operation.effects == Effects::Read) {
        let Some((collection, _)) = operation.path.split_once("/{") else {
            bodies.insert(operation.path.to_owned(), read(operation.path).body);
            continue;
        };
        let before = bodies.len();
        let names = match collection {
            // Nothing lists them but what ran with them.
            "/snapshots" => of_runs("snapshot", &read("/simulations/runs").json["runs"]),
            "/simulations/batches" => of_runs("batch_id", &read("/simulations/runs").json["runs"]),
            _ => ids(&read(collection).json),
        };
        for name in names {
            let path =
                operation.path.replace("{id}", &name).replace("{hash}", &name).replace("{number}", &name);
            let reply = tenant.get(&path);
            // Not every call has a recording.
            if reply.status == 404 && operation.path.starts_with("/calls/{id}/") {
                continue;
            }
            bodies.insert(path, reply.ok().body);
        }
        assert!(bodies.len() > before, "{}: no resource to read", operation.id);
    }
    // The call log with its statistics, filters, sortings and text index.
    let calls = ids(&read("/calls").json);
    let searches = calls.iter().map(|id| format!("search={id}"));
    let others =
        ["search=saturday", "search=%2B14155550123", "source=simulation", "outcome=completed&sort=cost"];
    for query in searches.chain(others.map(str::to_owned)) {
        let found = read(&format!("/calls?{query}"));
        assert!(!ids(&found.json).is_empty(), "{query} finds nothing");
        bodies.insert(query, found.body);
    }
    bodies
}

/// The ids of a list or a page of one.
fn ids(list: &Value) -> Vec<String> {
    let pages = || ["runs", "calls"].iter().find_map(|name| list[*name].as_array());
    let items = list.as_array().or_else(pages).expect("a list");
    let id = |item: &Value| item["id"].as_str().or(item["number"].as_str()).unwrap().to_owned();
    items.iter().map(id).collect()
}

/// What runs have in a field, of those that have it.
fn of_runs(field: &str, runs: &Value) -> Vec<String> {
    runs.as_array().unwrap().iter().filter_map(|run| run[field].as_str()).map(str::to_owned).collect()
}

/// Starts a live conversation and kills its process.
fn interrupted_conversation(tenant: &World) {
    let mut client = tenant.start_conversation(&tenant.assistant().id);
    client.expect("call_started");
    client.say("When do you open on Saturday?");
    client.hear();
    tenant.sandbox().unwrap().kill_conversations();
}
