//! Lists that come in pages: one page of the rows that pass some filters, and how many pass in all.
use crate::base::page::{Page, Pagination};
use crate::ports::statement::{Row, Rows, Statement, Value};
use crate::storage::fault::Fault;

/// Counts the rows of `table` whose columns have the values given, and reads a page of them, newest first.
pub(crate) fn select(
    table: &'static str,
    columns: &'static str,
    filters: impl IntoIterator<Item = (&'static str, Option<Value>)>,
    page: Page,
) -> [Statement; 2] {
    let (condition, mut values) = condition(filters);
    // As a long read (`long_read_of`): a filter may have no index.
    let count = format!(
        "WITH those AS (SELECT 1 FROM {table} WHERE {condition}) SELECT COUNT(*) AS total FROM those"
    );
    let count = Statement::named(&count, values.clone());
    let rows = format!(
        "SELECT {columns} FROM {table} WHERE {condition} ORDER BY id DESC
         LIMIT CAST(:limit AS INTEGER) OFFSET CAST(:offset AS INTEGER)"
    );
    values.extend([("limit", page.limit.into()), ("offset", page.offset().into())]);
    [count, Statement::named(&rows, values)]
}

/// What the rows of the workspace that pass the filters fulfil, and the values in it. A column that begins with `+` is looked up
/// by no index.
pub(crate) fn condition(
    filters: impl IntoIterator<Item = (&'static str, Option<Value>)>,
) -> (String, Vec<(&'static str, Value)>) {
    let mut condition = "workspace_id = :ws".to_owned();
    let mut values = Vec::new();
    for (column, value) in filters {
        if let Some(value) = value {
            let is = if value == Value::Null { "IS" } else { "=" };
            let name = column.trim_start_matches('+');
            condition.push_str(&format!(" AND {column} {is} :{name}"));
            values.push((name, value));
        }
    }
    (condition, values)
}

/// The answers to [`select`].
pub(crate) fn read<T>(
    page: Page,
    count: &Rows,
    rows: &Rows,
    read: fn(Row<'_>) -> Result<T, Fault>,
) -> Result<(Vec<T>, Pagination), Fault> {
    let total = count.first().map_or(Ok(0), |row| row.integer("total"))?;
    Ok((rows.iter().map(read).collect::<Result<_, _>>()?, Pagination::new(page, total)))
}
