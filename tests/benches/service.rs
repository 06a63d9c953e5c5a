//! The cost of the service, compared with a minimal server. Run with
//! `cargo bench -p sidetone-tests`; `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! Ours is the release binary in its own process. The bare server is this program again, in another
//! process: axum and rusqlite, one route, one cached statement, no key, no checks, on a
//! copy of the same database. Both get the same load in short turns, A B A B, and the median turn
//! counts, so that noise on the machine affects both.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "support/bare.rs"]
mod bare;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone_tests::compare::{Comparison, compare, cpu_s};
use sidetone_tests::load::{Load, requests};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};

const LIST_ROWS: usize = 50;
const READ_CONNECTIONS: usize = 32;
const WRITE_CONNECTIONS: usize = 64;
const TURN_MS: u64 = 400;
const QUEUES: [usize; 4] = [10, 100, 1_000, 10_000];
/// The number of runs that one request queues.
const BATCH_RUNS: usize = 1_000;
/// Parallel sandboxes, runs in each, number of tries, and the required turns per second.
const CORES: usize = 2;
const CORE_RUNS: usize = 1_000;
const CORE_TRIES: usize = 5;
const TWO_CORES_TURNS_MIN: f64 = 20_000.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["bare", database] => bare::serve(Path::new(database)),
        words if words.contains(&"--bench") => measure(),
        _ => {
            println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
            ExitCode::SUCCESS
        }
    }
}

fn measure() -> ExitCode {
    let folder = Folder::new();
    let (ours, bare) = start(folder.path());
    let list = ours.server.connect(&ours.key).expect(200, "GET", "/assistants", None);
    let ids: Vec<String> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["id"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(ids.len(), LIST_ROWS, "the list contains all rows");
    check_same(&ours, &bare, &ids);

    let mut report = Report::default();
    println!("{:<44} {:>10} {:>10} {:>7}  bound", "", "ours", "bare", "ratio");
    let gets: Vec<String> = ids.iter().map(|id| format!("/assistants/{id}")).collect();
    let gets: Vec<&str> = gets.iter().map(String::as_str).collect();
    report.reads("GET /assistants/{id}, 32 connections", &ours, &bare, &gets);
    report.reads("GET /assistants (50 rows), 32 connections", &ours, &bare, &["/assistants"]);
    report.tool_call(&ours, &ids);
    report.creates(&ours, &bare, folder.path());
    report.memory(&ours.server, "Peak memory of our process so far");
    report.turns_in_memory();
    report.turns_on_two_cores();
    report.turns_on_the_binary(&ours);
    let status = ours.server.stop();
    assert!(status.success(), "the server stops cleanly");
    report.end()
}

struct Ours {
    server: Server,
    /// The workspace for reads.
    key: String,
    /// The workspace for creates under load.
    writer_key: String,
    /// The workspace for simulations.
    simulation_key: String,
}

/// Both servers with the same content: created by ours, then copied.
fn start(folder: &Path) -> (Ours, Server) {
    let keys = [bootstrap_key(1), bootstrap_key(2), bootstrap_key(3)];
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", keys.join(","))];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (data, copy) = (folder.join("ours"), folder.join("bare.db"));
    let [key, writer_key, simulation_key] = keys;

    let server = Server::start(&data, &settings);
    fill(&mut server.connect(&key));
    assert!(server.stop().success(), "the server stops cleanly");
    std::fs::copy(data.join("sidetone.db"), &copy).expect("the database can be copied");

    let server = Server::start(&data, &settings);
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    let bare = Server::spawn(command.arg("bare").arg(&copy), folder.join("bare.log"));
    (Ours { server, key, writer_key, simulation_key }, bare)
}

/// Creates realistic assistants: a page of instructions and two tools.
fn fill(client: &mut Client) {
    let mut tools = Vec::new();
    for name in ["look_up_order", "book_visit"] {
        let tool = json!({"name": name, "url": "https://example.com/tool"});
        tools.push(client.expect(201, "POST", "/tools", Some(&tool))["id"].clone());
    }
    for number in 0..LIST_ROWS {
        let id = client.expect(201, "POST", "/assistants", Some(&assistant(number)))["id"].clone();
        let path = format!("/assistants/{}/tools", id.as_str().expect("an id"));
        client.expect(200, "PUT", &path, Some(&json!({"tool_ids": tools})));
    }
}

fn assistant(number: usize) -> Value {
    let instructions = "You answer the telephone of a bicycle shop. Be brief and kind. ".repeat(16);
    json!({"name": format!("Front desk {number}"), "instructions": instructions,
        "first_message": "Good morning, what can I do for you?"})
}

fn check_same(ours: &Ours, bare: &Server, ids: &[String]) {
    let paths = ids.iter().map(|id| format!("/assistants/{id}")).chain(["/assistants".to_owned()]);
    let (mut a, mut b) = (ours.server.connect(&ours.key), bare.connect(&ours.key));
    for path in paths {
        let (ours, bare) = (a.expect(200, "GET", &path, None), b.expect(200, "GET", &path, None));
        assert_eq!(ours.to_string(), bare.to_string(), "both return the same bytes");
    }
}

#[derive(Default)]
struct Report {
    missed: Vec<String>,
}

impl Report {
    fn reads(&mut self, title: &str, ours: &Ours, bare: &Server, paths: &[&str]) {
        let load = |server: &Server| Load {
            address: server.address(),
            connections: READ_CONNECTIONS,
            time: Duration::from_millis(TURN_MS),
            requests: requests("GET", paths, &ours.key, &[]),
            status: 200,
        };
        let result = compare(&load(&ours.server), ours.server.pid(), &load(bare), bare.pid());
        self.row(title, result.ours.rate, result.other.rate, "req/s", result.ratio, Some((">=", 0.8)));
        result.print();
    }

    fn tool_call(&mut self, ours: &Ours, ids: &[String]) {
        let bodies: Vec<Value> = ids
            .iter()
            .map(|id| {
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": "get_assistant", "arguments": {"id": id}}})
            })
            .collect();
        let paths: Vec<String> = ids.iter().map(|id| format!("/assistants/{id}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let rest = Load {
            address: ours.server.address(),
            connections: READ_CONNECTIONS,
            time: Duration::from_millis(TURN_MS),
            requests: requests("GET", &paths, &ours.key, &[]),
            status: 200,
        };
        let tool = Load { requests: requests("POST", &["/mcp"], &ours.key, &bodies), ..rest.clone() };
        let pid = ours.server.pid();
        let result = compare(&tool, pid, &rest, pid);
        let title = "tools/call get_assistant (bare column: GET)";
        let (tool_us, rest_us) = (1e6 / result.ours.rate, 1e6 / result.other.rate);
        self.row(title, tool_us, rest_us, "us/req", 1.0 / result.ratio, Some(("<=", 1.3)));
        result.print();
    }

    fn creates(&mut self, ours: &Ours, bare: &Server, folder: &Path) {
        let before_us = sync_us(folder);
        let bodies: Vec<Value> = (0..LIST_ROWS).map(assistant).collect();
        let load = |server: &Server| Load {
            address: server.address(),
            connections: WRITE_CONNECTIONS,
            time: Duration::from_millis(TURN_MS),
            requests: requests("POST", &["/assistants"], &ours.writer_key, &bodies),
            status: 201,
        };
        let result = compare(&load(&ours.server), ours.server.pid(), &load(bare), bare.pid());
        let Comparison { ours: a, other: b, ratio } = &result;
        self.row("POST /assistants, 64 connections", a.rate, b.rate, "req/s", *ratio, Some((">=", 3.0)));
        result.print();
        println!(
            "  bound by the disk: one commit takes {:.0} us (bare makes one a request; a lone 4 KiB append with fdatasync: {before_us:.0} us before, {:.0} us after), ours shares it among {ratio:.1} requests; ours uses {:.2} cores, bare {:.2}",
            1e6 / b.rate,
            sync_us(folder),
            a.rate * a.cpu_us / 1e6,
            b.rate * b.cpu_us / 1e6,
        );
    }

    fn memory(&mut self, server: &Server, title: &str) {
        let peak = peak_mb(server.pid());
        self.row(title, peak, f64::NAN, "MB", peak, Some(("<", 100.0)));
    }

    /// The cost of the engine itself: one thread, database in memory.
    fn turns_in_memory(&mut self) {
        for runs in QUEUES {
            let (sandbox, queued) = queue_in_memory(runs);
            let started = Instant::now();
            assert_eq!(sandbox.run_jobs(), runs, "every run has its job");
            let time = started.elapsed();
            self.turns(
                "in memory, one thread",
                runs,
                turns_of(&completed(&sandbox, &queued[runs / 2])),
                time,
            );
        }
    }

    /// Two sandboxes, each on its own thread, from the first start to the last end. The best of some tries counts, because
    /// other load on the machine only makes it slower.
    fn turns_on_two_cores(&mut self) {
        let all_turns = CORES * CORE_RUNS * {
            let (sandbox, queued) = queue_in_memory(1);
            sandbox.run_jobs();
            turns_of(&completed(&sandbox, &queued[0]))
        };
        let one_try = || {
            let together = Barrier::new(CORES);
            let core = || {
                let (sandbox, queued) = queue_in_memory(CORE_RUNS);
                together.wait();
                let started = Instant::now();
                assert_eq!(sandbox.run_jobs(), CORE_RUNS, "every run has its job");
                let ended = Instant::now();
                completed(&sandbox, &queued[CORE_RUNS - 1]);
                (started, ended)
            };
            let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..CORES).map(|_| scope.spawn(core)).collect();
                threads.into_iter().map(|thread| thread.join().expect("the runs complete")).collect()
            });
            let first = times.iter().map(|(started, _)| *started).min().expect("a thread");
            let last = times.iter().map(|(_, ended)| *ended).max().expect("a thread");
            all_turns as f64 / (last - first).as_secs_f64()
        };
        let rate = (0..CORE_TRIES).map(|_| one_try()).fold(0.0, f64::max);
        let bound = Some((">=", TWO_CORES_TURNS_MIN));
        self.row("Simulated turns, two cores", rate, f64::NAN, "turns/s", rate, bound);
    }

    /// On the binary, from the request that queues the runs to the end of the last run.
    fn turns_on_the_binary(&mut self, ours: &Ours) {
        let mut client = ours.server.connect(&ours.simulation_key);
        for runs in QUEUES {
            let simulations = runs.min(BATCH_RUNS);
            let client = std::cell::RefCell::new(&mut client);
            let create = |path: &str, body: Value| {
                client.borrow_mut().expect(201, "POST", path, Some(&body))["id"].clone()
            };
            let first = simulation(&create);
            let get = |path: &str| client.borrow_mut().expect(200, "GET", path, None);
            let made = get(&format!("/simulations/{}", text(&first)));
            let copy = json!({"assistant_id": made["assistant_id"], "persona_id": made["persona_id"],
                "scenario_id": made["scenario_id"], "name": "copy"});
            for _ in 1..simulations {
                create("/simulations", copy.clone());
            }
            let body = json!({"assistant_id": made["assistant_id"], "seed": 1});
            let cpu = cpu_s(ours.server.pid());
            let started = Instant::now();
            let mut last = Value::Null;
            for _ in 0..runs / simulations {
                let path = "/simulations/runs/batch";
                let batch = client.borrow_mut().expect(201, "POST", path, Some(&body));
                last = batch["runs"][simulations - 1]["id"].clone();
            }
            let unfinished = |status: &str| {
                let page = get(&format!("/simulations/runs?status={status}&limit=1"));
                page["pagination"]["total"].as_u64().expect("a total")
            };
            while unfinished("queued") + unfinished("running") > 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            let time = started.elapsed();
            let cpu = cpu_s(ours.server.pid()) - cpu;
            let run = get(&format!("/simulations/runs/{}", text(&last)));
            assert_eq!(run["status"], "completed", "{run}");
            self.turns("on the binary", runs, turns_of(&run), time);
            println!(
                "  {:.2} cores busy, {:.0} us of CPU a run",
                cpu / time.as_secs_f64(),
                cpu * 1e6 / runs as f64
            );
        }
    }

    fn turns(&mut self, place: &str, runs: usize, turns: usize, time: Duration) {
        let rate = (runs * turns) as f64 / time.as_secs_f64();
        let run_us = time.as_secs_f64() * 1e6 / runs as f64;
        let title = format!("Simulated turns, {runs} queued runs");
        println!("{title:<44} {rate:>10.0} turns/s {place}: {turns} turns and {run_us:.0} us a run");
    }

    fn row(
        &mut self,
        title: &str,
        ours: f64,
        other: f64,
        unit: &str,
        ratio: f64,
        bound: Option<(&'static str, f64)>,
    ) {
        let shown = |value: f64| if value.is_nan() { "-".to_owned() } else { format!("{value:.0}") };
        let verdict = match bound {
            None => String::new(),
            Some((sign, limit)) => {
                let holds = match sign {
                    ">=" => ratio >= limit,
                    "<=" => ratio <= limit,
                    _ => ratio < limit,
                };
                if !holds {
                    self.missed.push(title.to_owned());
                }
                format!("{sign} {limit} {}", if holds { "holds" } else { "MISSED" })
            }
        };
        println!("{title:<44} {:>10} {:>10} {ratio:>7.2}  {verdict} ({unit})", shown(ours), shown(other));
    }

    fn end(self) -> ExitCode {
        if self.missed.is_empty() {
            println!("all bounds hold");
            return ExitCode::SUCCESS;
        }
        println!("missed: {}", self.missed.join("; "));
        match std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() {
            Ok("1") => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        }
    }
}

/// A Sandbox with this number of queued runs, and their ids.
fn queue_in_memory(runs: usize) -> (Sandbox, Vec<Value>) {
    let sandbox = Sandbox::new();
    let create = |path: &str, body: Value| {
        let reply = sandbox.post(path, body);
        assert_eq!(reply.status, 201, "{}", reply.json);
        reply.json["id"].clone()
    };
    let simulation = simulation(&create);
    let path = format!("/simulations/{}/runs", text(&simulation));
    let queued: Vec<Value> = (0..runs).map(|seed| create(&path, json!({ "seed": seed }))).collect();
    (sandbox, queued)
}

fn completed(sandbox: &Sandbox, id: &Value) -> Value {
    let run = sandbox.get(&format!("/simulations/runs/{}", text(id))).json;
    assert_eq!(run["status"], "completed", "{run}");
    run
}

/// An assistant with knowledge, a caller with questions, and evaluations.
fn simulation(create: &dyn Fn(&str, Value) -> Value) -> Value {
    let assistant = create("/assistants", assistant(0));
    let persona = create("/simulations/personas", json!({"name": "Ada", "system_prompt": "You are brief."}));
    let scenario = create(
        "/simulations/scenarios",
        json!({"name": "Hours",
        "instructions": "Say \"Good morning\". Ask \"When are you open on Saturday?\" Then ask \"Do you repair gears?\"",
        "evaluations": [
            {"kind": "transcript", "role": "user", "includes": "open on Saturday"},
            {"kind": "judge", "role": "assistant", "includes": "The assistant never says sorry."},
        ]}),
    );
    create(
        "/simulations",
        json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario, "name": "hours"}),
    )
}

fn turns_of(run: &Value) -> usize {
    let spoken = |row: &&Value| matches!(row["role"].as_str(), Some("user" | "assistant"));
    run["call"]["transcript"].as_array().into_iter().flatten().filter(spoken).count()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The median time of a small durable append, on the file system of the databases.
fn sync_us(folder: &Path) -> f64 {
    use std::io::Write;
    const TRIES: usize = 200;
    let mut file = std::fs::File::create(folder.join("sync")).expect("the folder can be written");
    let mut times: Vec<f64> = (0..TRIES)
        .map(|_| {
            let started = Instant::now();
            file.write_all(&[7; 4096]).expect("the file can be written");
            file.sync_data().expect("the file can be synced");
            started.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[TRIES / 2]
}

/// The peak memory of a process (Linux only; NaN elsewhere).
fn peak_mb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}
