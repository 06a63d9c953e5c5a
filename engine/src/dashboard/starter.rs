//! The first pages: signing in, an overview, API keys.
use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use super::frame::{Frame, Page, Read, Role};

/// Every file that pages load: its name, its media type and its content.
pub(super) const ASSETS: &[(&str, &str, &[u8])] = &[];

/// Changes with every change of a file.
pub(super) fn hash() -> &'static str {
    "none"
}

/// Every page.
pub(super) const PAGES: &[Page] = &[
    Page {
        path: "/dashboard",
        title: "Overview",
        reads: &[Read { operation: "get_workspace", query: &[], fixed: &[] }],
        forms: &[],
        render: overview,
    },
    Page {
        path: "/dashboard/keys",
        title: "API keys",
        reads: &[Read { operation: "list_api_keys", query: &["after"], fixed: &[] }],
        forms: &[],
        render: keys,
    },
    Page {
        path: "/dashboard/sessions",
        title: "Sessions",
        reads: &[
            Read { operation: "list_sessions", query: &[], fixed: &[] },
            Read { operation: "list_workspaces", query: &[], fixed: &[] },
        ],
        forms: &[],
        render: sessions,
    },
    Page {
        path: "/dashboard/people",
        title: "People",
        reads: &[
            Read { operation: "list_people", query: &[], fixed: &[] },
            Read { operation: "list_invitations", query: &[], fixed: &[] },
        ],
        forms: &[],
        render: people,
    },
    Page {
        path: "/dashboard/audit",
        title: "Audit log",
        reads: &[Read { operation: "list_audit_entries", query: &["after"], fixed: &[] }],
        forms: &[],
        render: audit,
    },
    Page {
        path: "/dashboard/join",
        title: "Invitation",
        reads: &[Read { operation: "get_invitation", query: &[], fixed: &[] }],
        forms: &[],
        render: join,
    },
];

fn document(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Sidetone" }
            }
            body { (content) }
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn problem(error: Option<&Value>) -> Markup {
    html! { @if let Some(error) = error { p role="alert" { (text(error, "message")) " (" (text(error, "code")) ")" } } }
}

/// Where somebody is on the way in.
pub(super) enum SignIn<'a> {
    /// Asks for an address. Sends `email` and `next` to `/dashboard/sign-in`.
    Email { email: &'a str, google: bool, next: &'a str, problem: Option<&'a str>, csrf: &'a str },
    /// Asks for the code. Sends `code` and `next` to `/dashboard/sign-in/code`.
    Code { email: &'a str, logged: bool, next: &'a str, problem: Option<&'a str>, csrf: &'a str },
    /// Confirms a link from a mail, so that a program that follows links signs nobody in. Sends `token` to
    /// `/dashboard/sign-in/link`.
    Link { token: &'a str, email: &'a str, problem: Option<&'a str>, csrf: &'a str },
}

/// The page to sign in.
pub(super) fn sign_in(state: &SignIn<'_>) -> Markup {
    let hidden = |csrf: &str, next: &str| {
        html! { input type="hidden" name="_csrf" value=(csrf); input type="hidden" name="next" value=(next); }
    };
    let told =
        |problem: Option<&str>| html! { @if let Some(problem) = problem { p role="alert" { (problem) } } };
    let content = match state {
        SignIn::Email { email, google, next, problem, csrf } => html! {
            (told(*problem))
            @if *google { a href={ "/dashboard/sign-in/google?next=" (next) } { "Continue with Google" } }
            form method="post" action="/dashboard/sign-in" {
                (hidden(csrf, next))
                label { "E-mail" input type="email" name="email" value=(email) required autocomplete="email" autofocus; }
                button { "Send a code" }
            }
        },
        SignIn::Code { email, logged, next, problem, csrf } => html! {
            @if *logged { p { "No mail is configured: the code for " (email) " is in the server's log." } }
            @else { p { "We sent a code to " (email) "." } }
            (told(*problem))
            form method="post" action="/dashboard/sign-in/code" {
                (hidden(csrf, next))
                label { "Code" input name="code" inputmode="numeric" autocomplete="one-time-code" required autofocus; }
                button { "Sign in" }
            }
            p { a href="/dashboard/sign-in" { "Use another address" } }
        },
        SignIn::Link { token, email, problem, csrf } => html! {
            (told(*problem))
            form method="post" action="/dashboard/sign-in/link" {
                (hidden(csrf, "")) input type="hidden" name="token" value=(token);
                button { @if email.is_empty() { "Sign in" } @else { "Sign in as " (email) } }
            }
        },
    };
    document("Sign in", &html! { main { h1 { "Sign in" } (content) } })
}

/// A page with one message, without a frame.
pub(super) fn message(error: &Value) -> Markup {
    let home = html! { p { a href="/dashboard" { "Go to the dashboard" } } };
    document("Not done", &html! { main { h1 { "Not done" } (problem(Some(error))) (home) } })
}

/// A page that cannot be shown.
pub(super) fn failure(frame: &Frame, error: &Value) -> Markup {
    framed(frame, "Not shown", &problem(Some(error)))
}

fn framed(frame: &Frame, title: &str, content: &Markup) -> Markup {
    let menu = html! {
        nav {
            @for page in PAGES { a href=(page.path) { (page.title) } " " }
            form method="post" action="/dashboard/sign-out" {
                input type="hidden" name="_csrf" value=(frame.csrf);
                button { "Sign out " (frame.person_email) }
            }
        }
    };
    document(
        title,
        &html! {
            (menu)
            main {
                h1 { (title) }
                @if let Some(notice) = &frame.notice { p role="status" { (notice) } }
                (problem(frame.problem.as_ref()))
                (content)
            }
        },
    )
}

fn overview(frame: &Frame, read: &[Value]) -> Markup {
    let workspace = read.first().unwrap_or(&Value::Null);
    framed(frame, "Overview", &html! { p { (text(workspace, "name")) " " code { (text(workspace, "id")) } } })
}

fn form(frame: &Frame, operation: &str, content: &Markup) -> Markup {
    html! {
        form method="post" action={ "/dashboard/do/" (operation) } {
            input type="hidden" name="_csrf" value=(frame.csrf);
            input type="hidden" name="_back" value=(frame.path);
            (content)
        }
    }
}

fn keys(frame: &Frame, read: &[Value]) -> Markup {
    let all = read.first().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let typed = frame.typed.iter().find(|(name, _)| name == "name").map_or("", |(_, value)| value);
    let revoke = |key: &Value| {
        form(
            frame,
            "revoke_api_key",
            &html! { input type="hidden" name="id" value=(text(key, "id")); button { "Revoke" } },
        )
    };
    framed(
        frame,
        "API keys",
        &html! {
            @if let Some(made) = &frame.secret_once { p { "Copy it now: " code { (text(made, "key")) } } }
            ul { @for key in all { li { (text(key, "name")) " " code { (text(key, "hint")) } @if frame.role == Role::Admin { (revoke(key)) } } } }
            (form(frame, "create_api_key", &html! {
                label { "Name" input name="name" value=(typed) required maxlength="100"; }
                button { "Create key" }
            }))
        },
    )
}

fn sessions(frame: &Frame, read: &[Value]) -> Markup {
    let list = |at: usize| read.get(at).and_then(Value::as_array).cloned().unwrap_or_default();
    let id = |entry: &Value| html! { input type="hidden" name="id" value=(text(entry, "id")); };
    framed(
        frame,
        "Sessions",
        &html! {
            ul { @for session in list(0) {
                li { (text(&session, "client")) " " (form(frame, "revoke_session", &html! { (id(&session)) button { "Revoke" } })) }
            } }
            ul { @for workspace in list(1) {
                li { (text(&workspace, "name")) " " (form(frame, "switch_workspace", &html! { (id(&workspace)) button { "Open" } })) }
            } }
        },
    )
}

fn people(frame: &Frame, read: &[Value]) -> Markup {
    let list = |at: usize| read.get(at).and_then(Value::as_array).cloned().unwrap_or_default();
    let id = |entry: &Value| html! { input type="hidden" name="id" value=(text(entry, "id")); };
    framed(
        frame,
        "People",
        &html! {
            @if let Some(made) = &frame.secret_once { p { "The link: " code { (text(made, "url")) } } }
            ul { @for person in list(0) {
                li { (text(&person, "email")) " " (text(&person, "role")) " " (form(frame, "remove_person", &html! { (id(&person)) button { "Remove" } })) }
            } }
            ul { @for invited in list(1) {
                li { (text(&invited, "email")) " " (form(frame, "withdraw_invitation", &html! { (id(&invited)) button { "Withdraw" } })) }
            } }
            (form(frame, "invite_person", &html! {
                label { "E-mail" input type="email" name="email" required; }
                label { "Role" select name="role" { option { "member" } option { "admin" } } }
                button { "Invite" }
            }))
        },
    )
}

fn audit(frame: &Frame, read: &[Value]) -> Markup {
    let all = read.first().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    framed(
        frame,
        "Audit log",
        &html! {
            ul { @for entry in all {
                li { (text(entry, "created_at")) " " (text(entry, "actor_name")) " " (text(entry, "operation")) " " (text(entry, "subject")) }
            } }
        },
    )
}

fn join(frame: &Frame, read: &[Value]) -> Markup {
    let invitation = read.first().unwrap_or(&Value::Null);
    framed(
        frame,
        "Invitation",
        &html! {
            p { "To " (text(invitation, "workspace")) " as " (text(invitation, "role")) }
            @if invitation["is_yours"] == true {
                form method="post" action="/dashboard/do/join_workspace" {
                    input type="hidden" name="_csrf" value=(frame.csrf);
                    input type="hidden" name="token" value=(text(invitation, "token"));
                    button { "Join" }
                }
            } @else { p { "It is for " (text(invitation, "email")) ", and you are " (frame.person_email) "." } }
        },
    )
}
