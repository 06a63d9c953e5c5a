//! Runs simulations on all cores. Which core runs what changes nothing in a run: each has its seed and virtual time.
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::service::{Service, problem};
use super::{Options, Ran, Report, Verdict};
use crate::as_code::failure::Failure;
use crate::as_code::folder::{Folder, shown};
use crate::as_code::kind::Kind;

/// Runs that are started together.
const TOGETHER: usize = 16;
/// Runs of one service in memory; then a new one begins, so that memory is bounded.
const RUNS_PER_SERVICE: usize = 256;
/// Times that the clock is moved on for runs that wait.
const WAITS_MAX: usize = 120;
/// The time of `{{now}}` in all runs.
const NOW: &str = "2026-01-01T00:00:00.000Z";
/// How often progress is shown on a terminal, and elsewhere.
const PROGRESS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// A simulation, by the stems of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case<'a> {
    /// The assistant's comes first: what is run together has few assistants.
    pub assistant: &'a str,
    /// The simulation's.
    pub simulation: &'a str,
    /// The persona's.
    pub persona: &'a str,
    /// The scenario's.
    pub scenario: &'a str,
}

impl<'a> Case<'a> {
    /// All names by which it is found.
    pub const fn names(&self) -> [&'a str; 4] {
        [self.simulation, self.assistant, self.persona, self.scenario]
    }
}

/// What ran, and the failure with the number of its part: parts begin in order, so the first that fails is always the same.
type Done = (Vec<Ran>, Option<(usize, Failure)>);

/// Runs all cases, each as often as is asked for.
pub fn run(folder: &Folder, cases: &mut [Case<'_>], options: &Options) -> Result<Report, Failure> {
    let started = Instant::now();
    cases.sort_unstable();
    let all: Vec<(Case<'_>, i64)> = cases
        .iter()
        .flat_map(|case| (0..options.repeat).map(|number| (*case, options.seed.saturating_add(number))))
        .collect();
    let parts: Vec<&[(Case<'_>, i64)]> = all.chunks(TOGETHER).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from).min(parts.len());
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done: Mutex<Done> = Mutex::default();
    let lock = || done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        parts.get(number).map(|part| (number, *part))
    };
    thread::scope(|scope| {
        let work = || {
            let mut service = Service::new(folder, options.model.as_deref());
            let mut ran = 0;
            while let Some((number, part)) = take() {
                if ran + part.len() > RUNS_PER_SERVICE {
                    service = Service::new(folder, options.model.as_deref());
                    ran = 0;
                }
                ran += part.len();
                match run_part(&mut service, part) {
                    Ok(mut runs) => {
                        // Of runs that are well, only the report for programs has more than the result.
                        if options.json.is_none() {
                            for run in runs.iter_mut().filter(|run| !run.verdict.is_bad()) {
                                run.transcript = Vec::new();
                                run.evaluations = Vec::new();
                            }
                        }
                        lock().0.extend(runs);
                    }
                    Err(failure) => {
                        next.store(parts.len(), Ordering::Relaxed);
                        let mut done = lock();
                        if done.1.as_ref().is_none_or(|(first, _)| number < *first) {
                            done.1 = Some((number, failure));
                        }
                    }
                }
            }
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        scope.spawn(|| {
            show_progress(all.len(), &is_over, &|| {
                let done = lock();
                (done.0.len(), done.0.iter().filter(|run| run.verdict.is_bad()).count())
            })
        });
        let ended: Vec<bool> = workers.into_iter().map(|worker| worker.join().is_ok()).collect();
        is_over.store(true, Ordering::Relaxed);
        if ended.contains(&false) {
            lock().1.get_or_insert_with(|| {
                (usize::MAX, Failure::new("the service in memory failed; the lines above say where"))
            });
        }
    });
    let (mut runs, failure) = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, failure)) = failure {
        return Err(failure);
    }
    runs.sort_by(|one, other| (&one.simulation, one.seed).cmp(&(&other.simulation, other.seed)));
    Ok(Report { runs, seconds: started.elapsed().as_secs_f64(), cores })
}

fn run_part<'a>(service: &mut Service<'a>, part: &[(Case<'a>, i64)]) -> Result<Vec<Ran>, Failure> {
    let mut runs = Vec::with_capacity(part.len());
    for (case, seed) in part {
        let id = service.id(Kind::Simulation, case.simulation)?;
        let has_now = service.states_now(case.scenario);
        let mut body = json!({"mode": "chat", "seed": seed});
        if !has_now {
            body["variables"] = json!({"now": NOW});
        }
        runs.push((case, *seed, service.sandbox.post(&format!("/simulations/{id}/runs"), body)));
    }
    service.sandbox.run_jobs();
    let mut ended = Vec::with_capacity(part.len());
    for (case, seed, start) in runs {
        let mut reply = start.json;
        if start.status == 201 {
            let path = format!("/simulations/runs/{}", reply["id"].as_str().unwrap_or_default());
            reply = service.sandbox.get(&path).json;
            for _ in 0..WAITS_MAX {
                if !matches!(reply["status"].as_str(), Some("queued" | "running")) {
                    break;
                }
                service.sandbox.advance(1_000);
                service.sandbox.run_jobs();
                reply = service.sandbox.get(&path).json;
            }
        }
        ended.push(ran(case, seed, &mut reply));
    }
    // What was asked of endpoints is of no use here.
    service.sandbox.sent_http();
    Ok(ended)
}

/// A run as the service tells it, or why it could not start.
fn ran(case: &Case<'_>, seed: i64, reply: &mut Value) -> Ran {
    let list = |value: Value| match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let evaluations = list(reply["evaluations"].take());
    let mut transcript = list(reply["call"]["transcript"].take());
    // Ids of tool calls begin with the run's, which depends on what its core ran before.
    for id in transcript.iter_mut().filter_map(|row| row.get_mut("tool_call_id")) {
        let number = id.as_str().and_then(|id| id.rsplit_once('_')).map(|(_, number)| json!(number));
        *id = number.unwrap_or_default();
    }
    let unused = list(reply["mocks_unused"].take());
    let (verdict, reason) = match (reply["status"].as_str(), reply["passed"].as_bool()) {
        (Some("completed"), Some(true)) => (Verdict::Passed, String::new()),
        (Some("completed"), Some(false)) => (Verdict::Failed, decisive(&evaluations, &json!(false))),
        (Some("completed"), None) if evaluations.is_empty() => {
            (Verdict::NotEvaluated, format!("{} has no evaluations", shown(Kind::Scenario, case.scenario)))
        }
        (Some("completed"), None) => (Verdict::Undecided, decisive(&evaluations, &Value::Null)),
        (Some("error"), _) => {
            let error = &reply["error"];
            (Verdict::Error, error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned))
        }
        (Some(status), _) => (Verdict::Error, format!("the run does not end; it is {status}")),
        (None, _) => (Verdict::Error, problem(reply)),
    };
    Ran {
        simulation: case.simulation.to_owned(),
        assistant: case.assistant.to_owned(),
        persona: case.persona.to_owned(),
        scenario: case.scenario.to_owned(),
        seed,
        verdict,
        reason,
        evaluations,
        transcript,
        mocks_unused: unused.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        duration_ms: reply["call"]["duration_ms"].as_i64().unwrap_or_default(),
    }
}

/// The reason of the first evaluation with this result.
fn decisive(evaluations: &[Value], passed: &Value) -> String {
    let found = evaluations.iter().position(|evaluation| evaluation["passed"] == *passed);
    found.map_or_else(String::new, |place| super::transcript::evaluation(place, &evaluations[place]))
}

/// How far it is, on standard error.
fn show_progress(all: usize, is_over: &AtomicBool, count: &dyn Fn() -> (usize, usize)) {
    let is_terminal = io::stderr().is_terminal();
    let pause = if is_terminal { PROGRESS[0] } else { PROGRESS[1] };
    let mut shown_at = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
        if shown_at.elapsed() < pause {
            continue;
        }
        shown_at = Instant::now();
        let (done, bad) = count();
        let line = format!("{done} of {all} runs, {bad} did not pass");
        // A reader that went away is no reason to stop.
        let _ = match is_terminal {
            true => write!(io::stderr(), "\r{line} \u{1b}[K"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }
    if is_terminal {
        let _ = write!(io::stderr(), "\r\u{1b}[K");
    }
}
