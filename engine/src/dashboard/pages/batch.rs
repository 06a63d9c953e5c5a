//! A batch of runs: how far it is, and what came of each.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::form::act;
use crate::dashboard::pages::parts::{
    Tone, at, counted, grouped, id, list, name_of, number, pages, read, status, text,
};
use crate::dashboard::pages::{choices_of, read_of, runs, simulations};

/// The runs of the batch in this state: only how many.
const fn count_of(fixed: &'static [(&'static str, &'static str)]) -> Read {
    Read { operation: "list_simulation_runs", query: &[], fixed, after: "" }
}

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard/simulations/batches/{id}",
    title: "Batch",
    reads: &[
        Read {
            operation: "list_simulation_runs",
            query: &["page"],
            fixed: &[("batch_id", "{id}"), ("limit", "100")],
            after: "",
        },
        count_of(&[("batch_id", "{id}"), ("status", "queued"), ("limit", "1")]),
        count_of(&[("batch_id", "{id}"), ("status", "running"), ("limit", "1")]),
        choices_of("list_simulations"),
        read_of("list_assistants"),
    ],
    forms: &[],
    render,
};

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let answer = read(answers, 0);
    let (rows, count) = (list(answer, "runs"), |n: usize| number(read(answers, n), "pagination/total"));
    let (total, queued, running) = (count(0), count(1), count(2));
    let going = queued + running > 0;
    let done = total - queued - running;
    let batch_id = frame.path.rsplit('/').next().unwrap_or_default();
    // A batch is everything of one assistant. Its name is isolated: it may be written from right to left.
    let assistant = rows.first().map(|run| name_of(read(answers, 4), text(run, "assistant_id")));
    let of = assistant.map(|name| format!(" – \u{2068}{name}\u{2069}")).unwrap_or_default();
    let strip = Strip {
        title: format!("Batch of {}{of}", counted(total, "run")),
        back: Some((simulations::BASE, "Simulations")),
        beside: Some(
            html! { @if going { (status(Tone::Live, "Running")) } @else { (status(Tone::Quiet, "Ended")) } (id(batch_id)) },
        ),
        action: rows.first().filter(|_| !going).map(|run| {
            let again = [("assistant_id", text(run, "assistant_id")), ("mode", text(run, "mode"))];
            act(
                frame,
                "start_simulation_batch",
                &again,
                "/dashboard/simulations/batches/{batch_id}",
                html! { button.primary { "Run all again" } },
            )
        }),
        calls: [Call::of("list_simulation_runs").queried("batch_id", batch_id)]
            .into_iter()
            .chain(rows.first().map(|run| {
                let body = json!({"assistant_id": text(run, "assistant_id"), "mode": text(run, "mode")});
                Call::of("start_simulation_batch").with(body)
            }))
            .collect(),
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            section.part data-live[going] {
                p {
                    strong { (grouped(done)) " of " (grouped(total)) " done" }
                    @if going { " · " (grouped(running)) " running, " (grouped(queued)) " waiting" }
                    (verdicts(rows, total))
                }
                (bar(rows, done, total))
            }
            section.part {
                @if rows.is_empty() { p.dim { "No runs. They were deleted, or there never was such a batch." } }
                @else {
                    (runs::rows(frame, rows, read(answers, 3)))
                    (pages(frame, at(answer, "pagination"), ("run", "runs")))
                }
            }
        },
    )
}

/// How many passed, how many failed, how many ended in an error and how many were not decided, where the page has all of them.
fn counts(rows: &[Value], total: i64) -> Option<[i64; 4]> {
    let count = |is: &dyn Fn(&Value) -> bool| rows.iter().map(|run| i64::from(is(run))).sum();
    (i64::try_from(rows.len()) == Ok(total)).then(|| {
        [
            count(&|run| at(run, "passed") == true),
            count(&|run| at(run, "passed") == false),
            count(&|run| text(run, "status") == "error"),
            count(&|run| text(run, "status") == "completed" && at(run, "passed").is_null()),
        ]
    })
}

fn verdicts(rows: &[Value], total: i64) -> Markup {
    html! {
        @if let Some([passed, failed, broken, open]) = counts(rows, total) {
            " · " (passed) " passed, " (failed) " failed"
            @if open > 0 { ", " (open) " not decided" }
            @if broken > 0 { ", " (broken) " with an error" }
        }
    }
}

/// The runs that are done, by what came of them; of a batch of several pages, only that they are done.
fn bar(rows: &[Value], done: i64, total: i64) -> Markup {
    let [passed, failed, broken, _] = counts(rows, total).unwrap_or_default();
    let undecided = done - passed - failed - broken;
    let parts = [("f-good", passed), ("f-bad", failed + broken), ("f-quiet", undecided)];
    let mut x = 0;
    let parts = parts.map(|(class, count)| {
        x += count;
        (class, x - count, count)
    });
    html! {
        svg.parts viewBox={ "0 0 " (total.max(1)) " 8" } preserveAspectRatio="none" role="img" aria-label={ (grouped(done)) " of " (grouped(total)) " runs are done" } {
            @for (class, x, count) in parts { @if count > 0 { rect class=(class) x=(x) width=(count) height="8" {} } }
        }
    }
}
