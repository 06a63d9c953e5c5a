//! Moving a workspace while requests arrive.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Effects;
use sidetone_engine::sql;
use sidetone_engine::storage::spending;
use sidetone_tests::example::STARTED_AT_MS;
use sidetone_tests::{Call, World};

use crate::cluster::{Cluster, Directory, Isolate, Place, Shards, hash};
use crate::mover::{Mover, Step};
use crate::schema::{ask, texts};

/// The interruptions are independent of each other, so that every core tests some.
#[test]
fn reads_are_identical_wherever_the_mover_is_interrupted() {
    let (next, steps) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let cut = next.fetch_add(1, Ordering::Relaxed);
                    if cut > steps.load(Ordering::Relaxed) {
                        return;
                    }
                    let taken = reads_are_identical_after(cut);
                    if taken < cut {
                        steps.fetch_min(taken, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let steps = steps.into_inner();
    println!(
        "{} reads, interrupted after each of {steps} steps",
        OPERATIONS.iter().filter(|o| o.effects == Effects::Read).count()
    );
    assert!(steps > 20, "{steps}: too few steps were tested");
}

/// Interrupts a move after `cut` steps. The number of steps that were taken: fewer where the move was complete before.
fn reads_are_identical_after(cut: usize) -> usize {
    let cluster = Cluster::new(2);
    let (neighbour, _) = furnished(&cluster, 0);
    let (tenant, id) = furnished(&cluster, 0);
    let (before, beside) = (everything(&cluster, &tenant), everything(&cluster, &neighbour));
    let mut mover = Mover::new(&cluster, &id, 1);
    for (table, rows) in mover.rows(0) {
        assert!(rows > 0, "the move of {table} is not tested: let `furnished` create a row");
    }
    let taken = (0..cut).take_while(|_| mover.step()).count();
    drop(mover);
    let mut mover = Mover::new(&cluster, &id, 1);
    mover.finish();
    assert_eq!(cluster.directory.lock().unwrap().places[&id], Place::At(1));
    assert_eq!(everything(&cluster, &tenant), before, "interrupted after {taken} steps");
    assert_eq!(everything(&cluster, &neighbour), beside, "the other workspace is unchanged");
    for (table, rows) in mover.rows(0) {
        assert!(
            rows == 0 || ["workspaces", "api_keys"].contains(&table.as_str()),
            "rows of {table} remain at the source"
        );
    }
    // Queued runs complete in the new place.
    assert!(cluster.run_jobs() > 0);
    taken
}

#[test]
fn requests_during_a_move_are_applied_once_or_can_be_retried() {
    let cluster = Cluster::new(3);
    let (tenant, id) = furnished(&cluster, 0);
    let (at_source, _) = cluster.workspace(0);
    let (at_target, _) = cluster.workspace(1);
    let isolates = [Isolate::default(), Isolate::default(), Isolate::default()];
    let create = |isolate: &Isolate, tenant: &World, name: &str| {
        let body = json!({"name": name, "instructions": "Be kind."});
        let reply =
            cluster.send(isolate, tenant, |world| world.post_once("/assistants", name, body.clone()))?;
        Some(reply.created()["id"].as_str().unwrap().to_owned())
    };
    let (mut made, mut refused): (BTreeMap<String, String>, Vec<String>) = Default::default();
    let (mut n, mut beside) = (0, 0);
    // To a second shard, a third one, and back: the isolates' caches are outdated each time.
    for to in [1, 2, 0] {
        let mut mover = Mover::new(&cluster, &id, to);
        loop {
            for isolate in &isolates {
                let name = format!("request {n}");
                n += 1;
                match create(isolate, &tenant, &name) {
                    Some(id) => drop(made.insert(name, id)),
                    None => refused.push(name),
                }
                for neighbour in [&at_source, &at_target] {
                    beside += 1;
                    create(isolate, neighbour, &format!("beside {beside}"))
                        .expect("other workspaces are not affected");
                }
            }
            cluster.run_jobs();
            if !mover.step() {
                break;
            }
        }
        assert_eq!(cluster.directory.lock().unwrap().places[&id], Place::At(to));
    }
    let acknowledged = made.clone();
    for name in refused.iter().chain(acknowledged.keys()) {
        let id = create(&isolates[0], &tenant, name).expect("the move is complete");
        let known = made.entry(name.clone()).or_insert_with(|| id.clone());
        assert_eq!(*known, id, "{name}: a retry returns the same resource");
    }
    let (mut list, mut path) = (Vec::new(), Some("/assistants?limit=1000".to_owned()));
    while let Some(here) = path {
        let part = cluster.send(&isolates[0], &tenant, |world| world.get(&here)).unwrap().ok();
        path = part.next();
        list.extend(part.json.as_array().unwrap().clone());
    }
    let listed: Vec<(&str, &str)> = list
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["id"].as_str().unwrap()))
        .filter(|(name, _)| name.starts_with("request "))
        .collect();
    assert_eq!(listed.len(), n, "each once");
    assert!(listed.iter().all(|(name, id)| made[*name] == **id));
    let runs = cluster
        .send(&isolates[0], &tenant, |world| world.get("/simulations/runs?limit=1000"))
        .unwrap()
        .ok()
        .json;
    let runs = runs["runs"].as_array().unwrap();
    assert!(!runs.is_empty() && runs.iter().all(|run| run["status"] == "completed"), "{runs:?}");
    let asked = cluster.directory.lock().unwrap().asked;
    println!(
        "{n} requests to the moving workspace: {} acknowledged, {} told to come again; {beside} beside it, all acknowledged; \
         the directory asked every shard {asked} times",
        acknowledged.len(),
        refused.len()
    );
    assert!(!refused.is_empty() && !acknowledged.is_empty());
}

#[test]
fn a_write_that_read_before_the_freeze_fails_after_it() {
    let cluster = Cluster::new(2);
    let (tenant, id) = cluster.workspace(0);
    let isolate = Isolate::default();
    cluster.shards.pick(0);
    let path = format!("/assistants/{}", tenant.assistant().id);
    freeze_before_write(&cluster, &id, 1);
    let rename = |world: &World| world.patch(&path, json!({"name": "Reception"}));
    assert!(cluster.send(&isolate, &tenant, rename).is_none(), "expected a 503");
    Mover::new(&cluster, &id, 1).finish();
    let read = cluster.send(&isolate, &tenant, |world| world.get(&path)).unwrap().ok();
    assert_eq!((&read["name"], &read["revision"]), (&json!("Front desk"), &json!(1)));
    assert_eq!(cluster.send(&isolate, &tenant, rename).unwrap().ok()["revision"], 2);
}

#[test]
fn a_run_in_progress_at_the_freeze_ends_once_in_the_new_place() {
    let reference = {
        let world = World::over(Shards::new(1));
        world.settle(&world.run().id)
    };
    // The first write claims the run, the second stores its result.
    for nth in [1, 2] {
        let cluster = Cluster::new(2);
        let (tenant, id) = cluster.workspace(0);
        cluster.shards.pick(0);
        let path = format!("/simulations/runs/{}", tenant.run().id);
        freeze_before_write(&cluster, &id, nth);
        cluster.run_jobs();
        Mover::new(&cluster, &id, 1).finish();
        assert_eq!(cluster.run_jobs(), 1, "write {nth}");
        let run = cluster.send(&Isolate::default(), &tenant, |world| world.get(&path)).unwrap().ok().json;
        assert_eq!(run["status"], "completed", "write {nth}: {run}");
        assert_eq!(run["call"]["transcript"], reference["call"]["transcript"]);
    }
}

#[test]
fn a_live_conversation_at_the_freeze_is_settled_in_the_new_place() {
    let cluster = Cluster::new(2);
    let (tenant, id) = cluster.workspace(0);
    cluster.shards.pick(0);
    let call_id = interrupted_conversation(&tenant);
    let mut mover = Mover::new(&cluster, &id, 1);
    while mover.next != Step::Thaw {
        mover.step();
        assert_eq!(cluster.run_jobs(), 0, "{:?}: the source cannot renew the lease", mover.next);
    }
    mover.finish();
    assert!(cluster.run_jobs() > 0);
    let path = format!("/calls/{call_id}");
    let call = cluster.send(&Isolate::default(), &tenant, |world| world.get(&path)).unwrap().ok();
    assert_eq!((&call["ended_reason"], &call["fault"]), (&json!("aborted"), &json!("platform")));
    assert!(!call["transcript"].as_array().unwrap().is_empty());
}

#[test]
fn a_conversation_that_read_before_the_freeze_does_not_open_after_it() {
    let cluster = Cluster::new(2);
    let (tenant, id) = cluster.workspace(0);
    cluster.shards.pick(0);
    let token = tenant.test_token(&tenant.assistant().id);
    let url = token["websocket_url"].as_str().unwrap();
    freeze_before_write(&cluster, &id, 1);
    let refused = tenant.connect(url).map(drop).unwrap_err();
    assert_eq!(refused.status, 503, "{refused:?}");
    Mover::new(&cluster, &id, 1).finish();
    cluster.shards.pick(1);
    let mut client = tenant.connect(url).map_err(drop).expect("the token is still valid");
    client.expect("call_started");
}

#[test]
fn a_valid_key_is_found_on_any_shard_and_an_invalid_key_on_none() {
    let cluster = Cluster::new(3);
    let (tenant, id) = cluster.workspace(0);
    let isolate = Isolate::default();
    Mover::new(&cluster, &id, 2).finish();
    let made = cluster
        .send(&isolate, &tenant, |world| world.post("/keys", json!({"name": "CI"})))
        .unwrap()
        .created();
    let fresh = tenant.with_key(made["key"].as_str().unwrap());
    cluster.send(&isolate, &fresh, |world| world.get("/assistants")).unwrap().ok();
    let path = format!("/keys/{}", made["id"].as_str().unwrap());
    cluster.send(&isolate, &tenant, |world| world.delete(&path)).unwrap().empty();
    for key in [fresh.key(), ApiKey::from_bytes([9; 32]).as_str()] {
        let reply = cluster.send(&isolate, &tenant.with_key(key), |world| world.get("/assistants")).unwrap();
        reply.refused("unauthorized");
    }
}

#[test]
fn a_bootstrap_key_creates_no_second_workspace_at_the_source() {
    let key = ApiKey::from_bytes([7; 32]).as_str().to_owned();
    let shards = Shards::new(2);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_TRUSTED_PROXIES", "127.0.0.1")];
    let sandbox = Sandbox::over(shards.clone(), &settings);
    let mut address = 0;
    let mut list = || {
        address += 1;
        let request = http::Request::get("/assistants")
            .header("authorization", format!("Bearer {key}"))
            .header("x-forwarded-for", format!("10.9.0.{address}"));
        sandbox.send(request.body(Bytes::new()).unwrap()).status
    };
    assert_eq!(list(), 200);
    let id = texts(&ask(
        shards.at(0),
        "SELECT workspace_id AS text FROM api_keys WHERE hash = ?1",
        &[&hash(&key)],
    ));
    let directory: Arc<Mutex<Directory>> = Arc::default();
    directory.lock().unwrap().places.insert(id[0].clone(), Place::At(0));
    let mut mover = Mover::over(shards.clone(), directory, &id[0], 1);
    while mover.next != Step::Freeze {
        mover.step();
    }
    while mover.step() {
        assert_eq!(list(), 401, "at the source, before step {:?}", mover.next);
    }
    shards.pick(1);
    assert_eq!(list(), 200);
}

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
pub fn everything(cluster: &Cluster, tenant: &World) -> BTreeMap<String, Bytes> {
    let isolate = Isolate::default();
    let answer = |path: &str| cluster.send(&isolate, tenant, |world| world.get(path)).unwrap();
    let read = |path: &str| answer(path).ok();
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
            let reply = answer(&path);
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

/// Starts a live conversation and kills its process; returns the call's id.
fn interrupted_conversation(tenant: &World) -> String {
    let mut client = tenant.start_conversation(&tenant.assistant().id);
    let call_id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    client.say("When do you open on Saturday?");
    client.hear();
    tenant.sandbox().unwrap().kill_conversations();
    call_id
}

/// Freezes the workspace just before the `nth` write from now.
fn freeze_before_write(cluster: &Cluster, id: &str, nth: u32) {
    let mut mover = Mover::new(cluster, id, 1);
    let freeze = move || {
        while mover.next != Step::EmptyTarget {
            mover.step();
        }
    };
    cluster.shards.before_write(nth, Box::new(freeze));
}
