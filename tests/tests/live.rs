//! Live conversations over the binary's own sockets: killed, stopped and interrupted, with the resulting
//! call log.
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test")]
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_tests::LiveClient;
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use tungstenite::Message;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};

/// How long to wait until a call is settled.
const SETTLE_MS: u64 = 20_000;

struct Service {
    server: Server,
    client: Client,
    key: String,
    folder: Folder,
}

impl Service {
    fn start() -> Self {
        let (folder, key) = (Folder::new(), bootstrap_key(11));
        let server = Self::serve(&folder, &key);
        Self { client: server.connect(&key), server, key, folder }
    }

    fn serve(folder: &Folder, key: &str) -> Server {
        let settings = [("SIDETONE_BOOTSTRAP_KEYS", key), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
        Server::start(&folder.path().join("data"), &settings)
    }

    fn again(folder: Folder, key: String) -> Self {
        let server = Self::serve(&folder, &key);
        Self { client: server.connect(&key), server, key, folder }
    }

    fn create(&mut self, path: &str, body: Value) -> String {
        self.client.expect(201, "POST", path, Some(&body))["id"].as_str().unwrap().to_owned()
    }

    fn assistant(&mut self) -> String {
        let body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello."});
        self.create("/assistants", body)
    }

    fn token(&mut self, assistant: &str) -> String {
        let path = format!("/assistants/{assistant}/test-token");
        self.client.expect(200, "POST", &path, None)["token"].as_str().unwrap().to_owned()
    }

    fn connect(&self, token: &str) -> LiveClient<'static> {
        let path = format!("/voice-test/socket?token={token}");
        LiveClient::over_tcp(self.server.address(), &path).expect("the token is good")
    }

    fn call(&mut self, id: &str) -> Value {
        self.client.expect(200, "GET", &format!("/calls/{id}"), None)
    }

    fn settled(&mut self, id: &str) -> Value {
        let started = Instant::now();
        loop {
            let call = self.call(id);
            if !call["analysis"].is_null() {
                return call;
            }
            assert!(started.elapsed() < Duration::from_millis(SETTLE_MS), "not settled: {call}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn started(client: &mut LiveClient<'_>) -> String {
    client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned()
}

fn roles(call: &Value) -> Vec<&str> {
    call["transcript"].as_array().unwrap().iter().map(|row| row["role"].as_str().unwrap()).collect()
}

#[test]
fn after_a_kill_the_call_is_recorded_correctly_at_the_next_start() {
    let mut service = Service::start();
    let assistant = service.assistant();
    let token = service.token(&assistant);
    let mut client = service.connect(&token);
    let call_id = started(&mut client);
    client.hear();
    client.say("Hi there");
    let answer = client.hear();
    client.say("And again");
    client.hear();
    assert_eq!(service.call(&call_id)["status"], "in_progress");
    let Service { server, key, folder, .. } = service;
    server.kill();

    let mut service = Service::again(folder, key);
    let call = service.settled(&call_id);
    assert_eq!((&call["status"], &call["ended_reason"]), (&json!("ended"), &json!("aborted")), "{call}");
    assert_eq!((&call["outcome"], &call["fault"]), (&json!("failed"), &json!("platform")), "{call}");
    let known = roles(&call);
    // The last row may not have been stored yet.
    assert!(known.starts_with(&["assistant", "user", "assistant", "user"]), "{call}");
    assert_eq!(call["transcript"][2]["text"], json!(answer));
    // The token is still used up.
    let path = format!("/voice-test/socket?token={token}");
    assert_eq!(LiveClient::over_tcp(service.server.address(), &path).err().unwrap().status, 409);
    assert!(!service.server.log().contains(&token), "no token in the log");
}

/// Pings are answered, and empty frames belong to no message: neither may go on for ever.
#[test]
fn a_flood_of_frames_is_bounded() {
    let mut service = Service::start();
    let assistant = service.assistant();
    let empty = |op| Message::Frame(Frame::message(Vec::new(), OpCode::Data(op), false));
    let pings = (0..200).map(|_| Message::Ping(vec![0; 125].into())).collect::<Vec<_>>();
    let once = std::iter::once(empty(Data::Text));
    let pieces = once.chain((0..100_000).map(|_| empty(Data::Continue))).collect::<Vec<_>>();
    for (what, frames, expected) in [("pings", pings, 1008), ("empty frames", pieces, 1009)] {
        let token = service.token(&assistant);
        let mut client = service.connect(&token);
        let call_id = started(&mut client);
        client.send_frames(frames.into_iter());
        let (messages, code) = client.rest();
        // The close frame may be lost if the client is still sending.
        assert!(code.is_none_or(|code| code == expected), "{what}: {code:?}, {messages:?}");
        assert_eq!(service.settled(&call_id)["ended_reason"], "aborted", "{what}");
    }
}

#[test]
fn a_graceful_stop_notifies_the_client_and_records_the_call() {
    let mut service = Service::start();
    let assistant = service.assistant();
    let token = service.token(&assistant);
    let mut client = service.connect(&token);
    let call_id = started(&mut client);
    client.hear();
    service.server.terminate();
    let (messages, code) = client.rest();
    assert_eq!(code, Some(1001), "{messages:?}");
    assert_eq!(messages[0]["ended_reason"], "aborted", "{messages:?}");
    assert!(service.server.wait().success());
    let Service { key, folder, .. } = service;
    let mut service = Service::again(folder, key);
    let call = service.settled(&call_id);
    assert_eq!((&call["ended_reason"], &call["fault"]), (&json!("aborted"), &json!("platform")), "{call}");
    assert_eq!(roles(&call), ["assistant"]);
}

#[test]
fn speech_during_a_tool_call_is_answered_after_it_and_the_tool_is_called_once() {
    let mut service = Service::start();
    let receiver = Receiver::start(ReceiverBehaviour::Hang);
    let assistant = service.assistant();
    let tool = service.create(
        "/tools",
        json!({"name": "book_table", "description": "Books a table at the restaurant", "url": receiver.url(),
            "parameters": {"type": "object"}, "timeout_ms": 8_000}),
    );
    let path = format!("/assistants/{assistant}/tools");
    service.client.expect(200, "PUT", &path, Some(&json!({"tool_ids": [tool]})));
    let token = service.token(&assistant);
    let mut client = service.connect(&token);
    let call_id = started(&mut client);
    client.hear();
    client.say("Please book a table at the restaurant");
    client.expect("tool_call");
    receiver.wait_for(1, Duration::from_secs(10));
    client.say("Thank you");
    let result = client.expect("tool_result");
    assert_eq!(result["is_error"], true, "{result}");
    client.hear();
    client.send(r#"{"type": "hang_up"}"#);
    let (_, code) = client.rest();
    assert_eq!(code, Some(1000));
    assert_eq!(receiver.count(), 1);
    let call = service.settled(&call_id);
    assert_eq!(roles(&call), ["assistant", "user", "tool_call", "user", "tool_result", "assistant"]);
}

#[test]
fn a_dropped_connection_is_detected_during_a_tool_call() {
    let mut service = Service::start();
    let receiver = Receiver::start(ReceiverBehaviour::Hang);
    let assistant = service.assistant();
    let tool = service.create(
        "/tools",
        json!({"name": "book_table", "description": "Books a table at the restaurant", "url": receiver.url(),
            "parameters": {"type": "object"}, "timeout_ms": 30_000}),
    );
    let path = format!("/assistants/{assistant}/tools");
    service.client.expect(200, "PUT", &path, Some(&json!({"tool_ids": [tool]})));
    let token = service.token(&assistant);
    let mut client = service.connect(&token);
    let call_id = started(&mut client);
    client.hear();
    client.say("Please book a table at the restaurant");
    client.expect("tool_call");
    drop(client);
    let call = service.settled(&call_id);
    assert_eq!(call["ended_reason"], "user_hung_up", "{call}");
    assert_eq!(roles(&call), ["assistant", "user", "tool_call"]);
}
