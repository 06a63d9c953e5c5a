//! The overview: what happened lately, and what failed.
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::base::time;
use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::calls::{self, tone, why};
use crate::dashboard::pages::chart::{self, Label, Series};
use crate::dashboard::pages::parts::{
    Tone, address_of, asked, at, counted, day, empty, grouped, length, link, list, money, name_of, number,
    percent, read, section, span, status, table, text, when,
};
use crate::dashboard::pages::{choices_of, read_of, runs};

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard",
    title: "Overview",
    reads: &[
        Read { operation: "list_calls", query: &[], fixed: &[("limit", "50")], after: "" },
        Read { operation: "list_simulation_runs", query: &[], fixed: &[("limit", "50")], after: "" },
        read_of("get_workspace"),
        read_of("list_assistants"),
        choices_of("list_simulations"),
        Read { operation: "get_call_statistics", query: &["days"], fixed: &[("days", DAYS)], after: "" },
        // A failure among many calls is not among the latest.
        Read {
            operation: "list_calls",
            query: &[],
            fixed: &[("outcome", "failed"), ("limit", "8")],
            after: "",
        },
    ],
    forms: &[],
    render,
};

/// The days that are shown unless the address says otherwise, and what can be chosen.
const DAYS: &str = "7";
const DAYS_CHOICES: [&str; 3] = ["2", DAYS, "30"];

/// What is older did not fail lately: 30 days.
const LATELY_MS: i64 = 30 * 24 * 3_600_000;

/// How much of what failed, and of the latest calls, is shown.
const SHOWN_MAX: usize = 8;

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let (calls, runs, workspace, assistants) =
        (read(answers, 0), read(answers, 1), read(answers, 2), read(answers, 3));
    let rows = list(calls, "calls");
    let nothing = list(assistants, "").is_empty() && rows.is_empty();
    let period = Period::of(frame, read(answers, 5));
    let strip = Strip {
        title: "Overview".to_owned(),
        action: (!nothing)
            .then(|| html! { a.button.primary href="/dashboard/assistants/new" { "Create assistant" } }),
        calls: vec![
            Call::of("get_call_statistics").queried("days", period.days),
            Call::of("list_calls"),
            Call::of("list_simulation_runs"),
            Call::of("get_workspace"),
        ],
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
                @if rows.is_empty() {
                    (figures(&period, workspace))
                    (empty("No calls yet. Open an assistant and talk to it: the conversation appears here.",
                        Some(("/dashboard/assistants", "Go to assistants")), ("testing.md", "Ways to test")))
                } @else {
                    (ranges(frame, &period))
                    (figures(&period, workspace))
                    div.half {
                        (section("Outcomes", html! { (outcomes(&period)) (zone(&period)) }))
                        (section("Cost", html! { (costs(&period)) (zone(&period)) }))
                    }
                    (latency(&period))
                }
                (failed(frame, [list(read(answers, 6), "calls"), rows], list(runs, "runs"), assistants, read(answers, 4)))
                @if !rows.is_empty() {
                    section.part {
                        div.row { h2 { "Latest calls" } a href="/dashboard/calls" { "All calls" } }
                        (calls::rows_of(frame, rows.get(..rows.len().min(SHOWN_MAX)).unwrap_or_default(), assistants))
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

/// The time that the figures and the charts are of.
struct Period<'a> {
    days: &'a str,
    statistics: &'a Value,
    intervals: &'a [Value],
}

impl<'a> Period<'a> {
    fn of(frame: &'a Frame, statistics: &'a Value) -> Self {
        let days = Some(asked(frame, "days")).filter(|days| !days.is_empty()).unwrap_or(DAYS);
        Self { days, statistics, intervals: list(statistics, "intervals") }
    }

    fn has_days(&self) -> bool {
        number(self.statistics, "interval_ms") >= 24 * 3_600_000
    }

    /// `the last 7 days`
    fn words(&self) -> String {
        format!("the last {}", counted(self.days.parse().unwrap_or_default(), "day"))
    }

    fn each(&self, path: &str) -> Vec<i64> {
        self.intervals.iter().map(|interval| number(interval, path)).collect()
    }

    fn sum(&self, path: &str) -> i64 {
        self.intervals.iter().map(|interval| number(interval, path)).sum()
    }

    /// The start, as the filter of the call log takes it.
    fn date_from(&self) -> &'a str {
        let from = text(self.statistics, "from");
        from.strip_suffix("T00:00:00.000Z").unwrap_or(from)
    }

    fn labels(&self) -> Vec<Label> {
        let label = |interval: &Value| {
            let at = text(interval, "starts_at");
            let minutes = |from: usize| at.get(from..16).unwrap_or_default();
            if self.has_days() {
                return Label { text: time::from(at).map(day).unwrap_or_default(), at: None };
            }
            Label { text: format!("{} UTC", minutes(11)), at: Some(format!("{}Z", minutes(0))) }
        };
        self.intervals.iter().map(label).collect()
    }
}

/// The time that is shown, and the choice of it.
fn ranges(frame: &Frame, period: &Period<'_>) -> Markup {
    html! {
        div.row {
            h2 { "The last " (counted(period.days.parse().unwrap_or_default(), "day")) }
            nav.row aria-label="Time" {
                @for days in DAYS_CHOICES {
                    a.button href=(address_of(frame, &[("days", if days == DAYS { "" } else { days })])) aria-current=[(days == period.days).then_some("true")] { (days) " days" }
                }
            }
        }
    }
}

fn figures(period: &Period<'_>, workspace: &Value) -> Markup {
    let (total, simulated) = (period.sum("total"), period.sum("by_source/simulation"));
    let (completed, failed) = (period.sum("by_outcome/completed"), period.sum("by_outcome/failed"));
    // A call that goes on has no outcome.
    let outcomes = period.intervals.iter().filter_map(|interval| at(interval, "by_outcome").as_object());
    let ended: i64 = outcomes.flat_map(Map::values).filter_map(Value::as_i64).sum();
    let limit = at(workspace, "monthly_spend_limit_microusd").as_i64();
    let log = |filter: &str| format!("/dashboard/calls?date_from={}&{filter}", period.date_from());
    html! {
        dl.figures {
            div {
                dt { "Calls" }
                dd {
                    (grouped(total))
                    @if simulated > 0 { small { (grouped(total - simulated)) " by telephone or browser, " a href=(log("source=simulation")) { (grouped(simulated)) " simulated" } } }
                }
            }
            div { dt { "Completed" } dd { (grouped(completed)) @if ended > 0 { small { (percent(completed, ended)) " % of those that ended" } } } }
            div { dt { "Failed calls" } dd { (grouped(failed)) @if failed > 0 { small { a href=(log("outcome=failed")) { "Show them" } } } } }
            div { dt { "Average length" } dd { (length(if total > 0 { period.sum("total_duration_ms") / total } else { 0 })) } }
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

/// Days of a chart begin in UTC: the server does not know the viewer's zone.
fn zone(period: &Period<'_>) -> Markup {
    html! { p.help { @if period.has_days() { "Each bar is a day in UTC." } @else { "Each bar is three hours." } } }
}

fn outcomes(period: &Period<'_>) -> Markup {
    let of = |names: &[&str]| {
        let each: Vec<_> = names.iter().map(|name| period.each(&format!("by_outcome/{name}"))).collect();
        let sum = |at: usize| each.iter().filter_map(|counts| counts.get(at)).sum();
        (0..period.intervals.len()).map(sum).collect::<Vec<i64>>()
    };
    let told = of(&["completed", "no_answer", "busy", "voicemail", "failed"]);
    // Cancelled, or not over yet.
    let other = period.each("total").iter().zip(&told).map(|(total, told)| total - told).collect();
    let series = [
        Series { class: "f-accent o3", name: "Completed", counts: of(&["completed"]) },
        Series { class: "f-warn", name: "Not reached", counts: of(&["no_answer", "busy", "voicemail"]) },
        Series { class: "f-quiet", name: "Other", counts: other },
        Series { class: "f-bad", name: "Failed", counts: of(&["failed"]) },
    ];
    let series: Vec<Series> =
        series.into_iter().filter(|part| part.counts.iter().any(|count| *count > 0)).collect();
    chart::bars(&format!("Outcomes of the calls of {}, over time", period.words()), &period.labels(), &series)
}

fn costs(period: &Period<'_>) -> Markup {
    let sums = period.each("total_cost_microusd");
    let (total, largest): (i64, i64) = (sums.iter().sum(), sums.iter().copied().max().unwrap_or_default());
    let about = format!(
        "{} for {}, at most {} in {}",
        money(total),
        counted(period.sum("total"), "call"),
        money(largest),
        if period.has_days() { "a day" } else { "three hours" }
    );
    chart::plain_bars(&about, &period.labels(), &sums, &money)
}

/// How long callers waited for answers: percentiles of the calls of the period, and over time. Nobody waits in a simulation:
/// its time is virtual, and its answers count as quick as it makes them.
fn latency(period: &Period<'_>) -> Markup {
    let waits = at(period.statistics, "waits");
    let (total, simulated) = (period.sum("total"), period.sum("by_source/simulation"));
    let percentile = |interval: &Value, name: &str| at(interval, &format!("waits/{name}_ms")).as_i64();
    let over_time: Vec<Option<[i64; 2]>> = period
        .intervals
        .iter()
        .map(|interval| Some([percentile(interval, "p50")?, percentile(interval, "p95")?]))
        .collect();
    html! {
        @if number(waits, "turns") > 0 {
            (section("How long callers waited", html! {
                @if simulated == total { p.help { "Nobody called, and nobody waited: all calls were simulated, and the time of a simulation is virtual." } }
                @else if simulated > 0 { p.help { (grouped(simulated)) " of " (counted(total, "call")) @if simulated == 1 { " was" } @else { " were" } " simulated: nobody waited in them, and their time is virtual." } }
                dl.figures {
                    @for (name, share) in [("p50", 50), ("p95", 95), ("p99", 99)] {
                        div title={ (share) " of 100 answers came within this time" } { dt { (name) } dd { (span(number(waits, &format!("{name}_ms")))) } }
                    }
                    div { dt { "Answers" } dd { (grouped(number(waits, "turns"))) } }
                }
                p.help { "p95: 95 of 100 answers came within this time." }
                (chart::percentiles(&format!("How long callers of {} waited, over time", period.words()), ["p50", "p95"], &period.labels(), &over_time, &span))
            }))
        }
    }
}

/// What failed: the calls that did, those of the latest that went wrong otherwise, and runs.
fn failed(
    frame: &Frame,
    calls: [&[Value]; 2],
    runs: &[Value],
    assistants: &Value,
    simulations: &Value,
) -> Markup {
    let mut rows: Vec<(&str, Markup)> = Vec::new();
    let assistant = |of: &Value| {
        let name = name_of(assistants, text(of, "assistant_id"));
        html! { td.cap.fit.wide dir="auto" title=(name) { (name) } }
    };
    let [failed, latest] = calls;
    let others = latest.iter().filter(|call| text(call, "outcome") != "failed" && tone(call) == Tone::Bad);
    for call in failed.iter().chain(others.take(SHOWN_MAX)) {
        rows.push((text(call, "started_at"), html! {
            td.fit.wide { (when(frame, text(call, "started_at"))) }
            td.fit { (status(Tone::Bad, "Call failed")) }
            td.wrap { a.name href=(link("/dashboard/calls", text(call, "id"))) { (why(text(call, "ended_reason"))) } }
            (assistant(call))
        }));
    }
    let since = time::format(frame.now_ms - LATELY_MS);
    let bad = |run: &&Value| at(run, "passed") == false || text(run, "status") == "error";
    for run in runs.iter().filter(bad).take(SHOWN_MAX) {
        rows.push((
            text(run, "created_at"),
            html! {
                td.fit.wide { (when(frame, text(run, "created_at"))) }
                td.fit { (status(Tone::Bad, if text(run, "status") == "error" { "Run error" } else { "Run failed" })) }
                @let why = match runs::why(run) { "" => "An evaluation failed.", why => why };
                td.wrap title=(why) {
                    a.name href=(link("/dashboard/simulations/runs", text(run, "id"))) dir="auto" { (runs::name(simulations, run)) }
                    span.two dir="auto" { (why) }
                }
                (assistant(run))
            },
        ));
    }
    rows.retain(|(at, _)| *at >= since.as_str());
    rows.sort_by(|one, other| other.0.cmp(one.0));
    section(
        "What failed lately",
        html! {
            @if rows.is_empty() { p.dim { "No call failed, and nothing among the latest runs." } }
            @else {
                (table("What failed lately",
                    html! { th.wide scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Why" } th.wide scope="col" { "Assistant" } },
                    html! { @for (_, row) in rows.iter().take(SHOWN_MAX) { tr { (row) } } }))
            }
        },
    )
}
