//! SQL as data: statements with bound values, and the rows that come back.
use std::borrow::Cow;
use std::sync::Arc;

use crate::base::ids::Id;
use crate::base::time::Timestamp;
use crate::base::words::Word;
use crate::ports::DatabaseError;

/// One SQL statement and its values. Parameters are `?1`, `?2`, …; in the statements of an
/// operation `:ws` stands for the caller's workspace (see [`crate::operations::context::Context`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The text.
    pub sql: Cow<'static, str>,
    /// `params[0]` is `?1`.
    pub params: Vec<Value>,
}

impl Statement {
    /// Gives each `:name` of `text` its value, `:ws` aside. D1 knows no named parameters, so they become `?1`, `?2`, ….
    #[doc(hidden)]
    pub fn named(text: Cow<'static, str>, values: Vec<(&'static str, Value)>) -> Self {
        let (bytes, mut rendered) = (text.as_bytes(), String::with_capacity(text.len()));
        let (mut kept, mut at) = (0, 0);
        while let Some(colon) = text[at..].find(':') {
            at += colon;
            let end = name_end(bytes, at);
            let index = values.iter().position(|(name, _)| end > at && *name == &text[at + 1..end]);
            if let Some(index) = index {
                rendered.push_str(&text[kept..at]);
                rendered.push('?');
                rendered.push_str(&(index + 1).to_string());
                kept = end;
            }
            at = end.max(at + 1);
        }
        rendered.push_str(&text[kept..]);
        Self { sql: Cow::Owned(rendered), params: values.into_iter().map(|(_, value)| value).collect() }
    }

    /// The same for a job, which knows the workspace it works for: `:ws` becomes a plain value.
    pub fn in_workspace(self, workspace_id: &str) -> Self {
        self.with_workspace("?", workspace_id, "")
    }

    /// Puts a parameter that holds `value`, between `before` and `after`, in the place of each `:ws`.
    pub(crate) fn with_workspace(mut self, before: &str, value: &str, after: &str) -> Self {
        let place = (self.params.len() + 1).to_string();
        self.params.push(value.into());
        let sql = &self.sql;
        let mut rendered = String::with_capacity(sql.len() + 2 * (before.len() + place.len() + after.len()));
        let mut rest = 0;
        for (at, _) in sql.match_indices(':').filter(|(at, _)| sql[*at..].starts_with(":ws")) {
            rendered.extend([&sql[rest..at], before, &place, after]);
            rest = at + ":ws".len();
        }
        rendered.push_str(&sql[rest..]);
        self.sql = Cow::Owned(rendered);
        self
    }
}

/// Builds a [`Statement`] with named parameters: `sql!("SELECT 1 FROM calls WHERE id = :id AND version = :version",
/// id = &call_id, version = 3)`. In a literal text, a parameter without a value, or a value without a parameter, does
/// not compile.
#[macro_export]
macro_rules! sql {
    ($text:literal $(, $name:ident = $value:expr)+ $(,)?) => {{
        const _: () = $crate::ports::statement::assert_names($text, &[$(stringify!($name)),+]);
        $crate::ports::statement::Statement::named(
            ::std::convert::Into::into($text),
            vec![$((stringify!($name), $crate::ports::statement::Value::from($value))),+],
        )
    }};
    ($text:expr $(, $name:ident = $value:expr)+ $(,)?) => {
        $crate::ports::statement::Statement::named(
            ::std::convert::Into::into($text),
            vec![$((stringify!($name), $crate::ports::statement::Value::from($value))),+],
        )
    };
    ($text:expr $(, $value:expr)* $(,)?) => {
        $crate::ports::statement::Statement {
            sql: ::std::convert::Into::into($text),
            params: vec![$($crate::ports::statement::Value::from($value)),*],
        }
    };
}

/// Fails to compile unless the parameters of `text`, `:ws` aside, are exactly `names`.
#[doc(hidden)]
pub const fn assert_names(text: &str, names: &[&str]) {
    let (bytes, mut at, mut found) = (text.as_bytes(), 0, 0u128);
    while at < bytes.len() {
        let end = name_end(bytes, at);
        if end > at && !(end - at == 3 && bytes[at + 1] == b'w' && bytes[at + 2] == b's') {
            let mut index = 0;
            while index < names.len() && !is_name(bytes, at + 1, end, names[index].as_bytes()) {
                index += 1;
            }
            assert!(index < names.len(), "a parameter of the statement has no value");
            found |= 1 << index;
        }
        at = if end > at { end } else { at + 1 };
    }
    assert!(found == (1 << names.len()) - 1, "a value has no parameter in the statement");
}

/// Where the name ends whose colon is at `at`; `at` itself when no name begins there.
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
    /// Every number travels as a float, as D1 has it; integers are exact up to 2^53.
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

/// What one statement returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Column names, in order.
    pub columns: Arc<[String]>,
    /// One vector of values a row, as long as `columns`.
    pub values: Vec<Vec<Value>>,
}

impl Rows {
    /// All rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.values.iter().map(|values| Row { columns: &self.columns, values })
    }

    /// The first row, if there is one.
    pub fn first(&self) -> Option<Row<'_>> {
        self.values.first().map(|values| Row { columns: &self.columns, values })
    }

    /// Whether the statement returned no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// One row.
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

    /// A TEXT column that is never NULL.
    pub fn text(&self, column: &str) -> Result<String, DatabaseError> {
        self.str(column).map(str::to_owned)
    }

    /// A TEXT column that is never NULL, to look at.
    pub fn str(&self, column: &str) -> Result<&'a str, DatabaseError> {
        match self.value(column)? {
            Value::Text(text) => Ok(text),
            Value::Null => Err(DatabaseError::Shape(format!("{column} is NULL"))),
            Value::Number(_) => Err(DatabaseError::Shape(format!("{column} is a number"))),
        }
    }

    /// A TEXT column.
    pub fn optional_text(&self, column: &str) -> Result<Option<String>, DatabaseError> {
        match self.value(column)? {
            Value::Text(text) => Ok(Some(text.clone())),
            Value::Null => Ok(None),
            Value::Number(_) => Err(DatabaseError::Shape(format!("{column} is a number"))),
        }
    }

    /// An INTEGER column that is never NULL.
    pub fn integer(&self, column: &str) -> Result<i64, DatabaseError> {
        self.optional_integer(column)?.ok_or_else(|| DatabaseError::Shape(format!("{column} is NULL")))
    }

    /// An INTEGER column.
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

    /// An INTEGER column that holds 0 or 1.
    pub fn flag(&self, column: &str) -> Result<bool, DatabaseError> {
        Ok(self.integer(column)? != 0)
    }

    /// A TEXT column that holds a word of a closed list.
    pub fn word<W: Word>(&self, column: &str) -> Result<W, DatabaseError> {
        self.str(column).and_then(|text| parse_word(column, text))
    }

    /// The same for a column that may be NULL; an empty text counts as NULL.
    pub fn optional_word<W: Word>(&self, column: &str) -> Result<Option<W>, DatabaseError> {
        let text = self.optional_text(column)?.filter(|text| !text.is_empty());
        text.map(|text| parse_word(column, &text)).transpose()
    }

    /// A TEXT column that holds JSON.
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
    W::from_word(text).ok_or_else(|| DatabaseError::Shape(format!("{column}: `{text}` is not a {}", W::LIST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_parameters_are_numbered_in_the_order_of_their_values() {
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
    fn a_name_is_read_to_its_end() {
        let statement = sql!("SELECT :id, :id_2, :wsx", id = 1, id_2 = 2, wsx = 3);
        assert_eq!(statement.sql, "SELECT ?1, ?2, ?3");
    }

    #[test]
    #[should_panic(expected = "a parameter of the statement has no value")]
    fn a_parameter_without_a_value_is_refused() {
        assert_names("SELECT :id, :other", &["id"]);
    }

    #[test]
    #[should_panic(expected = "a value has no parameter in the statement")]
    fn a_value_without_a_parameter_is_refused() {
        assert_names("SELECT :id", &["id", "other"]);
    }
}
