//! Somebody opens 150 connections with the beginning of a head, and 236 that say nothing. B asks for the service's health
//! and for its assistants.
use std::io::{Read, Write};
use std::time::Duration;

use sidetone_tests::wire::connect_from;

use crate::scene::Scene;

const UNFINISHED: usize = 150;
const SILENT: usize = 236;
/// Just below the limit of a head.
const HEAD_BYTES: usize = 32_000;
const REQUESTS_OF_B: usize = 400;
const SETTLE_MS: u64 = 500;

pub fn load(scene: &Scene) {
    for nth in 0..UNFINISHED + SILENT {
        let (from, server) = (scene.address_of_a(), scene.server());
        // Until the server closes it; then the next.
        scene.repeat(move || {
            let mut stream = connect_from(from, server)?;
            if nth < UNFINISHED {
                let head = format!("GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: {}", "x".repeat(HEAD_BYTES));
                stream.write_all(head.as_bytes())?;
            }
            stream.read_to_end(&mut Vec::new()).map(drop)
        });
    }
    std::thread::sleep(Duration::from_millis(SETTLE_MS));
}

/// Requests on connections of their own, in turn.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let paths = ["/healthz", "/assistants"];
    (0..REQUESTS_OF_B).map(|nth| scene.ask(&mut scene.b(), 200, "GET", paths[nth % 2], None)).collect()
}
