//! The log of a workspace's events: what happened to what, without the bodies. An entry is written together with the change
//! that it tells about, is kept as long as deliveries are, and goes with the call or the run that it tells
//! about.
use crate::base::ids::{EventId, WorkspaceId};
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::events::{About, forget};
use crate::storage::moves::lock::STAYS;

/// The entry.
pub(super) fn insert(id: &EventId, workspace_id: &WorkspaceId, about: About<'_>, now_ms: i64) -> Statement {
    sql!(
        "INSERT INTO event_log (id, workspace_id, type, subject_id, call_id, created_at)
         VALUES (:id, :ws, :kind, :subject, :call_id, :now)",
        id = id,
        kind = about.kind.as_str(),
        subject = about.subject_id,
        call_id = about.call_id,
        now = now_ms
    )
    .in_workspace(workspace_id)
}

/// The texts of statements that delete the events of workspace `:ws` that tell about runs, with what is on its way to webhooks;
/// `runs` is an SQL list of their ids.
pub(crate) fn delete_of_runs(runs: &str) -> impl Iterator<Item = String> {
    // The condition is that of the index, which has no entries of calls.
    let entries = format!(
        "FROM event_log WHERE workspace_id = :ws AND call_id IS NOT subject_id AND subject_id IN ({runs})"
    );
    let events = forget(&format!("(SELECT id {entries})"));
    events.into_iter().chain([format!("DELETE {entries}")])
}

/// Deletes up to `most` entries whose ids sort before `bound`; returns a row for each.
pub(crate) fn delete_before(bound: &str, most: i64) -> Statement {
    sql!(
        format!(
            "DELETE FROM event_log WHERE id IN (
               SELECT id FROM event_log WHERE id < :bound AND {STAYS} ORDER BY id LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone"
        ),
        bound = bound,
        most = most
    )
}
