//! `sidetone test`: runs a folder's simulations in this process, in parallel, and says which did not pass.
mod json;
mod junit;
mod models;
mod runner;
mod service;
mod transcript;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::failure::Failure;
use super::folder::shown;
use super::kind::Kind;
use super::show::Paint;
use super::{DONE, FINDINGS, existing, lock, say};
use crate::data::resolved;
use crate::text::clean;

/// Failed runs whose transcripts are printed; the reports have all.
const TRANSCRIPTS_MAX: usize = 20;

/// What is run, and what is written about it.
#[derive(Debug, Args)]
pub struct Options {
    /// The folder.
    #[arg(default_value = ".")]
    pub(super) folder: PathBuf,
    /// Only simulations whose file, or whose assistant's, persona's or scenario's file, has this in its name. May be repeated.
    #[arg(long)]
    filter: Vec<String>,
    /// The seed of the first run of each simulation.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i64).range(0..=1_000_000_000_000))]
    seed: i64,
    /// How often each simulation is run, with seeds one after the other.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    repeat: i64,
    /// A built-in model in place of those of assistants, personas and judges, such as builtin/rules.
    #[arg(long)]
    model: Option<String>,
    /// Write a report in the format of JUnit, which CI systems show.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a report as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// All evaluations passed.
    Passed,
    /// One did not.
    Failed,
    /// None failed, and one could not be decided.
    Undecided,
    /// There is none.
    NotEvaluated,
    /// The run itself failed.
    Error,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
            Self::NotEvaluated => "not_evaluated",
            Self::Error => "error",
        }
    }

    /// How people read it.
    const fn label(self) -> &'static str {
        match self {
            Self::NotEvaluated => "without evaluations",
            Self::Error => "with an error",
            other => other.word(),
        }
    }

    /// Whether it makes the command fail.
    const fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Undecided | Self::Error)
    }
}

/// A run.
#[derive(Debug)]
struct Ran {
    /// The stems of its files.
    simulation: String,
    assistant: String,
    persona: String,
    scenario: String,
    seed: i64,
    verdict: Verdict,
    /// Why it did not pass, in a sentence; empty if it did.
    reason: String,
    /// As the service tells them.
    evaluations: Vec<Value>,
    transcript: Vec<Value>,
    mocks_unused: Vec<String>,
    /// How long the conversation took in its virtual time.
    duration_ms: i64,
}

impl Ran {
    fn title(&self) -> String {
        format!("{} (seed {})", shown(Kind::Simulation, &self.simulation), self.seed)
    }
}

/// All runs.
#[derive(Debug)]
struct Report {
    runs: Vec<Ran>,
    seconds: f64,
    cores: usize,
}

impl Report {
    fn count(&self, verdict: Verdict) -> usize {
        self.runs.iter().filter(|run| run.verdict == verdict).count()
    }
}

/// Runs the simulations. Returns the exit code.
pub fn run(options: &Options) -> Result<u8, Failure> {
    check_reports(options)?;
    let folder = existing(&options.folder)?;
    let is_wanted = |text: &str| options.filter.iter().any(|filter| text.contains(filter.as_str()));
    let mut chosen: Vec<runner::Case<'_>> = Vec::new();
    for (stem, entry) in folder.of(Kind::Simulation) {
        let named = |key: &str| entry.stated.get(key).and_then(Value::as_str).unwrap_or_default();
        let case = runner::Case {
            simulation: stem,
            assistant: named("assistant"),
            persona: named("persona"),
            scenario: named("scenario"),
        };
        if options.filter.is_empty() || case.names().into_iter().any(is_wanted) {
            chosen.push(case);
        }
    }
    if chosen.is_empty() {
        let all = folder.of(Kind::Simulation).len();
        return Err(Failure(match all {
            0 => format!("{} has no simulations", options.folder.display()),
            all => format!("none of the {all} simulations matches {}", options.filter.join(", ")),
        }));
    }
    models::check(&folder, &chosen, options.model.as_deref())?;
    let report = runner::run(&folder, &mut chosen, options)?;
    print(&report)?;
    let write = |path: &PathBuf, text: String| {
        fs::write(path, text).map_err(|error| Failure(format!("{}: {error}", path.display())))
    };
    if let Some(path) = &options.junit {
        write(path, junit::report(&report))?;
    }
    if let Some(path) = &options.json {
        write(path, json::report(&report))?;
    }
    Ok(if report.runs.iter().any(|run| run.verdict.is_bad()) { FINDINGS } else { DONE })
}

/// Refuses reports that would be written over one another, or over what the folder has.
fn check_reports(options: &Options) -> Result<(), Failure> {
    let folder = resolved(&options.folder);
    for path in [&options.junit, &options.json].into_iter().flatten() {
        if is_of_folder(&resolved(path), &folder) {
            return Err(Failure(format!(
                "{}: the folder has its own files there; name another place for the report",
                path.display()
            )));
        }
    }
    match (&options.junit, &options.json) {
        (Some(junit), Some(json)) if resolved(junit) == resolved(json) => Err(Failure(format!(
            "{}: --junit and --json would write the same file; name two",
            junit.display()
        ))),
        _ => Ok(()),
    }
}

/// Whether a path is that of a file of the folder, or would be taken for one.
fn is_of_folder(path: &Path, folder: &Path) -> bool {
    let Ok(inner) = path.strip_prefix(folder) else { return false };
    let first = inner.components().next().map(|first| first.as_os_str().to_string_lossy());
    first.is_some_and(|first| Kind::of_folder(&first).is_some() || first == lock::NAME)
        || inner.extension().is_some_and(|extension| extension == "toml")
}

fn print(report: &Report) -> Result<(), Failure> {
    let paint = Paint::of(&io::stdout());
    let bad = report.runs.iter().filter(|run| run.verdict.is_bad());
    let mut out = io::BufWriter::new(Vec::new());
    for (number, run) in bad.enumerate() {
        if number < TRANSCRIPTS_MAX {
            out.write_all(transcript::shown(run, paint).as_bytes())?;
        } else {
            writeln!(out, "{} {}: {}", paint.red(run.verdict.word()), run.title(), clean(&run.reason))?;
        }
    }
    let count = |verdict: Verdict, colour: fn(Paint, &str) -> String| match report.count(verdict) {
        0 => format!("0 {}", verdict.label()),
        count => colour(paint, &format!("{count} {}", verdict.label())),
    };
    writeln!(
        out,
        "{}, {}, {}, {}, {}",
        count(Verdict::Passed, Paint::green),
        count(Verdict::Failed, Paint::red),
        count(Verdict::Undecided, Paint::yellow),
        count(Verdict::NotEvaluated, Paint::yellow),
        count(Verdict::Error, Paint::red)
    )?;
    let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let (runs, cores) = (plural(report.runs.len(), "run"), plural(report.cores, "core"));
    writeln!(out, "{runs} in {:.1} s on {cores}", report.seconds)?;
    let text = out.into_inner().map_err(|error| Failure::new(error.to_string()))?;
    say(&String::from_utf8_lossy(&text))
}
