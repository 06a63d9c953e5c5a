//! What a form tells that met a change of somebody else, for what has no revisions to merge.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::Frame;
use crate::dashboard::pages::form::{label, refused};
use crate::dashboard::pages::parts::section;
use crate::dashboard::pages::shown::Shown;

/// The saved texts that differ from those in the form, which another `Save` puts in their place. Empty where nothing met.
pub fn saved_meanwhile(frame: &Frame, current: &Value) -> Markup {
    if refused(frame) != "revision_conflict" {
        return html! {};
    }
    let differs = |(name, typed): &&(String, String)| {
        current[name.as_str()].as_str().is_some_and(|saved| saved != typed.replace("\r\n", "\n"))
    };
    section(
        "It was changed meanwhile",
        html! {
            p {
                "What you typed is in the form below. Save it to put it in place of what is saved now, or "
                a href=(frame.path) { "go on with what is saved" } "."
            }
            @for (name, _) in frame.typed.iter().filter(differs) {
                @let called = format!("{} as it is saved", label(name));
                h3 { (called) }
                pre.text dir="auto" tabindex="0" aria-label=(called) { (Shown::of(&current[name.as_str()]).first()) }
            }
        },
    )
}
