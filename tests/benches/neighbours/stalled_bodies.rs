//! Somebody without a key announces bodies of 1 MiB on 64 connections, and sends a byte of each. B posts.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::json;
use sidetone_engine::base::limits::BODY_BYTES_MAX;
use sidetone_tests::wire::connect_from;

use crate::scene::Scene;

const SOCKETS: usize = 64;
const POSTS_OF_B: usize = 400;
const SETTLE_MS: u64 = 500;

pub fn load(scene: &Scene) {
    for _ in 0..SOCKETS {
        let (from, server) = (scene.address_of_a(), scene.server());
        scene.repeat(move || stall(from, server));
    }
    std::thread::sleep(Duration::from_millis(SETTLE_MS));
}

/// Until the server gives up on it.
fn stall(from: Ipv4Addr, server: SocketAddr) -> std::io::Result<()> {
    let mut stream = connect_from(from, server)?;
    let head = format!(
        "POST /assistants HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {BODY_BYTES_MAX}\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(())
}

/// A request on a connection of its own.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let body = json!({"name": "Desk", "instructions": "Be brief. ".repeat(1_000)});
    (0..POSTS_OF_B).map(|_| scene.ask(&mut scene.b(), 201, "POST", "/assistants", Some(&body))).collect()
}
