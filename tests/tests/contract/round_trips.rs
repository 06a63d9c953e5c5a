//! Round trips to storage, which dominate response times at the edge. Always on the Sandbox, over a database that counts.
//! `cargo test -p sidetone-tests --test contract round_trips -- --nocapture` prints them.
use std::sync::Arc;

use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::{CANCELED_AT_ONCE, DETACHED_AT_ONCE};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::{Effects, Operation};
use sidetone_engine::ports::statement::Statement;
use sidetone_engine::ports::{Database, HttpReply};
use sidetone_engine::sql;
use sidetone_tests::counted::{Counted, Trips};
use sidetone_tests::fakes::carrier::telnyx::TelnyxWire;
use sidetone_tests::fakes::carrier::vonage::VonageWire;
use sidetone_tests::fakes::carrier::{CallEvent, CallbackRequest, EndKind, PhoneCall, Public, Wire};
use sidetone_tests::{Call, World};

/// Batches of a read, including the look-up of the key.
const READ_TRIPS_MAX: usize = 1;
/// Batches of a write: one read, one change.
const WRITE_TRIPS_MAX: usize = 2;
/// Batches of a request to a carrier or a tool: read, store the intent before asking, store the answer.
const INTENT_TRIPS_MAX: usize = 3;

#[test]
fn every_operation_stays_within_its_round_trips() {
    let mut beyond = Vec::new();
    println!("{:<34} {:>12} {:>12}   most", "operation", "REST", "MCP");
    for operation in OPERATIONS {
        let rest = trips(|world| {
            let call = Call::valid(world, operation);
            move |world: &World| {
                assert_eq!(call.rest(world).status, operation.success.status(), "{}", operation.id);
            }
        });
        let tool = trips(|world| {
            let call = Call::valid(world, operation);
            move |world: &World| {
                if operation.is_tool() {
                    call.tool(world).ok();
                }
            }
        });
        let most = most(operation);
        println!("{:<34} {:>12} {:>12}   {most}", operation.id, rest.shown(), tool.shown());
        if rest.total() > most
            || tool.total() > most
            || (operation.effects == Effects::Read && rest.writes > 0)
        {
            beyond.push(format!(
                "{}: REST {}, MCP {}, most {most}",
                operation.id,
                rest.shown(),
                tool.shown()
            ));
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

#[test]
fn the_use_of_a_key_is_noted_with_one_write_an_hour() {
    let database = Arc::new(Counted::default());
    let world = World::over_with(database.clone(), &[]);
    database.take();
    world.get("/assistants").ok();
    assert_eq!(database.take(), Trips { reads: 1, writes: 1 });
    world.get("/assistants").ok();
    assert_eq!(database.take(), Trips { reads: 1, writes: 0 });
}

#[test]
fn an_idempotency_key_adds_no_round_trip_and_a_replay_is_one_read() {
    for operation in OPERATIONS.iter().filter(|operation| operation.takes_idempotency_key()) {
        let (world, database) = counting();
        let call = Call::valid(&world, operation);
        let once = || {
            let reply = world.post_once(call.uri(), "once", Value::Object(call.body.clone().unwrap()));
            assert_eq!(reply.status, operation.success.status(), "{reply:?}");
        };
        database.take();
        once();
        assert!(database.take().total() <= most(operation), "{}", operation.id);
        once();
        assert_eq!(database.take(), Trips { reads: 1, writes: 0 }, "{}", operation.id);
    }
}

/// Each batch is short, so that others write between them.
#[test]
fn what_is_attached_to_many_is_deleted_in_batches() {
    let (world, database) = counting();
    let detached_at_once = usize::try_from(DETACHED_AT_ONCE).unwrap();
    let assistants: Vec<String> = (0..=2 * detached_at_once).map(|_| world.assistant().id).collect();
    let (document, tool) = (world.document(5).id, world.a_tool().id);
    for id in &assistants {
        world.put(format!("/assistants/{id}/knowledge"), json!({"knowledge_ids": [document]})).ok();
        world.put(format!("/assistants/{id}/tools"), json!({"tool_ids": [tool]})).ok();
    }
    for path in [format!("/knowledge/{document}"), format!("/tools/{tool}")] {
        database.take();
        world.delete(&path).empty();
        assert_eq!(database.take(), Trips { reads: 0, writes: 3 }, "{path}");
        world.get(&path).refused("not_found");
    }
    for id in &assistants {
        let after = world.get(format!("/assistants/{id}")).ok();
        assert_eq!((&after["knowledge_ids"], &after["tool_ids"]), (&json!([]), &json!([])));
        assert_eq!(after["revision"], 5);
    }
    let log = world.get("/audit?limit=3").ok();
    let operations: Vec<&Value> =
        log.json.as_array().unwrap().iter().map(|entry| &entry["operation"]).collect();
    assert_eq!(operations, ["delete_tool", "delete_knowledge_document", "set_assistant_tools"]);
}

#[test]
fn a_webhook_with_many_deliveries_is_deleted_in_batches() {
    let (world, database) = counting();
    let webhook = world.create("/webhooks", json!({"url": "https://example.com/hook", "events": ["*"]})).id;
    let many = sql!(
        "INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, type, body_bytes, status, attempts, failures, due_at, created_at)
         SELECT 'dlv_' || value, workspace_id, webhooks.id, 'evt_1', 'call.ended', 1, 'pending', 0, 0, 1, 1 FROM webhooks, json_each(:numbers)",
        numbers = json!(Vec::from_iter(0..=2 * CANCELED_AT_ONCE)).to_string()
    );
    block_on(database.write(vec![many])).unwrap();
    database.take();
    world.delete(format!("/webhooks/{webhook}")).empty();
    assert_eq!(database.take(), Trips { reads: 0, writes: 3 });
    let left =
        sql!("SELECT COUNT(*) AS count FROM deliveries WHERE status = 'pending' OR due_at IS NOT NULL");
    let left = block_on(database.read(vec![left])).unwrap();
    assert_eq!(left[0].first().unwrap().integer("count").unwrap(), 0);
    assert_eq!(world.get("/audit?limit=1").ok().json[0]["operation"], "delete_webhook");
}

#[test]
fn a_rejected_request_is_one_read() {
    for operation in OPERATIONS {
        let (world, database) = counting();
        let call = Call::valid(&world, operation).with_query("bogus", json!("1"));
        database.take();
        call.rest(&world).refused("validation_failed");
        let mut reads = 1;
        if operation.is_tool() {
            call.tool(&world).refused("validation_failed");
            reads = 2;
        }
        assert_eq!(database.take(), Trips { reads, writes: 0 }, "{}: REST and MCP together", operation.id);
    }
}

/// Telnyx signs the whole request. Vonage does not, so each of its callbacks writes which request its token came with
/// before anything else.
#[test]
fn a_carriers_callback_stays_within_its_round_trips() {
    const NUMBER: &str = "+14155550100";
    const NOW_S: i64 = 1_767_225_600;
    let wires: [(Arc<dyn Wire>, usize); 2] =
        [(Arc::new(TelnyxWire), 0), (Arc::new(VonageWire::default()), 1)];
    for (wire, own_writes) in wires {
        let provider = wire.provider();
        let settings = wire.settings("http://carrier.example");
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (world, database) = counting_with(&settings);
        world
            .sandbox()
            .unwrap()
            .answer_http_with(|_| Ok(HttpReply { status: 200, headers: Vec::new(), body: "{}".into() }));
        let binding = json!({"assistant_id": world.assistant().id, "provider": provider});
        world.put(format!("/numbers/{NUMBER}"), binding).ok();
        let base_url = "http://sandbox.example";
        let call = PhoneCall {
            carrier_call_id: "63f61863-4a51-4f6b-86e1-46edebcf9356".to_owned(),
            other_id: "0ccc7b54-4df3-4bca-a65a-3da1ecc777f0".to_owned(),
            from: "+14155550123".to_owned(),
            to: NUMBER.to_owned(),
            outbound: false,
            status_url: format!("{base_url}/carriers/{provider}/status"),
            voice_url: format!("{base_url}/carriers/{provider}/voice"),
            format: String::new(),
            detection: None,
        };
        let public = Public { base_url: base_url.to_owned() };
        let callback = |event| wire.callback(&public, &call, event, 0, NOW_S).unwrap();
        let trips = |callback: &CallbackRequest| {
            let path = callback.url.strip_prefix(base_url).unwrap();
            let mut request = http::Request::builder().method(callback.method).uri(path);
            for (name, value) in &callback.headers {
                request = request.header(*name, value);
            }
            database.take();
            world.send_unchecked(request.body(callback.body.clone().into()).unwrap()).ok();
            database.take()
        };
        let announced = callback(&CallEvent::Incoming);
        let new = Trips { reads: 1, writes: 1 + own_writes };
        assert_eq!(trips(&announced), new, "{provider}: a new call");
        assert_eq!(trips(&announced), Trips { reads: 1, writes: own_writes }, "{provider}: its repetition");
        let ended = callback(&CallEvent::Ended { how: EndKind::HungUp, seconds: 0 });
        assert_eq!(trips(&ended), Trips { reads: 2, writes: 1 + own_writes }, "{provider}: its end");
    }
}

fn most(operation: &Operation) -> usize {
    match operation.effects {
        Effects::Read => READ_TRIPS_MAX,
        _ if ["create_outbound_call", "test_tool"].contains(&operation.id) => INTENT_TRIPS_MAX,
        _ => WRITE_TRIPS_MAX,
    }
}

/// The round trips of the function that `prepare` returns, in a new `World`.
fn trips<F: FnOnce(&World)>(prepare: impl FnOnce(&World) -> F) -> Trips {
    let (world, database) = counting();
    let act = prepare(&world);
    database.take();
    act(&world);
    database.take()
}

fn counting() -> (World, Arc<Counted>) {
    counting_with(&[])
}

fn counting_with(settings: &[(&str, &str)]) -> (World, Arc<Counted>) {
    let database = Arc::new(Counted::default());
    let world = World::over_with(database.clone(), settings);
    // Once an hour, a request with a key also notes its use.
    world.get("/models").ok();
    (world, database)
}

/// FTS5 reads all calls with a word for each call that it is asked about: a search asks once, whatever else is looked for.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "looks into storage")]
fn a_search_among_calls_with_metadata_reads_the_index_of_texts_once() {
    let (world, database) = counting();
    for path in ["/calls?search=hi&metadata.m=same", "/calls?search=hi&metadata.m=same&metadata.n=other"] {
        database.take();
        world.get(path).ok();
        let read = database.statements_read();
        let searches: Vec<Statement> =
            read.into_iter().filter(|one| one.sql.contains("call_index MATCH")).collect();
        assert!(searches.len() >= 2, "the page and the statistics: {}", searches.len());
        for search in searches {
            let plan =
                Statement { sql: format!("EXPLAIN QUERY PLAN {}", search.sql).into(), params: search.params };
            let rows = block_on(database.read(vec![plan])).unwrap();
            let steps: Vec<String> = rows[0].iter().map(|row| row.text("detail").unwrap()).collect();
            // `=` in the plan of a virtual table is a look-up by its number.
            let texts: Vec<&String> =
                steps.iter().filter(|step| step.contains("call_index VIRTUAL TABLE")).collect();
            assert!(texts.len() == 1 && !texts[0].contains('='), "{steps:#?}");
            assert!(
                steps.iter().any(|step| step.contains("SEARCH other") && step.contains("seq=?")),
                "{steps:#?}"
            );
        }
    }
}
