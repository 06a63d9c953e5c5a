//! The workspace: its limits, its spending, and how programs reach it.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::base::dollars;
use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::form::{Form, allowed};
use crate::dashboard::pages::parts::{
    at, counted, date, facts, id, list, money, number, provided, read, section, snippet, text,
};
use crate::dashboard::pages::read_of;

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard/settings",
    title: "Settings",
    reads: &[read_of("get_workspace")],
    forms: &["update_workspace"],
    render,
};

/// What the fields of [`crate::dashboard::frame::Provided::defaults`] are called.
const DEFAULTS: [(&str, &str); 3] =
    [("model", "Default model"), ("voice", "Default voice"), ("transcriber", "Default transcriber")];

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let workspace = read(answers, 0);
    let form = Form::new(frame, "update_workspace", workspace);
    let strip = Strip {
        title: "Settings".to_owned(),
        beside: Some(id(&frame.workspace_id)),
        calls: vec![
            Call::of("get_workspace"),
            Call::of("update_workspace").with(json!({"runs_at_once": number(workspace, "runs_at_once")})),
            // What is paid for.
            Call::of("list_models"),
            Call::of("list_tts_rates"),
            Call::of("list_stt_rates"),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (tabs(frame))
            (section("Spending", html! {
                (facts(&[
                    ("Spent this month", html! { strong { (money(number(workspace, "spent_this_month_microusd"))) } }),
                    ("Reserved for what runs now", html! { (money(number(workspace, "reserved_microusd"))) }),
                    ("Monthly limit", html! { @match at(workspace, "monthly_spend_limit_microusd").as_i64() { Some(limit) => (exact(limit)), None => "none" } }),
                ]))
                (gauge(workspace))
                @for warning in list(workspace, "warnings").iter().filter_map(Value::as_str) { p.help { (warning) } }
            }))
            (section("Workspace", html! {
                @if !allowed(frame, "update_workspace") { (limits(workspace)) }
                (form.wrap(&[], "/dashboard/settings", html! {
                (form.field("name"))
                fieldset.group {
                    legend { "Limits" }
                    (form.field("monthly_spend_limit_microusd"))
                    (form.field("calls_at_once"))
                    (form.field("runs_at_once"))
                }
                fieldset.group {
                    legend { "What is kept" }
                    (form.field("call_retention_days"))
                    (form.field("recording_retention_days"))
                }
                div.row { button.primary { "Save" } span.help { "Created " (date(frame, text(workspace, "created_at"))) } }
                }))
            }))
            (section("Models and voices", html! {
                (facts(&frame.provided.defaults.iter().filter(|(_, value)| !value.is_empty())
                    .map(|(name, value)| (DEFAULTS.iter().find(|(known, _)| known == name).map_or(*name, |(_, called)| called), html! { code { (value) } })).collect::<Vec<_>>()))
                (provided(frame))
            }))
            (section("Connect an MCP client", html! {
                p { "Put a " a href="/dashboard/keys" { "key" } " in place of " code { "YOUR_API_KEY" } "." }
                @for (client, text) in clients(&frame.origin) {
                    h3 { (client) }
                    (snippet(&text, client))
                }
            }))
        },
    )
}

/// What those read who may not change it.
fn limits(workspace: &Value) -> Markup {
    let days = |name: &str| html! { @match at(workspace, name).as_i64() { Some(days) => (counted(days, "day")), None => "for good" } };
    facts(&[
        ("Calls at once", html! { (number(workspace, "calls_at_once")) }),
        ("Runs at once", html! { (number(workspace, "runs_at_once")) }),
        ("Calls are kept", days("call_retention_days")),
        ("Recordings are kept", days("recording_retention_days")),
    ])
}

/// The pages of what belongs to the workspace as a whole.
pub fn tabs(frame: &Frame) -> Markup {
    let pages = [
        (PAGE.path, "Workspace", true),
        ("/dashboard/people", "People", true),
        ("/dashboard/sessions", "Sessions", true),
        ("/dashboard/audit", "Audit log", allowed(frame, "list_audit_entries")),
    ];
    html! {
        nav.tabs aria-label="Settings" {
            @for (href, name, _) in pages.iter().filter(|(.., shown)| *shown) {
                a.tab href=(href) aria-current=[(frame.path == *href).then_some("page")] { (name) }
            }
        }
    }
}

/// How much of the month's limit is used.
fn gauge(workspace: &Value) -> Markup {
    let limit = at(workspace, "monthly_spend_limit_microusd").as_i64().filter(|limit| *limit > 0);
    html! {
        @if let Some(limit) = limit {
            meter min="0" max=(limit) high=(limit / 10 * 9) value=(number(workspace, "spent_this_month_microusd")) aria-label="Spent of the monthly limit" {}
        }
    }
}

fn clients(origin: &str) -> [(&'static str, String); 3] {
    let server = json!({"type": "http", "url": format!("{origin}/mcp"), "headers": {"Authorization": "Bearer YOUR_API_KEY"}});
    let servers =
        |name: &str| serde_json::to_string_pretty(&json!({name: {"sidetone": server}})).unwrap_or_default();
    [
        (
            "Claude Code",
            format!(
                "claude mcp add --transport http sidetone {origin}/mcp \\\n  --header \"Authorization: Bearer YOUR_API_KEY\""
            ),
        ),
        ("Clients with an mcp.json", servers("mcpServers")),
        ("VS Code", servers("servers")),
    ]
}

/// An amount as it was typed, beyond cents.
fn exact(microusd: i64) -> String {
    if microusd % 10_000 == 0 { money(microusd) } else { format!("${}", dollars::shown(microusd)) }
}
