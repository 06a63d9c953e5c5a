//! The call log: how calls are written, found and counted.
//!
//! The statements of [`mod@write`] join the batch of the change to a call: [`write::insert`] when it begins,
//! [`write::advance`] while it is set up, [`write::end`] when it ends, [`write::analyzed`] afterwards; or
//! [`write::record`] for a call that is written after its end. Each one updates the roll-ups and the text index, and
//! may run twice. [`call::Call`] is the call in API responses, built from the database or from the values just written.
pub(crate) mod call;
mod enums;
pub(crate) mod filter;
pub(crate) mod list;
pub(crate) mod over_time;
mod rollup;
pub mod search;
pub(crate) mod stats;
pub(crate) mod waits;
pub mod write;

pub use call::{
    Call, select, select_ended, select_ended_of_run, select_for, select_of_run, select_without_transcript,
};
pub use enums::{AnalysisMethod, CallStatus, Direction, Source};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::ids::{AssistantId, CallId, RunId, WorkspaceId};
use crate::base::text::without_controls;
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::carriers::CarrierName;
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason, Outcome, Sentiment};
use crate::models;
use crate::speech::turn_times::TurnTimes;
use crate::storage::snapshots::AssistantSnapshot;

/// A new call.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCall {
    /// The workspace of the call.
    pub workspace_id: WorkspaceId,
    /// The call.
    pub id: CallId,
    /// The assistant that handles the call.
    pub assistant_id: AssistantId,
    /// The assistant's revision used in the call.
    pub assistant_revision: i64,
    /// The hash of what it runs with, once that is known.
    pub snapshot: Option<String>,
    /// The source of the call.
    pub source: Source,
    /// Whether the call is incoming or outgoing.
    pub direction: Direction,
    /// The status of the call; never `ended`, see [`EndedCall`].
    pub status: CallStatus,
    /// The caller's number; null when the call uses no telephone.
    pub from: Option<String>,
    /// The called number.
    pub to: Option<String>,
    /// The person on whose behalf the call is placed.
    pub user_number: Option<String>,
    /// The carrier.
    pub provider: Option<CarrierName>,
    /// The carrier's id of the call.
    pub carrier_call_id: Option<String>,
    /// `provider/name` of the model.
    pub model: String,
    /// `provider/name` of the voice.
    pub voice: String,
    /// When the call was queued, received or opened.
    pub started_at: Timestamp,
    /// When the call was answered, if it was.
    pub answered_at: Option<Timestamp>,
    /// The simulation run of the call.
    pub simulation_run_id: Option<RunId>,
    /// What fills in the names in the assistant's texts.
    pub variables: Variables,
    /// What its client wants to know of it again.
    pub metadata: Metadata,
}

impl NewCall {
    /// Our number of a telephone call, as the carrier called it.
    pub(crate) fn our_number(&self) -> Option<&str> {
        let number = if self.direction == Direction::Inbound { &self.to } else { &self.from };
        number.as_deref()
    }

    /// The other party's number; empty without a telephone.
    pub(crate) fn other_number(&self) -> &str {
        let number = if self.direction == Direction::Inbound { &self.from } else { &self.to };
        number.as_deref().unwrap_or_default()
    }

    /// A call without a telephone: it is in progress from its first moment.
    pub(crate) fn without_telephone(
        workspace_id: WorkspaceId,
        id: CallId,
        source: Source,
        assistant: &AssistantSnapshot,
        at: Timestamp,
    ) -> Self {
        Self {
            workspace_id,
            id,
            assistant_id: assistant.id.clone(),
            assistant_revision: assistant.revision,
            snapshot: None,
            source,
            direction: Direction::Inbound,
            status: CallStatus::InProgress,
            from: None,
            to: None,
            user_number: None,
            provider: None,
            carrier_call_id: None,
            model: assistant.model.clone(),
            voice: assistant.voice.clone(),
            started_at: at,
            answered_at: Some(at),
            simulation_run_id: None,
            variables: Variables::default(),
            metadata: Metadata::default(),
        }
    }
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedCall {
    /// When the call was answered; `None` if it was not. It replaces the stored value.
    pub answered_at: Option<Timestamp>,
    /// When the call ended.
    pub ended_at: Timestamp,
    /// How long the two sides were connected, on the recording's clock.
    pub duration_ms: i64,
    /// The outcome.
    pub outcome: Outcome,
    /// Why the call ended; `None` when there was no conversation.
    pub ended_reason: Option<EndedReason>,
    /// The cause of a failure.
    pub fault: CallFault,
    /// The transcript.
    pub transcript: Vec<TranscriptRow>,
    /// The times of the caller's spoken turns.
    pub turns: Vec<TurnTimes>,
    /// The costs.
    pub costs: Costs,
    /// The model's token usage.
    pub usage: Usage,
}

/// What a call cost, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// The total.
    pub total_microusd: i64,
    /// The carrier's price.
    pub telephony_microusd: i64,
    /// Speech to text.
    pub stt_microusd: i64,
    /// The model.
    pub llm_microusd: i64,
    /// Text to speech.
    pub tts_microusd: i64,
}

impl Costs {
    /// Computes the total of the four parts.
    #[must_use]
    pub const fn of(
        telephony_microusd: i64,
        stt_microusd: i64,
        llm_microusd: i64,
        tts_microusd: i64,
    ) -> Self {
        let total_microusd = telephony_microusd + stt_microusd + llm_microusd + tts_microusd;
        Self { total_microusd, telephony_microusd, stt_microusd, llm_microusd, tts_microusd }
    }
}

/// Token usage, as reported by the model's provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens.
    pub llm_input_tokens: i64,
    /// Output tokens.
    pub llm_output_tokens: i64,
    /// Responses without a token count from the provider: not included above, estimated in the costs.
    pub llm_uncounted_answers: i64,
}

/// The analysis of an ended call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// A summary of the call, in a few sentences.
    pub summary: String,
    /// The caller's sentiment.
    pub sentiment: Sentiment,
    /// The outcome if it follows from the transcript only (a voicemail, for example); null keeps the call's outcome.
    pub outcome: Option<Outcome>,
    /// The source of the analysis.
    pub method: AnalysisMethod,
}

impl Analysis {
    /// An analysis by a model or by rules that keeps the call's outcome.
    #[must_use]
    pub fn of(found: models::Analysis, method: AnalysisMethod) -> Self {
        let summary = without_controls(&found.summary);
        Self { summary, sentiment: found.sentiment, outcome: None, method }
    }
}
