//! What a new assistant can begin with: its texts, and an example document that it answers from.
use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::forms::{self, Fields, ONCE, run_by_id as run};
use super::paths;
use super::show::{self, Outcome};
use super::visit::Visit;
use crate::base::ids::DocumentId;
use crate::sql;
use crate::storage::accounts::Session;
use crate::storage::fault::Fault;

/// The form that chooses a template.
pub const CHOOSE: &str = "choose_template";
/// The field that says which template was chosen; before that, which one the form was filled from.
pub const CHOICE: &str = "_choice";
/// See [`CHOICE`].
pub const BEGAN: &str = "_began";
/// The field that says whose example document is to be attached.
pub const EXAMPLE: &str = "_example";

/// The page of the form.
const PAGE: &str = "/dashboard/assistants/new";

/// What a new assistant can begin with.
pub struct Template {
    /// In the page's address.
    pub key: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// The fields of the assistant, by their names in a form.
    pub fields: &'static [(&'static str, &'static str)],
    /// What it needs besides.
    pub needs: Option<&'static str>,
    /// What the assistant answers from: name and content.
    pub document: Option<(&'static str, &'static str)>,
}

/// All of them; the first is the one of a page that names none.
pub const TEMPLATES: &[Template] = &[
    Template {
        key: "blank",
        name: "Blank",
        about: "Nothing but the defaults",
        fields: &[],
        needs: None,
        document: None,
    },
    Template {
        key: "front-desk",
        name: "Front desk",
        about: "Answers questions, takes messages",
        fields: &[
            ("name", "Front desk"),
            (
                "instructions",
                "You answer the telephone for Blue Door Dental, a dental practice.\n\n- Answer questions about opening hours, prices and directions from the attached documents. If they do not say it, say that you will ask, and take a message.\n- For an appointment, ask for the name, what it is about and two times that suit.\n- For pain or an accident, give the emergency number at once.\n\nBe brief and kind. One question at a time. Repeat names, numbers and times before you end the call.",
            ),
            ("first_message", "Blue Door Dental, how can I help?"),
        ],
        needs: None,
        document: Some((
            "Blue Door Dental (example)",
            "We are open Monday to Friday from nine to five. On Saturday we open at ten and close at one. On Sunday we are closed.\n\nOur address is 14 Mill Lane in Leeds, opposite the library. You can park behind the house.\n\nA check-up costs 60 pounds. A cleaning costs 75 pounds. A filling costs from 120 pounds.\n\nThe emergency number, day and night, is 0113 496 0999.",
        )),
    },
    Template {
        key: "parcels",
        name: "Parcel service",
        about: "Looks up a number, tells the state",
        fields: &[
            ("name", "Parcel line"),
            (
                "instructions",
                "You answer the telephone for Swift Parcel.\n\n- Ask for the parcel number and read it back, digit by digit.\n- Look the parcel up with the tool `find_parcel` and say where it is and when it arrives.\n- If it is lost or damaged, say so, apologise once, and open a case.\n\nKeep answers to two sentences.",
            ),
            ("first_message", "Swift Parcel. Do you have your parcel number at hand?"),
            ("speech.filler", "One moment, I am looking."),
        ],
        needs: Some(
            "It calls a tool “find_parcel”. Create it under Tools, with the address of your service, and attach it here.",
        ),
        document: None,
    },
];

impl Template {
    /// The one with this key; else the first.
    pub fn of(key: &str) -> &'static Self {
        TEMPLATES.iter().find(|one| one.key == key).unwrap_or(&TEMPLATES[0])
    }

    fn text(&self, name: &str) -> Option<&'static str> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The fields as an assistant has them.
    pub fn assistant(&self) -> Value {
        let mut assistant = json!({});
        for (name, text) in self.fields {
            match name.split_once('.') {
                Some((outer, inner)) => assistant[outer][inner] = (*text).into(),
                None => assistant[*name] = (*text).into(),
            }
        }
        assistant
    }
}

/// The form again, filled from another template. What the person has typed stays.
pub(super) async fn choose(
    visit: &Visit<'_>,
    session: &Session,
    fields: &Fields,
) -> Result<Response<Bytes>, Fault> {
    let of = |name: &str| Template::of(paths::value(fields, name).unwrap_or_default());
    let (before, chosen) = (of(BEGAN), of(CHOICE));
    let mut typed = forms::typed(fields);
    typed.retain(|(name, text)| !gives_way(before, chosen, name, text));
    let query = vec![("template".to_owned(), chosen.key.to_owned())];
    show::page(visit, session, PAGE, query, Outcome { typed, ..Outcome::default() }).await
}

/// Whether a field holds nothing of the person's: it is as the template before had it, or empty where this one has a text.
fn gives_way(before: &Template, chosen: &Template, name: &str, text: &str) -> bool {
    let text = text.replace("\r\n", "\n");
    before.text(name) == Some(&*text) || chosen.text(name).is_some() && text.trim().is_empty()
}

/// Attaches the example document of the template that the form names to the assistant that it made. A form that is sent
/// again finds the document attached, and leaves the assistant as it has become since.
pub(super) async fn attach(
    visit: &Visit<'_>,
    session: &Session,
    fields: &Fields,
    assistant: &Value,
) -> Result<(), Fault> {
    let example = paths::value(fields, EXAMPLE).and_then(|key| Template::of(key).document);
    let (Some((name, content)), Some(id)) = (example, assistant["id"].as_str()) else { return Ok(()) };
    let revision = assistant["revision"].to_string();
    let now = run(visit, session, "get_assistant", &[("id", id)]).await?;
    if now["revision"] != assistant["revision"] {
        return Ok(());
    }
    let document = match named(visit, session, name).await? {
        Some(document) => document,
        None => {
            let once = paths::value(fields, ONCE).unwrap_or_default();
            let document = [("name", name), ("content", content), ("source", "example"), (ONCE, once)];
            let made = run(visit, session, "create_knowledge_document", &document).await?;
            made["id"].as_str().unwrap_or_default().to_owned()
        }
    };
    let attached = [("id", id), ("_revision", revision.as_str()), ("knowledge_ids", document.as_str())];
    run(visit, session, "set_assistant_knowledge", &attached).await.map(drop)
}

/// The document with this name: names are unique in a workspace.
async fn named(visit: &Visit<'_>, session: &Session, name: &str) -> Result<Option<String>, Fault> {
    let find = sql!(
        "SELECT id FROM documents WHERE workspace_id = :workspace AND name = :name",
        workspace = &session.workspace_id,
        name = name
    );
    let [found] = visit.services().read([find]).await?;
    let id: Option<DocumentId> = found.first().map(|row| row.id("id")).transpose()?;
    Ok(id.map(|id| id.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_stays_and_what_a_template_wrote_gives_way() {
        let (blank, desk, parcels) = (&TEMPLATES[0], &TEMPLATES[1], &TEMPLATES[2]);
        assert!(gives_way(blank, desk, "name", ""), "nothing was typed");
        assert!(!gives_way(blank, desk, "name", "Reception"));
        let instructions = desk.text("instructions").unwrap().replace('\n', "\r\n");
        assert!(gives_way(desk, parcels, "instructions", &instructions), "as a browser sends it");
        assert!(gives_way(desk, blank, "name", "Front desk"));
        assert!(!gives_way(desk, blank, "language", ""), "the server says what is empty");
        assert_eq!(parcels.assistant()["speech"]["filler"], "One moment, I am looking.");
    }
}
