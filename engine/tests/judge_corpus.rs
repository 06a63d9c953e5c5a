//! The offline judge against criteria and transcripts with the verdict that a careful reader gives. It must never pass what a
//! reader does not pass, and never fail what a reader does not fail; it may leave open what a reader decides.
//!
//! `judge/corpus.txt` was written before the judge, `judge/held_out.txt` after it, `judge/traps.txt` to deceive it, and
//! `judge/strangers.txt` has what strangers found, and more of the same kinds; `judge/hostile.txt` has sentences around a value
//! that do not affirm it, and writings that hide it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that prints the agreement"
)]
use std::fs;

use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::models::JudgeTurn;
use sidetone_engine::models::rules::RulesJudge;

#[test]
fn the_judge_passes_nothing_that_a_reader_does_not() {
    agrees("corpus.txt", 200);
}

#[test]
fn the_judge_passes_nothing_false_of_what_it_was_not_written_for() {
    agrees("held_out.txt", 100);
}

#[test]
fn the_judge_is_not_deceived() {
    agrees("traps.txt", 60);
}

#[test]
fn the_judge_knows_other_writings_or_leaves_them_open() {
    agrees("strangers.txt", 390);
}

#[test]
fn the_judge_passes_no_hostile_line() {
    agrees("hostile.txt", 500);
}

struct Case {
    line: usize,
    role: String,
    criterion: String,
    rows: Vec<TranscriptRow>,
    expected: Option<bool>,
}

fn agrees(file: &str, cases_min: usize) {
    let cases = cases(file);
    assert!(cases.len() >= cases_min, "{} cases", cases.len());
    let mut agreed = 0;
    let (mut false_passes, mut false_fails, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for case in &cases {
        let (passed, reason) = decide(case);
        let told = format!(
            "{file}:{}: {} → {passed:?}, not {:?}: {reason}",
            case.line, case.criterion, case.expected
        );
        match passed {
            _ if passed == case.expected => agreed += 1,
            Some(true) => false_passes.push(told),
            Some(false) => false_fails.push(told),
            None => open.push(told),
        }
    }
    let all = cases.len();
    let percent = agreed * 1_000 / all;
    println!(
        "{file}: {agreed} of {all} agree ({}.{} %), {} false passes, {} false fails, {} left open",
        percent / 10,
        percent % 10,
        false_passes.len(),
        false_fails.len(),
        open.len()
    );
    for told in &open {
        println!("left open: {told}");
    }
    assert!(false_passes.is_empty() && false_fails.is_empty(), "{false_passes:#?}\n{false_fails:#?}");
    // It may leave open what it likes of what was made to deceive it.
    assert!(
        percent >= 850 || matches!(file, "traps.txt" | "strangers.txt" | "hostile.txt"),
        "the judge leaves too much open"
    );
}

fn decide(case: &Case) -> (Option<bool>, String) {
    let only = match case.role.as_str() {
        "assistant" => Some(TranscriptRole::Assistant),
        "user" => Some(TranscriptRole::User),
        "tool" => Some(TranscriptRole::ToolResult),
        _ => None,
    };
    let turns: Vec<_> = case.rows.iter().filter(|row| only.is_none_or(|only| row.role == only)).collect();
    let turn = JudgeTurn { criterion: &case.criterion, only, turns: &turns, vote: 0 };
    let verdict = RulesJudge::new().judge(&turn);
    (verdict.passed, verdict.reason)
}

fn cases(file: &str) -> Vec<Case> {
    let text = fs::read_to_string(format!("{}/tests/judge/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut criterion = None;
    let mut cases = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let Some(case) = line.strip_prefix("  ") else {
            let (role, includes) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
                Some(found) => found,
                None => ("any", line),
            };
            criterion = Some((role.to_owned(), includes.to_owned()));
            continue;
        };
        let mut parts = case.split('|').map(str::trim);
        let expected = match parts.next().unwrap() {
            "true" => Some(true),
            "false" => Some(false),
            "null" => None,
            other => panic!("line {}: {other}", number + 1),
        };
        let rows = parts.enumerate().map(|(index, part)| row(index, part)).collect();
        let (role, criterion) = criterion.clone().unwrap();
        cases.push(Case { line: number + 1, role, criterion, rows, expected });
    }
    cases
}

fn row(index: usize, part: &str) -> TranscriptRow {
    let (who, said) = part.split_once(": ").unwrap();
    let said = &unescaped(said);
    let role = match who {
        "A" => TranscriptRole::Assistant,
        "U" => TranscriptRole::User,
        "C" => TranscriptRole::ToolCall,
        "T" | "X" => TranscriptRole::ToolResult,
        other => panic!("{other}"),
    };
    let (heard, rest) = said.split_once('~').unwrap_or((said, ""));
    let mut row = TranscriptRow::new(index, role, heard.to_owned(), 0, 0);
    row.interrupted = said.contains('~');
    row.intended_text = row.interrupted.then(|| format!("{heard}{rest}"));
    row.is_error = (role == TranscriptRole::ToolResult).then_some(who == "X");
    row
}

/// With the characters that `\u{…}` stands for.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        out.extend(char::from_u32(u32::from_str_radix(code, 16).unwrap()));
        out.push_str(rest);
    }
    out
}
