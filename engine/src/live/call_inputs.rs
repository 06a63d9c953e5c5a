//! The logs of calls' inputs ([`input_log`](crate::conversation::input_log)), as they are stored: one entry a line, cut into pieces
//! that fit into a row. Written with the journal, and kept with the call.

use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::STATEMENT_LIST_BYTES_MAX;
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement};
use crate::sql;

/// Adds entries to the log of a call that has not ended, after those before `place`.
pub(crate) fn add(
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    (place, entries): (usize, &[String]),
) -> Vec<Statement> {
    let text: String = entries.iter().flat_map(|entry| [entry, "\n"]).collect();
    let piece = |(nth, entries): (usize, &str)| {
        sql!(
            "INSERT INTO call_inputs (workspace_id, call_id, place, piece, entries)
             SELECT :workspace_id, :call_id, :place, :piece, :entries
             WHERE EXISTS (SELECT 1 FROM live_calls WHERE workspace_id = :workspace_id AND call_id = :call_id)",
            workspace_id = workspace_id,
            call_id = call_id,
            place = i64::try_from(place).unwrap_or(i64::MAX),
            piece = i64::try_from(nth).unwrap_or(i64::MAX),
            entries = entries
        )
    };
    pieces(&text).into_iter().enumerate().map(piece).collect()
}

/// Cuts a text into pieces that fit into a row.
fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(STATEMENT_LIST_BYTES_MAX));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// Reads the log of a call: a statement for [`read`].
#[must_use]
pub fn select(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
    sql!(
        "SELECT entries FROM call_inputs WHERE workspace_id = :workspace_id AND call_id = :call_id ORDER BY place, piece",
        workspace_id = workspace_id,
        call_id = call_id
    )
}

/// The entries in the rows of [`select`].
///
/// # Errors
/// A row has no text.
pub fn read(rows: &Rows) -> Result<Vec<String>, DatabaseError> {
    let mut text = String::new();
    for row in rows.iter() {
        text.push_str(&row.text("entries")?);
    }
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id;

    #[test]
    fn a_long_entry_is_stored_in_pieces_that_fit() {
        let entries = ["a".repeat(10), "ü".repeat(STATEMENT_LIST_BYTES_MAX), "b".to_owned()];
        let (workspace, call) = (WorkspaceId::from_stored("ws_1"), CallId::from_stored("call_1"));
        assert_eq!(add(&workspace, &call, (7, &entries)).len(), 3);
        assert!(add(&workspace, &call, (7, &[])).is_empty());
        let text = entries.join("\n");
        assert_eq!(pieces(&text).concat(), text);
        assert!(pieces(&text).iter().all(|piece| piece.len() <= STATEMENT_LIST_BYTES_MAX));
    }
}
