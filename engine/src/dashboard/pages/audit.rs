//! Who changed what in the workspace.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::parts::{
    copy, date, empty, link, list, more, read, shortened, table, text, words,
};
use crate::dashboard::pages::{ROWS, settings};

/// The log.
pub const PAGE: Page = Page {
    path: "/dashboard/audit",
    title: "Audit log",
    reads: &[Read { operation: "list_audit_entries", query: &["limit"], fixed: ROWS, after: "after" }],
    forms: &[],
    render,
};

/// Where the page of a subject is, or the list that has it, by the beginning of its id.
const PLACES: &[(&str, &str)] = &[
    ("asst_", "/dashboard/assistants"),
    ("tool_", "/dashboard/tools"),
    ("doc_", "/dashboard/knowledge"),
    ("hook_", "/dashboard/webhooks"),
    ("call_", "/dashboard/calls"),
    ("run_", "/dashboard/simulations/runs"),
    ("scen_", "/dashboard/simulations/scenarios"),
    ("pers_", "/dashboard/simulations/personas"),
    ("batch_", "/dashboard/simulations/batches"),
];

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let entries = list(read(answers, 0), "");
    let strip = Strip {
        title: "Audit log".to_owned(),
        calls: vec![Call::of("list_audit_entries")],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (settings::tabs(frame))
            @if entries.is_empty() {
                (empty("Nothing was changed yet. Whatever people change here, or keys over REST and MCP, is listed with who did it and when.",
                    Some(("/dashboard/assistants", "Go to assistants")), ("dashboard.md", "What the log tells")))
            }
            @else {
                (table("Audit log",
                    html! { th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" } th.wide scope="col" { "Of" } },
                    html! { @for entry in entries {
                        tr {
                            td.fit { (date(frame, text(entry, "created_at"))) }
                            td.cap.long { (text(entry, "actor_name")) @if text(entry, "actor").starts_with("key_") { span.dim { " (key)" } } }
                            td.fit title=(text(entry, "operation")) { (words(text(entry, "operation"))) }
                            td.wide { (subject(entry)) }
                        }
                    } }))
            }
            (more(frame, "after"))
        },
    )
}

/// Those that have no page of their own stand in a list.
const LISTED: &[(&str, &str)] = &[
    ("key_", "/dashboard/keys"),
    ("sim_", "/dashboard/simulations"),
    ("acct_", "/dashboard/people"),
    ("inv_", "/dashboard/people"),
];

/// What was changed, by the name that it had then.
fn subject(entry: &Value) -> Markup {
    let (subject, name) = (text(entry, "subject"), text(entry, "subject_name"));
    let is_gone = text(entry, "operation").starts_with("delete_");
    let starts = |(start, _): &&(&str, &str)| subject.starts_with(start);
    let to = match (PLACES.iter().find(starts), LISTED.iter().find(starts)) {
        _ if is_gone => None,
        (Some((_, base)), _) => Some(link(base, subject)),
        (None, Some((_, base))) => Some((*base).to_owned()),
        (None, None) => None,
    };
    let shown = html! { @if name.is_empty() { code { (shortened(subject)) } } @else { (name) } };
    html! {
        @if subject.is_empty() { span.none { "–" } }
        @else {
            span.id {
                @match to {
                    Some(to) => a href=(to) title=(subject) dir="auto" { (shown) },
                    None => span title=(subject) dir="auto" { (shown) },
                }
                (copy(subject, "Copy id"))
            }
        }
    }
}
