//! The source of a move, until it is handed over: what is under way ends, nothing else begins, and all of it can be canceled.
use std::sync::Arc;

use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::ports::Database as _;
use sidetone_engine::ports::statement::Statement;
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::moves::cancel_export::cancel_export;
use sidetone_engine::storage::moves::freeze::{Freeze, close, freeze};
use sidetone_engine::storage::moves::{Refusal, State, What};
use sidetone_engine::storage::workspace_rows::SCHEMA;
use sidetone_tests::World;
use sidetone_tests::counted::Counted;
use sidetone_tests::direct_access::disarm;

use crate::cluster::Cluster;
use crate::schema::{ask, texts};

/// A workspace, and the service behind it.
fn workspace(cluster: &Cluster) -> (World, WorkspaceId, Services) {
    let (tenant, id) = cluster.workspace(0);
    let services = tenant.direct_access();
    (tenant, WorkspaceId::from_stored(id), services)
}

/// What the workspace waits for; `None` once it is frozen.
fn waits(services: &Services, id: &WorkspaceId) -> Option<Vec<What>> {
    match block_on(freeze(services, id, false)).unwrap().unwrap() {
        Freeze::Frozen => None,
        Freeze::Waits(waits) => Some(waits.into_iter().map(|wait| wait.what).collect()),
    }
}

fn jobs_away(cluster: &Cluster, id: &WorkspaceId) -> Vec<String> {
    let question = "SELECT subject_id AS text FROM jobs_away WHERE workspace_id = ?1";
    texts(&ask(cluster.shards.at(0), question, &[id]))
}

#[test]
fn a_conversation_goes_on_to_its_end_and_a_run_waits_until_the_export_is_canceled() {
    let cluster = Cluster::new(1);
    let (tenant, id, services) = workspace(&cluster);
    let assistant = tenant.assistant();
    let run = tenant.run();
    let mut client = tenant.start_conversation(&assistant.id);
    let call_id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();

    let begun = block_on(close(&services, &id)).unwrap().unwrap();
    assert_eq!((begun.state, begun.schema.as_str()), (State::Closing, SCHEMA));
    assert!(begun.id.starts_with("exp_"), "{}", begun.id);
    assert_eq!(block_on(close(&services, &id)).unwrap().unwrap(), begun, "it is closed once");
    assert_eq!(waits(&services, &id), Some(vec![What::Conversations, What::CallsToSettle]));
    assert_eq!(jobs_away(&cluster, &id), [run.id.as_str()], "a run that has not begun waits");
    tenant
        .post(format!("/simulations/{}/runs", run["simulation_id"].as_str().unwrap()), json!({}))
        .refused("workspace_moving");
    cluster.run_jobs();
    assert_eq!(tenant.get(format!("/simulations/runs/{}", run.id)).ok()["status"], "queued");

    client.say("When do you open on Saturday?");
    client.hear();
    client.send(r#"{"type": "hang_up"}"#);
    client.rest();
    let call = tenant.settled_call(&call_id);
    assert_eq!(call["status"], "ended");
    assert_eq!(waits(&services, &id), None);
    tenant
        .patch(format!("/assistants/{}", assistant.id), json!({"name": "Meanwhile"}))
        .refused("workspace_moving");
    assert_eq!(tenant.get(format!("/calls/{call_id}")).ok()["status"], "ended");
    assert_eq!(waits(&services, &id), None, "it stays frozen");

    for _ in 0..2 {
        block_on(cancel_export(&services, &id)).unwrap().unwrap();
    }
    assert!(jobs_away(&cluster, &id).is_empty());
    assert!(
        texts(&ask(
            cluster.shards.at(0),
            "SELECT name AS text FROM sqlite_schema WHERE type = 'trigger'",
            &[]
        ))
        .is_empty()
    );
    assert_eq!(tenant.settle(&run.id)["status"], "completed");
    tenant.patch(format!("/assistants/{}", assistant.id), json!({"name": "Afterwards"})).ok();
    // And again.
    assert_ne!(block_on(close(&services, &id)).unwrap().unwrap().id, begun.id);
    assert_eq!(waits(&services, &id), None);
}

/// Whoever has many webhooks whose receivers hang would never be moved.
#[test]
fn a_receiver_that_hangs_is_waited_for_a_minute() {
    let cluster = Cluster::new(1);
    let (tenant, id, services) = workspace(&cluster);
    let webhook = tenant.webhook().id;
    let sends = || {
        tenant.write(vec![sql!(
            "INSERT INTO jobs (id, workspace_id, kind, subject_id, due_at, lease, attempts, created_at)
             VALUES ('job_1', :id, 'webhook_delivery', :webhook, :until, 'a lease', 1, 0)
             ON CONFLICT (id) DO UPDATE SET due_at = excluded.due_at",
            id = &id,
            webhook = &webhook,
            until = services.ports().clock.now_ms() + 60_000
        )]);
    };
    block_on(close(&services, &id)).unwrap().unwrap();
    for _ in 0..2 {
        sends();
        assert_eq!(waits(&services, &id), Some(vec![What::Jobs]));
        cluster.sandbox().advance(30_000);
    }
    sends();
    assert_eq!(waits(&services, &id), None);
    assert_eq!(jobs_away(&cluster, &id), [webhook.as_str()]);
    // Its events are sent again.
    block_on(cancel_export(&services, &id)).unwrap().unwrap();
    let jobs = "SELECT subject_id AS text FROM jobs WHERE workspace_id = ?1 AND lease IS NULL";
    assert_eq!(texts(&ask(cluster.shards.at(0), jobs, &[&id])), [webhook.as_str()]);
}

/// It cannot begin, so it would be claimed again whenever its lease ends.
#[test]
fn a_run_that_was_claimed_as_the_workspace_closed_is_queued_again() {
    let cluster = Cluster::new(1);
    let (tenant, id, services) = workspace(&cluster);
    let run = tenant.run();
    block_on(close(&services, &id)).unwrap().unwrap();
    tenant.write(vec![
        sql!(
            "UPDATE jobs SET lease = 'a lease', due_at = :until WHERE workspace_id = :id AND kind = 'simulation_run'",
            id = &id,
            until = services.ports().clock.now_ms() + 60_000
        ),
        sql!("UPDATE runs SET status = 'running', started_at = 1 WHERE workspace_id = :id", id = &id),
    ]);
    assert_eq!(waits(&services, &id), None);
    assert_eq!(jobs_away(&cluster, &id), [run.id.as_str()]);
    assert_eq!(tenant.get(format!("/simulations/runs/{}", run.id)).ok()["status"], "queued");
    block_on(cancel_export(&services, &id)).unwrap().unwrap();
    assert_eq!(tenant.settle(&run.id)["status"], "completed");
}

/// The batch that freezes keeps all other writes waiting: it takes no longer with everything that is stored.
#[test]
fn the_batch_that_freezes_looks_through_no_table() {
    let database = Arc::new(Counted::default());
    let world = World::over(database.clone());
    world.assistant();
    let (services, id) = (world.direct_access(), world.workspace_id());
    block_on(close(&services, &id)).unwrap().unwrap();
    database.statements_read();
    assert_eq!(block_on(freeze(&services, &id, false)).unwrap().unwrap(), Freeze::Frozen);
    let mut statements = database.written();
    assert!(statements.iter().any(|one| one.sql.starts_with("INSERT INTO jobs_away")), "it has frozen");
    // Nor does what is asked again and again until then.
    statements
        .extend(database.statements_read().into_iter().filter(|one| one.sql.contains("FROM phone_calls")));
    let mut searched = 0;
    for statement in statements {
        let plan = Statement {
            sql: format!("EXPLAIN QUERY PLAN {}", statement.sql).into(),
            params: statement.params.clone(),
        };
        let rows = block_on(database.read(vec![plan])).unwrap();
        for row in rows[0].iter() {
            let step = row.text("detail").unwrap();
            let is_small =
                ["SCAN CONSTANT ROW", "SCAN sqlite_schema", "SCAN sqlite_master"].contains(&step.as_str());
            assert!(is_small || !step.starts_with("SCAN"), "{step}: {}", statement.sql);
            searched += usize::from(step.starts_with("SEARCH"));
        }
    }
    assert!(searched > 8, "{searched}");
}

/// A process dies between two steps; whoever goes on asks for the same again.
#[test]
fn a_step_that_was_begun_is_completed_by_its_repetition() {
    let cluster = Cluster::new(1);
    let (tenant, id, services) = workspace(&cluster);
    block_on(close(&services, &id)).unwrap().unwrap();
    block_on(disarm(&services, &id, &["calls"]));
    assert_eq!(waits(&services, &id), None, "triggers that are missing are made first");
    tenant
        .post("/assistants", json!({"name": "New", "instructions": "Be kind."}))
        .refused("workspace_moving");
    let canceled = sql!("UPDATE moves SET state = 'canceled', lock = 0 WHERE workspace_id = :id", id = &id);
    tenant.write(vec![canceled]);
    assert_eq!(block_on(close(&services, &id)).unwrap().unwrap_err(), Refusal::Canceled);
    block_on(cancel_export(&services, &id)).unwrap().unwrap();
    block_on(close(&services, &id)).unwrap().unwrap();
}

#[test]
fn what_cannot_be_is_refused() {
    let cluster = Cluster::new(1);
    let (tenant, id, services) = workspace(&cluster);
    let unknown = WorkspaceId::from_stored("ws_01kas3v8hq4x7m2n5p6r9t0w1z");
    assert_eq!(block_on(close(&services, &unknown)).unwrap().unwrap_err(), Refusal::NoWorkspace);
    assert_eq!(block_on(freeze(&services, &id, false)).unwrap().unwrap_err(), Refusal::NotClosing);
    block_on(cancel_export(&services, &id)).unwrap().unwrap();
    // So many at once.
    for _ in 0..4 {
        let (_, other, _) = workspace(&cluster);
        block_on(close(&services, &other)).unwrap().unwrap();
    }
    assert_eq!(block_on(close(&services, &id)).unwrap().unwrap_err(), Refusal::TooManyMoves);
    tenant.write(vec![sql!("DELETE FROM moves")]);
    block_on(close(&services, &id)).unwrap().unwrap();
    for (state, refusal) in [
        ("released", Refusal::Moved),
        ("erasing", Refusal::Moved),
        ("opening", Refusal::Arriving),
        ("canceling", Refusal::Arriving),
        ("arriving", Refusal::Arriving),
    ] {
        tenant.write(vec![sql!("UPDATE moves SET state = :state, lock = 2", state = state)]);
        assert_eq!(block_on(cancel_export(&services, &id)).unwrap().unwrap_err(), refusal, "{state}");
        assert_eq!(
            block_on(freeze(&services, &id, false)).unwrap().unwrap_err(),
            Refusal::NotClosing,
            "{state}"
        );
    }
    assert_eq!(block_on(close(&services, &id)).unwrap().unwrap_err(), Refusal::Arriving);
}
