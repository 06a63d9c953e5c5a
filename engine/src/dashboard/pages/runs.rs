//! One run of a simulation, with the turn that failed; two runs side by side.
use std::borrow::Cow;

use maud::{Markup, html};
use serde_json::Value;

use crate::base::limits::LIST_ROWS_DEFAULT;
use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::again::Again;
use crate::dashboard::pages::form::destroy;
use crate::dashboard::pages::parts::{
    Tone, at, counted, date, facts, id, link, list, moment, name_of, number, read, section, status, table,
    text, to_the_second, when, words,
};
use crate::dashboard::pages::timeline::{self, Mark};
use crate::dashboard::pages::{read_of, simulations};

/// One run.
pub const ONE: Page = Page {
    path: "/dashboard/simulations/runs/{id}",
    title: "Run",
    reads: &[
        read_of("get_simulation_run"),
        read_of("list_assistants"),
        read_of("list_simulations"),
        Read { operation: "list_simulation_runs", query: &[], fixed: &[("limit", "200")], after: "" },
    ],
    forms: &[],
    render: one,
};

/// Two runs side by side.
pub const COMPARE: Page = Page {
    path: "/dashboard/simulations/runs/{id}/compare/{other}",
    title: "Two runs",
    reads: &[
        read_of("get_simulation_run"),
        Read { operation: "get_simulation_run", query: &[], fixed: &[("id", "{other}")], after: "" },
        read_of("list_assistants"),
    ],
    forms: &[],
    render: compare,
};

const BASE: &str = "/dashboard/simulations/runs";

/// Whether a run has not ended.
pub fn is_going(run: &Value) -> bool {
    matches!(text(run, "status"), "queued" | "running")
}

/// When a run began; of one that waits, when it was ordered.
fn began(run: &Value) -> &str {
    [text(run, "started_at"), text(run, "created_at")]
        .into_iter()
        .find(|at| !at.is_empty())
        .unwrap_or_default()
}

/// What came of a run.
pub fn verdict(run: &Value) -> Markup {
    match (text(run, "status"), at(run, "passed").as_bool()) {
        ("queued", _) => status(Tone::Quiet, "Queued"),
        ("running", _) => status(Tone::Live, "Running"),
        ("error", _) => status(Tone::Bad, "Error"),
        (_, Some(true)) => status(Tone::Good, "Passed"),
        (_, Some(false)) => status(Tone::Bad, "Failed"),
        (_, None) => status(Tone::Warn, "Not decided"),
    }
}

/// Whether a resource is still there: it is listed, or not all are.
fn is_there(resources: &Value, id: &str) -> bool {
    let all = list(resources, "");
    all.iter().any(|one| text(one, "id") == id) || all.len() as i64 >= LIST_ROWS_DEFAULT
}

/// Whether the run's call was deleted, and with it the variables that would start the run again.
fn is_emptied(run: &Value) -> bool {
    text(run, "status") == "completed" && text(run, "call_id").is_empty()
}

/// Why a run did not pass, in a line; empty if it did, or is not over.
pub fn why(run: &Value) -> &str {
    match text(run, "error/message") {
        "" => text(run, "failed_evaluation"),
        error => error,
    }
}

/// Runs as a table.
pub fn rows(frame: &Frame, runs: &[Value], simulations: &Value) -> Markup {
    table(
        "Runs",
        html! { th scope="col" { "Started" } th scope="col" { "Simulation" } th scope="col" { "Result" } th.wide scope="col" { "Details" } th.num.wide scope="col" { "Turns" } th.num.wide scope="col" { "Cost" } },
        html! { @for run in runs {
            tr {
                td.fit { a.name href=(link(BASE, text(run, "id"))) { (when(frame, began(run))) } }
                td.cap.long dir="auto" { (name(simulations, run)) }
                td.fit { (verdict(run)) }
                td.wrap.wide dir="auto" { @match why(run) { "" => span.dim { (text(run, "last_line")) }, why => (why) } }
                td.num.fit.wide { (number(run, "turns")) }
                td.num.fit.wide { (simulations::cost(run)) }
            }
        } },
    )
}

/// The name of the simulation that was run.
pub fn name<'a>(simulations: &'a Value, run: &'a Value) -> Cow<'a, str> {
    match text(run, "simulation_id") {
        "" => "Inline run".into(),
        id => name_of(simulations, id),
    }
}

/// The same in full: an inline run is called by its persona and its scenario, isolated, since they may be written from right to left.
fn title(simulations: &Value, run: &Value) -> String {
    let name = name(simulations, run);
    match (text(run, "simulation_id"), text(run, "simulation_name")) {
        ("", given) if !given.is_empty() => format!("{name} – \u{2068}{given}\u{2069}"),
        _ => name.into_owned(),
    }
}

/// Whether the assistant was given with the start of an inline run, and is stored nowhere.
fn has_given_assistant(assistants: &Value, run: &Value) -> bool {
    text(run, "simulation_id").is_empty() && !is_there(assistants, text(run, "assistant_id"))
}

/// The name of who spoke for the assistant: one that was given with the start has none here.
fn speaker<'a>(assistants: &'a Value, run: &'a Value) -> Cow<'a, str> {
    match has_given_assistant(assistants, run) {
        true => "Assistant".into(),
        false => name_of(assistants, text(run, "assistant_id")),
    }
}

fn one(frame: &Frame, answers: &[Value]) -> Markup {
    let (run, assistants, simulations) = (read(answers, 0), read(answers, 1), read(answers, 2));
    let run_id = text(run, "id");
    let assistant = speaker(assistants, run);
    let simulation_id = text(run, "simulation_id");
    let seed = number(run, "seed").to_string();
    let snapshot = at(run, "snapshot").as_str();
    let evaluations = list(run, "evaluations");
    let rows = list(run, "call/transcript");
    let failing: Vec<Mark> =
        evaluations.iter().filter(|one| at(one, "passed") == false).map(|one| mark(one, rows)).collect();
    let is_inline = simulation_id.is_empty();
    let again = Again::of("start_simulation_run", run, ("id", simulation_id));
    let strip = Strip {
        title: title(simulations, run),
        back: Some((simulations::BASE, "Simulations")),
        beside: Some(html! { (verdict(run)) (id(run_id)) }),
        action: Some(html! {
            @if !is_going(run) && !is_inline && !is_emptied(run) && is_there(simulations, simulation_id) {
                (again.form(frame, "/dashboard/simulations/runs/{id}", "Run again, same seed"))
            }
        }),
        calls: vec![
            Call::of("get_simulation_run").at("id", run_id),
            Call::of("follow_simulation_run").at("id", run_id),
            Call::of("delete_simulation_run").at("id", run_id),
        ]
        .into_iter()
        .chain(
            (!is_inline).then(|| Call::of("start_simulation_run").at("id", simulation_id).with(again.body())),
        )
        .chain(snapshot.map(|hash| Call::of("get_snapshot").at("hash", hash)))
        .collect(),
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            div.part data-live[is_going(run)] {
                @if !text(run, "error/message").is_empty() {
                    div.problem { p { (text(run, "error/message")) } p.help { code { (text(run, "error/code")) } } }
                }
                (evaluations_of(evaluations, rows, is_going(run)))
                @if at(run, "call").is_object() && !is_going(run) { (timeline::trace(at(run, "call"), &assistant)) }
            }
            div.beside {
                div.part {
                    h2 { "Transcript" }
                    @if rows.is_empty() { p.dim { @if text(run, "status") == "queued" { "The conversation has not begun." } @else if is_going(run) { "The transcript comes when the run ends." } @else { "Nothing was said." } } }
                    (timeline::transcript(rows, &assistant, &failing))
                }
                aside {
                    (section("Run", facts(&[
                        ("Started", date(frame, began(run))),
                        ("Mode", html! { (simulations::mode(run)) }),
                        ("Turns", html! { (number(run, "turns")) }),
                        ("Batch", html! { @if text(run, "batch_id").is_empty() { span.none { "–" } } @else { a href=(link("/dashboard/simulations/batches", text(run, "batch_id"))) { "Open the batch" } } }),
                        ("Scenario", made_of(simulations, run, "scenario_id", "/dashboard/simulations/scenarios")),
                        ("Caller", made_of(simulations, run, "persona_id", "/dashboard/simulations/personas")),
                        ("Snapshot", html! { @match snapshot { Some(hash) => code title=(hash) { (hash.get(..12).unwrap_or(hash)) }, None => span.none { "–" } } }),
                        ("Seed", html! { (id(&seed)) }),
                        ("Assistant", tested(run, assistants)),
                        ("Cost", html! { (simulations::cost(run)) }),
                    ])))
                    @if !text(run, "call_id").is_empty() { p { a href=(link("/dashboard/calls", text(run, "call_id"))) { "Open the call" } } }
                    (others(run, list(read(answers, 3), "runs")))
                    @if !is_going(run) {
                        div.row.removal { (destroy(frame, "delete_simulation_run", &[("id", run_id)], simulations::BASE, "Delete run", "Delete 1 run", "Its transcript and its results are deleted for good.")) }
                    }
                }
            }
            (layout::module("call.js"))
        },
    )
}

/// What is said of a part of an inline run: it is stored nowhere else.
const GIVEN: &str = "given with the start";

/// The way to what the simulation is made of, as long as there is one.
fn made_of(simulations: &Value, run: &Value, part: &str, base: &str) -> Markup {
    let simulation_id = text(run, "simulation_id");
    let simulation = list(simulations, "").iter().find(|one| text(one, "id") == simulation_id);
    html! {
        @match simulation {
            Some(simulation) => a href=(link(base, text(simulation, part))) { "Open the " (if part == "persona_id" { "persona" } else { "scenario" }) },
            None => span.none { (if simulation_id.is_empty() { GIVEN } else { "deleted" }) },
        }
    }
}

/// The assistant under test. That of an inline run need not be stored, and then it has no page.
fn tested(run: &Value, assistants: &Value) -> Markup {
    let (id, revision) = (text(run, "assistant_id"), number(run, "assistant_revision"));
    html! {
        @if has_given_assistant(assistants, run) { span.none { (GIVEN) } }
        @else {
            a href=(link("/dashboard/assistants", id)) dir="auto" { (name_of(assistants, id)) }
            // No stored assistant has the revision 0.
            @if revision == 0 { ", changed for this run" } @else { " revision " (revision) }
        }
    }
}

fn evaluations_of(evaluations: &[Value], rows: &[Value], going: bool) -> Markup {
    let passed = evaluations.iter().filter(|one| at(one, "passed") == true).count();
    html! {
        h2 { "Evaluations" @if !evaluations.is_empty() { span.dim { " – " (passed) " of " (evaluations.len()) " passed" } } }
        @if evaluations.is_empty() { p.dim { @if going { "They are decided at the end." } @else { "The scenario has none, so nothing says whether the assistant did well." } } }
        @else {
            (table("Evaluations",
                html! { th scope="col" { "Result" } th scope="col" { "Criterion" } th.wide scope="col" { "Why" } },
                html! { @for one in evaluations {
                    tr {
                        td.fit { (decision(one)) }
                        td dir="auto" { (criterion(one)) }
                        td.wide dir="auto" { (text(one, "reason"))
                            @if let Some(row) = at(one, "matched_index").as_i64() { " " a href={ "#row-" (row) } { (place(rows, row)) } }
                            @else if at(one, "passed") == false && !rows.is_empty() { " " a href={ "#" (timeline::missing_id(mark(one, rows).index)) } { "Show where" } }
                        }
                    }
                } }))
        }
    }
}

/// What came of an evaluation.
fn decision(one: &Value) -> Markup {
    match at(one, "passed").as_bool() {
        Some(true) => status(Tone::Good, "Passed"),
        Some(false) => status(Tone::Bad, "Failed"),
        None => status(Tone::Warn, "Not decided"),
    }
}

/// A row of a conversation is called by its time, as the transcript shows it.
fn place(rows: &[Value], index: i64) -> String {
    let row = rows.iter().find(|row| number(row, "index") == index);
    row.map_or_else(|| "Show where".to_owned(), |row| format!("At {}", moment(number(row, "start_ms"))))
}

/// Where an evaluation failed: at the row that decides, else after the last one that it reads.
fn mark(one: &Value, rows: &[Value]) -> Mark {
    let told = html! { (criterion(one)) " – " (text(one, "reason")) };
    if let Some(index) = at(one, "matched_index").as_i64() {
        return Mark { index, decides: true, told };
    }
    let reads = |row: &&Value| match (text(one, "role"), text(row, "role")) {
        ("assistant", role) => role == "assistant",
        ("user", role) => matches!(role, "user" | "dtmf"),
        ("tool", role) => matches!(role, "tool_call" | "tool_result"),
        _ => true,
    };
    let last = rows.iter().rev().find(reads).or_else(|| rows.last());
    Mark { index: last.map_or(0, |row| number(row, "index")), decides: false, told }
}

fn criterion(one: &Value) -> Markup {
    let (what, role) = (text(one, "includes"), text(one, "role"));
    let who = if role == "any" {
        "anybody".to_owned()
    } else {
        format!("the {}", words(role).to_lowercase().replace("user", "caller"))
    };
    html! {
        span title=(text(one, "kind")) { @match text(one, "kind") {
            "transcript" => { "Said by " (who) ": “" (what) "”" },
            "transcript_excludes" => { "Never said by " (who) ": “" (what) "”" },
            "tool_call" => { "Calls " (tool(what)) @match number(one, "times") { 0 => {}, 1 => " once", times => { " " (times) " times" } }
                @if let Some(arguments) = one.get("arguments") { " with " code { (arguments) } } },
            "tool_not_called" => { "Does not call " (tool(what)) },
            "no_tool_error" => { "No error in calls of " (tool(what)) },
            _ => { "Judged by a model: " (what) @if let Some(votes) = one.get("votes") {
                " (" (number(votes, "passed")) " for it, " (number(votes, "failed")) " against it" @if number(votes, "undecided") > 0 { ", " (number(votes, "undecided")) " undecided" } ")" } },
        } }
    }
}

fn tool(name: &str) -> Markup {
    html! { @if name == "*" { "any tool" } @else { code { (name) } } }
}

/// Other runs of the simulation, to compare with. Inline runs have none: they go together if they were started together, or
/// with the same.
fn others(run: &Value, runs: &[Value]) -> Markup {
    let has_same =
        |other: &Value, name: &str| !text(run, name).is_empty() && text(other, name) == text(run, name);
    let is_inline = |run: &Value| text(run, "simulation_id").is_empty();
    let same = |other: &&Value| {
        let together = match is_inline(run) {
            true => is_inline(other) && (has_same(other, "batch_id") || has_same(other, "snapshot")),
            false => has_same(other, "simulation_id"),
        };
        together && text(other, "id") != text(run, "id")
    };
    let others: Vec<&Value> = runs.iter().filter(same).take(5).collect();
    html! {
        @if !others.is_empty() {
            (section("Compare with", html! {
                @for other in others {
                    p.row { (verdict(other)) a href={ (link(BASE, text(run, "id"))) "/compare/" (text(other, "id")) } { "the run of " (to_the_second(began(other))) } }
                }
            }))
        }
    }
}

/// The two runs of a comparison.
const SIDES: [&str; 2] = ["First run", "Second run"];

fn compare(frame: &Frame, answers: &[Value]) -> Markup {
    let sides = [read(answers, 0), read(answers, 1)];
    let assistants = read(answers, 2);
    let first_run = link(BASE, text(sides[0], "id"));
    let strip = Strip {
        title: "Two runs".to_owned(),
        back: Some((&first_run, "First run")),
        calls: sides.iter().map(|run| Call::of("get_simulation_run").at("id", text(run, "id"))).collect(),
        ..Strip::default()
    };
    let both = || list(sides[0], "call/transcript").iter().zip(list(sides[1], "call/transcript"));
    let apart = both().position(|(one, other)| text(one, "text") != text(other, "text"));
    layout::page(
        frame,
        strip,
        html! {
            @match apart.and_then(|row| both().nth(row)) {
                Some((one, other)) => p { "They part at " (moment(number(one, "start_ms"))) " of the first run, " (moment(number(other, "start_ms"))) " of the second." },
                None => p { "They say the same, as far as both go." },
            }
            (section("Evaluations", side_by_side(sides)))
            div.half {
                @for (run, name) in sides.into_iter().zip(SIDES) {
                    @let assistant = speaker(assistants, run);
                    @let first = apart.map(|row| Mark { index: i64::try_from(row).unwrap_or_default(), decides: true, told: html! {} });
                    section.part {
                        div.row { h2 { a href=(link(BASE, text(run, "id"))) { (name) } } (verdict(run)) }
                        p.help { (to_the_second(began(run))) " · revision " (number(run, "assistant_revision")) " · seed " (number(run, "seed")) " · " (counted(number(run, "turns"), "turn")) " · " (simulations::cost(run)) }
                        (timeline::transcript(list(run, "call/transcript"), &assistant, first.as_slice()))
                    }
                }
            }
        },
    )
}

/// What came of each evaluation in both runs: one that the other run did not have stands alone.
fn side_by_side(sides: [&Value; 2]) -> Markup {
    let is_same = |one: &Value, other: &Value| {
        ["kind", "role", "includes", "arguments", "times"].iter().all(|part| at(one, part) == at(other, part))
    };
    let [first, second] = sides.map(|run| list(run, "evaluations"));
    let only_second = second.iter().filter(|one| !first.iter().any(|other| is_same(one, other)));
    let all: Vec<&Value> = first.iter().chain(only_second).collect();
    html! {
        @if all.is_empty() { p.dim { "Neither run has an evaluation that was decided." } }
        @else {
            div.versus {
                (table("Evaluations of both runs",
                    html! { th scope="col" { "Criterion" } @for name in SIDES { th scope="col" { (name) } } },
                    html! { @for criterion_of in all {
                        tr {
                            td dir="auto" { (criterion(criterion_of)) }
                            @for (run, evaluations) in [(sides[0], first), (sides[1], second)] {
                                td.wrap { @match evaluations.iter().find(|one| is_same(one, criterion_of)) {
                                    // In a card, the state alone would not say whose it is.
                                    Some(one) => div { (decided_in(run, one)) },
                                    None => span.none { "not checked" },
                                } }
                            }
                        }
                    } }))
            }
        }
    }
}

/// What came of an evaluation in a run, why, and the way to the row that decides.
fn decided_in(run: &Value, one: &Value) -> Markup {
    html! {
        (decision(one))
        span.two dir="auto" { (text(one, "reason"))
            @if let Some(row) = at(one, "matched_index").as_i64() {
                " " a href={ (link(BASE, text(run, "id"))) "#row-" (row) } { (place(list(run, "call/transcript"), row)) }
            }
        }
    }
}
