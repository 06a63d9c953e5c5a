//! Knowledge: plain-text documents that assistants answer from.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::base::limits::KNOWLEDGE_PER_ASSISTANT_BYTES_MAX;
use crate::dashboard::attached::ATTACH;
use crate::dashboard::frame::{Frame, Page};
use crate::dashboard::layout::{self, Call, Strip, send};
use crate::dashboard::pages::form::{Form, destroy, named, used};
use crate::dashboard::pages::parts::{
    asked, counted, empty, id, link, list, more, number, read, section, size, table, text, when,
};
use crate::dashboard::pages::{assistant_of, list_of, read_of, ways};

/// All documents.
pub const LIST: Page = Page {
    path: "/dashboard/knowledge",
    title: "Knowledge",
    reads: &[list_of("list_knowledge_documents", "after"), read_of("list_assistants")],
    forms: &[],
    render: all,
};

/// A new one.
pub const NEW: Page = Page {
    path: "/dashboard/knowledge/new",
    title: "New document",
    reads: &[],
    forms: &["create_knowledge_document"],
    render: new,
};

/// One, to change.
pub const EDIT: Page = Page {
    path: "/dashboard/knowledge/{id}",
    title: "Document",
    reads: &[read_of("get_knowledge_document"), read_of("list_assistants")],
    forms: &["update_knowledge_document"],
    render: edit,
};

const BASE: &str = "/dashboard/knowledge";

fn users<'a>(assistants: &'a Value, document: &str) -> Vec<&'a Value> {
    let has = |assistant: &&Value| list(assistant, "knowledge_ids").iter().any(|other| other == document);
    list(assistants, "").iter().filter(has).collect()
}

fn all(frame: &Frame, answers: &[Value]) -> Markup {
    let (documents, assistants) = (list(read(answers, 0), ""), read(answers, 1));
    let total: i64 = documents.iter().map(|document| number(document, "size_bytes")).sum();
    let is_whole = frame.continues.is_empty() && asked(frame, "after").is_empty();
    let strip = Strip {
        title: "Knowledge".to_owned(),
        beside: (total > 0 && is_whole).then(|| html! { span.dim { (size(total)) " in " (counted(i64::try_from(documents.len()).unwrap_or_default(), "document")) } }),
        action: (!documents.is_empty()).then(|| html! { a.button.primary href="/dashboard/knowledge/new" { "Add document" } }),
        calls: vec![Call::of("list_knowledge_documents")],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            @if documents.is_empty() {
                (empty("A document is plain text, such as opening hours or prices. Attach it to an assistant, and it answers from it.",
                    Some(("/dashboard/knowledge/new", "Add document")), ("assistants-and-knowledge.md", "How documents are used")))
            } @else {
                (table("Documents",
                    html! { th scope="col" { "Name" } th.wide scope="col" { "Source" } th.wide scope="col" { "Attached to" } th.num scope="col" { "Size" } th.fit.wide scope="col" { "Changed" } },
                    html! { @for document in documents {
                        tr {
                            td dir="auto" { a.name href=(link(BASE, text(document, "id"))) { (text(document, "name")) } }
                            td.wide { (text(document, "source")) }
                            td.wide dir="auto" {
                                @let users = users(assistants, text(document, "id"));
                                @if users.is_empty() { span.none { "no assistant" } }
                                @for (at, user) in users.iter().take(3).enumerate() { @if at > 0 { ", " } (text(user, "name")) }
                                @if users.len() > 3 { " and " (users.len() - 3) " more" }
                            }
                            td.num.fit { (size(number(document, "size_bytes"))) }
                            td.fit.wide { (when(frame, text(document, "updated_at"))) }
                        }
                    } }))
                (more(frame, "after"))
                p.help { "An assistant takes at most " (size(KNOWLEDGE_PER_ASSISTANT_BYTES_MAX)) " of documents in all." }
            }
        },
    )
}

fn new(frame: &Frame, _: &[Value]) -> Markup {
    let assistant = assistant_of(frame);
    let (to, back) = ways(&assistant, "/dashboard/knowledge/{id}", (BASE, "Knowledge"));
    let form = Form::new(frame, "create_knowledge_document", &Value::Null);
    let strip = Strip {
        title: "New document".to_owned(),
        back: Some(back),
        calls: vec![Call::of("create_knowledge_document").with(
            json!({"name": "Opening hours", "content": "We are open Monday to Friday from nine to five."}),
        )],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            (form.wrap(&[(ATTACH, asked(frame, "assistant_id"))], to, html! {
                (form.field("name")) (file()) (form.field("content")) (form.field("source"))
                (send("Add document", back.0))
            }))
        },
    )
}

/// A text file fills the field below it. Shown by the script, which reads the file.
fn file() -> Markup {
    html! { div.field data-file="f-content" hidden { label for="f-file" { "From a text file" } input #f-file type="file" accept=".txt,.md,.csv,text/*"; } }
}

fn edit(frame: &Frame, answers: &[Value]) -> Markup {
    let (document, assistants) = (read(answers, 0), read(answers, 1));
    let document_id = text(document, "id");
    let form = Form::new(frame, "update_knowledge_document", document);
    let users = users(assistants, document_id);
    let strip = Strip {
        title: text(document, "name").to_owned(),
        back: Some((BASE, "Knowledge")),
        beside: Some(html! { span.dim { (size(number(document, "size_bytes"))) } (id(document_id)) }),
        action: Some(destroy(
            frame,
            "delete_knowledge_document",
            &[("id", document_id)],
            BASE,
            "Delete",
            &named("Delete", text(document, "name")),
            &used("no longer answer from it", users.len()),
        )),
        calls: vec![
            Call::of("get_knowledge_document").at("id", document_id),
            Call::of("update_knowledge_document")
                .at("id", document_id)
                .with(json!({"name": text(document, "name")})),
            Call::of("delete_knowledge_document").at("id", document_id),
        ],
        ..Strip::default()
    };
    layout::page(
        frame,
        strip,
        html! {
            div.beside {
                (form.wrap(&[("id", document_id)], &link(BASE, document_id), html! {
                    (form.field("name")) (file()) (form.field("content")) (form.field("source"))
                    (send("Save", BASE))
                }))
                aside {
                    (section("Attached to", html! {
                        @if users.is_empty() { p.dim { "No assistant yet. Attach it on the page of an assistant." } }
                        @for user in users { p { a href=(link("/dashboard/assistants", text(user, "id"))) dir="auto" { (text(user, "name")) } } }
                    }))
                }
            }
        },
    )
}
