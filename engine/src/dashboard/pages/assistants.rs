//! Assistants: the list, a new one from a template, and the editor with what is attached and a way to talk to it.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::base::limits::KNOWLEDGE_PER_ASSISTANT_BYTES_MAX;
use crate::conversation::VoicemailAction;
use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::conflict::Conflict;
use crate::dashboard::pages::form::{Form, destroy, form_id, named};
use crate::dashboard::pages::parts::{
    asked, at, empty, id, link, list, more, number, provided, read, section, size, table, text, tones, when,
};
use crate::dashboard::pages::{choices_of, list_of, read_of, talk};
use crate::dashboard::templates::{BEGAN, CHOICE, CHOOSE, EXAMPLE, TEMPLATES, Template};
use crate::speech::settings::TONE;

/// All assistants.
pub const LIST: Page = Page {
    path: "/dashboard/assistants",
    title: "Assistants",
    reads: &[list_of("list_assistants", "after")],
    forms: &[],
    render: all,
};

/// A new one.
pub const NEW: Page = Page {
    path: "/dashboard/assistants/new",
    title: "New assistant",
    reads: &[read_of("list_models"), read_of("list_tts_rates"), read_of("list_stt_rates")],
    forms: &["create_assistant"],
    render: new,
};

/// One, to change.
pub const EDIT: Page = Page {
    path: "/dashboard/assistants/{id}",
    title: "Assistant",
    reads: &[
        read_of("get_assistant"),
        choices_of("list_tools"),
        choices_of("list_knowledge_documents"),
        read_of("list_models"),
        read_of("list_tts_rates"),
        read_of("list_stt_rates"),
    ],
    forms: &["update_assistant"],
    render: edit,
};

const BASE: &str = "/dashboard/assistants";

fn all(frame: &Frame, answers: &[Value]) -> Markup {
    let assistants = list(read(answers, 0), "");
    let create = html! { a.button.primary href="/dashboard/assistants/new" { "Create assistant" } };
    let strip = Strip {
        title: "Assistants".to_owned(),
        action: (!assistants.is_empty()).then_some(create),
        calls: vec![Call::of("list_assistants")],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if assistants.is_empty() {
                (empty("An assistant answers calls: it has a name, instructions, a model and a voice. Start from a template and talk to it in the browser.",
                    Some(("/dashboard/assistants/new", "Create assistant")), ("assistants-and-knowledge.md", "How assistants work")))
            } @else {
                (table("Assistants",
                    html! { th scope="col" { "Name" } th.wide scope="col" { "Says first" } th.wide scope="col" { "Model" } th.wide scope="col" { "Voice" } th.num.wide scope="col" { "Tools" } th.num.wide scope="col" { "Documents" } th.fit scope="col" { "Changed" } },
                    html! { @for assistant in assistants { (row(frame, assistant)) } }))
                (more(frame, "after"))
            }
        },
    )
}

fn row(frame: &Frame, assistant: &Value) -> Markup {
    html! {
        tr {
            td dir="auto" { a.name href=(link(BASE, text(assistant, "id"))) { (text(assistant, "name")) } }
            td.wrap.wide dir="auto" { span.dim { (text(assistant, "first_message")) } }
            td.fit.wide { code { (text(assistant, "model")) } }
            td.fit.wide { code { (text(assistant, "voice")) } }
            td.num.fit.wide { (list(assistant, "tool_ids").len()) }
            td.num.fit.wide { (list(assistant, "knowledge_ids").len()) }
            td.fit { (when(frame, text(assistant, "updated_at"))) }
        }
    }
}

fn new(frame: &Frame, answers: &[Value]) -> Markup {
    let chosen = Template::of(asked(frame, "template"));
    let current = chosen.assistant();
    let form = Form::new(frame, "create_assistant", &current);
    let strip = Strip {
        title: "New assistant".to_owned(),
        back: Some((BASE, "Assistants")),
        calls: vec![
            Call::of("create_assistant").with(json!({"name": "Front desk", "instructions": "You answer the phone for Blue Door Dental. Be brief."})),
            Call::of("list_models"),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (form.wrap(&[(BEGAN, chosen.key)], "/dashboard/assistants/{id}", html! {
                // The Enter key presses a form's first button: not a template's.
                button.vh tabindex="-1" aria-hidden="true" { "Create assistant" }
                (start_from(chosen))
                @if let Some(document) = chosen.document { (example(chosen.key, document)) }
                (fields(frame, &form, answers, 0))
                (send("Create assistant", BASE))
            }))
        },
    )
}

/// The templates, as buttons of the form: what was typed stays, also without a script.
fn start_from(chosen: &Template) -> Markup {
    html! {
        section.part {
            h2 { "Start from" }
            div.row {
                @for Template { key, name, about, .. } in TEMPLATES {
                    button.button name=(CHOICE) value=(key) formaction={ "/dashboard/do/" (CHOOSE) } formnovalidate aria-current=[(*key == chosen.key).then_some("true")] title=(about) { (name) }
                }
            }
            @if let Some(needs) = chosen.needs { p { (needs) } }
            p.help { "What you have typed stays when you choose another one." }
        }
    }
}

/// The document that comes with a template: said before it is made, and not made where it is not wanted.
fn example(key: &str, (name, content): (&str, &str)) -> Markup {
    html! {
        div.field {
            label.check {
                input type="checkbox" name=(EXAMPLE) value=(key) checked aria-describedby="example-help";
                span { "Add and attach the document “" (name) "”" }
            }
            p.help #example-help { "So that the first questions have answers. Replace it with your own under Knowledge." }
            details.raw { summary { "What it says" } pre.text tabindex="0" aria-label="The document" { (content) } }
        }
    }
}

/// The fields, in the order in which people think of them. The models, voices and transcribers stand in the answers from
/// `models` on.
fn fields(frame: &Frame, form: &Form<'_>, answers: &[Value], models: usize) -> Markup {
    let names = |at: usize, name: &'static str| -> Vec<&str> {
        list(read(answers, at), "").iter().map(|one| text(one, name)).collect()
    };
    html! {
        (form.field("name"))
        (form.field("first_message"))
        (form.field("instructions"))
        fieldset.group {
            legend { "Model and voice" }
            (form.suggested("model", &names(models, "model")))
            (form.field("pipeline_mode"))
            (form.suggested("voice", &names(models + 1, "voice")))
            (form.suggested("transcriber", &names(models + 2, "transcriber")))
            (form.field("language"))
            (form.field("keyterms"))
            (form.field("record"))
            (form.field("keys"))
        }
        (provided(frame))
        @if form.holds("voice", TONE) { (tones()) }
        details.raw open[form.has_rows("transfers") || form.has_problem("transfers")] {
            summary { "Handing over to people" }
            (form.field("transfers"))
        }
        details.raw open[!form.holds("voicemail.action", "") || form.has_problem("voicemail")] {
            summary { "Answering machines" }
            fieldset.group {
                legend.vh { "Answering machines" }
                (form.choice("voicemail.action", &machine_choices()))
                (form.field("voicemail.message"))
            }
            p.help { "Carriers charge for each outbound call in which they detect machines." }
        }
        details.raw open[form.has_problem("speech")] {
            summary { "Turn-taking and speech" }
            fieldset.group {
                legend.vh { "Turn-taking and speech" }
                @for name in ["interruptible", "interruption_words_min", "end_of_turn_min_ms", "end_of_turn_max_ms", "think_early", "speed", "filler"] {
                    (form.field(&format!("speech.{name}")))
                }
            }
        }
    }
}

/// What an assistant can do with a machine. Without a choice nothing is detected.
fn machine_choices() -> Vec<(String, String)> {
    let choices = [
        ("", "Nothing: talk as with a person"),
        (VoicemailAction::HangUp.as_str(), "Hang up"),
        (VoicemailAction::LeaveMessage.as_str(), "Leave a message"),
    ];
    choices.map(|(choice, called)| (choice.to_owned(), called.to_owned())).to_vec()
}

fn edit(frame: &Frame, answers: &[Value]) -> Markup {
    let assistant = read(answers, 0);
    let (assistant_id, name) = (text(assistant, "id"), text(assistant, "name"));
    let here = link(BASE, assistant_id);
    let conflict = Conflict::of(frame, assistant);
    let typed = conflict.as_ref().map_or(&frame.typed, |conflict| &conflict.typed);
    let form = Form::new(frame, "update_assistant", assistant).with_typed(typed);
    let revision = form.revision("name");
    let strip = Strip {
        title: name.to_owned(),
        back: Some((BASE, "Assistants")),
        beside: Some(html! { span.dim { "revision " (number(assistant, "revision")) } (id(assistant_id)) }),
        action: Some(html! {
            a.button href={ (here) "/simulate" } { "Simulate a caller" }
        }),
        calls: vec![
            Call::of("get_assistant").at("id", assistant_id),
            Call::of("update_assistant")
                .at("id", assistant_id)
                .of_revision(number(assistant, "revision"))
                .with(json!({"first_message": text(assistant, "first_message")})),
            Call::of("set_assistant_tools")
                .at("id", assistant_id)
                .with(json!({"tool_ids": at(assistant, "tool_ids")})),
            Call::of("set_assistant_knowledge")
                .at("id", assistant_id)
                .with(json!({"knowledge_ids": at(assistant, "knowledge_ids")})),
            Call::of("create_browser_test_token").at("id", assistant_id).with(json!({})),
            Call::of("delete_assistant").at("id", assistant_id),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if let Some(conflict) = &conflict { (conflict.told("update_assistant", assistant)) }
            div.beside {
                (form.wrap(&[("id", assistant_id), ("_revision", &revision)], &here, html! {
                    (fields(frame, &form, answers, 3))
                    (send("Save", BASE))
                }))
                aside {
                    (talk::panel(frame, assistant, &here))
                    (attach(&form, assistant, &TOOLS, read(answers, 1)))
                    (attach(&form, assistant, &KNOWLEDGE, read(answers, 2)))
                    div.row { button form=(form_id("update_assistant")) { "Save" } span.help { "Saves the fields, too." } }
                    (section("Lately", html! {
                        p { a href={ "/dashboard/calls?assistant_id=" (assistant_id) } { "Its calls" } }
                        p { a href={ "/dashboard/simulations?assistant_id=" (assistant_id) } { "Its simulations" } }
                        p { a href={ (link(BASE, assistant_id)) "/history" } { "Its history" } }
                        p.help { "Changed " (when(frame, text(assistant, "updated_at"))) ", created " (when(frame, text(assistant, "created_at"))) }
                    }))
                    div.row.removal { (destroy(frame, "delete_assistant", &[("id", assistant_id)], BASE, "Delete assistant", &named("Delete", name),
                        "Its simulations are deleted, too, and its numbers are unbound: nobody answers them. Its calls and runs stay.")) }
                }
            }
        },
    )
}

/// What can be attached to an assistant.
struct Attachable {
    /// The field with the ids.
    name: &'static str,
    title: &'static str,
    /// Where the link to make one leads, and what it is called.
    create: (&'static str, &'static str),
}

const TOOLS: Attachable =
    Attachable { name: "tool_ids", title: "Tools", create: ("/dashboard/tools/new", "Create tool") };

const KNOWLEDGE: Attachable = Attachable {
    name: "knowledge_ids",
    title: "Knowledge",
    create: ("/dashboard/knowledge/new", "Add document"),
};

/// Boxes to tick, which belong to the form beside them.
fn attach(form: &Form<'_>, assistant: &Value, kind: &Attachable, resources: &Value) -> Markup {
    let Attachable { name, title, create: (path, label) } = *kind;
    let create = html! { a href={ (path) "?assistant_id=" (text(assistant, "id")) } { (label) } };
    let attached = list(assistant, name);
    let sizes = list(resources, "").iter().filter(|one| attached.contains(at(one, "id")));
    let bytes: i64 = sizes.map(|one| number(one, "size_bytes")).sum();
    section(
        title,
        html! {
            @if list(resources, "").is_empty() { p.dim { "None in this workspace yet. " (create) } }
            @else {
                (form.attached(name, resources))
                @if name == KNOWLEDGE.name {
                    p.help data-budget=(KNOWLEDGE_PER_ASSISTANT_BYTES_MAX) { (size(bytes)) " of " (size(KNOWLEDGE_PER_ASSISTANT_BYTES_MAX)) " used" }
                }
                p.help { (create) }
            }
        },
    )
}
