//! The public representation of a call: one definition for the REST read, the list, runs and events.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::base::ids::{Id, WorkspaceId};
use crate::base::time::{self, Timestamp};
use crate::carriers::CarrierName;
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason, Outcome, Sentiment};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement};
use crate::sql;
use crate::storage::calls::words::{CallStatus, Direction, Source};
use crate::storage::calls::{Analysis, Costs, EndedCall, NewCall, Usage};
use crate::storage::fault::Fault;

/// A call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Call {
    /// `call_…`
    pub id: String,
    /// The assistant that spoke.
    assistant_id: String,
    /// The revision it spoke with.
    assistant_revision: i64,
    /// Where the call comes from.
    source: Source,
    /// Who placed it.
    direction: Direction,
    /// Where it is.
    status: CallStatus,
    /// The number that calls; null where there is no telephone.
    from: Option<String>,
    /// The number that is called; null where there is no telephone.
    to: Option<String>,
    /// The person on whose behalf it was placed.
    user_number: Option<String>,
    /// The carrier; null where there is none.
    provider: Option<CarrierName>,
    /// The carrier's own id of the call.
    carrier_call_id: Option<String>,
    /// The model that answered.
    model: String,
    /// The voice it answered with.
    voice: String,
    /// When it was queued, came in or was opened.
    started_at: String,
    /// When it was answered; null when it was not.
    answered_at: Option<String>,
    /// When it was over; null until then.
    ended_at: Option<String>,
    /// How long the two sides were connected; null until it is over.
    duration_ms: Option<i64>,
    /// What came of it; null until it is over.
    outcome: Option<Outcome>,
    /// Why it ended; null until it is over, and when it never got to a conversation.
    ended_reason: Option<EndedReason>,
    /// Whose fault it is that it did not go well; null until it is over.
    fault: Option<CallFault>,
    /// How the caller felt about it; null until the call is analysed.
    sentiment: Option<Sentiment>,
    /// What was said and done, oldest first; times count from the start of the conversation. It is
    /// written when the call is over. In a list null from the row on at which the transcripts of the page
    /// pass 4 MiB together; reading the call itself always shows it.
    #[schemars(with = "Option<Vec<TranscriptRow>>")]
    transcript: Option<Box<RawValue>>,
    /// What was found out about it afterwards; null until then.
    analysis: Option<Analysis>,
    /// What it cost; zero until it is over.
    costs: Costs,
    /// What the model was given and gave; zero until it is over.
    usage: Usage,
    /// The recording; null when there is none.
    recording: Option<Recording>,
    /// The simulation run it belongs to; null when it belongs to none.
    simulation_run_id: Option<String>,
}

/// A call's recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recording {
    /// Where it is downloaded, with the workspace's key.
    url: String,
    /// Where its waveform is.
    waveform_url: String,
    /// How long it is.
    duration_ms: i64,
    /// Who is on which channel.
    channels: [&'static str; 2],
    /// The format of the file.
    format: &'static str,
}

impl Recording {
    fn new(base_url: &str, call_id: &str, duration_ms: i64) -> Self {
        Self {
            url: format!("{base_url}/calls/{call_id}/recording"),
            waveform_url: format!("{base_url}/calls/{call_id}/waveform"),
            duration_ms,
            channels: ["caller", "assistant"],
            format: "wav",
        }
    }
}

/// The columns of `calls AS c` and `call_groups AS g` that [`Call::read`] needs, except the transcript.
pub(super) const COLUMNS: &str = "c.id AS id, g.assistant_id AS assistant_id, c.assistant_revision AS assistant_revision,
 g.source AS source, c.direction AS direction, c.status AS status, c.from_number AS from_number, c.to_number AS to_number,
 c.user_number AS user_number, c.provider AS provider, c.carrier_call_id AS carrier_call_id, g.model AS model, g.voice AS voice,
 c.started_at AS started_at, c.answered_at AS answered_at, c.ended_at AS ended_at, c.duration_ms AS duration_ms,
 g.outcome AS outcome, c.ended_reason AS ended_reason, c.fault AS fault, g.sentiment AS sentiment, c.analysis AS analysis,
 c.cost_microusd AS cost_microusd, c.telephony_microusd AS telephony_microusd, c.stt_microusd AS stt_microusd,
 c.llm_microusd AS llm_microusd, c.tts_microusd AS tts_microusd, c.llm_input_tokens AS llm_input_tokens,
 c.llm_output_tokens AS llm_output_tokens, c.llm_uncounted_answers AS llm_uncounted_answers, c.recording_ms AS recording_ms, c.simulation_run_id AS simulation_run_id";

/// One call of the caller's workspace, for operations.
pub fn select(id: &str) -> Statement {
    sql!(select_where("c.workspace_id = :ws AND c.id = :id"), id = id)
}

/// The call of a run of the caller's workspace.
pub fn select_of_run(run_id: &str) -> Statement {
    sql!(
        select_where(
            "c.workspace_id = :ws AND c.id = (SELECT call_id FROM runs WHERE runs.workspace_id = :ws AND runs.id = :run_id)"
        ),
        run_id = run_id
    )
}

/// One call of a workspace, for jobs.
pub fn select_for(workspace_id: &str, id: &str) -> Statement {
    sql!(select_where("c.workspace_id = :workspace_id AND c.id = :id"), id = id, workspace_id = workspace_id)
}

fn select_where(condition: &str) -> String {
    format!(
        "SELECT {COLUMNS}, COALESCE(t.content, '[]') AS transcript FROM calls AS c
         JOIN call_groups AS g ON g.id = c.group_id LEFT JOIN call_transcripts AS t ON t.seq = c.seq WHERE {condition}"
    )
}

impl Call {
    /// From a row of [`select`] or of the list. `base_url` is the service's public one.
    pub fn read(row: Row<'_>, base_url: &str) -> Result<Self, DatabaseError> {
        let id = row.text("id")?;
        let provider = row.optional_word("provider")?;
        let ended_reason = row.optional_word("ended_reason")?;
        let recording_ms = row.optional_integer("recording_ms")?;
        Ok(Self {
            assistant_id: row.text("assistant_id")?,
            assistant_revision: row.integer("assistant_revision")?,
            source: row.word("source")?,
            direction: row.word("direction")?,
            status: row.word("status")?,
            from: row.optional_text("from_number")?,
            to: row.optional_text("to_number")?,
            user_number: row.optional_text("user_number")?,
            provider,
            carrier_call_id: row.optional_text("carrier_call_id")?,
            model: row.text("model")?,
            voice: row.text("voice")?,
            started_at: time::format(row.integer("started_at")?),
            answered_at: time::format_optional(row.optional_integer("answered_at")?),
            ended_at: time::format_optional(row.optional_integer("ended_at")?),
            duration_ms: row.optional_integer("duration_ms")?,
            outcome: row.optional_word("outcome")?,
            ended_reason,
            fault: row.optional_word("fault")?,
            sentiment: row.optional_word("sentiment")?,
            transcript: row.optional_text("transcript")?.map(raw).transpose()?,
            analysis: match row.optional_text("analysis")? {
                Some(_) => Some(row.json("analysis")?),
                None => None,
            },
            costs: Costs {
                total_microusd: row.integer("cost_microusd")?,
                telephony_microusd: row.integer("telephony_microusd")?,
                stt_microusd: row.integer("stt_microusd")?,
                llm_microusd: row.integer("llm_microusd")?,
                tts_microusd: row.integer("tts_microusd")?,
            },
            usage: Usage {
                llm_input_tokens: row.integer("llm_input_tokens")?,
                llm_output_tokens: row.integer("llm_output_tokens")?,
                llm_uncounted_answers: row.integer("llm_uncounted_answers")?,
            },
            recording: recording_ms.map(|duration_ms| Recording::new(base_url, &id, duration_ms)),
            simulation_run_id: row.optional_text("simulation_run_id")?,
            id,
        })
    }

    /// Adds the recording.
    #[must_use]
    pub fn recorded(mut self, base_url: &str, duration_ms: i64) -> Self {
        self.recording = Some(Recording::new(base_url, &self.id, duration_ms));
        self
    }

    /// The transcript; `[]` where the list left it out.
    pub fn transcript(&self) -> Box<RawValue> {
        self.transcript.clone().unwrap_or_else(|| RawValue::from_string("[]".to_owned()).unwrap_or_default())
    }

    /// The call as a read returns it after these have been written: the payload of an event equals that response byte
    /// for byte.
    pub fn of(new: &NewCall, ended: Option<&EndedCall>, analysis: Option<&Analysis>) -> Result<Self, Fault> {
        let outcome =
            analysis.and_then(|analysis| analysis.outcome).or_else(|| ended.map(|ended| ended.outcome));
        let answered_at = ended.map_or(new.answered_at, |ended| ended.answered_at);
        let transcript = ended.map_or("[]".to_owned(), transcript);
        Ok(Self {
            id: new.id.to_string(),
            assistant_id: new.assistant_id.to_string(),
            assistant_revision: new.assistant_revision,
            source: new.source,
            direction: new.direction,
            status: if ended.is_some() { CallStatus::Ended } else { new.status },
            from: new.from.clone(),
            to: new.to.clone(),
            user_number: new.user_number.clone(),
            provider: new.provider,
            carrier_call_id: new.carrier_call_id.clone(),
            model: new.model.clone(),
            voice: new.voice.clone(),
            started_at: time::format(new.started_at.ms()),
            answered_at: time::format_optional(answered_at.map(Timestamp::ms)),
            ended_at: ended.map(|ended| time::format(ended.ended_at.ms())),
            duration_ms: ended.map(|ended| ended.duration_ms),
            outcome,
            ended_reason: ended.and_then(|ended| ended.ended_reason),
            fault: ended.map(|ended| ended.fault),
            sentiment: analysis.map(|analysis| analysis.sentiment),
            transcript: Some(raw(transcript)?),
            analysis: analysis.cloned(),
            costs: ended.map(|ended| ended.costs).unwrap_or_default(),
            usage: ended.map(|ended| ended.usage).unwrap_or_default(),
            recording: None,
            simulation_run_id: new.simulation_run_id.as_ref().map(ToString::to_string),
        })
    }
}

impl NewCall {
    /// From a row of [`select_for`]: a call without its end.
    pub fn read(row: Row<'_>, workspace_id: &str) -> Result<Self, DatabaseError> {
        Ok(Self {
            workspace_id: WorkspaceId::from_stored(workspace_id.to_owned()),
            id: row.id("id")?,
            assistant_id: row.id("assistant_id")?,
            assistant_revision: row.integer("assistant_revision")?,
            source: row.word("source")?,
            direction: row.word("direction")?,
            status: row.word("status")?,
            from: row.optional_text("from_number")?,
            to: row.optional_text("to_number")?,
            user_number: row.optional_text("user_number")?,
            provider: row.optional_word("provider")?,
            carrier_call_id: row.optional_text("carrier_call_id")?,
            model: row.text("model")?,
            voice: row.text("voice")?,
            started_at: row.timestamp("started_at")?,
            answered_at: row.optional_timestamp("answered_at")?,
            simulation_run_id: row.optional_id("simulation_run_id")?,
        })
    }
}

/// The transcript as it is stored and returned.
pub(super) fn transcript(ended: &EndedCall) -> String {
    json!(ended.transcript).to_string()
}

/// The word that is stored for an [`EndedReason`].
pub(super) fn ended_reason(reason: EndedReason) -> Option<String> {
    Some(reason.as_str().to_owned())
}

fn raw(text: String) -> Result<Box<RawValue>, DatabaseError> {
    RawValue::from_string(text).map_err(|error| DatabaseError::Shape(format!("transcript: {error}")))
}
