//! Deletes calls with everything that tells about them: transcript, text index, events, recording, journal, leg, stored
//! responses. Sums no longer count them; runs keep their results.
use crate::base::error::{Code, Error};
use crate::base::ids::CallId;
use crate::base::limits::{ARCHIVE_REMOVED_AFTER_MS, LATE_PRICE_MS};
use crate::ports::statement::{Statement, Value};
use crate::sql;
use crate::storage::archives;
use crate::storage::calls::rollup::{ADD, SPANS, STARTS_AT};
use crate::storage::calls::write::regroup::{AS_BEFORE, Kind};
use crate::storage::events::{self, CALL_IN_BODY};
use crate::storage::idempotency;
use crate::storage::moves::lock::STAYS;
use crate::storage::named_snapshots;
use crate::storage::parts::CALL_SIZE;

/// Which ended calls of the workspace `:ws` to delete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'a> {
    /// This one.
    One(&'a CallId),
    /// Those with these ids, a JSON array.
    Listed(&'a str),
}

/// Reads the ids and sizes of the calls of workspace `:ws` that ended before a time, the oldest first.
pub(crate) fn ended_before(until_ms: i64, most: i64) -> Statement {
    sql!(
        format!(
            "SELECT {CALL_SIZE} FROM calls AS c WHERE c.workspace_id = :ws AND c.ended_at < :until AND c.status = 'ended'
             ORDER BY c.ended_at, c.seq LIMIT CAST(:most AS INTEGER)"
        ),
        until = until_ms,
        most = most
    )
}

/// The statements, in their order: each finds the calls anew, so their rows go last. The last statement returns the ids
/// of the deleted calls. A `+` keeps SQLite from reading all rows of the workspace by another index. Blobs of recordings and of archived transcripts are left to the sweep.
pub(crate) fn erase(which: Which<'_>, now_ms: i64) -> Vec<Statement> {
    let mut statements = sums(which);
    statements.extend(events::forget("{events}").map(|sql| statement(which, &sql, Vec::new())));
    let due = vec![("due", (now_ms + ARCHIVE_REMOVED_AFTER_MS).into())];
    statements.push(statement(which, archives::mark_for_removal(), due));
    statements.extend(forget_runs_values(which));
    let rows = [
        "DELETE FROM call_index WHERE rowid IN (SELECT seq FROM {gone})",
        "DELETE FROM call_search WHERE rowid IN (SELECT seq FROM {gone})",
        "DELETE FROM call_words WHERE workspace_id = :ws AND seq IN (SELECT seq FROM {gone})",
        "DELETE FROM call_transcripts WHERE workspace_id = :ws AND seq IN (SELECT seq FROM {gone})",
        "DELETE FROM call_metadata WHERE +workspace_id = :ws AND seq IN (SELECT seq FROM {gone})",
        "DELETE FROM event_log WHERE workspace_id = :ws AND call_id IN (SELECT id FROM {gone})",
        "UPDATE runs SET call_id = NULL, last_line = NULL, transcript = '[]', variables = '{}', metadata = '{}' WHERE workspace_id = :ws
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
    statements.push(statement(which, LEFT_GROUPS, Vec::new()));
    let others = "c.id NOT IN (SELECT id FROM {gone})";
    let unnamed = named_snapshots::release("SELECT snapshot FROM {gone}", None, "1", others);
    statements.extend(unnamed.map(|sql| statement(which, &sql, Vec::new())));
    // Its carrier may still report a price, and its line may still have to be hung up: the sweep deletes the leg.
    statements.push(statement(
        which,
        "UPDATE phone_calls SET delete_at = gone.ended_at + :late, version = version + 1, said = json_set(
             json_remove(said, '$.rejection'), '$.counted',
             json_object('telephony_microusd', gone.telephony_microusd, 'duration_ms', COALESCE(gone.duration_ms, 0)))
           FROM {gone} AS gone WHERE phone_calls.workspace_id = :ws AND phone_calls.call_id = gone.id",
        vec![("late", LATE_PRICE_MS.into())],
    ));
    let (responses, values) = idempotency::replace_deleted(
        &Error::not_found("call"),
        "idempotency_keys_by_id",
        "id",
        "SELECT +id FROM {gone}",
    );
    statements.push(statement(which, &responses, values));
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

/// What was given with the start of the calls' runs (`variables`, `metadata`) leaves their snapshots and the stored responses to
/// their starts. A snapshot stays as long as another run that has its values, or another call, has it.
fn forget_runs_values(which: Which<'_>) -> Vec<Statement> {
    const OF_CALLS: &str = "+workspace_id = :ws AND id IN (SELECT simulation_run_id FROM {gone})";
    let with_variables =
        |column: &str| format!("SELECT {column} FROM runs WHERE {OF_CALLS} AND variables <> '{{}}'");
    let stays = "r.id NOT IN (SELECT simulation_run_id FROM {gone} WHERE simulation_run_id IS NOT NULL)
         AND NOT (r.status IN ('completed', 'error') AND r.call_id IS NULL AND r.variables = '{}')";
    let released = named_snapshots::release(
        &with_variables("snapshot"),
        Some(&with_variables("simulation_snapshot")),
        stays,
        "c.id NOT IN (SELECT id FROM {gone})",
    );
    let mut statements: Vec<Statement> =
        released.iter().map(|sql| statement(which, sql, Vec::new())).collect();
    let unnamed = format!("UPDATE runs SET snapshot = NULL WHERE {OF_CALLS} AND variables <> '{{}}'");
    statements.push(statement(which, &unnamed, Vec::new()));
    let error = Error::new(
        Code::NotFound,
        "The call of a run of this start was deleted, and the stored answer with it. Read the runs (GET /simulations/runs), or start again with another Idempotency-Key.",
    );
    for (index, field, column) in
        [("idempotency_keys_by_id", "id", "+id"), ("idempotency_keys_by_batch", "batch_id", "+batch_id")]
    {
        let with_values = format!(
            "SELECT {column} FROM runs WHERE {OF_CALLS} AND (variables <> '{{}}' OR metadata <> '{{}}')"
        );
        let (responses, values) = idempotency::replace_deleted(&error, index, field, &with_values);
        statements.push(statement(which, &responses, values));
    }
    statements
}

/// Marks the groups of the calls' assistants that no other call is in. The calls refer to them until the last statement, so the
/// sweep deletes them. A wide group is for any assistant.
const LEFT_GROUPS: &str = "UPDATE call_groups SET is_left = 1 WHERE workspace_id = :ws AND assistant_id <> '' AND is_left = 0
     AND (assistant_id, source) IN (SELECT g.assistant_id, g.source FROM call_groups AS g WHERE g.id IN (SELECT group_id FROM {gone}))
     AND NOT EXISTS (SELECT 1 FROM calls AS c WHERE c.group_id = call_groups.id AND c.id NOT IN (SELECT id FROM {gone}))";

/// Deletes up to `most` groups that deleted calls have left, unless other calls have come into them.
pub(crate) fn delete_left_groups(most: i64) -> [Statement; 2] {
    let left = format!(
        "SELECT id FROM call_groups INDEXED BY call_groups_left WHERE is_left = 1 AND {STAYS} ORDER BY id LIMIT CAST(:most AS INTEGER)"
    );
    const IS_USED: &str = "(EXISTS (SELECT 1 FROM calls WHERE calls.group_id = call_groups.id)
         OR EXISTS (SELECT 1 FROM call_rollups AS r WHERE r.workspace_id = call_groups.workspace_id AND r.group_id = call_groups.id))";
    [
        sql!(format!("UPDATE call_groups SET is_left = 0 WHERE id IN ({left}) AND {IS_USED}"), most = most),
        sql!(
            format!("DELETE FROM call_groups WHERE id IN ({left}) AND NOT {IS_USED} RETURNING 1 AS gone"),
            most = most
        ),
    ]
}

/// Takes the calls out of the sums of their two groups, and deletes sums without calls. A workspace from another host may lack
/// a wide group.
fn sums(which: Which<'_>) -> Vec<Statement> {
    let wide = Kind::Wide.of_call("g.outcome", "g.sentiment", AS_BEFORE);
    let subtract = format!(
        "INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd)
         WITH gone AS MATERIALIZED (SELECT c.group_id AS own, {wide} AS wide, started_at, COALESCE(duration_ms, 0) AS duration_ms,
           cost_microusd FROM {{gone}} AS c),
         counted AS (SELECT own AS id, started_at, duration_ms, cost_microusd FROM gone
           UNION ALL SELECT wide, started_at, duration_ms, cost_microusd FROM gone WHERE wide IS NOT NULL)
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
    let columns = "seq, id, group_id, started_at, ended_at, duration_ms, cost_microusd, telephony_microusd, simulation_run_id, snapshot";
    let (gone, mut params): (String, Vec<(&'static str, Value)>) = match which {
        Which::One(id) => (
            format!(
                "(SELECT {columns} FROM calls WHERE workspace_id = :ws AND id = :call AND status = 'ended')"
            ),
            vec![("call", id.into())],
        ),
        Which::Listed(ids) => (
            format!(
                "(SELECT {columns} FROM calls WHERE +workspace_id = :ws AND +status = 'ended'
                 AND id IN (SELECT value FROM json_each(:ids)))"
            ),
            vec![("ids", ids.into())],
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
        assert!(only_removes(&erase(Which::Listed("[]"), 0)));
    }
}
