//! Deletes calls with everything that tells about them: transcript, text index, events, recording, journal, leg, stored
//! responses. Sums no longer count them; runs keep their results.
use crate::base::error::Error;
use crate::base::ids::CallId;
use crate::base::limits::LATE_PRICE_MS;
use crate::ports::statement::{Statement, Value};
use crate::storage::calls::rollup::{ADD, SPANS, STARTS_AT};
use crate::storage::calls::write::regroup::{AS_BEFORE, Kind};
use crate::storage::events::CALL_IN_BODY;
use crate::storage::idempotency::Stored;

/// Which ended calls of the workspace `:ws` to delete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'a> {
    /// This one.
    One(&'a CallId),
    /// Those that ended before a time, the oldest first.
    EndedBefore {
        /// The time, in ms since 1970.
        until_ms: i64,
        /// How many at most.
        most: i64,
    },
}

/// The statements, in their order: each finds the calls anew, so their rows go last. The last statement returns the ids
/// of the deleted calls. A `+` keeps SQLite from reading all rows of the workspace by another index. Blobs of recordings are left to the sweep.
pub(crate) fn erase(which: Which<'_>, now_ms: i64) -> Vec<Statement> {
    let mut statements = sums(which);
    let rows = [
        "DELETE FROM call_index WHERE rowid IN (SELECT seq FROM {gone})",
        "DELETE FROM call_search WHERE rowid IN (SELECT seq FROM {gone})",
        "DELETE FROM call_words WHERE workspace_id = :ws AND seq IN (SELECT seq FROM {gone})",
        "DELETE FROM call_transcripts WHERE workspace_id = :ws AND seq IN (SELECT seq FROM {gone})",
        // A delivery that was never attempted has told nobody anything; the others are history, without what was said.
        "DELETE FROM deliveries WHERE +workspace_id = :ws AND status = 'pending' AND attempts = 0 AND event_id IN {events}",
        "UPDATE deliveries SET status = CASE status WHEN 'pending' THEN 'canceled' ELSE status END, due_at = NULL,
           last_response = NULL WHERE +workspace_id = :ws AND event_id IN {events}",
        "DELETE FROM events WHERE workspace_id = :ws AND id IN {events}",
        "UPDATE runs SET call_id = NULL, last_line = NULL, transcript = '[]' WHERE workspace_id = :ws
           AND id IN (SELECT simulation_run_id FROM {gone})",
        "DELETE FROM conversation_journal WHERE workspace_id = :ws AND conversation_id IN (SELECT id FROM {gone})",
        "DELETE FROM call_inputs WHERE workspace_id = :ws AND call_id IN (SELECT id FROM {gone})",
        "DELETE FROM live_call_rows WHERE workspace_id = :ws AND call_id IN (SELECT id FROM {gone})",
        "DELETE FROM live_call_turns WHERE workspace_id = :ws AND call_id IN (SELECT id FROM {gone})",
        "DELETE FROM live_calls WHERE workspace_id = :ws AND call_id IN (SELECT id FROM {gone})",
        // The blob is gone already.
        "DELETE FROM recordings WHERE workspace_id = :ws AND state <> 'abandoned' AND state = 'deleted' AND due_at IS NULL
           AND call_id IN (SELECT id FROM {gone})",
        "DELETE FROM jobs WHERE +workspace_id = :ws AND +kind = 'live_call' AND subject_id IN (SELECT id FROM {gone})",
        "INSERT INTO search_erasures (workspace_id, merging) SELECT :ws, 0 WHERE EXISTS (SELECT 1 FROM {gone})
           ON CONFLICT DO UPDATE SET merging = 0",
    ];
    statements.extend(rows.map(|sql| statement(which, sql, Vec::new())));
    // Its carrier may still report a price, and its line may still have to be hung up: the sweep deletes the leg.
    statements.push(statement(
        which,
        "UPDATE phone_calls SET delete_at = gone.ended_at + :late, version = version + 1, said = json_set(
             json_remove(said, '$.rejection'), '$.counted',
             json_object('telephony_microusd', gone.telephony_microusd, 'duration_ms', COALESCE(gone.duration_ms, 0)))
           FROM {gone} AS gone WHERE phone_calls.workspace_id = :ws AND phone_calls.call_id = gone.id",
        vec![("late", LATE_PRICE_MS.into())],
    ));
    // The key stays: a repeated request must not place the call again.
    statements.push(statement(
        which,
        "UPDATE idempotency_keys INDEXED BY idempotency_keys_by_id SET status = :status, body = :deleted, etag = NULL
           WHERE workspace_id = :ws AND json_extract(body, '$.id') IN (SELECT +id FROM {gone})",
        response_of_deleted_call(),
    ));
    // A recording that is being written is refused when it is complete; its own deadline stays.
    statements.push(statement(
        which,
        "UPDATE recordings SET state = 'abandoned', peaks = NULL, due_at = CASE state WHEN 'ready' THEN :now ELSE due_at END
           WHERE workspace_id = :ws AND state <> 'abandoned' AND call_id IN (SELECT id FROM {gone})",
        vec![("now", now_ms.into())],
    ));
    let calls =
        "DELETE FROM calls WHERE +workspace_id = :ws AND seq IN (SELECT seq FROM {gone}) RETURNING id";
    statements.push(statement(which, calls, Vec::new()));
    statements
}

/// What a repeated request gets whose response was a call that is deleted.
fn response_of_deleted_call() -> Vec<(&'static str, Value)> {
    let error = Error::not_found("call");
    vec![("status", i64::from(error.code.status()).into()), ("deleted", Stored::failure_body(&error).into())]
}

/// Takes the calls out of the sums of their two groups, and deletes sums without calls.
fn sums(which: Which<'_>) -> Vec<Statement> {
    let wide = Kind::Wide.of_call("g.outcome", "g.sentiment", AS_BEFORE);
    let subtract = format!(
        "INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd)
         WITH gone AS MATERIALIZED (SELECT c.group_id AS own, {wide} AS wide, started_at, COALESCE(duration_ms, 0) AS duration_ms,
           cost_microusd FROM {{gone}} AS c),
         counted AS (SELECT own AS id, started_at, duration_ms, cost_microusd FROM gone
           UNION ALL SELECT wide, started_at, duration_ms, cost_microusd FROM gone)
         SELECT :ws, id, span.column1, {STARTS_AT} AS starts_at, -COUNT(*), -SUM(duration_ms), -SUM(cost_microusd)
         FROM counted JOIN {SPANS} ON true WHERE true GROUP BY id, span.column1, {STARTS_AT} {ADD}"
    );
    let forget = format!(
        "DELETE FROM call_rollups WHERE calls = 0 AND workspace_id = :ws AND (group_id, span_ms, starts_at) IN
         (SELECT counted.id, span.column1, {STARTS_AT} FROM (
            SELECT c.group_id AS id, started_at FROM {{gone}} AS c
            UNION ALL SELECT {wide}, started_at FROM {{gone}} AS c
          ) AS counted JOIN {SPANS} ON true)"
    );
    vec![statement(which, &subtract, Vec::new()), statement(which, &forget, Vec::new())]
}

/// `{gone}` in the text is the table of the calls, `{events}` the list of their events' ids.
fn statement(which: Which<'_>, sql: &str, more: Vec<(&'static str, Value)>) -> Statement {
    let columns = "seq, id, group_id, started_at, ended_at, duration_ms, cost_microusd, telephony_microusd, simulation_run_id";
    let (gone, mut params): (String, Vec<(&'static str, Value)>) = match which {
        Which::One(id) => (
            format!(
                "(SELECT {columns} FROM calls WHERE workspace_id = :ws AND id = :call AND status = 'ended')"
            ),
            vec![("call", id.into())],
        ),
        Which::EndedBefore { until_ms, most } => (
            format!(
                "(SELECT {columns} FROM calls WHERE workspace_id = :ws AND ended_at < :until AND status = 'ended'
                 ORDER BY ended_at, seq LIMIT CAST(:most AS INTEGER))"
            ),
            vec![("until", until_ms.into()), ("most", most.into())],
        ),
    };
    params.extend(more);
    let events = format!(
        "(SELECT id FROM events WHERE workspace_id = :ws AND call_id <> '' AND call_id IN (SELECT id FROM {{gone}})
          UNION ALL SELECT id FROM events WHERE workspace_id = :ws AND call_id IS NULL
          AND {CALL_IN_BODY} IN (SELECT id FROM {{gone}}))"
    );
    Statement::named(&sql.replace("{events}", &events).replace("{gone}", &gone), params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id;
    use crate::ports::statement::only_removes;

    #[test]
    fn deleting_is_written_on_a_full_disk() {
        assert!(only_removes(&erase(Which::One(&CallId::from_stored("call_1")), 0)));
        assert!(only_removes(&erase(Which::EndedBefore { until_ms: 0, most: 1 }, 0)));
    }
}
