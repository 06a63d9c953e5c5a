//! The journal of a live conversation, from which its call can be ended after a crash.
use serde_json::json;

use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::STATEMENT_LIST_BYTES_MAX;
use crate::conversation::transcript::TranscriptRow;
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement};
use crate::speech::turn_times::TurnTimes;
use crate::sql;

use crate::storage::cost::Cost;

/// The progress of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallProgress {
    /// The time of the latest entry, in ms from the start.
    pub offset_ms: i64,
    /// The cost of the models so far.
    pub spent: Cost,
    /// The transcript so far.
    pub transcript: Vec<TranscriptRow>,
    /// The times of the spoken turns. The journal does not have them: they are lost with the process.
    pub turns: Vec<TurnTimes>,
}

/// Creates the journal of a call.
pub fn open(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
    sql!(
        "INSERT INTO live_calls (call_id, workspace_id, offset_ms, spent) VALUES (:call_id, :workspace_id, 0, :spent)",
        workspace_id = workspace_id,
        call_id = call_id,
        spent = json!(Cost::default()).to_string()
    )
}

/// Adds rows and updates the progress.
pub fn save(
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    offset_ms: i64,
    spent: Cost,
    rows: &[TranscriptRow],
) -> Vec<Statement> {
    let mut statements = vec![sql!(
        "UPDATE live_calls SET offset_ms = :offset_ms, spent = :spent WHERE workspace_id = :workspace_id AND call_id = :call_id",
        workspace_id = workspace_id,
        call_id = call_id,
        offset_ms = offset_ms,
        spent = json!(spent).to_string()
    )];
    statements.extend(save_rows(workspace_id, call_id, rows));
    statements
}

/// Inserts or replaces rows, each as it would be if the process died now: of a line being spoken, the part that was
/// heard. Does nothing if the call has ended meanwhile.
pub fn save_rows(workspace_id: &WorkspaceId, call_id: &CallId, rows: &[TranscriptRow]) -> Vec<Statement> {
    let contents = rows.iter().map(|row| json!(row).to_string());
    lists(contents).iter().map(|list| insert(workspace_id, call_id, list)).collect()
}

/// Splits entries into lists that fit into one statement.
pub(crate) fn lists(entries: impl IntoIterator<Item = String>) -> Vec<Vec<String>> {
    let mut lists: Vec<Vec<String>> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        let is_full = bytes + entry.len() > STATEMENT_LIST_BYTES_MAX;
        bytes = if is_full { entry.len() } else { bytes + entry.len() };
        match lists.last_mut() {
            Some(list) if !is_full => list.push(entry),
            _ => lists.push(vec![entry]),
        }
    }
    lists
}

fn insert(workspace_id: &WorkspaceId, call_id: &CallId, list: &[String]) -> Statement {
    sql!(
        "INSERT INTO live_call_rows (workspace_id, call_id, place, content)
         SELECT :workspace_id, :call_id, json_extract(value, '$.index'), value FROM json_each(:rows)
         WHERE EXISTS (SELECT 1 FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id)
         ON CONFLICT DO UPDATE SET content = excluded.content",
        workspace_id = workspace_id,
        call_id = call_id,
        rows = json!(list).to_string()
    )
}

/// Reads the journal: two statements for [`read`].
pub fn select(workspace_id: &WorkspaceId, call_id: &CallId) -> [Statement; 2] {
    [
        sql!(
            "SELECT offset_ms, spent FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id",
            workspace_id = workspace_id,
            call_id = call_id
        ),
        sql!(
            "SELECT content FROM live_call_rows WHERE workspace_id = :workspace_id AND call_id = :call_id ORDER BY place",
            workspace_id = workspace_id,
            call_id = call_id
        ),
    ]
}

/// Reads the rows of [`select`].
pub fn read(live: &Rows, rows: &Rows) -> Result<CallProgress, DatabaseError> {
    let Some(live) = live.first() else {
        return Ok(CallProgress::default());
    };
    let transcript: Vec<TranscriptRow> =
        rows.iter().map(|row| row.json("content")).collect::<Result<_, _>>()?;
    // A line being spoken is written more often than the rest.
    let last_row_ms = transcript.iter().map(|row| row.end_ms).max().unwrap_or(0);
    let offset_ms = live.integer("offset_ms")?.max(last_row_ms);
    Ok(CallProgress { offset_ms, spent: live.json("spent")?, transcript, turns: Vec::new() })
}

/// Deletes the journal of an ended call, which contains everything in it.
pub fn delete(workspace_id: &WorkspaceId, call_id: &CallId) -> [Statement; 2] {
    [
        sql!(
            "DELETE FROM live_call_rows WHERE workspace_id = :workspace_id AND call_id = :call_id",
            workspace_id = workspace_id,
            call_id = call_id
        ),
        sql!(
            "DELETE FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id",
            workspace_id = workspace_id,
            call_id = call_id
        ),
    ]
}
