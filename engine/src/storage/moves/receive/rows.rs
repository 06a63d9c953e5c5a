//! Rows that arrive.
use serde_json::json;

use crate::base::ids::WorkspaceId;
use crate::base::limits::{CALL_TURNS_MAX, MOVE_PART_WORDS_MAX};
use crate::ports::DatabaseError;
use crate::ports::statement::{Statement, Value};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::arrive::check_numbers;
use crate::storage::moves::declined::{Declined, Place};
use crate::storage::moves::parts::WORDS;
use crate::storage::workspace_rows::{NAMES_A_STRANGER, Page, Table};

/// The times of the turns of a call, at most: five numbers for each turn.
const TURNS_BYTES_MAX: usize = 512 * CALL_TURNS_MAX;

/// The statements that write the pages, with their guards.
pub(super) fn statements(
    workspace_id: &WorkspaceId,
    pages: &[Page],
    now_ms: i64,
) -> Result<Vec<Statement>, Declined> {
    let words: usize = pages.iter().filter(|page| page.table == WORDS).map(|page| page.rows.len()).sum();
    if words > MOVE_PART_WORDS_MAX as usize {
        return Err(Declined::part(format!("it has the words of more than {MOVE_PART_WORDS_MAX} calls")));
    }
    let mut batch = Vec::new();
    let hashes = texts(pages, "api_keys", "hash");
    if !hashes.is_empty() {
        // Those of a tombstone. It keeps what the file does not have, and so tells clients where the workspace is: then the file
        // is of another one, and differs in the end.
        let again = sql!(
            "DELETE FROM api_keys WHERE workspace_id = :ws AND hash IN (SELECT value FROM json_each(:hashes))",
            hashes = json!(hashes).to_string()
        );
        batch.push(again.in_workspace(workspace_id));
    }
    for (n, page) in (1..).zip(pages) {
        let Some(table) = Table::named(&page.table) else {
            return Err(Declined::part(format!("page {n} is of no table with rows of workspaces")));
        };
        page.check(table, now_ms).map_err(|wrong| Declined::page(n, &wrong))?;
        batch.extend(page.insert(table, workspace_id).map_err(|wrong| Declined::page(n, &wrong))?);
    }
    batch.extend(size_guards(workspace_id, pages));
    Ok(batch)
}

/// Fail the batch if a call or a delivery of it says that it has fewer bytes than it has: whoever reads many of them adds up what
/// they say. Deliveries and events may come in either order.
fn size_guards(workspace_id: &WorkspaceId, pages: &[Page]) -> Vec<Statement> {
    const OF_A_DELIVERY: &str = "+d.workspace_id = :ws AND d.body_bytes < OCTET_LENGTH(e.body)";
    let of_a_call = format!(
        "+c.workspace_id = :ws AND (OCTET_LENGTH(t.content) > c.transcript_bytes
           OR OCTET_LENGTH(t.turns) > {TURNS_BYTES_MAX} OR t.archive_bytes > c.transcript_bytes + {TURNS_BYTES_MAX})"
    );
    let guard = |(table, column, from, is_short): (&str, &str, &str, &str)| {
        let named = texts(pages, table, column);
        let statement = || {
            sql!(
                format!(
                    "INSERT INTO batch_guard (room) SELECT 0 WHERE EXISTS (
                       SELECT 1 FROM json_each(:named) AS named CROSS JOIN {from} WHERE {is_short})"
                ),
                named = json!(named).to_string()
            )
            .in_workspace(workspace_id)
        };
        (!named.is_empty()).then(statement)
    };
    [
        (
            "deliveries",
            "id",
            "deliveries AS d ON d.id = named.value CROSS JOIN events AS e ON e.id = d.event_id",
            OF_A_DELIVERY,
        ),
        (
            "events",
            "id",
            "events AS e ON e.id = named.value CROSS JOIN deliveries AS d ON d.event_id = e.id",
            OF_A_DELIVERY,
        ),
        (
            "call_transcripts",
            "seq",
            // As a page refers to a call.
            "calls AS c ON c.id = json_extract(named.value, '$[0]') CROSS JOIN call_transcripts AS t ON t.seq = c.seq",
            of_a_call.as_str(),
        ),
    ]
    .into_iter()
    .filter_map(guard)
    .collect()
}

/// Why the database has refused these pages.
pub(super) async fn refused(
    services: &Services,
    workspace_id: &WorkspaceId,
    pages: &[Page],
    error: DatabaseError,
) -> Fault {
    let DatabaseError::Constraint(sentence) = &error else { return error.into() };
    let [is_stale, names_a_stranger, is_short] =
        ["stale", NAMES_A_STRANGER, "limit_reached"].map(|what| error.is_constraint(what));
    let taken = sentence.split_once("UNIQUE constraint failed: ").and_then(|(_, rest)| {
        let name = rest.split('.').next().unwrap_or_default();
        Table::named(name).map(|table| table.name)
    });
    match taken {
        // Another request has written this part.
        _ if is_stale => Fault::Stale,
        _ if names_a_stranger => match stranger(services, workspace_id, pages).await {
            Ok(declined) => declined.into(),
            Err(fault) => fault,
        },
        _ if is_short => Declined::part("a call or a delivery counts fewer bytes than it has").into(),
        Some("numbers") => match check_numbers(services, workspace_id, &numbers(pages)).await {
            Ok(()) => Declined::Exists("numbers").into(),
            Err(fault) => fault,
        },
        Some(table) => Declined::Exists(table).into(),
        None if sentence.contains("FOREIGN KEY") => {
            Declined::part("a row refers to another one that is not there").into()
        }
        None => Declined::part("a row has what its table does not take").into(),
    }
}

/// Where the pages name something of another workspace.
async fn stranger(
    services: &Services,
    workspace_id: &WorkspaceId,
    pages: &[Page],
) -> Result<Declined, Fault> {
    for (n, page) in (1..).zip(pages) {
        let Some(table) = Table::named(&page.table) else { continue };
        let mut ids = Vec::new();
        let looks = page.select_strangers(table, workspace_id);
        if looks.is_empty() {
            continue;
        }
        for rows in services.ports().database.read(looks).await? {
            for row in rows.iter() {
                ids.push(row.text("id")?);
            }
        }
        if let Some(wrong) = page.naming(table, &ids) {
            return Ok(Declined::stranger(n, &wrong));
        }
    }
    // It was deleted meanwhile.
    Ok(Declined::NamesAStranger(Place::default()))
}

/// The telephone numbers in pages.
pub(super) fn numbers(pages: &[Page]) -> Vec<String> {
    texts(pages, "numbers", "number")
}

/// The texts of a column in pages.
fn texts(pages: &[Page], table: &str, column: &str) -> Vec<String> {
    let Some(table) = Table::named(table) else { return Vec::new() };
    let Some(at) = table.carried().position(|one| one.name == column) else { return Vec::new() };
    let rows = pages.iter().filter(|page| page.table == table.name).flat_map(|page| &page.rows);
    rows.filter_map(|row| match row.get(at) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id as _;

    #[test]
    fn a_part_has_words_of_so_many_calls() {
        let page = |table: &str, rows: i64| {
            let rows = (0..rows).map(|_| Vec::new()).collect();
            Page { table: table.to_owned(), rows, next: None }
        };
        let refused = |pages: &[Page]| match statements(&WorkspaceId::from_stored("ws_1"), pages, 0) {
            Err(Declined::WrongPart(_, what)) => what,
            other => panic!("{other:?}"),
        };
        let what = refused(&[page("call_words", MOVE_PART_WORDS_MAX)]);
        assert!(!what.contains("more than"), "its rows have no values: {what}");
        let words = format!("it has the words of more than {MOVE_PART_WORDS_MAX} calls");
        assert_eq!(refused(&[page("call_words", MOVE_PART_WORDS_MAX + 1)]), words);
        assert_eq!(refused(&[page("call_words", MOVE_PART_WORDS_MAX), page("call_words", 1)]), words);
    }
}
