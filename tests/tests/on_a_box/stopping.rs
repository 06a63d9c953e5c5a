//! Stopping: what is open ends in time, and what is cut off is in the log.
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use sidetone_tests::LiveClient;
use sidetone_tests::process::{Folder, Server, bootstrap_key, request_head};

#[test]
fn a_request_that_does_not_end_is_cut_off_and_logged() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_STOP_SECONDS", "2")];
    let mut server = Server::start(&folder.path().join("data"), &settings);
    let mut open = TcpStream::connect(server.address()).expect("the server listens");
    // The body never comes.
    let head = request_head("POST", "/assistants", &key, &[], 100);
    open.write_all(head.as_bytes()).expect("the server reads");
    let mut idle = server.connect(&key);
    idle.expect(200, "GET", "/assistants", None);
    let started = Instant::now();
    server.terminate();
    assert!(server.wait().success());
    let took = started.elapsed();
    assert!(Duration::from_secs(1) < took && took < Duration::from_secs(7), "{took:?}");
    let log = server.log();
    let all = log.lines().find(|line| line.contains("what did not finish in time is cut off"));
    let all = all.unwrap_or_else(|| panic!("nothing is logged: {log}"));
    assert!(all.contains("requests=1 conversations=0"), "not the idle connection: {all}");
    let one = log.lines().find(|line| line.contains("a request is cut off")).expect("a line for each");
    assert!(one.contains("address=127.0.0.1") && one.contains("open_ms="), "{one}");
}

#[test]
fn a_conversation_ends_itself_in_time() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_STOP_SECONDS", "18")];
    let data = folder.path().join("data");
    let mut server = Server::start(&data, &settings);
    let mut client = server.connect(&key);
    let assistant = json!({"name": "Desk", "instructions": "Be kind.", "first_message": "Hello."});
    let assistant = client.expect(201, "POST", "/assistants", Some(&assistant));
    let path = format!("/assistants/{}/test-token", assistant["id"].as_str().expect("an id"));
    let token = client.expect(200, "POST", &path, Some(&json!({})));
    let url = token["websocket_url"].as_str().expect("a URL");
    let path = url.find("/voice-test").map_or(url, |at| &url[at..]);
    let mut talking = LiveClient::over_tcp(server.address(), path).expect("the token is good");
    let call = talking.expect("call_started")["call"]["id"].as_str().expect("an id").to_owned();
    talking.expect("assistant_text");
    let started = Instant::now();
    server.terminate();
    talking.expect("call_ended");
    assert!(server.wait().success());
    assert!(started.elapsed() < Duration::from_secs(17), "{:?}", started.elapsed());
    assert!(!server.log().contains("cut off"), "it ended by itself: {}", server.log());
    let server = Server::start(&data, &settings);
    let call = server.connect(&key).expect(200, "GET", &format!("/calls/{call}"), None);
    assert_eq!(call["status"], "ended", "{call}");
    assert!(server.stop().success());
}

#[test]
fn without_anything_open_it_stops_at_once() {
    let folder = Folder::new();
    let server = Server::start(&folder.path().join("data"), &[("SIDETONE_STOP_SECONDS", "60")]);
    let started = Instant::now();
    assert!(server.stop().success());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}
