//! The journal of a live conversation, from which its call can be ended after a crash, and which whoever follows the call
//! reads: each entry has the number of the change that wrote it last.
use serde_json::{Value, json};

use crate::base::ids::{CallId, TestTokenId, WorkspaceId};
use crate::base::limits::{CALL_TURNS_MAX, STATEMENT_LIST_BYTES_MAX};
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
    /// The times of the spoken turns.
    pub turns: Vec<TurnTimes>,
}

/// Creates the journal of a call, unless there is one.
pub fn open(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
    sql!(
        "INSERT INTO live_calls (call_id, workspace_id, offset_ms, spent) VALUES (:call_id, :workspace_id, 0, :spent)
         ON CONFLICT DO NOTHING",
        workspace_id = workspace_id,
        call_id = call_id,
        spent = json!(Cost::default()).to_string()
    )
}

/// Creates the journal of a call that was opened with a test link that may start again. [`replace_of_link`] comes before.
pub fn open_of_link(workspace_id: &WorkspaceId, call_id: &CallId, link_id: &TestTokenId) -> Statement {
    sql!(
        "INSERT INTO live_calls (call_id, workspace_id, offset_ms, spent, link_id) VALUES (:call_id, :workspace_id, 0, :spent, :link_id)",
        workspace_id = workspace_id,
        call_id = call_id,
        spent = json!(Cost::default()).to_string(),
        link_id = link_id
    )
}

/// Has the conversation that a test link has open end: it sees that at its next look. Returns its id.
pub fn replace_of_link(workspace_id: &WorkspaceId, link_id: &TestTokenId) -> Statement {
    sql!(
        "UPDATE live_calls SET link_id = NULL, is_replaced = 1 WHERE workspace_id = :workspace_id AND link_id = :link_id
         RETURNING call_id",
        workspace_id = workspace_id,
        link_id = link_id
    )
}

/// Finds a row if the conversation of a call was replaced.
pub fn replaced(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
    sql!(
        "SELECT 1 AS replaced FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id AND is_replaced = 1",
        workspace_id = workspace_id,
        call_id = call_id
    )
}

/// Adds rows and turns and updates the progress.
pub fn save(
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    offset_ms: i64,
    spent: Cost,
    rows: &[TranscriptRow],
    turns: &[TurnTimes],
) -> Vec<Statement> {
    let mut statements = vec![sql!(
        "UPDATE live_calls SET offset_ms = :offset_ms, spent = :spent WHERE workspace_id = :workspace_id AND call_id = :call_id",
        workspace_id = workspace_id,
        call_id = call_id,
        offset_ms = offset_ms,
        spent = json!(spent).to_string()
    )];
    statements.extend(save_rows(workspace_id, call_id, rows));
    statements.extend(Entries::Turns.save(workspace_id, call_id, turns.iter().map(|turn| json!(turn))));
    statements
}

/// Inserts or replaces rows: of a line being spoken, the part that was heard. Does nothing if the call has ended meanwhile.
pub fn save_rows(workspace_id: &WorkspaceId, call_id: &CallId, rows: &[TranscriptRow]) -> Vec<Statement> {
    Entries::Rows.save(workspace_id, call_id, rows.iter().map(|row| json!(row)))
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

/// What a journal keeps entry by entry.
#[derive(Clone, Copy)]
enum Entries {
    /// Rows of the transcript, by their index.
    Rows,
    /// Turns, by the end of the caller's speech: the first of many are dropped, so their index changes.
    Turns,
}

impl Entries {
    const fn table(self) -> &'static str {
        match self {
            Self::Rows => "live_call_rows",
            Self::Turns => "live_call_turns",
        }
    }

    const fn place(self) -> &'static str {
        match self {
            Self::Rows => "$.index",
            Self::Turns => "$.end_of_speech_ms",
        }
    }

    /// Inserts or replaces entries. Each that is new or differs gets the number of a change of its own.
    fn save(
        self,
        workspace_id: &WorkspaceId,
        call_id: &CallId,
        entries: impl Iterator<Item = Value>,
    ) -> Vec<Statement> {
        let (table, place) = (self.table(), self.place());
        let save = |list: Vec<String>| {
            let insert = sql!(
                format!(
                    "INSERT INTO {table} (workspace_id, call_id, place, content, change)
                     SELECT l.workspace_id, l.call_id, json_extract(value, '{place}'), value, l.changes + 1 + key
                     FROM json_each(:entries) CROSS JOIN live_calls AS l
                     WHERE l.workspace_id = :workspace_id AND l.call_id = :call_id
                     ON CONFLICT DO UPDATE SET content = excluded.content, change = excluded.change
                     WHERE content <> excluded.content"
                ),
                workspace_id = workspace_id,
                call_id = call_id,
                entries = json!(list).to_string()
            );
            let count = sql!(
                "UPDATE live_calls SET changes = changes + CAST(:count AS INTEGER)
                 WHERE workspace_id = :workspace_id AND call_id = :call_id",
                workspace_id = workspace_id,
                call_id = call_id,
                count = i64::try_from(list.len()).unwrap_or(i64::MAX)
            );
            [insert, count]
        };
        lists(entries.map(|entry| entry.to_string())).into_iter().flat_map(save).collect()
    }

    /// The entries, in their order.
    fn select(self, workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
        let table = self.table();
        sql!(
            format!(
                "SELECT content FROM {table} WHERE workspace_id = :workspace_id AND call_id = :call_id ORDER BY place"
            ),
            workspace_id = workspace_id,
            call_id = call_id
        )
    }

    fn delete(self, workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
        let table = self.table();
        sql!(
            format!("DELETE FROM {table} WHERE workspace_id = :workspace_id AND call_id = :call_id"),
            workspace_id = workspace_id,
            call_id = call_id
        )
    }
}

/// Reads the journal: three statements for [`read`].
pub fn select(workspace_id: &WorkspaceId, call_id: &CallId) -> [Statement; 3] {
    [
        sql!(
            "SELECT offset_ms, spent FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id",
            workspace_id = workspace_id,
            call_id = call_id
        ),
        Entries::Rows.select(workspace_id, call_id),
        Entries::Turns.select(workspace_id, call_id),
    ]
}

/// Reads the rows of [`select`].
pub fn read(live: &Rows, rows: &Rows, turns: &Rows) -> Result<CallProgress, DatabaseError> {
    let Some(live) = live.first() else {
        return Ok(CallProgress::default());
    };
    let mut transcript: Vec<TranscriptRow> =
        rows.iter().map(|row| row.json("content")).collect::<Result<_, _>>()?;
    // Whatever was being said was cut off when the process died.
    for row in transcript.iter_mut().filter(|row| row.in_progress) {
        (row.in_progress, row.interrupted) = (false, true);
    }
    let mut turns: Vec<TurnTimes> = turns.iter().map(|row| row.json("content")).collect::<Result<_, _>>()?;
    turns.drain(..turns.len().saturating_sub(CALL_TURNS_MAX));
    // A line being spoken is written more often than the rest.
    let last_row_ms = transcript.iter().map(|row| row.end_ms).max().unwrap_or(0);
    let offset_ms = live.integer("offset_ms")?.max(last_row_ms);
    Ok(CallProgress { offset_ms, spent: live.json("spent")?, transcript, turns })
}

/// Deletes the journal of an ended call, which contains everything in it.
pub fn delete(workspace_id: &WorkspaceId, call_id: &CallId) -> [Statement; 3] {
    [
        Entries::Rows.delete(workspace_id, call_id),
        Entries::Turns.delete(workspace_id, call_id),
        sql!(
            "DELETE FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id",
            workspace_id = workspace_id,
            call_id = call_id
        ),
    ]
}
