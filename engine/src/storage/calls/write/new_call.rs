//! Inserts a call and counts it.
use crate::ports::statement::{Statement, Value};
use crate::sql;
use crate::storage::calls::call::{ended_reason, transcript};
use crate::storage::calls::rollup::{ADD, SPANS, STARTS_AT};
use crate::storage::calls::{Analysis, CallStatus, EndedCall, NewCall, waits};
use crate::storage::column::Column as _;

/// A new call and the group in which it counts.
pub(super) struct InsertCall<'a> {
    pub(super) new: &'a NewCall,
    pub(super) outcome: &'static str,
    pub(super) sentiment: &'static str,
}

/// The call's group, by the parameters of every statement here.
const GROUP: &str =
    "(SELECT id FROM call_groups WHERE workspace_id = :ws AND assistant_id = :assistant AND source = :source
 AND model = :model AND voice = :voice AND outcome = :outcome AND sentiment = :sentiment)";
/// The wide group, which includes the call's sums as well.
const WIDE_GROUP: &str =
    "(SELECT id FROM call_groups WHERE workspace_id = :ws AND assistant_id = '' AND source = :source
 AND model = '' AND voice = '' AND outcome = :outcome AND sentiment = :sentiment)";

impl InsertCall<'_> {
    /// Inserts the two groups unless they exist.
    pub(super) fn groups(&self) -> Statement {
        let sql =
            "INSERT INTO call_groups (workspace_id, assistant_id, source, model, voice, outcome, sentiment)
                   VALUES (:ws, :assistant, :source, :model, :voice, :outcome, :sentiment),
                   (:ws, '', :source, '', '', :outcome, :sentiment) ON CONFLICT DO NOTHING";
        self.statement(sql.to_owned(), Vec::new())
    }

    /// Adds the call to the sums of its groups.
    pub(super) fn sums(&self, ended: Option<&EndedCall>) -> Statement {
        self.statement(
            format!(
                "INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd)
                 SELECT :ws, g.id, span.column1, {STARTS_AT}, 1, :duration, :cost
                 FROM (SELECT {GROUP} AS id, CAST(:started_at AS INTEGER) AS started_at
                   UNION ALL SELECT {WIDE_GROUP}, CAST(:started_at AS INTEGER)) AS g JOIN {SPANS} ON true
                 WHERE NOT EXISTS (SELECT 1 FROM calls WHERE id = :call) {ADD}"
            ),
            vec![
                ("call", (&self.new.id).into()),
                ("started_at", self.new.started_at.into()),
                ("duration", ended.map_or(0, |ended| ended.duration_ms).into()),
                ("cost", ended.map_or(0, |ended| ended.costs.total_microusd).into()),
            ],
        )
    }

    /// Inserts the call.
    pub(super) fn call(&self, ended: Option<&EndedCall>, analysis: Option<&Analysis>) -> Statement {
        let new = self.new;
        let costs = ended.map(|ended| ended.costs).unwrap_or_default();
        let usage = ended.map(|ended| ended.usage).unwrap_or_default();
        let status = if ended.is_some() { CallStatus::Ended } else { new.status };
        self.statement(
            format!(
                "INSERT INTO calls (workspace_id, group_id, id, assistant_revision, direction, status, from_number, to_number,
                 user_number, provider, carrier_call_id, started_at, answered_at, ended_at, duration_ms, outcome, ended_reason, fault,
                 analysis, cost_microusd, telephony_microusd, stt_microusd, llm_microusd, tts_microusd, llm_input_tokens,
                 llm_output_tokens, transcript_bytes, simulation_run_id, llm_uncounted_answers, waits, snapshot, variables, metadata)
                 VALUES (:ws, {GROUP}, :call, :revision, :direction, :status, :from, :to, :user_number, :provider, :carrier_call,
                 :started_at, :answered_at, :ended_at, :duration, :ended_outcome, :ended_reason, :fault, :analysis, :cost,
                 :telephony, :stt, :llm, :tts, :input_tokens, :output_tokens, :transcript_bytes, :run, :uncounted_answers, :waits, :snapshot,
                 :variables, :metadata)
                 ON CONFLICT DO NOTHING"
            ),
            vec![
                ("call", (&new.id).into()),
                ("revision", new.assistant_revision.into()),
                ("direction", new.direction.as_str().into()),
                ("status", status.as_str().into()),
                ("from", new.from.clone().into()),
                ("to", new.to.clone().into()),
                ("user_number", new.user_number.clone().into()),
                ("provider", new.provider.map(|provider| provider.as_str()).into()),
                ("carrier_call", new.carrier_call_id.clone().into()),
                ("started_at", new.started_at.into()),
                ("answered_at", ended.map_or(new.answered_at, |ended| ended.answered_at).into()),
                ("ended_at", ended.map(|ended| ended.ended_at).into()),
                ("duration", ended.map(|ended| ended.duration_ms).into()),
                ("ended_outcome", ended.map(|ended| ended.outcome.as_str()).into()),
                ("ended_reason", ended.and_then(|ended| ended.ended_reason).and_then(ended_reason).into()),
                ("fault", ended.map(|ended| ended.fault.as_str()).into()),
                ("analysis", analysis.map(|analysis| serde_json::json!(analysis).to_string()).into()),
                ("cost", costs.total_microusd.into()),
                ("telephony", costs.telephony_microusd.into()),
                ("stt", costs.stt_microusd.into()),
                ("llm", costs.llm_microusd.into()),
                ("tts", costs.tts_microusd.into()),
                ("input_tokens", usage.llm_input_tokens.into()),
                ("output_tokens", usage.llm_output_tokens.into()),
                ("transcript_bytes", ended.map_or(0, |ended| transcript(ended).len() as i64).into()),
                ("run", new.simulation_run_id.as_ref().into()),
                ("uncounted_answers", usage.llm_uncounted_answers.into()),
                ("snapshot", new.snapshot.clone().into()),
                ("waits", ended.and_then(waits::stored).into()),
                ("variables", new.variables.value()),
                ("metadata", new.metadata.value()),
            ],
        )
    }

    /// Inserts its metadata for filters, after the call.
    pub(super) fn metadata(&self) -> Option<Statement> {
        let insert = sql!(
            "INSERT INTO call_metadata (workspace_id, name, value, seq)
             SELECT c.workspace_id, entry.key, entry.value, c.seq FROM calls AS c, json_each(c.metadata) AS entry
             WHERE c.workspace_id = :ws AND c.id = :call ON CONFLICT DO NOTHING",
            call = &self.new.id,
        );
        (!self.new.metadata.is_empty()).then(|| insert.in_workspace(&self.new.workspace_id))
    }

    fn statement(&self, sql: String, more: Vec<(&'static str, Value)>) -> Statement {
        let Self { new, outcome, sentiment } = *self;
        let mut params: Vec<(&'static str, Value)> = vec![
            ("assistant", (&new.assistant_id).into()),
            ("source", new.source.as_str().into()),
            ("model", (&new.model).into()),
            ("voice", (&new.voice).into()),
            ("outcome", outcome.into()),
            ("sentiment", sentiment.into()),
        ];
        params.extend(more);
        Statement::named(&sql, params).in_workspace(&new.workspace_id)
    }
}
