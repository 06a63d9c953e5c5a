//! Test links: the page where people talk to an assistant, its socket for other clients, and how it starts again. They are no
//! operations: the token in the link is the key.
use maud::{Markup, html};
use serde_json::json;

use super::json::{block, pretty};
use super::words::{count, prose};
use crate::base::limits::{LINK_STARTS_MAX, LINK_STARTS_WINDOW_MAX, LIVE_TEXT_CHARS_MAX};
use crate::live;

/// The section, by its fragment.
pub(super) const ENTRY: (&str, &str) = ("test-links", "Test links");

/// What comes over the socket, in the order of a conversation.
const MESSAGES: &[(&str, &str)] = &[
    (
        "call_started",
        "The `call`, `max_duration_seconds`, `assistant_name`, `language`, and `audio`: its format, or null for text alone.",
    ),
    ("assistant_text", "A line of the assistant: `index` in the call's transcript, and `text`."),
    ("tool_call, tool_result", "A call of a tool, `refused` or not, and its result."),
    ("error", "A `code` and a `message`. Not every one ends the conversation."),
    ("call_ended", "The end: `call_id`, `ended_reason`, `duration_ms`. Then the socket closes."),
];

pub(super) fn section(base_url: &str) -> Markup {
    let (id, title) = ENTRY;
    let socket_origin = live::socket_origin(base_url);
    html! {
        section.op id=(id) {
            div.told {
                h3 { a href={ "#" (id) } { (title) } }
                p { a href="#create_browser_test_token" { code { "create_browser_test_token" } } " returns a link that needs no API key: the token in it does. Its " code { "url" } " is a page to talk on, " code { "GET /voice-test?token=…" } ". Its " code { "websocket_url" } ", " code { "GET /voice-test/socket?token=…" } ", is for clients of your own. A token opens one conversation, which is a call in the log; opening the page does not use it up." }
                p { "Messages on the socket are JSON, one object in each text message. Send:" }
                dl.fields {
                    div { dt { code { "user_text" } } dd { "A " code { "text" } " of at most " (count(LIVE_TEXT_CHARS_MAX)) " characters." } }
                    div { dt { code { "hang_up" } } dd { "Ends the conversation." } }
                }
                p { "You get:" }
                dl.fields {
                    @for (name, note) in MESSAGES { div { dt { code { (name) } } dd { (prose(note)) } } }
                }
                p { "With " code { "&audio=speech" } " the conversation is spoken: binary messages are mono audio in both directions, 16-bit samples, the lower byte first, 16,000 a second. The guide on testing, " code { "sidetone://guides/testing" } " over MCP, has its further messages." }
                p { "An ordinary " code { "GET" } " of the socket's address says why it would not open, with the code of an " a href="#errors" { "error" } ", and uses nothing up. With " code { "&check=1" } " it is 200 while the link is good." }
                p { "A token made with " code { "\"restartable\": true" } " can start again: " code { "POST /voice-test/restart?token=…" } " returns a token for one more conversation, until the first one expires: at most " (count(LINK_STARTS_MAX)) " conversations, and " (count(LINK_STARTS_WINDOW_MAX)) " within a minute; then you get 429 " a href="#error-too_many_starts" { code { "too_many_starts" } } " with " code { "Retry-After" } ". Without it, you get 409 " a href="#error-token_used" { code { "token_used" } } "." }
            }
            div.shown {
                div.answer { p { "Socket" } pre { code { (socket_origin) (live::SOCKET_PATH) "?token=…" } } }
                div.answer { p { "To the service" } (block(&pretty(&json!({"type": "user_text", "text": "When do you open?"})))) }
                div.answer { p { "From the service" } (block(&pretty(&json!({"type": "assistant_text", "index": 2, "text": "We open at nine."})))) }
                div.answer { p { "POST /voice-test/restart?token=… " b { "200" } } (block(&pretty(&json!({"token": "…"})))) }
            }
        }
    }
}
