//! Moves a call from one group of the roll-ups to another.
use crate::base::ids::{CallId, WorkspaceId};
use crate::ports::statement::{Statement, Value};
use crate::sql;
use crate::storage::calls::rollup::{ADD, SPANS, STARTS_AT};

/// Moves a call to another group, or changes its sums. `None` keeps the current value.
pub(super) struct Regroup<'a> {
    pub(super) workspace_id: &'a WorkspaceId,
    pub(super) id: &'a CallId,
    /// On the call before the change.
    pub(super) condition: &'static str,
    pub(super) outcome: Option<&'static str>,
    /// The default outcome: the call's own, which an analysis had changed, or that of its group.
    pub(super) outcome_else: &'static str,
    pub(super) sentiment: Option<&'static str>,
    /// Model and voice.
    pub(super) spoken_with: Option<(&'a str, &'a str)>,
    pub(super) duration_ms: Option<i64>,
    pub(super) cost_microusd: Option<i64>,
}

/// Model and voice of the call's current group, as an SQL expression.
pub(super) const AS_BEFORE: (&str, &str) = ("g.model", "g.voice");

/// One of the two groups in which a call counts.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// The narrow group.
    Own,
    /// The wide group, for any assistant, model and voice.
    Wide,
}

impl Kind {
    /// The group of this kind that equals the group of the call `c` in everything but these arguments, which are
    /// expressions over `c` and its group `g`. `spoken_with` is model and voice.
    pub(super) fn of_call(self, outcome: &str, sentiment: &str, spoken_with: (&str, &str)) -> String {
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

impl Regroup<'_> {
    /// Inserts the groups, moves the sums from the old groups to them, and deletes sums without calls.
    pub(super) fn statements(&self) -> Vec<Statement> {
        let condition = self.condition;
        let outcome = &format!("COALESCE(:outcome, {})", self.outcome_else);
        let sentiment = "COALESCE(:sentiment, g.sentiment)";
        let (model, voice) = if self.spoken_with.is_some() { (":model", ":voice") } else { AS_BEFORE };
        let groups = self.statement(
            format!(
                "INSERT INTO call_groups (workspace_id, assistant_id, source, model, voice, outcome, sentiment)
                 WITH call AS MATERIALIZED (SELECT g.workspace_id AS workspace_id, g.assistant_id AS assistant_id, g.source AS source,
                   {model} AS model, {voice} AS voice, {outcome} AS outcome, {sentiment} AS sentiment
                   FROM calls AS c JOIN call_groups AS g ON g.id = c.group_id WHERE c.workspace_id = :ws AND c.id = :call AND {condition})
                 SELECT workspace_id, assistant_id, source, model, voice, outcome, sentiment FROM call
                 UNION ALL SELECT workspace_id, '', source, '', '', outcome, sentiment FROM call WHERE true ON CONFLICT DO NOTHING"
            ),
            Vec::new(),
        );
        let old_wide = Kind::Wide.of_call("g.outcome", "g.sentiment", AS_BEFORE);
        let new_wide = Kind::Wide.of_call(outcome, sentiment, AS_BEFORE);
        let new_group = Kind::Own.of_call(outcome, sentiment, (model, voice));
        let sums = self.statement(
            format!(
                "INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd)
                 WITH call AS MATERIALIZED (SELECT workspace_id, started_at, group_id AS old_group, {old_wide} AS old_wide,
                   {new_group} AS new_group, {new_wide} AS new_wide,
                   COALESCE(duration_ms, 0) AS old_duration, COALESCE(CAST(:duration AS INTEGER), duration_ms, 0) AS new_duration,
                   cost_microusd AS old_cost, COALESCE(CAST(:cost AS INTEGER), cost_microusd) AS new_cost
                   FROM calls AS c WHERE c.workspace_id = :ws AND c.id = :call AND {condition}),
                 moved AS (
                   SELECT workspace_id, started_at, old_group AS id, -1 AS calls, -old_duration AS duration_ms, -old_cost AS cost_microusd
                   FROM call
                   UNION ALL SELECT workspace_id, started_at, new_group, 1, new_duration, new_cost FROM call
                   UNION ALL SELECT workspace_id, started_at, old_wide, -1, -old_duration, -old_cost FROM call
                   UNION ALL SELECT workspace_id, started_at, new_wide, 1, new_duration, new_cost FROM call)
                 SELECT workspace_id, id, span.column1, {STARTS_AT}, calls, duration_ms, cost_microusd
                 FROM moved JOIN {SPANS} ON true WHERE true {ADD}"
            ),
            vec![("duration", self.duration_ms.into()), ("cost", self.cost_microusd.into())],
        );
        // Otherwise every call would leave rows of zeros behind in its earlier groups.
        let forget = sql!(
            format!(
                "DELETE FROM call_rollups WHERE calls = 0 AND workspace_id = :ws AND (group_id, span_ms, starts_at) IN
                 (SELECT g.id, span.column1, {STARTS_AT} FROM (
                    SELECT c.group_id AS id, started_at FROM calls AS c WHERE c.workspace_id = :ws AND c.id = :call AND {condition}
                    UNION ALL SELECT {old_wide}, started_at FROM calls AS c WHERE c.workspace_id = :ws AND c.id = :call AND {condition}
                  ) AS g JOIN {SPANS} ON true)"
            ),
            call = self.id,
        );
        vec![groups, sums, forget.in_workspace(self.workspace_id)]
    }

    /// A statement that finds both the old group and the new one.
    fn statement(&self, sql: String, more: Vec<(&'static str, Value)>) -> Statement {
        let mut params: Vec<(&'static str, Value)> = vec![
            ("call", self.id.into()),
            ("outcome", self.outcome.into()),
            ("sentiment", self.sentiment.into()),
        ];
        if let Some((model, voice)) = self.spoken_with {
            params.extend([("model", model.into()), ("voice", voice.into())]);
        }
        params.extend(more);
        Statement::named(&sql, params).in_workspace(self.workspace_id)
    }
}
