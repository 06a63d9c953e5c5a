//! One operation: what it takes and answers on the left, an example on the right.
use maud::{Markup, html};
use serde_json::Value;

use super::examples::Examples;
use super::fields::{self, Field};
use super::json::{block, pretty};
use super::snippets::{self, Request};
use super::words::{prose, text};
use super::{guide, list};
use crate::base::error::Code;
use crate::operations;
use crate::operations::operation::Success;

/// The section of an operation. Routes without a key have no example: there is nothing to set.
pub(super) fn section(
    document: &Value,
    base_url: &str,
    examples: &Examples,
    path: &str,
    method: &str,
    described: &Value,
) -> Markup {
    let id = text(&described["operationId"]);
    let route = html! { p.route { b { (method.to_ascii_uppercase()) } " " code { (path) } } };
    let title = html! { h3 { a href={ "#" (id) } { (prose(text(&described["summary"]))) } } };
    let Some(operation) = operations::by_id(id) else {
        return html! { section.op id=(id) { div.told { (title) (route) (plain(described)) } } };
    };
    let example = examples.operation(id);
    let url = format!("{base_url}{}", filled(path, example));
    let request = Request { operation, described, url, example };
    html! {
        section.op id=(id) {
            div.told {
                (title)
                (route)
                p { (prose(text(&described["description"]))) }
                (takes(document, described))
                (gives(document, described))
                (errors(described))
            }
            div.shown {
                (snippets::tabs(&request))
                (answer(operation.success, example))
            }
        }
    }
}

/// The path and query of the example.
fn filled(path: &str, example: &Value) -> String {
    let mut path = path.to_owned();
    for (name, value) in example["path"].as_object().into_iter().flatten() {
        // A `+` of a number is one in a path; no other value needs to be encoded.
        path = path.replace(&format!("{{{name}}}"), text(value));
    }
    match text(&example["query"]) {
        "" => path,
        query => format!("{path}?{query}"),
    }
}

/// What every status means, of a route that is no operation.
fn plain(described: &Value) -> Markup {
    html! {
        dl.fields {
            @for (status, response) in described["responses"].as_object().into_iter().flatten() {
                div { dt { code { (status) } } dd { (prose(text(&response["description"]))) } }
            }
        }
    }
}

/// Path, query and headers, then the body. What many operations take is told once, in the guide.
fn takes(document: &Value, described: &Value) -> Markup {
    let parameters = list(&described["parameters"]);
    let of = |place: &str| parameters.iter().filter(move |one| one["in"] == place).collect::<Vec<_>>();
    let content = &described["requestBody"]["content"]["application/json"];
    let partial = described["requestBody"].is_object() && content["schema"]["required"].is_null();
    html! {
        @for (place, title) in [("path", "Path"), ("query", "Query"), ("header", "Headers")] {
            @let fields = of(place);
            @if !fields.is_empty() {
                h4 { (title) }
                dl.fields {
                    @for one in &fields {
                        @let name = text(&one["name"]);
                        @let note = if one["description"].is_string() { &one["description"] } else { &one["schema"]["description"] };
                        @match guide::header_told_at(name) {
                            Some(place) => div { dt { code { (name) } " " a href={ "#" (place) } { (guide::title(place)) } } },
                            None => (fields::row(document, &Field { name, schema: &one["schema"], note: text(note), required: one["required"] == true && place != "path" })),
                        }
                    }
                }
            }
        }
        @if content.is_object() {
            h4 { "Body" @if partial { small { "every field is optional" } } }
            (fields::of_body(document, &content["schema"]))
        }
    }
}

/// What success is.
fn gives(document: &Value, described: &Value) -> Markup {
    let responses = described["responses"].as_object();
    let good = responses.into_iter().flatten().filter(|(status, _)| status.as_str() < "400");
    html! {
        h4 { "Response" }
        @for (status, response) in good {
            @let schema = &response["content"]["application/json"]["schema"];
            p.gives {
                b { (status) } " "
                @if schema.is_object() { (fields::kind(document, schema)) }
                @else { (prose(text(&response["description"]))) }
            }
            @if let Some(name) = fields::object_in(document, schema) {
                details.same data-object=(fields::object_anchor(name)) {
                    summary { "Fields of " (name) }
                    p { a href={ "#" (fields::object_anchor(name)) } { (name) } " lists them." }
                }
            }
        }
    }
}

/// The codes that say something of this operation; those of every operation are in the guide.
fn errors(described: &Value) -> Markup {
    const EVERYWHERE: &[u16] = &[401, 408, 413, 415, 429, 500, 503];
    let responses = described["responses"].as_object();
    let codes: Vec<&Code> = responses
        .into_iter()
        .flatten()
        .filter_map(|(status, response)| Some((status.parse::<u16>().ok()?, text(&response["description"]))))
        .flat_map(|(status, told)| {
            Code::ALL.iter().filter(move |code| {
                code.status() == status && told.contains(&format!("`{}`: ", code.as_str()))
            })
        })
        .filter(|code| !EVERYWHERE.contains(&code.status()) && **code != Code::InvalidJson)
        .collect();
    html! {
        p.codes {
            span { "Errors" }
            @for code in codes { " " a href={ "#error-" (code.as_str()) } { code { (code.as_str()) } } }
            " " a href="#errors" { "and those of every operation" }
        }
    }
}

fn answer(success: Success, example: &Value) -> Markup {
    let (note, shown) = match success {
        Success::Ok | Success::Created => ("", pretty(&example["response"])),
        Success::Events => ("text/event-stream", text(&example["stream"]).to_owned()),
        Success::Audio => ("audio/wav", String::new()),
        Success::Empty => ("no body", String::new()),
    };
    html! {
        div.answer {
            p { "Response " b { (example["status"]) } @if !note.is_empty() { " " small { (note) } } }
            @if !shown.is_empty() { (block(&shown)) }
        }
    }
}
