//! The call log: what a call is, how it is written, and how calls are found and counted.
//!
//! The statements of [`mod@write`] go into the batch of what happens to a call: [`write::insert`] when it begins,
//! [`write::advance`] while it is set up, [`write::end`] when it ends, [`write::analyzed`] afterwards; or
//! [`write::record`] for a call that is written once it has ended. Each keeps the roll-ups and the text index true, and
//! may run twice. [`call::Call`] is the call as clients see it, from the database or from what was written.
pub(crate) mod call;
pub(crate) mod filter;
pub(crate) mod list;
mod rollup;
pub mod search;
pub(crate) mod stats;
mod words;
pub mod write;

pub use call::{Call, select, select_for, select_of_run};
pub use words::{AnalysisMethod, CallStatus, Direction, Source};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::ids::{AssistantId, CallId, RunId, WorkspaceId};
use crate::base::time::Timestamp;
use crate::carriers::CarrierName;
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason, Outcome, Sentiment};
use crate::models;

/// A call as it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCall {
    /// The workspace of the call.
    pub workspace_id: WorkspaceId,
    /// The call.
    pub id: CallId,
    /// The assistant that talks.
    pub assistant_id: AssistantId,
    /// The assistant's revision as the call runs with it.
    pub assistant_revision: i64,
    /// Where it comes from.
    pub source: Source,
    /// Who placed it.
    pub direction: Direction,
    /// Where it is; never `ended`, for that is [`EndedCall`].
    pub status: CallStatus,
    /// The number that calls; null where there is no telephone.
    pub from: Option<String>,
    /// The number that is called.
    pub to: Option<String>,
    /// The person on whose behalf it is placed.
    pub user_number: Option<String>,
    /// The carrier.
    pub provider: Option<CarrierName>,
    /// The carrier's own id of it.
    pub carrier_call_id: Option<String>,
    /// `provider/name` of the model.
    pub model: String,
    /// `provider/name` of the voice.
    pub voice: String,
    /// When it was queued, came in or was opened.
    pub started_at: Timestamp,
    /// When it was answered, if it has been.
    pub answered_at: Option<Timestamp>,
    /// The run it belongs to.
    pub simulation_run_id: Option<RunId>,
}

/// What is known of a call once it is over.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedCall {
    /// When it was answered; `None` when nobody did. It replaces what was known before.
    pub answered_at: Option<Timestamp>,
    /// When it was over.
    pub ended_at: Timestamp,
    /// How long the two sides were connected, on the recording's clock.
    pub duration_ms: i64,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it ended; `None` when there was no conversation that could end.
    pub ended_reason: Option<EndedReason>,
    /// Whose fault it is that it did not go well.
    pub fault: CallFault,
    /// What was said and done.
    pub transcript: Vec<TranscriptRow>,
    /// What it cost.
    pub costs: Costs,
    /// What the model was given and gave.
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
    /// With the total of the four parts.
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

/// The tokens of the model, as it counts them.
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
    /// What happened, in a few sentences.
    pub summary: String,
    /// The caller's sentiment.
    pub sentiment: Sentiment,
    /// The outcome, where only the transcript tells it (a voicemail, for example); null keeps the call's outcome.
    pub outcome: Option<Outcome>,
    /// What made the analysis.
    pub method: AnalysisMethod,
}

impl Analysis {
    /// What an analyst, by a model or by rule, has found; the call's outcome stays as it is.
    #[must_use]
    pub fn of(found: models::Analysis, method: AnalysisMethod) -> Self {
        Self { summary: found.summary, sentiment: found.sentiment, outcome: None, method }
    }
}
