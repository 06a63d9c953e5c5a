//! The binary delivers over real sockets to receivers on this machine: to those that respond, and to
//! those that flood, reset, redirect or hang.
#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test")]
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::storage::signing::webhook_signature;
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn deliveries_to_receivers_with_every_behaviour() {
    let folder = Folder::new();
    let key = bootstrap_key(1);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
    let server = Server::start(&folder.path().join("data"), &settings);
    let mut client = server.connect(&key);
    let inside = Receiver::start(ReceiverBehaviour::Status(200));
    let well = Receiver::start(ReceiverBehaviour::Status(200));
    for (behaviour, status, last_status) in [
        (ReceiverBehaviour::Status(204), "delivered", json!(204)),
        (ReceiverBehaviour::Flood(200), "delivered", json!(200)),
        (ReceiverBehaviour::Stall(200), "delivered", json!(200)),
        (ReceiverBehaviour::Flood(500), "pending", json!(500)),
        (ReceiverBehaviour::With(302, "location", inside.url()), "pending", json!(302)),
        (ReceiverBehaviour::With(307, "location", inside.url()), "pending", json!(307)),
        (ReceiverBehaviour::With(429, "retry-after", "100".to_owned()), "pending", json!(429)),
        (ReceiverBehaviour::Reset, "pending", Value::Null),
        (ReceiverBehaviour::Status(410), "failed", json!(410)),
    ] {
        let receiver = Receiver::start(behaviour.clone());
        let webhook = register(&mut client, &receiver);
        let event_id = test(&mut client, &text(&webhook["id"]))["event_id"].clone();
        let delivery = attempted(&mut client, &text(&webhook["id"]));
        assert_eq!(
            (&delivery["status"], &delivery["last_status"]),
            (&json!(status), &last_status),
            "{behaviour:?}"
        );
        let received = receiver.received().remove(0);
        assert_eq!(
            (received.method.as_str(), received.header("webhook-id")),
            ("POST", text(&event_id).as_str())
        );
        let timestamp_s = received.header("webhook-timestamp").parse().expect("seconds");
        let signature = webhook_signature(
            &text(&webhook["signing_secret"]),
            &text(&event_id),
            timestamp_s,
            &received.body,
        );
        assert_eq!(received.header("webhook-signature"), signature);
    }
    assert_eq!(inside.count(), 0, "no redirect was followed");

    // Hanging receivers do not delay others, even with more of them than concurrent deliveries.
    for _ in 0..4 {
        let hanging = register(&mut client, &Receiver::start(ReceiverBehaviour::Hang));
        for _ in 0..20 {
            test(&mut client, &text(&hanging["id"]));
        }
    }
    let webhook = register(&mut client, &well);
    let asked = Instant::now();
    test(&mut client, &text(&webhook["id"]));
    well.wait_for(1, TIMEOUT);
    assert!(asked.elapsed() < Duration::from_secs(10), "the delivery waited for hanging receivers");
    server.kill();
}

fn register(client: &mut Client, receiver: &Receiver) -> Value {
    let body = json!({"url": receiver.url(), "events": ["*"]});
    client.expect(201, "POST", "/webhooks", Some(&body))
}

fn test(client: &mut Client, webhook_id: &str) -> Value {
    client.expect(201, "POST", &format!("/webhooks/{webhook_id}/test"), Some(&json!({})))
}

/// The webhook's only delivery, after its first attempt.
fn attempted(client: &mut Client, webhook_id: &str) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let list = client.expect(200, "GET", &format!("/webhooks/{webhook_id}/deliveries"), None);
        let delivery = &list["deliveries"][0];
        if delivery["attempts"] != 0 {
            return delivery.clone();
        }
        assert!(Instant::now() < deadline, "no attempt was made: {delivery}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
