//! One call: what was said and heard, what the tools did, how long each answer took, what it cost.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::calls::{length, party_text, state, tone, why};
use crate::dashboard::pages::form::{act, destroy};
use crate::dashboard::pages::parts::{
    Tone, at, date, facts, grouped, id, link, list, money, name_of, number, read, section, text, words,
};
use crate::dashboard::pages::{read_of, timeline};

/// What can be done with a call, before and after its end.
const fn shown_calls(ended: bool) -> &'static [&'static str] {
    match ended {
        false => &["get_call", "follow_call", "hang_up_call"],
        true => &["get_call", "get_waveform", "download_recording", "delete_recording", "delete_call"],
    }
}

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard/calls/{id}",
    title: "Call",
    reads: &[read_of("get_call"), read_of("list_assistants")],
    forms: &[],
    render,
};

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let (call, assistants) = (read(answers, 0), read(answers, 1));
    let call_id = text(call, "id");
    let assistant = name_of(assistants, text(call, "assistant_id"));
    let ended = text(call, "status") == "ended";
    let rows = list(call, "transcript");
    let turns = list(call, "turns");
    let strip = Strip {
        // Isolated, so that a name written from right to left does not turn the number round.
        title: format!("\u{2068}{}\u{2069} – \u{2068}{assistant}\u{2069}", party_text(call)),
        back: Some(("/dashboard/calls", "Calls")),
        beside: Some(html! { (state(call)) (id(call_id)) }),
        action: Some(html! { (actions(frame, call, ended)) }),
        calls: shown_calls(ended).iter().map(|operation| Call::of(operation).at("id", call_id)).collect(),
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if tone(call) == Tone::Bad { (failed(call)) }
            @if !ended { div data-live hidden {} }
            @if ended && !rows.is_empty() { (timeline::trace(call, &assistant)) }
            div.beside {
                div.part {
                    h2 { "Transcript" }
                    @if rows.is_empty() {
                        p.dim { @if ended { "Nothing was said." } @else { "Nothing has been said yet. This page follows the call." } }
                    } @else { (timeline::transcript(rows, &assistant, &[])) }
                }
                aside {
                    @if at(call, "analysis").is_object() {
                        (section("Summary", html! {
                            p dir="auto" { (text(call, "analysis/summary")) }
                            p.help { (words(text(call, "analysis/sentiment"))) " sentiment, by " @if text(call, "analysis/method") == "model" { "the model" } @else { "rules" } }
                        }))
                    }
                    (section("Call", about(frame, call, &assistant)))
                    @if ended { (section("Costs", costs(call))) }
                    @if ended { (removal(frame, call)) }
                }
            }
            @if !turns.is_empty() {
                (section("How long the caller waited", html! {
                    @if text(call, "source") == "simulation" { p.help { "Nobody called: the caller was simulated, and the time of a simulation is virtual." } }
                    (timeline::turns(turns))
                }))
            }
            details.raw { summary { "Raw JSON" } pre tabindex="0" aria-label="The call as JSON" { (timeline::pretty(call)) } }
            (layout::module("call.js"))
        },
    )
}

fn actions(frame: &Frame, call: &Value, ended: bool) -> Markup {
    let call_id = text(call, "id");
    let here = link("/dashboard/calls", call_id);
    html! {
        @if ended {
            @if !list(call, "transcript").is_empty() {
                a.button.primary href={ (here) "/scenario" } { "Make a scenario" }
            }
        } @else {
            (act(frame, "hang_up_call", &[("id", call_id)], &here, html! { button.bad { "Hang up" } }))
        }
    }
}

/// What deletes, away from what is pressed often.
fn removal(frame: &Frame, call: &Value) -> Markup {
    let call_id = text(call, "id");
    let here = link("/dashboard/calls", call_id);
    html! {
        div.row.removal {
            @if at(call, "recording").is_object() {
                (destroy(frame, "delete_recording", &[("id", call_id)], &here, "Delete recording", "Delete 1 recording",
                    "The audio is deleted at once and for good. The call and its transcript stay."))
            }
            (destroy(frame, "delete_call", &[("id", call_id)], "/dashboard/calls", "Delete call", "Delete 1 call",
                "Transcript, analysis and recording are deleted for good. What the call cost stays in the month's spending."))
        }
    }
}

/// Why it failed, and whose fault it was.
fn failed(call: &Value) -> Markup {
    let fault = text(call, "fault");
    html! {
        div.problem {
            p { strong { (why(text(call, "ended_reason"))) } " " (whose(fault)) }
            p.help { code { (text(call, "ended_reason")) } " · fault " code { (fault) } }
        }
    }
}

fn whose(fault: &str) -> &'static str {
    match fault {
        "assistant" => "Check the assistant's instructions and tools.",
        "operator" => "Check the settings of this server.",
        "provider" => "Check the account with the provider of the model or the voice.",
        "carrier" => "Check the account with the carrier.",
        "platform" => "Sidetone is responsible.",
        _ => "",
    }
}

fn about(frame: &Frame, call: &Value, assistant: &str) -> Markup {
    let or_none = |value: &str| html! { @if value.is_empty() { span.none { "–" } } @else { (value) } };
    let mut pairs = vec![
        ("Started", date(frame, text(call, "started_at"))),
        ("Length", length(call)),
        (
            "Assistant",
            html! { a href=(link("/dashboard/assistants", text(call, "assistant_id"))) dir="auto" { (assistant) } " revision " (number(call, "assistant_revision")) },
        ),
        (
            "Ended because",
            html! { @if text(call, "ended_reason").is_empty() { span.none { "–" } } @else { (why(text(call, "ended_reason"))) } },
        ),
        ("Source", html! { (words(text(call, "source"))) }),
    ];
    if !text(call, "from").is_empty() || !text(call, "to").is_empty() {
        pairs.push(("From", or_none(text(call, "from"))));
        pairs.push(("To", or_none(text(call, "to"))));
        pairs.push(("Carrier", html! { (words(text(call, "provider"))) " " @if !text(call, "carrier_call_id").is_empty() { (id(text(call, "carrier_call_id"))) } }));
    }
    if !text(call, "user_number").is_empty() {
        pairs.push(("On behalf of", or_none(text(call, "user_number"))));
    }
    pairs.push(("Model", html! { code { (text(call, "model")) } }));
    pairs.push(("Voice", html! { code { (text(call, "voice")) } }));
    let run = text(call, "simulation_run_id");
    if !run.is_empty() {
        pairs.push(("Run", html! { a href=(link("/dashboard/simulations/runs", run)) { "Open the run" } }));
    }
    facts(&pairs)
}

/// Whether something of a provider was used whose price the operator has not set: it counts as nothing, and is not free.
fn lacks_price(call: &Value, part: &str) -> bool {
    let spoke = || list(call, "turns").iter().any(|turn| at(turn, "speech_first_ms").is_i64());
    let (name, used) = match part {
        "llm" => ("model", number(call, "usage/llm_input_tokens") > 0),
        "tts" => ("voice", spoke()),
        _ => return false,
    };
    used && !text(call, name).starts_with("builtin/") && number(call, &format!("costs/{part}_microusd")) == 0
}

fn costs(call: &Value) -> Markup {
    let parts = [("Telephony", "telephony"), ("Transcriber", "stt"), ("Model", "llm"), ("Voice", "tts")];
    html! {
        table {
            thead.vh { tr { th scope="col" { "What" } th scope="col" { "Cost" } } }
            tbody {
                @for (name, key) in parts {
                    tr { td { (name) } td.num { @if lacks_price(call, key) { span.dim { "no price set" } } @else { (money(number(call, &format!("costs/{key}_microusd")))) } } }
                }
                tr { td { strong { "Total" } } td.num { strong { (money(number(call, "costs/total_microusd"))) } } }
            }
        }
        @let (read, written) = (number(call, "usage/llm_input_tokens"), number(call, "usage/llm_output_tokens"));
        // The built-in model has no tokens.
        @if read + written > 0 { p.help { (grouped(read)) " tokens read, " (grouped(written)) " written" } }
    }
}
