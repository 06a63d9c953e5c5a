//! Lists in parts. A part ends after `limit` rows, or earlier when its rows reach [`PAGE_BYTES_MAX`]; it has at least one
//! row. The next part begins after the last row of the one before, so rows that come and go in between neither repeat nor
//! hide others.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::ids::Id;
use crate::base::limits::{CURSOR_CHARS_MAX, LIST_ROWS_DEFAULT, PAGE_BYTES_MAX, PAGE_ROWS_MAX};
use crate::operations::context::Context;
use crate::operations::operation::{Next, Output};
use crate::ports::statement::{Row, Statement, Value};
use crate::storage::fault::Fault;

/// Which part of a list.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// Rows of the response; default 1000. It has fewer when they would exceed 4 MiB.
    #[schemars(range(min = 1, max = PAGE_ROWS_MAX))]
    pub(crate) limit: Option<i64>,
    /// Continues the list. Take the value from the previous response: from its `Link` header, in MCP `next`.
    #[schemars(length(min = 1, max = CURSOR_CHARS_MAX))]
    pub(crate) after: Option<String>,
}

impl Part {
    fn rows(&self) -> i64 {
        self.limit.unwrap_or(LIST_ROWS_DEFAULT)
    }

    /// The key of the row after which the part begins; refuses what is no key of this list.
    fn after(&self, is_key: impl Fn(&str) -> bool) -> Result<Option<String>, Error> {
        let Some(after) = &self.after else {
            return Ok(None);
        };
        let key = URL_SAFE_NO_PAD.decode(after).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match key.filter(|key| is_key(key)) {
            Some(key) => Ok(Some(key)),
            None => {
                let message = "continues no list of this kind; take it unchanged from the previous response \
                    (`Link` header, in MCP `next`), or leave it out to begin with the first row";
                Err(Error::field("after", message))
            }
        }
    }
}

/// What continues a list after the row with this key.
pub(crate) fn cursor(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// A list whose rows are in a table.
pub(crate) struct List<T> {
    /// The table.
    pub(crate) table: &'static str,
    /// What `read` reads.
    pub(crate) columns: &'static str,
    /// The size of the row's texts, an SQL expression; `"0"` for rows that are always small.
    pub(crate) bytes: &'static str,
    /// The order: a column that is unique and indexed.
    pub(crate) key: Key,
    /// `AND …`: what is listed of the workspace.
    pub(crate) filter: &'static str,
    /// The values of `filter`.
    pub(crate) values: Vec<(&'static str, Value)>,
    /// Reads a row.
    pub(crate) read: fn(Row<'_>) -> Result<T, Fault>,
}

/// What orders a list.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    column: &'static str,
    descends: bool,
    is_key: fn(&str) -> bool,
}

impl Key {
    /// Newest first: ids begin with their time.
    pub(crate) fn newest<I: Id>() -> Self {
        let is_key = |text: &str| I::from_stored(text).to_bytes().is_some();
        Self { column: "id", descends: true, is_key }
    }

    /// In the order of the column.
    pub(crate) fn ascending(column: &'static str, is_key: fn(&str) -> bool) -> Self {
        Self { column, descends: false, is_key }
    }
}

/// The part of the list.
pub(crate) async fn run<T: Serialize>(
    context: &mut Context,
    part: Part,
    list: List<T>,
) -> Result<Output, Fault> {
    let after = part.after(list.key.is_key)?;
    let List { table, columns, bytes, key, filter, values, read } = list;
    let select = select(table, columns, bytes, key, filter, values, part.rows(), after);
    let [rows] = context.read_each([select]).await?;
    let mut body = Body::default();
    for row in rows.iter() {
        if !body.push(&read(row)?, row.str("page_key")?)? {
            break;
        }
    }
    let found = rows.first().map_or(Ok(0), |row| row.integer("page_found"))?;
    Ok(body.finish(found))
}

/// The part of a list that is in memory; `key` is unique.
pub(crate) fn of_all<T: Serialize>(part: &Part, all: &[T], key: fn(&T) -> &str) -> Result<Output, Fault> {
    let position = |text: &str| all.iter().position(|one| key(one) == text);
    let start = part.after(|text| position(text).is_some())?.and_then(|text| position(&text));
    let rest = all.get(start.map_or(0, |position| position + 1)..).unwrap_or_default();
    let mut body = Body::default();
    for one in rest.iter().take(usize::try_from(part.rows()).unwrap_or(usize::MAX)) {
        if !body.push(one, key(one))? {
            break;
        }
    }
    Ok(body.finish(i64::try_from(rest.len()).unwrap_or(i64::MAX)))
}

/// Selects the rows of a part with `page_key`, and `page_found`: how many there are, up to one more than `limit`. Rows
/// beyond the bytes of a part are not read. Not generic, so it is compiled once.
#[expect(clippy::too_many_arguments, reason = "the fields of a `List`, without its type")]
fn select(
    table: &str,
    columns: &str,
    bytes: &str,
    key: Key,
    filter: &str,
    mut values: Vec<(&'static str, Value)>,
    limit: i64,
    after: Option<String>,
) -> Statement {
    let Key { column, descends, .. } = key;
    let (order, compares) = if descends { ("DESC", "<") } else { ("ASC", ">") };
    let mut continues = String::new();
    if let Some(after) = after {
        continues = format!(" AND {column} {compares} :after");
        values.push(("after", after.into()));
    }
    values.push(("limit", limit.into()));
    let text = format!(
        "WITH page AS MATERIALIZED (SELECT {column} AS page_key, {bytes} AS page_bytes FROM {table}
           WHERE workspace_id = :ws{filter}{continues} ORDER BY {column} {order} LIMIT CAST(:limit AS INTEGER) + 1),
         sized AS (SELECT page_key, ROW_NUMBER() OVER (ORDER BY page_key {order}) AS page_row,
           SUM(page_bytes) OVER (ORDER BY page_key {order} ROWS UNBOUNDED PRECEDING) AS page_total FROM page)
         SELECT {columns}, page_key, (SELECT COUNT(*) FROM page) AS page_found
         FROM sized CROSS JOIN {table} ON {table}.{column} = page_key
         WHERE page_row <= :limit AND (page_row = 1 OR page_total <= {PAGE_BYTES_MAX}) ORDER BY page_key {order}"
    );
    Statement::named(&text, values)
}

/// A JSON array of limited size. Texts grow when they are written as JSON, so it has a limit of its own.
#[derive(Default)]
struct Body {
    text: String,
    rows: i64,
    last_key: String,
}

impl Body {
    /// Appends a row; false when it is the first that does not fit.
    fn push(&mut self, row: &impl Serialize, key: &str) -> Result<bool, Fault> {
        let row = serde_json::to_string(row)
            .map_err(|error| Fault::Bug(format!("a row does not serialise: {error}")))?;
        if self.rows > 0 && self.text.len() + row.len() > PAGE_BYTES_MAX {
            return Ok(false);
        }
        self.text.push(if self.rows == 0 { '[' } else { ',' });
        self.text.push_str(&row);
        self.rows += 1;
        key.clone_into(&mut self.last_key);
        Ok(true)
    }

    /// The response; `found` says how many rows there are.
    fn finish(mut self, found: i64) -> Output {
        self.text.push_str(if self.rows == 0 { "[]" } else { "]" });
        let next = (found > self.rows).then(|| Next::after(cursor(&self.last_key)));
        Output { next, ..Output::text(200, self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{AssistantId, ToolId};

    fn part(limit: i64, after: Option<&str>) -> Part {
        Part { limit: Some(limit), after: after.map(str::to_owned) }
    }

    #[test]
    fn only_a_cursor_of_the_same_list_continues_it() {
        let id = AssistantId::from_bytes([7; 16]);
        let cursor = URL_SAFE_NO_PAD.encode(id.as_str());
        let read = |after: &str, key: Key| part(1, Some(after)).after(key.is_key);
        assert_eq!(read(&cursor, Key::newest::<AssistantId>()), Ok(Some(id.to_string())));
        assert!(read(&cursor, Key::newest::<ToolId>()).is_err());
        for garbage in ["", "x", id.as_str(), "asst_", &format!("{cursor}="), &cursor[1..], "////", "\0"] {
            assert!(read(garbage, Key::newest::<AssistantId>()).is_err(), "{garbage}");
        }
    }

    #[test]
    fn a_list_in_memory_is_walked_to_its_end() {
        let all = ["a", "b", "c", "d", "e"];
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let output = of_all(&part(2, after.as_deref()), &all, |one| one).unwrap();
            seen.extend(serde_json::from_str::<Vec<String>>(&output.body.unwrap()).unwrap());
            match output.next {
                Some(next) => after = Some(next.value),
                None => break,
            }
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn a_part_ends_when_its_bytes_do_but_has_a_row() {
        let large = "x".repeat(PAGE_BYTES_MAX / 2 - 100);
        let all: Vec<(String, String)> = (0..4)
            .map(|n| (n.to_string(), if n == 2 { "x".repeat(PAGE_BYTES_MAX) } else { large.clone() }))
            .collect();
        let (mut sizes, mut after) = (Vec::new(), None::<String>);
        loop {
            let output = of_all(&part(10, after.as_deref()), &all, |one| &one.0).unwrap();
            sizes.push(serde_json::from_str::<Vec<(String, String)>>(&output.body.unwrap()).unwrap().len());
            match output.next {
                Some(next) => after = Some(next.value),
                None => break,
            }
        }
        assert_eq!(sizes, [2, 1, 1]);
    }
}
