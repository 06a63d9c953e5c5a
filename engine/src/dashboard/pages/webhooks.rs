//! Webhooks: where events are sent to, and what became of each.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::base::time;
use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, DELIVERY, Strip, send};
use crate::dashboard::pages::choices_of;
use crate::dashboard::pages::form::{Form, act, destroy};
use crate::dashboard::pages::parts::{
    Tone, asked, at, empty, id, link, list, number, pages, read, section, snippet, status, table, text, when,
};

/// All webhooks.
pub const LIST: Page = Page {
    path: "/dashboard/webhooks",
    title: "Webhooks",
    reads: &[choices_of("list_webhooks")],
    forms: &[],
    render: all,
};

/// A new one.
pub const NEW: Page = Page {
    path: "/dashboard/webhooks/new",
    title: "New webhook",
    reads: &[],
    forms: &["create_webhook"],
    render: new,
};

/// One, with its deliveries.
pub const ONE: Page = Page {
    path: "/dashboard/webhooks/{id}",
    title: "Webhook",
    reads: &[
        choices_of("list_webhooks"),
        Read {
            operation: "list_webhook_deliveries",
            query: &["status", "page"],
            fixed: &[("limit", "50")],
            after: "",
        },
    ],
    forms: &["update_webhook", "list_webhook_deliveries"],
    render: one,
};

const BASE: &str = "/dashboard/webhooks";

/// How a receiver verifies what is sent to it.
pub const VERIFY_JS: &str = "// npm install standardwebhooks
import { Webhook } from 'standardwebhooks';
// throws if the signature is wrong
new Webhook(process.env.SIGNING_SECRET)
  .verify(rawBody, request.headers);";

const VERIFY_PYTHON: &str = "# pip install standardwebhooks
from standardwebhooks.webhooks import Webhook
# raises if the signature is wrong
Webhook(os.environ[\"SIGNING_SECRET\"]).verify(raw_body, request.headers)";

fn events(webhook: &Value) -> Markup {
    let events = list(webhook, "events");
    html! { @for (at, event) in events.iter().filter_map(Value::as_str).enumerate() { @if at > 0 { ", " } code { (if event == "*" { "every event" } else { event }) } } }
}

fn enabled(webhook: &Value) -> Markup {
    if at(webhook, "enabled") == true {
        status(Tone::Good, "Enabled")
    } else {
        status(Tone::Warn, "Disabled")
    }
}

fn all(frame: &Frame, answers: &[Value]) -> Markup {
    let webhooks = list(read(answers, 0), "");
    let strip = Strip {
        title: "Webhooks".to_owned(),
        action: (!webhooks.is_empty())
            .then(|| html! { a.button.primary href="/dashboard/webhooks/new" { "Create webhook" } }),
        calls: vec![Call::of("list_webhooks"), Call::of("list_events")],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if webhooks.is_empty() {
                (empty("A webhook is an address of yours that events are sent to, such as the end of a call. Each is signed, and sent again until you answer.",
                    Some(("/dashboard/webhooks/new", "Create webhook")), ("webhooks.md", "Events, retries, signatures")))
            } @else {
                (table("Webhooks",
                    html! { th scope="col" { "Address" } th.wide scope="col" { "Events" } th scope="col" { "State" } th.fit.wide scope="col" { "Changed" } },
                    html! { @for webhook in webhooks {
                        tr {
                            td { a.name href=(link(BASE, text(webhook, "id"))) { (text(webhook, "url")) } }
                            td.wide { (events(webhook)) }
                            td.fit { (enabled(webhook)) }
                            td.fit.wide { (when(frame, text(webhook, "updated_at"))) }
                        }
                    } }))
            }
        },
    )
}

fn new(frame: &Frame, _: &[Value]) -> Markup {
    let current = json!({"events": ["call.ended"]});
    let form = Form::new(frame, "create_webhook", &current);
    let strip = Strip {
        title: "New webhook".to_owned(),
        back: Some((BASE, "Webhooks")),
        calls: vec![
            Call::of("create_webhook")
                .with(json!({"url": "https://dental.example.com/events", "events": ["call.ended"]})),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        form.wrap(
            &[],
            "/dashboard/webhooks/{id}",
            html! { (form.field("url")) (form.field("events")) (send("Create webhook", BASE)) },
        ),
    )
}

fn one(frame: &Frame, answers: &[Value]) -> Markup {
    let wanted = frame.path.rsplit('/').next().unwrap_or_default();
    let webhooks = list(read(answers, 0), "");
    let Some(webhook) = webhooks.iter().find(|webhook| text(webhook, "id") == wanted) else {
        return super::failure(
            frame,
            &json!({"code": "not_found", "message": "There is no such webhook."}),
            &Value::Null,
        );
    };
    let (webhook_id, here) = (text(webhook, "id"), link(BASE, text(webhook, "id")));
    let form = Form::new(frame, "update_webhook", webhook);
    let delivery =
        list(read(answers, 1), "deliveries").first().map_or("dlv_…", |delivery| text(delivery, "id"));
    let strip = Strip {
        title: text(webhook, "url").to_owned(),
        back: Some((BASE, "Webhooks")),
        beside: Some(html! { (enabled(webhook)) (id(webhook_id)) }),
        action: Some(html! {
            (act(frame, "test_webhook", &[("id", webhook_id)], &queued(&here), html! { button.primary disabled[at(webhook, "enabled") == false] { "Send test event" } }))
        }),
        calls: vec![
            Call::of("list_webhook_deliveries").at("id", webhook_id).asked(frame, &["status", "page"]),
            Call::of("redeliver_webhook_delivery").at("id", webhook_id).at("delivery_id", delivery),
            Call::of("test_webhook").at("id", webhook_id).with(json!({})),
            Call::of("update_webhook").at("id", webhook_id).with(json!({"enabled": at(webhook, "enabled")})),
            Call::of("rotate_webhook_secret").at("id", webhook_id),
            Call::of("delete_webhook").at("id", webhook_id),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            section.part data-live[list(read(answers, 1), "deliveries").iter().any(|one| is_due(frame, one))] {
                h2 { "Deliveries" } (deliveries(frame, webhook_id, read(answers, 1)))
            }
            div.half {
                (section("Settings", form.wrap(&[("id", webhook_id)], &here, html! {
                    (form.field("url")) (form.field("events")) (form.field("enabled")) div.row { button.primary { "Save" } }
                })))
                (section("Verify what arrives", html! {
                    p.help { "Give the library the raw body, not JSON that was parsed and written again." }
                    (snippet(VERIFY_JS, "Verification in JavaScript"))
                    (snippet(VERIFY_PYTHON, "Verification in Python"))
                    (act(frame, "rotate_webhook_secret", &[("id", webhook_id)], &here, html! { button { "New signing secret" } }))
                    p.help { "It is shown once. The old one stays good for 24 hours beside it." }
                    div.row.removal { (destroy(frame, "delete_webhook", &[("id", webhook_id)], BASE, "Delete webhook", "Delete 1 webhook",
                        "Nothing more is sent to this address, and its list of deliveries is deleted.")) }
                }))
            }
        },
    )
}

fn deliveries(frame: &Frame, webhook_id: &str, answer: &Value) -> Markup {
    let rows = list(answer, "deliveries");
    let schema = frame
        .schemas
        .iter()
        .find(|(id, _)| *id == "list_webhook_deliveries")
        .map_or(&Value::Null, |(_, schema)| schema);
    html! {
        nav.tabs aria-label="State of deliveries" {
            a.tab href=(frame.path) aria-current=[asked(frame, "status").is_empty().then_some("true")] { "All" }
            @for state in list(schema, "properties/status/enum").iter().filter_map(Value::as_str) {
                a.tab href={ (frame.path) "?status=" (state) } aria-current=[(asked(frame, "status") == state).then_some("true")] { (super::parts::words(state)) }
            }
        }
        @if rows.is_empty() { p.dim { "No deliveries. “Send test event” makes one." } }
        @else {
            (table("Deliveries",
                html! { th scope="col" { "Event" } th scope="col" { "State" } th.wide scope="col" { "Your answer" } th.fit.wide scope="col" { "Attempts" } th.fit scope="col" { "Created" } th.fit scope="col" { span.vh { "Actions" } } },
                html! { @for delivery in rows { (delivery_row(frame, webhook_id, delivery)) } }))
            (pages(frame, at(answer, "pagination"), ("delivery", "deliveries")))
        }
    }
}

/// Where a form leads that queues a delivery.
fn queued(here: &str) -> String {
    format!("{here}?{DELIVERY}={{id}}")
}

/// Whether a delivery is sent while somebody waits for it: the page follows it. A receiver can ask for such a pause, too.
fn is_due(frame: &Frame, delivery: &Value) -> bool {
    const SOON_MS: i64 = 90_000;
    let next_ms = time::from(text(delivery, "next_attempt_at"));
    text(delivery, "status") == "pending" && next_ms.is_none_or(|next_ms| next_ms < frame.now_ms + SOON_MS)
}

fn delivery_row(frame: &Frame, webhook_id: &str, delivery: &Value) -> Markup {
    let state = match text(delivery, "status") {
        "delivered" => status(Tone::Good, "Delivered"),
        "failed" => status(Tone::Bad, "Failed"),
        "canceled" => status(Tone::Quiet, "Canceled"),
        _ => status(Tone::Live, "Pending"),
    };
    let hidden = [("id", webhook_id), ("delivery_id", text(delivery, "id"))];
    html! {
        tr id=(text(delivery, "id")) {
            td.fit { code title=(text(delivery, "event_id")) { (text(delivery, "type")) } }
            td.fit { (state) @if let Some(next_ms) = time::from(text(delivery, "next_attempt_at")) { span.two { @if next_ms > frame.now_ms { "next try " (when(frame, text(delivery, "next_attempt_at"))) } @else { "next try is due" } } } }
            td.wrap.wide { @if let Some(code) = at(delivery, "last_status").as_i64() { code { (code) } " " } (text(delivery, "last_error")) @if text(delivery, "last_error").is_empty() { span.dim dir="auto" { (text(delivery, "last_response")) } } }
            td.num.fit.wide { (number(delivery, "attempts")) }
            td.fit { (when(frame, text(delivery, "created_at"))) }
            td.fit { @if text(delivery, "status") != "pending" { (act(frame, "redeliver_webhook_delivery", &hidden, &queued(&frame.path), html! { button.quiet { "Send again" } })) } }
        }
    }
}
