//! A call on its line of time: who spoke when, which tools were called, what was cut off, how long each answer took.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::pages::parts::{self, at, list, moment, number, span, text};
use crate::speech::settings::TONE;

/// The width of the drawing, in its own units.
const WIDTH: i64 = 1000;

/// The line of time above a transcript. The script adds the waveform and the cursor.
pub fn trace(call: &Value, assistant: &str) -> Markup {
    let rows = list(call, "transcript");
    let end = rows.iter().map(|row| number(row, "end_ms")).max().unwrap_or_default();
    let length = end.max(number(call, "duration_ms")).max(number(call, "recording/duration_ms")).max(1);
    let recorded = at(call, "recording").is_object();
    let recording = format!("/dashboard/api/calls/{}/recording", text(call, "id"));
    html! {
        section.line aria-label="The call on its line of time" {
            p.lane-names { strong.caller { "Caller" } span.dim { (parts::length(length)) } }
            div.trace data-trace=(text(call, "id")) data-length=(length) data-recorded[recorded] {
                svg.blocks viewBox={ "0 0 " (WIDTH) " 112" } preserveAspectRatio="none" role="img" aria-label=(told(rows)) {
                    line.mid x1="0" x2=(WIDTH) y1="56" y2="56" {}
                    @for row in rows { (block(row, length)) }
                }
                svg.wave viewBox={ "0 0 " (WIDTH) " 112" } preserveAspectRatio="none" aria-hidden="true" {}
                span.cursor hidden {}
            }
            p.lane-names { strong.assistant dir="auto" { (assistant) } }
            p.marks aria-hidden="true" { @for part in 0..=4 { span { (mark(length * part / 4, length)) } } }
            @if recorded {
                div.player {
                    button.primary type="button" data-play hidden { "Play" }
                    span.clock data-clock hidden { "0:00 / " (parts::length(length)) }
                    label.row data-rate hidden { span.vh { "Speed" } select { option value="1" { "1×" } option value="1.5" { "1.5×" } option value="2" { "2×" } } }
                    a.button href=(recording) download { "Download" }
                    audio controls preload="none" src=(recording) {}
                }
                @if text(call, "voice") == TONE { (parts::tones()) }
            }
        }
    }
}

/// The shortest line whose quarters are told in seconds.
const SECONDS_MS: i64 = 60_000;

/// A moment on a line of this length: the quarters of a short one need tenths.
fn mark(ms: i64, length: i64) -> String {
    if length < SECONDS_MS { moment(ms) } else { parts::length(ms) }
}

fn told(rows: &[Value]) -> String {
    let count = |role: &str| rows.iter().filter(|row| text(row, "role") == role).count();
    let cut = rows.iter().filter(|row| at(row, "interrupted") == true).count();
    format!(
        "The caller speaks {} times, the assistant {} times; {cut} lines were cut off; {} tool calls.",
        count("user"),
        count("assistant"),
        count("tool_call")
    )
}

fn block(row: &Value, length: i64) -> Markup {
    let (start, end) = (number(row, "start_ms"), number(row, "end_ms"));
    let (x, width) = (start * WIDTH / length, ((end - start) * WIDTH / length).max(2));
    html! {
        @match text(row, "role") {
            "user" => rect.f-caller x=(x) y="12" width=(width) height="40" rx="1" {},
            "assistant" => {
                rect.f-assistant x=(x) y="60" width=(width) height="40" rx="1" {}
                @if at(row, "interrupted") == true { line.cut x1=(x + width) x2=(x + width) y1="4" y2="108" {} }
            }
            "tool_call" => line.tick x1=(x) x2=(x) y1="2" y2="110" stroke-dasharray="3 3" {},
            _ => {},
        }
    }
}

/// What an evaluation that failed says about a transcript.
pub struct Mark {
    /// The row that it is told at.
    pub index: i64,
    /// Whether this row is why it failed. Else it read all rows as far as this one, and missed something.
    pub decides: bool,
    /// What failed, and why.
    pub told: Markup,
}

/// The id of what is told after a row.
pub fn missing_id(index: i64) -> String {
    format!("after-row-{index}")
}

/// The transcript: a row for each line, key and tool call, in step with the line of time.
pub fn transcript(rows: &[Value], assistant: &str, marks: &[Mark]) -> Markup {
    html! {
        ol.talk {
            @for row in rows {
                @let index = number(row, "index");
                @let (decided, missed): (Vec<&Mark>, Vec<&Mark>) = marks.iter().filter(|mark| mark.index == index).partition(|mark| mark.decides);
                li id={ "row-" (index) } class={ (class(row)) @if !decided.is_empty() { " failing" } }
                    data-start=(number(row, "start_ms")) data-end=(number(row, "end_ms")) {
                    button.at type="button" data-seek=(number(row, "start_ms")) { (moment(number(row, "start_ms"))) }
                    (said(row, rows, assistant))
                    @for mark in decided { @if !mark.told.0.is_empty() { small.bad dir="auto" { "Failed: " (mark.told) } } }
                }
                @if !missed.is_empty() {
                    li.failing id=(missing_id(index)) {
                        b { "Missing" }
                        div { @for mark in missed { p dir="auto" { (mark.told) } } }
                    }
                }
            }
        }
    }
}

fn class(row: &Value) -> &'static str {
    match text(row, "role") {
        "tool_call" | "tool_result" | "system" => "tool",
        _ => "",
    }
}

fn said(row: &Value, rows: &[Value], assistant: &str) -> Markup {
    match text(row, "role") {
        "user" => html! { b.caller { "Caller" } div { p dir="auto" { (text(row, "text")) } } },
        "assistant" => html! {
            b.assistant dir="auto" { (assistant) }
            div { p dir="auto" { (text(row, "text")) (cut(row)) } }
            @if at(row, "interrupted") == true { small { "Cut off at " (moment(number(row, "end_ms"))) (cut_by(row, rows)) } }
        },
        "tool_call" => html! {
            b { "Tool call" }
            div {
                p { code { strong { (text(row, "tool_name")) } } @if at(row, "is_error") == true { " – refused, not sent" } }
                @if at(row, "arguments").is_object() { (json_of(at(row, "arguments"), "Arguments")) }
            }
        },
        "tool_result" => html! {
            b { "Answer" }
            div { @match serde_json::from_str::<Value>(text(row, "text")) {
                Ok(value) if value.is_object() || value.is_array() => (json_of(&value, "The tool's answer")),
                _ => p dir="auto" { code { (text(row, "text")) } },
            } }
            @let (failed, took) = (at(row, "is_error") == true, took(row, rows));
            // On the virtual time of a simulation, tools take none.
            @if took > 0 { small.bad[failed] { @if failed { "Failed after " } @else { "After " } (span(took)) } }
            @else if failed { small.bad { "Failed" } }
        },
        "dtmf" => html! { b.caller { "Keys" } div { p { code { (text(row, "text")) } } } },
        _ => html! { b { "Service" } div { p { (text(row, "text")) } } },
    }
}

/// What was not heard of a line, struck through.
fn cut(row: &Value) -> Markup {
    let (heard, intended) = (text(row, "text"), text(row, "intended_text"));
    let rest = intended.strip_prefix(heard).unwrap_or(intended);
    html! { @if at(row, "interrupted") == true && !rest.is_empty() { span.vh { " Not heard: " } del { (rest) } } }
}

/// Whether the caller's next words came while the line was spoken.
fn cut_by(row: &Value, rows: &[Value]) -> &'static str {
    let end = number(row, "end_ms");
    let next = rows
        .iter()
        .filter(|other| text(other, "role") == "user")
        .find(|other| number(other, "end_ms") >= end);
    match next {
        Some(next) if number(next, "start_ms") <= end + 1500 => ": the caller came in",
        _ => ": the call ended",
    }
}

fn took(row: &Value, rows: &[Value]) -> i64 {
    let id = text(row, "tool_call_id");
    let call =
        rows.iter().find(|other| text(other, "role") == "tool_call" && text(other, "tool_call_id") == id);
    number(row, "end_ms") - call.map_or(number(row, "start_ms"), |call| number(call, "start_ms"))
}

/// JSON as people read it.
pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// JSON in one line where it fits there, else as people read it.
fn json_of(value: &Value, about: &str) -> Markup {
    let short = value.to_string();
    html! {
        @if short.chars().count() <= 90 { p { code { (short) } } }
        @else { pre tabindex="0" aria-label=(about) { (pretty(value)) } }
    }
}

/// How long the caller waited for each answer, and for what.
pub fn turns(turns: &[Value]) -> Markup {
    let waits: Vec<i64> = turns.iter().filter_map(wait).collect();
    let longest = waits.iter().copied().max().unwrap_or(1).max(1);
    html! {
        p.key aria-hidden="true" {
            @for (class, name) in STEPS { span { svg width="10" height="10" { rect class=(class) width="10" height="10" rx="2" {} } (name) } }
        }
        div.scroll tabindex="0" role="region" aria-label="Turn times" {
            table {
                thead { tr {
                    th scope="col" { "Caller stopped" } th scope="col" { "The wait" } th.num scope="col" { "Heard after" }
                    th.num.wide scope="col" { "End of turn" } th.num.wide scope="col" { "Model" } th.num.wide scope="col" { "Voice" } th.num.wide scope="col" { "Line" }
                } }
                tbody {
                    @for turn in turns {
                        @let steps = steps(turn);
                        tr {
                            td.fit { (moment(number(turn, "end_of_speech_ms"))) }
                            td.timing { (bar(&steps, longest)) }
                            td.num.fit { strong { (wait(turn).map_or("–".to_owned(), span)) } }
                            @for step in steps { td.num.fit.wide { (step.map_or("–".to_owned(), span)) } }
                        }
                    }
                }
            }
        }
    }
}

const STEPS: [(&str, &str); 4] =
    [("f-quiet", "End of turn"), ("f-accent", "Model"), ("f-accent o6", "Voice"), ("f-accent o3", "Line")];

/// From the end of the caller's speech until the caller hears the answer.
fn wait(turn: &Value) -> Option<i64> {
    Some(at(turn, "heard_first_ms").as_i64()? - at(turn, "end_of_speech_ms").as_i64()?)
}

fn steps(turn: &Value) -> [Option<i64>; 4] {
    let names = ["end_of_speech_ms", "transcript_ms", "model_first_ms", "speech_first_ms", "heard_first_ms"];
    let mut times = names.map(|name| at(turn, name).as_i64()).into_iter();
    let mut last = times.next().flatten();
    [(); 4].map(|()| {
        let time = times.next().flatten();
        let step = Some((time? - last?).max(0));
        last = time;
        step
    })
}

fn bar(steps: &[Option<i64>; 4], longest: i64) -> Markup {
    let mut end = 0;
    let parts = steps.iter().zip(STEPS).filter_map(|(step, (class, _))| {
        let width = (*step)?;
        end += width;
        Some((class, end - width, width))
    });
    html! {
        svg viewBox={ "0 0 " (longest) " 12" } preserveAspectRatio="none" aria-hidden="true" {
            @for (class, x, width) in parts { rect class=(class) x=(x) y="0" width=(width) height="12" {} }
        }
    }
}
