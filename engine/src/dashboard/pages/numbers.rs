//! Telephone numbers: which assistant answers which, and what to enter at each carrier.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::form::{Form, destroy};
use crate::dashboard::pages::parts::{
    Tone, copy, documentation, empty, link, list, more, name_of, read, section, status, table, text, when,
    words,
};
use crate::dashboard::pages::{choices_of, list_of, read_of};
use crate::speech::settings::TONE;

/// All numbers, and the carriers' addresses.
pub const LIST: Page = Page {
    path: "/dashboard/numbers",
    title: "Numbers",
    reads: &[list_of("list_numbers", "after"), read_of("list_assistants")],
    forms: &[],
    render: all,
};

/// Binds one.
pub const NEW: Page = Page {
    path: "/dashboard/numbers/bind",
    title: "Bind a number",
    reads: &[choices_of("list_assistants")],
    forms: &["bind_number"],
    render: new,
};

const BASE: &str = "/dashboard/numbers";

/// What to enter at a carrier: where, the path of ours, the method.
type Entry = (&'static str, &'static str, &'static str);

/// The carriers, and what to enter at each.
const CARRIERS: &[(&str, &[Entry])] = &[
    (
        "twilio",
        &[
            ("A call comes in", "/carriers/twilio/voice", "HTTP POST"),
            ("Call status changes", "/carriers/twilio/status", "HTTP POST"),
        ],
    ),
    ("telnyx", &[("Send a webhook to the URL", "/carriers/telnyx/voice", "API v2")]),
    (
        "plivo",
        &[("Answer URL", "/carriers/plivo/voice", "POST"), ("Hangup URL", "/carriers/plivo/status", "POST")],
    ),
    (
        "vonage",
        &[("Answer URL", "/carriers/vonage/voice", "GET"), ("Event URL", "/carriers/vonage/status", "POST")],
    ),
];

fn all(frame: &Frame, answers: &[Value]) -> Markup {
    let (numbers, assistants) = (list(read(answers, 0), ""), read(answers, 1));
    let first = numbers.first();
    let number = first.map_or("+14155550100", |bound| text(bound, "number"));
    let assistant_id = first.map_or("asst_…", |bound| text(bound, "assistant_id"));
    let strip = Strip {
        title: "Numbers".to_owned(),
        action: (!numbers.is_empty())
            .then(|| html! { a.button.primary href="/dashboard/numbers/bind" { "Bind number" } }),
        calls: vec![
            Call::of("list_numbers"),
            Call::of("get_number").at("number", number),
            Call::of("unbind_number").at("number", number),
            Call::of("create_outbound_call")
                .with(json!({"assistant_id": assistant_id, "from": number, "to": "+14155550123"})),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if numbers.is_empty() {
                (empty("Bind a number that you have at Twilio, Telnyx, Plivo or Vonage to an assistant, and it answers the calls to it.",
                    Some(("/dashboard/numbers/bind", "Bind number")), ("telephone-numbers.md", "Set up a carrier")))
            } @else {
                (table("Numbers",
                    html! { th scope="col" { "Number" } th scope="col" { "Assistant" } th.wide scope="col" { "Carrier" } th.fit.wide scope="col" { "Last callback" } th.fit scope="col" { span.vh { "Actions" } } },
                    html! { @for number in numbers {
                        tr {
                            td.fit { strong { (text(number, "number")) } }
                            td dir="auto" { a href=(link("/dashboard/assistants", text(number, "assistant_id"))) { (name_of(assistants, text(number, "assistant_id"))) }
                                @if speaks_in_tones(assistants, text(number, "assistant_id")) { span.two { (status(Tone::Warn, "Speaks in test tones")) } } }
                            td.wide { (words(text(number, "provider"))) @if !has_account(frame, text(number, "provider")) { span.two { (status(Tone::Warn, "No account")) } } }
                            td.fit.wide { @match text(number, "last_callback_at") { "" => span.none { "none yet" }, at => (when(frame, at)) } }
                            td.fit { (destroy(frame, "unbind_number", &[("number", text(number, "number"))], BASE, "Unbind", &format!("Unbind {}", text(number, "number")),
                                "Callers hear that nobody answers. Calls in progress go on. The number stays yours at the carrier.")) }
                        }
                    } }))
                (more(frame, "after"))
            }
            @if numbers.iter().any(|number| !has_account(frame, text(number, "provider"))) { (without_account()) }
            (addresses(frame, numbers))
        },
    )
}

/// Whether calls through this carrier can be answered.
fn has_account(frame: &Frame, carrier: &str) -> bool {
    frame.carriers.contains(&carrier)
}

/// Whether callers would hear the tones of the test voice instead of words.
fn speaks_in_tones(assistants: &Value, id: &str) -> bool {
    let mut all = list(assistants, "").iter();
    all.any(|assistant| text(assistant, "id") == id && text(assistant, "voice") == TONE)
}

fn without_account() -> Markup {
    html! {
        div.problem { p {
            "“No account”: this service has no account with that carrier, so nobody answers. Whoever runs the service enters it in its settings: "
            (documentation(("telephone-numbers.md", "Set up a carrier"))) "."
        } }
    }
}

fn addresses(frame: &Frame, numbers: &[Value]) -> Markup {
    let secure = frame.origin.starts_with("https://");
    section(
        "What to enter at your carrier",
        html! {
            @if !secure {
                div.problem { p { "Carriers reach this service under an address with https. Set " code { "SIDETONE_BASE_URL" } " to it; these addresses then begin with it." } }
            }
            @for (carrier, rows) in CARRIERS {
                @let used = numbers.iter().any(|number| text(number, "provider") == *carrier);
                details.raw open[used || numbers.is_empty()] {
                    summary { (words(carrier)) }
                    @if numbers.iter().any(|number| text(number, "provider") == *carrier && text(number, "last_callback_at").is_empty()) {
                        p.help { (words(carrier)) " has sent no callback for one of your numbers yet. Enter these addresses there, then call the number." }
                    }
                    table {
                        thead.vh { tr { th scope="col" { "Field" } th scope="col" { "Value" } th scope="col" { "Method" } } }
                        tbody { @for (field, path, method) in *rows {
                            @let url = format!("{}{path}", frame.origin);
                            tr { td.fit { (field) } td { span.id { code { (url) } (copy(&url, "Copy the address")) } } td.fit.wide { (method) } }
                        } }
                    }
                }
            }
        },
    )
}

fn new(frame: &Frame, answers: &[Value]) -> Markup {
    let form = Form::new(frame, "bind_number", &Value::Null);
    let assistants: Vec<(String, String)> = list(read(answers, 0), "")
        .iter()
        .map(|one| (text(one, "id").to_owned(), text(one, "name").to_owned()))
        .collect();
    let strip = Strip {
        title: "Bind a number".to_owned(),
        back: Some((BASE, "Numbers")),
        calls: vec![Call::of("bind_number").at("number", "+14155550100").with(
            json!({"assistant_id": assistants.first().map_or("asst_…", |(id, _)| id), "provider": "twilio"}),
        )],
        ..Strip::default()
    };
    let typed = frame.typed.iter().find(|(name, _)| name == "number").map_or("", |(_, value)| value);
    layout::page(
        frame,
        strip,
        html! {
            @if assistants.is_empty() {
                (empty("A number is bound to an assistant, and there is none yet.", Some(("/dashboard/assistants/new", "Create assistant")), ("telephone-numbers.md", "Set up a carrier")))
            } @else {
                (form.wrap(&[], BASE, html! {
                    div.field {
                        label for="f-number" { "Number" }
                        input #f-number name="number" type="tel" value=(typed) required placeholder="+14155550100" aria-describedby="f-number-help" autocomplete="off";
                        p.help #f-number-help { "With + and the country's code, without spaces." }
                    }
                    (form.choice("assistant_id", &assistants))
                    (form.field("provider"))
                    p.help {
                        "Accounts of this service: "
                        @for (n, carrier) in frame.carriers.iter().enumerate() { @if n > 0 { ", " } (words(carrier)) }
                        @if frame.carriers.is_empty() { "none yet. A number can be bound, and is answered once there is one" } "."
                    }
                    (send("Bind number", BASE))
                }))
            }
        },
    )
}
