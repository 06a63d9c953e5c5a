//! D1 behind the engine's `Database`; the only place where JavaScript values become ours.
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_engine::statement::{Rows, Statement, Value};
use worker::js_sys::{self, Array, JSON};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::worker_sys::types::{D1Database, D1PreparedStatement};

/// The database behind a binding.
pub struct D1(D1Database);

impl D1 {
    /// Takes the binding over.
    pub fn new(binding: worker::D1Database) -> Self {
        Self(JsValue::from(binding).unchecked_into())
    }

    /// D1's `batch` is a transaction for reads and writes alike.
    async fn batch(&self, batch: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let prepared: Array = batch
            .iter()
            .map(|statement| self.prepare(statement))
            .collect::<Result<_, JsValue>>()
            .map_err(|thrown| error(&thrown))?;
        let answered = self.0.batch(prepared).map_err(|thrown| error(&thrown))?;
        let results = JsFuture::from(answered).await.map_err(|thrown| error(&thrown))?;
        // One text crosses the border instead of every value by itself.
        let text = JSON::stringify(&results).map_err(|_| shape("no JSON can be made of the rows"))?;
        let results: Vec<Answer> =
            serde_json::from_str(&String::from(text)).map_err(|error| shape(&error.to_string()))?;
        results.into_iter().map(|answer| rows(answer.results)).collect()
    }

    fn prepare(&self, statement: &Statement) -> Result<D1PreparedStatement, JsValue> {
        let prepared = self.0.prepare(&statement.sql)?;
        let values = statement.params.iter().map(|value| match value {
            Value::Null => JsValue::NULL,
            Value::Number(number) => JsValue::from_f64(*number),
            Value::Text(text) => JsValue::from_str(text),
        });
        prepared.bind(values.collect())
    }
}

impl Database for D1 {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.batch(batch))
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.batch(batch))
    }
}

/// What D1 says of one statement.
#[derive(Deserialize)]
struct Answer {
    results: Vec<Columns>,
}

/// One row: an object with a property a column, in the statement's order.
struct Columns(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Row;
        impl<'de> Visitor<'de> for Row {
            type Value = Columns;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Columns, M::Error> {
                let mut columns = Vec::new();
                while let Some(name) = map.next_key()? {
                    let value = match map.next_value()? {
                        serde_json::Value::Null => Value::Null,
                        serde_json::Value::String(text) => Value::Text(text),
                        serde_json::Value::Number(number) => match number.as_f64() {
                            Some(number) => Value::Number(number),
                            None => return Err(M::Error::custom("a number out of range")),
                        },
                        _ => return Err(M::Error::custom("a value that is no text, number or null")),
                    };
                    columns.push((name, value));
                }
                Ok(Columns(columns))
            }
        }
        deserializer.deserialize_map(Row)
    }
}

fn rows(results: Vec<Columns>) -> Result<Rows, DatabaseError> {
    let columns: Arc<[String]> = match results.first() {
        Some(Columns(first)) => first.iter().map(|(name, _)| name.clone()).collect(),
        None => return Ok(Rows::default()),
    };
    let mut values = Vec::with_capacity(results.len());
    for Columns(row) in results {
        if !row.iter().map(|(name, _)| name).eq(columns.iter()) {
            return Err(shape("the rows of one statement have different columns"));
        }
        values.push(row.into_iter().map(|(_, value)| value).collect());
    }
    Ok(Rows { columns, values })
}

fn shape(detail: &str) -> DatabaseError {
    DatabaseError::Shape(detail.to_owned())
}

/// D1 tells its errors as texts: `D1_ERROR: CHECK constraint failed: stale: SQLITE_CONSTRAINT (extended: …)`.
fn error(thrown: &JsValue) -> DatabaseError {
    let text = match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => format!("{thrown:?}"),
    };
    let sentence = text.strip_prefix("D1_ERROR: ").unwrap_or(&text);
    match sentence.split_once(": SQLITE_") {
        Some((sentence, code)) if code.starts_with("CONSTRAINT") => {
            DatabaseError::Constraint(sentence.to_owned())
        }
        _ if sentence.contains(" constraint failed") => DatabaseError::Constraint(sentence.to_owned()),
        // A statement that the schema does not fit: migrations that were not applied, most likely.
        Some((_, code)) if code.starts_with("ERROR") => DatabaseError::Shape(text),
        _ if text.starts_with("D1_TYPE_ERROR") => DatabaseError::Shape(text),
        _ => DatabaseError::Unavailable(text),
    }
}
