//! A simulated caller in one step: what the caller wants, and what the assistant must say.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::form::{carried, problems};
use crate::dashboard::pages::parts::{link, read, text};
use crate::dashboard::pages::read_of;
use crate::dashboard::simulate::FORM;

/// The page.
pub const PAGE: Page = Page {
    path: "/dashboard/assistants/{id}/simulate",
    title: "Simulate a caller",
    reads: &[read_of("get_assistant")],
    forms: &[],
    render,
};

fn render(frame: &Frame, answers: &[Value]) -> Markup {
    let assistant = read(answers, 0);
    let assistant_id = text(assistant, "id");
    let here = link("/dashboard/assistants", assistant_id);
    let typed = |name: &str, otherwise: &str| -> String {
        let typed = frame.typed.iter().find(|(known, _)| known == name);
        typed.map_or_else(|| otherwise.to_owned(), |(_, value)| value.clone())
    };
    let problem =
        |name: &str| problems(frame).find(|(field, _)| *field == name).map(|(_, message)| message.to_owned());
    let strip = Strip {
        title: "Simulate a caller".to_owned(),
        back: Some((&here, text(assistant, "name"))),
        calls: vec![
            Call::of("get_assistant").at("id", assistant_id),
            Call::of("create_simulation_scenario").with(json!({
                "name": "Saturday opening", "instructions": "Ask \"When do you open on Saturday?\"",
                "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "open at ten"}],
            })),
            Call::of("create_simulation")
                .with(json!({"assistant_id": assistant_id, "persona_id": "pers_…", "scenario_id": "scen_…"})),
            Call::of("start_simulation_run").at("id", "sim_…").with(json!({"mode": "chat"})),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            form.edit method="post" action={ "/dashboard/do/" (FORM) } {
                (carried(frame, &here))
                input type="hidden" name="id" value=(assistant_id);
                div.field {
                    label for="f-instructions" { "What the caller does" }
                    textarea #f-instructions name="instructions" rows="3" required dir="auto" aria-describedby="d-instructions" { "\n" (typed("instructions", "Ask \"When are you open?\"")) }
                    p.help #d-instructions { "The caller says what stands in quotes, and goodbye when it is done." }
                    @if let Some(message) = problem("instructions") { p.wrong { (message) } }
                }
                div.field {
                    label for="f-includes" { "What the assistant must say" }
                    input #f-includes name="includes" required dir="auto" autocomplete="off" value=(typed("includes", "")) placeholder="nine to five" aria-describedby="d-includes";
                    p.help #d-includes { "Words of the right answer. The run passes if one of the assistant's lines contains them." }
                }
                (send("Run", &here))
            }
        },
    )
}
