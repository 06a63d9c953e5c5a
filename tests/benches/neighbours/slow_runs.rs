//! A has twice as many runs as it may have at once, each in a tool that does not answer. B starts runs.
use std::time::{Duration, Instant};

use serde_json::json;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::scene::{Scene, create, simulation};

const RUNS_OF_A: usize = 128;
/// How many of them reach the tool before B begins.
const RUNNING: usize = 64;
const RUNS_OF_B: usize = 200;
const TIMEOUT: Duration = Duration::from_secs(60);

pub fn load(scene: &Scene) {
    let mut a = scene.a();
    let slow = Receiver::start(ReceiverBehaviour::Hang);
    let tool = json!({"name": "order_status", "url": slow.url(), "timeout_ms": 30_000,
        "description": "Looks up the status of an order", "parameters": {"type": "object", "properties": {}}});
    let tool = create(&mut a, "/tools", &tool);
    let simulation = simulation(&mut a, &[tool]);
    for seed in 0..RUNS_OF_A {
        create(&mut a, &format!("/simulations/{simulation}/runs"), &json!({"seed": seed}));
    }
    slow.wait_for(RUNNING, TIMEOUT);
}

/// From the request to the start as the run itself reports it.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let mut b = scene.b();
    let simulation = simulation(&mut b, &[]);
    (0..RUNS_OF_B)
        .map(|seed| {
            let asked = Instant::now();
            let run = create(&mut b, &format!("/simulations/{simulation}/runs"), &json!({"seed": seed}));
            let path = format!("/simulations/runs/{run}");
            while b.expect(200, "GET", &path, None)["status"] == "queued" {
                assert!(asked.elapsed() < TIMEOUT, "B's run does not start");
                std::thread::sleep(Duration::from_micros(500));
            }
            asked.elapsed().as_secs_f64() * 1e3
        })
        .collect()
}
