//! The binary delivers to receivers on this machine, over real sockets: to those that answer, and to
//! those that flood, reset, redirect, or take a request and say nothing.
#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test")]
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::storage::signing::webhook_signature;
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Manner, Receiver};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn receivers_of_every_manner_get_what_they_deserve() {
    let folder = Folder::new();
    let key = bootstrap_key(1);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
    let server = Server::start(&folder.path().join("data"), &settings);
    let mut client = server.connect(&key);
    let inside = Receiver::start(Manner::Status(200));
    let well = Receiver::start(Manner::Status(200));
    for (manner, status, last_status) in [
        (Manner::Status(204), "delivered", json!(204)),
        (Manner::Flood(200), "delivered", json!(200)),
        (Manner::Flood(500), "pending", json!(500)),
        (Manner::With(302, "location", inside.url()), "pending", json!(302)),
        (Manner::With(307, "location", inside.url()), "pending", json!(307)),
        (Manner::With(429, "retry-after", "100".to_owned()), "pending", json!(429)),
        (Manner::Reset, "pending", Value::Null),
        (Manner::Status(410), "failed", json!(410)),
    ] {
        let receiver = Receiver::start(manner.clone());
        let webhook = register(&mut client, &receiver);
        let event_id = test(&mut client, &text(&webhook["id"]))["event_id"].clone();
        let delivery = attempted(&mut client, &text(&webhook["id"]));
        assert_eq!(
            (&delivery["status"], &delivery["last_status"]),
            (&json!(status), &last_status),
            "{manner:?}"
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

    // Receivers that hang, more than one could have at once, hold up nobody else.
    for _ in 0..4 {
        let hanging = register(&mut client, &Receiver::start(Manner::Hang));
        for _ in 0..20 {
            test(&mut client, &text(&hanging["id"]));
        }
    }
    let webhook = register(&mut client, &well);
    let asked = Instant::now();
    test(&mut client, &text(&webhook["id"]));
    well.wait_for(1, PATIENCE);
    assert!(asked.elapsed() < Duration::from_secs(10), "it waited for receivers that hang");
    server.kill();
}

fn register(client: &mut Client, receiver: &Receiver) -> Value {
    let body = json!({"url": receiver.url(), "events": ["*"]});
    client.expect(201, "POST", "/webhooks", Some(&body))
}

fn test(client: &mut Client, webhook_id: &str) -> Value {
    client.expect(201, "POST", &format!("/webhooks/{webhook_id}/test"), Some(&json!({})))
}

/// The webhook's only delivery, once an attempt was made.
fn attempted(client: &mut Client, webhook_id: &str) -> Value {
    let deadline = Instant::now() + PATIENCE;
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
