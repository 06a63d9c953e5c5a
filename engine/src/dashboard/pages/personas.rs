//! Personas: who the simulated caller is.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::form::{Form, destroy, named};
use crate::dashboard::pages::parts::{id, link, read, text};
use crate::dashboard::pages::{read_of, simulations};

/// A new one.
pub const NEW: Page = Page {
    path: "/dashboard/simulations/personas/new",
    title: "New persona",
    reads: &[],
    forms: &["create_simulation_persona"],
    render: new,
};

/// One, to change.
pub const EDIT: Page = Page {
    path: "/dashboard/simulations/personas/{id}",
    title: "Persona",
    reads: &[read_of("get_simulation_persona")],
    forms: &["update_simulation_persona"],
    render: edit,
};

const BASE: &str = "/dashboard/simulations/personas";

fn fields(form: &Form<'_>) -> Markup {
    html! { (form.field("name")) (form.field("system_prompt")) (form.field("model")) }
}

fn new(frame: &Frame, _: &[Value]) -> Markup {
    let form = Form::new(frame, "create_simulation_persona", &Value::Null);
    let strip = Strip {
        title: "New persona".to_owned(),
        back: Some((simulations::BASE, "Simulations")),
        calls: vec![Call::of("create_simulation_persona").with(json!({"name": "Hurried parent", "system_prompt": "You are on your way to work and have one minute."}))],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (form.wrap(&[], "/dashboard/simulations/personas/{id}", html! { (fields(&form)) (send("Create persona", simulations::BASE)) }))
        },
    )
}

fn edit(frame: &Frame, answers: &[Value]) -> Markup {
    let persona = read(answers, 0);
    let persona_id = text(persona, "id");
    let form = Form::new(frame, "update_simulation_persona", persona);
    let strip = Strip {
        title: text(persona, "name").to_owned(),
        back: Some((simulations::BASE, "Simulations")),
        beside: Some(id(persona_id)),
        action: Some(destroy(
            frame,
            "delete_simulation_persona",
            &[("id", persona_id)],
            simulations::BASE,
            "Delete",
            &named("Delete", text(persona, "name")),
            "Its simulations are deleted, too. Their runs stay.",
        )),
        calls: vec![
            Call::of("get_simulation_persona").at("id", persona_id),
            Call::of("update_simulation_persona")
                .at("id", persona_id)
                .with(json!({"name": text(persona, "name")})),
            Call::of("delete_simulation_persona").at("id", persona_id),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (form.wrap(&[("id", persona_id)], &link(BASE, persona_id), html! { (fields(&form)) (send("Save", simulations::BASE)) }))
        },
    )
}
