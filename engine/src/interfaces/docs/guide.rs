//! What all operations have in common, said once.
use maud::{Markup, html};

use super::examples::Examples;
use super::json::{block, pretty};
use super::snippets;
use super::words::{count, duration, prose};
use crate::base::error::{Code, PROBLEMS_MAX};
use crate::base::limits::{
    BODY_BYTES_MAX, IDEMPOTENCY_KEY_CHARS_MAX, IDEMPOTENCY_WINDOW_MS, LIST_ROWS_DEFAULT, PAGE_ROWS_DEFAULT,
    PAGE_ROWS_MAX,
};
use serde_json::Value;

/// The sections, by their fragments.
pub(super) const GUIDE: &[(&str, &str)] = &[
    ("start", "First call"),
    ("authentication", "Authentication"),
    ("conventions", "Conventions"),
    ("lists", "Lists and pages"),
    ("revisions", "Revisions"),
    ("retries", "Safe retries"),
    ("mcp", "MCP"),
    ("errors", "Errors"),
];

/// The section that tells of a header which many operations take.
pub(super) fn header_told_at(name: &str) -> Option<&'static str> {
    match name {
        "If-Match" => Some("revisions"),
        "Idempotency-Key" => Some("retries"),
        _ => None,
    }
}

/// The title of a section.
pub(super) fn title(place: &str) -> &'static str {
    GUIDE.iter().find(|(id, _)| *id == place).map_or("", |(_, title)| title)
}

pub(super) fn sections(document: &Value, base_url: &str, examples: &Examples) -> Markup {
    let first = [
        (
            ("curl", "curl"),
            format!("curl {base_url}/assistants \\\n  -H \"Authorization: Bearer $SIDETONE_KEY\""),
        ),
        (
            ("ts", "TypeScript"),
            format!(
                "const reply = await fetch(\"{base_url}/assistants\", {{\n  headers: {{ Authorization: \"Bearer \" + process.env.SIDETONE_KEY }},\n}});\nconsole.log(await reply.json());"
            ),
        ),
        (
            ("py", "Python"),
            format!(
                "import os, requests\n\nreply = requests.get(\n    \"{base_url}/assistants\",\n    headers={{\"Authorization\": \"Bearer \" + os.environ[\"SIDETONE_KEY\"]}},\n)\nprint(reply.json())"
            ),
        ),
        (
            ("mcp", "MCP"),
            format!(
                "{{\n  \"mcpServers\": {{\n    \"sidetone\": {{\n      \"url\": \"{base_url}/mcp\",\n      \"headers\": {{\"Authorization\": \"Bearer sidetone_…\"}}\n    }}\n  }}\n}}"
            ),
        ),
    ];
    let window = duration(IDEMPOTENCY_WINDOW_MS);
    html! {
        section.op #start {
            div.told {
                h1 { "API reference" }
                p { (prose(super::text(&document["info"]["description"]))) }
                p { "Every example on this page was recorded from the service. Long lists and texts are cut, and so are secrets." }
            }
            div.shown { (snippets::of("start", "First call", &first)) }
        }
        section.op #authentication {
            div.told.wide {
                (heading("authentication"))
                p { "Send a workspace API key with every request: " code { "Authorization: Bearer sidetone_…" } ". A key has full access to its workspace. The service shows it once and stores only its hash. Make keys in the dashboard, or with " a href="#create_api_key" { code { "create_api_key" } } "." }
            }
        }
        section.op #conventions {
            div.told.wide {
                (heading("conventions"))
                ul {
                    li { "Bodies are JSON in UTF-8 of at most " (count(BODY_BYTES_MAX / 1024 / 1024)) " MiB, with " code { "Content-Type: application/json" } "." }
                    li { "Times are RFC 3339 in UTC with milliseconds. Durations end in " code { "_ms" } ", money in " code { "_microusd" } ": millionths of a US dollar." }
                    li { "Ids have a prefix (" code { "asst_…" } ", " code { "call_…" } ") and sort by the time of creation." }
                    li { "Unknown fields and parameters are refused by name, and so is null where a value belongs." }
                    li { code { "PATCH" } " keeps what you leave out. It takes the fields as " code { "GET" } " shows them." }
                    li { "Every response has an " code { "X-Request-Id" } ", as in the service's log." }
                }
            }
        }
        section.op #lists {
            div.told.wide {
                (heading("lists"))
                p { "Lists are newest first and have at most " code { "limit" } " rows: " (count(LIST_ROWS_DEFAULT)) " by default, " (count(PAGE_ROWS_MAX)) " at most. While there are more, the header " code { "Link: <URL>; rel=\"next\"" } " has the request for the next ones. Calls, runs and deliveries have numbered pages: " code { "page" } " and " code { "limit" } " (" (count(PAGE_ROWS_DEFAULT)) " by default), with the same header." }
            }
        }
        section.op #revisions {
            div.told.wide {
                (heading("revisions"))
                p { "An assistant has a " code { "revision" } ", also as " code { "ETag" } ". Send the one that you read as " code { "If-Match: \"3\"" } " (MCP: " code { "if_revision" } ") to change only what you have seen. If somebody was faster, you get 409 " a href="#error-revision_conflict" { code { "revision_conflict" } } "." }
            }
        }
        section.op #retries {
            div.told.wide {
                (heading("retries"))
                p { "Send an " code { "Idempotency-Key" } " of 1 to " (count(IDEMPOTENCY_KEY_CHARS_MAX)) " characters, such as a UUID, with a " code { "POST" } ". For " (window) " the same request with the same key happens once: a repetition returns the stored response with " code { "Idempotent-Replayed: true" } "." }
            }
        }
        section.op #mcp {
            div.told.wide {
                (heading("mcp"))
                p { "An agent uses the same operations as tools at " code { "POST " (base_url) "/mcp" } ", with the same key. A tool has the name of its operation. Values of path and query are arguments, the body is " code { "data" } ", and what can cost money wants " code { "confirm: true" } ". Downloads and streams are for REST alone." }
            }
        }
        section.op #errors {
            div.told {
                (heading("errors"))
                p { "Every error has one form. " code { "message" } " says what is wrong and what to do, " code { "details.fields" } " names every wrong field, up to " (PROBLEMS_MAX) "." }
                dl.fields.codes {
                    @for code in Code::ALL {
                        div id={ "error-" (code.as_str()) } { dt { code { (code.as_str()) } " " span { (code.status()) } } dd { (prose(code.meaning())) } }
                    }
                }
            }
            div.shown {
                div.answer { p { "Response " b { "422" } } (block(&pretty(examples.error()))) }
            }
        }
    }
}

fn heading(place: &str) -> Markup {
    html! { h2 { a href={ "#" (place) } { (title(place)) } } }
}
