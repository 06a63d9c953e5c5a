//! A conversation with an assistant, beside its editor: the page of a test link, in a frame.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::Frame;
use crate::dashboard::layout;
use crate::dashboard::pages::form::act;
use crate::dashboard::pages::parts::{copy, number, text};
use crate::models::RULES_MODEL;

/// The panel. Without a script its button loads the page again, with the conversation in it; with one, it stays, and so
/// does what was typed into the editor.
pub fn panel(frame: &Frame, assistant: &Value, here: &str) -> Markup {
    let assistant_id = text(assistant, "id");
    let url = frame.secret_once.as_ref().map_or("", |made| match made.get("websocket_url") {
        Some(_) => text(made, "url"),
        None => "",
    });
    html! {
        section.part.talk #talk data-assistant=(assistant_id) data-name=(text(assistant, "name")) {
            h2 { "Talk to it" }
            div.conversation {
                @if !url.is_empty() {
                    iframe src=(within(frame, url)) title={ "Conversation with " (text(assistant, "name")) } allow="microphone; autoplay" {}
                }
            }
            p.help {
                "Aloud or by text, as a caller would. It talks as it is saved: revision " (number(assistant, "revision")) "."
                @if text(assistant, "model") == RULES_MODEL { " The model " code { (RULES_MODEL) } " answers with sentences of the attached documents, and calls the attached tools." }
            }
            div.row {
                (act(frame, "create_browser_test_token", &[("id", assistant_id)], here, html! {
                    button.primary[url.is_empty()] { @if url.is_empty() { "Talk to it" } @else { "New conversation" } }
                }))
                span.row.link hidden[url.is_empty()] {
                    a href=(url) target="_blank" rel="noopener" { "Open in a window" }
                    (copy(url, "Copy the link"))
                }
                // Shown when the conversation has begun: its link opens no second one, and leaving the page would end it.
                a.call hidden href="" target="_blank" rel="noopener" { "Open the call" }
            }
        }
        (layout::module("talk.js"))
    }
}

/// The address without the origin: a frame shows only what is ours.
fn within<'a>(frame: &Frame, url: &'a str) -> &'a str {
    url.strip_prefix(&frame.origin).filter(|path| path.starts_with('/')).unwrap_or(url)
}
