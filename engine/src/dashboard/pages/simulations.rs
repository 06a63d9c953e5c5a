//! Simulations: which assistant talks with which caller about what, and how it went.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::frame::{Frame, Page, Read};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::form::{Form, carried, destroy};
use crate::dashboard::pages::parts::{
    asked, at, counted, empty, link, list, money, more, name_of, number, pages, read, table, text, when,
    words,
};
use crate::dashboard::pages::{ROWS, choices_of, list_of, matrix, read_of, runs};

/// Simulations, runs, scenarios and personas.
pub const LIST: Page = Page {
    path: "/dashboard/simulations",
    title: "Simulations",
    reads: &[
        Read { operation: "list_simulations", query: &["assistant_id"], fixed: ROWS, after: "after" },
        Read {
            operation: "list_simulation_runs",
            query: &["assistant_id", "status", "batch_id", "page"],
            fixed: &[("limit", "50")],
            after: "",
        },
        read_of("list_assistants"),
        list_of("list_simulation_personas", "personas_after"),
        list_of("list_simulation_scenarios", "scenarios_after"),
    ],
    forms: &["start_simulation_batch"],
    render: all,
};

/// A new one.
pub const NEW: Page = Page {
    path: "/dashboard/simulations/new",
    title: "New simulation",
    reads: &[
        choices_of("list_assistants"),
        choices_of("list_simulation_personas"),
        choices_of("list_simulation_scenarios"),
    ],
    forms: &["create_simulation"],
    render: new,
};

/// The page's address.
pub const BASE: &str = "/dashboard/simulations";

fn all(frame: &Frame, answers: &[Value]) -> Markup {
    let (simulations, runs) = (list(read(answers, 0), ""), read(answers, 1));
    let (assistants, personas, scenarios) = (read(answers, 2), read(answers, 3), read(answers, 4));
    let last_goes = |simulation: &Value| runs::is_going(at(simulation, "last_run"));
    let going = list(runs, "runs").iter().any(runs::is_going) || simulations.iter().any(last_goes);
    let nothing = simulations.is_empty() && list(scenarios, "").is_empty() && list(personas, "").is_empty();
    let first = simulations.first();
    let one = first.map_or("sim_…", |simulation| text(simulation, "id"));
    let assistant_id = first.map_or("asst_…", |simulation| text(simulation, "assistant_id"));
    let strip = Strip {
        title: "Simulations".to_owned(),
        action: (!nothing)
            .then(|| html! { a.button.primary href="/dashboard/simulations/new" { "Create simulation" } }),
        calls: vec![
            Call::of("list_simulations").asked(frame, &["assistant_id"]),
            Call::of("list_simulation_runs").asked(frame, &["assistant_id", "status", "batch_id", "page"]),
            Call::of("list_simulation_scenarios"),
            Call::of("list_simulation_personas"),
            Call::of("start_simulation_run").at("id", one).with(json!({"mode": "chat"})),
            Call::of("start_simulation_batch").with(json!({"assistant_id": assistant_id, "mode": "chat"})),
            Call::of("start_inline_simulation").with(json!({
                "assistant_id": assistant_id,
                "persona": {"system_prompt": "You are in a hurry."},
                "scenario": {
                    "instructions": "Ask when they open on Sunday.",
                    "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "Sunday"}],
                },
            })),
            Call::of("get_simulation").at("id", one),
            Call::of("update_simulation").at("id", one).with(json!({"name": "Sunday opening"})),
            Call::of("delete_simulation").at("id", one),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if nothing {
                (empty("A simulation lets a caller that you describe talk with an assistant, and checks what you expect of it. Begin with a scenario: the caller's task, and what must be said.",
                    Some(("/dashboard/simulations/scenarios/new", "Create scenario")), ("testing.md", "How simulations work")))
            } @else {
                (run_all(frame, simulations, assistants))
                section.part {
                    h2 { "Simulations" }
                    @if simulations.is_empty() { p.dim { "A simulation joins an assistant, a persona and a scenario. " a href="/dashboard/simulations/new" { "Create one" } } }
                    @else {
                        (matrix::matrix(frame, simulations, assistants, personas, scenarios))
                        (more(frame, "after"))
                        (every_one(frame, simulations, assistants, personas, scenarios))
                    }
                }
                section.part data-live[going] {
                    h2 { "Latest runs" }
                    @if list(runs, "runs").is_empty() { p.dim { "No run yet. Press “Run” beside a simulation." } }
                    @else { (runs::rows(frame, list(runs, "runs"), read(answers, 0))) (pages(frame, at(runs, "pagination"), ("run", "runs"))) }
                }
                div.half {
                    (named(frame, "Scenarios", "scenarios", "Create scenario", scenarios))
                    (named(frame, "Personas", "personas", "Create persona", personas))
                }
            }
        },
    )
}

/// Runs everything of one assistant.
fn run_all(frame: &Frame, simulations: &[Value], assistants: &Value) -> Markup {
    let of = |assistant: &str| {
        simulations.iter().filter(|simulation| text(simulation, "assistant_id") == assistant).count()
    };
    let having: Vec<&Value> =
        list(assistants, "").iter().filter(|assistant| of(text(assistant, "id")) > 0).collect();
    html! {
        @if !having.is_empty() {
            form.filters method="post" action="/dashboard/do/start_simulation_batch" {
                (carried(frame, "/dashboard/simulations/batches/{batch_id}"))
                label { "Run everything of"
                    select name="assistant_id" {
                        // A name is isolated: it may be written from right to left.
                        @for assistant in &having {
                            @let count = i64::try_from(of(text(assistant, "id"))).unwrap_or_default();
                            option value=(text(assistant, "id")) selected[text(assistant, "id") == asked(frame, "assistant_id")] { "\u{2068}" (text(assistant, "name")) "\u{2069} – " (counted(count, "simulation")) }
                        }
                    }
                }
                label { "Mode" select name="mode" { option value="chat" { "Chat" } option value="voice" { "Voice" } } }
                button { "Run them" }
            }
        }
    }
}

/// So many letters of a name are shown in every column; a title tells the rest of a longer one.
const FITS: usize = 16;

/// Every simulation, to delete one.
fn every_one(
    frame: &Frame,
    simulations: &[Value],
    assistants: &Value,
    personas: &Value,
    scenarios: &Value,
) -> Markup {
    html! {
        details.raw {
            summary { "Edit the list" }
            (table("Simulations",
                html! { th scope="col" { "Scenario" } th.wide scope="col" { "Persona" } th scope="col" { "Assistant" } th.fit scope="col" { span.vh { "Actions" } } },
                html! { @for simulation in simulations {
                    @let simulation_id = text(simulation, "id");
                    tr {
                        @for (class, resources, id) in [("cap long", scenarios, "scenario_id"), ("cap wide", personas, "persona_id"), ("cap", assistants, "assistant_id")] {
                            @let name = name_of(resources, text(simulation, id));
                            td class=(class) dir="auto" title=[(name.chars().count() > FITS).then_some(&name)] { (name) }
                        }
                        td.fit { (destroy(frame, "delete_simulation", &[("id", simulation_id)], BASE, "Delete", "Delete 1 simulation", "Its runs are kept. Scenario, persona and assistant stay.")) }
                    }
                } }))
        }
    }
}

fn named(frame: &Frame, title: &str, kind: &str, create: &str, resources: &Value) -> Markup {
    let base = format!("{BASE}/{kind}");
    html! {
        section.part {
            div.row { h2 { (title) } a href={ (base) "/new" } { (create) } }
            @if list(resources, "").is_empty() { p.dim { "None yet." } }
            @else {
                (table(title,
                    html! { th scope="col" { "Name" } th.fit scope="col" { "Changed" } },
                    html! { @for resource in list(resources, "") {
                        tr { td dir="auto" { a.name href=(link(&base, text(resource, "id"))) { (text(resource, "name")) }
                                @if kind == "scenarios" { " " span.dim { (counted(i64::try_from(list(resource, "evaluations").len()).unwrap_or_default(), "evaluation")) } } }
                            td.fit { (when(frame, text(resource, "updated_at"))) } }
                    } }))
                (more(frame, &format!("{kind}_after")))
            }
        }
    }
}

fn new(frame: &Frame, answers: &[Value]) -> Markup {
    let chosen =
        json!({"assistant_id": asked(frame, "assistant_id"), "scenario_id": asked(frame, "scenario_id")});
    let form = Form::new(frame, "create_simulation", &chosen);
    let choices = |at: usize| -> Vec<(String, String)> {
        list(read(answers, at), "")
            .iter()
            .map(|one| (text(one, "id").to_owned(), text(one, "name").to_owned()))
            .collect()
    };
    let parts = [
        ("assistant_id", 0, "/dashboard/assistants/new"),
        ("persona_id", 1, "/dashboard/simulations/personas/new"),
        ("scenario_id", 2, "/dashboard/simulations/scenarios/new"),
    ];
    let strip = Strip {
        title: "New simulation".to_owned(),
        back: Some((BASE, "Simulations")),
        calls: vec![
            Call::of("create_simulation")
                .with(json!({"assistant_id": "asst_…", "persona_id": "pers_…", "scenario_id": "scen_…"})),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        form.wrap(&[], BASE, html! {
            @for (name, at, create) in parts {
                @let choices = choices(at);
                @if choices.is_empty() { p.dim { (super::form::label(name)) ": none yet. " a href=(create) { "Create one first" } } }
                @else { (form.choice(name, &choices)) }
            }
            (send("Create simulation", BASE))
        }),
    )
}

/// What a run cost and may cost.
pub fn cost(run: &Value) -> String {
    money(number(run, "cost_microusd"))
}

/// How a run was held.
pub fn mode(run: &Value) -> String {
    words(text(run, "mode"))
}
