//! A does everything of the other scenes at once. B creates assistants, reads them, and runs simulations.
use serde_json::json;

use crate::scene::{Scene, create, simulation};
use crate::{
    hanging_receivers, live_places, searches, slow_runs, stalled_bodies, unfinished_heads, unread_lists,
};

const ROUNDS_OF_B: usize = 150;

pub fn load(scene: &Scene) {
    slow_runs::load(scene);
    hanging_receivers::load(scene);
    live_places::load(scene);
    unread_lists::load(scene);
    searches::load(scene);
    stalled_bodies::load(scene);
    unfinished_heads::load(scene);
}

/// A request that writes, one that reads, and one that starts a run, each on a connection of its own.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let mut b = scene.b();
    let body = json!({"name": "Desk", "instructions": "Be brief."});
    let desk = format!("/assistants/{}", create(&mut b, "/assistants", &body));
    let runs = format!("/simulations/{}/runs", simulation(&mut b, &[]));
    (0..ROUNDS_OF_B)
        .flat_map(|seed| {
            let run = json!({"seed": seed});
            let ask = |status, method, path, body| scene.ask(&mut scene.b(), status, method, path, body);
            [
                ask(201, "POST", "/assistants", Some(&body)),
                ask(200, "GET", &desk, None),
                ask(201, "POST", &runs, Some(&run)),
            ]
        })
        .collect()
}
