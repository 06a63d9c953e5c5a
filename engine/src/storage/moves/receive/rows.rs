//! Rows that arrive.
use serde_json::json;

use crate::base::ids::WorkspaceId;
use crate::base::limits::MOVE_PART_WORDS_MAX;
use crate::ports::DatabaseError;
use crate::ports::statement::{Statement, Value};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::arrive::check_numbers;
use crate::storage::moves::declined::{Declined, Place};
use crate::storage::moves::parts::WORDS;
use crate::storage::moving::{NAMES_A_STRANGER, Page, Table};

/// The statements that write the pages, with their guards.
pub(super) fn statements(workspace_id: &WorkspaceId, pages: &[Page]) -> Result<Vec<Statement>, Declined> {
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
        page.check(table).map_err(|wrong| Declined::page(n, &wrong))?;
        batch.extend(page.insert(table, workspace_id).map_err(|wrong| Declined::page(n, &wrong))?);
    }
    Ok(batch)
}

/// Why the database has refused these pages.
pub(super) async fn refused(
    services: &Services,
    workspace_id: &WorkspaceId,
    pages: &[Page],
    error: DatabaseError,
) -> Fault {
    let DatabaseError::Constraint(sentence) = &error else { return error.into() };
    let (is_stale, names_a_stranger) = (sentence.contains("stale"), sentence.contains(NAMES_A_STRANGER));
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
        let refused = |pages: &[Page]| match statements(&WorkspaceId::from_stored("ws_1"), pages) {
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
