//! The public representation of a call: one definition for the REST read, the list, runs and events.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::base::ids::{AssistantId, CallId, RunId, WorkspaceId};
use crate::base::time::{self, Timestamp};
use crate::base::values::{Metadata, Variables};
use crate::carriers::CarrierName;
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason, Outcome, Sentiment};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement};
use crate::speech::turn_times::TurnTimes;
use crate::sql;
use crate::storage::archives;
use crate::storage::calls::enums::{CallStatus, Direction, Source};
use crate::storage::calls::{Analysis, Costs, EndedCall, NewCall, Usage, waits};
use crate::storage::column::Column;
use crate::storage::fault::Fault;

/// A call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Call {
    /// `call_…`
    pub id: CallId,
    /// The assistant that handles the call.
    assistant_id: AssistantId,
    /// The assistant's revision used in the call.
    assistant_revision: i64,
    /// The hash of what the conversation ran with, for `GET /snapshots/{hash}`. Null before the conversation begins, and of calls
    /// of earlier versions.
    snapshot: Option<String>,
    /// Where the call comes from.
    source: Source,
    /// Whether the call is incoming or outgoing.
    direction: Direction,
    /// The status of the call.
    status: CallStatus,
    /// The caller's number; null when the call uses no telephone.
    from: Option<String>,
    /// The called number; null when the call uses no telephone.
    to: Option<String>,
    /// The person on whose behalf the call was placed.
    user_number: Option<String>,
    /// The carrier; null when the call uses no telephone.
    provider: Option<CarrierName>,
    /// The carrier's id of the call.
    carrier_call_id: Option<String>,
    /// The assistant's model.
    model: String,
    /// The assistant's voice.
    voice: String,
    /// When the call was queued, received or opened.
    started_at: String,
    /// When the call was answered; null if it was not.
    answered_at: Option<String>,
    /// When the call ended; null before.
    ended_at: Option<String>,
    /// How long the two sides were connected; null until the call ends.
    duration_ms: Option<i64>,
    /// The outcome; null until the call ends.
    outcome: Option<Outcome>,
    /// Why the call ended; null until the call ends, and when there was no conversation.
    ended_reason: Option<EndedReason>,
    /// The cause of a failure; null until the call ends.
    fault: Option<CallFault>,
    /// The caller's sentiment; null until the call is analyzed.
    sentiment: Option<Sentiment>,
    /// The transcript, oldest row first; times count from the start of the conversation. Reading a single call that is
    /// in progress returns what was said so far: of a line that the assistant is saying (`in_progress`), what was heard up to
    /// two seconds ago. A list has the transcripts of ended calls only, and null from the row at which the page would exceed 4 MiB,
    /// and for a transcript whose archived file is lost.
    #[schemars(with = "Option<Vec<TranscriptRow>>")]
    transcript: Option<Box<RawValue>>,
    /// When the steps from each spoken turn of the caller to the assistant's answer were done: the latest 200 turns, oldest
    /// first, written when the call ends. A conversation by text has none. Null in lists; reading a single call always
    /// returns it.
    turns: Option<Vec<TurnTimes>>,
    /// How long the caller waited for each answer of `turns`, in ms: from the end of their speech until they heard the
    /// assistant. Turns that were not answered are left out. Lists have it, too.
    #[schemars(with = "Vec<i64>")]
    waits_ms: Box<RawValue>,
    /// The analysis; null until the call is analyzed.
    analysis: Option<Analysis>,
    /// The costs; zero until the call ends.
    costs: Costs,
    /// The model's token usage; zero until the call ends.
    usage: Usage,
    /// The recording; null if the call has none.
    recording: Option<Recording>,
    /// The simulation run of the call; null if there is none.
    simulation_run_id: Option<RunId>,
    /// What filled in the names in the assistant's texts, without what is built in. Null in lists; reading a single call always
    /// returns it.
    variables: Option<Variables>,
    /// Texts of your own, by name, as the call was started with them.
    metadata: Metadata,
}

/// A call's recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recording {
    /// The URL of the file; requires an API key.
    url: String,
    /// The URL of the waveform; requires an API key.
    waveform_url: String,
    /// The duration of the recording.
    duration_ms: i64,
    /// The speaker of each channel.
    channels: [&'static str; 2],
    /// The format of the file.
    format: &'static str,
}

impl Recording {
    fn new(base_url: &str, call_id: &CallId, duration_ms: i64) -> Self {
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
pub(super) const COLUMNS: &str = "c.id AS id, g.assistant_id AS assistant_id, c.assistant_revision AS assistant_revision, c.snapshot AS snapshot,
 g.source AS source, c.direction AS direction, c.status AS status, c.from_number AS from_number, c.to_number AS to_number,
 c.user_number AS user_number, c.provider AS provider, c.carrier_call_id AS carrier_call_id, g.model AS model, g.voice AS voice,
 c.started_at AS started_at, c.answered_at AS answered_at, c.ended_at AS ended_at, c.duration_ms AS duration_ms,
 g.outcome AS outcome, c.ended_reason AS ended_reason, c.fault AS fault, g.sentiment AS sentiment, c.analysis AS analysis,
 c.cost_microusd AS cost_microusd, c.telephony_microusd AS telephony_microusd, c.stt_microusd AS stt_microusd,
 c.llm_microusd AS llm_microusd, c.tts_microusd AS tts_microusd, c.llm_input_tokens AS llm_input_tokens,
 c.llm_output_tokens AS llm_output_tokens, c.llm_uncounted_answers AS llm_uncounted_answers, c.recording_ms AS recording_ms, c.simulation_run_id AS simulation_run_id,
 COALESCE(c.waits, '[]') AS waits, c.metadata AS metadata";

/// One call of the caller's workspace, for operations. `Services::unarchive` completes the
/// rows.
pub fn select(id: &CallId) -> Statement {
    sql!(select_where("c.workspace_id = :ws AND c.id = :id"), id = id)
}

/// The same without its transcript and turns.
pub fn select_without_transcript(id: &CallId) -> Statement {
    sql!(
        format!(
            "SELECT {COLUMNS}, c.variables AS variables, NULL AS transcript, NULL AS turns FROM calls AS c
             JOIN call_groups AS g ON g.id = c.group_id WHERE c.workspace_id = :ws AND c.id = :id"
        ),
        id = id
    )
}

/// The same as [`select`], only of a call that has ended.
pub fn select_ended(id: &CallId) -> Statement {
    sql!(select_where("c.workspace_id = :ws AND c.id = :id AND c.status = 'ended'"), id = id)
}

const OF_RUN: &str = "c.workspace_id = :ws
 AND c.id = (SELECT call_id FROM runs WHERE runs.workspace_id = :ws AND runs.id = :run_id)";

/// The call of a run of the caller's workspace.
pub fn select_of_run(run_id: &RunId) -> Statement {
    sql!(select_where(OF_RUN), run_id = run_id)
}

/// The same, only of a call that has ended.
pub fn select_ended_of_run(run_id: &RunId) -> Statement {
    sql!(select_where(&format!("{OF_RUN} AND c.status = 'ended'")), run_id = run_id)
}

/// One call of a workspace, for jobs.
pub fn select_for(workspace_id: &WorkspaceId, id: &CallId) -> Statement {
    sql!(select_where("c.workspace_id = :workspace_id AND c.id = :id"), id = id, workspace_id = workspace_id)
}

/// What was said so far in the call `c`, from the [journal](crate::live::call_journal).
const SO_FAR: &str = "(SELECT json_group_array(json(content)) FROM
 (SELECT content FROM live_call_rows WHERE workspace_id = c.workspace_id AND call_id = c.id ORDER BY place))";

fn select_where(condition: &str) -> String {
    format!(
        "SELECT {COLUMNS}, c.variables AS variables, COALESCE(t.content, {SO_FAR}) AS transcript, COALESCE(t.turns, '[]') AS turns, t.changes AS changes, {} FROM calls AS c
         JOIN call_groups AS g ON g.id = c.group_id LEFT JOIN call_transcripts AS t ON t.seq = c.seq WHERE {condition}",
        archives::COLUMNS
    )
}

impl Call {
    /// Whether a conversation goes on that somebody may follow; that of a simulation belongs to its run.
    pub(crate) fn is_live(&self) -> bool {
        self.status == CallStatus::InProgress && self.source != Source::Simulation
    }

    /// From a row of [`select`] or of the list. `base_url` is the service's public one.
    pub fn read(row: Row<'_>, base_url: &str) -> Result<Self, DatabaseError> {
        let id = row.id("id")?;
        let provider = row.optional_word("provider")?;
        let ended_reason = row.optional_word("ended_reason")?;
        let recording_ms = row.optional_integer("recording_ms")?;
        Ok(Self {
            assistant_id: row.id("assistant_id")?,
            assistant_revision: row.integer("assistant_revision")?,
            snapshot: row.optional_text("snapshot")?,
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
            turns: match row.optional_text("turns")? {
                Some(_) => Some(row.json("turns")?),
                None => None,
            },
            waits_ms: raw(row.text("waits")?)?,
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
            simulation_run_id: row.optional_id("simulation_run_id")?,
            variables: Column::read(row, "variables")?,
            metadata: row.json("metadata")?,
            id,
        })
    }

    /// Adds the recording.
    #[must_use]
    pub fn recorded(mut self, base_url: &str, duration_ms: i64) -> Self {
        self.recording = Some(Recording::new(base_url, &self.id, duration_ms));
        self
    }

    /// The call as a read returns it after these have been written: the payload of an event equals that response byte
    /// for byte.
    pub fn of(new: &NewCall, ended: Option<&EndedCall>, analysis: Option<&Analysis>) -> Result<Self, Fault> {
        let outcome =
            analysis.and_then(|analysis| analysis.outcome).or_else(|| ended.map(|ended| ended.outcome));
        let answered_at = ended.map_or(new.answered_at, |ended| ended.answered_at);
        let transcript = ended.map_or("[]".to_owned(), transcript);
        Ok(Self {
            id: new.id.clone(),
            assistant_id: new.assistant_id.clone(),
            assistant_revision: new.assistant_revision,
            snapshot: new.snapshot.clone(),
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
            turns: Some(ended.map(|ended| ended.turns.clone()).unwrap_or_default()),
            waits_ms: raw(ended.and_then(waits::stored).unwrap_or_else(|| "[]".to_owned()))?,
            analysis: analysis.cloned(),
            costs: ended.map(|ended| ended.costs).unwrap_or_default(),
            usage: ended.map(|ended| ended.usage).unwrap_or_default(),
            recording: None,
            simulation_run_id: new.simulation_run_id.clone(),
            variables: Some(new.variables.clone()),
            metadata: new.metadata.clone(),
        })
    }
}

impl NewCall {
    /// From a row of [`select_for`]: a call without its end.
    pub fn read(row: Row<'_>, workspace_id: &WorkspaceId) -> Result<Self, DatabaseError> {
        Ok(Self {
            workspace_id: workspace_id.clone(),
            id: row.id("id")?,
            assistant_id: row.id("assistant_id")?,
            assistant_revision: row.integer("assistant_revision")?,
            snapshot: row.optional_text("snapshot")?,
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
            variables: row.json("variables")?,
            metadata: row.json("metadata")?,
        })
    }
}

/// The transcript as it is stored and returned.
pub(super) fn transcript(ended: &EndedCall) -> String {
    json!(ended.transcript).to_string()
}

/// The times of the turns as they are stored.
pub(super) fn turns(ended: &EndedCall) -> String {
    json!(ended.turns).to_string()
}

/// The word that is stored for an [`EndedReason`].
pub(super) fn ended_reason(reason: EndedReason) -> Option<String> {
    Some(reason.as_str().to_owned())
}

fn raw(text: String) -> Result<Box<RawValue>, DatabaseError> {
    RawValue::from_string(text).map_err(|error| DatabaseError::Shape(format!("stored JSON: {error}")))
}
