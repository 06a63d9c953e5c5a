//! The binary is killed (SIGKILL) at a random moment under write load and opened again: every
//! acknowledged write is there as it was acknowledged, none is torn, and what was in flight is there
//! once or not at all.
//!
//! `SIDETONE_CRASH_ROUNDS` says how often (3), `SIDETONE_CRASH_SEED` repeats a failure's choices.
//! This shows that no answer runs ahead of its commit; that a commit is on the disk is SQLite's
//! `synchronous=FULL`, which no killed process can disprove.
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
    let world = World::make(&mut server.connect(&key));
    let mut writers = world.writers(&mut server.connect(&key), seed);
    for round in 0..rounds {
        let delay_ms = 20 + choices.below(400);
        load_until_killed(server, &key, &world, &mut writers, delay_ms);
        server = Server::start(&data, &settings);
        let mut client = server.connect(&key);
        let acknowledged = check(&mut client, &world, &mut writers);
        check_file(&data, &folder.path().join(format!("backup-{round}.db")), &world, &writers);
        println!(
            "round {round}: killed after {delay_ms} ms; {acknowledged} acknowledged writes so far, all there"
        );
    }
    assert!(server.stop().success(), "the server stops cleanly");
}

/// What all writers use.
struct World {
    tools: Vec<String>,
    simulation: String,
    /// An assistant that two writers change at once.
    shared: String,
}

impl World {
    fn make(client: &mut Client) -> Self {
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

/// A body whose two fields belong together.
fn assistant(name: &str, count: u64) -> Value {
    json!({"name": format!("{name} {count}"), "instructions": format!("instructions of {name} {count}")})
}

/// What one connection does over and over.
enum Work {
    /// Makes things of several kinds, each under an Idempotency-Key.
    Create,
    /// Starts runs, each under an Idempotency-Key.
    Start,
    /// Changes an assistant nobody else changes.
    Patch { id: String },
    /// Changes its list of tools.
    SetTools { id: String },
    /// Changes the assistant that others change, too.
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

/// A connection's work and the ledger of it.
struct Writer {
    number: u64,
    work: Work,
    count: u64,
    choices: Choices,
    /// Acknowledged creates: where they are read, and what was answered.
    made: BTreeMap<String, Value>,
    /// The last acknowledged state of an assistant of its own.
    last: Option<Value>,
    /// Acknowledged changes of the shared assistant, by revision.
    shared: BTreeMap<i64, Value>,
    /// Sent and not answered.
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

    fn next(&mut self, world: &World) -> Request {
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
            Work::Start => post(&format!("/simulations/{}/runs", world.simulation), json!({"seed": count})),
            Work::Patch { id } => change("PATCH", format!("/assistants/{id}"), assistant(&name, count)),
            Work::PatchShared => {
                change("PATCH", format!("/assistants/{}", world.shared), assistant(&name, count))
            }
            Work::SetTools { id } => {
                // A list that is never the one before: its length goes round.
                let length = (count as usize) % (TOOLS + 1);
                let start = self.choices.below(TOOLS as u64) as usize;
                let tools: Vec<&String> = world.tools.iter().cycle().skip(start).take(length).collect();
                change("PUT", format!("/assistants/{id}/tools"), json!({"tool_ids": tools}))
            }
        }
    }

    fn run(&mut self, client: &mut Client, world: &World, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let request = self.next(world);
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

fn load_until_killed(server: Server, key: &str, world: &World, writers: &mut [Writer], delay_ms: u64) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in writers {
            let mut client = server.connect(key);
            let over = &over;
            scope.spawn(move || writer.run(&mut client, world, over));
        }
        std::thread::sleep(Duration::from_millis(delay_ms));
        server.kill();
        over.store(true, Ordering::Relaxed);
    });
}

/// Everything over the API; returns how many writes were acknowledged so far.
fn check(client: &mut Client, world: &World, writers: &mut [Writer]) -> usize {
    let shared_before: usize = writers.iter().map(|writer| writer.shared.len()).sum();
    let shared_in_flight =
        writers.iter().filter(|w| matches!(w.work, Work::PatchShared) && w.in_flight.is_some()).count();
    check_shared(client, world, writers, shared_before, shared_in_flight);
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

/// What was in flight is done now, and twice gives the same answer.
fn check_retry(client: &mut Client, writer: &mut Writer, request: &Request) {
    let first = send(client, request).expect("the server answers");
    assert_eq!(first.status, 201, "{}: {}", request.path, first.json);
    let again = send(client, request).expect("the server answers");
    assert!(again.head.to_ascii_lowercase().contains("idempotent-replayed: true"), "{}", again.head);
    assert_eq!(again.json, first.json, "a replay repeats the answer");
    writer.acknowledge(request, first.json);
}

fn check_made(client: &mut Client, writer: &Writer) {
    for (path, made) in &writer.made {
        let mut now = client.expect(200, "GET", path, None);
        let mut made = made.clone();
        if matches!(writer.work, Work::Start) {
            now = finished(client, path, now);
            // These change as the run goes on.
            for field in [
                "status",
                "passed",
                "error",
                "started_at",
                "completed_at",
                "evaluations",
                "transcript",
                "call",
                "call_id",
                "turns",
                "last_line",
                "cost_microusd",
            ] {
                for run in [&mut now, &mut made] {
                    run.as_object_mut().expect("a run").remove(field);
                }
            }
        }
        // Shown once.
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

/// The last acknowledged state, or that with the change that was in flight, whole.
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
        assert_eq!(now, last, "unchanged in every field");
        return;
    }
    let request = in_flight.unwrap_or_else(|| panic!("changed without a change: {last} became {now}"));
    let mut expected = last.clone();
    for (name, value) in request.body.as_object().expect("a change") {
        expected[name] = value.clone();
    }
    expected["revision"] = (last["revision"].as_i64().expect("a revision") + 1).into();
    assert_eq!(facts(now), facts(&expected), "the change in flight, all of it");
}

/// Each acknowledged change has a revision of its own, and there are no others than those in flight.
fn check_shared(client: &mut Client, world: &World, writers: &mut [Writer], before: usize, in_flight: usize) {
    let mut all: BTreeMap<i64, Value> = BTreeMap::new();
    for writer in writers.iter() {
        for (revision, body) in &writer.shared {
            assert!(all.insert(*revision, body.clone()).is_none(), "two changes got revision {revision}");
        }
    }
    let now = client.expect(200, "GET", &format!("/assistants/{}", world.shared), None);
    let revision = now["revision"].as_i64().expect("a revision");
    let changes = usize::try_from(revision - 1).expect("revisions start at 1");
    assert!(
        (before..=before + in_flight).contains(&changes),
        "{before} + {in_flight} changes, revision {revision}"
    );
    let name = text(&now["name"]);
    assert_eq!(text(&now["instructions"]), format!("instructions of {name}"), "both fields of one change");
    match all.get(&revision) {
        Some(acknowledged) => assert_eq!(&now, acknowledged),
        None if revision > 1 => {
            let sent = writers.iter().filter_map(|writer| writer.in_flight.as_ref());
            assert!(sent.clone().any(|request| request.body["name"] == now["name"]), "{now}");
        }
        None => {}
    }
    // What was in flight and arrived counts as acknowledged from here on.
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

/// The file itself, as a backup of it taken while the server runs.
fn check_file(data: &Path, backup: &Path, world: &World, writers: &[Writer]) {
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
    assert!(!broken, "every reference leads somewhere");
    let none = |what: &str, sql: &str| assert_eq!(one(sql), "Integer(0)", "{what}");
    none("a guard held nothing", "SELECT COUNT(*) FROM batch_guard");
    none(
        "an unfinished run has its job",
        "SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running') AND id NOT IN (SELECT subject_id FROM jobs)",
    );
    none(
        "a run has its snapshots",
        "SELECT COUNT(*) FROM runs WHERE assistant_snapshot NOT IN (SELECT id FROM snapshots)
         OR simulation_snapshot NOT IN (SELECT id FROM snapshots)",
    );
    none(
        "a list of tools has no gap",
        "SELECT COUNT(*) FROM (SELECT MAX(position) + 1 AS length, COUNT(*) AS rows FROM assistant_tools GROUP BY assistant_id)
         WHERE length <> rows",
    );
    none("a name is there once", "SELECT COUNT(*) - COUNT(DISTINCT name) FROM tools");
    // One row for each create, whether it was answered before the kill or on the second try.
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
    assert_eq!(one(rows), format!("Integer({})", created + owned + world.tools.len() + 2));
    let started = made(|work| matches!(work, Work::Start));
    assert_eq!(one("SELECT COUNT(*) FROM runs"), format!("Integer({started})"));
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}
