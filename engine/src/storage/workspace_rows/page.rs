//! A page outside a database.
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::base::limits::{INTEGER_MAX, MOVE_PART_ROWS_MAX};
use crate::ports::statement::Value;

/// Rows of a page that is read.
pub(crate) const ROWS_MAX: usize = MOVE_PART_ROWS_MAX as usize;
/// Values of a row that is read. No table has more columns.
const COLUMNS_MAX: usize = 64;

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

/// A line as it is written.
#[derive(Serialize)]
struct Line<'a> {
    table: &'a str,
    rows: Vec<Vec<Plain<'a>>>,
}

/// A value as JSON: null, a whole number or a text.
#[derive(Serialize)]
#[serde(untagged)]
enum Plain<'a> {
    Null(()),
    Number(i64),
    Text(&'a str),
}

/// A line as it is read. Somebody may have made it up: it takes no more memory than its texts and a page of other values do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    table: String,
    #[serde(deserialize_with = "at_most::<ROWS_MAX, _, _>")]
    rows: Vec<ReadRow>,
}

#[derive(Deserialize)]
struct ReadRow(#[serde(deserialize_with = "at_most::<COLUMNS_MAX, _, _>")] Vec<ReadValue>);

struct ReadValue(Value);

impl Page {
    /// The page as one line of JSON, without the place in its database.
    pub fn to_line(&self) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(Plain::of).collect()).collect();
        // Texts, whole numbers and lists of them can always be written.
        serde_json::to_string(&Line { table: &self.table, rows }).unwrap_or_default()
    }

    /// Reads a line. The error says where it is not such a line, and has no word of it.
    pub fn from_line(line: &str) -> Result<Self, String> {
        let Read { table, rows } = serde_json::from_str(line)
            .map_err(|error| format!("column {} of the line is not as a page is written", error.column()))?;
        let rows = rows.into_iter().map(|row| row.0.into_iter().map(|value| value.0).collect()).collect();
        Ok(Self { table, rows, next: None })
    }
}

/// Adds a row as JSON, the same for the same values.
pub(super) fn add_as_json(row: &[Value], to: &mut Vec<u8>) {
    let row: Vec<Plain<'_>> = row.iter().map(Plain::of).collect();
    // As above.
    let _ = serde_json::to_writer(to, &row);
}

impl<'a> Plain<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null(()),
            Value::Number(number) => Self::Number(*number as i64),
            Value::Text(text) | Value::Asker(text) => Self::Text(text),
        }
    }
}

/// Reads a list of at most `MOST`; a longer one is not held.
pub(crate) fn at_most<'de, const MOST: usize, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct List<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(to, "a list of at most {MOST}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(one) = from.next_element()? {
                if list.len() == MOST {
                    return Err(A::Error::invalid_length(MOST + 1, &self));
                }
                list.push(one);
            }
            Ok(list)
        }
    }

    from.deserialize_seq(List::<T, MOST>(PhantomData))
}

/// A derived one would hold whatever else is there before it refuses that.
impl<'de> Deserialize<'de> for ReadValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Values;

        impl Visitor<'_> for Values {
            type Value = ReadValue;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("null, a whole number or a text")
            }

            fn visit_unit<E: Error>(self) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Null))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<ReadValue, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<ReadValue, E> {
                // A number that no column holds stays recognisable as such.
                let is_held = number.unsigned_abs() <= INTEGER_MAX.unsigned_abs();
                Ok(ReadValue(Value::Number(if is_held { number as f64 } else { f64::INFINITY })))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Text(text.to_owned())))
            }
        }

        from.deserialize_any(Values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::workspace_rows::TABLES;

    #[test]
    fn a_line_has_so_many_rows_and_values() {
        let line = |rows: usize, values: usize| {
            let row = format!("[{}]", vec!["1"; values].join(","));
            format!(r#"{{"table":"calls","rows":[{}]}}"#, vec![row; rows].join(","))
        };
        assert_eq!(Page::from_line(&line(ROWS_MAX, COLUMNS_MAX)).unwrap().rows.len(), ROWS_MAX);
        for line in [line(ROWS_MAX + 1, 1), line(1, COLUMNS_MAX + 1)] {
            Page::from_line(&line).unwrap_err();
        }
        for table in TABLES {
            assert!(table.columns.len() <= COLUMNS_MAX, "{}", table.name);
        }
    }
}
