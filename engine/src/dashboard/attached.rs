//! The form of an assistant: it saves the fields, then what is attached, each at the revision that the step before has made.
use serde_json::Value;

use super::forms::{self, Fields, MET, USE};
use super::visit::Visit;
use super::{answers, paths};
use crate::base::error::Code;
use crate::interfaces::dispatch::Answer;
use crate::operations;
use crate::operations::operation::Operation;
use crate::storage::accounts::Session;
use crate::storage::fault::Fault;

/// The operation that the form is named after.
pub(super) const UPDATE: &str = "update_assistant";

/// The field that names the assistant which a new tool or document is made for.
pub(super) const ATTACH: &str = "_attach";

/// The fields with ids, what they hold, and the operations that set them.
const LISTS: [(&str, &str, &str); 2] =
    [("tool_ids", "tools", "set_assistant_tools"), ("knowledge_ids", "documents", "set_assistant_knowledge")];

/// Saves all of it; what did not change makes no revision. `fields` keep the revision that was reached, for a form that is
/// sent again.
pub(super) async fn save(
    visit: &Visit<'_>,
    session: &Session,
    operation: &'static Operation,
    fields: &mut Fields,
) -> Result<Answer, Fault> {
    meet_again(fields);
    let is_list = |name: &str| LISTS.iter().any(|(list, ..)| *list == name);
    let own: Fields = fields.iter().filter(|(name, _)| !is_list(name)).cloned().collect();
    let read = paths::value(fields, "_revision").unwrap_or_default().to_owned();
    let mut answer = forms::run(visit, session, operation, &own).await?;
    for (list, nouns, set) in LISTS {
        let ticked: Vec<String> =
            fields.iter().filter(|(name, _)| name == list).map(|(_, id)| id.clone()).collect();
        let saved = answers::whole(answer.body.as_deref())?;
        let Some(ids) = changed(&saved[list], &ticked) else { continue };
        let revision = saved["revision"].to_string();
        let id = saved["id"].as_str().unwrap_or_default();
        // The empty one says that there is such a field, also when nothing is attached.
        let mut sent = vec![("id", id), ("_revision", revision.as_str()), (list, "")];
        sent.extend(ids.iter().map(|id| (list, *id)));
        let sent = sent.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let set = operations::by_id(set)
            .ok_or_else(|| Fault::Bug(format!("a form runs {set}, which is no operation")))?;
        answer = match forms::run(visit, session, set, &sent).await {
            Ok(answer) => answer,
            Err(fault) => {
                let is_conflict =
                    matches!(&fault, Fault::Refused(error) if error.code == Code::RevisionConflict);
                let is_told = revision != read && !is_conflict;
                fields
                    .iter_mut()
                    .filter(|(name, _)| name == "_revision")
                    .for_each(|(_, at)| at.clone_from(&revision));
                let saved = format!("Everything is saved but the attached {nouns}.");
                return Err(if is_told { forms::after(&saved, fault) } else { fault });
            }
        };
    }
    Ok(answer)
}

/// A form that leaves a choice after a conflict open is one of the revision that was read before: it meets the same
/// conflict.
fn meet_again(fields: &mut Fields) {
    let choices = || fields.iter().filter(|(name, _)| name.starts_with(USE));
    let is_made = |choice: &str| choices().any(|(name, value)| name == choice && !value.is_empty());
    if choices().all(|(name, _)| is_made(name)) {
        return;
    }
    let met = paths::value(fields, MET).unwrap_or("0").to_owned();
    fields.iter_mut().filter(|(name, _)| name == "_revision").for_each(|(_, read)| read.clone_from(&met));
}

/// Attaches a tool or a document that a form has made to the assistant that it names. A form that is sent again changes
/// nothing.
pub(super) async fn attach(
    visit: &Visit<'_>,
    session: &Session,
    form: &str,
    fields: &Fields,
    made: &Value,
) -> Result<(), Fault> {
    let [tools, documents] = LISTS;
    let (list, _, set) = match form {
        "create_tool" => tools,
        "create_knowledge_document" => documents,
        _ => return Ok(()),
    };
    let assistant = paths::value(fields, ATTACH).filter(|id| !id.is_empty());
    let (Some(assistant), Some(made)) = (assistant, made["id"].as_str()) else { return Ok(()) };
    add(visit, session, assistant, (list, set), made)
        .await
        .map_err(|fault| forms::after("It is made, but not attached.", fault))
}

async fn add(
    visit: &Visit<'_>,
    session: &Session,
    assistant: &str,
    (list, set): (&str, &str),
    made: &str,
) -> Result<(), Fault> {
    let now = forms::run_by_id(visit, session, "get_assistant", &[("id", assistant)]).await?;
    let attached: Vec<&str> = now[list].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if attached.contains(&made) {
        return Ok(());
    }
    let revision = now["revision"].to_string();
    let mut sent = vec![("id", assistant), ("_revision", revision.as_str())];
    sent.extend(attached.into_iter().chain([made]).map(|id| (list, id)));
    forms::run_by_id(visit, session, set, &sent).await.map(drop)
}

/// The list that replaces the attached one: in its order, then what was added. `None`: the form has no such list, or it
/// attaches and detaches nothing.
fn changed<'a>(attached: &'a Value, ticked: &'a [String]) -> Option<Vec<&'a str>> {
    if ticked.is_empty() {
        return None;
    }
    let before: Vec<&str> = attached.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let kept = before.iter().copied().filter(|id| ticked.iter().any(|other| other == id));
    let added = ticked.iter().map(String::as_str).filter(|id| !id.is_empty() && !before.contains(id));
    let ids: Vec<&str> = kept.chain(added).collect();
    (ids != before).then_some(ids)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_attached_keeps_its_order_and_ticks_that_change_nothing_save_nothing() {
        let attached = json!(["b", "a", "c"]);
        let ticked = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(changed(&attached, &ticked(&["", "a", "b", "c"])), None);
        assert_eq!(changed(&attached, &ticked(&[])), None, "no such field");
        assert_eq!(changed(&attached, &ticked(&["", "d", "c", "b"])), Some(vec!["b", "c", "d"]));
        assert_eq!(changed(&attached, &ticked(&[""])), Some(vec![]));
    }
}
