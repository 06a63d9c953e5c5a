//! Receivers of events that take a request and say nothing.
use std::time::Duration;

use serde_json::json;
use sidetone_tests::host::only_on;
use sidetone_tests::receiver::{Manner, Receiver};

use crate::support::Bench;

/// More than any host has under way to receivers within one turn at the edge.
const RECEIVERS: usize = 8;

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs deliveries that run side by side")]
fn receivers_that_hang_keep_no_run_waiting() {
    // On the Sandbox one thing happens after the other, by design.
    only_on(&["native", "worker"]);
    let bench = Bench::new("tools");
    let deaf = Receiver::start(Manner::Hang);
    let webhook = || bench.world.create("/webhooks", json!({"url": deaf.url(), "events": ["call.started"]}));
    let webhooks: Vec<_> = (0..RECEIVERS).map(|_| webhook()).collect();
    bench.run(&["Hello"]);
    deaf.wait_for(1, Duration::from_secs(20));
    let run = bench.run(&["Hello again"]);
    assert_eq!(run["status"], "completed", "{run:#}");
    // All that while nobody gave up on a receiver.
    for webhook in webhooks {
        let list = bench.world.get(format!("/webhooks/{}/deliveries", webhook.id)).ok();
        for delivery in list["deliveries"].as_array().unwrap() {
            assert_eq!(
                (&delivery["status"], &delivery["attempts"]),
                (&json!("pending"), &json!(0)),
                "{delivery:#}"
            );
        }
    }
}
