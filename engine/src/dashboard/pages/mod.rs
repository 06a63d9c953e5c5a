//! The pages: pure functions from the API's answers to HTML.
mod again;
mod assistants;
mod audit;
mod batch;
mod call;
mod calls;
mod chart;
mod client_name;
mod conflict;
pub(crate) mod form;
mod history;
mod keys;
mod knowledge;
mod matrix;
mod numbers;
mod other_workspace;
mod overview;
pub(crate) mod parts;
mod people;
mod personas;
mod rows;
mod runs;
mod saved_meanwhile;
mod scenarios;
mod sessions;
mod settings;
mod shown;
mod sign_in;
mod simulate;
mod simulations;
mod talk;
mod timeline;
mod tools;
mod webhooks;

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Strip};
use crate::dashboard::pages::parts::{asked, link, text};

pub use self::calls::OF_CALL;
pub(super) use self::other_workspace::{OtherWorkspace, other_workspace};
pub use self::sign_in::{SignIn, sign_in};

/// Every page. A path without a value goes before one with a value in its place.
pub const PAGES: &[Page] = &[
    overview::PAGE,
    calls::PAGE,
    call::PAGE,
    assistants::LIST,
    assistants::NEW,
    assistants::EDIT,
    history::PAGE,
    simulate::PAGE,
    tools::LIST,
    tools::NEW,
    tools::EDIT,
    knowledge::LIST,
    knowledge::NEW,
    knowledge::EDIT,
    numbers::LIST,
    numbers::NEW,
    webhooks::LIST,
    webhooks::NEW,
    webhooks::ONE,
    simulations::LIST,
    simulations::NEW,
    personas::NEW,
    personas::EDIT,
    scenarios::NEW,
    scenarios::EDIT,
    scenarios::OF_CALL,
    batch::PAGE,
    runs::ONE,
    runs::COMPARE,
    keys::LIST,
    settings::PAGE,
    people::PAGE,
    people::JOIN,
    sessions::PAGE,
    audit::PAGE,
];

/// A read without values of its own.
const fn read_of(operation: &'static str) -> Read {
    Read { operation, query: &[], fixed: &[], after: "" }
}

/// Rows of a list on a page: fewer than a part can have, so that a page stays light.
const ROWS: &[(&str, &str)] = &[("limit", "200")];

/// A list in parts, with [`parts::more`] below it.
const fn list_of(operation: &'static str, after: &'static str) -> Read {
    Read { operation, query: &[], fixed: ROWS, after }
}

/// A list to choose from: as much as one part can have.
const fn choices_of(operation: &'static str) -> Read {
    Read { operation, query: &[], fixed: &[("limit", "1000")], after: "" }
}

/// The page of the assistant that something new is made for, as the address says; empty where it says nothing.
fn assistant_of(frame: &Frame) -> String {
    match asked(frame, "assistant_id") {
        "" => String::new(),
        id => link("/dashboard/assistants", id),
    }
}

/// Where what is made leads, and the way back: to the assistant that it is made for, else to its own page and its list.
fn ways<'a>(assistant: &'a str, own: &'a str, list: (&'a str, &'a str)) -> (&'a str, (&'a str, &'a str)) {
    if assistant.is_empty() { (own, list) } else { (assistant, (assistant, "Assistant")) }
}

/// One message, for somebody without a session or a form that is not ours.
pub fn message(error: &Value) -> Markup {
    let error = error.get("error").unwrap_or(error);
    layout::plain(
        "Not done",
        html! {
            div.problem role="alert" { p { (text(error, "message")) } p.help { code { (text(error, "code")) } " " code { (text(error, "request_id")) } } }
            a.button.primary href="/dashboard" { "Go to the dashboard" }
        },
    )
}

/// How many other workspaces a page offers that was not found.
const OTHERS_OFFERED: usize = 5;

/// What could not be shown, and why: in place of a page whose read failed. What was not found may be in another of the
/// person's `workspaces`.
pub fn failure(frame: &Frame, error: &Value, workspaces: &Value) -> Markup {
    let others = workspaces.as_array().into_iter().flatten().filter(|one| one["current"] != true);
    let error = error.get("error").unwrap_or(error);
    let code = text(error, "code");
    let title = match code {
        "not_found" => "Not found",
        "admins_only" => "For admins only",
        _ => "This page could not be read",
    };
    let strip = Strip { title: title.to_owned(), back: Some(("/dashboard", "Overview")), ..Strip::default() };
    layout::page(
        frame,
        strip,
        html! {
            div.empty {
                p { (text(error, "message")) }
                // Of a page that there never was, no workspace is asked.
                @if code == "not_found" && !workspaces.is_null() {
                    p.help { "It may have been deleted, or it belongs to another workspace than " strong dir="auto" { (frame.workspace_name) } "." }
                }
                p.row {
                    @if code == "not_found" { a.button.primary href=(parent(&frame.path)) { "Go back" } } @else { a.button.primary href=(frame.path) { "Try again" } }
                    span.help { code { (code) } " " code { (text(error, "request_id")) } }
                }
                @for other in others.take(OTHERS_OFFERED) {
                    form method="post" action="/dashboard/do/switch_workspace" {
                        input type="hidden" name="_csrf" value=(frame.csrf);
                        input type="hidden" name="_then" value=(frame.path);
                        input type="hidden" name="id" value=(text(other, "id"));
                        button { "Look in " (text(other, "name")) }
                    }
                }
            }
        },
    )
}

/// The page above a path.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("/dashboard", |(parent, _)| parent)
}
