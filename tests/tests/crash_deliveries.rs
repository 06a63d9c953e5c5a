//! The binary is killed (SIGKILL) in the middle of delivering and started again: every event whose
//! emission was acknowledged reaches its receiver, under its one id and with its one body.
//!
//! `SIDETONE_CRASH_ROUNDS` says how often (3), `SIDETONE_CRASH_SEED` repeats a failure's choices.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Manner, Receiver};

const RECEIVERS: usize = 4;
const EMITTERS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn every_acknowledged_event_arrives_whenever_the_process_is_killed() {
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
    let receivers: Vec<Receiver> = (0..RECEIVERS).map(|_| Receiver::start(Manner::Status(200))).collect();
    let mut server = Server::start(&data, &settings);
    let webhooks: Vec<String> =
        receivers.iter().map(|one| register(&mut server.connect(&key), one)).collect();
    // One receiver breaks off and one says nothing while there is load: at the kill their events are still to
    // be taken, tried or untried, under way or waiting.
    let mut acknowledged: Vec<(usize, String)> = Vec::new();
    for round in 0..rounds {
        let delay_ms = 30 + ((seed + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % 400;
        receivers[0].set(Manner::Reset);
        receivers[1].set(Manner::Hang);
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
        receivers[0].set(Manner::Status(200));
        receivers[1].set(Manner::Status(200));
        acknowledged.extend(emitted);
        let killed = Instant::now();
        server = Server::start(&data, &settings);
        let restarted = Instant::now();
        let arrived = wait_for_all(&receivers, &acknowledged);
        println!(
            "round {round}: killed after {delay_ms} ms; {} events, {arrived} requests, all there {} ms after the restart, which took {} ms",
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

/// Emits until the server is gone; returns what was acknowledged, with the receiver it is for.
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

/// Returns how many requests it took.
fn wait_for_all(receivers: &[Receiver], acknowledged: &[(usize, String)]) -> usize {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let arrived: Vec<BTreeSet<String>> = receivers
            .iter()
            .map(|one| {
                one.received()
                    .iter()
                    .filter(|one| one.taken)
                    .map(|received| received.header("webhook-id").to_owned())
                    .collect()
            })
            .collect();
        let missing = acknowledged.iter().filter(|(n, id)| !arrived[*n].contains(id)).count();
        if missing == 0 {
            return receivers.iter().map(Receiver::count).sum();
        }
        assert!(Instant::now() < deadline, "{missing} of {} events never arrived", acknowledged.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// However often an event came, it was the same to the byte.
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

/// In the end the service knows of each that it has arrived.
fn settle(client: &mut Client, webhooks: &[String]) {
    let deadline = Instant::now() + PATIENCE;
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
