//! The configuration that a conversation starts with: the assistant, its tools and documents, the persona and the
//! scenario.
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::hash::sha256_hex;
use crate::base::ids::{AssistantId, Id, WorkspaceId};
use crate::base::values::Variables;
use crate::base::whole_number;
use crate::conversation::Knowledge;
pub use crate::conversation::{AssistantSnapshot, PipelineMode, ToolMethod, ToolSnapshot};
use crate::ports::statement::{Rows, Statement};
use crate::simulation::Conditions;
use crate::simulation::evaluation::Evaluation;
use crate::simulation::tool_mocks::ToolMocks;
use crate::sql;
use crate::storage::column::Column;
use crate::storage::fault::Fault;

/// What a run keeps of its configuration, under the hash of its content: runs with the same one share it.
pub(crate) struct Snapshot {
    pub id: String,
    pub content: String,
}

impl Snapshot {
    /// The snapshot of this configuration. Whole numbers are written without a fraction, as JavaScript does, so that whoever
    /// parses a snapshot and writes it again gets the same bytes.
    pub fn of(value: &impl Serialize) -> Result<Self, Fault> {
        let mut value = serde_json::to_value(value)
            .map_err(|error| Fault::Bug(format!("a snapshot does not serialise: {error}")))?;
        without_fractions(&mut value);
        let content = value.to_string();
        Ok(Self { id: sha256_hex(content.as_bytes()), content })
    }

    /// Inserts it into workspace `:ws`, unless it is there. [`count_added`] goes before it.
    pub fn insert(&self) -> Statement {
        sql!(
            "INSERT INTO snapshots (workspace_id, id, content) VALUES (:ws, :id, :content) ON CONFLICT DO NOTHING",
            id = &self.id,
            content = &self.content
        )
    }

    /// Reads the `content` of one.
    pub fn select(workspace_id: &WorkspaceId, id: &str) -> Statement {
        sql!(
            "SELECT content FROM snapshots WHERE workspace_id = :workspace_id AND id = :id",
            workspace_id = workspace_id,
            id = id
        )
    }
}

/// Counts the snapshots that the next statements insert into workspace `:ws`. `condition` is SQL on the snapshot `json_each`'s
/// `value`, which has its `id`.
pub(crate) fn count_added<'a>(snapshots: impl Iterator<Item = &'a Snapshot>, condition: &str) -> Statement {
    let size = |one: &Snapshot| serde_json::json!({"id": one.id, "bytes": one.content.len()});
    sql!(
        format!(
            "UPDATE workspaces SET snapshot_bytes = snapshot_bytes + (
               SELECT COALESCE(SUM(json_extract(value, '$.bytes')), 0) FROM json_each(:sizes) WHERE {condition} AND NOT EXISTS
                 (SELECT 1 FROM snapshots AS s WHERE s.workspace_id = :ws AND s.id = json_extract(value, '$.id')))
             WHERE id = :ws"
        ),
        sizes = Value::Array(snapshots.map(size).collect()).to_string()
    )
}

/// The texts of the statements that delete the snapshots of workspace `:ws` that meet a condition.
pub(crate) fn delete_where(condition: &str) -> [String; 2] {
    [
        format!(
            "UPDATE workspaces SET snapshot_bytes = MAX(0, snapshot_bytes - (
               SELECT COALESCE(SUM(OCTET_LENGTH(content)), 0) FROM snapshots WHERE workspace_id = :ws AND {condition})) WHERE id = :ws"
        ),
        format!("DELETE FROM snapshots WHERE workspace_id = :ws AND {condition}"),
    ]
}

impl SimulationSnapshot {
    /// The models of a run, including the assistant's.
    pub fn models<'a>(&'a self, assistant: &'a AssistantSnapshot) -> impl Iterator<Item = &'a str> {
        let own = [self.caller_model.as_deref(), self.judge_model.as_deref()];
        std::iter::once(assistant.model.as_str()).chain(own.into_iter().flatten())
    }
}

/// The persona and the scenario as stored with a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulationSnapshot {
    /// The simulation's name.
    pub name: String,
    /// The persona's instructions.
    pub persona: String,
    /// The model that speaks as the caller; `None` for the assistant's.
    #[serde(default)]
    pub caller_model: Option<String>,
    /// The model that judges; `None` for the assistant's.
    #[serde(default)]
    pub judge_model: Option<String>,
    /// How often the judge rules on each criterion. Earlier versions had none.
    #[serde(default)]
    pub judge_votes: i64,
    /// The scenario's instructions.
    pub scenario: String,
    /// The criteria of the run.
    pub evaluations: Vec<Evaluation>,
    /// The conditions of a voice run.
    #[serde(default)]
    pub conditions: Conditions,
    /// What answers in place of tools; empty in a run that calls the tools.
    #[serde(default, skip_serializing_if = "ToolMocks::is_empty")]
    pub tool_mocks: ToolMocks,
    /// What fills in the assistant's texts: the scenario's variables under those of the run.
    #[serde(default, skip_serializing_if = "has_none")]
    pub variables: Variables,
}

/// Makes `1.0` to `1`.
fn without_fractions(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = whole_number::from_number(number) {
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_fractions),
        Value::Object(fields) => fields.values_mut().for_each(without_fractions),
        _ => {}
    }
}

fn has_none(variables: &Variables) -> bool {
    variables.is_empty()
}

/// What an assistant's configuration is identified by, and its size; it costs little to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AssistantVersion {
    /// A hash of the revisions of the assistant, its tools and its documents.
    pub id: String,
    /// The size of its texts.
    pub bytes: u64,
}

impl AssistantVersion {
    /// Reads the version of an assistant of workspace `:ws`.
    pub fn select(assistant_id: &AssistantId) -> Statement {
        sql!(
            "SELECT id || ' ' || revision || COALESCE(tools, '') || COALESCE(documents, '') AS version,
               OCTET_LENGTH(name) + OCTET_LENGTH(instructions) + OCTET_LENGTH(first_message) + OCTET_LENGTH(transfers)
               + COALESCE(OCTET_LENGTH(voicemail), 0) + COALESCE(tools_bytes, 0) + COALESCE(documents_bytes, 0) AS bytes
             FROM assistants,
             (SELECT GROUP_CONCAT(' ' || tools.id || ' ' || revision || ' ' || secret_version, '') AS tools,
                SUM(OCTET_LENGTH(name) + OCTET_LENGTH(url) + OCTET_LENGTH(description) + OCTET_LENGTH(parameters)) AS tools_bytes
              FROM assistant_tools AS attached JOIN tools ON tools.id = attached.tool_id
              WHERE attached.workspace_id = :ws AND attached.assistant_id = :id),
             (SELECT GROUP_CONCAT(' ' || documents.id || ' ' || revision, '') AS documents,
                SUM(OCTET_LENGTH(name) + OCTET_LENGTH(content)) AS documents_bytes
              FROM assistant_documents AS attached JOIN documents ON documents.id = attached.document_id
              WHERE attached.workspace_id = :ws AND attached.assistant_id = :id)
             WHERE workspace_id = :ws AND id = :id",
            id = assistant_id
        )
    }

    /// Reads the row of [`AssistantVersion::select`]; `None` without such an assistant.
    pub fn read(rows: &Rows) -> Result<Option<Self>, Fault> {
        let Some(row) = rows.first() else { return Ok(None) };
        let id = sha256_hex(row.str("version")?.as_bytes());
        Ok(Some(Self { id, bytes: row.integer("bytes")?.unsigned_abs() }))
    }
}

const TOOL_COLUMNS: &str =
    "tools.id AS id, tools.name AS name, url, method, description, parameters, timeout_ms, secret_version";

/// Reads the tools with these ids, a JSON array, in the place of those that are attached.
pub(crate) fn tools_of(ids: &str) -> Statement {
    sql!(
        format!(
            "SELECT {TOOL_COLUMNS} FROM json_each(:ids) AS listed CROSS JOIN tools ON tools.id = listed.value
             WHERE tools.workspace_id = :ws ORDER BY listed.key"
        ),
        ids = ids
    )
}

/// Reads the documents with these ids, a JSON array, in the place of those that are attached; with `total_bytes`, the size of
/// all. Contents are NULL if that is more than `most`.
pub(crate) fn documents_of(ids: &str, most: i64) -> Statement {
    sql!(
        "SELECT id, name, total_bytes, CASE WHEN total_bytes <= :most THEN (SELECT content FROM documents WHERE documents.id = found.id) END AS content
         FROM (SELECT documents.id AS id, documents.name AS name, listed.key AS place, SUM(size_bytes) OVER () AS total_bytes
           FROM json_each(:ids) AS listed CROSS JOIN documents ON documents.id = listed.value
           WHERE documents.workspace_id = :ws) AS found ORDER BY place",
        ids = ids,
        most = most
    )
}

/// Reads an assistant and its attachments. `assistant` is an SQL expression of the assistant's id, which may use the
/// parameter `:id`, bound to `id`.
pub(crate) fn assistant_reads(assistant: &'static str, id: &impl Id) -> [Statement; 3] {
    [
        sql!(
            format!(
                "SELECT id, name, instructions, first_message, model, voice, pipeline_mode,
                   transcriber, language, keyterms, speech, record, keys, transfers, voicemail, revision
                 FROM assistants WHERE workspace_id = :ws AND id = {assistant}"
            ),
            id = id
        ),
        sql!(
            format!(
                "SELECT {TOOL_COLUMNS} FROM assistant_tools AS attached JOIN tools ON tools.id = attached.tool_id
                 WHERE attached.workspace_id = :ws AND attached.assistant_id = {assistant} ORDER BY attached.position"
            ),
            id = id
        ),
        sql!(
            format!(
                "SELECT documents.name AS name, content
                 FROM assistant_documents AS attached JOIN documents ON documents.id = attached.document_id
                 WHERE attached.workspace_id = :ws AND attached.assistant_id = {assistant} ORDER BY attached.position"
            ),
            id = id
        ),
    ]
}

/// Reads the rows of [`assistant_reads`].
pub(crate) fn assistant_snapshot(rows: &[Rows]) -> Result<Option<AssistantSnapshot>, Fault> {
    let [assistant, tools, documents] = rows else {
        return Err(Fault::Bug("an assistant's snapshot needs three answers".to_owned()));
    };
    let Some(row) = assistant.first() else {
        return Ok(None);
    };
    let (tools, knowledge) = attached_snapshot(tools, documents)?;
    Ok(Some(AssistantSnapshot {
        id: row.id("id")?,
        name: row.text("name")?,
        instructions: row.text("instructions")?,
        first_message: row.text("first_message")?,
        model: row.text("model")?,
        voice: row.text("voice")?,
        pipeline_mode: row.word("pipeline_mode")?,
        transcriber: row.text("transcriber")?,
        language: row.text("language")?,
        keyterms: row.json("keyterms")?,
        speech: row.json("speech")?,
        record: row.flag("record")?,
        keys: row.flag("keys")?,
        transfers: row.json("transfers")?,
        voicemail: Column::read(row, "voicemail")?,
        revision: row.integer("revision")?,
        tools,
        knowledge,
    }))
}

/// Reads the rows of what is attached to an assistant.
pub(crate) fn attached_snapshot(
    tools: &Rows,
    documents: &Rows,
) -> Result<(Vec<ToolSnapshot>, Arc<[Knowledge]>), Fault> {
    let tools = tools
        .iter()
        .map(|row| {
            Ok(ToolSnapshot {
                id: row.id("id")?,
                name: row.text("name")?,
                url: row.text("url")?,
                method: row.word("method")?,
                description: row.text("description")?,
                parameters: row.json("parameters")?,
                timeout_ms: row.integer("timeout_ms")?,
                secret_version: row.integer("secret_version")?,
            })
        })
        .collect::<Result<_, Fault>>()?;
    let knowledge = documents
        .iter()
        .map(|row| Ok(Knowledge { name: row.text("name")?, content: row.text("content")? }))
        .collect::<Result<_, Fault>>()?;
    Ok((tools, knowledge))
}
