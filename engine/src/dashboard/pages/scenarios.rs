//! Scenarios: the caller's task, and what must come of it.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::form::{Form, destroy, named};
use crate::dashboard::pages::parts::{id, link, list, read, text};
use crate::dashboard::pages::{read_of, simulations};

/// A new one.
pub const NEW: Page = Page {
    path: "/dashboard/simulations/scenarios/new",
    title: "New scenario",
    reads: &[],
    forms: &["create_simulation_scenario"],
    render: new,
};

/// A new one, made of a call: the caller says again what was said, and the same tools are expected.
pub const OF_CALL: Page = Page {
    path: "/dashboard/calls/{id}/scenario",
    title: "New scenario",
    reads: &[read_of("get_call")],
    forms: &["create_simulation_scenario"],
    render: of_call,
};

/// One, to change.
pub const EDIT: Page = Page {
    path: "/dashboard/simulations/scenarios/{id}",
    title: "Scenario",
    reads: &[read_of("get_simulation_scenario")],
    forms: &["update_simulation_scenario"],
    render: edit,
};

const BASE: &str = "/dashboard/simulations/scenarios";

fn fields(form: &Form<'_>) -> Markup {
    html! {
        (form.field("name"))
        (form.field("instructions"))
        (form.field("evaluations"))
        (form.field("judge_model"))
        (form.field("judge_votes"))
        details.raw open[form.has_problem("tool_mocks")] {
            summary { "Answers in place of tools" }
            (form.field("tool_mocks"))
        }
        details.raw open[form.has_problem("conditions")] {
            summary { "Conditions of the line" }
            fieldset.group {
                legend.vh { "Conditions of the line" }
                @for name in ["packet_loss", "jitter_ms", "noise_db", "talk_over", "slow_talker"] { (form.field(&format!("conditions.{name}"))) }
            }
        }
    }
}

fn of_call(frame: &Frame, answers: &[Value]) -> Markup {
    let call = read(answers, 0);
    create(frame, &from_call(call), Some(Call::of("get_call").at("id", text(call, "id"))))
}

fn from_call(call: &Value) -> Value {
    let rows = list(call, "transcript");
    let said: Vec<String> = rows
        .iter()
        .filter(|row| text(row, "role") == "user" && !text(row, "text").is_empty())
        .map(|row| format!("\"{}\"", text(row, "text").replace('"', "'")))
        .collect();
    let mut tools: Vec<&str> = rows
        .iter()
        .filter(|row| text(row, "role") == "tool_call")
        .map(|row| text(row, "tool_name"))
        .collect();
    tools.dedup();
    let expected: Vec<Value> =
        tools.iter().map(|tool| json!({"kind": "tool_call", "role": "any", "includes": tool})).collect();
    let day = text(call, "started_at").get(..16).unwrap_or_default().replace('T', " ");
    json!({"name": format!("Call of {day} UTC"), "instructions": format!("Say, one after the other:\n{}", said.join("\n")), "evaluations": expected})
}

fn new(frame: &Frame, _: &[Value]) -> Markup {
    create(
        frame,
        &json!({"evaluations": [{"kind": "transcript", "role": "assistant", "includes": ""}]}),
        None,
    )
}

/// The form of a new scenario; `source` is the call that it was made from.
fn create(frame: &Frame, current: &Value, source: Option<Call<'_>>) -> Markup {
    let example = Call::of("create_simulation_scenario").with(json!({
        "name": "Saturday opening", "instructions": "Ask \"When do you open on Saturday?\"",
        "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "open at ten"}],
    }));
    let form = Form::new(frame, "create_simulation_scenario", current);
    let strip = Strip {
        title: "New scenario".to_owned(),
        back: Some((simulations::BASE, "Simulations")),
        calls: source.into_iter().chain([example]).collect(),
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (form.wrap(&[], "/dashboard/simulations/scenarios/{id}", html! { (fields(&form)) (send("Create scenario", simulations::BASE)) }))
        },
    )
}

fn edit(frame: &Frame, answers: &[Value]) -> Markup {
    let scenario = read(answers, 0);
    let scenario_id = text(scenario, "id");
    let form = Form::new(frame, "update_simulation_scenario", scenario);
    let strip = Strip {
        title: text(scenario, "name").to_owned(),
        back: Some((simulations::BASE, "Simulations")),
        beside: Some(id(scenario_id)),
        action: Some(html! {
            a.button href={ "/dashboard/simulations/new?scenario_id=" (scenario_id) } { "Simulate it" }
            (destroy(
                frame,
                "delete_simulation_scenario",
                &[("id", scenario_id)],
                simulations::BASE,
                "Delete",
                &named("Delete", text(scenario, "name")),
                "Its simulations are deleted, too. Their runs stay.",
            ))
        }),
        calls: vec![
            Call::of("get_simulation_scenario").at("id", scenario_id),
            Call::of("update_simulation_scenario")
                .at("id", scenario_id)
                .with(json!({"name": text(scenario, "name")})),
            Call::of("delete_simulation_scenario").at("id", scenario_id),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (form.wrap(&[("id", scenario_id)], &link(BASE, scenario_id), html! { (fields(&form)) (send("Save", simulations::BASE)) }))
        },
    )
}
