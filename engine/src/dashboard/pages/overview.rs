//! The overview: what happened lately, and what failed.
use maud::{Markup, html};
use serde_json::Value;

use crate::base::time;
use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::calls::{self, tone, why};
use crate::dashboard::pages::chart::{self, Label, Series};
use crate::dashboard::pages::parts::{
    Tone, at, counted, day, empty, grouped, length, link, list, money, name_of, number, read, section, span,
    status, table, text, when,
};
use crate::dashboard::pages::{choices_of, read_of};

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard",
    title: "Overview",
    reads: &[
        Read { operation: "list_calls", query: &[], fixed: &[("limit", "200")], after: "" },
        Read { operation: "list_simulation_runs", query: &[], fixed: &[("limit", "50")], after: "" },
        read_of("get_workspace"),
        read_of("list_assistants"),
        choices_of("list_simulations"),
        // How many of all calls are simulated.
        Read {
            operation: "list_calls",
            query: &[],
            fixed: &[("source", "simulation"), ("limit", "1")],
            after: "",
        },
    ],
    forms: &[],
    render,
};

/// How much of what failed is shown.
const FAILED_MAX: usize = 8;

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let (calls, runs, workspace, assistants) =
        (read(answers, 0), read(answers, 1), read(answers, 2), read(answers, 3));
    let rows = list(calls, "calls");
    let nothing = list(assistants, "").is_empty() && rows.is_empty();
    let bars = Bars::over(frame, rows);
    let strip = Strip {
        title: "Overview".to_owned(),
        action: (!nothing)
            .then(|| html! { a.button.primary href="/dashboard/assistants/new" { "Create assistant" } }),
        calls: vec![Call::of("list_calls"), Call::of("list_simulation_runs"), Call::of("get_workspace")],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @for warning in list(workspace, "warnings").iter().filter_map(Value::as_str) {
                div.problem { p { (warning) } }
            }
            @if nothing { (first_steps()) }
            @else {
                (figures(calls, number(read(answers, 5), "stats/total"), workspace))
                @if rows.is_empty() {
                    (empty("No calls yet. Open an assistant and talk to it: the conversation appears here.",
                        Some(("/dashboard/assistants", "Go to assistants")), ("testing.md", "Ways to test")))
                } @else {
                    div.half {
                        (section("Outcomes", html! { (outcomes(&bars, rows)) (zone(&bars)) }))
                        (section("Cost", html! { (costs(&bars, rows)) (zone(&bars)) }))
                    }
                    (latency(&bars, calls, rows))
                }
                (failed(frame, rows, list(runs, "runs"), assistants, read(answers, 4)))
                @if !rows.is_empty() {
                    section.part {
                        div.row { h2 { "Latest calls" } a href="/dashboard/calls" { "All calls" } }
                        (calls::rows_of(frame, rows.get(..rows.len().min(8)).unwrap_or_default(), assistants))
                    }
                }
            }
        },
    )
}

fn first_steps() -> Markup {
    html! {
        (empty(
            "Nothing here yet. An assistant answers calls: give it a name and instructions, then talk to it in the browser.",
            Some(("/dashboard/assistants/new", "Create assistant")),
            ("assistants-and-knowledge.md", "How assistants work"),
        ))
    }
}

fn figures(calls: &Value, simulated: i64, workspace: &Value) -> Markup {
    let stats = at(calls, "stats");
    let (total, failed) = (number(stats, "total"), number(stats, "by_outcome/failed"));
    let limit = at(workspace, "monthly_spend_limit_microusd").as_i64();
    html! {
        dl.figures {
            div {
                dt { "Calls" }
                dd {
                    (grouped(total))
                    @if simulated > 0 { small { (grouped(total - simulated)) " by telephone or browser, " a href="/dashboard/calls?source=simulation" { (grouped(simulated)) " simulated" } } }
                }
            }
            div { dt { "Completed" } dd { (grouped(number(stats, "by_outcome/completed"))) @if total > 0 { small { (number(stats, "by_outcome/completed") * 100 / total) " % of all" } } } }
            div { dt { "Failed calls" } dd { (grouped(failed)) @if failed > 0 { small { a href="/dashboard/calls?outcome=failed" { "Show them" } } } } }
            div { dt { "Average length" } dd { (length(number(stats, "average_duration_ms"))) } }
            div {
                dt { "Spent this month" }
                dd {
                    (money(number(workspace, "spent_this_month_microusd")))
                    small { @if let Some(limit) = limit { "of " (money(limit)) } @else { "no limit is set" } }
                }
            }
        }
    }
}

/// The time of the calls, cut into bars: hours where they are all of two days, else days.
struct Bars {
    first_ms: i64,
    each_ms: i64,
    count: usize,
}

impl Bars {
    fn over(frame: &Frame, rows: &[Value]) -> Self {
        let oldest =
            rows.iter().filter_map(|call| time::from(text(call, "started_at"))).min().unwrap_or(frame.now_ms);
        let day = 24 * 3_600_000;
        let each_ms = if frame.now_ms - oldest > 2 * day { day } else { day / 24 };
        let last = frame.now_ms.div_euclid(each_ms);
        let count = (last - oldest.div_euclid(each_ms) + 1).clamp(if each_ms == day { 7 } else { 12 }, 48);
        Self { first_ms: (last - count + 1) * each_ms, each_ms, count: usize::try_from(count).unwrap_or(1) }
    }

    const fn are_days(&self) -> bool {
        self.each_ms > 3_600_000
    }

    fn of(&self, call: &Value) -> Option<usize> {
        let ms = time::from(text(call, "started_at"))? - self.first_ms;
        usize::try_from(ms.div_euclid(self.each_ms)).ok().filter(|at| *at < self.count)
    }

    fn sum(&self, rows: &[Value], value: impl Fn(&Value) -> i64) -> Vec<i64> {
        let mut sums = vec![0; self.count];
        for call in rows {
            if let Some(sum) = self.of(call).and_then(|at| sums.get_mut(at)) {
                *sum += value(call);
            }
        }
        sums
    }

    fn labels(&self) -> Vec<Label> {
        let label = |ms: i64| match self.each_ms {
            3_600_000 => {
                let at = time::format(ms);
                let minutes = |from: usize| at.get(from..16).unwrap_or_default();
                Label { text: format!("{} UTC", minutes(11)), at: Some(format!("{}Z", minutes(0))) }
            }
            _ => Label { text: day(ms), at: None },
        };
        (0_i64..).take(self.count).map(|at| label(self.first_ms + at * self.each_ms)).collect()
    }
}

/// Days of a chart begin in UTC: the server does not know the viewer's zone.
fn zone(bars: &Bars) -> Markup {
    html! { @if bars.are_days() { p.help { "Each bar is a day in UTC." } } }
}

fn outcomes(bars: &Bars, rows: &[Value]) -> Markup {
    let of = |tones: &'static [Tone]| bars.sum(rows, |call| i64::from(tones.contains(&tone(call))));
    let series = [
        Series { class: "f-accent o3", name: "Completed", counts: of(&[Tone::Good]) },
        Series { class: "f-warn", name: "Not reached", counts: of(&[Tone::Warn]) },
        Series { class: "f-quiet", name: "Other", counts: of(&[Tone::Quiet, Tone::Live]) },
        Series { class: "f-bad", name: "Failed", counts: of(&[Tone::Bad]) },
    ];
    let series: Vec<Series> =
        series.into_iter().filter(|part| part.counts.iter().any(|count| *count > 0)).collect();
    chart::bars(&format!("Outcomes of the latest {} calls over time", rows.len()), &bars.labels(), &series)
}

fn costs(bars: &Bars, rows: &[Value]) -> Markup {
    let sums = bars.sum(rows, |call| number(call, "costs/total_microusd"));
    let total: i64 = sums.iter().sum();
    let (largest, labels) = (sums.iter().copied().max().unwrap_or_default(), bars.labels());
    let about = format!(
        "{} for the latest {}, at most {} {}",
        money(total),
        counted(i64::try_from(rows.len()).unwrap_or_default(), "call"),
        money(largest),
        if bars.are_days() { "in a day" } else { "in an hour" }
    );
    chart::plain_bars(&about, &labels, &sums, &money)
}

/// How long callers waited for answers: percentiles of the latest calls, and over time.
fn latency(bars: &Bars, calls: &Value, rows: &[Value]) -> Markup {
    let waits = at(calls, "stats/waits");
    let mut each: Vec<Vec<i64>> = vec![Vec::new(); bars.count];
    for call in rows {
        if let Some(waits) = bars.of(call).and_then(|at| each.get_mut(at)) {
            waits.extend(list(call, "waits_ms").iter().filter_map(Value::as_i64));
        }
    }
    let over_time: Vec<Option<[i64; 2]>> = each
        .iter_mut()
        .map(|waits| {
            waits.sort_unstable();
            let percentile =
                |percent: usize| waits.get((waits.len() * percent).div_ceil(100).saturating_sub(1));
            Some([*percentile(50)?, *percentile(95)?])
        })
        .collect();
    html! {
        @if number(waits, "turns") > 0 {
            (section("How long callers waited", html! {
                dl.figures {
                    @for name in ["p50", "p95", "p99"] {
                        div { dt { (name) } dd { (span(number(waits, &format!("{name}_ms")))) } }
                    }
                    div { dt { "Answers" } dd { (grouped(number(waits, "turns"))) } }
                }
                @if over_time.iter().any(Option::is_some) {
                    (chart::percentiles(&format!("How long callers of the latest {} calls waited, over time", rows.len()), ["p50", "p95"], &bars.labels(), &over_time, &span))
                }
            }))
        }
    }
}

fn failed(frame: &Frame, calls: &[Value], runs: &[Value], assistants: &Value, simulations: &Value) -> Markup {
    let mut rows: Vec<(&str, Markup)> = Vec::new();
    for call in calls.iter().filter(|call| tone(call) == Tone::Bad).take(FAILED_MAX) {
        rows.push((text(call, "started_at"), html! {
            td.fit.wide { (when(frame, text(call, "started_at"))) }
            td.fit { (status(Tone::Bad, "Call failed")) }
            td { a.name href=(link("/dashboard/calls", text(call, "id"))) { (why(text(call, "ended_reason"))) } }
            td.cap.wide dir="auto" { (name_of(assistants, text(call, "assistant_id"))) }
        }));
    }
    let bad = |run: &&Value| at(run, "passed") == false || text(run, "status") == "error";
    for run in runs.iter().filter(bad).take(FAILED_MAX) {
        let error = text(run, "error/message");
        rows.push((
            text(run, "created_at"),
            html! {
                td.fit.wide { (when(frame, text(run, "created_at"))) }
                td.fit { (status(Tone::Bad, if error.is_empty() { "Run failed" } else { "Run error" })) }
                td {
                    a.name href=(link("/dashboard/simulations/runs", text(run, "id"))) dir="auto" { (name_of(simulations, text(run, "simulation_id"))) }
                    span.two dir="auto" { @if error.is_empty() { "An evaluation failed." } @else { (error) } }
                }
                td.cap.wide dir="auto" { (name_of(assistants, text(run, "assistant_id"))) }
            },
        ));
    }
    rows.sort_by(|one, other| other.0.cmp(one.0));
    section(
        "What failed lately",
        html! {
            @if rows.is_empty() { p.dim { "Nothing among the latest calls and runs." } }
            @else {
                (table("What failed lately",
                    html! { th.wide scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Why" } th.wide scope="col" { "Assistant" } },
                    html! { @for (_, row) in rows.iter().take(FAILED_MAX) { tr { (row) } } }))
            }
        },
    )
}
