//! A page outside a database.
use serde::{Deserialize, Serialize};

use crate::base::limits::INTEGER_MAX;
use crate::ports::statement::Value;

/// Rows of one table, in the order of its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The table's name.
    pub table: String,
    /// The values of [`Table::carried`](super::Table::carried), row by row.
    pub rows: Vec<Vec<Value>>,
    /// The key after which the table continues in the database that the page was read from; `None` after its last row.
    /// A page may be empty before the end.
    pub next: Option<Vec<Value>>,
}

/// A value as JSON: null, a whole number or a text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Plain {
    Null(()),
    Number(i64),
    Text(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    table: String,
    rows: Vec<Vec<Plain>>,
}

impl Page {
    /// The page as one line of JSON, without the place in its database.
    pub fn to_line(&self) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(Plain::of).collect()).collect();
        as_json(&Line { table: self.table.clone(), rows })
    }

    /// Reads a line. The error says where it is not such a line, and has no word of it.
    pub fn from_line(line: &str) -> Result<Self, String> {
        let Line { table, rows } = serde_json::from_str(line)
            .map_err(|error| format!("column {} of the line is not as a page is written", error.column()))?;
        let rows = rows.into_iter().map(|row| row.into_iter().map(Plain::value).collect()).collect();
        Ok(Self { table, rows, next: None })
    }
}

/// A row as JSON, the same for the same values.
pub(super) fn row_as_json(row: &[Value]) -> String {
    as_json(&row.iter().map(Plain::of).collect::<Vec<_>>())
}

fn as_json(value: &impl Serialize) -> String {
    // Texts, whole numbers and lists of them can always be written.
    serde_json::to_string(value).unwrap_or_default()
}

impl Plain {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null(()),
            Value::Number(number) => Self::Number(*number as i64),
            Value::Text(text) | Value::Asker(text) => Self::Text(text.clone()),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Null(()) => Value::Null,
            // A number that no column holds stays recognisable as such.
            Self::Number(number) if number.unsigned_abs() > INTEGER_MAX.unsigned_abs() => {
                Value::Number(f64::INFINITY)
            }
            Self::Number(number) => Value::Number(number as f64),
            Self::Text(text) => Value::Text(text),
        }
    }
}
