//! A has 200 receivers that do not answer, each with deliveries to spare. B sends events to a good one.
use std::time::{Duration, Instant};

use serde_json::json;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::scene::{Scene, create};

const RECEIVERS_OF_A: usize = 200;
const EVENTS_EACH: usize = 2;
/// How many requests hang before B begins.
const HANGING: usize = 120;
const EVENTS_OF_B: usize = 200;
const TIMEOUT: Duration = Duration::from_secs(60);

pub fn load(scene: &Scene) {
    let mut a = scene.a();
    let hanging = Receiver::start(ReceiverBehaviour::Hang);
    for _ in 0..RECEIVERS_OF_A {
        let webhook = create(&mut a, "/webhooks", &json!({"url": hanging.url(), "events": ["*"]}));
        for _ in 0..EVENTS_EACH {
            create(&mut a, &format!("/webhooks/{webhook}/test"), &json!({}));
        }
    }
    hanging.wait_for(HANGING, TIMEOUT);
}

/// From the request to the arrival at the receiver.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let mut b = scene.b();
    let receiver = Receiver::start(ReceiverBehaviour::Status(200));
    let webhook = create(&mut b, "/webhooks", &json!({"url": receiver.url(), "events": ["*"]}));
    (1..=EVENTS_OF_B)
        .map(|count| {
            let asked = Instant::now();
            create(&mut b, &format!("/webhooks/{webhook}/test"), &json!({}));
            let arrived = receiver.wait_for(count, TIMEOUT)[count - 1].at;
            arrived.saturating_duration_since(asked).as_secs_f64() * 1e3
        })
        .collect()
}
