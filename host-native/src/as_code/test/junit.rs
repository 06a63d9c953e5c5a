//! The report that CI systems show: JUnit's XML, a suite for each assistant.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use sidetone_engine::base::xml::escaped;

use super::transcript::{evaluation, plain};
use super::{Ran, Report, Verdict};
use crate::as_code::folder::shown;
use crate::as_code::kind::Kind;

/// The whole document.
pub fn report(report: &Report) -> String {
    let mut suites: BTreeMap<&str, Vec<&Ran>> = BTreeMap::new();
    for run in &report.runs {
        suites.entry(&run.assistant).or_default().push(run);
    }
    let all: Vec<&Ran> = report.runs.iter().collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"sidetone\" {} time=\"{:.3}\">", counts(&all), report.seconds);
    for (assistant, runs) in &suites {
        let time: i64 = runs.iter().map(|run| run.duration_ms).sum();
        let name = escaped(&shown(Kind::Assistant, assistant));
        let _ = writeln!(text, "  <testsuite name=\"{name}\" {} time=\"{}\">", counts(runs), seconds(time));
        runs.iter().for_each(|run| text.push_str(&case(run)));
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn counts(runs: &[&Ran]) -> String {
    let count = |verdicts: &[Verdict]| runs.iter().filter(|run| verdicts.contains(&run.verdict)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        runs.len(),
        count(&[Verdict::Failed, Verdict::Undecided]),
        count(&[Verdict::Error]),
        count(&[Verdict::NotEvaluated])
    )
}

/// The time is that of the conversation, which is virtual: the same in every report.
fn case(run: &Ran) -> String {
    let file = shown(Kind::Simulation, &run.simulation);
    let mut text = format!(
        "    <testcase classname=\"{}\" name=\"{} (seed {})\" file=\"{}\" time=\"{}\"",
        escaped(&run.assistant),
        escaped(&run.simulation),
        run.seed,
        escaped(&file),
        seconds(run.duration_ms)
    );
    let element = match run.verdict {
        Verdict::Passed => {
            text.push_str("/>\n");
            return text;
        }
        Verdict::NotEvaluated => {
            let _ = writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(&run.reason));
            return text;
        }
        Verdict::Failed | Verdict::Undecided => "failure",
        Verdict::Error => "error",
    };
    // The message has the first only.
    let evaluations = run.evaluations.iter().enumerate().filter(|(_, one)| one["passed"] != true);
    let mut rows: Vec<String> = evaluations.map(|(place, one)| evaluation(place, one)).collect();
    rows.extend(run.transcript.iter().map(plain));
    let _ = writeln!(
        text,
        ">\n      <{element} message=\"{}\" type=\"{}\">{}</{element}>\n    </testcase>",
        escaped(&run.reason),
        run.verdict.word(),
        escaped(&rows.join("\n"))
    );
    text
}

fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}
