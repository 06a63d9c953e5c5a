//! Types stored in a column, and structs read from a row.
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;

use crate::base::ids::{self, Id};
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::base::words::Word;
use crate::conversation::Voicemail;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Value};
use crate::speech::options::SpeechOptions;

/// A type that is stored in one column.
pub(crate) trait Column: Sized {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError>;

    /// The value to store.
    fn value(&self) -> Value;
}

macro_rules! columns {
    ($($type:ty: $read:ident, $value:expr;)*) => {$(
        impl Column for $type {
            fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
                row.$read(column)
            }

            fn value(&self) -> Value {
                let value: fn(&Self) -> Value = $value;
                value(self)
            }
        }
    )*};
}

columns! {
    String: text, |text| text.into();
    i64: integer, |number| (*number).into();
    bool: flag, |flag| (*flag).into();
    Timestamp: timestamp, |time| (*time).into();
    Map<String, serde_json::Value>: json, json;
    SpeechOptions: json, json;
    Variables: json, json;
    Metadata: json, json;
    Voicemail: json, json;
    ids::AssistantId: id, id;
    ids::AuditEntryId: id, id;
    ids::BatchId: id, id;
    ids::CallId: id, id;
    ids::DeliveryId: id, id;
    ids::DocumentId: id, id;
    ids::EventId: id, id;
    ids::KeyId: id, id;
    ids::PersonaId: id, id;
    ids::RunId: id, id;
    ids::ScenarioId: id, id;
    ids::SimulationId: id, id;
    ids::ToolId: id, id;
    ids::WebhookId: id, id;
}

impl<W: Word> Column for W {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        row.word(column)
    }

    fn value(&self) -> Value {
        self.word().into()
    }
}

impl<T: Serialize + DeserializeOwned> Column for Vec<T> {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        row.json(column)
    }

    fn value(&self) -> Value {
        json(self)
    }
}

impl<C: Column> Column for Option<C> {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        Ok(if row.is_null(column)? { None } else { Some(C::read(row, column)?) })
    }

    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Null, C::value)
    }
}

fn id<I: Id>(id: &I) -> Value {
    id.into()
}

fn json(value: &impl Serialize) -> Value {
    serde_json::json!(value).to_string().into()
}

/// Declares a struct that is read from a row: `COLUMNS` are the columns to select, and `read` takes them. A field has
/// its column's name, or is written `field: Type = "an SQL expression"`.
macro_rules! record {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(#[$first_about:meta])*
            pub $first:ident: $first_type:ty,
            $($(#[$field_about:meta])* pub $field:ident: $type:ty $(= $expression:literal)?,)*
        }
    ) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        $(#[$about])*
        pub struct $name {
            $(#[$first_about])*
            pub $first: $first_type,
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl $name {
            /// The columns that [`Self::read`] requires.
            pub(crate) const COLUMNS: &'static str =
                concat!(stringify!($first), $(", ", $($expression, " AS ",)? stringify!($field),)*);

            /// Reads a row with [`Self::COLUMNS`].
            pub(crate) fn read(
                row: $crate::ports::statement::Row<'_>,
            ) -> Result<Self, $crate::storage::fault::Fault> {
                Ok(Self {
                    $first: $crate::storage::column::Column::read(row, stringify!($first))?,
                    $($field: $crate::storage::column::Column::read(row, stringify!($field))?,)*
                })
            }
        }
    };
}
pub(crate) use record;
