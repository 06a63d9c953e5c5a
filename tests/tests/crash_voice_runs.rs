//! The binary is killed (SIGKILL) in the middle of voice runs: once while their models answer, once while a recording is
//! being written. After the restart each run has the transcript and the recording of one that nobody interrupted.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone_tests::fakes;
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};

const TIMEOUT: Duration = Duration::from_secs(120);
const SEED: i64 = 11;
/// The models of assistant and caller.
const MODELS: [(&str, &str); 2] = [("builtin/rules", "builtin/rules"), ("fake/echo", "fake/caller")];

#[test]
fn a_killed_voice_run_ends_as_if_nothing_had_happened() {
    let key = bootstrap_key(78);
    let mut settings = fakes::settings();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for (model, callers_model) in MODELS {
        let folder = Folder::new();
        let (calm, killed) = (folder.path().join("calm"), folder.path().join("killed"));
        let server = Server::start(&calm, &settings);
        let run = start(&mut server.connect(&key), model, callers_model);
        let expected = Ended::wait(&server, &key, &run);
        assert!(server.stop().success());

        let mut server = Server::start(&killed, &settings);
        let run = start(&mut server.connect(&key), model, callers_model);
        let mut unfinished = 0;
        for condition in [
            "SELECT 1 FROM runs WHERE status = 'running' AND call_id IS NOT NULL",
            "SELECT 1 FROM recordings WHERE state = 'writing' AND segments >= 3",
        ] {
            kill_once(&killed, condition, server);
            unfinished +=
                i64::from(number(&killed, "SELECT COUNT(*) FROM runs WHERE status = 'running'") == 1);
            let halves = number(&killed, "SELECT COUNT(*) FROM recordings WHERE state = 'ready'");
            assert_eq!(halves, 0, "no part of a recording can be downloaded");
            // The lease of the killed process has expired.
            let file = open(&killed);
            file.execute("UPDATE jobs SET due_at = 0 WHERE kind = 'simulation_run'", []).unwrap();
            drop(file);
            server = Server::start(&killed, &settings);
        }
        assert_eq!(unfinished, 2, "{model}: both kills hit the run");
        let ended = Ended::wait(&server, &key, &run);
        assert_eq!(ended.run["call"]["transcript"], expected.run["call"]["transcript"], "{model}");
        assert_eq!(ended.run["call"]["turns"], expected.run["call"]["turns"], "{model}");
        for field in ["ended_reason", "outcome", "fault", "duration_ms"] {
            assert_eq!(ended.run["call"][field], expected.run["call"][field], "{model}: {field}");
        }
        assert_eq!(ended.run["status"], "completed");
        assert!(ended.recording == expected.recording, "{model}: the recordings differ");
        let ready = "SELECT COUNT(*) FROM recordings WHERE state = 'ready'";
        assert_eq!(number(&killed, ready), 1);
        assert_eq!(number(&killed, "SELECT COUNT(*) FROM recordings WHERE state = 'writing'"), 0);
        let told = "SELECT COUNT(*) FROM events WHERE type = 'recording.ready'";
        assert_eq!(number(&killed, told), 1, "{model}: announced once");
        assert!(server.stop().success());
    }
}

/// A run that has ended, and its recording.
struct Ended {
    run: Value,
    recording: Bytes,
}

impl Ended {
    fn wait(server: &Server, key: &str, run: &str) -> Self {
        let mut client = server.connect(key);
        let deadline = Instant::now() + TIMEOUT;
        let run = loop {
            let run = client.expect(200, "GET", &format!("/simulations/runs/{run}"), None);
            if run["status"] == "completed" || run["status"] == "error" {
                break run;
            }
            assert!(Instant::now() < deadline, "not in time: {run:#}");
            std::thread::sleep(Duration::from_millis(20));
        };
        let request = http::Request::get(format!("/calls/{}/recording", run["call_id"].as_str().unwrap()))
            .header("host", "localhost")
            .header("authorization", format!("Bearer {key}"));
        let reply =
            sidetone_tests::wire::send(server.address(), &request.body(Bytes::new()).unwrap()).unwrap();
        assert_eq!(reply.status, 200, "{run:#}");
        let duration_ms = run["call"]["recording"]["duration_ms"].as_u64().unwrap();
        assert_eq!(reply.body.len() as u64, 44 + duration_ms * 32, "the recording is whole");
        Self { run, recording: reply.body }
    }
}

/// Starts a voice run of more than a minute; returns its id.
fn start(client: &mut Client, model: &str, callers_model: &str) -> String {
    let mut make = |path: &str, body: Value| {
        client.expect(201, "POST", path, Some(&body))["id"].as_str().unwrap().to_owned()
    };
    make("/webhooks", json!({"url": "https://receiver.example/", "events": ["recording.ready"]}));
    let greeting = "We have a great many things to tell you about our opening hours. ".repeat(12);
    let assistant = make(
        "/assistants",
        json!({"name": "Shop", "instructions": "Help.", "first_message": greeting.trim(), "model": model}),
    );
    let persona = make(
        "/simulations/personas",
        json!({"name": "Ada", "system_prompt": "Talkative.", "model": callers_model}),
    );
    let story = "I have been a customer of yours for many years and never had reason to complain. ".repeat(6);
    let lines: Vec<String> = (1..=3).map(|nth| format!("\"Story {nth}. {}\"", story.trim())).collect();
    let scenario = make(
        "/simulations/scenarios",
        json!({"name": "Stories", "instructions": format!("Say {}.", lines.join(", then ")),
               "conditions": {"packet_loss": 1}, "evaluations": []}),
    );
    let simulation = make(
        "/simulations",
        json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}),
    );
    make(&format!("/simulations/{simulation}/runs"), json!({"mode": "voice", "seed": SEED}))
}

/// Kills the server as soon as this query has a row.
fn kill_once(data: &Path, query: &str, server: Server) {
    let file = open(data);
    let deadline = Instant::now() + TIMEOUT;
    while !file.prepare_cached(query).unwrap().exists([]).unwrap() {
        assert!(Instant::now() < deadline, "never: {query}");
        std::thread::sleep(Duration::from_millis(1));
    }
    server.kill();
}

fn number(data: &Path, query: &str) -> i64 {
    open(data).query_row(query, [], |row| row.get(0)).unwrap()
}

fn open(data: &Path) -> rusqlite::Connection {
    let file = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    file.busy_timeout(Duration::from_secs(10)).unwrap();
    file
}
