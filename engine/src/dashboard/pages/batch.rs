//! A batch of runs: how far it is, and what came of each.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::parts::{
    Tone, at, counted, grouped, id, list, number, pages, read, status, text,
};
use crate::dashboard::pages::{choices_of, runs, simulations};

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
    let strip = Strip {
        title: format!("Batch of {}", counted(total, "run")),
        back: Some((simulations::BASE, "Simulations")),
        beside: Some(
            html! { @if going { (status(Tone::Live, "Running")) } @else { (status(Tone::Quiet, "Ended")) } (id(batch_id)) },
        ),
        calls: vec![Call::of("list_simulation_runs").queried("batch_id", batch_id)],
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
                progress max=(total.max(1)) value=(done) aria-label="Runs that are done" {}
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

/// How many passed and failed, where the page has all of them.
fn verdicts(rows: &[Value], total: i64) -> Markup {
    let of = |passed: bool| rows.iter().filter(|run| at(run, "passed") == passed).count();
    let broken = rows.iter().filter(|run| text(run, "status") == "error").count();
    html! {
        @if i64::try_from(rows.len()) == Ok(total) {
            " · " (of(true)) " passed, " (of(false)) " failed"
            @if broken > 0 { ", " (broken) " with an error" }
        }
    }
}
