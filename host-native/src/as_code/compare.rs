//! What differs between a file and its resource, and who changed it.
use serde_json::{Map, Value};

use super::kind::Kind;
use super::lock::Seen;
use super::workspace::{Ids, Row};

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
pub fn differences(
    kind: Kind,
    file: &Map<String, Value>,
    row: &Row,
    seen: Option<&Seen>,
    ids: &Ids,
) -> Vec<Difference> {
    let fields = kind.fields().iter().filter_map(|field| {
        let name = field.name.as_str();
        let there = row.fields.get(name)?;
        let here = file.get(name);
        let as_seen = || seen.and_then(|seen| is_as_seen(kind, name, row, seen));
        let changed = match here {
            // The service chose; only a change of its choice is one.
            None => (as_seen() == Some(false)).then_some(Changed::There),
            Some(here) if is_same(kind, name, here, row) => None,
            Some(here) => {
                let as_written = seen.is_some_and(|seen| is_as_written(kind, name, here, seen, ids));
                who(as_seen(), as_written)
            }
        }?;
        Some(Difference { field: name.to_owned(), there: there.clone(), here: here.cloned(), changed })
    });
    fields.collect()
}

/// Who changed a field that differs: whether the service still has what was seen, if anything was, and whether the file has.
fn who(as_seen: Option<bool>, as_written: bool) -> Option<Changed> {
    match (as_seen, as_written) {
        (None, _) => Some(Changed::Unknown),
        // The service writes it in another way.
        (Some(true), true) => None,
        (Some(true), false) => Some(Changed::Here),
        (Some(false), true) => Some(Changed::There),
        (Some(false), false) => Some(Changed::Both),
    }
}

/// Whether the service still has what was seen of a field; `None` if nothing was.
pub fn is_as_seen(kind: Kind, field: &str, row: &Row, seen: &Seen) -> Option<bool> {
    let is = |there: Option<&Value>| there.and_then(|there| seen.is_as_seen(field, there));
    match is(row.kept(kind, field)) {
        Some(true) => Some(true),
        // A lock of an earlier version has references by the names of files.
        kept => is(row.fields.get(field)).or(kept),
    }
}

/// Whether the file still has what it had of a field when the resource was last seen.
pub fn is_as_written(kind: Kind, field: &str, here: &Value, seen: &Seen, ids: &Ids) -> bool {
    // Likewise.
    seen.is_as_written(field, &ids.in_field(kind, field, here)) || seen.is_as_written(field, here)
}

/// Whether a file has what its resource has. A simulation without a name of its own has one all the same, and a file may
/// state that.
fn is_same(kind: Kind, field: &str, here: &Value, row: &Row) -> bool {
    let is = |there: Option<&Value>| there.is_some_and(|there| same(here, there));
    is(row.fields.get(field)) || (kind.reference(field).is_none() && is(row.kept(kind, field)))
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
pub fn seen(kind: Kind, row: &Row, file: &Map<String, Value>, ids: &Ids) -> Seen {
    let mut seen = Seen::new(&row.id, row.revision, &row.updated_at);
    for (field, value) in &row.fields {
        let here = file.get(field).map(|here| ids.in_field(kind, field, here));
        seen.remember(field, row.kept(kind, field).unwrap_or(value), here.as_ref());
    }
    seen
}
