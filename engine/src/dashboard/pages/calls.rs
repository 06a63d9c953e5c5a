//! The call log: filters as the API's, in the page's address.
use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;

use crate::base::ordered::Ordered as _;
use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::parts::{
    self, Tone, address_of, asked, at, counted, empty, grouped, link, list, money, name_of, number, pages,
    read, status, table, text, when, words,
};
use crate::dashboard::pages::read_of;

const NAMES: &[&str] = &[
    "search",
    "assistant_id",
    "source",
    "model",
    "voice",
    "outcome",
    "sentiment",
    "date_from",
    "date_to",
    "sort",
    "order",
    "page",
    "limit",
];

/// What pages show of the calls in a list, and of an object in one or of the first lines in one; the rest is not read.
pub const OF_CALL: &[(&str, &[&str])] = &[
    ("id", &[]),
    ("assistant_id", &[]),
    ("source", &[]),
    ("status", &[]),
    ("from", &[]),
    ("to", &[]),
    ("started_at", &[]),
    ("duration_ms", &[]),
    ("outcome", &[]),
    ("ended_reason", &[]),
    ("fault", &[]),
    ("transcript", &["role", "text"]),
    ("analysis", &["summary"]),
    ("costs", &["total_microusd"]),
];

/// The list.
pub const PAGE: Page = Page {
    path: "/dashboard/calls",
    title: "Calls",
    reads: &[
        Read { operation: "list_calls", query: NAMES, fixed: &[("limit", "50")], after: "" },
        read_of("list_assistants"),
    ],
    forms: &["list_calls"],
    render,
};

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let (calls, assistants) = (read(answers, 0), read(answers, 1));
    let rows = list(calls, "calls");
    let filtered = NAMES
        .iter()
        .any(|name| !matches!(*name, "sort" | "order" | "page" | "limit") && !asked(frame, name).is_empty());
    let strip = Strip {
        title: "Calls".to_owned(),
        calls: vec![
            Call::of("list_calls").asked(frame, NAMES),
            Call::of("delete_calls").queried("date_to", "2026-01-31"),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if rows.is_empty() && !filtered {
                (empty(
                    "No calls yet. Talk to an assistant in the browser, or bind a telephone number to one, and each conversation appears here with its transcript and costs.",
                    Some(("/dashboard/assistants", "Go to assistants")),
                    ("calls.md", "What a call records"),
                ))
            } @else {
                (filters(frame, assistants))
                (totals(at(calls, "stats")))
                @if rows.is_empty() {
                    div.empty { p { "No call matches these filters." } a.button href="/dashboard/calls" { "Clear filters" } }
                } @else {
                    section {
                        (rows_of(frame, rows, assistants))
                        (pages(frame, at(calls, "pagination"), ("call", "calls")))
                    }
                }
            }
        },
    )
}

/// Calls as a table.
pub fn rows_of(frame: &Frame, rows: &[Value], assistants: &Value) -> Markup {
    table(
        "Calls",
        html! {
            (sorted(frame, "started_at", "Started", false)) th scope="col" { "Caller" } th.wide scope="col" { "Assistant" } th.wide scope="col" { "What was said" }
            th scope="col" { "Outcome" } (sorted(frame, "duration_ms", "Length", true)) (sorted(frame, "cost", "Cost", true))
        },
        html! {
            @for call in rows {
                @let assistant = name_of(assistants, text(call, "assistant_id"));
                tr {
                    td.fit.wide { (when(frame, text(call, "started_at"))) }
                    td.cap.fit { a.name href=(link("/dashboard/calls", text(call, "id"))) { (party_text(call)) } }
                    td.cap.wide dir="auto" title=(assistant) { (assistant) }
                    td.wrap.wide dir="auto" { (gist(call)) }
                    td.fit { (state(call)) }
                    td.num.fit.wide { (length(call)) }
                    td.num.fit.wide { (money(number(call, "costs/total_microusd"))) }
                }
            }
        },
    )
}

/// Who was on the other side.
pub fn party_text(call: &Value) -> String {
    match text(call, "source") {
        "browser" => "Browser test".to_owned(),
        "simulation" => "Simulation".to_owned(),
        "outbound" => format!("To {}", text(call, "to")),
        _ => text(call, "from").to_owned(),
    }
}

/// What the call was about, in a line; of a call that failed, why.
fn gist(call: &Value) -> &str {
    if tone(call) == Tone::Bad {
        return why(text(call, "ended_reason"));
    }
    let summary = text(call, "analysis/summary");
    if !summary.is_empty() {
        return summary;
    }
    list(call, "transcript")
        .iter()
        .find(|row| text(row, "role") == "user")
        .map_or("", |row| text(row, "text"))
}

/// How long a call was.
pub fn length(call: &Value) -> Markup {
    html! {
        @match at(call, "duration_ms").as_i64() {
            None => span.none { "–" },
            Some(ms) => (parts::length(ms)),
        }
    }
}

/// How the call stands, or what came of it.
pub fn state(call: &Value) -> Markup {
    match (text(call, "status"), text(call, "outcome")) {
        ("ended", outcome) => status(tone(call), &words(if outcome.is_empty() { "ended" } else { outcome })),
        (other, _) => status(Tone::Live, &words(other)),
    }
}

/// Whether the call went as it should.
pub fn tone(call: &Value) -> Tone {
    match text(call, "outcome") {
        "failed" => Tone::Bad,
        _ if !matches!(text(call, "fault"), "" | "none" | "caller") => Tone::Bad,
        "completed" => Tone::Good,
        "no_answer" | "busy" | "voicemail" => Tone::Warn,
        _ => Tone::Quiet,
    }
}

/// The head of a column that the list can be sorted by. Its link sorts by it, and the second time the other way.
fn sorted(frame: &Frame, by: &str, called: &str, number: bool) -> Markup {
    if frame.path != PAGE.path {
        return html! { th.wide.num[number] scope="col" { (called) } };
    }
    let here = asked(frame, "sort") == by || (asked(frame, "sort").is_empty() && by == "started_at");
    let upwards = here && asked(frame, "order") == "asc";
    let next = if here && !upwards { "asc" } else { "" };
    let address = address_of(frame, &[("sort", if by == "started_at" { "" } else { by }), ("order", next)]);
    html! {
        th.wide.num[number] scope="col" aria-sort=[here.then_some(if upwards { "ascending" } else { "descending" })] {
            a.sort href=(address) { (called) @if here { span aria-hidden="true" { @if upwards { " ↑" } @else { " ↓" } } } }
        }
    }
}

/// Why a call ended, in a sentence.
pub fn why(reason: &str) -> &'static str {
    match reason {
        "user_hung_up" => "The caller hung up.",
        "assistant_ended" => "The assistant said goodbye and ended the call.",
        "transferred" => "The assistant handed the call over to a person.",
        "hung_up_by_request" => "Somebody asked Sidetone to hang up.",
        "silence" => "The caller was silent three times in a row.",
        "turn_limit" => "The conversation reached its limit of turns.",
        "duration_limit" => "The conversation reached its limit of time.",
        "transcript_limit" => "The transcript reached its limit.",
        "cost_limit" => "A limit of costs was reached.",
        "tool_loop" => "The model kept asking for tools instead of answering.",
        "assistant_repeating" => "The assistant said the same sentence eight times in a row.",
        "model_failed" => "The model did not answer.",
        "speech_failed" => "The assistant could not hear or speak: its transcriber or voice failed.",
        "aborted" => "Sidetone stopped the conversation.",
        "no_answer" => "Nobody answered.",
        "busy" => "The line was busy.",
        "declined" => "The call was rejected.",
        "canceled" => "The call was cancelled before a conversation began.",
        "unreachable" => "The number does not exist, or cannot be reached.",
        "carrier_refused" => "The carrier rejected the call because of its account, permissions or limits.",
        "carrier_failed" => "The carrier accepted the call and lost it.",
        "media_lost" => "The call was connected, but its audio never came or broke off.",
        "unsettled" => "The carrier never reported what happened to the call.",
        _ => "",
    }
}

fn totals(stats: &Value) -> Markup {
    let outcome = |name: &str| number(stats, &format!("by_outcome/{name}"));
    html! {
        dl.figures {
            div { dt { "Calls" } dd { (grouped(number(stats, "total"))) } }
            div { dt { "Completed" } dd { (grouped(outcome("completed"))) } }
            div { dt { "Failed" } dd { (grouped(outcome("failed"))) small { (counted(outcome("no_answer") + outcome("busy"), "call")) " not answered" } } }
            div { dt { "Average length" } dd { (parts::length(number(stats, "average_duration_ms"))) small { (parts::length(number(stats, "total_duration_ms"))) " in total" } } }
            div { dt { "Cost" } dd { (money(number(stats, "total_cost_microusd"))) } }
        }
    }
}

/// What the assistants have in a field, each once.
fn distinct<'a>(assistants: &'a Value, name: &str) -> BTreeSet<&'a str> {
    list(assistants, "").iter().map(|assistant| text(assistant, name)).into_set()
}

fn filters(frame: &Frame, assistants: &Value) -> Markup {
    let schema =
        frame.schemas.iter().find(|(id, _)| *id == "list_calls").map_or(&Value::Null, |(_, schema)| schema);
    let most = at(schema, "properties/search/maxLength").as_u64();
    let is_narrowed = NAMES.iter().any(|name| {
        !matches!(*name, "search" | "sort" | "order" | "page" | "limit") && !asked(frame, name).is_empty()
    });
    html! {
        form.filters method="get" action="/dashboard/calls" role="search" data-auto {
            label.search { "Search" input type="search" name="search" value=(asked(frame, "search")) maxlength=[most] dir="auto" placeholder="Words, a number, an id"; }
            button { "Search" }
            // On a telephone they are behind a button; the stylesheet opens them where there is room.
            details.rest open[is_narrowed] { summary.button { "Filters" } div {
            label { "Assistant"
                select name="assistant_id" {
                    option value="" { "Any" }
                    @for assistant in list(assistants, "") {
                        option value=(text(assistant, "id")) selected[text(assistant, "id") == asked(frame, "assistant_id")] { (text(assistant, "name")) }
                    }
                }
            }
            @for (name, called) in [("source", "Source"), ("outcome", "Outcome"), ("sentiment", "Sentiment")] {
                label { (called)
                    select name=(name) {
                        option value="" { "Any" }
                        @for choice in list(schema, &format!("properties/{name}/enum")).iter().filter_map(Value::as_str) {
                            option value=(choice) selected[choice == asked(frame, name)] { (words(choice)) }
                        }
                    }
                }
            }
            @for (name, called) in [("model", "Model"), ("voice", "Voice")] {
                label { (called)
                    input.mono name=(name) value=(asked(frame, name)) list={ "known-" (name) } maxlength=[at(schema, &format!("properties/{name}/maxLength")).as_u64()] placeholder="Any" autocomplete="off" spellcheck="false";
                    datalist id={ "known-" (name) } { @for known in distinct(assistants, name) { option value=(known) {} } }
                }
            }
            @for (name, called) in [("date_from", "From (UTC)"), ("date_to", "To (UTC)")] {
                @let value = asked(frame, name);
                // A control for dates would drop a time, which the overview and the API filter by.
                label { (called) input type=(if value.contains('T') { "text" } else { "date" }) name=(name) value=(value); }
            }
            } }
            @for name in ["sort", "order", "limit"] {
                @if !asked(frame, name).is_empty() { input type="hidden" name=(name) value=(asked(frame, name)); }
            }
        }
    }
}
