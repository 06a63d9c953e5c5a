//! D1 as the engine's `Database`, including the conversion of JavaScript values.
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use sidetone_engine::ports::statement::{Rows, Statement, Value};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use worker::js_sys::{self, Promise};
use worker::wasm_bindgen::prelude::wasm_bindgen;
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::worker_sys::types::D1Database;

/// The database of a binding.
pub struct D1(D1Database);

impl D1 {
    /// Wraps the binding.
    pub fn new(binding: worker::D1Database) -> Self {
        Self(JsValue::from(binding).unchecked_into())
    }

    /// Runs a batch as one transaction, reading or writing.
    async fn batch(&self, batch: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let batch: Vec<(&str, Vec<Bound<'_>>)> = batch
            .iter()
            .map(|statement| (&*statement.sql, statement.params.iter().map(Bound).collect()))
            .collect();
        let text = serde_json::to_string(&batch).map_err(|error| shape(&error.to_string()))?;
        let answered = JsFuture::from(run(&self.0, &text)).await.map_err(|thrown| error(&thrown))?;
        let text = answered.as_string().ok_or_else(|| shape("no JSON can be made of the rows"))?;
        let results: Vec<Vec<Columns>> =
            serde_json::from_str(&text).map_err(|error| shape(&error.to_string()))?;
        results.into_iter().map(rows).collect()
    }
}

// Crossing the border to JavaScript is slow, so one JSON text crosses it each way. D1's metadata is omitted.
#[wasm_bindgen(wasm_bindgen = worker::wasm_bindgen, inline_js = r#"
export async function run(database, text) {
  const batch = JSON.parse(text).map(([sql, params]) => database.prepare(sql).bind(...params));
  const answers = await database.batch(batch);
  return JSON.stringify(answers.map((answer) => answer.results));
}
export async function size(database) {
  return (await database.prepare("SELECT 1").run()).meta.size_after;
}
"#)]
extern "C" {
    fn run(database: &D1Database, batch: &str) -> Promise;
    fn size(database: &D1Database) -> Promise;
}

/// A bound value.
struct Bound<'a>(&'a Value);

impl Serialize for Bound<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Text(text) | Value::Asker(text) => serializer.serialize_str(text),
        }
    }
}

impl Database for D1 {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.batch(batch))
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.batch(batch))
    }

    /// D1 knows no `page_count`, and tells the size beside every answer.
    fn bytes(&self) -> BoxFuture<'_, Result<u64, DatabaseError>> {
        Box::pin(async move {
            let told = JsFuture::from(size(&self.0)).await.map_err(|thrown| error(&thrown))?;
            let bytes = told.as_f64().ok_or_else(|| shape("no size of the database"))?;
            Ok(bytes as u64)
        })
    }
}

/// One row: an object with one property per column, in the statement's order.
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

/// Parses the message of a D1 error: `D1_ERROR: CHECK constraint failed: stale: SQLITE_CONSTRAINT (extended: …)`.
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
        // The statement does not match the schema; probably migrations were not applied.
        Some((_, code)) if code.starts_with("ERROR") => DatabaseError::Shape(text),
        _ if text.starts_with("D1_TYPE_ERROR") => DatabaseError::Shape(text),
        _ => DatabaseError::Unavailable(text),
    }
}
