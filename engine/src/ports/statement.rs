//! SQL as data: statements with bound values, and result rows.
use std::borrow::Cow;
use std::sync::Arc;

use crate::base::words::Word;
use crate::ports::DatabaseError;

/// One SQL statement and its values. Parameters are `?1`, `?2`, …; in an operation's statements `:ws` stands for the caller's
/// workspace (see [`crate::operations::context::Context`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The SQL text.
    pub sql: Cow<'static, str>,
    /// `params[0]` is `?1`.
    pub params: Vec<Value>,
}

impl Statement {
    /// For a job, which knows its workspace: binds `:ws` to a plain value.
    pub fn in_workspace(self, workspace_id: &str) -> Self {
        self.with_workspace("?", workspace_id, "")
    }

    /// Binds `value` and replaces each `:ws` with its parameter, between `before` and `after`.
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

/// Builds a [`Statement`]: `sql!("SELECT 1 WHERE ?1 = ?2", a, b)`.
#[macro_export]
macro_rules! sql {
    ($text:expr $(, $value:expr)* $(,)?) => {
        $crate::ports::statement::Statement {
            sql: ::std::convert::Into::into($text),
            params: vec![$($crate::ports::statement::Value::from($value)),*],
        }
    };
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
    W::from_word(text).ok_or_else(|| DatabaseError::Shape(format!("{column}: `{text}` is not a {}", W::LIST)))
}
