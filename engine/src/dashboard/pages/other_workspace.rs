//! What a form shows that was made in one workspace and sent after its person had opened another one.
use maud::{Markup, html};

use crate::base::error::Code;
use crate::dashboard::layout;

/// What the page says.
pub(in crate::dashboard) struct OtherWorkspace<'a> {
    /// Id and name of the form's workspace; `None`: its person belongs to it no longer.
    pub made_for: Option<(&'a str, &'a str)>,
    /// The name of the workspace that is open.
    pub open: &'a str,
    /// The page of the form.
    pub back: &'a str,
    /// The token of forms in the workspace that is open.
    pub csrf: &'a str,
    /// For the operator.
    pub request_id: &'a str,
}

/// The page. The script keeps what was typed for the form in the other workspace.
pub(in crate::dashboard) fn other_workspace(page: &OtherWorkspace<'_>) -> Markup {
    let name = |name: &str| html! { strong dir="auto" { (name) } };
    layout::plain(
        "Not done",
        html! {
            div.problem role="alert" {
                p {
                    @if let Some((_, made_for)) = page.made_for { "This form belongs to the workspace " (name(made_for)) }
                    @else { "This form belongs to a workspace that you are no longer a member of" }
                    ", and you have opened " (name(page.open)) " since. Nothing was done."
                }
                p.help { code { (Code::OtherWorkspace.as_str()) } " " code { (page.request_id) } }
            }
            @if let Some((id, made_for)) = page.made_for {
                form method="post" action="/dashboard/do/switch_workspace" data-keeps-draft {
                    input type="hidden" name="_csrf" value=(page.csrf);
                    input type="hidden" name="_then" value=(page.back);
                    input type="hidden" name="id" value=(id);
                    button.primary { "Open " (made_for) }
                }
                p.help { "It opens with the page of the form: look at it, and send it again." }
            }
            p { a href="/dashboard" { "Stay in " (page.open) } }
        },
    )
}
