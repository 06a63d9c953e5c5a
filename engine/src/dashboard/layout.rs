//! What every page has: the rail, the strip with title, action and API calls, notices, the summary of problems.
use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value, json};

use crate::base::html_page::html_page;
use crate::dashboard::assets;
use crate::dashboard::frame::Frame;
use crate::dashboard::pages::form::{self, about, control_id, problems, sentence};
use crate::dashboard::pages::parts::{asked, copy, here, icon, prose, snippet, text};
use crate::operations::by_id;

/// The places of the rail: address, icon, name. The first of each group begins it.
const PLACES: &[&[(&str, &str, &str)]] = &[
    &[("/dashboard", "overview", "Overview"), ("/dashboard/calls", "calls", "Calls")],
    &[
        ("/dashboard/assistants", "assistants", "Assistants"),
        ("/dashboard/tools", "tools", "Tools"),
        ("/dashboard/knowledge", "knowledge", "Knowledge"),
        ("/dashboard/numbers", "numbers", "Numbers"),
    ],
    &[("/dashboard/simulations", "simulations", "Simulations")],
    &[
        ("/dashboard/webhooks", "webhooks", "Webhooks"),
        ("/dashboard/keys", "keys", "Keys"),
        ("/dashboard/settings", "settings", "Settings"),
    ],
];

/// The pages behind "Settings".
const SETTINGS: &[&str] =
    &["/dashboard/settings", "/dashboard/people", "/dashboard/sessions", "/dashboard/audit"];

/// The places of the bottom bar on a telephone; the others are behind "More".
const BAR: usize = 4;

/// Names in paths and queries whose values are whole numbers.
const WHOLE: &[&str] = &["days", "limit", "page", "revision"];

/// The parameter of a page's address that names the delivery which was queued.
pub const DELIVERY: &str = "delivery";

/// The strip above a page's content.
#[derive(Default)]
pub struct Strip<'a> {
    /// The page's heading.
    pub title: String,
    /// Where the link above the heading leads, and what it is called.
    pub back: Option<(&'a str, &'a str)>,
    /// What stands beside the heading: a state, an id.
    pub beside: Option<Markup>,
    /// The page's one main action.
    pub action: Option<Markup>,
    /// What would do the same over REST and MCP.
    pub calls: Vec<Call<'a>>,
    /// Said before them, where no operation does the same: what the nearest ones do.
    pub no_call: Option<&'a str>,
}

/// A call of the API that does what the page does.
pub struct Call<'a> {
    operation: &'a str,
    path: Vec<(&'a str, &'a str)>,
    query: Vec<(&'a str, &'a str)>,
    body: Option<Value>,
    /// The revision that it changes, where it takes one.
    revision: Option<i64>,
}

impl<'a> Call<'a> {
    /// A call without values.
    pub fn of(operation: &'a str) -> Self {
        Self { operation, path: Vec::new(), query: Vec::new(), body: None, revision: None }
    }

    /// With the value of a name in its path.
    pub fn at(mut self, name: &'a str, value: &'a str) -> Self {
        self.path.push((name, value));
        self
    }

    /// With those names of the page's address that it has values for.
    pub fn asked(mut self, frame: &'a Frame, names: &[&str]) -> Self {
        let given =
            frame.query.iter().filter(|(name, value)| !value.is_empty() && names.contains(&name.as_str()));
        self.query.extend(given.map(|(name, value)| (name.as_str(), value.as_str())));
        self
    }

    /// With a value in its query.
    pub fn queried(mut self, name: &'a str, value: &'a str) -> Self {
        self.query.push((name, value));
        self
    }

    /// With a body.
    pub fn with(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Only if this revision is the current one.
    pub fn of_revision(mut self, revision: i64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// The command for a terminal.
    fn curl(&self, origin: &str) -> Option<String> {
        let operation = by_id(self.operation)?;
        let mut path = operation.path.to_owned();
        for (name, value) in &self.path {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.query);
        let query = query.finish();
        let mark = if query.is_empty() { "" } else { "?" };
        let verb = match operation.method.as_str() {
            "GET" => String::new(),
            other => format!("-X {other} "),
        };
        let mut text = format!(
            "curl {verb}'{origin}{path}{mark}{query}' \\\n  -H \"Authorization: Bearer $SIDETONE_KEY\""
        );
        if let Some(revision) = self.revision {
            text.push_str(&format!(" \\\n  -H 'If-Match: \"{revision}\"'"));
        }
        if let Some(body) = &self.body {
            let body = body.to_string().replace('\'', "'\\''");
            text.push_str(&format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"));
        }
        Some(text)
    }

    /// The call of the tool.
    fn mcp(&self) -> Option<String> {
        let operation = by_id(self.operation)?;
        if !operation.is_tool() {
            return None;
        }
        let mut arguments = Map::new();
        for (name, value) in self.path.iter().chain(&self.query) {
            // In an address everything is text; a tool takes numbers.
            let whole = WHOLE.contains(name).then(|| value.parse::<i64>().ok()).flatten();
            arguments.insert((*name).to_owned(), whole.map_or_else(|| (*value).into(), Value::from));
        }
        if let Some(body) = &self.body {
            arguments.insert("data".to_owned(), body.clone());
        }
        if let Some(revision) = self.revision {
            arguments.insert("if_revision".to_owned(), revision.into());
        }
        if operation.spends() {
            arguments.insert("confirm".to_owned(), true.into());
        }
        serde_json::to_string_pretty(&json!({"name": self.operation, "arguments": arguments})).ok()
    }
}

/// A page of the dashboard.
pub fn page(frame: &Frame, strip: Strip<'_>, content: Markup) -> Markup {
    let title = strip.title.clone();
    // What goes on: the script follows it.
    let is_live = content.0.contains(" data-live");
    document(
        &title,
        Some(frame),
        html! {
            a.skip href="#content" { "Skip to content" }
            div.app {
                (rail(frame))
                div.side {
                    (head(frame, strip))
                    main #content tabindex="-1" data-page=(here(frame)) {
                        (messages(frame, is_live))
                        @if is_live { noscript { p.help { "Without JavaScript, " a href=(here(frame)) { "load this page again" } " to see how it goes on." } } }
                        (content)
                        // `form.edit`: whoever writes it gets what makes it quicker.
                        @if content.0.contains("<form class=\"edit\"") { (module("form.js")) }
                    }
                }
                (bar(frame))
            }
        },
    )
}

/// A page without a rail, for whoever is not signed in.
pub fn plain(title: &str, content: Markup) -> Markup {
    document(
        title,
        None,
        html! { main.alone #content { p.brand { (mark()) "Sidetone" } h1 { (title) } (content) } },
    )
}

fn document(title: &str, frame: Option<&Frame>, body: Markup) -> Markup {
    let csrf = html! { @if let Some(frame) = frame { meta name="csrf" content=(frame.csrf); } };
    let loads = html! {
        link rel="icon" href=(assets::url("icon.svg"));
        @if frame.is_some_and(|frame| frame.has_style) { link rel="stylesheet" href=(assets::url("app.css")); }
        @else { style data-file=(assets::url("app.css")) data-version=(assets::hash()) { (PreEscaped(assets::STYLE)) } }
        script type="module" src=(assets::url("app.js")) {}
    };
    html_page(&format!("{title} · Sidetone"), &csrf, &loads, &body)
}

/// A module that one page needs beside the common one.
pub fn module(name: &str) -> Markup {
    html! { script type="module" src=(assets::url(name)) {} }
}

fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 16 16" width="20" height="20" aria-hidden="true" {
            path d="M2.5 6v4M5.2 3v10M8 5v6M10.8 6.7v2.6M13.5 7.5v1" {}
        }
    }
}

fn rail(frame: &Frame) -> Markup {
    html! {
        aside.rail aria-label="Workspace" {
            a.brand href="/dashboard" { (mark()) span { "Sidetone" } }
            button.goto type="button" data-palette hidden { (icon("search")) span { "Go to" } kbd { "Ctrl K" } }
            nav aria-label="Pages of the dashboard" {
                @for group in PLACES { ul { @for place in *group { li { (entry(frame, place)) } } } }
            }
            div.who title={ (frame.workspace_name) ", " (frame.person_email) } {
                a dir="auto" href="/dashboard/sessions" { strong { (frame.workspace_name) } }
                span title=(frame.person_email) { (frame.person_email) }
                (sign_out(frame))
            }
        }
    }
}

fn bar(frame: &Frame) -> Markup {
    let places = || PLACES.iter().copied().flatten().filter(|(_, name, _)| *name != "overview");
    let first = ["calls", "assistants", "simulations"];
    html! {
        nav.bar aria-label="Main pages" {
            (entry(frame, &("/dashboard", "overview", "Overview")))
            @for place in places().filter(|(_, name, _)| first.contains(name)).take(BAR) { (entry(frame, place)) }
            details.more {
                summary { (icon("more")) span { "More" } }
                ul {
                    li.dim dir="auto" { (frame.workspace_name) }
                    @for place in places().filter(|(_, name, _)| !first.contains(name)) { li { (entry(frame, place)) } }
                    li { (sign_out(frame)) }
                }
            }
        }
    }
}

fn entry(frame: &Frame, (href, picture, name): &(&str, &str, &str)) -> Markup {
    let here = match *href {
        "/dashboard" => frame.path == *href,
        "/dashboard/settings" => SETTINGS.contains(&frame.path.as_str()),
        other => {
            frame.path == other || frame.path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
        }
    };
    html! { a href=(href) aria-current=[here.then_some("page")] { (icon(picture)) span { (name) } } }
}

fn sign_out(frame: &Frame) -> Markup {
    html! {
        form method="post" action="/dashboard/sign-out" {
            input type="hidden" name="_csrf" value=(frame.csrf);
            button.quiet { "Sign out" }
        }
    }
}

fn head(frame: &Frame, strip: Strip<'_>) -> Markup {
    html! {
        header.head {
            div.title {
                @if let Some((href, name)) = strip.back { a.back href=(href) { (icon("back")) (name) } }
                div.row {
                    h1 dir="auto" { (strip.title) }
                    @if let Some(beside) = strip.beside { (beside) }
                }
            }
            div.row.do {
                (api(frame, &strip.calls, strip.no_call))
                @if let Some(action) = strip.action { (action) }
            }
        }
    }
}

/// The control that shows the calls of REST and MCP that do the same.
fn api(frame: &Frame, calls: &[Call<'_>], no_call: Option<&str>) -> Markup {
    html! {
        @if !calls.is_empty() {
            details.api {
                summary.button { "As API call" }
                div.panel {
                    @if let Some(no_call) = no_call { p { (no_call) } }
                    @for call in calls {
                        @if let Some(curl) = call.curl(&frame.origin) {
                            h2 { code { (call.operation) } }
                            h3 { "REST" }
                            (snippet(&curl, "REST"))
                            @if let Some(mcp) = call.mcp() { h3 { "MCP" } (snippet(&mcp, "MCP")) }
                        }
                    }
                    p.help { "Make a key under " a href="/dashboard/keys" { "Keys" } ". All operations: " a href="/docs" { "API reference" } "." }
                }
            }
        }
    }
}

fn messages(frame: &Frame, is_live: bool) -> Markup {
    // That something was started is told until it is over.
    let starts = ["start_", "place_"].iter().any(|start| asked(frame, "done").starts_with(start));
    html! {
        @if let Some(problem) = &frame.problem { (problem_summary(frame, problem)) }
        @if let Some(notice) = frame.notice.as_ref().filter(|_| is_live || !starts) { p.notice role="status" data-until-over[starts] { (notice) (queued(frame)) } }
        @if let Some(secret) = &frame.secret_once { (secret_once(frame, secret)) }
    }
}

/// The way to a delivery that was queued, which the address names.
fn queued(frame: &Frame) -> Markup {
    let delivery = asked(frame, DELIVERY);
    html! { @if delivery.starts_with("dlv_") { " " a href={ "#" (delivery) } { "Show the delivery" } } }
}

/// What failed: the sentence, its code, and a link to each field.
fn problem_summary(frame: &Frame, problem: &Value) -> Markup {
    let error = problem.get("error").unwrap_or(problem);
    let fields: Vec<_> = problems(frame).collect();
    html! {
        div.problem role="alert" tabindex="-1" {
            @if text(error, "code") == "revision_conflict" { p { "Nothing was saved: a change was saved while you edited, by somebody else or in another tab." } }
            @else if fields.is_empty() { p { (text(error, "message")) } }
            @else {
                p { "Nothing was " @if frame.schemas.iter().any(|(form, _)| form.starts_with("create_")) { "created" } @else { "changed" } ". " @if fields.len() == 1 { "One field needs a change:" } @else { (fields.len()) " fields need a change:" } }
                ul { @for (field, message) in fields {
                    li { a href={ "#" (control_id(form::in_json(frame, field).map_or(field, |(name, _)| name))) } { (prose(&about(frame, field))) } ": " (prose(&lower(message))) }
                } }
            }
            p.help { code { (text(error, "code")) } @if !text(error, "request_id").is_empty() { " · " code { (text(error, "request_id")) } } }
        }
    }
}

fn lower(message: &str) -> String {
    let text = sentence(message);
    let mut chars = text.chars();
    // `EOF`, `URL` and the like stay as they are.
    if text.chars().nth(1).is_some_and(char::is_uppercase) {
        return text;
    }
    chars.next().map(char::to_lowercase).into_iter().flatten().chain(chars).collect()
}

/// A secret that is shown once: a key, what signs requests, a link to join. A link to talk is shown
/// where it belongs: beside the assistant.
fn secret_once(frame: &Frame, answer: &Value) -> Markup {
    let join = answer.get("invitation").is_some();
    let secrets =
        [("key", "API key", true), ("signing_secret", "Signing secret", true), ("url", "Invitation", join)];
    html! {
        @if answer.get("key").is_some_and(Value::is_null) {
            p.notice role="status" { "This form was sent before, and nothing was made again. The key was shown then. Is it lost? Revoke it, and create another." }
        }
        @for (name, called, _) in secrets.iter().filter(|(name, _, shown)| *shown && !text(answer, name).is_empty()) {
            @let secret = text(answer, name);
            div.once role="status" tabindex="-1" {
                @if join {
                    p { strong { "Invitation for " (text(answer, "invitation/email")) }
                        @if answer["mailed"] == true { " – it was sent by mail. The link does the same:" } @else if frame.has_mail { " – no mail could be sent. Give them this link:" } @else { " – no mail is set up here. Give them this link:" } }
                    @if answer["replaces"] == true { p { "It replaces the invitation that this address had: the earlier link is good no more." } }
                    @if !frame.has_mail { p { (form::WITHOUT_MAIL) } }
                } @else { p { strong { (called) } " – copy it now. It is not shown again." } }
                div.snippet { code.secret { (secret) } (copy(secret, "Copy")) }
            }
        }
    }
}

/// A form's last row: what sends it, and the way out.
pub fn send(label: &str, back: &str) -> Markup {
    html! { div.row.send { button.primary { (label) } a.button href=(back) { "Cancel" } } }
}

/// See `form::carried`; for forms that are written by hand.
pub fn carried(frame: &Frame) -> Markup {
    form::carried(frame, "")
}
