//! Who belongs to the workspace, who is invited, and where somebody accepts an invitation.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::{Frame, Page, Role};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::form::{WITHOUT_MAIL, act, carried, destroy};
use crate::dashboard::pages::parts::{at, list, read, section, table, text, when, words};
use crate::dashboard::pages::{read_of, settings};
use crate::storage::accounts::OPERATOR;

/// People and invitations.
pub const PAGE: Page = Page {
    path: "/dashboard/people",
    title: "People",
    reads: &[read_of("list_people"), read_of("list_invitations")],
    forms: &[],
    render,
};

/// Accepts an invitation.
pub const JOIN: Page = Page {
    path: "/dashboard/join",
    title: "Invitation",
    reads: &[read_of("get_invitation")],
    forms: &[],
    render: join,
};

const BASE: &str = PAGE.path;

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let (people, invitations) = (list(read(answers, 0), ""), list(read(answers, 1), ""));
    let admin = frame.role == Role::Admin;
    let strip = Strip {
        title: "People".to_owned(),
        calls: vec![Call::of("list_audit_entries")],
        no_call: Some(
            "The API has no operation for people, invitations and roles: they are managed here. It tells who changed what:",
        ),
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (settings::tabs(frame))
            @if admin { (section("Invite somebody", invite(frame))) }
            (section("People", table("People",
                html! { th scope="col" { "E-mail address" } th.wide scope="col" { "Signs in with" } th.fit scope="col" { "Role" } th.fit.wide scope="col" { "Since" } th.fit scope="col" { span.vh { "Actions" } } },
                html! { @for person in people { (row(frame, person, admin)) } })))
            @if !invitations.is_empty() {
                (section("Open invitations", table("Open invitations",
                    html! { th scope="col" { "E-mail address" } th.fit scope="col" { "Role" } th.fit.wide scope="col" { "Invited" } th.fit scope="col" { "Ends" } th.fit scope="col" { span.vh { "Actions" } } },
                    html! { @for invited in invitations {
                        tr {
                            td { strong { (text(invited, "email")) } }
                            td.fit { (words(text(invited, "role"))) }
                            td.fit.wide { (when(frame, text(invited, "created_at"))) }
                            td.fit { (when(frame, text(invited, "expires_at"))) }
                            td.fit { @if admin { (act(frame, "withdraw_invitation", &[("id", text(invited, "id"))], BASE, html! { button.quiet { "Withdraw" } })) } }
                        }
                    } })))
            }
        },
    )
}

fn row(frame: &Frame, person: &Value, admin: bool) -> Markup {
    let (id, email, role) = (text(person, "id"), text(person, "email"), text(person, "role"));
    // As the audit log calls whoever used an operator's link.
    let email = if email.is_empty() { OPERATOR } else { email };
    let here = at(person, "current") == true;
    let (other, label) = if role == "admin" { ("member", "Make member") } else { ("admin", "Make admin") };
    html! {
        tr {
            td { strong { (email) } @if here { span.dim { " – you" } } }
            td.wide { @if text(person, "issuer").starts_with("http") { (text(person, "issuer").trim_start_matches("https://")) } @else if text(person, "issuer") == OPERATOR { "Link of the operator" } @else { "E-mail code" } }
            td.fit { (words(role)) }
            td.fit.wide { (when(frame, text(person, "created_at"))) }
            td.fit { div.row {
                @if admin && !here { (act(frame, "set_role", &[("id", id), ("role", other)], BASE, html! { button.quiet { (label) } })) }
                @if here { (destroy(frame, "remove_person", &[("id", id)], "/dashboard", "Leave", "Leave this workspace", "You no longer see it. Somebody in it has to invite you again.")) }
                @else if admin { (destroy(frame, "remove_person", &[("id", id)], BASE, "Remove", "Remove 1 person", &format!("{email} is signed out of this workspace at once. Keys that they made stay."))) }
            } }
        }
    }
}

fn invite(frame: &Frame) -> Markup {
    let typed =
        |name: &str| frame.typed.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value);
    html! {
        form.filters method="post" action="/dashboard/do/invite_person" {
            (carried(frame, ""))
            label.search for="f-email" { "E-mail address"
                input #f-email type="email" name="email" required maxlength="254" value=(typed("email")) autocomplete="off" placeholder="you@example.com";
            }
            label { "Role"
                select name="role" {
                    option value="member" { "Member" }
                    option value="admin" selected[typed("role") == "admin"] { "Admin" }
                }
            }
            button.primary { "Invite" }
        }
        p.help { "Members do everything but keys, spending, limits, people and the audit log. The invitation can be accepted only by this address." }
        @if !frame.has_mail { p.help { "No mail is set up here (" code { "SIDETONE_SMTP_URL" } " or " code { "SIDETONE_MAIL_URL" } "), so the link of the invitation is shown to you, to hand over. " (WITHOUT_MAIL) } }
    }
}

fn join(frame: &Frame, answers: &[Value]) -> Markup {
    let invitation = read(answers, 0);
    let yours = at(invitation, "is_yours") == true;
    layout::plain(
        "Invitation",
        html! {
            @if let Some(problem) = &frame.problem { p.problem role="alert" { (text(problem.get("error").unwrap_or(problem), "message")) } }
            @if yours {
                p { "You are invited to " strong dir="auto" { (text(invitation, "workspace")) } " as " (text(invitation, "role")) "." }
                form method="post" action="/dashboard/do/join_workspace" {
                    (carried(frame, "/dashboard"))
                    input type="hidden" name="token" value=(text(invitation, "token"));
                    button.primary { "Join" }
                }
                p.help { "You are signed in as " (frame.person_email) ". The API has no operation for this: an API key belongs to its workspace from the beginning." }
            } @else {
                div.problem { p { "This invitation is for somebody else: it was sent to another address than " strong { (frame.person_email) } ", as whom you are signed in." } }
                p { "Is that other address yours, too? Sign out, open the link again, and sign in with it. Otherwise ask whoever gave you the link for an invitation to your address." }
                form method="post" action="/dashboard/sign-out" {
                    input type="hidden" name="_csrf" value=(frame.csrf);
                    button { "Sign out" }
                }
            }
        },
    )
}
