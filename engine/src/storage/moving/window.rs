//! Reads a page of a table.
use super::page::Page;
use super::tables::{ByNumber, Table};
use crate::base::ids::{Id as _, WorkspaceId};
use crate::ports::statement::{Rows, Statement, Value};
use crate::ports::{Database, DatabaseError};

/// How much one page has.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Rows of the workspace, at most.
    pub rows: i64,
    /// Rows of any workspace that are looked at, at most: not every table has an index by workspace.
    pub looked_at: i64,
    /// After a row that reaches this many bytes, the page ends.
    pub bytes: i64,
}

impl Window {
    /// Reads the page of `table` that follows the place where the last one ended. `after` is [`Page::next`]; empty at first.
    pub async fn read(
        self,
        database: &dyn Database,
        table: &Table,
        workspace_id: &WorkspaceId,
        after: &[Value],
    ) -> Result<Page, DatabaseError> {
        let batch = self.statements(table, workspace_id, after);
        let answers = database.read(batch.into()).await?;
        let [rows, count, end]: [Rows; 3] = answers
            .try_into()
            .map_err(|_| DatabaseError::Shape("three questions have three answers".to_owned()))?;
        let found = count.first().map_or(Ok(0), |row| row.integer("found"))?;
        let key = table.key.len();
        let mut last = None;
        let mut read = Vec::with_capacity(rows.values.len());
        for mut row in rows.values {
            let carried = row.split_off(key.min(row.len()));
            last = Some(row);
            read.push(carried);
        }
        let is_cut = i64::try_from(read.len()).unwrap_or(i64::MAX) < found;
        let next = if is_cut { last } else { end.values.into_iter().next() };
        Ok(Page { table: table.name.clone(), rows: read, next })
    }

    /// The page's rows, how many rows of the workspace there are where it looks, and the key up to where it looks; none
    /// where the table ends before.
    fn statements(self, table: &Table, workspace_id: &WorkspaceId, after: &[Value]) -> [Statement; 3] {
        let Table { name, owner, key, is_sorted_by_owner, .. } = table;
        let key_of = |alias: &str| {
            let columns: Vec<String> = key.iter().map(|column| format!("{alias}{column}")).collect();
            columns.join(", ")
        };
        let looking = [Value::Asker(workspace_id.as_str().to_owned()), Value::from(self.looked_at)];
        let taking = [Value::from(self.rows), Value::from(self.bytes)];
        let first = looking.len() + taking.len() + 1;
        let params = |takes: bool| {
            // A statement has no values beyond its last parameter.
            let taking = taking.iter().filter(|_| takes || !after.is_empty());
            looking.iter().chain(taking).chain(after).cloned().collect()
        };
        let beyond = match after {
            [] => "1".to_owned(),
            after => {
                let places: Vec<String> = (first..first + after.len()).map(|at| format!("?{at}")).collect();
                format!("({}) > ({})", key_of(""), places.join(", "))
            }
        };
        let (own_at_once, own_later) = match is_sorted_by_owner {
            true => (format!("{owner} = ?1 AND "), String::new()),
            false => (String::new(), format!(" WHERE {owner} = ?1")),
        };
        let plain = key_of("");
        let looked_at = format!(
            "SELECT {plain}, {owner} FROM {name} AS looked_at WHERE {own_at_once}{beyond} ORDER BY {plain}
             LIMIT CAST(?2 AS INTEGER)"
        );
        let own = format!("SELECT {plain} FROM ({looked_at}){own_later}");
        let texts: Vec<String> = table
            .columns
            .iter()
            .map(|column| format!("COALESCE(OCTET_LENGTH({}), 0)", column.name))
            .collect();
        let sizes = format!(
            "SELECT {plain}, {} AS bytes FROM {name} AS sized WHERE ({plain}) IN ({own} LIMIT CAST(?3 AS INTEGER))",
            texts.join(" + ")
        );
        let fitting = format!(
            "SELECT {plain} FROM (SELECT {plain},
               SUM(bytes) OVER (ORDER BY {plain} ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before FROM ({sizes}))
             WHERE bytes_before < ?4"
        );
        let columns: Vec<String> = table
            .carried()
            .map(|column| match table.reference(&column.name) {
                Some(one) => everywhere(one),
                None => format!("t.{}", column.name),
            })
            .collect();
        let rows = format!(
            "SELECT {}, {} FROM {name} AS t WHERE ({}) IN ({fitting}) ORDER BY {}",
            key_of("t."),
            columns.join(", "),
            key_of("t."),
            key_of("t.")
        );
        let count = format!("SELECT COUNT(*) AS found FROM ({own})");
        let end = format!(
            "SELECT {plain} FROM {name} AS looked_at WHERE {own_at_once}{beyond} ORDER BY {plain}
             LIMIT 1 OFFSET CAST(?2 AS INTEGER) - 1"
        );
        [(rows, true), (count, false), (end, false)]
            .map(|(sql, takes)| Statement { sql: sql.into(), params: params(takes) })
    }
}

/// The replacement of a number: the unique columns of its row, which are equal in every database.
fn everywhere(one: &ByNumber) -> String {
    let ByNumber { column, table, number, known_by, .. } = one;
    format!("(SELECT json_array({}) FROM {table} WHERE {number} = t.{column})", known_by.join(", "))
}
