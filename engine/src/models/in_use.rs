//! An assistant that conversations use.
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::base::fair_pool::Share;
use crate::base::ids::WorkspaceId;
use crate::base::limits::{
    ASSISTANT_MEMORY_PER_BYTE, KNOWLEDGE_INDEX_MEMORY_PER_BYTE, TOOL_INDEX_MEMORY_BYTES,
};
use crate::conversation::keys::send_keys;
use crate::conversation::{AssistantSnapshot, ToolSpec};
use crate::models::settings::ModelCatalog;
use crate::models::{AssistantModel, ModelFailure, RULES_MODEL};

/// An assistant in use: its configuration, and what its model derives from that. All conversations with it share one, and
/// the last of them drops it.
pub struct AssistantInUse {
    snapshot: AssistantSnapshot,
    specs: Arc<[ToolSpec]>,
    specs_with_keys: Arc<[ToolSpec]>,
    model: Result<AssistantModel, ModelFailure>,
    text_bytes: u64,
    _memory: Share<WorkspaceId>,
}

impl AssistantInUse {
    /// The memory of an assistant whose stored texts are that large, while it is read and with its text afterwards.
    pub const fn memory_of_text(text_bytes: u64) -> u64 {
        text_bytes.saturating_mul(ASSISTANT_MEMORY_PER_BYTE)
    }

    /// Prepares the assistant's model. `memory` is [`AssistantInUse::memory_of_text`]; `None` if the model needs more, and
    /// others have that.
    pub fn new(
        catalog: &ModelCatalog,
        snapshot: AssistantSnapshot,
        text_bytes: u64,
        mut memory: Share<WorkspaceId>,
    ) -> Option<Self> {
        let more = text_bytes.saturating_add(index_bytes(&snapshot)).saturating_sub(memory.amount());
        if more > 0 && !memory.grow(more) {
            return None;
        }
        let specs = snapshot.tool_specs();
        let model = AssistantModel::new(catalog, &snapshot.model, &snapshot.knowledge, &specs);
        let specs_with_keys = match snapshot.keys {
            true => specs.iter().cloned().chain([send_keys()]).collect(),
            false => specs.clone(),
        };
        Some(Self { snapshot, specs, specs_with_keys, model, text_bytes, _memory: memory })
    }

    /// The tools in the form that models take.
    pub fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// The same of a call in which the model can press keys, if the assistant has `keys: true`.
    pub fn specs_with_keys(&self) -> &Arc<[ToolSpec]> {
        &self.specs_with_keys
    }

    /// The model, or the error that prevents its use.
    pub fn model(&self) -> &Result<AssistantModel, ModelFailure> {
        &self.model
    }

    /// The memory of one request to its model. A request to a provider contains the assistant.
    pub fn request_bytes(&self) -> u64 {
        if self.snapshot.model == RULES_MODEL { 0 } else { self.text_bytes }
    }
}

/// The memory of what the rule model finds knowledge and tools with.
fn index_bytes(snapshot: &AssistantSnapshot) -> u64 {
    if snapshot.model != RULES_MODEL {
        return 0;
    }
    let knowledge: usize = snapshot.knowledge.iter().map(|one| one.name.len() + one.content.len()).sum();
    knowledge as u64 * KNOWLEDGE_INDEX_MEMORY_PER_BYTE + snapshot.tools.len() as u64 * TOOL_INDEX_MEMORY_BYTES
}

impl Deref for AssistantInUse {
    type Target = AssistantSnapshot;

    fn deref(&self) -> &AssistantSnapshot {
        &self.snapshot
    }
}

impl fmt::Debug for AssistantInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AssistantInUse").field(&self.snapshot.id).finish()
    }
}
