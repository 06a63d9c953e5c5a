//! Which assistant passes which scenario: a row a scenario, a column an assistant, and in a cell what came of the latest
//! run of each simulation that joins the two.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::frame::Frame;
use crate::dashboard::pages::form::act;
use crate::dashboard::pages::parts::{at, link, name_of, table, text};
use crate::dashboard::pages::runs;

/// Columns are as many as can be read side by side; `?assistant_id=` shows the others.
const COLUMNS_MAX: usize = 8;

/// The matrix of these simulations.
pub fn matrix(
    frame: &Frame,
    simulations: &[Value],
    assistants: &Value,
    personas: &Value,
    scenarios: &Value,
) -> Markup {
    let all = distinct(simulations, "assistant_id");
    let (columns, left_out) = all.split_at(all.len().min(COLUMNS_MAX));
    let rows = distinct(simulations, "scenario_id");
    html! {
        (table("Scenarios and assistants",
            html! {
                th scope="col" { "Scenario" }
                @for assistant in columns { th scope="col" { a.name dir="auto" href=(link("/dashboard/assistants", assistant)) { (name_of(assistants, assistant)) } } }
            },
            html! { @for scenario in &rows {
                tr {
                    th.row scope="row" dir="auto" { a.name href=(link("/dashboard/simulations/scenarios", scenario)) { (name_of(scenarios, scenario)) } }
                    @for assistant in columns {
                        td { (cell(frame, simulations, assistant, scenario, personas)) }
                    }
                }
            } }))
        @if !left_out.is_empty() {
            p.help { "Also tested: "
                @for (n, assistant) in left_out.iter().enumerate() {
                    @if n > 0 { ", " }
                    a dir="auto" href={ "/dashboard/simulations?assistant_id=" (assistant) } { (name_of(assistants, assistant)) }
                }
            }
        }
    }
}

fn cell(frame: &Frame, simulations: &[Value], assistant: &str, scenario: &str, personas: &Value) -> Markup {
    let joins = |simulation: &&Value| {
        text(simulation, "assistant_id") == assistant && text(simulation, "scenario_id") == scenario
    };
    let here: Vec<&Value> = simulations.iter().filter(joins).collect();
    html! {
        @if here.is_empty() {
            a.quiet href={ "/dashboard/simulations/new?assistant_id=" (assistant) "&scenario_id=" (scenario) } { "Add" }
        }
        @for simulation in here {
            @let simulation_id = text(simulation, "id");
            @let persona = name_of(personas, text(simulation, "persona_id"));
            div.cell {
                @match at(simulation, "last_run") {
                    Value::Null => span.none { "not run yet" },
                    run => a.plain href=(link("/dashboard/simulations/runs", text(run, "id"))) { (runs::verdict(run)) },
                }
                span.dim dir="auto" { (persona) }
                (act(frame, "start_simulation_run", &[("id", simulation_id), ("mode", "chat")], "/dashboard/simulations/runs/{id}", html! {
                    button { "Run" }
                }))
            }
        }
    }
}

/// The values of a field, each once, in order.
fn distinct<'a>(simulations: &'a [Value], field: &str) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for simulation in simulations {
        let value = text(simulation, field);
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}
