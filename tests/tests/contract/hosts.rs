//! The interface between engine and host: requests from head to response, and jobs.
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use sidetone::Sandbox;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::limits::BODY_BYTES_MAX;
use sidetone_engine::engine::{
    Admission, BodyFailure, BodyTooLarge, FinalResponse, PendingRequest, PreparedResponse, Room,
};
use sidetone_engine::jobs::HintOf;
use sidetone_engine::ports::JobQueue;
use sidetone_engine::sql;
use sidetone_tests::World;
use sidetone_tests::host::shards;

fn begin(sandbox: &Sandbox, request: http::request::Builder) -> Admission<()> {
    let (head, ()) = request.body(()).unwrap().into_parts();
    sandbox.engine().begin(head, None, Some(()))
}

fn with_key(sandbox: &Sandbox) -> PendingRequest {
    let key = format!("Bearer {}", sandbox.key());
    match begin(sandbox, http::Request::post("/assistants").header("authorization", key)) {
        Admission::ReadBody(pending) => pending,
        _ => panic!("a body is expected"),
    }
}

/// Status and code; checks that the envelope, the headers and the log record agree.
fn code_of(response: FinalResponse) -> (u16, String) {
    let (response, record) = response.into_parts();
    let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(response.headers()["x-request-id"], record.request_id());
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(body["error"]["request_id"], record.request_id());
    assert_eq!(response.status(), record.status());
    (record.status().as_u16(), body["error"]["code"].as_str().unwrap().to_owned())
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn a_body_is_rejected_for_its_announced_size_its_real_size_or_a_failure() {
    let sandbox = Sandbox::new();
    let announced = http::Request::post("/nowhere").header("content-length", BODY_BYTES_MAX + 1);
    let Admission::Respond(response) = begin(&sandbox, announced) else { panic!("the body is read") };
    assert_eq!(code_of(response), (413, "body_too_large".to_owned()));

    let mut pending = with_key(&sandbox);
    assert_eq!(pending.receive(Bytes::from(vec![b' '; BODY_BYTES_MAX])), Ok(()));
    assert_eq!(pending.receive(Bytes::from_static(b" ")), Err(BodyTooLarge));
    assert_eq!(code_of(pending.fail(BodyFailure::TooLarge)), (413, "body_too_large".to_owned()));
    for (failure, expected) in [
        (BodyFailure::Late, (408, "request_timeout")),
        (BodyFailure::Malformed, (400, "invalid_json")),
        (BodyFailure::NoRoom, (503, "unavailable")),
    ] {
        assert_eq!(code_of(with_key(&sandbox).fail(failure)), (expected.0, expected.1.to_owned()));
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn a_body_is_joined_from_pieces_and_dropped_without_a_key() {
    let sandbox = Sandbox::new();
    let body = json!({"name": "A", "instructions": "Help."}).to_string();
    let request = http::Request::post("/assistants")
        .header("authorization", format!("Bearer {}", sandbox.key()))
        .header("content-type", "application/json");
    let Admission::ReadBody(mut pending) = begin(&sandbox, request) else { panic!("a body is expected") };
    assert!(!pending.only_reads());
    body.as_bytes().chunks(7).for_each(|piece| pending.receive(Bytes::copy_from_slice(piece)).unwrap());
    let PreparedResponse::Complete(response) = block_on(pending.answer()) else { panic!("a blob") };
    assert_eq!(response.into_parts().0.status(), 201);
    let Admission::ReadBody(mut pending) = begin(&sandbox, http::Request::post("/assistants")) else {
        panic!("rejected before the body")
    };
    for _ in 0..16 {
        assert_eq!(
            block_on(pending.room_for(BODY_BYTES_MAX / 16)),
            Room::Taken,
            "no part of the body is kept"
        );
        pending.receive(Bytes::from(vec![b' '; BODY_BYTES_MAX / 16])).unwrap();
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn memory_for_bodies_is_taken_as_they_arrive_and_by_address_without_a_valid_key() {
    let sandbox = Sandbox::new();
    let peer = Some(std::net::IpAddr::from([192, 0, 2, 1]));
    let open = |key: &str| {
        let head = http::Request::post("/assistants").header("authorization", format!("Bearer {key}"));
        let (head, ()) = head.header("content-length", BODY_BYTES_MAX).body(()).unwrap().into_parts();
        match sandbox.engine().begin(head, peer, None::<()>) {
            Admission::ReadBody(pending) => pending,
            _ => panic!("a body is expected"),
        }
    };
    // They look like keys: only the database knows that they are none.
    let wrong = |n| ApiKey::from_bytes([n; 32]).as_str().to_owned();
    let mut announced: Vec<PendingRequest> = (0..200).map(|n| open(&wrong(n))).collect();
    let first = announced.iter_mut().map(|pending| block_on(pending.room_for(1)));
    assert!(first.into_iter().all(|room| room == Room::Taken), "what is announced costs nothing");
    let whole: Vec<Room> =
        announced.iter_mut().map(|pending| block_on(pending.room_for(BODY_BYTES_MAX))).collect();
    let taken = whole.iter().filter(|room| **room == Room::Taken).count();
    assert!((1..10).contains(&taken), "{taken} bodies of one address");
    assert_eq!(
        block_on(open(sandbox.key()).room_for(BODY_BYTES_MAX)),
        Room::Taken,
        "a valid key has its own"
    );
    assert!(open(sandbox.key()).next_piece_within_ms() < PendingRequest::DEADLINE_MS);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn a_carrier_without_an_account_is_refused_by_the_head() {
    let sandbox = Sandbox::new();
    for (path, status) in [
        ("/carriers/twilio/voice", 200),
        ("/carriers/telnyx/voice", 409),
        ("/carriers/plivo/status", 409),
        ("/carriers/nobody/status", 404),
    ] {
        let Admission::Respond(response) = begin(&sandbox, http::Request::post(path)) else {
            panic!("{path}: the body is read")
        };
        assert_eq!(response.into_parts().0.status(), status, "{path}");
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn a_broken_request_is_logged_without_the_token() {
    let sandbox = Sandbox::new();
    let socket =
        http::Request::get("/carriers/telnyx/media/a-token?b=another").header("upgrade", "websocket");
    let Admission::Socket(pending, ()) = begin(&sandbox, socket) else { panic!("no socket") };
    let trace = pending.trace();
    let (response, record) = trace.broken("a private detail".to_owned()).into_parts();
    assert_eq!((response.status().as_u16(), &*record.path()), (500, "/carriers/telnyx/media/…"));
    let line = record.to_string();
    assert!(line.contains("a private detail") && line.contains(record.request_id()), "{line}");
    assert!(!line.contains("token") && !line.contains("another"), "{line}");
    let body = std::str::from_utf8(response.body()).unwrap();
    assert!(!body.contains("private"), "{body}");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn a_misconfigured_service_sends_regular_responses() {
    let ports = Sandbox::new().services().ports().clone();
    let head = (http::Method::GET, "/assistants".parse().unwrap());
    let response = FinalResponse::unconfigured(
        head,
        "SIDETONE_SECRET",
        "detail".to_owned(),
        &*ports.clock,
        &*ports.random,
    );
    assert_eq!(code_of(response), (503, "unavailable".to_owned()));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_worker_reports_due_jobs_and_the_wait_time() {
    // The workers of a host that does not end are of one database.
    let world = World::over(Arc::new(memory()));
    let sandbox = world.sandbox().unwrap();
    let started = block_on(sandbox.engine().start("host")).unwrap();
    assert_eq!(started.first_key, None, "a workspace already exists");
    let queues: Vec<JobQueue> = started.workers.iter().map(|worker| worker.queue()).collect();
    assert_eq!(queues, JobQueue::ALL);
    let mut worker = started.workers.into_iter().find(|worker| worker.queue() == JobQueue::Runs).unwrap();
    let idle = block_on(worker.step(0));
    assert!(idle.jobs.is_empty() && idle.until_running.is_none() && idle.wait_ms >= 1_000);
    let simulation = world.simulation();
    world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
    let mut step = block_on(worker.step(0));
    assert_eq!((step.jobs.len(), step.incidents.len()), (1, 0));
    // A failed job is due again after a pause.
    let broken = block_on(step.jobs.remove(0).broke("a test"));
    assert!(broken.contains("it broke: a test"), "{broken}");
    assert_eq!(block_on(worker.step(0)).jobs.len(), 0);
    sandbox.advance(60_000);
    let step = block_on(worker.step(0));
    assert_eq!(step.jobs.iter().map(|job| block_on(job.run())).collect::<Vec<_>>(), [None]);
    assert_eq!(world.get("/simulations/runs?status=completed").ok()["pagination"]["total"], 1);
    assert_eq!(block_on(worker.step(1_000)).until_running, Some(36), "all slots are taken");
    assert_eq!(block_on(worker.stop()), None);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn an_invocation_runs_the_queues_named_by_its_hints() {
    let world = World::with_manual_clock();
    let engine = world.sandbox().unwrap().engine();
    let simulation = world.simulation();
    // Of several databases, the workspace is in the second one.
    let shard = (shards() > 1).then_some("DB_2");
    let parts = |hints: &[Option<&str>]| {
        world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
        let hints = hints.iter().map(|hint| hint.map(|queue| HintOf { queue, shard }));
        let mut invocation = engine.jobs_of_hints("edge", hints);
        let mut parts = 0;
        while let Some(report) = block_on(invocation.next()) {
            assert!(report.incidents.is_empty() && !report.retry_hints, "{report:?}");
            parts += 1;
        }
        let done = world.get("/simulations/runs?status=completed").ok()["pagination"]["total"].clone();
        (parts, done.as_i64().unwrap())
    };
    assert_eq!(parts(&[Some("deliveries")]), (1, 0));
    assert_eq!(parts(&[Some("calls")]), (1, 0));
    // The name in hints of earlier versions, for both.
    assert_eq!(parts(&[Some("conversations"), Some("conversations")]), (2, 3));
    assert_eq!(parts(&[Some("runs"), Some("runs")]), (1, 4));
    assert_eq!(parts(&[Some("deliveries"), Some("something newer")]), (3, 5));
    // Such a hint names no database: of several, the timer looks at the others.
    assert_eq!(parts(&[None]), (3, if shards() > 1 { 5 } else { 6 }));
    world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
    let mut scheduled = engine.scheduled_jobs("edge");
    while let Some(report) = block_on(scheduled.next()) {
        assert!(report.incidents.is_empty(), "{report:?}");
    }
    assert_eq!(world.get("/simulations/runs?status=completed").ok()["pagination"]["total"], 7);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the Sandbox")]
fn sqlite_takes_no_longer_texts_than_d1() {
    let sandbox = Sandbox::new();
    let database = &sandbox.services().ports().database;
    let bytes_of = |bytes: usize| {
        let rows =
            block_on(database.read(vec![sql!("SELECT length(:text) AS bytes", text = "x".repeat(bytes))]));
        rows.map(|rows| rows[0].first().unwrap().integer("bytes").unwrap())
    };
    assert_eq!(bytes_of(2_000_000), Ok(2_000_000));
    assert!(bytes_of(2_000_001).is_err());
}
