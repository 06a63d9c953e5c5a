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
    let mut condition = "workspace_id = :ws".to_owned();
    let mut values = Vec::new();
    for (column, value) in filters {
        if let Some(value) = value {
            condition.push_str(&format!(" AND {column} = :{column}"));
            values.push((column, value));
        }
    }
    let count = format!("SELECT COUNT(*) AS total FROM {table} WHERE {condition}");
    let count = Statement::named(&count, values.clone());
    let rows = format!(
        "SELECT {columns} FROM {table} WHERE {condition} ORDER BY id DESC
         LIMIT CAST(:limit AS INTEGER) OFFSET CAST(:offset AS INTEGER)"
    );
    values.extend([("limit", page.limit.into()), ("offset", page.offset().into())]);
    [count, Statement::named(&rows, values)]
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
