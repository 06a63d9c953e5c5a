//! The binary is killed (SIGKILL) at a random moment under write load and restarted. Every acknowledged write must be
//! complete and unchanged, no write may be partial, and a request in flight is applied
//! once or not at all.
//!
//! `SIDETONE_CRASH_ROUNDS` sets the number of rounds (3), `SIDETONE_CRASH_SEED` reproduces a failure.
//! This verifies that no response precedes its commit. It cannot verify that commits are on disk: a killed process loses
//! no data of the operating system. SQLite's `synchronous=FULL` guarantees that.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use serde_json::{Value, json};
use sidetone_tests::Choices;
use sidetone_tests::process::{self, Client, Folder, Server, bootstrap_key};

const TOOLS: usize = 5;
const RUN_MS: u64 = 60_000;

#[test]
fn acknowledged_writes_survive_a_kill_at_any_moment() {
    let rounds = number("SIDETONE_CRASH_ROUNDS").unwrap_or(3);
    let seed = number("SIDETONE_CRASH_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()))
    });
    println!("SIDETONE_CRASH_SEED={seed} SIDETONE_CRASH_ROUNDS={rounds}");
    let mut choices = Choices(seed);
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(9);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str())];

    let mut server = Server::start(&data, &settings);
    let fixture = Fixture::create(&mut server.connect(&key));
    let mut writers = fixture.writers(&mut server.connect(&key), seed);
    for round in 0..rounds {
        let delay_ms = 20 + choices.below(400);
        load_until_killed(server, &key, &fixture, &mut writers, delay_ms);
        server = Server::start(&data, &settings);
        let mut client = server.connect(&key);
        let acknowledged = check(&mut client, &fixture, &mut writers);
        check_file(&data, &folder.path().join(format!("backup-{round}.db")), &fixture, &writers);
        println!(
            "round {round}: killed after {delay_ms} ms; {acknowledged} acknowledged writes so far, all present"
        );
    }
    assert!(server.stop().success(), "the server stops cleanly");
}

/// Shared resources of all writers.
struct Fixture {
    tools: Vec<String>,
    simulation: String,
    /// An assistant that two writers change concurrently.
    shared: String,
}

impl Fixture {
    fn create(client: &mut Client) -> Self {
        let mut create = |path: &str, body: Value| text(&client.expect(201, "POST", path, Some(&body))["id"]);
        let tools = (0..TOOLS)
            .map(|n| create("/tools", json!({"name": format!("tool_{n}"), "url": "https://example.com/t"})))
            .collect();
        let shared = create("/assistants", assistant("shared", 0));
        let persona = create("/simulations/personas", json!({"name": "p", "system_prompt": "You are kind."}));
        let scenario =
            create("/simulations/scenarios", json!({"name": "s", "instructions": "Ask for the hours."}));
        let simulation = create(
            "/simulations",
            json!({"assistant_id": shared, "persona_id": persona, "scenario_id": scenario}),
        );
        Self { tools, simulation, shared }
    }

    fn writers(&self, client: &mut Client, seed: u64) -> Vec<Writer> {
        let works = [
            Work::Create,
            Work::Create,
            Work::Start,
            Work::Patch { id: own(client) },
            Work::Patch { id: own(client) },
            Work::SetTools { id: own(client) },
            Work::SetTools { id: own(client) },
            Work::PatchShared,
            Work::PatchShared,
        ];
        works.into_iter().zip(0..).map(|(work, number)| Writer::new(number, work, seed)).collect()
    }
}

fn own(client: &mut Client) -> String {
    text(&client.expect(201, "POST", "/assistants", Some(&assistant("own", 0)))["id"])
}

/// A body with two matching fields, to detect partial writes.
fn assistant(name: &str, count: u64) -> Value {
    json!({"name": format!("{name} {count}"), "instructions": format!("instructions of {name} {count}")})
}

/// The kind of requests that one connection repeats.
enum Work {
    /// Creates resources of several kinds, each with an Idempotency-Key.
    Create,
    /// Starts runs, each with an Idempotency-Key.
    Start,
    /// Changes its own assistant.
    Patch { id: String },
    /// Changes the tools of its own assistant.
    SetTools { id: String },
    /// Changes the shared assistant.
    PatchShared,
}

/// One request.
#[derive(Clone)]
struct Request {
    method: &'static str,
    path: String,
    key: Option<String>,
    body: Value,
}

/// A connection's work and its record of results.
struct Writer {
    number: u64,
    work: Work,
    count: u64,
    choices: Choices,
    /// Acknowledged creates: path and response.
    made: BTreeMap<String, Value>,
    /// The last acknowledged state of its own assistant.
    last: Option<Value>,
    /// Acknowledged changes of the shared assistant, by revision.
    shared: BTreeMap<i64, Value>,
    /// The request without a response, if any.
    in_flight: Option<Request>,
}

impl Writer {
    fn new(number: u64, work: Work, seed: u64) -> Self {
        let choices = Choices(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            number,
            work,
            count: 0,
            choices,
            made: BTreeMap::new(),
            last: None,
            shared: BTreeMap::new(),
            in_flight: None,
        }
    }

    fn next(&mut self, fixture: &Fixture) -> Request {
        self.count += 1;
        let (number, count) = (self.number, self.count);
        let name = format!("w{number}-{count}");
        let post = |path: &str, body: Value| Request {
            method: "POST",
            path: path.to_owned(),
            key: Some(name.clone()),
            body,
        };
        match &self.work {
            Work::Create => match count % 5 {
                0 => post("/assistants", assistant(&name, count)),
                1 => post("/tools", json!({"name": name.replace('-', "_"), "url": "https://example.com/x"})),
                2 => post(
                    "/knowledge",
                    json!({"name": name, "content": "word ".repeat(self.choices.below(2000) as usize + 1)}),
                ),
                3 => post("/simulations/personas", json!({"name": name, "system_prompt": "You are kind."})),
                _ => post("/simulations/scenarios", json!({"name": name, "instructions": "Ask."})),
            },
            Work::Start => post(&format!("/simulations/{}/runs", fixture.simulation), json!({"seed": count})),
            Work::Patch { id } => change("PATCH", format!("/assistants/{id}"), assistant(&name, count)),
            Work::PatchShared => {
                change("PATCH", format!("/assistants/{}", fixture.shared), assistant(&name, count))
            }
            Work::SetTools { id } => {
                // Cycles through the lengths, so that each list differs from the previous one.
                let length = (count as usize) % (TOOLS + 1);
                let start = self.choices.below(TOOLS as u64) as usize;
                let tools: Vec<&String> = fixture.tools.iter().cycle().skip(start).take(length).collect();
                change("PUT", format!("/assistants/{id}/tools"), json!({"tool_ids": tools}))
            }
        }
    }

    fn run(&mut self, client: &mut Client, fixture: &Fixture, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let request = self.next(fixture);
            self.in_flight = Some(request.clone());
            let Ok(answer) = send(client, &request) else { return };
            assert!(
                matches!(answer.status, 200 | 201),
                "{} {}: {}",
                request.method,
                request.path,
                answer.json
            );
            self.in_flight = None;
            self.acknowledge(&request, answer.json);
        }
    }

    fn acknowledge(&mut self, request: &Request, body: Value) {
        match &self.work {
            Work::Create => {
                let path = format!("{}/{}", request.path, text(&body["id"]));
                self.made.insert(path, body);
            }
            Work::Start => {
                self.made.insert(format!("/simulations/runs/{}", text(&body["id"])), body);
            }
            Work::Patch { .. } | Work::SetTools { .. } => self.last = Some(body),
            Work::PatchShared => {
                let revision = body["revision"].as_i64().expect("a revision");
                self.shared.insert(revision, body);
            }
        }
    }
}

fn change(method: &'static str, path: String, body: Value) -> Request {
    Request { method, path, key: None, body }
}

fn send(client: &mut Client, request: &Request) -> std::io::Result<process::Answer> {
    let headers: Vec<(&str, &str)> =
        request.key.iter().map(|key| ("idempotency-key", key.as_str())).collect();
    client.send(request.method, &request.path, &headers, Some(&request.body))
}

fn load_until_killed(server: Server, key: &str, fixture: &Fixture, writers: &mut [Writer], delay_ms: u64) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in writers {
            let mut client = server.connect(key);
            let over = &over;
            scope.spawn(move || writer.run(&mut client, fixture, over));
        }
        std::thread::sleep(Duration::from_millis(delay_ms));
        server.kill();
        over.store(true, Ordering::Relaxed);
    });
}

/// Checks everything over the API; returns the number of acknowledged writes so far.
fn check(client: &mut Client, fixture: &Fixture, writers: &mut [Writer]) -> usize {
    let shared_before: usize = writers.iter().map(|writer| writer.shared.len()).sum();
    let shared_in_flight =
        writers.iter().filter(|w| matches!(w.work, Work::PatchShared) && w.in_flight.is_some()).count();
    check_shared(client, fixture, writers, shared_before, shared_in_flight);
    let mut acknowledged = 0;
    for writer in writers.iter_mut() {
        let in_flight = writer.in_flight.take();
        match &writer.work {
            Work::Create | Work::Start => {
                if let Some(request) = in_flight {
                    check_retry(client, writer, &request);
                }
                check_made(client, writer);
            }
            Work::Patch { id } | Work::SetTools { id } => {
                let now = client.expect(200, "GET", &format!("/assistants/{id}"), None);
                check_own(writer, in_flight.as_ref(), &now);
                writer.last = Some(now);
            }
            Work::PatchShared => {}
        }
        acknowledged += writer.made.len()
            + writer.shared.len()
            + writer.last.as_ref().and_then(|last| last["revision"].as_u64()).unwrap_or(1) as usize
            - 1;
    }
    acknowledged
}

/// Retries the request in flight twice: it succeeds, and the replay is identical.
fn check_retry(client: &mut Client, writer: &mut Writer, request: &Request) {
    let first = send(client, request).expect("the server answers");
    assert_eq!(first.status, 201, "{}: {}", request.path, first.json);
    let again = send(client, request).expect("the server answers");
    assert!(again.head.to_ascii_lowercase().contains("idempotent-replayed: true"), "{}", again.head);
    assert_eq!(again.json, first.json, "a replay repeats the response");
    writer.acknowledge(request, first.json);
}

fn check_made(client: &mut Client, writer: &Writer) {
    for (path, made) in &writer.made {
        let mut now = client.expect(200, "GET", path, None);
        let mut made = made.clone();
        if matches!(writer.work, Work::Start) {
            now = finished(client, path, now);
            // These fields change while the run progresses.
            for field in [
                "status",
                "passed",
                "error",
                "started_at",
                "completed_at",
                "evaluations",
                "call",
                "call_id",
                "turns",
                "last_line",
                "cost_microusd",
                // These are only in the read of one run.
                "simulation_name",
                "variables",
            ] {
                for run in [&mut now, &mut made] {
                    run.as_object_mut().expect("a run").remove(field);
                }
            }
        }
        // Secrets are shown once.
        made.as_object_mut().expect("a resource").remove("signing_secret");
        assert_eq!(now, made, "{path}");
    }
}

fn finished(client: &mut Client, path: &str, mut run: Value) -> Value {
    let deadline = Instant::now() + Duration::from_millis(RUN_MS);
    while !matches!(run["status"].as_str(), Some("completed" | "error")) {
        assert!(Instant::now() < deadline, "{path} does not finish: {run}");
        std::thread::sleep(Duration::from_millis(20));
        run = client.expect(200, "GET", path, None);
    }
    run
}

/// Expects the last acknowledged state, or that state with the complete change in flight.
fn check_own(writer: &Writer, in_flight: Option<&Request>, now: &Value) {
    let facts = |value: &Value| {
        (
            value["revision"].clone(),
            value["name"].clone(),
            value["instructions"].clone(),
            value["tool_ids"].clone(),
        )
    };
    let Some(last) = &writer.last else {
        assert!(now["revision"] == 1 || (now["revision"] == 2 && in_flight.is_some()), "{now}");
        return;
    };
    if facts(now) == facts(last) {
        assert_eq!(now, last, "all fields are unchanged");
        return;
    }
    let request = in_flight.unwrap_or_else(|| panic!("changed without a request: {last} became {now}"));
    let mut expected = last.clone();
    for (name, value) in request.body.as_object().expect("a change") {
        expected[name] = value.clone();
    }
    expected["revision"] = (last["revision"].as_i64().expect("a revision") + 1).into();
    assert_eq!(facts(now), facts(&expected), "the complete change in flight");
}

/// Each acknowledged change has its own revision, and all other revisions are from requests in flight.
fn check_shared(
    client: &mut Client,
    fixture: &Fixture,
    writers: &mut [Writer],
    before: usize,
    in_flight: usize,
) {
    let mut all: BTreeMap<i64, Value> = BTreeMap::new();
    for writer in writers.iter() {
        for (revision, body) in &writer.shared {
            assert!(all.insert(*revision, body.clone()).is_none(), "two changes got revision {revision}");
        }
    }
    let now = client.expect(200, "GET", &format!("/assistants/{}", fixture.shared), None);
    let revision = now["revision"].as_i64().expect("a revision");
    let changes = usize::try_from(revision - 1).expect("revisions start at 1");
    assert!(
        (before..=before + in_flight).contains(&changes),
        "{before} + {in_flight} changes, revision {revision}"
    );
    let name = text(&now["name"]);
    assert_eq!(
        text(&now["instructions"]),
        format!("instructions of {name}"),
        "both fields are from one change"
    );
    match all.get(&revision) {
        Some(acknowledged) => assert_eq!(&now, acknowledged),
        None if revision > 1 => {
            let sent = writers.iter().filter_map(|writer| writer.in_flight.as_ref());
            assert!(sent.clone().any(|request| request.body["name"] == now["name"]), "{now}");
        }
        None => {}
    }
    // From here on, requests in flight that were applied count as acknowledged.
    let known: Vec<i64> = all.keys().copied().collect();
    let missing = (2..=revision).filter(|revision| !known.contains(revision));
    let slot = writers.iter_mut().find(|writer| matches!(writer.work, Work::PatchShared));
    if let Some(writer) = slot {
        for revision in missing {
            writer.shared.insert(revision, Value::Null);
        }
        if writer.shared.get(&revision) == Some(&Value::Null) {
            writer.shared.insert(revision, now);
        }
    }
}

/// Checks the database file, in a backup taken while the server runs.
fn check_file(data: &Path, backup: &Path, fixture: &Fixture, writers: &[Writer]) {
    let output = process::run(data, &[], &["backup", &backup.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = Connection::open(backup).expect("the backup opens");
    let one = |sql: &str| -> String {
        file.query_row(sql, [], |row| {
            row.get::<_, rusqlite::types::Value>(0).map(|value| format!("{value:?}"))
        })
        .expect("the query runs")
    };
    assert_eq!(one("PRAGMA integrity_check"), "Text(\"ok\")");
    let broken = file.prepare("PRAGMA foreign_key_check").expect("a pragma").exists([]).expect("a pragma");
    assert!(!broken, "there is a broken reference");
    let none = |what: &str, sql: &str| assert_eq!(one(sql), "Integer(0)", "{what}");
    none("guard rows were committed", "SELECT COUNT(*) FROM batch_guard");
    none(
        "unfinished runs without a job",
        "SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running') AND id NOT IN (SELECT subject_id FROM jobs)",
    );
    none(
        "runs without snapshots",
        "SELECT COUNT(*) FROM runs WHERE assistant_snapshot NOT IN (SELECT id FROM snapshots)
         OR simulation_snapshot NOT IN (SELECT id FROM snapshots)",
    );
    none(
        "lists of tools with gaps",
        "SELECT COUNT(*) FROM (SELECT MAX(position) + 1 AS length, COUNT(*) AS rows FROM assistant_tools GROUP BY assistant_id)
         WHERE length <> rows",
    );
    none("duplicate tool names", "SELECT COUNT(*) - COUNT(DISTINCT name) FROM tools");
    // One row per create, whether the response came before the kill or on a retry.
    let made = |work: fn(&Work) -> bool| -> usize {
        writers.iter().filter(|writer| work(&writer.work)).map(|writer| writer.made.len()).sum()
    };
    let created = made(|work| matches!(work, Work::Create));
    let rows = "SELECT (SELECT COUNT(*) FROM assistants WHERE name LIKE 'w%' AND id NOT IN (SELECT assistant_id FROM simulations))
        + (SELECT COUNT(*) FROM tools) + (SELECT COUNT(*) FROM documents) + (SELECT COUNT(*) FROM personas) + (SELECT COUNT(*) FROM scenarios)";
    let owned = writers
        .iter()
        .filter(|writer| matches!(writer.work, Work::Patch { .. }))
        .filter(|writer| writer.last.as_ref().is_some_and(|last| text(&last["name"]).starts_with('w')))
        .count();
    assert_eq!(one(rows), format!("Integer({})", created + owned + fixture.tools.len() + 2));
    let started = made(|work| matches!(work, Work::Start));
    assert_eq!(one("SELECT COUNT(*) FROM runs"), format!("Integer({started})"));
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}
