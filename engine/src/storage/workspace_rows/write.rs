//! Checks a page and writes it.
use super::page::Page;
use super::tables::{ByNumber, Column, Kind, Table};
use super::{special, strangers};
use crate::base::ids::{CallId, Id as _, WorkspaceId};
use crate::base::limits::INTEGER_MAX;
use crate::ports::statement::{Statement, Value};
use crate::storage::calls::search;

/// The texts of one row, at most: D1 holds rows of 2 MB.
pub const ROW_BYTES_MAX: usize = 2_000_000;
/// What the [`Constraint`](crate::ports::DatabaseError::Constraint) of a batch contains if the page names something of
/// another workspace.
pub const NAMES_A_STRANGER: &str = "names_a_stranger";

/// Why a page is not written. No value of the page is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The row, from 1.
    pub row: usize,
    /// The column; `None`: the row as a whole.
    pub column: Option<&'static str>,
    /// What is wrong.
    pub what: &'static str,
}

impl Page {
    /// The batch that writes the page into `workspace_id`, to be written as a whole. It fails if a key exists already, or if
    /// a row names something of another workspace where that is followed. Nothing is replaced but the row of the workspace itself, and with the
    /// words of calls goes the text index. Empty for a page without rows.
    pub fn insert(&self, table: &'static Table, workspace_id: &WorkspaceId) -> Result<Vec<Statement>, Wrong> {
        let rows = self.insert_own(table, workspace_id)?;
        let mut batch = strangers::guards(workspace_id, self, table);
        batch.extend(rows);
        Ok(batch)
    }

    /// The same for rows of this host's own, which may name whatever somebody has written into them.
    pub fn insert_own(
        &self,
        table: &'static Table,
        workspace_id: &WorkspaceId,
    ) -> Result<Vec<Statement>, Wrong> {
        if self.table != table.name {
            return Err(Wrong { row: 1, column: None, what: "is of another table" });
        }
        for (n, row) in (1..).zip(&self.rows) {
            check(table, workspace_id, row).map_err(|(column, what)| Wrong { row: n, column, what })?;
        }
        let columns: Vec<&str> = table.carried().map(|column| column.name).collect();
        let owner_place = columns.len() + 1;
        let values: Vec<String> = (1..)
            .zip(&columns)
            .map(|(place, column)| match table.reference(column) {
                Some(one) => here(one, place, owner_place),
                None => special::written(table.name, column, place),
            })
            .collect();
        // The owner is a parameter of every row, used or not, so that a host knows whose turn the batch takes.
        let mut insert = format!(
            "INSERT INTO {} ({}) SELECT {} WHERE ?{owner_place} <> ''",
            table.name,
            columns.join(", "),
            values.join(", ")
        );
        if table.name == "workspaces" {
            // Whoever receives a workspace has to have its row before the first page, with a salt if it is another host.
            let updates: Vec<String> = columns
                .iter()
                .map(|column| match special::is_of_the_host(table.name, column) {
                    true => format!("{column} = COALESCE(excluded.{column}, workspaces.{column})"),
                    false => format!("{column} = excluded.{column}"),
                })
                .collect();
            insert = format!("{insert} ON CONFLICT (id) DO UPDATE SET {}", updates.join(", "));
        }
        let write = |row: &Vec<Value>| {
            let owner = Value::Asker(workspace_id.as_str().to_owned());
            Statement { sql: insert.clone().into(), params: row.iter().cloned().chain([owner]).collect() }
        };
        let mut batch: Vec<Statement> = self.rows.iter().map(write).collect();
        if table.name == "call_words" {
            let at = table.carried().position(|column| column.name == "seq");
            let calls = self.rows.iter().filter_map(|row| call_of(row.get(at?)?));
            batch.extend(calls.map(|call| search::entry(workspace_id, &call)));
        }
        Ok(batch)
    }
}

type Problem = (Option<&'static str>, &'static str);

fn check(table: &'static Table, workspace_id: &WorkspaceId, row: &[Value]) -> Result<(), Problem> {
    if table.carried().count() != row.len() {
        return Err((None, "has not as many values as the table has columns"));
    }
    let bytes: usize = row
        .iter()
        .map(|value| match value {
            Value::Text(text) | Value::Asker(text) => text.len(),
            Value::Null | Value::Number(_) => 0,
        })
        .sum();
    if bytes > ROW_BYTES_MAX {
        return Err((None, "is larger than a row can be"));
    }
    for (column, value) in table.carried().zip(row) {
        let problem = match table.reference(column.name) {
            Some(one) => reference_problem(one, workspace_id, value),
            None => problem(column, value),
        };
        let is_owner = column.name == table.owner;
        let problem =
            problem.or_else(|| (is_owner && !is_text(value, workspace_id)).then_some("is not the workspace"));
        if let Some(what) = problem {
            return Err((Some(column.name), what));
        }
    }
    Ok(())
}

fn problem(column: &Column, value: &Value) -> Option<&'static str> {
    match (column.kind, value) {
        (_, Value::Null) => column.is_required.then_some("is missing"),
        (Kind::Text, Value::Number(_)) => Some("is not a text"),
        (Kind::Integer, Value::Text(_) | Value::Asker(_)) => Some("is not a number"),
        (Kind::Integer, Value::Number(number)) => {
            let fits = number.fract() == 0.0 && number.abs() <= INTEGER_MAX as f64;
            (!fits).then_some("is not a whole number up to 2^53")
        }
        (Kind::Text, Value::Text(_) | Value::Asker(_)) => None,
    }
}

fn is_text(value: &Value, expected: &str) -> bool {
    matches!(value, Value::Text(text) | Value::Asker(text) if text == expected)
}

/// A reference has a text for each unique column of its row, among them the workspace if that is one.
fn reference_problem(one: &ByNumber, workspace_id: &WorkspaceId, value: &Value) -> Option<&'static str> {
    let Value::Text(text) = value else { return Some("is not a reference") };
    let Ok(known) = serde_json::from_str::<Vec<String>>(text) else { return Some("is not a reference") };
    if known.len() != one.known_by.len() {
        return Some("is not a reference to such a row");
    }
    let is_foreign =
        one.known_by.iter().zip(&known).any(|(name, value)| *name == one.owner && *value != **workspace_id);
    is_foreign.then_some("is a reference to another workspace")
}

/// The call that a reference names.
fn call_of(reference: &Value) -> Option<CallId> {
    let Value::Text(text) = reference else { return None };
    let [id] = serde_json::from_str::<[String; 1]>(text).ok()?;
    Some(CallId::from_stored(id))
}

/// The number of such a row of the workspace in this database. If there is none, the foreign key fails.
fn here(one: &ByNumber, place: usize, owner_place: usize) -> String {
    let ByNumber { table, number, owner, known_by, .. } = one;
    let values: Vec<String> =
        (0..known_by.len()).map(|at| format!("json_extract(?{place}, '$[{at}]')")).collect();
    format!(
        "COALESCE((SELECT {number} FROM {table} WHERE ({}) = ({}) AND {owner} = ?{owner_place}), -1)",
        known_by.join(", "),
        values.join(", ")
    )
}
