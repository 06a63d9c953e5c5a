//! A moment as the service keeps it.
use std::ops::{Add, Sub};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use super::format;

/// A moment: milliseconds since 1970-01-01T00:00:00Z. On the wire it is RFC 3339, in UTC, with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment that is `ms` milliseconds after the beginning of 1970.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub const fn ms(self) -> i64 {
        self.0
    }
}

/// Later by milliseconds.
impl Add<i64> for Timestamp {
    type Output = Self;

    fn add(self, ms: i64) -> Self {
        Self(self.0 + ms)
    }
}

/// Earlier by milliseconds.
impl Sub<i64> for Timestamp {
    type Output = Self;

    fn sub(self, ms: i64) -> Self {
        Self(self.0 - ms)
    }
}

/// The milliseconds between two moments.
impl Sub for Timestamp {
    type Output = i64;

    fn sub(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(self.0))
    }
}

/// A string on the wire.
impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}
