//! A run that did not pass, as a person reads it.
use std::fmt::Write as _;

use serde_json::Value;

use super::{Ran, Verdict};
use crate::as_code::show::Paint;
use crate::text::clean;

/// The run, its transcript with the row that decided, and its evaluations.
pub fn shown(run: &Ran, paint: Paint) -> String {
    let word = match run.verdict {
        Verdict::Failed => "FAILED",
        Verdict::Undecided => "UNDECIDED",
        Verdict::Error => "ERROR",
        Verdict::Passed | Verdict::NotEvaluated => "OK",
    };
    let mut text = format!("{} {}\n", paint.red(word), paint.bold(&run.title()));
    let marks: Vec<(usize, Mark)> = run
        .evaluations
        .iter()
        .enumerate()
        .filter(|(_, one)| one["passed"] != true)
        .filter_map(|(place, one)| Some((place, mark(one, &run.transcript)?)))
        .collect();
    for (index, row) in run.transcript.iter().enumerate() {
        let at = |mark: fn(usize) -> Mark| {
            let places = marks.iter().filter(move |(_, found)| *found == mark(index));
            places.map(|(place, _)| format!("evaluations[{place}]")).collect::<Vec<_>>().join(", ")
        };
        text.push_str(&line(row, &at(Mark::Decides), &at(Mark::Missed), paint));
    }
    for (place, one) in run.evaluations.iter().enumerate() {
        let line = evaluation(place, one);
        let _ = match one["passed"].as_bool() {
            Some(true) => writeln!(text, "  {}", paint.dim(&format!("✓ {line}"))),
            Some(false) => writeln!(text, "  {}", paint.red(&format!("✗ {line}"))),
            None => writeln!(text, "  {}", paint.yellow(&format!("? {line}"))),
        };
    }
    if run.verdict == Verdict::Error {
        let _ = writeln!(text, "  {}", paint.red(&format!("✗ {}", clean(&run.reason))));
    }
    for name in &run.mocks_unused {
        let line = format!("tool_mocks has {name}, which is no tool of this assistant");
        let _ = writeln!(text, "  {}", paint.yellow(&format!("! {}", clean(&line))));
    }
    text.push('\n');
    text
}

/// A row without colours, as the reports have it.
pub fn plain(row: &Value) -> String {
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    format!(
        "{:>6.1} s  {:<11} {}",
        seconds(row),
        text("role"),
        clean(text("text")).replace('\n', "\n                      ")
    )
}

fn seconds(row: &Value) -> f64 {
    row["start_ms"].as_f64().unwrap_or_default() / 1_000.0
}

/// The row that an evaluation broke at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It decided.
    Decides(usize),
    /// Until here, the last row of its role, what should have come did not.
    Missed(usize),
}

fn mark(evaluation: &Value, transcript: &[Value]) -> Option<Mark> {
    if let Some(index) = evaluation["matched_index"].as_u64() {
        return usize::try_from(index).ok().map(Mark::Decides);
    }
    let role = match evaluation["kind"].as_str() {
        Some("tool_call") => "any",
        // Nothing is missing.
        Some("tool_not_called" | "no_tool_error") => return None,
        _ => evaluation["role"].as_str().unwrap_or("any"),
    };
    let is_read = |row: &Value| match (role, row["role"].as_str()) {
        ("any", _) | ("tool", Some("tool_call" | "tool_result")) | ("user", Some("dtmf")) => true,
        (role, of_row) => of_row == Some(role),
    };
    transcript.iter().rposition(is_read).map(Mark::Missed)
}

fn line(row: &Value, decides: &str, missed: &str, paint: Paint) -> String {
    let line = plain(row);
    if !decides.is_empty() {
        return format!("{} {}  {}\n", paint.red("▶"), paint.red(&line), paint.bold(&format!("← {decides}")));
    }
    if !missed.is_empty() {
        let note = format!("← {missed}: not until here");
        return format!("{} {}  {}\n", paint.yellow("▷"), line, paint.bold(&note));
    }
    let line = match row["role"].as_str() {
        Some("assistant") => line,
        Some("user") => paint.cyan(&line),
        _ if row["is_error"] == true => paint.yellow(&line),
        _ => paint.dim(&line),
    };
    format!("  {line}\n")
}

/// An evaluation and its reason, on one line.
pub fn evaluation(place: usize, one: &Value) -> String {
    let text = |name: &str| one[name].as_str().unwrap_or_default();
    let of = match text("kind") {
        kind @ ("transcript" | "transcript_excludes" | "judge") => format!("{kind} of {}", text("role")),
        kind => kind.to_owned(),
    };
    clean(&format!("evaluations[{place}] {of} {:?}: {}", text("includes"), text("reason"))).replace('\n', " ")
}
