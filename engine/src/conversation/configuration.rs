//! The configuration of an assistant, as a conversation starts with it.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::ids::{AssistantId, ToolId};
use crate::base::json_text::JsonText;
use crate::base::limits::{TOOL_TIMEOUT_MS_MAX, TOOL_TIMEOUT_MS_MIN};
use crate::conversation::transfer::{TRANSFER_TOOL, Transfer, transfer_tool};
use crate::conversation::{Knowledge, ToolSpec, Voicemail};
use crate::speech::options::SpeechOptions;

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
    /// Whether its model can press keys in outbound telephone calls.
    #[serde(default)]
    pub keys: bool,
    /// Whom it can hand a call over to.
    #[serde(default)]
    pub transfers: Vec<Transfer>,
    /// What it does when a machine answers its outbound call; `None`: nothing is detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voicemail: Option<Voicemail>,
    /// The assistant's revision.
    pub revision: i64,
    /// Attached tools, in order.
    pub tools: Vec<ToolSnapshot>,
    /// Attached documents, in order.
    pub knowledge: Arc<[Knowledge]>,
}

const fn recorded() -> bool {
    true
}

impl AssistantSnapshot {
    /// The tools in the form that models take.
    pub fn tool_specs(&self) -> Arc<[ToolSpec]> {
        let spec = |tool: &ToolSnapshot| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        let attached = self.tools.iter().map(spec);
        let transfer = (!self.transfers.is_empty()).then(|| transfer_tool(&self.transfers));
        attached.chain(transfer).collect()
    }

    /// Whether a call of this tool hands the conversation over to a person.
    pub fn hands_over_with(&self, tool: &str) -> bool {
        tool == TRANSFER_TOOL && !self.transfers.is_empty()
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
    pub parameters: JsonText,
    /// The timeout of a call, as stored; [`ToolSnapshot::deadline_ms`] is what holds.
    pub timeout_ms: i64,
    /// The versions of the secret when the run was started; each call reads the current ones.
    pub secret_version: i64,
}

impl ToolSnapshot {
    /// The timeout of a call. A snapshot from another host may have been made up, and a run that waits holds up the move of its
    /// workspace.
    pub fn deadline_ms(&self) -> i64 {
        self.timeout_ms.clamp(TOOL_TIMEOUT_MS_MIN as i64, TOOL_TIMEOUT_MS_MAX as i64)
    }
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
        /// One model hears and speaks. Requires such a model, of a provider that is configured for it. What is written
        /// is answered by text.
        Realtime = "realtime",
        /// Speech to text, a language model, text to speech.
        #[default]
        Cascading = "cascading",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_of_a_tool_waits_longer_than_a_tool_may() {
        let tool = |timeout_ms: i64| {
            let stored = serde_json::json!({
                "id": "tool_01kas3v8hq4x7m2n5p6r9t0w1z", "name": "find_slot", "url": "https://example.com/", "method": "POST",
                "description": "", "parameters": {"type": "object"}, "timeout_ms": timeout_ms, "secret_version": 1,
            });
            serde_json::from_value::<ToolSnapshot>(stored).unwrap()
        };
        let (least, most) = (TOOL_TIMEOUT_MS_MIN as i64, TOOL_TIMEOUT_MS_MAX as i64);
        for (stored, holds) in
            [(i64::MIN, least), (0, least), (least, least), (5_000, 5_000), (most, most), (i64::MAX, most)]
        {
            assert_eq!(tool(stored).deadline_ms(), holds, "{stored}");
        }
    }
}
