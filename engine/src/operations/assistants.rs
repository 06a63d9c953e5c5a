//! Assistants: what answers a call.
pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod set_knowledge;
pub mod set_tools;
pub mod test_token;
pub mod update;

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::{limits, time};
use crate::config::Config;
use crate::models::settings::provider_of;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Output};
use crate::operations::validate;
use crate::ports::statement::{Row, Statement};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::snapshots::PipelineMode;

/// What a client may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Display name.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    pub name: String,
    /// Business instructions: who the assistant is and what it should do. At most 32,768 bytes.
    #[schemars(length(min = 1, max = limits::INSTRUCTIONS_BYTES_MAX))]
    pub instructions: String,
    /// What the assistant opens with; empty means that it waits for the caller.
    #[serde(default)]
    #[schemars(length(max = limits::FIRST_MESSAGE_CHARS_MAX))]
    pub first_message: String,
    /// `provider/name` of a configured provider, such as `builtin/rules`. Default: the server's.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
    pub model: String,
    /// `provider/name` of a configured provider, such as `builtin/tone`. Default: the server's.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
    pub voice: String,
    /// How speech is carried.
    #[serde(default)]
    pub pipeline_mode: PipelineMode,
}

/// An assistant: what you GET is what you PATCH.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Assistant {
    /// `asst_…`
    pub id: String,
    /// What a client may set.
    #[serde(flatten)]
    pub draft: Draft,
    /// Attached tools, in order.
    pub tool_ids: Vec<String>,
    /// Attached knowledge documents, in order.
    pub knowledge_ids: Vec<String>,
    /// Rises with every change, from 1.
    pub revision: i64,
    /// When it was made.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

/// The columns [`Assistant::read`] needs.
const COLUMNS: &str = "id, name, instructions, first_message, model, voice, pipeline_mode, revision, created_at, updated_at,
    (SELECT json_group_array(tool_id) FROM (SELECT tool_id FROM assistant_tools WHERE assistant_id = assistants.id ORDER BY position)) AS tool_ids,
    (SELECT json_group_array(document_id) FROM (SELECT document_id FROM assistant_documents WHERE assistant_id = assistants.id ORDER BY position)) AS knowledge_ids";

impl Assistant {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            draft: Draft {
                name: row.text("name")?,
                instructions: row.text("instructions")?,
                first_message: row.text("first_message")?,
                model: row.text("model")?,
                voice: row.text("voice")?,
                pipeline_mode: match row.str("pipeline_mode")? {
                    "realtime" => PipelineMode::Realtime,
                    _ => PipelineMode::Cascading,
                },
            },
            tool_ids: row.json("tool_ids")?,
            knowledge_ids: row.json("knowledge_ids")?,
            revision: row.integer("revision")?,
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
        })
    }

    fn output(&self) -> Result<Output, Fault> {
        Ok(Output::ok(self)?.with_etag(self.revision))
    }

    /// Refuses a revision that is not the current one.
    fn check_revision(&self, input: &Input) -> Result<(), Error> {
        match input.if_revision {
            Some(expected) if expected != self.revision => Err(Error::new(
                Code::RevisionConflict,
                "The assistant changed since you read it. Read it again, then repeat the change.",
            )
            .with_details(serde_json::json!({"expected": expected, "current": self.revision}))),
            _ => Ok(()),
        }
    }
}

impl Draft {
    fn check(&self, config: &Config) -> Result<(), Error> {
        let mut problems = Vec::new();
        if self.instructions.len() > limits::INSTRUCTIONS_BYTES_MAX {
            problems.push(FieldProblem::new(
                "instructions",
                format!(
                    "must have at most {} bytes, has {}",
                    limits::INSTRUCTIONS_BYTES_MAX,
                    self.instructions.len()
                ),
            ));
        }
        for (field, value) in [("model", &self.model), ("voice", &self.voice)] {
            let provider = provider_of(value).and_then(|name| config.catalog.providers.get(name));
            let Some(provider) = provider else {
                problems.push(FieldProblem::new(field, unknown_provider(value, config)));
                continue;
            };
            if field == "model" && self.pipeline_mode == PipelineMode::Realtime && !provider.realtime {
                problems.push(FieldProblem::new(
                    "pipeline_mode",
                    format!("realtime needs a model of a realtime-capable provider, which `{value}` is not; use cascading"),
                ));
            }
        }
        validate::refuse(&problems)
    }
}

/// Refuses a model whose provider is not configured, by the name of the field.
pub fn check_model(field: &str, value: Option<&str>, config: &Config) -> Result<(), Error> {
    match value {
        Some(value) if provider_of(value).is_none_or(|name| !config.catalog.providers.contains_key(name)) => {
            Err(Error::field(field, unknown_provider(value, config)))
        }
        _ => Ok(()),
    }
}

fn unknown_provider(value: &str, config: &Config) -> String {
    let known: Vec<&str> = config.catalog.providers.keys().map(String::as_str).collect();
    let known = known.join(", ");
    match provider_of(value) {
        Some(provider) => format!("provider `{provider}` is not configured; configured: {known}"),
        None => format!("must be `provider/name`; configured providers: {known}"),
    }
}

/// Made once: these are the statements that run most.
static SELECT_ONE: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM assistants WHERE workspace_id = :ws AND id = ?1"));

fn select_one(id: &str) -> Statement {
    sql!(SELECT_ONE.as_str(), id)
}

/// The assistant the path names.
async fn load(context: &mut Context, id: &str) -> Result<Assistant, Fault> {
    let rows = context.read(vec![select_one(id)]).await?;
    found(rows.first().and_then(|rows| rows.first()))
}

fn found(row: Option<Row<'_>>) -> Result<Assistant, Fault> {
    row.map_or_else(|| Err(Error::not_found("assistant").into()), Assistant::read)
}

/// Each id once, in the order given.
fn once_each(ids: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// 422 naming each id of the list that is not among `known`.
fn refuse_unknown(field: &str, noun: &str, ids: &[String], known: &[String]) -> Result<(), Error> {
    let problems: Vec<FieldProblem> = ids
        .iter()
        .enumerate()
        .filter(|(_, id)| !known.contains(id))
        .map(|(at, _)| FieldProblem::new(format!("{field}[{at}]"), format!("is no {noun} of this workspace")))
        .collect();
    validate::refuse(&problems)
}
