//! The logs of calls' inputs ([`input_log`](crate::conversation::input_log)), as they are stored: some entries in each row,
//! one a line.

use super::call_journal::lists;
use crate::base::ids::{CallId, WorkspaceId};
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement};
use crate::sql;

/// Adds entries to the log of a call that has not ended, after those before `place`.
pub(crate) fn add(
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    (mut place, entries): (usize, &[String]),
) -> Vec<Statement> {
    let mut statements = Vec::new();
    for list in lists(entries.iter().cloned()) {
        statements.push(sql!(
            "INSERT INTO call_inputs (workspace_id, call_id, place, entries) SELECT :workspace_id, :call_id, :place, :entries
             WHERE EXISTS (SELECT 1 FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id)",
            workspace_id = workspace_id,
            call_id = call_id,
            place = i64::try_from(place).unwrap_or(i64::MAX),
            entries = list.join("\n")
        ));
        place += list.len();
    }
    statements
}

/// Reads the log of a call: a statement for [`read`].
#[must_use]
pub fn select(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
    sql!(
        "SELECT entries FROM call_inputs WHERE workspace_id = :workspace_id AND call_id = :call_id ORDER BY place",
        workspace_id = workspace_id,
        call_id = call_id
    )
}

/// The entries in the rows of [`select`].
///
/// # Errors
/// A row that is no list.
pub fn read(rows: &Rows) -> Result<Vec<String>, DatabaseError> {
    let mut entries = Vec::new();
    for row in rows.iter() {
        entries.extend(row.text("entries")?.lines().map(str::to_owned));
    }
    Ok(entries)
}
