//! The binary is killed (SIGKILL) during deliveries and restarted: every event whose
//! emission was acknowledged reaches its receiver, with one id and one body.
//!
//! `SIDETONE_CRASH_ROUNDS` sets the number of rounds (3), `SIDETONE_CRASH_SEED` reproduces a failure.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

const RECEIVERS: usize = 4;
const EMITTERS: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn every_acknowledged_event_arrives_despite_kills() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("SIDETONE_CRASH_ROUNDS").unwrap_or(3);
    let seed = number("SIDETONE_CRASH_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()))
    });
    println!("SIDETONE_CRASH_SEED={seed} SIDETONE_CRASH_ROUNDS={rounds}");
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(9);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
    let receivers: Vec<Receiver> =
        (0..RECEIVERS).map(|_| Receiver::start(ReceiverBehaviour::Status(200))).collect();
    let mut server = Server::start(&data, &settings);
    let webhooks: Vec<String> =
        receivers.iter().map(|one| register(&mut server.connect(&key), one)).collect();
    // One receiver drops connections and one hangs during the load, so that their events are still pending at the kill: tried
    // or untried, in progress or waiting.
    let mut acknowledged: Vec<(usize, String)> = Vec::new();
    for round in 0..rounds {
        let delay_ms = 30 + ((seed + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % 400;
        receivers[0].set(ReceiverBehaviour::Reset);
        receivers[1].set(ReceiverBehaviour::Hang);
        let emitted: Vec<(usize, String)> = std::thread::scope(|scope| {
            let emitters: Vec<_> = (0..EMITTERS)
                .map(|n| {
                    let mut client = server.connect(&key);
                    let webhooks = &webhooks;
                    scope.spawn(move || emit(&mut client, webhooks, n))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(delay_ms));
            server.kill();
            emitters.into_iter().flat_map(|one| one.join().expect("an emitter ends")).collect()
        });
        receivers[0].set(ReceiverBehaviour::Status(200));
        receivers[1].set(ReceiverBehaviour::Status(200));
        acknowledged.extend(emitted);
        let killed = Instant::now();
        server = Server::start(&data, &settings);
        let restarted = Instant::now();
        let arrived = wait_for_all(&receivers, &acknowledged);
        println!(
            "round {round}: killed after {delay_ms} ms; {} events, {arrived} requests, all present {} ms after the restart, which took {} ms",
            acknowledged.len(),
            restarted.elapsed().as_millis(),
            (restarted - killed).as_millis()
        );
    }
    check_bodies(&receivers);
    let over = Instant::now();
    settle(&mut server.connect(&key), &webhooks);
    println!("nothing is pending {} ms later", over.elapsed().as_millis());
    assert!(server.stop().success(), "the server stops cleanly");
}

fn register(client: &mut Client, receiver: &Receiver) -> String {
    let webhook = json!({"url": receiver.url(), "events": ["*"]});
    text(&client.expect(201, "POST", "/webhooks", Some(&webhook))["id"])
}

/// Emits events until the server is killed; returns the acknowledged ones with their receivers.
fn emit(client: &mut Client, webhooks: &[String], start: usize) -> Vec<(usize, String)> {
    let mut emitted = Vec::new();
    for n in (0..webhooks.len()).cycle().skip(start) {
        let path = format!("/webhooks/{}/test", webhooks[n]);
        let Ok(answer) = client.send("POST", &path, &[], Some(&json!({}))) else { break };
        assert_eq!(answer.status, 201, "{}", answer.json);
        emitted.push((n, text(&answer["event_id"])));
    }
    emitted
}

/// Returns the number of requests.
fn wait_for_all(receivers: &[Receiver], acknowledged: &[(usize, String)]) -> usize {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let arrived: Vec<BTreeSet<String>> = receivers
            .iter()
            .map(|one| {
                one.received()
                    .iter()
                    .filter(|one| one.accepted)
                    .map(|received| received.header("webhook-id").to_owned())
                    .collect()
            })
            .collect();
        let missing = acknowledged.iter().filter(|(n, id)| !arrived[*n].contains(id)).count();
        if missing == 0 {
            return receivers.iter().map(Receiver::count).sum();
        }
        assert!(Instant::now() < deadline, "{missing} of {} events did not arrive", acknowledged.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// All requests of an event have the same body.
fn check_bodies(receivers: &[Receiver]) {
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for received in receivers.iter().flat_map(Receiver::received) {
        let id = received.header("webhook-id").to_owned();
        let body: Value = serde_json::from_slice(&received.body).expect("a whole body");
        assert_eq!(body["id"], id.as_str());
        let first = bodies.entry(id).or_insert_with(|| received.body.clone());
        assert_eq!(*first, received.body);
    }
}

/// Waits until the service has recorded every delivery.
fn settle(client: &mut Client, webhooks: &[String]) {
    let deadline = Instant::now() + TIMEOUT;
    for id in webhooks {
        loop {
            let path = format!("/webhooks/{id}/deliveries?status=pending");
            let pending = client.expect(200, "GET", &path, None);
            if pending["pagination"]["total"] == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "still pending: {pending}");
            std::thread::sleep(Duration::from_millis(100));
        }
        let failed = client.expect(200, "GET", &format!("/webhooks/{id}/deliveries?status=failed"), None);
        assert_eq!(failed["pagination"]["total"], 0, "{failed}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
