//! The kinds of things that requests name by an id: what their ids begin with, and which operation reads them. So an id in the
//! wrong place is told what it is.
use crate::base::error::{Code, Error};
use crate::base::ids::prefix;
use crate::operations;
use crate::operations::operation::Operation;

/// A kind of thing with ids.
pub(crate) struct Kind {
    /// What stands before the id in a path.
    collection: &'static str,
    /// What its ids begin with, before `_`.
    pub(crate) prefix: &'static str,
    /// The article, and the name that parameters have before `_id`.
    noun: (&'static str, &'static str),
    /// The operation that reads one, or lists them.
    read_by: &'static str,
}

const KINDS: [Kind; 12] = [
    kind("assistants", prefix::ASSISTANT, ("an", "assistant"), "get_assistant"),
    kind("tools", prefix::TOOL, ("a", "tool"), "get_tool"),
    kind("knowledge", prefix::DOCUMENT, ("a", "document"), "get_knowledge_document"),
    kind("calls", prefix::CALL, ("a", "call"), "get_call"),
    kind("webhooks", prefix::WEBHOOK, ("a", "webhook"), "list_webhooks"),
    kind("deliveries", prefix::DELIVERY, ("a", "delivery"), "list_webhook_deliveries"),
    kind("personas", prefix::PERSONA, ("a", "persona"), "get_simulation_persona"),
    kind("scenarios", prefix::SCENARIO, ("a", "scenario"), "get_simulation_scenario"),
    kind("simulations", prefix::SIMULATION, ("a", "simulation"), "get_simulation"),
    kind("runs", prefix::RUN, ("a", "run"), "get_simulation_run"),
    kind("batches", prefix::BATCH, ("a", "batch"), "get_simulation_batch"),
    kind("keys", prefix::KEY, ("an", "API key"), "list_api_keys"),
];

const fn kind(
    collection: &'static str,
    prefix: &'static str,
    noun: (&'static str, &'static str),
    read_by: &'static str,
) -> Kind {
    Kind { collection, prefix, noun, read_by }
}

impl Kind {
    /// The kind of the id that has this name in a path: the collection before it says it.
    pub(crate) fn in_path(path: &str, name: &str) -> Option<&'static Self> {
        let before = path.split(&format!("/{{{name}}}")).next().unwrap_or_default();
        let collection = before.rsplit('/').next().unwrap_or_default();
        KINDS.iter().find(|kind| kind.collection == collection)
    }

    fn of_parameter(name: &str) -> Option<&'static Self> {
        let noun = name.strip_suffix("_id")?;
        KINDS.iter().find(|kind| kind.noun.1 == noun)
    }

    fn of_id(id: &str) -> Option<&'static Self> {
        let (prefix, _) = id.split_once('_')?;
        KINDS.iter().find(|kind| kind.prefix == prefix)
    }

    fn described(&self) -> String {
        format!("{} {}", self.noun.0, self.noun.1)
    }
}

/// The error for what was not found, if its id is one of another kind: it says what to use. Whether there is such a thing makes no
/// difference.
pub(crate) fn explain(error: Error, operation: &Operation, path: &[String]) -> Error {
    if error.code != Code::NotFound {
        return error;
    }
    let mut ids = operation.path_names().zip(path);
    let other = ids.find_map(|(name, id)| {
        let wanted = Kind::in_path(operation.path, name)?;
        Kind::of_id(id).filter(|kind| kind.prefix != wanted.prefix)
    });
    let Some((kind, reads)) = other.and_then(|kind| Some((kind, operations::by_id(kind.read_by)?))) else {
        return error;
    };
    let message = format!(
        "The id `{}_…` is that of {}: use {}, `{} {}`.",
        kind.prefix,
        kind.described(),
        reads.id,
        reads.method,
        reads.path
    );
    Error::new(Code::NotFound, message)
}

/// Why a text cannot be the id that this parameter takes: it is empty, or the id of something else. An id that is merely unknown
/// is no mistake of form.
pub(crate) fn wrong_form(parameter: &str, text: &str) -> Option<String> {
    let wanted = Kind::of_parameter(parameter)?;
    let is_other = Kind::of_id(text).is_some_and(|kind| kind.prefix != wanted.prefix);
    (text.is_empty() || is_other)
        .then(|| format!("must be the id of {}, `{}_…`", wanted.described(), wanted.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::OPERATIONS;

    #[test]
    fn every_kind_is_in_a_path_and_has_an_operation_that_reads_it() {
        for kind in &KINDS {
            assert!(operations::by_id(kind.read_by).is_some(), "{}", kind.read_by);
            let place = format!("/{}/{{", kind.collection);
            assert!(OPERATIONS.iter().any(|operation| operation.path.contains(&place)), "{place}");
        }
    }

    #[test]
    fn an_id_of_another_kind_is_told_what_it_is() {
        let run = operations::by_id("get_simulation_run").unwrap();
        let told = |id: &str| explain(Error::not_found("run"), run, &[id.to_owned()]).message;
        assert_eq!(
            told("batch_00000000000000000000000000"),
            "The id `batch_…` is that of a batch: use get_simulation_batch, `GET /simulations/batches/{id}`."
        );
        for same in ["run_0", "x_0", "batch", ""] {
            assert_eq!(told(same), Error::not_found("run").message, "{same}");
        }
    }

    #[test]
    fn a_filter_by_an_id_takes_that_kind() {
        assert_eq!(wrong_form("assistant_id", "asst_0"), None);
        assert_eq!(wrong_form("assistant_id", "nobody"), None);
        for wrong in ["", "tool_0"] {
            let told = wrong_form("assistant_id", wrong);
            assert_eq!(told.as_deref(), Some("must be the id of an assistant, `asst_…`"), "{wrong}");
        }
        assert_eq!(wrong_form("search", "tool_0"), None);
    }
}
