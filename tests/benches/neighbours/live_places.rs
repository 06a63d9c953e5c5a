//! A opens browser tests until it is refused and keeps them. B opens one after the other, and talks in it.
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};
use sidetone_tests::process::Client;
use tungstenite::{Message, WebSocket};

use crate::scene::{Scene, assistant, at_least, ms};

const CONVERSATIONS_OF_B: usize = 200;
/// What A gets at least: otherwise it was not its worst.
const CONVERSATIONS_OF_A: usize = 500;

pub fn load(scene: &Scene) {
    let mut a = scene.a();
    let desk = assistant(&mut a, "Be brief.");
    let mut open = Vec::new();
    while let Some(socket) = converse(scene, &mut a, &desk, scene.socket_of_a()) {
        open.push(socket);
    }
    at_least("conversations of A", open.len(), CONVERSATIONS_OF_A);
    // They are silent for a minute each, three times: longer than B measures.
    scene.keep(open);
}

/// From asking for a test to the assistant's first words.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let mut b = scene.b();
    let desk = assistant(&mut b, "Be brief.");
    (0..CONVERSATIONS_OF_B)
        .map(|_| {
            let asked = Instant::now();
            match converse(scene, &mut b, &desk, scene.socket_of_b()) {
                Some(mut socket) => {
                    let took = ms(asked);
                    let _ = socket.send(Message::text(json!({"type": "hang_up"}).to_string()));
                    while socket.read().is_ok() {}
                    took
                }
                None => {
                    scene.refuse("a conversation".to_owned());
                    ms(asked)
                }
            }
        })
        .collect()
}

/// Opens a conversation and waits for the first words. `None`: the service refuses it.
pub fn converse(
    scene: &Scene,
    client: &mut Client,
    assistant: &str,
    stream: TcpStream,
) -> Option<WebSocket<TcpStream>> {
    let path = format!("/assistants/{assistant}/test-token");
    let token = client.expect(200, "POST", &path, Some(&json!({"max_duration_seconds": 3_600})));
    let (_, path) = token["websocket_url"].as_str()?.split_once("/voice-test")?;
    let url = format!("ws://{}/voice-test{path}", scene.server());
    let (mut socket, _) = tungstenite::client(url, stream).ok()?;
    while let Ok(Message::Text(text)) = socket.read() {
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        if message["type"] == "assistant_text" {
            return Some(socket);
        }
    }
    None
}
