//! Who changed what in the workspace.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::parts::{copy, date, id, link, list, more, read, shortened, table, text, words};
use crate::dashboard::pages::{choices_of, settings};

/// The log.
pub const PAGE: Page = Page {
    path: "/dashboard/audit",
    title: "Audit log",
    reads: &[
        Read { operation: "list_audit_entries", query: &["limit"], fixed: &[], after: "after" },
        choices_of("list_assistants"),
        choices_of("list_tools"),
        choices_of("list_knowledge_documents"),
    ],
    forms: &[],
    render,
};

/// Where the page of a subject is, by the beginning of its id.
const PLACES: &[(&str, &str)] = &[
    ("asst_", "/dashboard/assistants"),
    ("tool_", "/dashboard/tools"),
    ("doc_", "/dashboard/knowledge"),
    ("hook_", "/dashboard/webhooks"),
    ("call_", "/dashboard/calls"),
    ("run_", "/dashboard/simulations/runs"),
    ("scen_", "/dashboard/simulations/scenarios"),
    ("pers_", "/dashboard/simulations/personas"),
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
            @if entries.is_empty() { p.dim { "Nothing was changed yet." } }
            @else {
                (table("Audit log",
                    html! { th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" } th.wide scope="col" { "Of" } },
                    html! { @for entry in entries {
                        tr {
                            td.fit { (date(frame, text(entry, "created_at"))) }
                            td.cap.long { (text(entry, "actor_name")) @if text(entry, "actor").starts_with("key_") { span.dim { " (key)" } } }
                            td.fit title=(text(entry, "operation")) { (words(text(entry, "operation"))) }
                            td.wide { (subject(text(entry, "subject"), answers.get(1..).unwrap_or_default())) }
                        }
                    } }))
            }
            (more(frame, "after"))
        },
    )
}

/// What was changed: by its name where it still has one.
fn subject(subject: &str, named: &[Value]) -> Markup {
    let is_it = |one: &&Value| text(one, "id") == subject;
    let name =
        named.iter().flat_map(|resources| list(resources, "")).find(is_it).map(|one| text(one, "name"));
    let place = PLACES.iter().find(|(start, _)| subject.starts_with(start));
    html! {
        @match place {
            _ if subject.is_empty() => span.none { "–" },
            Some((_, base)) => span.id { a href=(link(base, subject)) title=(subject) dir="auto" { @match name { Some(name) => (name), None => code { (shortened(subject)) } } } (copy(subject, "Copy id")) },
            None => (id(subject)),
        }
    }
}
