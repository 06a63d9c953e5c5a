//! SQL as data: statements with bound values, and result rows.
use std::borrow::Cow;
use std::sync::Arc;

use crate::base::ids::{Id, WorkspaceId};
use crate::base::time::Timestamp;
use crate::base::words::Word;
use crate::ports::DatabaseError;

/// One SQL statement and its values, as [`sql!`](crate::sql) builds it. In the statements of an operation `:ws` stands
/// for the caller's workspace; `crate::operations::context::Context` replaces it.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The SQL text.
    pub sql: Cow<'static, str>,
    /// `params[0]` is `?1`.
    pub params: Vec<Value>,
}

impl Statement {
    /// Renders a text that is built at run time; [`sql!`](crate::sql) renders literals at compile time.
    #[doc(hidden)]
    pub fn named(text: &str, values: Vec<(&'static str, Value)>) -> Self {
        let mut rendered = String::with_capacity(text.len());
        let (bytes, mut kept, mut at, mut used) = (text.as_bytes(), 0, 0, 0u128);
        while let Some(colon) = text[at..].find(':') {
            at += colon;
            let end = name_end(bytes, at);
            let index = values.iter().position(|(name, _)| end > at && *name == &text[at + 1..end]);
            if let Some(index) = index {
                rendered.push_str(&text[kept..at]);
                rendered.push('?');
                push_number(&mut rendered, index + 1);
                kept = end;
                used |= 1 << index;
            }
            debug_assert!(
                index.is_some() || end == at || is_workspace(bytes, at, end),
                "a parameter of the statement has no value: {text}"
            );
            at = end.max(at + 1);
        }
        debug_assert_eq!(used, (1 << values.len()) - 1, "a value has no parameter in the statement: {text}");
        rendered.push_str(&text[kept..]);
        Self { sql: Cow::Owned(rendered), params: values.into_iter().map(|(_, value)| value).collect() }
    }

    /// Replaces `:ws` with the id of a known workspace, for code below operations.
    pub fn in_workspace(self, workspace_id: &WorkspaceId) -> Self {
        self.with_workspace("?", workspace_id, "")
    }

    /// Replaces each `:ws` with `before`, which ends with `?`, the number of a parameter that holds `value`, and `after`.
    pub(crate) fn with_workspace(mut self, before: &str, value: &str, after: &str) -> Self {
        const MARK: &str = ":ws";
        self.params.push(value.into());
        let text: &str = &self.sql;
        let (bytes, mut kept, mut at) = (text.as_bytes(), 0, 0);
        let mut rendered = String::with_capacity(text.len() + 2 * (before.len() + after.len()));
        while let Some(found) = text[at..].find(MARK) {
            at += found;
            if is_workspace(bytes, at, name_end(bytes, at)) {
                rendered.push_str(&text[kept..at]);
                rendered.push_str(before);
                push_number(&mut rendered, self.params.len());
                rendered.push_str(after);
                kept = at + MARK.len();
            }
            at += MARK.len();
        }
        rendered.push_str(&text[kept..]);
        self.sql = Cow::Owned(rendered);
        self
    }
}

/// Whether a batch of reads can take long: a search, a list of calls, statistics. A host with threads runs it beside the
/// requests, and interrupts it after [`LONG_READ_MS`](crate::base::limits::LONG_READ_MS).
pub fn can_be_long(batch: &[Statement]) -> bool {
    batch.iter().any(|statement| statement.sql.starts_with("WITH ") || statement.sql.contains(" MATCH "))
}

/// For whom a batch is: the workspace, or the API key whose workspace is not known yet. `None`: for the service.
pub fn asker(batch: &[Statement]) -> Option<&str> {
    const HASH_CHARS: usize = 64;
    batch.iter().flat_map(|statement| &statement.params).find_map(|value| match value {
        Value::Text(text) if text.starts_with(WorkspaceId::PREFIX) => Some(text.as_str()),
        Value::Text(text) if text.len() == HASH_CHARS && text.bytes().all(|c| c.is_ascii_hexdigit()) => {
            Some(text.as_str())
        }
        _ => None,
    })
}

/// Whether a batch removes rows or revokes a key, and adds nothing but what that needs (guards, the stored response). A
/// host without room for data still writes it.
pub fn only_removes(batch: &[Statement]) -> bool {
    const SMALL: &[&str] = &[
        "SELECT",
        "DELETE FROM",
        "UPDATE",
        "INSERT INTO batch_guard",
        "INSERT INTO idempotency_keys",
        "INSERT INTO service_facts",
    ];
    let begins = |statement: &Statement, words: &[&str]| {
        let sql = statement.sql.trim_start();
        words.iter().any(|word| sql.starts_with(word))
    };
    batch.iter().all(|statement| begins(statement, SMALL))
        && batch.iter().any(|statement| begins(statement, &["DELETE FROM", "UPDATE api_keys"]))
}

/// Builds a [`Statement`] with named parameters: `sql!("SELECT 1 FROM calls WHERE id = :id AND version = :version",
/// id = &call_id, version = 3)`. D1 knows no named parameters, so they become `?1`, `?2`, … in the order of the values.
/// In a literal text, a parameter without a value, or a value without a parameter, does not compile.
#[macro_export]
macro_rules! sql {
    ($text:literal $(,)?) => {
        $crate::ports::statement::Statement {
            sql: ::std::borrow::Cow::Borrowed({
                const _: usize = $crate::ports::statement::rendered_length($text, &[]);
                $text
            }),
            params: ::std::vec::Vec::new(),
        }
    };
    ($text:literal $(, $name:ident = $value:expr)+ $(,)?) => {
        $crate::ports::statement::Statement {
            sql: ::std::borrow::Cow::Borrowed($crate::rendered_sql!($text, &[$(stringify!($name)),+])),
            params: vec![$($crate::ports::statement::Value::from($value)),+],
        }
    };
    ($text:expr $(, $name:ident = $value:expr)+ $(,)?) => {
        $crate::ports::statement::Statement::named(
            ::std::convert::AsRef::<str>::as_ref(&$text),
            vec![$((stringify!($name), $crate::ports::statement::Value::from($value))),+],
        )
    };
    ($text:expr $(,)?) => {
        $crate::ports::statement::Statement { sql: ::std::convert::Into::into($text), params: ::std::vec::Vec::new() }
    };
}

/// The text of a statement, rendered at compile time: its parameters are exactly these names, in the order of the values.
#[macro_export]
#[doc(hidden)]
macro_rules! rendered_sql {
    ($text:expr, $names:expr) => {{
        const TEXT: &str = $text;
        const NAMES: &[&str] = $names;
        const LENGTH: usize = $crate::ports::statement::rendered_length(TEXT, NAMES);
        const RENDERED: [u8; LENGTH] = $crate::ports::statement::render(TEXT, NAMES);
        const { $crate::ports::statement::utf8(&RENDERED) }
    }};
}

/// The length of the result of [`render`]. Fails to compile unless the parameters of `text`, `:ws` aside, are
/// exactly `names`.
#[doc(hidden)]
pub const fn rendered_length(text: &str, names: &[&str]) -> usize {
    let (bytes, mut at, mut length, mut used) = (text.as_bytes(), 0, 0, 0u128);
    while at < bytes.len() {
        let (end, index) = parameter(bytes, at, names);
        match index {
            Some(index) => {
                used |= 1 << index;
                length += 1 + digits(index + 1);
            }
            None => {
                assert!(
                    end == at || is_workspace(bytes, at, end),
                    "a parameter of the statement has no value"
                );
                length += if end > at { end - at } else { 1 };
            }
        }
        at = if end > at { end } else { at + 1 };
    }
    assert!(used == (1 << names.len()) - 1, "a value has no parameter in the statement");
    length
}

/// `text` with `?1`, `?2`, … in place of its `names`.
#[doc(hidden)]
pub const fn render<const LENGTH: usize>(text: &str, names: &[&str]) -> [u8; LENGTH] {
    let (bytes, mut at, mut rendered, mut length) = (text.as_bytes(), 0, [0; LENGTH], 0);
    while at < bytes.len() {
        let (end, index) = parameter(bytes, at, names);
        if let Some(index) = index {
            let number = index + 1;
            rendered[length] = b'?';
            if number >= 10 {
                rendered[length + 1] = b'0' + (number / 10) as u8;
            }
            rendered[length + digits(number)] = b'0' + (number % 10) as u8;
            length += 1 + digits(number);
            at = end;
        } else {
            // A name that stays as it is, or one byte.
            let end = if end > at { end } else { at + 1 };
            while at < end {
                rendered[length] = bytes[at];
                length += 1;
                at += 1;
            }
        }
    }
    rendered
}

/// The rendered text.
#[doc(hidden)]
#[allow(clippy::panic, reason = "runs at compile time only")]
pub const fn utf8(rendered: &'static [u8]) -> &'static str {
    match std::str::from_utf8(rendered) {
        Ok(text) => text,
        Err(_) => panic!("rendering keeps UTF-8"),
    }
}

const fn digits(number: usize) -> usize {
    assert!(number < 100, "a statement takes fewer values");
    if number < 10 { 1 } else { 2 }
}

/// Appends a number without `format!`, which would take longer than the rest of the rendering.
fn push_number(text: &mut String, number: usize) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// The end of the name whose colon is at `at`, and its index in `names`.
const fn parameter(bytes: &[u8], at: usize, names: &[&str]) -> (usize, Option<usize>) {
    let end = name_end(bytes, at);
    let mut index = 0;
    while end > at && index < names.len() {
        if is_name(bytes, at + 1, end, names[index].as_bytes()) {
            return (end, Some(index));
        }
        index += 1;
    }
    (end, None)
}

/// Whether the name from `at` to `end` is `:ws`, which [`Statement::with_workspace`] replaces.
const fn is_workspace(bytes: &[u8], at: usize, end: usize) -> bool {
    end > at && is_name(bytes, at + 1, end, b"ws")
}

/// The end of the name whose colon is at `at`; `at` itself if no name begins there.
const fn name_end(bytes: &[u8], at: usize) -> usize {
    let starts = bytes[at] == b':'
        && at + 1 < bytes.len()
        && (bytes[at + 1].is_ascii_lowercase() || bytes[at + 1] == b'_');
    if !starts {
        return at;
    }
    let mut end = at + 1;
    while end < bytes.len() && (bytes[end].is_ascii_alphanumeric() || bytes[end] == b'_') {
        end += 1;
    }
    end
}

const fn is_name(bytes: &[u8], start: usize, end: usize, name: &[u8]) -> bool {
    if end - start != name.len() {
        return false;
    }
    let mut offset = 0;
    while offset < name.len() {
        if bytes[start + offset] != name[offset] {
            return false;
        }
        offset += 1;
    }
    true
}

/// A value as both hosts bind and return it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// Every number is a float, as in D1; integers are exact up to 2^53.
    Number(f64),
    /// UTF-8.
    Text(String),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}
impl From<i64> for Value {
    fn from(number: i64) -> Self {
        debug_assert!(number.unsigned_abs() <= 1 << 53, "{number} loses digits as a float");
        Self::Number(number as f64)
    }
}
impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::from(time.ms())
    }
}
impl<I: Id> From<&I> for Value {
    fn from(id: &I) -> Self {
        Self::Text(id.as_str().to_owned())
    }
}
impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Number(if flag { 1.0 } else { 0.0 })
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(option: Option<T>) -> Self {
        option.map_or(Self::Null, Into::into)
    }
}

/// The result of one statement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Column names, in order.
    pub columns: Arc<[String]>,
    /// The rows; each has as many values as `columns`.
    pub values: Vec<Vec<Value>>,
}

impl Rows {
    /// All rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.values.iter().map(|values| Row { columns: &self.columns, values })
    }

    /// The first row, if any.
    pub fn first(&self) -> Option<Row<'_>> {
        self.values.first().map(|values| Row { columns: &self.columns, values })
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// One row of a result. The methods fail with [`DatabaseError::Shape`] when a column is missing or has another type.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    columns: &'a [String],
    values: &'a [Value],
}

impl<'a> Row<'a> {
    fn value(&self, column: &str) -> Result<&'a Value, DatabaseError> {
        self.columns
            .iter()
            .position(|name| name == column)
            .and_then(|at| self.values.get(at))
            .ok_or_else(|| DatabaseError::Shape(format!("no column {column}")))
    }

    /// Whether the column is NULL.
    pub fn is_null(&self, column: &str) -> Result<bool, DatabaseError> {
        Ok(*self.value(column)? == Value::Null)
    }

    /// A NOT NULL column of type TEXT.
    pub fn text(&self, column: &str) -> Result<String, DatabaseError> {
        self.str(column).map(str::to_owned)
    }

    /// A NOT NULL column of type TEXT, borrowed.
    pub fn str(&self, column: &str) -> Result<&'a str, DatabaseError> {
        match self.value(column)? {
            Value::Text(text) => Ok(text),
            Value::Null => Err(DatabaseError::Shape(format!("{column} is NULL"))),
            Value::Number(_) => Err(DatabaseError::Shape(format!("{column} is a number"))),
        }
    }

    /// A nullable column of type TEXT.
    pub fn optional_text(&self, column: &str) -> Result<Option<String>, DatabaseError> {
        match self.value(column)? {
            Value::Text(text) => Ok(Some(text.clone())),
            Value::Null => Ok(None),
            Value::Number(_) => Err(DatabaseError::Shape(format!("{column} is a number"))),
        }
    }

    /// A NOT NULL column of type INTEGER.
    pub fn integer(&self, column: &str) -> Result<i64, DatabaseError> {
        self.optional_integer(column)?.ok_or_else(|| DatabaseError::Shape(format!("{column} is NULL")))
    }

    /// A nullable column of type INTEGER.
    pub fn optional_integer(&self, column: &str) -> Result<Option<i64>, DatabaseError> {
        match self.value(column)? {
            Value::Number(number) => Ok(Some(*number as i64)),
            Value::Null => Ok(None),
            Value::Text(_) => Err(DatabaseError::Shape(format!("{column} is a text"))),
        }
    }

    /// A TEXT column that holds an id.
    pub fn id<I: Id>(&self, column: &str) -> Result<I, DatabaseError> {
        self.text(column).map(I::from_stored)
    }

    /// The same for a column that may be NULL.
    pub fn optional_id<I: Id>(&self, column: &str) -> Result<Option<I>, DatabaseError> {
        Ok(self.optional_text(column)?.map(I::from_stored))
    }

    /// An INTEGER column that holds milliseconds since 1970.
    pub fn timestamp(&self, column: &str) -> Result<Timestamp, DatabaseError> {
        self.integer(column).map(Timestamp::from_ms)
    }

    /// The same for a column that may be NULL.
    pub fn optional_timestamp(&self, column: &str) -> Result<Option<Timestamp>, DatabaseError> {
        Ok(self.optional_integer(column)?.map(Timestamp::from_ms))
    }

    /// A NOT NULL column that holds 0 or 1.
    pub fn flag(&self, column: &str) -> Result<bool, DatabaseError> {
        Ok(self.integer(column)? != 0)
    }

    /// A NOT NULL column that holds a word of a closed list.
    pub fn word<W: Word>(&self, column: &str) -> Result<W, DatabaseError> {
        self.str(column).and_then(|text| parse_word(column, text))
    }

    /// A nullable column that holds a word of a closed list; an empty text counts as NULL.
    pub fn optional_word<W: Word>(&self, column: &str) -> Result<Option<W>, DatabaseError> {
        let text = self.optional_text(column)?.filter(|text| !text.is_empty());
        text.map(|text| parse_word(column, &text)).transpose()
    }

    /// A NOT NULL column that holds JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, column: &str) -> Result<T, DatabaseError> {
        match self.value(column)? {
            Value::Text(text) => {
                serde_json::from_str(text).map_err(|error| DatabaseError::Shape(format!("{column}: {error}")))
            }
            _ => Err(DatabaseError::Shape(format!("{column} is not a text"))),
        }
    }
}

fn parse_word<W: Word>(column: &str, text: &str) -> Result<W, DatabaseError> {
    W::from_word(text).ok_or_else(|| unknown_word(column, text, W::LIST))
}

#[cold]
fn unknown_word(column: &str, text: &str, list: &str) -> DatabaseError {
    DatabaseError::Shape(format!("{column}: `{text}` is not a {list}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_in_the_order_of_their_values() {
        let statement = sql!(
            "SELECT json_extract(value, '$.a') || ':' FROM t WHERE ws = :ws AND b = :b AND a = :a OR b = :b AND x = ':1'",
            a = 1,
            b = "two"
        );
        let expected = "SELECT json_extract(value, '$.a') || ':' FROM t WHERE ws = :ws AND b = ?2 AND a = ?1 OR b = ?2 AND x = ':1'";
        assert_eq!(statement.sql, expected);
        assert_eq!(statement.params, [Value::Number(1.0), Value::Text("two".to_owned())]);
    }

    #[test]
    fn text_built_at_run_time_is_rendered_equally() {
        let text = "SELECT ':1', 'é' FROM t WHERE ws = :ws AND b = :b AND a = :a OR b = :b";
        let statement = sql!(text.to_owned(), a = 1, b = "two");
        assert_eq!(statement.sql, "SELECT ':1', 'é' FROM t WHERE ws = :ws AND b = ?2 AND a = ?1 OR b = ?2");
        assert_eq!(
            statement,
            sql!("SELECT ':1', 'é' FROM t WHERE ws = :ws AND b = :b AND a = :a OR b = :b", a = 1, b = "two")
        );
        let bound = statement.in_workspace(&WorkspaceId::from_stored("ws_1"));
        assert_eq!(bound.sql, "SELECT ':1', 'é' FROM t WHERE ws = ?3 AND b = ?2 AND a = ?1 OR b = ?2");
        assert_eq!(bound.params[2], Value::Text("ws_1".to_owned()));
    }

    #[test]
    fn a_batch_that_adds_something_is_no_removal() {
        let delete =
            || sql!("DELETE FROM tools WHERE workspace_id = :ws AND id = :id RETURNING id", id = "a");
        let guard = || sql!("INSERT INTO batch_guard (key_ok) SELECT 0");
        let insert = || sql!("INSERT INTO tools (id) VALUES (:id)", id = "a");
        assert!(only_removes(&[guard(), delete()]));
        assert!(only_removes(&[guard(), sql!("UPDATE api_keys SET revoked_at = :now", now = 1)]));
        assert!(!only_removes(&[guard(), sql!("UPDATE tools SET name = :name", name = "a")]));
        assert!(!only_removes(&[delete(), insert()]));
        assert!(!only_removes(&[guard()]));
    }

    #[test]
    fn the_tenth_value_has_two_digits() {
        let statement = sql!(
            "SELECT :a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k",
            a = 1,
            b = 2,
            c = 3,
            d = 4,
            e = 5,
            f = 6,
            g = 7,
            h = 8,
            i = 9,
            j = 10,
            k = 11
        );
        assert_eq!(statement.sql, "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11");
        assert_eq!(
            sql!(
                statement.sql.replace('?', ":a"),
                a1 = 1,
                a2 = 2,
                a3 = 3,
                a4 = 4,
                a5 = 5,
                a6 = 6,
                a7 = 7,
                a8 = 8,
                a9 = 9,
                a10 = 10,
                a11 = 11
            )
            .sql,
            statement.sql
        );
    }

    #[test]
    fn a_prefix_of_a_name_is_not_replaced() {
        let statement = sql!("SELECT :id, :id_2, :wsx", id = 1, id_2 = 2, wsx = 3);
        assert_eq!(statement.sql, "SELECT ?1, ?2, ?3");
    }

    #[test]
    #[should_panic(expected = "a parameter of the statement has no value")]
    fn a_parameter_without_a_value_is_refused() {
        rendered_length("SELECT :id, :other", &["id"]);
    }

    #[test]
    #[should_panic(expected = "a value has no parameter in the statement")]
    fn a_value_without_a_parameter_is_refused() {
        rendered_length("SELECT :id", &["id", "other"]);
    }
}
