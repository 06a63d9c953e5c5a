//! Where a person is signed in, and the workspaces that they belong to.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::client_name::client_name;
use crate::dashboard::pages::form::act;
use crate::dashboard::pages::parts::{Tone, at, list, read, section, status, table, text, when, words};
use crate::dashboard::pages::{read_of, settings};

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard/sessions",
    title: "Sessions",
    reads: &[read_of("list_sessions"), read_of("list_workspaces")],
    forms: &[],
    render,
};

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let strip = Strip {
        title: "Sessions".to_owned(),
        calls: vec![Call::of("list_api_keys"), Call::of("get_workspace")],
        no_call: Some(
            "The API has no operation for sessions: only people have them. A program has a key, which opens one workspace:",
        ),
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (settings::tabs(frame))
            (sessions(frame, list(read(answers, 0), "")))
            (workspaces(frame, list(read(answers, 1), "")))
        },
    )
}

/// Where the person is signed in.
fn sessions(frame: &Frame, sessions: &[Value]) -> Markup {
    section(
        "Your sessions",
        html! {
            p.help { "Signed in as " strong { (frame.person_email) } ". Sign out where it was not you." }
            (table("Your sessions",
                html! { th scope="col" { "Browser" } th.fit.wide scope="col" { "Since" } th.fit scope="col" { "Last seen" } th.fit scope="col" { span.vh { "Actions" } } },
                html! { @for session in sessions {
                    @let here = at(session, "current") == true;
                    tr {
                        td.wrap title=(text(session, "client")) { @match client_name(text(session, "client")).as_str() { "" => span.none { "unknown" }, name => (name) } }
                        td.fit.wide { (when(frame, text(session, "created_at"))) }
                        td.fit { @if here { (status(Tone::Good, "This one")) } @else { (when(frame, text(session, "seen_at"))) } }
                        td.fit { @if !here { (act(frame, "revoke_session", &[("id", text(session, "id"))], PAGE.path, html! { button.quiet { "Sign out" } })) } }
                    }
                } }))
        },
    )
}

/// The workspaces that the person belongs to.
fn workspaces(frame: &Frame, workspaces: &[Value]) -> Markup {
    html! {
        @if workspaces.len() > 1 {
            (section("Your workspaces", table("Your workspaces",
                html! { th scope="col" { "Name" } th.fit scope="col" { "Role" } th.fit scope="col" { span.vh { "Actions" } } },
                html! { @for workspace in workspaces {
                    tr {
                        td dir="auto" { strong { (text(workspace, "name")) } }
                        td.fit { (words(text(workspace, "role"))) }
                        td.fit { @if at(workspace, "current") == true { (status(Tone::Good, "Open")) } @else {
                            (act(frame, "switch_workspace", &[("id", text(workspace, "id"))], "/dashboard", html! { button { "Open" } }))
                        } }
                    }
                } })))
        }
    }
}
