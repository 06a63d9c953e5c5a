//! Tools: HTTP endpoints that an assistant calls during a conversation.
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::dashboard::attached::ATTACH;
use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::form::{Form, act, destroy, named, sentence, used};
use crate::dashboard::pages::parts::{
    Tone, asked, at, empty, id, link, list, more, number, read, section, snippet, span, status, table, text,
    when,
};
use crate::dashboard::pages::{assistant_of, list_of, read_of, ways};

/// All tools.
pub const LIST: Page = Page {
    path: "/dashboard/tools",
    title: "Tools",
    reads: &[list_of("list_tools", "after")],
    forms: &[],
    render: all,
};

/// A new one.
pub const NEW: Page = Page {
    path: "/dashboard/tools/new",
    title: "New tool",
    reads: &[],
    forms: &["create_tool"],
    render: new,
};

/// One, to change.
pub const EDIT: Page = Page {
    path: "/dashboard/tools/{id}",
    title: "Tool",
    reads: &[read_of("get_tool"), read_of("list_assistants")],
    forms: &["update_tool", "test_tool"],
    render: edit,
};

const BASE: &str = "/dashboard/tools";

fn all(frame: &Frame, answers: &[Value]) -> Markup {
    let tools = list(read(answers, 0), "");
    let strip = Strip {
        title: "Tools".to_owned(),
        action: (!tools.is_empty())
            .then(|| html! { a.button.primary href="/dashboard/tools/new" { "Create tool" } }),
        calls: vec![Call::of("list_tools")],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if tools.is_empty() {
                (empty("A tool is an HTTP endpoint of yours, such as “find an appointment”. An assistant calls it during a conversation and uses the answer.",
                    Some(("/dashboard/tools/new", "Create tool")), ("tools.md", "What Sidetone sends, and expects")))
            } @else {
                (table("Tools",
                    html! { th scope="col" { "Name" } th.wide scope="col" { "What it does" } th scope="col" { "Request" } th.num.wide scope="col" { "Gives up after" } th.fit.wide scope="col" { "Changed" } },
                    html! { @for tool in tools {
                        tr {
                            td.fit { a.name href=(link(BASE, text(tool, "id"))) { (text(tool, "name")) } }
                            td.wrap.wide dir="auto" { (text(tool, "description")) }
                            td { code { (text(tool, "method")) " " (text(tool, "url")) } }
                            td.num.fit.wide { (span(number(tool, "timeout_ms"))) }
                            td.fit.wide { (when(frame, text(tool, "updated_at"))) }
                        }
                    } }))
                (more(frame, "after"))
            }
        },
    )
}

fn fields(form: &Form<'_>) -> Markup {
    html! {
        (form.field("name"))
        (form.field("description"))
        (form.field("url"))
        fieldset.group {
            legend { "Request" }
            (form.field("method"))
            (form.field("timeout_ms"))
        }
        (form.field("parameters"))
        (preview(&form.json("parameters")))
    }
}

/// What the assistant fills in, as the schema describes it. The script tells it again while it is typed.
fn preview(schema: &Value) -> Markup {
    let properties = at(schema, "properties").as_object();
    let required = |name: &str| list(schema, "required").iter().any(|other| other == name);
    html! {
        div.preview data-preview="f-parameters" hidden[properties.is_none_or(Map::is_empty)] {
            h2 { "What the assistant fills in" }
            dl.facts { @for (name, property) in properties.into_iter().flatten() {
                div { dt { code { (name) } } dd dir="auto" { (told(property, required(name))) } }
            } }
        }
    }
}

/// `text, required – The day, such as 2026-11-30`
fn told(property: &Value, required: bool) -> String {
    let choices: Vec<String> = list(property, "enum")
        .iter()
        .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
        .collect();
    let mut told = match text(property, "type") {
        _ if !choices.is_empty() => choices.join(" or "),
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "yes or no".to_owned(),
        "array" => "list".to_owned(),
        "" => "any value".to_owned(),
        other => other.to_owned(),
    };
    if required {
        told.push_str(", required");
    }
    match text(property, "description") {
        "" => told,
        description => format!("{told} – {description}"),
    }
}

/// A new tool takes no arguments: an example that is overlooked would be saved, and filled in.
fn blank() -> Value {
    json!({"method": "POST", "parameters": {"type": "object", "properties": {}}})
}

fn new(frame: &Frame, _: &[Value]) -> Markup {
    let assistant = assistant_of(frame);
    let (to, back) = ways(&assistant, "/dashboard/tools/{id}", (BASE, "Tools"));
    let current = blank();
    let form = Form::new(frame, "create_tool", &current);
    let strip = Strip {
        title: "New tool".to_owned(),
        back: Some(back),
        calls: vec![Call::of("create_tool").with(json!({"name": "find_appointment", "url": "https://dental.example.com/slots", "description": "Finds free appointments on a day.", "parameters": {"type": "object", "properties": {"date": {"type": "string", "description": "The day, such as 2026-11-30"}}, "required": ["date"]}}))],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (form.wrap(&[(ATTACH, asked(frame, "assistant_id"))], to, html! { (fields(&form)) (send("Create tool", back.0)) }))
        },
    )
}

fn edit(frame: &Frame, answers: &[Value]) -> Markup {
    let (tool, assistants) = (read(answers, 0), read(answers, 1));
    let tool_id = text(tool, "id");
    let here = link(BASE, tool_id);
    let form = Form::new(frame, "update_tool", tool);
    let arguments = json!({"arguments": sample(at(tool, "parameters"))});
    let test = Form::new(frame, "test_tool", &arguments);
    let users: Vec<&Value> = list(assistants, "")
        .iter()
        .filter(|assistant| list(assistant, "tool_ids").iter().any(|other| other == tool_id))
        .collect();
    let strip = Strip {
        title: text(tool, "name").to_owned(),
        back: Some((BASE, "Tools")),
        beside: Some(id(tool_id)),
        action: Some(destroy(
            frame,
            "delete_tool",
            &[("id", tool_id)],
            BASE,
            "Delete",
            &named("Delete", text(tool, "name")),
            &used("no longer call it", users.len()),
        )),
        calls: vec![
            Call::of("get_tool").at("id", tool_id),
            Call::of("update_tool").at("id", tool_id).with(json!({"timeout_ms": number(tool, "timeout_ms")})),
            Call::of("test_tool").at("id", tool_id).with(arguments.clone()),
            Call::of("rotate_tool_secret").at("id", tool_id),
            Call::of("delete_tool").at("id", tool_id),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            div.beside {
                (form.wrap(&[("id", tool_id)], &here, html! { (fields(&form)) (send("Save", BASE)) }))
                aside {
                    (section("Test", html! {
                        (test.wrap(&[("id", tool_id)], &here, html! {
                            (test.field("arguments"))
                            div.row.send { button { "Send a test request" } }
                        }))
                        p.help { "Your endpoint does its work: a test of a booking tool books." }
                        @if let Some(tested) = frame.secret_once.as_ref().filter(|answer| answer.get("request").is_some()) {
                            (outcome(tested))
                        }
                    }))
                    (section("Used by", html! {
                        @if users.is_empty() { p.dim { "No assistant yet. Attach it on the page of an assistant." } }
                        @for assistant in users { p { a href=(link("/dashboard/assistants", text(assistant, "id"))) dir="auto" { (text(assistant, "name")) } } }
                    }))
                    (section("Signature", html! {
                        p.help { "Each request is signed, so that your endpoint can tell ours from others." }
                        (snippet(super::webhooks::VERIFY_JS, "Verification in JavaScript"))
                        (act(frame, "rotate_tool_secret", &[("id", tool_id)], &here, html! { button { "New signing secret" } }))
                        p.help { "The old secret stays good for 24 hours beside the new one." }
                    }))
                }
            }
        },
    )
}

/// The request of a test, and what came back.
fn outcome(tested: &Value) -> Markup {
    let failed = text(tested, "error");
    let headers = at(tested, "request/headers").as_object();
    html! {
        div.part role="status" {
            p {
                @if failed.is_empty() { (status(Tone::Good, "Answered")) } @else { (status(Tone::Bad, "Failed")) }
                " " @if failed.is_empty() { "HTTP " (number(tested, "response/status")) } @else { (sentence(failed)) }
                " · " (span(number(tested, "duration_ms")))
            }
            @if at(tested, "response").is_null() { p.help { "Nothing answered. Check the host name, the port and the certificate of the URL, and that it is public." } }
            @if !text(tested, "response/body").is_empty() { (snippet(text(tested, "response/body"), "Answer")) }
            details.raw {
                summary { "Request" }
                pre {
                    (text(tested, "request/method")) " " (text(tested, "request/url"))
                    @for (name, value) in headers.into_iter().flatten() { "\n" (name) ": " (value.as_str().unwrap_or_default()) }
                    @if !text(tested, "request/body").is_empty() { "\n\n" (text(tested, "request/body")) }
                }
            }
        }
    }
}

/// Arguments to begin a test with: a value of the right type for each that is required.
fn sample(parameters: &Value) -> Value {
    let required = list(parameters, "required").iter().filter_map(Value::as_str);
    let value = |name: &str| {
        let schema = &parameters["properties"][name];
        if let Some(first) = list(schema, "enum").first() {
            return first.clone();
        }
        match schema["type"].as_str() {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("…"),
        }
    };
    Value::Object(required.map(|name| (name.to_owned(), value(name))).collect())
}
