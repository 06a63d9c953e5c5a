//! What the service sends: events and the requests to tools, byte for byte, and how to know that they are its own.
use std::fmt::Write as _;

use maud::{Markup, html};
use serde_json::Value;

use super::examples::Examples;
use super::fields;
use super::json::{block, pretty};
use super::snippets;
use super::words::{count, duration, text};
use crate::base::limits::{
    DELIVERY_DEADLINE_MS, DELIVERY_JITTER_PERCENT_MAX, DELIVERY_RETRY_MS, EVENT_BYTES_MAX,
    SECRET_OVERLAP_MS_MAX, TOOL_RESPONSE_BYTES_MAX, TOOL_TIMEOUT_MS_DEFAULT,
};
use crate::storage::events::EventKind;

const NODE: &str = r#"// npm install standardwebhooks
import { Webhook } from "standardwebhooks";

// Throws if the signature is wrong. Give it the body as it arrived.
const event = new Webhook(process.env.SIGNING_SECRET)
  .verify(rawBody, request.headers);"#;
const PYTHON: &str = r#"# pip install standardwebhooks
import os
from standardwebhooks.webhooks import Webhook

# Raises if the signature is wrong. Give it the body as it arrived.
event = Webhook(os.environ["SIGNING_SECRET"]).verify(raw_body, request.headers)"#;
const RUST: &str = r#"// cargo add standardwebhooks
let webhook = standardwebhooks::Webhook::new(&signing_secret)?;
// An error if the signature is wrong. Give it the body as it arrived.
webhook.verify(&raw_body, request.headers())?;"#;

/// The sections, by their fragments.
pub(super) fn entries() -> Vec<(String, String)> {
    let owned = |id: &str, title: &str| (id.to_owned(), title.to_owned());
    let events =
        EventKind::ALL.iter().map(|(kind, _)| (format!("event-{}", kind.as_str()), kind.as_str().to_owned()));
    [owned("outgoing", "Deliveries")]
        .into_iter()
        .chain(events)
        .chain([owned("tool-requests", "Requests to your tools"), owned("signatures", "Verify signatures")])
        .collect()
}

pub(super) fn sections(document: &Value, examples: &Examples) -> Markup {
    let pauses: Vec<String> = DELIVERY_RETRY_MS.iter().map(|ms| duration(*ms)).collect();
    let delivery = examples.delivery();
    let sent = EventKind::ALL.iter().map(|(kind, _)| examples.event(kind.as_str()));
    let sent = sent.into_iter().find(|event| event["id"] == delivery["headers"]["webhook-id"]);
    html! {
        section.group { h2 { a href="#outgoing" { "Events and tool requests" } } p { "What the service sends to you." } }
        section.op #outgoing {
            div.told {
                h3 { a href="#outgoing" { "Deliveries" } }
                p { "A " a href="#webhooks" { "webhook" } " receives each event that it asks for as one " code { "POST" } ". Any 2xx within " (duration(DELIVERY_DEADLINE_MS)) " is success. Everything else is tried again after " (pauses.join(", ")) ", each plus up to " (DELIVERY_JITTER_PERCENT_MAX) " % at random. 410 disables the webhook." }
                p { "An event keeps its " code { "id" } " and its body in every attempt and can arrive twice, or in another order than it happened. Keep the ids that you have seen." }
                p { code { "data" } " has what REST returns for the object. An event above " (count(EVENT_BYTES_MAX)) " bytes has only its id." }
            }
            div.shown { div.answer { p { "Request, as it is sent" } (block(&wire(delivery, sent.unwrap_or(&Value::Null)))) } }
        }
        @for (kind, meaning) in EventKind::ALL {
            @let name = kind.as_str();
            @let event = examples.event(name);
            section.op id={ "event-" (name) } {
                div.told {
                    h3 { a href={ "#event-" (name) } { code { (name) } } }
                    p { (super::prose(meaning)) }
                    p.gives { code { "data" } " has " (object_of(document, *kind)) "." }
                }
                div.shown { div.answer { p { "Body" } (block(&pretty(event))) } }
            }
        }
        section.op #tool-requests {
            div.told {
                h3 { a href="#tool-requests" { "Requests to your tools" } }
                p { "When the model calls a " a href="#tools" { "tool" } ", the service sends one signed request to its URL and gives the answer to the model. Simulated conversations do so, too: " code { "call.source" } " is " code { "simulation" } ", and " code { "test" } " for " a href="#test_tool" { code { "test_tool" } } "." }
                dl.fields {
                    @for (name, note) in [
                        ("id", "The id of this call of the tool. It is the same in every attempt; `Idempotency-Key` and `webhook-id` repeat it."),
                        ("arguments", "What the model chose, checked against the tool's `parameters`. With `GET` and `DELETE` they are in the query, and there is no body."),
                        ("call", "The conversation. `from` and `to` are null without a telephone."),
                    ] { div { dt { code { (name) } } dd { (super::prose(note)) } } }
                }
                p { "Answer with any 2xx within the tool's " code { "timeout_ms" } " (" (duration(TOOL_TIMEOUT_MS_DEFAULT)) " by default). The body, JSON or plain text of at most " (count(TOOL_RESPONSE_BYTES_MAX / 1024)) " KiB, is what the model reads. Everything else tells the model that the tool failed." }
            }
            div.shown {
                div.answer { p { "Request, as it is sent" } pre { code { (wire(examples.tool(), &examples.tool()["body"])) } } }
                div.answer { p { "Your answer " b { "200" } } pre { code { (text(&examples.tool()["answer"])) } } }
            }
        }
        section.op #signatures {
            div.told {
                h3 { a href="#signatures" { "Verify signatures" } }
                p { "Events and tool requests are signed as " a href="https://www.standardwebhooks.com" rel="noreferrer" { "Standard Webhooks" } " says. The headers are " code { "webhook-id" } ", " code { "webhook-timestamp" } " and " code { "webhook-signature" } "; the secret is the " code { "signing_secret" } " of the webhook or tool." }
                p { "Without a library: the signature is " code { "v1," } " and, in base64, the HMAC-SHA256 of " code { "{id}.{timestamp}.{body}" } ". Its key is the secret after " code { "whsec_" } ", decoded from base64. Refuse a timestamp that is more than five minutes away." }
                p { "After a rotation the header has two signatures, of the new and the old secret, for " (duration(SECRET_OVERLAP_MS_MAX)) " or as long as you choose. One that fits is enough." }
            }
            div.shown {
                (snippets::of("signatures", "Verify", &[
                    (("ts", "TypeScript"), NODE.to_owned()),
                    (("py", "Python"), PYTHON.to_owned()),
                    (("rust", "Rust"), RUST.to_owned()),
                ]))
            }
        }
    }
}

/// The object in an event's data, by its name there.
fn object_of(document: &Value, kind: EventKind) -> Markup {
    let (name, object) = (kind.subject(), kind.subject_schema());
    let object = serde_json::json!({"$ref": format!("#/components/schemas/{object}")});
    html! { code { (name) } ", a " (fields::kind(document, &object)) }
}

/// A request as HTTP.
fn wire(request: &Value, body: &Value) -> String {
    let url = text(&request["url"]);
    let (host, path) = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).unwrap_or((url, ""));
    let mut lines = format!("{} /{path} HTTP/1.1\nhost: {host}\n", text(&request["method"]));
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{name}: {}", text(value));
    }
    let _ = write!(lines, "\n{}", pretty(body));
    lines
}
