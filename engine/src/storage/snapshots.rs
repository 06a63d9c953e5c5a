//! The configuration that a conversation starts with: the assistant, its tools and documents, the persona and the
//! scenario.
use serde::{Deserialize, Serialize};

use crate::base::ids::{AssistantId, Id, ToolId};
use crate::conversation::{Knowledge, ToolSpec};
use crate::ports::statement::{Rows, Statement};
use crate::simulation::evaluation::Evaluation;
use crate::speech::options::SpeechOptions;
use crate::sql;
use crate::storage::fault::Fault;

/// The assistant's configuration as stored with a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantSnapshot {
    /// The assistant's id.
    pub id: AssistantId,
    /// The assistant's name.
    pub name: String,
    /// The assistant's instructions.
    pub instructions: String,
    /// The assistant's opening message.
    pub first_message: String,
    /// The assistant's model.
    pub model: String,
    /// The assistant's voice.
    pub voice: String,
    /// How speech is processed.
    pub pipeline_mode: PipelineMode,
    /// The assistant's transcriber; empty for the server's default.
    #[serde(default)]
    pub transcriber: String,
    /// The language of the conversation; empty if unknown.
    #[serde(default)]
    pub language: String,
    /// Names and terms for the transcriber.
    #[serde(default)]
    pub keyterms: Vec<String>,
    /// How the assistant takes turns and speaks.
    #[serde(default)]
    pub speech: SpeechOptions,
    /// Whether its calls are recorded.
    #[serde(default = "recorded")]
    pub record: bool,
    /// The assistant's revision.
    pub revision: i64,
    /// Attached tools, in order.
    pub tools: Vec<ToolSnapshot>,
    /// Attached documents, in order.
    pub knowledge: Vec<Knowledge>,
}

const fn recorded() -> bool {
    true
}

impl AssistantSnapshot {
    /// The tools in the form that models take.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &ToolSnapshot| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        self.tools.iter().map(spec).collect()
    }
}

/// A tool's configuration as stored with a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSnapshot {
    /// The tool's id.
    pub id: ToolId,
    /// The function name.
    pub name: String,
    /// The URL.
    pub url: String,
    /// The HTTP method.
    pub method: ToolMethod,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: serde_json::Value,
    /// The timeout of a call.
    pub timeout_ms: i64,
    /// The versions of the secret when the run was started; each call reads the current ones.
    pub secret_version: i64,
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
    /// The scenario's instructions.
    pub scenario: String,
    /// The criteria of the run.
    pub evaluations: Vec<Evaluation>,
}

/// Reads an assistant and its attachments. `assistant` is an SQL expression of the assistant's id, which may use the
/// parameter `:id`, bound to `id`.
pub(crate) fn assistant_reads(assistant: &'static str, id: &impl Id) -> [Statement; 3] {
    [
        sql!(
            format!(
                "SELECT id, name, instructions, first_message, model, voice, pipeline_mode,
                   transcriber, language, keyterms, speech, record, revision
                 FROM assistants WHERE workspace_id = :ws AND id = {assistant}"
            ),
            id = id
        ),
        sql!(
            format!(
                "SELECT tools.id AS id, tools.name AS name, url, method, description, parameters, timeout_ms, secret_version
                 FROM assistant_tools AS attached JOIN tools ON tools.id = attached.tool_id
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
        revision: row.integer("revision")?,
        tools,
        knowledge,
    }))
}

crate::words! {
    /// The HTTP method of a tool.
    #[derive(Default)]
    #[allow(missing_docs, reason = "the names say it")]
    json ToolMethod {
        Get = "GET",
        #[default]
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}

crate::words! {
    /// How speech is processed.
    #[derive(Default)]
    json PipelineMode {
        /// One model takes and returns speech. Requires a realtime-capable provider. Not available yet: calls use
        /// `cascading`.
        Realtime = "realtime",
        /// Speech to text, a language model, text to speech.
        #[default]
        Cascading = "cascading",
    }
}
