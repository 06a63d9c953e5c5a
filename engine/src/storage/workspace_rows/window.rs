//! Reads a page of a table.
use super::keys::Keys;
use super::page::Page;
use super::special;
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
        table: &'static Table,
        workspace_id: &WorkspaceId,
        after: &[Value],
    ) -> Result<Page, DatabaseError> {
        let looking = Looking { table, workspace_id, window: self, after };
        let answers = database.read(vec![looking.rows(), looking.count(), looking.end()]).await?;
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
        Ok(Page { table: table.name.to_owned(), rows: read, next })
    }

    /// Reads the keys of the rows after `after`, as [`Window::read`] finds the rows themselves. Bytes do not count.
    pub async fn keys(
        self,
        database: &dyn Database,
        table: &'static Table,
        workspace_id: &WorkspaceId,
        after: &[Value],
    ) -> Result<Keys, DatabaseError> {
        let looking = Looking { table, workspace_id, window: self, after };
        let (keys, end) = (looking.keys(), looking.end());
        let answers = database.read(vec![keys, end]).await?;
        let [keys, end]: [Rows; 2] = answers
            .try_into()
            .map_err(|_| DatabaseError::Shape("two questions have two answers".to_owned()))?;
        let is_cut = i64::try_from(keys.values.len()).unwrap_or(i64::MAX) >= self.rows;
        let next = if is_cut { keys.values.last().cloned() } else { end.values.into_iter().next() };
        Ok(Keys { table, keys: keys.values, next })
    }
}

/// Where a statement looks for rows of the workspace.
struct Looking<'a> {
    table: &'static Table,
    workspace_id: &'a WorkspaceId,
    window: Window,
    after: &'a [Value],
}

impl Looking<'_> {
    /// The page's rows. As a host reads beside requests what begins with `WITH`, so are the others, in one batch with it.
    fn rows(&self) -> Statement {
        let Table { name, columns, .. } = self.table;
        let key = self.table.key_of("");
        // Named apart from the same columns among the values: D1 has one value for each name.
        let place: Vec<String> =
            self.table.key.iter().enumerate().map(|(n, column)| format!("t.{column} AS key_{n}")).collect();
        let sizes: Vec<String> =
            columns.iter().map(|column| format!("COALESCE(OCTET_LENGTH({}), 0)", column.name)).collect();
        let values: Vec<String> = self
            .table
            .carried()
            .map(|column| match self.table.reference(column.name) {
                Some(one) => everywhere(one),
                None => special::read(name, column.name),
            })
            .collect();
        self.statement(
            format!(
                "WITH {}, sizes AS (
                   SELECT {key}, {} AS bytes FROM {name} AS sized WHERE ({key}) IN (SELECT {key} FROM own LIMIT CAST(?3 AS INTEGER))
                 ), sums AS (
                   SELECT {key}, SUM(bytes) OVER (ORDER BY {key} ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before FROM sizes
                 )
                 SELECT {}, {} FROM {name} AS t WHERE ({}) IN (SELECT {key} FROM sums WHERE bytes_before < ?4) ORDER BY {}",
                self.own(),
                sizes.join(" + "),
                place.join(", "),
                values.join(", "),
                self.table.key_of("t."),
                self.table.key_of("t."),
            ),
            &[self.window.rows, self.window.bytes],
        )
    }

    /// How many rows of the workspace there are.
    fn count(&self) -> Statement {
        self.statement(format!("WITH {} SELECT COUNT(*) AS found FROM own", self.own()), &[])
    }

    /// Their keys.
    fn keys(&self) -> Statement {
        let key = self.table.key_of("");
        let sql = format!("WITH {} SELECT {key} FROM own LIMIT CAST(?3 AS INTEGER)", self.own());
        self.statement(sql, &[self.window.rows])
    }

    /// The key up to which is looked; none where the table ends before.
    fn end(&self) -> Statement {
        let key = self.table.key_of("");
        let sql = format!(
            "SELECT {key} FROM {} AS looked_at WHERE {} ORDER BY {key} LIMIT 1 OFFSET CAST(?2 AS INTEGER) - 1",
            self.table.name,
            self.place(),
        );
        self.statement(sql, &[])
    }

    /// The keys of the workspace's rows, as common table expressions.
    fn own(&self) -> String {
        let Table { name, owner, is_sorted_by_owner, .. } = self.table;
        let key = self.table.key_of("");
        let filter = if *is_sorted_by_owner { String::new() } else { format!(" WHERE {owner} = ?1") };
        format!(
            "looks AS (
               SELECT {key}, {owner} FROM {name} AS looked_at WHERE {} ORDER BY {key} LIMIT CAST(?2 AS INTEGER)
             ), own AS (SELECT {key} FROM looks{filter})",
            self.place(),
        )
    }

    /// Which rows are looked at.
    fn place(&self) -> String {
        let own = self.table.is_sorted_by_owner.then(|| format!("{} = ?1", self.table.owner));
        let beyond = (!self.after.is_empty()).then(|| {
            let places: Vec<String> = (AFTER..AFTER + self.after.len()).map(|at| format!("?{at}")).collect();
            format!("({}) > ({})", self.table.key_of(""), places.join(", "))
        });
        let both: Vec<String> = own.into_iter().chain(beyond).collect();
        if both.is_empty() { "1".to_owned() } else { both.join(" AND ") }
    }

    /// A statement has a value for each place up to its last.
    fn statement(&self, sql: String, taking: &[i64]) -> Statement {
        let mut params =
            vec![Value::Asker(self.workspace_id.as_str().to_owned()), Value::from(self.window.looked_at)];
        params.extend(taking.iter().copied().map(Value::from));
        if !self.after.is_empty() {
            params.resize(AFTER - 1, Value::Null);
            params.extend(self.after.iter().cloned());
        }
        Statement { sql: sql.into(), params }
    }
}

/// The number of the first parameter of the place where the last page ended.
const AFTER: usize = 5;

/// The replacement of a number: the unique columns of its row, which are equal in every database.
fn everywhere(one: &ByNumber) -> String {
    let ByNumber { column, table, number, known_by, .. } = one;
    format!("(SELECT json_array({}) FROM {table} WHERE {number} = t.{column})", known_by.join(", "))
}
