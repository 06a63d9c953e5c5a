//! What a live conversation has come to so far, kept so that a process that dies leaves the truth.
use serde_json::json;

use crate::base::limits::STATEMENT_LIST_BYTES_MAX;
use crate::conversation::transcript::TranscriptRow;
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement};
use crate::sql;

use crate::storage::cost::Cost;

/// How far a conversation got.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SoFar {
    /// The latest time it had heard of, in ms from its start.
    pub offset_ms: i64,
    /// What its models had cost.
    pub spent: Cost,
    /// What was said and done.
    pub transcript: Vec<TranscriptRow>,
}

/// The journal of a call begins.
pub fn open(workspace_id: &str, call_id: &str) -> Statement {
    sql!(
        "INSERT INTO live_calls (call_id, workspace_id, offset_ms, spent) VALUES (:call_id, :workspace_id, 0, :spent)",
        workspace_id = workspace_id,
        call_id = call_id,
        spent = json!(Cost::default()).to_string()
    )
}

/// Adds rows to it and tells how far the conversation is.
pub fn save(
    workspace_id: &str,
    call_id: &str,
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
    let contents = rows.iter().map(|row| json!(row).to_string());
    statements.extend(lists(contents).iter().map(|list| insert(workspace_id, call_id, list)));
    statements
}

/// As many entries of a journal as one statement may hold, again and again.
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

/// Each row has its place. One that is there is written anew: what was heard of a line may have come to be known since.
fn insert(workspace_id: &str, call_id: &str, list: &[String]) -> Statement {
    sql!(
        "INSERT INTO live_call_rows (workspace_id, call_id, place, content)
         SELECT :workspace_id, :call_id, json_extract(value, '$.index'), value FROM json_each(:rows) WHERE true
         ON CONFLICT DO UPDATE SET content = excluded.content",
        workspace_id = workspace_id,
        call_id = call_id,
        rows = json!(list).to_string()
    )
}

/// Reads it: two statements for [`read`].
pub fn select(workspace_id: &str, call_id: &str) -> [Statement; 2] {
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

/// What [`select`] found.
pub fn read(live: &Rows, rows: &Rows) -> Result<SoFar, DatabaseError> {
    let Some(live) = live.first() else {
        return Ok(SoFar::default());
    };
    Ok(SoFar {
        offset_ms: live.integer("offset_ms")?,
        spent: live.json("spent")?,
        transcript: rows.iter().map(|row| row.json("content")).collect::<Result<_, _>>()?,
    })
}

/// The call is over: it holds what the journal held.
pub fn forget(workspace_id: &str, call_id: &str) -> [Statement; 2] {
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
