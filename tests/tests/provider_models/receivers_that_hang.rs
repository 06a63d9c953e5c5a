//! Receivers that accept a request and never respond.
use std::time::Duration;

use serde_json::json;
use sidetone_tests::host::only_on;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::support::Fixture;

/// More than the concurrent deliveries of any host.
const RECEIVERS: usize = 8;

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs deliveries that run side by side")]
fn hanging_receivers_do_not_delay_runs() {
    // The Sandbox runs jobs one after the other, by design.
    only_on(&["native", "worker"]);
    let fixture = Fixture::new("tools");
    let deaf = Receiver::start(ReceiverBehaviour::Hang);
    let webhook =
        || fixture.world.create("/webhooks", json!({"url": deaf.url(), "events": ["call.started"]}));
    let webhooks: Vec<_> = (0..RECEIVERS).map(|_| webhook()).collect();
    fixture.run(&["Hello"]);
    deaf.wait_for(1, Duration::from_secs(20));
    let run = fixture.run(&["Hello again"]);
    assert_eq!(run["status"], "completed", "{run:#}");
    // No delivery has timed out yet.
    for webhook in &webhooks {
        let list = fixture.world.get(format!("/webhooks/{}/deliveries", webhook.id)).ok();
        for delivery in list["deliveries"].as_array().unwrap() {
            assert_eq!(
                (&delivery["status"], &delivery["attempts"]),
                (&json!("pending"), &json!(0)),
                "{delivery:#}"
            );
        }
    }
    // A platform with one consumer at a time, as the local one, would keep the events of other tests waiting.
    for webhook in webhooks {
        fixture.world.delete(format!("/webhooks/{}", webhook.id)).empty();
    }
}
