//! Clients that ask for much and do not read it.
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_engine::base::limits::{PAGE_BYTES_MAX, RESPONSE_WINDOW_MS};
use sidetone_tests::{World, wire};

/// Requests of each client, more than the connection's buffers hold.
const REQUESTS: usize = 20;

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "elsewhere a response is read at once")]
fn unread_responses_are_limited() {
    let world = World::new();
    let neighbour = world.other();
    [&world, &neighbour].into_iter().for_each(fill);
    // On the Sandbox a response is unread as long as it is kept.
    let mut unread = Vec::new();
    let refused = loop {
        let reply = world.get("/assistants");
        match reply.status {
            200 => unread.push(reply),
            _ => break reply.refused("unavailable"),
        }
        assert!(unread.len() < 64, "no limit");
    };
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(unread.len() > 15, "{}", unread.len());
    world.get("/keys").ok();
    world.create("/assistants", large());
    neighbour.get("/assistants").ok();
    drop(unread);
    world.get("/assistants").ok();
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs our own server's sockets")]
fn clients_that_do_not_read_are_cut_off_and_a_neighbour_is_served() {
    let world = World::with_socket();
    let neighbour = world.other();
    [&world, &neighbour].into_iter().for_each(fill);
    let address = world.native().expect("the binary").address;
    let request =
        format!("GET /assistants HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\n\r\n", world.key());
    let clients: Vec<_> = (0..15)
        .map(|_| {
            let mut stream = wire::connect(address).expect("the server listens");
            stream.write_all(request.repeat(REQUESTS).as_bytes()).expect("the server reads");
            stream
        })
        .collect();
    for _ in 0..10 {
        assert!(neighbour.get("/assistants").ok().body.len() > PAGE_BYTES_MAX / 2);
    }
    // Long after the server has given them up, they read what their connections still hold.
    std::thread::sleep(Duration::from_millis(RESPONSE_WINDOW_MS * 3 / 2));
    for mut client in clients {
        client.set_read_timeout(Some(Duration::from_secs(20))).expect("a valid time");
        // A connection that was not given up delivers the rest and stays open.
        let ended = client.read_to_end(&mut Vec::new());
        let is_open =
            ended.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(!is_open, "a client that does not read keeps its connection");
    }
    neighbour.get("/assistants").ok();
}

fn fill(world: &World) {
    (0..130).for_each(|_| drop(world.create("/assistants", large())));
}

fn large() -> Value {
    json!({"name": "Large", "instructions": "x".repeat(32_768)})
}
