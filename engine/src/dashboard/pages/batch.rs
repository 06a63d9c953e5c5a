//! A batch of runs: how far it is, and what came of each.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::again::Again;
use crate::dashboard::pages::parts::{
    Tone, at, counted, grouped, id, list, name_of, number, pages, read, status, text,
};
use crate::dashboard::pages::{choices_of, read_of, runs, simulations};

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard/simulations/batches/{id}",
    title: "Batch",
    reads: &[
        read_of("get_simulation_batch"),
        Read {
            operation: "list_simulation_runs",
            query: &["page"],
            fixed: &[("batch_id", "{id}"), ("limit", "100")],
            after: "",
        },
        choices_of("list_simulations"),
        read_of("list_assistants"),
    ],
    forms: &[],
    render,
};

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let [batch, answer, simulations, assistants] = [0, 1, 2, 3].map(|n| read(answers, n));
    let rows = list(answer, "runs");
    let count = |name: &str| number(batch, name);
    let (total, queued, running) = (count("total"), count("queued"), count("running"));
    let going = queued + running > 0;
    let batch_id = frame.path.rsplit('/').next().unwrap_or_default();
    // A batch is everything of one assistant. Its name is isolated: it may be written from right to left.
    let of = match text(batch, "assistant_id") {
        "" => String::new(),
        id => format!(" – \u{2068}{}\u{2069}", name_of(assistants, id)),
    };
    // What an inline start was given is stored nowhere as a whole, and the simulations of its assistant are others.
    let is_stored = rows.iter().any(|run| !text(run, "simulation_id").is_empty());
    let again = Again::of("start_simulation_batch", batch, ("assistant_id", text(batch, "assistant_id")));
    let strip = Strip {
        title: format!("Batch of {}{of}", counted(total, "run")),
        back: Some((simulations::BASE, "Simulations")),
        beside: Some(
            html! { @if going { (status(Tone::Live, "Running")) } @else { (status(Tone::Quiet, "Ended")) } (id(batch_id)) },
        ),
        action: (is_stored && !going)
            .then(|| again.form(frame, "/dashboard/simulations/batches/{batch_id}", "Run all again")),
        calls: [
            Call::of("get_simulation_batch").at("id", batch_id),
            Call::of("list_simulation_runs").queried("batch_id", batch_id),
            Call::of("delete_simulation_runs").queried("batch_id", batch_id),
        ]
        .into_iter()
        .chain(is_stored.then(|| Call::of("start_simulation_batch").with(again.body())))
        .collect(),
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            section.part data-live[going] {
                p {
                    strong { (grouped(total - queued - running)) " of " (grouped(total)) " done" }
                    @if going { " · " (grouped(running)) " running, " (grouped(queued)) " waiting" }
                    " · " (count("passed")) " passed, " (count("failed")) " failed"
                    @if count("undecided") > 0 { ", " (count("undecided")) " not decided" }
                    @if count("errors") > 0 { ", " (count("errors")) " with an error" }
                }
                (bar(batch, total - queued - running))
            }
            section.part {
                (runs::rows(frame, rows, simulations))
                (pages(frame, at(answer, "pagination"), ("run", "runs")))
            }
        },
    )
}

/// The runs that are done, by what came of them.
fn bar(batch: &Value, done: i64) -> Markup {
    let [total, passed, failed, broken, undecided] =
        ["total", "passed", "failed", "errors", "undecided"].map(|name| number(batch, name));
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
