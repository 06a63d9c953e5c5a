//! API keys: made here, shown once, revoked here.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip};
use crate::dashboard::pages::form::{Form, destroy, named};
use crate::dashboard::pages::list_of;
use crate::dashboard::pages::parts::{list, more, read, section, snippet, table, text, when};

/// All keys.
pub const LIST: Page = Page {
    path: "/dashboard/keys",
    title: "Keys",
    reads: &[list_of("list_api_keys", "after")],
    forms: &["create_api_key"],
    render: all,
};

const BASE: &str = "/dashboard/keys";

fn all(frame: &Frame, answers: &[Value]) -> Markup {
    let keys = list(read(answers, 0), "");
    let form = Form::new(frame, "create_api_key", &Value::Null);
    let strip = Strip {
        title: "Keys".to_owned(),
        calls: vec![
            Call::of("list_api_keys"),
            Call::of("create_api_key").with(json!({"name": "Nightly tests"})),
            Call::of("revoke_api_key").at("id", keys.first().map_or("key_…", |key| text(key, "id"))),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (section("New key", form.wrap(&[], BASE, html! {
                (form.field("name"))
                p.help { "A key may do everything in " strong dir="auto" { (frame.workspace_name) } ". Make one for each program, so that you can revoke them one by one." }
                div.row { button.primary { "Create key" } }
            })))
            (section("Keys", html! {
                @if keys.is_empty() { p.dim { "No key yet. A program needs one to use the API or MCP." } }
                @else {
                    (table("Keys",
                        html! { th scope="col" { "Name" } th scope="col" { "Ends with" } th.fit.wide scope="col" { "Created" } th.fit scope="col" { "Last used" } th.fit scope="col" { span.vh { "Actions" } } },
                        html! { @for key in keys {
                            tr {
                                td dir="auto" { strong { (text(key, "name")) } }
                                td.fit { code { (text(key, "hint")) } }
                                td.fit.wide { (when(frame, text(key, "created_at"))) }
                                td.fit { @match text(key, "last_used_at") { "" => span.none { "never" }, at => (when(frame, at)) } }
                                td.fit { (destroy(frame, "revoke_api_key", &[("id", text(key, "id"))], BASE, "Revoke", &named("Revoke", text(key, "name")),
                                    "Programs that use it get 401 unauthorized from now on. This cannot be undone.")) }
                            }
                        } }))
                    (more(frame, "after"))
                }
            }))
            (section("Try it", snippet(&format!("curl {}/assistants -H \"Authorization: Bearer $SIDETONE_KEY\"", frame.origin), "A first request")))
        },
    )
}
