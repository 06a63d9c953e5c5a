//! Calls of earlier versions, whose entries are in the former index `call_search` until the sweep has moved them. Each
//! call has its entry in one of the two: in the new one as soon as its words are stored.
use serde::Deserialize;
use serde_json::{Value, json};

use super::{heads, index_where as new_index_where, joined, said};
use crate::base::limits::{SEARCH_UPGRADE_BYTES_MAX, SEARCH_UPGRADE_CALLS_MAX};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Rows, Statement};
use crate::sql;
use crate::storage::moves::lock::stays;

/// Replaces the entry in the former index of a call that has not been moved.
pub(super) fn index_where(condition: &str) -> String {
    format!(
        "INSERT OR REPLACE INTO call_search (rowid, workspace, words)
         SELECT c.seq, {}, c.id || ' ' || COALESCE(c.from_number, '') || ' ' || COALESCE(c.to_number, '') || ' '
           || COALESCE(c.user_number, '') || ' ' || COALESCE(c.carrier_call_id, '') || ' '
           || COALESCE(c.simulation_run_id, '') || ' ' || COALESCE(json_extract(c.analysis, '$.summary'), '') || ' '
           || COALESCE((SELECT group_concat(json_extract(value, '$.text'), ' ') FROM json_each(t.content)), '')
         FROM calls AS c LEFT JOIN call_transcripts AS t ON t.seq = c.seq
         WHERE {condition} AND NOT EXISTS (SELECT 1 FROM call_words AS w WHERE w.seq = c.seq)",
        workspace_word("c.workspace_id")
    )
}

/// Like [`super::found`], of the calls that have not been moved; without any, nothing is read. The tokenizer of the former
/// index ignores the `.` in the words.
pub(super) fn found(parameter: &str) -> String {
    format!(
        "SELECT rowid FROM call_search WHERE call_search MATCH CASE WHEN EXISTS (SELECT 1 FROM search_upgrade)
           AND EXISTS (SELECT 1 FROM calls WHERE workspace_id = :ws)
         THEN 'workspace : \"' || {} || '\" AND words : (' || {parameter} || ')' ELSE 'workspace : nobody' END",
        workspace_word(":ws")
    )
}

/// The word that a workspace is indexed by: without the `_`, at which the tokenizer would split it.
fn workspace_word(workspace: &str) -> String {
    format!("replace({workspace}, '_', '')")
}

/// Whether there are calls to move, and the next of them.
pub(crate) fn select() -> [Statement; 2] {
    [
        sql!("SELECT below FROM search_upgrade"),
        sql!(
            "SELECT c.seq AS seq, c.id AS id, c.status AS status, c.from_number AS from_number, c.to_number AS to_number,
               c.user_number AS user_number, c.carrier_call_id AS carrier_call_id, c.simulation_run_id AS run_id,
               c.analysis AS analysis, json_extract(c.analysis, '$.summary') AS summary, t.content AS transcript
             FROM (SELECT seq, SUM(transcript_bytes) OVER (ORDER BY seq DESC) - transcript_bytes AS bytes_before
               FROM (SELECT seq, transcript_bytes FROM calls WHERE seq < (SELECT below FROM search_upgrade)
                 ORDER BY seq DESC LIMIT CAST(:calls AS INTEGER))) AS latest
             JOIN calls AS c ON c.seq = latest.seq LEFT JOIN call_transcripts AS t ON t.seq = c.seq
             WHERE bytes_before < :bytes ORDER BY c.seq DESC",
            calls = SEARCH_UPGRADE_CALLS_MAX,
            bytes = SEARCH_UPGRADE_BYTES_MAX
        ),
    ]
}

/// Moves the selected calls, except those that have changed since: they are selected again.
pub(crate) fn move_entries(below: i64, calls: &Rows) -> Result<Vec<Statement>, DatabaseError> {
    let mut lowest = below;
    let mut words = Vec::new();
    for row in calls.iter() {
        lowest = lowest.min(row.integer("seq")?);
        words.push(words_of(row)?);
    }
    let condition = "c.seq >= :lowest AND c.seq < :below";
    let moved =
        format!("SELECT c.seq FROM calls AS c JOIN call_words AS w ON w.seq = c.seq WHERE {condition}");
    Ok(vec![
        sql!(
            "INSERT INTO call_words (seq, workspace_id, heads, carrier, summary, said)
             SELECT c.seq, c.workspace_id, json_extract(value, '$.heads'), json_extract(value, '$.carrier'),
               json_extract(value, '$.summary'), json_extract(value, '$.said')
             FROM json_each(:words) CROSS JOIN calls AS c ON c.seq = json_extract(value, '$.seq')
             WHERE c.id = json_extract(value, '$.id') AND c.status = json_extract(value, '$.status')
               AND c.carrier_call_id IS json_extract(value, '$.carrier_call_id') AND c.analysis IS json_extract(value, '$.analysis')
             ON CONFLICT DO NOTHING",
            words = Value::from(words).to_string()
        ),
        sql!(new_index_where(condition), lowest = lowest, below = below),
        sql!(format!("DELETE FROM call_search WHERE rowid IN ({moved})"), lowest = lowest, below = below),
        sql!(
            format!(
                "UPDATE search_upgrade SET below = :lowest WHERE below = :below AND NOT EXISTS (
                   SELECT 1 FROM calls AS c WHERE {condition} AND NOT EXISTS (SELECT 1 FROM call_words AS w WHERE w.seq = c.seq))"
            ),
            lowest = lowest,
            below = below
        ),
    ])
}

/// All calls have been moved. What is left of the former index is merged away, as are the words of deleted calls.
pub(crate) fn finish() -> Vec<Statement> {
    vec![
        sql!(format!(
            "INSERT INTO search_erasures (workspace_id, merging) SELECT id, 0 FROM workspaces
             WHERE EXISTS (SELECT 1 FROM search_upgrade) AND {} ORDER BY id LIMIT 1 ON CONFLICT DO UPDATE SET merging = 0",
            stays("id")
        )),
        sql!(
            "DELETE FROM search_upgrade WHERE NOT EXISTS (SELECT 1 FROM calls WHERE seq < below)
             AND (EXISTS (SELECT 1 FROM search_erasures) OR NOT EXISTS (SELECT 1 FROM workspaces))"
        ),
    ]
}

/// The words of a call, and what must not have changed when they are stored.
fn words_of(row: Row<'_>) -> Result<Value, DatabaseError> {
    #[derive(Deserialize)]
    struct Line {
        text: Option<String>,
    }
    let text = |column| row.optional_text(column);
    let others = [text("from_number")?, text("to_number")?, text("user_number")?, text("run_id")?];
    let (id, carrier_call_id) = (row.text("id")?, text("carrier_call_id")?);
    let lines: Vec<Line> = match text("transcript")? {
        Some(_) => row.json("transcript")?,
        None => Vec::new(),
    };
    Ok(json!({
        "seq": row.integer("seq")?,
        "heads": heads(&id, others.each_ref().map(Option::as_deref)),
        "carrier": joined(carrier_call_id.as_deref()),
        "summary": joined(text("summary")?.as_deref()),
        "said": said(lines.iter().filter_map(|line| line.text.as_deref())),
        "status": row.text("status")?,
        "analysis": text("analysis")?,
        "carrier_call_id": carrier_call_id,
        "id": id,
    }))
}
