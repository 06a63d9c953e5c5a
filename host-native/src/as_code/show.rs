//! What commands print: in colour on a terminal, unless `NO_COLOR` is set.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::ops::Range;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::compare::{Changed, Difference};
use super::folder::shown;
use super::kind::{Kind, stripped};
use super::plan::{Deletion, Plan, Step};
use crate::text::clean;

/// A value of more characters is shown by its lines.
const SHORT_CHARS_MAX: usize = 60;
/// Characters of a line that are shown.
const LINE_CHARS_MAX: usize = 400;
/// Of these, characters before the first that differs.
const SAME_CHARS: usize = 100;
/// No part of a line.
const NOWHERE: Range<usize> = 0..0;
/// Lines around a change.
const CONTEXT: usize = 1;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// For a stream.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self(stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb)
    }

    fn in_colour(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// What is wrong, or goes.
    pub fn red(self, text: &str) -> String {
        self.in_colour("31", text)
    }

    /// What is well, or comes.
    pub fn green(self, text: &str) -> String {
        self.in_colour("32", text)
    }

    /// What changes, or needs a look.
    pub fn yellow(self, text: &str) -> String {
        self.in_colour("33", text)
    }

    /// Who speaks.
    pub fn cyan(self, text: &str) -> String {
        self.in_colour("36", text)
    }

    /// What matters less.
    pub fn dim(self, text: &str) -> String {
        self.in_colour("2", text)
    }

    /// What matters most.
    pub fn bold(self, text: &str) -> String {
        self.in_colour("1", text)
    }
}

/// Where a plan is for: the workspace and its server.
pub fn place(plan: &Plan, url: &str) -> String {
    clean(&format!("{} at {url}", plan.workspace.name))
}

/// What comes before a plan: where it is for, and whether the folder was used elsewhere until now.
pub fn heading(plan: &Plan, url: &str, paint: Paint) -> String {
    let mut text = format!("Workspace {}\n", paint.bold(&place(plan, url)));
    if !plan.others.is_empty() {
        let (others, this) = (plan.others.join(", "), &plan.workspace.id);
        let line =
            clean(&format!("This folder was used with another workspace before: {others}; this is {this}"));
        let _ = writeln!(text, "{}", paint.yellow(&line));
    }
    text
}

/// The plan: what differs, and what is done about it.
pub fn plan(plan: &Plan, prune: bool, paint: Paint) -> String {
    let mut text = String::new();
    for (kind, stem, step) in &plan.steps {
        let file = shown(*kind, stem);
        let _ = match step {
            Step::Create => {
                writeln!(text, "{} {}", paint.green("+"), paint.green(&format!("{file}  is created")))
            }
            Step::Update(fields) => {
                let adopted = fields.iter().any(|one| one.changed == Changed::Unknown);
                let note = if adopted {
                    "  is changed (it was never seen in this workspace)"
                } else {
                    "  is changed"
                };
                writeln!(text, "{} {}", paint.yellow("~"), paint.yellow(&format!("{file}{note}")))
            }
            Step::Conflict(_) => {
                let line = format!("{file}  was changed by somebody else; run `sidetone pull`");
                writeln!(text, "{} {}", paint.red("!"), paint.red(&line))
            }
            Step::Gone => {
                let line =
                    format!("{file}  was deleted by somebody else; delete the file, or apply with --force");
                writeln!(text, "{} {}", paint.red("!"), paint.red(&line))
            }
        };
        if let Step::Update(fields) | Step::Conflict(fields) = step {
            fields.iter().for_each(|one| text.push_str(&difference(*kind, one, paint)));
        }
    }
    for deletion in &plan.deletions {
        let _ = writeln!(text, "{}", paint.red(&clean(&of_deletion(deletion, prune))));
    }
    for (kind, row) in &plan.unseen {
        let line =
            format!("  {} {} has no file; `sidetone pull` writes it", kind.noun(), clean(&row.title()));
        let _ = writeln!(text, "{}", paint.dim(&line));
    }
    text
}

/// What is done about a file that was deleted.
fn of_deletion(deletion: &Deletion, prune: bool) -> String {
    let file = shown(deletion.kind, &deletion.stem);
    if deletion.is_conflict {
        let why = match (deletion.is_changed, deletion.used_by()) {
            (true, by) if by.is_empty() => "somebody else changed it".to_owned(),
            (true, by) => format!("somebody else changed it, and it is used by {by}"),
            (false, by) => format!("it is used by {by}"),
        };
        return format!(
            "! {file}  has no file, and {why}; `sidetone apply --prune --force` deletes it, \
             `sidetone pull --force` writes the file"
        );
    }
    let with = match deletion.kind {
        Kind::Assistant | Kind::Persona | Kind::Scenario => ", with its simulations",
        _ => "",
    };
    let then = match deletion.numbers.join(", ") {
        none if none.is_empty() => none,
        numbers => format!("; after that, nobody answers {numbers}"),
    };
    match prune {
        true => format!("- {file}  is deleted{with}{then}"),
        false => format!("- {file}  has no file any more; --prune deletes it{with}{then}"),
    }
}

/// One line: how much is done.
pub fn summary(plan: &Plan, prune: bool) -> String {
    let created = plan.count(|step| *step == Step::Create);
    let changed = plan.count(|step| matches!(step, Step::Update(_)));
    let conflicts = plan.count(|step| matches!(step, Step::Conflict(_) | Step::Gone));
    let free = plan.deletions.iter().filter(|deletion| !deletion.is_conflict).count();
    let deleted = if prune { free } else { 0 };
    let mut text = format!(
        "Plan: {created} to create, {changed} to change, {deleted} to delete; {} are the same.",
        plan.same
    );
    // Without --prune, nobody asked for them.
    let held = plan.deletions.iter().filter(|deletion| prune && deletion.is_conflict);
    let (theirs, used): (Vec<&Deletion>, Vec<&Deletion>) = held.partition(|deletion| deletion.is_changed);
    let changed = conflicts + theirs.len();
    if changed > 0 {
        let verb = if changed == 1 { "was" } else { "were" };
        let _ = write!(text, " {changed} {verb} changed by somebody else: left alone.");
    }
    if !used.is_empty() {
        let verb = if used.len() == 1 { "is" } else { "are" };
        let _ = write!(text, " {} to delete {verb} still used: left alone.", used.len());
    }
    text
}

/// A field: what the service has → what the file has.
pub fn difference(kind: Kind, one: &Difference, paint: Paint) -> String {
    let note = match one.changed {
        Changed::There => "  (changed there, not here)",
        Changed::Both => "  (changed there and here)",
        Changed::Here | Changed::Unknown => "",
    };
    let note = paint.red(note);
    let brief = |value: &Value| brief(kind, &one.field, value);
    let (there, here) = (brief(&one.there), one.here.as_ref().map_or(Value::Null, brief));
    let (old, new) = (short(&there), short(&here));
    if let (Some(old), Some(new)) = (old, new) {
        return format!("    {}: {} → {}{note}\n", one.field, paint.red(&old), paint.green(&new));
    }
    let mut text = format!("    {}:{note}\n", one.field);
    text.push_str(&lines(&long(&there), &long(&here), paint));
    text
}

/// Without what has its default, and in one order: both sides may have been written by different people.
fn brief(kind: Kind, field: &str, value: &Value) -> Value {
    let mut brief = kind.field(field).map_or_else(|| value.clone(), |field| stripped(&field.schema, value));
    brief.sort_all_objects();
    brief
}

fn short(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) if text.contains('\n') => return None,
        Value::Object(map) if map.len() > 1 => return None,
        value => value.to_string(),
    };
    (text.chars().count() <= SHORT_CHARS_MAX).then(|| clean(&text))
}

fn long(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

fn lines(old: &str, new: &str, paint: Paint) -> String {
    let diff = TextDiff::from_lines(old, new);
    let all = |tag: ChangeTag| -> BTreeSet<&str> {
        let changes = diff.iter_all_changes().filter(|change| change.tag() == tag);
        changes.map(|change| change.value().trim_end_matches('\n')).collect()
    };
    let (deleted, inserted) = (all(ChangeTag::Delete), all(ChangeTag::Insert));
    let mut text = String::new();
    for (number, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            let _ = writeln!(text, "{}", paint.dim("      …"));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let line = change.value().trim_end_matches('\n');
            let differs = match change.tag() {
                ChangeTag::Delete => differing(line, &inserted),
                ChangeTag::Insert => differing(line, &deleted),
                ChangeTag::Equal => NOWHERE,
            };
            let line = clean(&excerpt(line, &differs));
            let _ = match change.tag() {
                ChangeTag::Delete => writeln!(text, "{}", paint.red(&format!("      - {line}"))),
                ChangeTag::Insert => writeln!(text, "{}", paint.green(&format!("      + {line}"))),
                ChangeTag::Equal => writeln!(text, "{}", paint.dim(&format!("        {line}"))),
            };
        }
    }
    text
}

/// Where a line differs from the line of the other side that is most like it, in characters; nowhere if there is none.
fn differing(line: &str, others: &BTreeSet<&str>) -> Range<usize> {
    // It only moved.
    if others.contains(line) {
        return NOWHERE;
    }
    // In order, the one with the longest common start is next to it.
    let before = others.range::<&str, _>(..line).next_back();
    let after = others.range::<&str, _>(line..).next();
    let chars = line.chars().count();
    let alike = |other: &&str| {
        let start = common(line.chars(), other.chars());
        let rest = chars.min(other.chars().count()) - start;
        (start, common(line.chars().rev(), other.chars().rev()).min(rest))
    };
    let most = before.into_iter().chain(after).map(alike).max();
    most.map_or(NOWHERE, |(start, end)| start..chars - end)
}

/// How many characters two texts have in common until they differ.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// What is shown of a line that differs there. `…` stands for what is left out, which readers take for the same on both
/// sides unless they are told otherwise.
fn excerpt(line: &str, differs: &Range<usize>) -> String {
    let chars = line.chars().count();
    if chars <= LINE_CHARS_MAX {
        return line.to_owned();
    }
    let first = differs.start.saturating_sub(SAME_CHARS);
    let last = first + LINE_CHARS_MAX;
    let part: String = line.chars().skip(first).take(LINE_CHARS_MAX).collect();
    let before = if first > 0 { "…" } else { "" };
    let after = match last < chars {
        true if last < differs.end => "… (differs further on)",
        true => "…",
        false => "",
    };
    format!("{before}{part}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(word: &str) -> String {
        format!("{}{word}{}\n", "a".repeat(900), "b".repeat(900))
    }

    #[test]
    fn a_change_far_into_a_line_is_shown() {
        let text = |word: &str| format!("First.\n{}Last.\n", long(word));
        let (before, after) = ("a".repeat(100), "b".repeat(297));
        let (old, new) = (format!("- …{before}one{after}…"), format!("+ …{before}two{after}…"));
        let told = lines(&text("one"), &text("two"), Paint(false));
        assert_eq!(told, format!("        First.\n      {old}\n      {new}\n        Last.\n"));

        // Nor is it hidden by a line that is put before it.
        let told = lines(&long("one"), &format!("Another one.\n{}", long("two")), Paint(false));
        assert!(told.contains(&old) && told.contains(&new), "{told}");
    }

    #[test]
    fn a_line_says_that_it_differs_further_on() {
        let twice = |word: &str| format!("{}{}", long(word).trim_end(), long(word));
        let told = lines(&twice("one"), &twice("two"), Paint(false));
        let (before, after) = ("a".repeat(100), "b".repeat(297));
        let line =
            |sign: &str, word: &str| format!("      {sign} …{before}{word}{after}… (differs further on)\n");
        assert_eq!(told, line("-", "one") + &line("+", "two"));

        // Where the end of a line is all that is the same, or its end is missing.
        for (old, new) in [(long(""), long("two")), (long("one").trim_end().to_owned(), long("two"))] {
            let told = lines(&old, &new, Paint(false));
            assert!(!told.contains("further") && told.matches("…\n").count() == 2, "{told}");
        }
    }

    #[test]
    fn a_line_is_cut_with_a_mark() {
        let whole = "a".repeat(LINE_CHARS_MAX);
        assert_eq!(excerpt(&whole, &NOWHERE), whole);
        assert_eq!(excerpt(&format!("{whole}b"), &(SAME_CHARS..SAME_CHARS)), format!("{whole}…"));
        // The other side goes on where this one ends.
        let end = 2 * LINE_CHARS_MAX;
        assert_eq!(excerpt(&whole.repeat(2), &(end..end)), format!("…{}", "a".repeat(SAME_CHARS)));
    }
}
