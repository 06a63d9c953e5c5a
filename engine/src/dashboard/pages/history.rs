//! The revisions of an assistant: what each change changed, and a way back.
use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use crate::base::ordered::Ordered as _;
use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::form::{act, label};
use crate::dashboard::pages::parts::{date, grouped, id, link, list, number, read, text};
use crate::dashboard::pages::read_of;
use crate::dashboard::pages::shown::{Shown, differing};

/// One assistant's.
pub const PAGE: Page = Page {
    path: "/dashboard/assistants/{id}/history",
    title: "History",
    reads: &[read_of("list_assistant_revisions"), read_of("list_tools"), read_of("list_knowledge_documents")],
    forms: &[],
    render,
};

const BASE: &str = "/dashboard/assistants";
/// Fields that differ in every revision.
const OWN: &[&str] = &["id", "revision", "created_at", "updated_at"];

/// The names of what can be attached, by their ids.
type Names<'a> = BTreeMap<&'a str, &'a str>;

/// Lines of a field that are shown, of those before a change and of those after it.
const LINES_MAX: usize = 100;

/// A field that a change changed: its name, and its lines before and after.
struct Change {
    field: String,
    before: Vec<String>,
    after: Vec<String>,
    /// How many lines are left out.
    more: usize,
}

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let revisions = list(read(answers, 0), "");
    let current = revisions.first().unwrap_or(&Value::Null);
    let assistant_id = text(current, "id");
    let page = link(BASE, assistant_id);
    let strip = Strip {
        title: "History".to_owned(),
        back: Some((&page, text(current, "name"))),
        beside: Some(id(assistant_id)),
        calls: vec![
            Call::of("list_assistant_revisions").at("id", assistant_id),
            Call::of("restore_assistant_revision").at("id", assistant_id).at("revision", "1"),
        ],
        ..Strip::default()
    };
    let named: Names<'_> = [read(answers, 1), read(answers, 2)]
        .into_iter()
        .flat_map(|resources| list(resources, ""))
        .map(|resource| (text(resource, "id"), text(resource, "name")))
        .into_map();
    layout::page(
        frame,
        strip,
        html! {
            p.help { "Each change makes a revision. Up to 50 earlier ones are kept. A restored revision becomes a new one, so nothing is lost." }
            @for (place, revision) in revisions.iter().enumerate() {
                (entry(frame, current, revision, revisions.get(place + 1), &named))
            }
        },
    )
}

fn entry(
    frame: &Frame,
    current: &Value,
    revision: &Value,
    before: Option<&Value>,
    named: &Names<'_>,
) -> Markup {
    let number_text = number(revision, "revision").to_string();
    let assistant_id = text(current, "id");
    let current_text = number(current, "revision").to_string();
    let is_current = number_text == current_text;
    html! {
        section.revision {
            div.row {
                h2 { "Revision " (number_text) }
                span.help { @if is_current { "current, " } (date(frame, text(revision, "updated_at"))) }
                @if !is_current {
                    (act(frame, "restore_assistant_revision",
                        &[("id", assistant_id), ("revision", &number_text), ("_revision", &current_text)],
                        &link(BASE, assistant_id),
                        html! { button { "Restore revision " (number_text) } }))
                }
            }
            @match before {
                Some(before) => {
                    @let changes = changes(before, revision, named);
                    @if changes.is_empty() { p.help { "The tool or the document that this revision attached or took away was deleted since." } }
                    @for change in changes {
                        div.change {
                            span.name { (label(&change.field)) }
                            div dir="auto" {
                                @for line in &change.before { del { (line) } }
                                @for line in &change.after { ins { (line) } }
                                @if change.more > 0 { p.help { "and " (grouped(change.more as i64)) " more lines" } }
                            }
                        }
                    }
                }
                None if number(revision, "revision") == 1 => p.help { "Created as “" (text(revision, "name")) "”." },
                None => p.help { "The oldest revision that is kept." },
            }
        }
    }
}

fn changes(before: &Value, after: &Value, named: &Names<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", before, after, named, &mut changes);
    changes
}

/// Compares field by field; an object is compared by its own fields.
fn compare(path: &str, before: &Value, after: &Value, named: &Names<'_>, changes: &mut Vec<Change>) {
    if before == after {
        return;
    }
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        let (old, new) = (lines(before, named), lines(after, named));
        let (before, after) = differing(&old, &new);
        let shown = |lines: &[String]| lines.iter().take(LINES_MAX).cloned().collect::<Vec<_>>();
        let (shown_before, shown_after) = (shown(before), shown(after));
        let more = before.len() + after.len() - shown_before.len() - shown_after.len();
        changes.push(Change { field: path.to_owned(), before: shown_before, after: shown_after, more });
        return;
    };
    for (name, value) in new {
        if path.is_empty() && OWN.contains(&name.as_str()) {
            continue;
        }
        let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        compare(&field, old.get(name).unwrap_or(&Value::Null), value, named, changes);
    }
}

/// A value as lines: ids of what is attached by their names.
fn lines(value: &Value, named: &Names<'_>) -> Vec<String> {
    Shown::of(value).lines().lines().map(|line| (*named.get(line).unwrap_or(&line)).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_shows_the_lines_that_differ() {
        let before = json!({"id": "a", "revision": 1, "instructions": "One\nTwo\nThree", "speech": {"speed": 1.0},
            "tool_ids": ["tool_1"], "record": true});
        let after = json!({"id": "a", "revision": 2, "instructions": "One\n2\nThree", "speech": {"speed": 1.5},
            "tool_ids": [], "record": true});
        let found: Vec<_> = changes(&before, &after, &BTreeMap::from([("tool_1", "find_parcel")]))
            .into_iter()
            .map(|change| (change.field, change.before.join("|"), change.after.join("|")))
            .collect();
        let row =
            |field: &str, before: &str, after: &str| (field.to_owned(), before.to_owned(), after.to_owned());
        assert_eq!(
            found,
            [
                row("instructions", "Two", "2"),
                row("speech.speed", "1.0", "1.5"),
                row("tool_ids", "find_parcel", "")
            ]
        );
    }

    #[test]
    fn of_a_long_change_the_first_lines_are_shown() {
        let of = |line: &str| json!({"instructions": format!("{line}\n").repeat(3 * LINES_MAX)});
        let found = changes(&of("a"), &of("b"), &Names::new());
        let [change] = &*found else { panic!("{}", found.len()) };
        assert_eq!(
            (change.before.len(), change.after.len(), change.more),
            (LINES_MAX, LINES_MAX, 4 * LINES_MAX)
        );
    }
}
