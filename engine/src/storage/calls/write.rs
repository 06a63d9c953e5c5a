//! The statements that write a call. They go into the batch of whatever made it happen, and keep the
//! roll-ups and the text index true in the same batch.
//!
//! Each list of statements may run twice: a call that is there is not inserted again, an ended one does
//! not end again. So that a statement can tell, the call's own row is written after its sums.
use crate::ports::statement::{Statement, Value};
use crate::sql;
use crate::storage::calls::call::{ended_reason, transcript};
use crate::storage::calls::rollup::{ADD, SPANS, STARTS_AT};
use crate::storage::calls::{Analysis, CallStatus, EndedCall, NewCall, search};

/// A call begins.
pub fn insert(new: &NewCall) -> Vec<Statement> {
    record(new, None, None)
}

/// A call that is written at once, over or not: the same as [`insert`], [`end`] and [`analyzed`] in a row
/// for less work.
pub fn record(new: &NewCall, ended: Option<&EndedCall>, analysis: Option<&Analysis>) -> Vec<Statement> {
    let outcome = analysis.and_then(|analysis| analysis.outcome).or(ended.map(|ended| ended.outcome));
    let group = Group {
        new,
        outcome: outcome.map_or("", |outcome| outcome.as_str()),
        sentiment: analysis.map_or("", |analysis| analysis.sentiment.as_str()),
    };
    let mut statements = vec![group.insert(), group.count(ended), group.insert_call(ended, analysis)];
    if let Some(ended) = ended {
        statements.push(sql!(
            "INSERT INTO call_transcripts (seq, workspace_id, content)
             SELECT seq, workspace_id, ?3 FROM calls WHERE workspace_id = ?1 AND id = ?2 ON CONFLICT DO NOTHING",
            &new.workspace_id,
            &new.id,
            transcript(ended)
        ));
    }
    statements.push(search::index(&new.workspace_id, &new.id));
    statements
}

/// A call that has not ended gets on: it rings, it is answered. Its state only moves forward.
pub fn advance(workspace_id: &str, id: &str, status: CallStatus, at_ms: i64) -> Vec<Statement> {
    let earlier = match status {
        CallStatus::Queued | CallStatus::Ended => return Vec::new(),
        CallStatus::Ringing => "'queued'",
        CallStatus::InProgress => "'queued', 'ringing'",
    };
    let answered_at = (status == CallStatus::InProgress).then_some(at_ms);
    vec![sql!(
        format!(
            "UPDATE calls SET status = ?3, answered_at = COALESCE(answered_at, ?4)
             WHERE workspace_id = ?1 AND id = ?2 AND status IN ({earlier})"
        ),
        workspace_id,
        id,
        status.as_str(),
        answered_at
    )]
}

/// The carrier has taken a call and named it.
pub fn carried(workspace_id: &str, id: &str, carrier_call_id: &str) -> Vec<Statement> {
    vec![
        sql!(
            "UPDATE calls SET carrier_call_id = ?3 WHERE workspace_id = ?1 AND id = ?2",
            workspace_id,
            id,
            carrier_call_id
        ),
        search::index(workspace_id, id),
    ]
}

/// A call is over. One that has ended already stays as it is. With an `analysis` it is the same as [`end`]
/// and [`analyzed`] in a row for less work.
pub fn end(workspace_id: &str, id: &str, ended: &EndedCall, analysis: Option<&Analysis>) -> Vec<Statement> {
    let outcome = analysis.and_then(|analysis| analysis.outcome).unwrap_or(ended.outcome);
    let sentiment = analysis.map(|analysis| analysis.sentiment.as_str());
    let change = Change {
        workspace_id,
        id,
        condition: "c.status <> 'ended'",
        outcome: Some(outcome.as_str()),
        outcome_else: "c.outcome",
        sentiment,
        spoken_with: None,
        duration_ms: Some(ended.duration_ms),
        cost_microusd: Some(ended.costs.total_microusd),
    };
    let transcript = transcript(ended);
    let bytes = transcript.len() as i64;
    let mut statements = change.statements();
    statements.push(sql!(
        "INSERT INTO call_transcripts (seq, workspace_id, content)
         SELECT seq, workspace_id, ?3 FROM calls WHERE workspace_id = ?1 AND id = ?2 AND status <> 'ended'
         ON CONFLICT DO NOTHING",
        workspace_id,
        id,
        transcript
    ));
    statements.push(sql!(
        format!(
            "UPDATE calls AS c SET group_id = {}, status = 'ended', answered_at = ?4, ended_at = ?5, duration_ms = ?6,
             outcome = ?17, ended_reason = ?7, fault = ?8, cost_microusd = ?9, telephony_microusd = ?10, stt_microusd = ?11,
             llm_microusd = ?12, tts_microusd = ?13, llm_input_tokens = ?14, llm_output_tokens = ?15, transcript_bytes = ?16,
             analysis = ?19, llm_uncounted_answers = ?20 WHERE c.workspace_id = ?1 AND c.id = ?2 AND c.status <> 'ended'",
            Kind::Own.of_call("?3", "COALESCE(?18, g.sentiment)", AS_BEFORE)
        ),
        workspace_id,
        id,
        outcome.as_str(),
        ended.answered_at,
        ended.ended_at,
        ended.duration_ms,
        ended.ended_reason.and_then(ended_reason),
        ended.fault.as_str(),
        ended.costs.total_microusd,
        ended.costs.telephony_microusd,
        ended.costs.stt_microusd,
        ended.costs.llm_microusd,
        ended.costs.tts_microusd,
        ended.usage.llm_input_tokens,
        ended.usage.llm_output_tokens,
        bytes,
        ended.outcome.as_str(),
        sentiment,
        analysis.map(|analysis| serde_json::json!(analysis).to_string()),
        ended.usage.llm_uncounted_answers
    ));
    statements.push(search::index(workspace_id, id));
    statements
}

/// The carrier told its price after the call was over: what that is, and what the call costs in all with it.
pub fn repriced(
    workspace_id: &str,
    id: &str,
    telephony_microusd: i64,
    total_microusd: i64,
) -> Vec<Statement> {
    let change = Change {
        workspace_id,
        id,
        condition: "c.status = 'ended'",
        outcome: None,
        outcome_else: "g.outcome",
        sentiment: None,
        spoken_with: None,
        duration_ms: None,
        cost_microusd: Some(total_microusd),
    };
    let mut statements = change.statements();
    statements.push(sql!(
        "UPDATE calls SET telephony_microusd = ?3, cost_microusd = ?4
         WHERE workspace_id = ?1 AND id = ?2 AND status = 'ended'",
        workspace_id,
        id,
        telephony_microusd,
        total_microusd
    ));
    statements
}

/// A call that was begun is opened with the assistant as it is by then: `call` says its revision, its model, its voice.
pub fn spoken_by(call: &NewCall) -> Vec<Statement> {
    let change = Change {
        workspace_id: &call.workspace_id,
        id: &call.id,
        condition: "c.status <> 'ended'",
        outcome: Some(""),
        outcome_else: "g.outcome",
        sentiment: None,
        spoken_with: Some((&call.model, &call.voice)),
        duration_ms: None,
        cost_microusd: None,
    };
    let mut statements = change.statements();
    statements.push(sql!(
        format!(
            "UPDATE calls AS c SET group_id = {}, assistant_revision = ?3
             WHERE c.workspace_id = ?1 AND c.id = ?2 AND c.status <> 'ended'",
            Kind::Own.of_call("''", "g.sentiment", ("?4", "?5"))
        ),
        &call.workspace_id,
        &call.id,
        call.assistant_revision,
        &call.model,
        &call.voice
    ));
    statements
}

/// An ended call was looked into. A later analysis takes the place of an earlier one.
pub fn analyzed(workspace_id: &str, id: &str, analysis: &Analysis) -> Vec<Statement> {
    let outcome = analysis.outcome.map(|outcome| outcome.as_str());
    let change = Change {
        workspace_id,
        id,
        condition: "c.status = 'ended'",
        outcome,
        outcome_else: "c.outcome",
        sentiment: Some(analysis.sentiment.as_str()),
        spoken_with: None,
        duration_ms: None,
        cost_microusd: None,
    };
    let mut statements = change.statements();
    statements.push(sql!(
        format!(
            "UPDATE calls AS c SET group_id = {}, analysis = ?5
             WHERE c.workspace_id = ?1 AND c.id = ?2 AND c.status = 'ended'",
            Kind::Own.of_call("COALESCE(?3, c.outcome)", "?4", AS_BEFORE)
        ),
        workspace_id,
        id,
        outcome,
        analysis.sentiment.as_str(),
        serde_json::json!(analysis).to_string()
    ));
    statements.push(search::index(workspace_id, id));
    statements
}

/// The group of a call that is not there yet.
struct Group<'a> {
    new: &'a NewCall,
    outcome: &'static str,
    sentiment: &'static str,
}

/// A group by the parameters of [`Group::params`].
const GROUP_OF_PARAMS: &str =
    "(SELECT id FROM call_groups WHERE workspace_id = ?1 AND assistant_id = ?2 AND source = ?3
 AND model = ?4 AND voice = ?5 AND outcome = ?6 AND sentiment = ?7)";
/// The wide group that has its sums too.
const WIDE_GROUP_OF_PARAMS: &str =
    "(SELECT id FROM call_groups WHERE workspace_id = ?1 AND assistant_id = '' AND source = ?3
 AND model = '' AND voice = '' AND outcome = ?6 AND sentiment = ?7)";

impl Group<'_> {
    fn params(&self) -> Vec<Value> {
        let Self { new, outcome, sentiment } = *self;
        let words: [&str; 7] = [
            &new.workspace_id,
            &new.assistant_id,
            new.source.as_str(),
            &new.model,
            &new.voice,
            outcome,
            sentiment,
        ];
        words.into_iter().map(Value::from).collect()
    }

    fn with(&self, sql: String, more: Vec<Value>) -> Statement {
        let mut params = self.params();
        params.extend(more);
        Statement { sql: sql.into(), params }
    }

    fn insert(&self) -> Statement {
        let sql =
            "INSERT INTO call_groups (workspace_id, assistant_id, source, model, voice, outcome, sentiment)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7), (?1, '', ?3, '', '', ?6, ?7) ON CONFLICT DO NOTHING";
        self.with(sql.to_owned(), Vec::new())
    }

    fn count(&self, ended: Option<&EndedCall>) -> Statement {
        self.with(
            format!(
                "INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd)
                 SELECT ?1, g.id, span.column1, {STARTS_AT}, 1, ?10, ?11
                 FROM (SELECT {GROUP_OF_PARAMS} AS id, CAST(?9 AS INTEGER) AS started_at
                   UNION ALL SELECT {WIDE_GROUP_OF_PARAMS}, CAST(?9 AS INTEGER)) AS g JOIN {SPANS} ON true
                 WHERE NOT EXISTS (SELECT 1 FROM calls WHERE id = ?8) {ADD}"
            ),
            vec![
                (&self.new.id).into(),
                self.new.started_at.into(),
                ended.map_or(0, |ended| ended.duration_ms).into(),
                ended.map_or(0, |ended| ended.costs.total_microusd).into(),
            ],
        )
    }

    fn insert_call(&self, ended: Option<&EndedCall>, analysis: Option<&Analysis>) -> Statement {
        let new = self.new;
        let costs = ended.map(|ended| ended.costs).unwrap_or_default();
        let usage = ended.map(|ended| ended.usage).unwrap_or_default();
        let status = if ended.is_some() { CallStatus::Ended } else { new.status };
        self.with(
            format!(
                "INSERT INTO calls (workspace_id, group_id, id, assistant_revision, direction, status, from_number, to_number,
                 user_number, provider, carrier_call_id, started_at, answered_at, ended_at, duration_ms, outcome, ended_reason, fault,
                 analysis, cost_microusd, telephony_microusd, stt_microusd, llm_microusd, tts_microusd, llm_input_tokens,
                 llm_output_tokens, transcript_bytes, simulation_run_id, llm_uncounted_answers)
                 VALUES (?1, {GROUP_OF_PARAMS}, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
                 ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34) ON CONFLICT DO NOTHING"
            ),
            vec![
                (&new.id).into(),
                new.assistant_revision.into(),
                new.direction.as_str().into(),
                status.as_str().into(),
                new.from.clone().into(),
                new.to.clone().into(),
                new.user_number.clone().into(),
                new.provider.map(|provider| provider.as_str()).into(),
                new.carrier_call_id.clone().into(),
                new.started_at.into(),
                ended.map_or(new.answered_at, |ended| ended.answered_at).into(),
                ended.map(|ended| ended.ended_at).into(),
                ended.map(|ended| ended.duration_ms).into(),
                ended.map(|ended| ended.outcome.as_str()).into(),
                ended.and_then(|ended| ended.ended_reason).and_then(ended_reason).into(),
                ended.map(|ended| ended.fault.as_str()).into(),
                analysis.map(|analysis| serde_json::json!(analysis).to_string()).into(),
                costs.total_microusd.into(),
                costs.telephony_microusd.into(),
                costs.stt_microusd.into(),
                costs.llm_microusd.into(),
                costs.tts_microusd.into(),
                usage.llm_input_tokens.into(),
                usage.llm_output_tokens.into(),
                ended.map_or(0, |ended| transcript(ended).len() as i64).into(),
                new.simulation_run_id.clone().into(),
                usage.llm_uncounted_answers.into(),
            ],
        )
    }
}

/// A call moves to another group, or its sums change. `None` leaves what is there.
struct Change<'a> {
    workspace_id: &'a str,
    id: &'a str,
    /// On the call as it still is.
    condition: &'static str,
    outcome: Option<&'static str>,
    /// The outcome where none is given: the call's own, which an analysis had changed, or that of its group.
    outcome_else: &'static str,
    sentiment: Option<&'static str>,
    /// Model and voice.
    spoken_with: Option<(&'a str, &'a str)>,
    duration_ms: Option<i64>,
    cost_microusd: Option<i64>,
}

/// Model and voice of the group that a call is in, as an expression.
const AS_BEFORE: (&str, &str) = ("g.model", "g.voice");

/// Which of the two groups a call counts in.
#[derive(Clone, Copy)]
enum Kind {
    /// The group it is in.
    Own,
    /// The wide one, of any assistant, model and voice.
    Wide,
}

impl Kind {
    /// The group of this kind that agrees with the group of the call `c` in all but these; expressions over `c` and
    /// its group `g`. `spoken_with` is model and voice.
    fn of_call(self, outcome: &str, sentiment: &str, spoken_with: (&str, &str)) -> String {
        let (assistant, model, voice) = match self {
            Self::Own => ("g.assistant_id", spoken_with.0, spoken_with.1),
            Self::Wide => ("''", "''", "''"),
        };
        format!(
            "(SELECT other.id FROM call_groups AS g JOIN call_groups AS other ON other.workspace_id = g.workspace_id
             AND other.assistant_id = {assistant} AND other.source = g.source AND other.model = {model}
             AND other.voice = {voice} AND other.outcome = {outcome} AND other.sentiment = {sentiment} WHERE g.id = c.group_id)"
        )
    }
}

impl Change<'_> {
    /// Makes the groups, moves the sums from the old ones to them, and forgets sums of nothing.
    fn statements(&self) -> Vec<Statement> {
        let condition = self.condition;
        let outcome = &format!("COALESCE(?3, {})", self.outcome_else);
        let sentiment = "COALESCE(?4, g.sentiment)";
        let (model, voice) = if self.spoken_with.is_some() { ("?5", "?6") } else { AS_BEFORE };
        let mut groups = sql!(
            format!(
                "INSERT INTO call_groups (workspace_id, assistant_id, source, model, voice, outcome, sentiment)
                 WITH call AS MATERIALIZED (SELECT g.workspace_id AS workspace_id, g.assistant_id AS assistant_id, g.source AS source,
                   {model} AS model, {voice} AS voice, {outcome} AS outcome, {sentiment} AS sentiment
                   FROM calls AS c JOIN call_groups AS g ON g.id = c.group_id WHERE c.workspace_id = ?1 AND c.id = ?2 AND {condition})
                 SELECT workspace_id, assistant_id, source, model, voice, outcome, sentiment FROM call
                 UNION ALL SELECT workspace_id, '', source, '', '', outcome, sentiment FROM call WHERE true ON CONFLICT DO NOTHING"
            ),
            self.workspace_id,
            self.id,
            self.outcome,
            self.sentiment
        );
        let old_wide = Kind::Wide.of_call("g.outcome", "g.sentiment", AS_BEFORE);
        let new_wide = Kind::Wide.of_call(outcome, sentiment, AS_BEFORE);
        let spoken_with = if self.spoken_with.is_some() { ("?7", "?8") } else { AS_BEFORE };
        let new_group = Kind::Own.of_call(outcome, sentiment, spoken_with);
        let mut sums = sql!(
            format!(
                "INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd)
                 WITH call AS MATERIALIZED (SELECT workspace_id, started_at, group_id AS old_group, {old_wide} AS old_wide,
                   {new_group} AS new_group, {new_wide} AS new_wide,
                   COALESCE(duration_ms, 0) AS old_duration, COALESCE(CAST(?5 AS INTEGER), duration_ms, 0) AS new_duration,
                   cost_microusd AS old_cost, COALESCE(CAST(?6 AS INTEGER), cost_microusd) AS new_cost
                   FROM calls AS c WHERE c.workspace_id = ?1 AND c.id = ?2 AND {condition}),
                 moved AS (
                   SELECT workspace_id, started_at, old_group AS id, -1 AS calls, -old_duration AS duration_ms, -old_cost AS cost_microusd
                   FROM call
                   UNION ALL SELECT workspace_id, started_at, new_group, 1, new_duration, new_cost FROM call
                   UNION ALL SELECT workspace_id, started_at, old_wide, -1, -old_duration, -old_cost FROM call
                   UNION ALL SELECT workspace_id, started_at, new_wide, 1, new_duration, new_cost FROM call)
                 SELECT workspace_id, id, span.column1, {STARTS_AT}, calls, duration_ms, cost_microusd
                 FROM moved JOIN {SPANS} ON true WHERE true {ADD}"
            ),
            self.workspace_id,
            self.id,
            self.outcome,
            self.sentiment,
            self.duration_ms,
            self.cost_microusd
        );
        if let Some((model, voice)) = self.spoken_with {
            groups.params.extend([model.into(), voice.into()]);
            sums.params.extend([model.into(), voice.into()]);
        }
        // Else every call would leave rows of zeros behind for the groups it passed through.
        let forget = sql!(
            format!(
                "DELETE FROM call_rollups WHERE calls = 0 AND workspace_id = ?1 AND (group_id, span_ms, starts_at) IN
                 (SELECT g.id, span.column1, {STARTS_AT} FROM (
                    SELECT c.group_id AS id, started_at FROM calls AS c WHERE c.workspace_id = ?1 AND c.id = ?2 AND {condition}
                    UNION ALL SELECT {old_wide}, started_at FROM calls AS c WHERE c.workspace_id = ?1 AND c.id = ?2 AND {condition}
                  ) AS g JOIN {SPANS} ON true)"
            ),
            self.workspace_id,
            self.id
        );
        vec![groups, sums, forget]
    }
}
