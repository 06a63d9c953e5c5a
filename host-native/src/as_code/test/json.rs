//! The report for programs. But for `seconds` and `cores`, the same folder and seeds give the same bytes.
use serde_json::{Value, json};

use super::{Ran, Report, Verdict};

/// The whole document.
pub fn report(report: &Report) -> String {
    let runs: Vec<Value> = report.runs.iter().map(run).collect();
    let document = json!({
        "passed": report.count(Verdict::Passed),
        "failed": report.count(Verdict::Failed),
        "undecided": report.count(Verdict::Undecided),
        "not_evaluated": report.count(Verdict::NotEvaluated),
        "errors": report.count(Verdict::Error),
        "seconds": (report.seconds * 1_000.0).round() / 1_000.0,
        "cores": report.cores,
        "runs": runs,
    });
    format!("{document:#}\n")
}

fn run(run: &Ran) -> Value {
    json!({
        "simulation": run.simulation,
        "assistant": run.assistant,
        "persona": run.persona,
        "scenario": run.scenario,
        "seed": run.seed,
        "result": run.verdict.word(),
        "reason": run.reason,
        "duration_ms": run.duration_ms,
        "evaluations": run.evaluations,
        "mocks_unused": run.mocks_unused,
        "transcript": run.transcript,
    })
}
