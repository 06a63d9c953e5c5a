//! Rows of a result.
use std::sync::Arc;

use super::Value;
use crate::base::ids::Id;
use crate::base::time::Timestamp;
use crate::base::words::Word;
use crate::ports::DatabaseError;

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

    /// The size of all texts.
    pub fn bytes(&self) -> u64 {
        self.values.iter().flatten().map(Value::bytes).sum::<usize>() as u64
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
            Value::Text(text) | Value::Asker(text) => Ok(text),
            Value::Null => Err(DatabaseError::Shape(format!("{column} is NULL"))),
            Value::Number(_) => Err(DatabaseError::Shape(format!("{column} is a number"))),
        }
    }

    /// A nullable column of type TEXT.
    pub fn optional_text(&self, column: &str) -> Result<Option<String>, DatabaseError> {
        match self.value(column)? {
            Value::Text(text) | Value::Asker(text) => Ok(Some(text.clone())),
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
            Value::Text(_) | Value::Asker(_) => Err(DatabaseError::Shape(format!("{column} is a text"))),
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
