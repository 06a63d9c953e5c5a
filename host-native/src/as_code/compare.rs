//! What differs between a file and its resource, and who changed it.
use serde_json::{Map, Value};

use super::kind::Kind;
use super::lock::Seen;
use super::workspace::Row;

/// Who changed a field since the resource was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The file.
    Here,
    /// The service: somebody else.
    There,
    /// Both, to different values.
    Both,
    /// It was never seen, so nobody knows.
    Unknown,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// What the service has.
    pub there: Value,
    /// What the file decides; `None` where it leaves the choice to the service.
    pub here: Option<Value>,
    /// Who changed it.
    pub changed: Changed,
}

impl Difference {
    /// Whether a file that says nothing of it agrees.
    fn is_open(&self) -> bool {
        self.here.is_none()
    }

    /// Whether somebody else changed it, so that applying the file would undo that.
    pub fn is_conflict(&self) -> bool {
        !self.is_open() && matches!(self.changed, Changed::There | Changed::Both)
    }
}

/// The fields that differ, in their order in files.
pub fn differences(kind: Kind, file: &Map<String, Value>, row: &Row, seen: Option<&Seen>) -> Vec<Difference> {
    let fields = kind.fields().iter().filter_map(|field| {
        let name = field.name.as_str();
        let there = row.fields.get(name)?;
        let here = file.get(name);
        let changed = who(name, here, there, seen)?;
        Some(Difference { field: name.to_owned(), there: there.clone(), here: here.cloned(), changed })
    });
    fields.collect()
}

fn who(field: &str, here: Option<&Value>, there: &Value, seen: Option<&Seen>) -> Option<Changed> {
    let as_seen = seen.and_then(|seen| seen.is_as_seen(field, there));
    let Some(here) = here else {
        // The service chose; only a change of its choice is one.
        return (as_seen == Some(false)).then_some(Changed::There);
    };
    if same(here, there) {
        return None;
    }
    let as_written = seen.is_some_and(|seen| seen.is_as_written(field, here));
    match (as_seen, as_written) {
        (None, _) => Some(Changed::Unknown),
        // The service writes it in another way.
        (Some(true), true) => None,
        (Some(true), false) => Some(Changed::Here),
        (Some(false), true) => Some(Changed::There),
        (Some(false), false) => Some(Changed::Both),
    }
}

/// Whether two values mean the same: a file may have 1 where the service has 1.0.
fn same(here: &Value, there: &Value) -> bool {
    match (here, there) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() != other.is_f64() => {
            one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_there =
                |(name, one): (&String, &Value)| other.get(name).is_some_and(|other| same(one, other));
            one.len() == other.len() && one.iter().all(is_there)
        }
        _ => here == there,
    }
}

/// What is now seen of a resource and its file.
pub fn seen(row: &Row, file: &Map<String, Value>) -> Seen {
    let mut seen = Seen::new(&row.id, row.revision, &row.updated_at);
    for (field, value) in &row.fields {
        seen.remember(field, value, file.get(field));
    }
    seen
}
