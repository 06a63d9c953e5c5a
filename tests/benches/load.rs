//! A thousand telephone calls at once, and what bounds them. Run with `cargo bench -p sidetone-tests --bench load`;
//! `-- tone 500` plays one kind (see [`KINDS`]) with so many calls, and `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The release binary runs in its own process. This process plays the carrier (Twilio's media streams: a frame every 20 ms in
//! both directions, of every call), callers who speak every eight seconds, and a server for transcription, model and voice that
//! answers each request after 100 ms. Both share the machine's cores, and what this process takes of them has a column of its
//! own. Beside the service, the same callers talk with one worker of Pipecat and one of rustvani.
//!
//! Our share of a turn is what remains between the transcriber's answer and the first audio on the line. A frame of the answer
//! is due at the carrier when the frame before it was played, and the first one when the provider of the voice had handed it
//! over.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
#[path = "load/callers.rs"]
mod callers;
#[path = "support/desk.rs"]
mod desk;
#[path = "load/line.rs"]
mod line;
#[path = "support/speech_stand_in.rs"]
mod speech_stand_in;
#[path = "support/workerd.rs"]
mod workerd;
#[path = "load/workers.rs"]
mod workers;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use callers::{Measured, Plan, TURN};
use desk::quantile_us;
use line::Speech;
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_engine::speech::tone::ToneEncoder;
use speech_stand_in::StandIn;
use workers::{Edge, Other, Sidetone, Voices, Worker};

const CALLS: usize = 1_000;
/// Where the bounds are missed with so many calls, because callers and service share the cores: the share of them that is tried
/// next, in percent.
const FEWER: [usize; 5] = [80, 65, 50, 40, 30];
/// Calls of another framework's worker, until it is late.
const OTHERS_CALLS: [usize; 12] = [1, 5, 10, 15, 20, 25, 30, 40, 60, 100, 150, 200];
/// Calls at the edge: an isolate has one thread, and the platform spreads calls over isolates.
const EDGE_CALLS: usize = 20;
const SHARE_P99_MS: f64 = 100.0;
const LATE_PERCENT: f64 = 0.1;
const CPU_S_PER_CALL_MINUTE: f64 = 0.1;
const KB_PER_CALL: u64 = 300;
const SAID_MS: i64 = 1_200;
/// What callers say in the tone code.
const SAID: &str = "When do you open?";
/// Calls that nobody counts, so that what a process needs once is no part of the measurement.
const WARM_UP_CALLS: usize = 20;
/// No bound on the audio that is late: all calls are taken.
const TAKES_ALL: (&str, &str) = ("SIDETONE_LATE_PERCENT", "100");

/// A name, and what plays it with so many calls; whether the bounds were kept.
type Kind = (&'static str, fn(Option<usize>) -> bool);

/// What can be played.
const KINDS: [Kind; 6] = [
    ("tone", tone),
    ("providers", providers),
    ("overload", overload),
    ("edge", edge),
    ("pipecat", pipecat),
    ("rustvani", rustvani),
];

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let calls = wanted.iter().find_map(|word| word.parse().ok());
    println!(
        "on {} cores, shared by both sides",
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    println!(
        "{:<30} {:>5} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8} {:>6} {:>6} {:>7} {:>8}",
        "",
        "calls",
        "busy",
        "share50",
        "share99",
        "reply50",
        "reply99",
        "late %",
        "latest",
        "CPU s/m",
        "KB",
        "cores",
        "callers",
        "sent p99"
    );
    let is_wanted = |name: &str| wanted.iter().all(|word| word.parse::<usize>().is_ok() || word == name);
    let mut kept = true;
    for (name, play) in KINDS {
        kept &= !is_wanted(name) || play(calls);
    }
    println!("all bounds: {}", if kept { "kept" } else { "MISSED" });
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The service alone: no provider.
fn tone(calls: Option<usize>) -> bool {
    let plan = Plan::steady(calls.unwrap_or(CALLS));
    let measured = sidetone(Voices::Tone, plan, &[TAKES_ALL]);
    row("builtin/tone", &measured);
    keeps(&measured)
}

/// With providers, and if both sides do not fit on the cores, with fewer calls, until they do.
fn providers(calls: Option<usize>) -> bool {
    let most = calls.unwrap_or(CALLS);
    let fewer = if calls.is_some() { &[][..] } else { &FEWER[..] };
    let counts = std::iter::once(most).chain(fewer.iter().map(|percent| most * percent / 100));
    let mut all_kept = true;
    for count in counts {
        let measured = sidetone(Voices::Provider, Plan::steady(count), &[TAKES_ALL]);
        row("providers", &measured);
        if keeps(&measured) {
            return all_kept;
        }
        all_kept = false;
    }
    all_kept
}

/// More calls than the process can bear, with the default settings: the further ones are declined.
fn overload(calls: Option<usize>) -> bool {
    let calls = calls.unwrap_or(CALLS * 2);
    let ramp = TURN * 10;
    let plan = Plan { calls, first: 0, ramp, after: TURN * 2, measured: ramp };
    let measured = sidetone(Voices::Provider, plan, &[]);
    row(&format!("{calls} offered, default settings"), &measured);
    measured.declined > 0 && measured.late_percent() <= LATE_PERCENT
}

/// The Worker in workerd, where each call is a Durable Object. What workerd stores for D1 and R2 is in its CPU.
fn edge(calls: Option<usize>) -> bool {
    if !workerd::is_built() {
        println!("the edge is left out: `.ci/worker` has not built the Worker");
        return true;
    }
    let calls = calls.unwrap_or(EDGE_CALLS);
    let mut all_kept = true;
    for (name, voices) in [("edge, builtin/tone", Voices::Tone), ("edge, providers", Voices::Provider)] {
        let stand_in = Arc::new(StandIn::start(usize::MAX));
        let worker: Arc<dyn Worker> = Arc::new(Edge::start(&stand_in, voices, calls + WARM_UP_CALLS));
        let measured = warmed_up(&worker, &stand_in, || speech(voices), Plan::steady(calls));
        row(name, &measured);
        all_kept &= measured.errors == 0 && measured.late_percent() <= LATE_PERCENT;
    }
    all_kept
}

fn sidetone(voices: Voices, plan: Plan, settings: &[(&'static str, &str)]) -> Measured {
    let stand_in = Arc::new(StandIn::start(usize::MAX));
    let worker: Arc<dyn Worker> =
        Arc::new(Sidetone::start(&stand_in, voices, plan.calls + WARM_UP_CALLS, settings));
    warmed_up(&worker, &stand_in, || speech(voices), plan)
}

fn speech(voices: Voices) -> Speech {
    Speech::new(&match voices {
        Voices::Provider => speech_like(SAID_MS, Rate::Khz8, 120.0),
        Voices::Tone => ToneEncoder::speak(SAID, Rate::Khz8),
    })
}

fn warmed_up(
    worker: &Arc<dyn Worker>,
    stand_in: &Arc<StandIn>,
    speech: impl Fn() -> Speech,
    plan: Plan,
) -> Measured {
    let calls = WARM_UP_CALLS.min(plan.calls);
    let warm_up = Plan {
        calls,
        first: plan.calls,
        ramp: Duration::from_secs(1),
        after: Duration::ZERO,
        measured: TURN * 2,
    };
    callers::play(worker.clone(), stand_in.clone(), speech(), warm_up);
    std::thread::sleep(Duration::from_secs(2));
    let mut measured = callers::play(worker.clone(), stand_in.clone(), speech(), plan);
    measured.shown.extend(worker.remarks());
    measured
}

/// One worker of Pipecat, with more and more calls until it is late.
fn pipecat(calls: Option<usize>) -> bool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new(here.join("../.ci/python-env"))
        .arg(here.join("benches/load/requirements-pipecat.txt"))
        .output();
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        println!("pipecat is left out: `.ci/python-env tests/benches/load/requirements-pipecat.txt` fails");
        return true;
    };
    let python = Path::new(String::from_utf8_lossy(&made.stdout).trim()).join("python");
    others("pipecat", calls, || {
        let mut command = Command::new(&python);
        command.arg(here.join("benches/load/pipecat_worker.py"));
        command
    });
    true
}

/// One process of rustvani, likewise. It is no part of the workspace.
fn rustvani(calls: Option<usize>) -> bool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/load/rustvani_worker");
    let program = std::env::current_exe().expect("this program has a path");
    let target = program.ancestors().nth(3).expect("benchmarks are in target/release/deps").join("rustvani");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(&target);
    // Models that its build would fetch from the network, and that this pipeline does not use, are missing then.
    cargo
        .arg("--manifest-path")
        .arg(here.join("Cargo.toml"))
        .env("RUSTVANI_CACHE_DIR", target.join("models"));
    if !cargo.status().is_ok_and(|status| status.success()) {
        println!("rustvani is left out: it does not build");
        return true;
    }
    others("rustvani", calls, || Command::new(target.join("release/rustvani-worker")));
    true
}

fn others(name: &str, calls: Option<usize>, command: impl Fn() -> Command) {
    let counts = calls.map_or(OTHERS_CALLS.to_vec(), |calls| vec![calls]);
    let mut usual_ms = f64::INFINITY;
    for count in counts {
        let stand_in = Arc::new(StandIn::start(usize::MAX));
        let worker: Arc<dyn Worker> = Arc::new(Other::start(&mut command(), &stand_in));
        let measured = warmed_up(&worker, &stand_in, || speech(Voices::Provider), Plan::steady(count));
        row(name, &measured);
        usual_ms = usual_ms.min(quantile_us(&measured.replies, 0.5) / 1e3);
        let reply_ms = quantile_us(&measured.replies, 0.99) / 1e3;
        let is_on_time = reply_ms <= usual_ms + SHARE_P99_MS;
        if !is_on_time || measured.late_percent() > LATE_PERCENT || measured.errors > 0 {
            return;
        }
    }
}

fn keeps(measured: &Measured) -> bool {
    let shares = &measured.shares;
    (shares.is_empty() || quantile_us(shares, 0.99) / 1e3 <= SHARE_P99_MS)
        && measured.late_percent() <= LATE_PERCENT
        && measured.cpu_s_per_call_minute <= CPU_S_PER_CALL_MINUTE
        && measured.kb_per_call <= KB_PER_CALL
        && measured.errors == 0
}

fn row(what: &str, measured: &Measured) {
    let ms = |times: &[Duration], share| quantile_us(times, share) / 1e3;
    let [share_50, share_99] = [0.5, 0.99].map(|share| ms(&measured.shares, share));
    let [reply_50, reply_99] = [0.5, 0.99].map(|share| ms(&measured.replies, share));
    println!(
        "{what:<30} {:>5} {:>6} {share_50:>7.1} {share_99:>7.1} {reply_50:>7.0} {reply_99:>7.0} {:>7.3} {:>7.0} {:>8.4} {:>6} {:>6.2} {:>7.2} {:>8.1}",
        measured.taken,
        measured.declined,
        measured.late_percent(),
        measured.latest.as_secs_f64() * 1e3,
        measured.cpu_s_per_call_minute,
        measured.kb_per_call,
        measured.cores,
        measured.generator_cores,
        ms(&measured.sent_late, 0.99),
    );
    if measured.errors > 0 {
        println!("  {} errors", measured.errors);
    }
    measured.shown.iter().for_each(|line| println!("  {line}"));
}
