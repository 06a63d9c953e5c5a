//! A workspace moves from a box to the Worker in workerd, which is killed while it takes the file, and on to another box, by the
//! commands as an operator types them. Each host has a secret and an operator's key of its own.
//!
//! `SIDETONE_TEST_HOST=worker cargo test -p sidetone-tests --test moves`
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test")]
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::base::ids::{CallId, Id as _, WorkspaceId};
use sidetone_engine::ports::BlobKey;
use sidetone_engine::sql;
use sidetone_engine::storage::signing::webhook_signature;
use sidetone_tests::direct_access::{in_folder, wait};
use sidetone_tests::edge::Edge;
use sidetone_tests::host::only_on;
use sidetone_tests::process::{self, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Received, Receiver, ReceiverBehaviour};
use sidetone_tests::wire;
use sidetone_tests::{Reply, until};

const TIMEOUT: Duration = Duration::from_secs(60);
/// What the hosts call themselves.
const FIRST: &str = "https://first.example";
const EDGE: &str = "https://edge.example";
const LAST: &str = "https://last.example";
/// Lists that only clients change.
const LISTS: [&str; 7] = [
    "/assistants",
    "/tools",
    "/knowledge",
    "/webhooks",
    "/simulations/personas",
    "/simulations/scenarios",
    "/audit",
];
/// Lists that runs change.
const LOGS: [&str; 6] =
    ["/workspace", "/calls", "/calls?search=saturday", "/simulations", "/simulations/runs", "/events"];

/// A host, as its clients and its operator reach it.
struct Host {
    address: SocketAddr,
    operator: String,
    /// The address that it tells, in links.
    base_url: &'static str,
}

impl Host {
    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn send(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> Reply {
        self.send_with(key, method, path, body, &[])
    }

    fn send_with(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = http::Request::builder().method(method).uri(path);
        request = request.header("authorization", format!("Bearer {key}"));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        wire::send(self.address, &request.body(body).unwrap()).expect("the host answers").sound()
    }

    fn get(&self, key: &str, path: &str) -> Reply {
        self.send(key, Method::GET, path, None)
    }

    fn post(&self, key: &str, path: &str, body: &Value) -> Reply {
        self.send(key, Method::POST, path, Some(body))
    }

    /// Runs a command about this host, from elsewhere.
    fn command(&self, nowhere: &Path, arguments: &[&str], further: &[(&str, &str)]) -> Output {
        command_at(&self.url(), &self.operator, nowhere, arguments, further)
    }
}

/// Runs a command about the host with this URL.
fn command_at(
    url: &str,
    operator: &str,
    nowhere: &Path,
    arguments: &[&str],
    further: &[(&str, &str)],
) -> Output {
    let settings = [("SIDETONE_URL", url), ("SIDETONE_OPERATOR_KEY", operator)];
    process::run(nowhere, &[&settings[..], further].concat(), arguments)
}

/// What a command printed, if it ended with this code.
#[track_caller]
fn ended(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "\n{out}\n{err}");
    (out, err)
}

/// The binary, with an operator's key.
fn start_box(data: &Path, base_url: &str, operator: &str, keys: &str) -> Server {
    let settings = [
        ("SIDETONE_BASE_URL", base_url),
        ("SIDETONE_OPERATOR_KEY", operator),
        ("SIDETONE_BOOTSTRAP_KEYS", keys),
        ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1"),
        // The other tests take the processor.
        ("SIDETONE_LATE_PERCENT", "100"),
    ];
    Server::start(data, &settings)
}

/// The Worker, whose state outlives it.
fn start_edge(state: &Path, operator: &str, keys: &str) -> Arc<Edge> {
    Edge::of_its_own(&[
        ("WORKER_STATE", state.to_str().expect("UTF-8")),
        ("SIDETONE_SECRET", "a secret of the edge, also after it was killed"),
        ("SIDETONE_BASE_URL", EDGE),
        ("SIDETONE_OPERATOR_KEY", operator),
        ("SIDETONE_BOOTSTRAP_KEYS", keys),
        ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1"),
    ])
}

/// Stands before a Worker, and kills it when it gets a part of a file: the nth one.
struct Gate {
    address: SocketAddr,
}

impl Gate {
    fn before(edge: Arc<Edge>, nth: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            let mut parts = 0;
            // A command asks for one thing after the other.
            for stream in listener.incoming().map_while(Result::ok) {
                let mut from = BufReader::new(stream);
                let Ok(request) = whole_request(&mut from) else { continue };
                // Who waits for an answer finds the connection closed.
                let Ok(mut to) = wire::connect(edge.address) else { continue };
                let Ok(()) = to.write_all(&request) else { continue };
                parts += usize::from(request.starts_with(b"PUT "));
                if request.starts_with(b"PUT ") && parts == nth {
                    edge.kill();
                    continue;
                }
                let Ok(reply) = wire::receive(to, false) else { continue };
                let kind = reply.header("content-type").unwrap_or("application/json").to_owned();
                let head = format!(
                    "HTTP/1.1 {} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    reply.status,
                    reply.body.len()
                );
                let mut answer = head.into_bytes();
                answer.extend_from_slice(&reply.body);
                // A command that has gone away needs none.
                let _ = from.get_mut().write_all(&answer);
            }
        });
        Self { address }
    }
}

/// A request for which the connection is closed after the answer.
fn whole_request(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let mut request = head.replacen("\r\n", "\r\nconnection: close\r\n", 1).into_bytes();
    request.extend_from_slice(&body);
    Ok(request)
}

/// The workspace that moves.
struct Workspace {
    key: String,
    id: String,
    receiver: Receiver,
    webhook: String,
    /// Those of the webhook, newest first.
    secrets: Vec<String>,
    /// The answer that a repeated request gets.
    tool: Value,
    calls: Vec<String>,
    runs: Vec<String>,
}

impl Workspace {
    /// Something of everything, a recording and an archived transcript.
    fn on_a_box(host: &Host, key: &str, data: &Path) -> Self {
        let id = host.get(key, "/workspace").ok()["id"].as_str().unwrap().to_owned();
        let document = json!({"name": "Hours", "content": "On Saturday we open at nine."});
        host.post(key, "/knowledge", &document).created();
        let receiver = Receiver::start(ReceiverBehaviour::Status(204));
        let webhook = json!({"url": receiver.url(), "events": ["webhook.test"]});
        let made = host.post(key, "/webhooks", &webhook).created();
        let webhook = made["id"].as_str().unwrap().to_owned();
        let secrets = vec![made["signing_secret"].as_str().unwrap().to_owned()];
        let tool = make_tool(host, key).json;
        let mut workspace = Self {
            key: key.to_owned(),
            id,
            receiver,
            webhook,
            secrets,
            tool,
            calls: Vec::new(),
            runs: Vec::new(),
        };
        for mode in ["voice", "chat"] {
            let run = workspace.begin_run(host, mode);
            workspace.settle(host, &run);
            workspace.runs.push(run);
        }
        workspace.archive(data, &workspace.calls[1]);
        workspace
    }

    fn assistant(&self, host: &Host) -> String {
        let body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello!"});
        host.post(&self.key, "/assistants", &body).created()["id"].as_str().unwrap().to_owned()
    }

    fn begin_run(&self, host: &Host, mode: &str) -> String {
        let made = |path: &str, body: Value| {
            host.post(&self.key, path, &body).created()["id"].as_str().unwrap().to_owned()
        };
        let assistant = self.assistant(host);
        let persona = made("/simulations/personas", json!({"name": "Ada", "system_prompt": "Brief."}));
        let scenario = json!({"name": "Hours", "instructions": "Ask \"When do you open on Saturday?\"."});
        let scenario = made("/simulations/scenarios", scenario);
        let simulation = made(
            "/simulations",
            json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}),
        );
        made(&format!("/simulations/{simulation}/runs"), json!({"mode": mode, "seed": 7}))
    }

    /// Waits for the end of a run; notes its call.
    fn settle(&mut self, host: &Host, run: &str) {
        let path = format!("/simulations/runs/{run}");
        let ended = until("the run has ended", TIMEOUT, || {
            let run = host.get(&self.key, &path).ok().json;
            assert_ne!(run["status"], "error", "{run}");
            (run["status"] == "completed").then_some(run)
        });
        self.calls.push(ended["call"]["id"].as_str().unwrap().to_owned());
    }

    /// As if the call were of long ago.
    fn archive(&self, data: &Path, call: &str) {
        let (id, call) = (WorkspaceId::from_stored(&*self.id), CallId::from_stored(call));
        let content = br#"{"transcript":[],"turns":[]}"#;
        let key = BlobKey::transcript(&id, &call).unwrap();
        let services = in_folder(data);
        wait(services.ports().blobs.put(&key, Bytes::from_static(content))).unwrap();
        let archived = sql!(
            "UPDATE call_transcripts SET content = '[]', turns = '[]', archive_bytes = :bytes, archive_sha256 = :sha256
             WHERE workspace_id = :id AND seq = (SELECT seq FROM calls WHERE id = :call)",
            id = &id,
            call = &call,
            bytes = i64::try_from(content.len()).unwrap(),
            sha256 = sha256_hex(content)
        );
        wait(services.ports().database.write(vec![archived])).unwrap();
    }

    /// What its key reads: with the logs if no run goes on.
    fn everything(&self, host: &Host, with_logs: bool) -> Vec<(String, Bytes)> {
        let mut paths: Vec<String> = LISTS.iter().map(|path| (*path).to_owned()).collect();
        if with_logs {
            paths.extend(LOGS.iter().map(|path| (*path).to_owned()));
        }
        paths.extend(self.runs.iter().map(|run| format!("/simulations/runs/{run}")));
        paths.extend(self.calls.iter().map(|call| format!("/calls/{call}")));
        // The first run was spoken.
        paths.extend(["recording", "waveform"].map(|what| format!("/calls/{}/{what}", self.calls[0])));
        let read = |path: String| {
            let body = host.get(&self.key, &path).ok().body;
            // Links begin with the address of the host.
            let body = match std::str::from_utf8(&body) {
                Ok(text) => Bytes::from(text.replace(host.base_url, "https://host.example")),
                Err(_) => body,
            };
            (path, body)
        };
        paths.into_iter().map(read).collect()
    }

    /// The webhook's receiver gets an event, signed with these secrets.
    fn assert_signed(&self, host: &Host) {
        let before = self.receiver.count();
        host.post(&self.key, &format!("/webhooks/{}/test", self.webhook), &json!({})).created();
        let received = self.receiver.wait_for(before + 1, TIMEOUT);
        let signed = received.last().expect("it was received");
        let expected: Vec<String> = self.secrets.iter().map(|secret| signature(signed, secret)).collect();
        assert_eq!(signed.header("webhook-signature"), expected.join(" "));
    }

    fn rotate(&mut self, host: &Host) {
        let path = format!("/webhooks/{}/rotate-secret", self.webhook);
        let rotated = host.post(&self.key, &path, &json!({})).created();
        self.secrets.insert(0, rotated["signing_secret"].as_str().unwrap().to_owned());
        self.secrets.truncate(2);
    }

    fn assert_replayed(&self, host: &Host) {
        let again = make_tool(host, &self.key);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.json, self.tool);
    }
}

/// A request with an Idempotency-Key, whose answer has a secret.
fn make_tool(host: &Host, key: &str) -> Reply {
    let tool = json!({"name": "look_up", "url": "https://tools.example/look_up"});
    let once = [("idempotency-key", "before the move")];
    host.send_with(key, Method::POST, "/tools", Some(&tool), &once).created()
}

fn signature(request: &Received, secret: &str) -> String {
    let timestamp_s = request.header("webhook-timestamp").parse().unwrap();
    webhook_signature(secret, request.header("webhook-id"), timestamp_s, &request.body)
}

#[track_caller]
fn assert_same(after: &[(String, Bytes)], before: &[(String, Bytes)]) {
    for ((path, after), (_, before)) in after.iter().zip(before) {
        assert_eq!(after, before, "{path}");
    }
    assert_eq!(after.len(), before.len());
}

/// A workspace that stays.
fn neighbour(host: &Host, key: &str) -> Bytes {
    let body = json!({"name": "Beside", "instructions": "Be kind."});
    host.post(key, "/assistants", &body).created();
    host.get(key, "/assistants").ok().body
}

#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs the Worker, and workerd to kill")]
fn a_workspace_moves_from_a_box_to_the_worker_and_on_to_another_box() {
    only_on(&["worker"]);
    let folder = Folder::new();
    let place = |name: &str| folder.path().join(name);
    let text = |path: &PathBuf| path.to_str().expect("UTF-8").to_owned();
    let nowhere = place("nowhere");
    let [tenant, at_edge, at_last] = [5_000_001, 5_000_002, 5_000_003].map(bootstrap_key);
    let operators = [5_000_011, 5_000_012, 5_000_013].map(bootstrap_key);
    let new = json!({"name": "New", "instructions": "Be kind."});

    let first = start_box(&place("first"), FIRST, &operators[0], &tenant);
    let first_host = Host { address: first.address(), operator: operators[0].clone(), base_url: FIRST };
    let mut workspace = Workspace::on_a_box(&first_host, &tenant, &place("first"));
    workspace.assert_signed(&first_host);
    let there = text(&place("there.move"));
    let id = workspace.id.clone();
    let export = ["export", "--workspace", id.as_str(), there.as_str()];
    ended(&first_host.command(&nowhere, &export, &[]), 0);
    let before = workspace.everything(&first_host, true);
    let refused = first_host.post(&tenant, "/assistants", &new).refused("workspace_moving");
    assert_eq!(refused.header("retry-after"), Some("60"));

    // The Worker dies when it gets the second part.
    let state = place("state");
    let edge = start_edge(&state, &operators[1], &at_edge);
    let edge_host = Host { address: edge.address, operator: operators[1].clone(), base_url: EDGE };
    let beside = neighbour(&edge_host, &at_edge);
    let gate = Gate::before(edge, 2);
    let from = first_host.url();
    let import = ["import", there.as_str(), "--from", from.as_str()];
    let of_first = [("SIDETONE_FROM_OPERATOR_KEY", operators[0].as_str())];
    let gate_url = format!("http://{}", gate.address);
    ended(&command_at(&gate_url, &operators[1], &nowhere, &import, &of_first), 2);
    assert_same(&workspace.everything(&first_host, true), &before);

    let edge = start_edge(&state, &operators[1], &at_edge);
    let edge_host = Host { address: edge.address, operator: operators[1].clone(), base_url: EDGE };
    let path = format!("/operator/imports/{id}");
    let told = edge_host.get(&operators[1], &path).ok();
    assert_eq!(told["state"], "arriving");
    assert!(told["next_part"].as_u64().is_some_and(|next| next >= 2), "{told:?}");
    edge_host.get(&tenant, "/assistants").refused("workspace_moving");
    let (out, err) = ended(&edge_host.command(&nowhere, &import, &of_first), 0);
    assert!(out.contains(&format!(" runs at {}", edge_host.url())), "{out}");
    assert!(err.contains(&format!("handed over by {from}")), "{err}");
    assert_same(&workspace.everything(&edge_host, true), &before);
    assert_eq!(edge_host.get(&at_edge, "/assistants").ok().body, beside);
    let moved = first_host.get(&tenant, "/assistants").refused("workspace_moved");
    assert_eq!(moved["error"]["details"]["base_url"], EDGE);
    ended(&edge_host.command(&nowhere, &import, &of_first), 0);

    // It goes on there.
    workspace.assert_replayed(&edge_host);
    workspace.assert_signed(&edge_host);
    workspace.rotate(&edge_host);
    workspace.assert_signed(&edge_host);
    let run = workspace.begin_run(&edge_host, "chat");
    workspace.settle(&edge_host, &run);
    workspace.runs.push(run);
    let erase = ["export", "--workspace", id.as_str(), "--erase", "--yes"];
    ended(&first_host.command(&nowhere, &erase, &[]), 0);
    first_host.get(&tenant, "/assistants").refused("workspace_moved");

    // And on, with a run that has not ended, or has not even begun.
    let last = start_box(&place("last"), LAST, &operators[2], &at_last);
    let last_host = Host { address: last.address(), operator: operators[2].clone(), base_url: LAST };
    let beside = neighbour(&last_host, &at_last);
    let run = workspace.begin_run(&edge_host, "chat");
    let on = text(&place("on.move"));
    let export = ["export", "--workspace", id.as_str(), on.as_str()];
    ended(&edge_host.command(&nowhere, &export, &[]), 0);
    let before = workspace.everything(&edge_host, false);
    edge_host.post(&tenant, "/assistants", &new).refused("workspace_moving");
    let edge_url = edge_host.url();
    let import = ["import", on.as_str(), "--from", edge_url.as_str()];
    let of_edge = [("SIDETONE_FROM_OPERATOR_KEY", operators[1].as_str())];
    ended(&last_host.command(&nowhere, &import, &of_edge), 0);
    assert_same(&workspace.everything(&last_host, false), &before);
    edge_host.get(&tenant, "/assistants").refused("workspace_moved");
    workspace.settle(&last_host, &run);
    workspace.assert_replayed(&last_host);
    workspace.assert_signed(&last_host);
    workspace.rotate(&last_host);
    workspace.assert_signed(&last_host);
    last_host.post(&tenant, "/assistants", &new).created();
    ended(&edge_host.command(&nowhere, &erase, &[]), 0);
    edge_host.get(&tenant, "/assistants").refused("workspace_moved");
    assert_eq!(last_host.get(&at_last, "/assistants").ok().body, beside);
    assert!(first.stop().success() && last.stop().success());
}
