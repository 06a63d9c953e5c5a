//! A has 1,500 large assistants, and 15 clients that ask for the list and do not read it. B reads an assistant.
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use sidetone_tests::process::request_head;
use sidetone_tests::wire::connect_slowly;

use crate::scene::{Scene, assistant};

const ASSISTANTS: usize = 1_500;
const WRITERS: usize = 4;
/// The largest instructions.
const INSTRUCTIONS_BYTES: usize = 32_768;
const CLIENTS: usize = 15;
/// How long a client leaves the response unread before it asks on another connection: the service itself closes it later.
const UNREAD: Duration = Duration::from_secs(5);
const REQUESTS_OF_B: usize = 400;
const SETTLE_MS: u64 = 1_000;

pub fn load(scene: &Scene) {
    let instructions = "x".repeat(INSTRUCTIONS_BYTES);
    std::thread::scope(|threads| {
        for _ in 0..WRITERS {
            threads.spawn(|| {
                let mut a = scene.a();
                (0..ASSISTANTS / WRITERS).for_each(|_| drop(assistant(&mut a, &instructions)));
            });
        }
    });
    ask_and_do_not_read(scene);
    std::thread::sleep(Duration::from_millis(SETTLE_MS));
}

/// Clients that ask for the list of assistants and do not read it.
pub fn ask_and_do_not_read(scene: &Scene) {
    let request = request_head("GET", "/assistants?limit=1000", scene.key_of_a(), &[], 0);
    for _ in 0..CLIENTS {
        let (from, server, request) = (scene.address_of_a(), scene.server(), request.clone());
        scene.repeat(move || leave_unread(connect_slowly(from, server)?, &request));
    }
}

fn leave_unread(mut stream: std::net::TcpStream, request: &str) -> std::io::Result<()> {
    let asked = Instant::now();
    // As many as the connection takes: each is answered after the one before was sent.
    for _ in 0..4 {
        stream.write_all(request.as_bytes())?;
    }
    stream.read_exact(&mut [0; 1])?;
    std::thread::sleep(UNREAD.saturating_sub(asked.elapsed()));
    Ok(())
}

/// A request on a connection of its own.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let desk = format!("/assistants/{}", assistant(&mut scene.b(), "Be brief."));
    (0..REQUESTS_OF_B).map(|_| scene.ask(&mut scene.b(), 200, "GET", &desk, None)).collect()
}
