//! Resources: what a workspace stores under ids and its clients list, get, create, update and delete.
//!
//! `resource!` declares one, once: its fields with their limits and defaults define the request body, the response
//! body, the columns, and the statements that insert and update a row. [`Resource`] adds its specifics, and [`list`],
//! [`get`], [`create`], [`update`] and [`delete`] are rows of the table.
mod declare;
mod standard;
mod statements;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::error::{Code, Error};
use crate::base::ids::Id;
use crate::base::time::Timestamp;
use crate::config::Config;
use crate::operations::checks;
use crate::operations::context::Context;
use crate::operations::listing::{Key, List};
use crate::operations::operation::{Input, Output, from_map};
use crate::ports::statement::{Row, Rows, Statement, Value as SqlValue};
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;

pub(crate) use declare::resource;
pub(crate) use standard::{Created, create, delete, get, list, problems, update};
use statements::insert;
pub(crate) use statements::{change, select_one, unchanged};

/// What `resource!` writes.
pub(crate) trait Declared: Serialize + JsonSchema + Clone + Send + Sync + 'static {
    type Id: Id + Send + Sync;
    /// The fields that clients set.
    type Draft: Serialize + DeserializeOwned + JsonSchema + Clone + PartialEq + Send + Sync + 'static;

    const NOUN: &'static str;
    const TABLE: &'static str;
    const PATH: &'static str;
    const PATH_OF_ONE: &'static str;
    /// The columns that [`Declared::read`] takes.
    const COLUMNS: &'static str;
    /// Their names alone.
    const NAMES: &'static str;
    /// The size of a row's fields, an SQL expression.
    const BYTES: &'static str;
    /// Rendered at compile time, like all constant texts.
    const INSERT: &'static str;
    const UPDATE: &'static str;

    fn read(row: Row<'_>) -> Result<Self, Fault>;
    fn new(id: Self::Id, draft: Self::Draft, now: Timestamp) -> Self;
    /// The next revision.
    fn changed(&self, draft: Self::Draft, now: Timestamp) -> Self;
    /// The values of [`Declared::INSERT`] and [`Declared::UPDATE`], in the order of their parameters.
    fn values(&self) -> Vec<SqlValue>;
    fn id(&self) -> &Self::Id;
    fn draft(&self) -> &Self::Draft;
    fn revision(&self) -> i64;
    fn updated_at(&self) -> Timestamp;
}

/// The specifics of a resource.
pub(crate) trait Resource: Declared {
    /// How many of them a workspace can have.
    const LIMIT: i64;
    /// Fields with objects of settings: an update changes the settings that it gives, the others keep their values.
    const MERGED: &'static [&'static str] = &[];
    /// While this is so, in SQL that names `:id`, a deletion has more to write before the row goes than one batch should:
    /// batches of others are written between its own. An interrupted deletion continues when it is repeated.
    const HELD_BY: &'static str = "0";

    /// Fills in defaults and brings values into their normal form.
    fn normalize(_draft: &mut Self::Draft, _config: &Config) {}

    /// Refuses what the schema allows and the resource does not.
    fn check(_draft: &Self::Draft, _config: &Config) -> Result<(), Error> {
        Ok(())
    }

    /// The secret that its creation or a rotation shows once.
    fn secret(_id: &Self::Id, _version: i64) -> Option<OneTimeSecret> {
        None
    }

    /// The revision to show as `ETag`.
    fn etag(&self) -> Option<i64> {
        None
    }

    /// What an update writes before it changes the row.
    fn before_update(&self) -> Vec<Statement> {
        Vec::new()
    }

    /// What an update writes beside the row.
    fn updated_with(&self, _next: &Self, _context: &Context) -> Batch {
        Batch::default()
    }

    /// What each batch of a deletion writes before the row goes.
    fn deleted_with(_id: &Self::Id, _now: Timestamp) -> Vec<Statement> {
        Vec::new()
    }

    /// The error for a constraint of the database that the resource breaks.
    fn explain(&self, fault: Fault) -> Fault {
        fault
    }
}

/// All resources of the workspace, newest first.
pub(crate) fn all<R: Declared>() -> List<R> {
    let (table, columns, bytes, read) = (R::TABLE, R::COLUMNS, R::BYTES, R::read);
    List { table, columns, bytes, key: Key::newest::<R::Id>(), filter: "", values: Vec::new(), read }
}

/// [`insert`], unless the workspace has [`Resource::LIMIT`] of them; [`explain_limit`] explains that.
pub(crate) fn insert_within_limit<R: Resource>(resource: &R) -> [Statement; 2] {
    [checks::room(R::TABLE, "", R::LIMIT), insert(resource)]
}

/// The error when [`insert_within_limit`] found no room.
pub(crate) fn explain_limit<R: Resource>(fault: Fault) -> Fault {
    checks::explain_room(fault, R::NOUN, R::LIMIT)
}

/// Writes; the last statement returns the row that it has deleted or changed, else it is a 404.
pub(crate) async fn write_one(
    context: &mut Context,
    statements: Vec<Statement>,
    noun: &str,
) -> Result<Output, Fault> {
    let rows = context.write(statements).await?;
    match rows.last().and_then(Rows::first) {
        Some(_) => Ok(Output::empty()),
        None => Err(Error::not_found(noun).into()),
    }
}

/// The resource with this id, or 404.
pub(crate) async fn one<R: Declared>(context: &mut Context, id: &R::Id) -> Result<R, Fault> {
    let [rows] = context.read_each([select_one::<R>(id)]).await?;
    found(&rows)
}

/// The resource that [`select_one`] has found, or 404.
pub(crate) fn found<R: Declared>(rows: &Rows) -> Result<R, Fault> {
    R::read(rows.first().ok_or_else(|| Error::not_found(R::NOUN))?)
}

/// 200 with the resource.
pub(crate) fn ok<R: Resource>(resource: &R) -> Result<Output, Fault> {
    Ok(Output { etag: resource.etag(), ..Output::ok(resource)? })
}

/// Refuses a revision that is not the current one.
pub(crate) fn check_revision(noun: &str, current: i64, input: &Input) -> Result<(), Error> {
    match input.if_revision {
        Some(expected) if expected != current => {
            let message =
                format!("The {noun} changed since you read it. Read it again, then repeat the change.");
            let details = serde_json::json!({"expected": expected, "current": current});
            Err(Error::new(Code::RevisionConflict, message).with_details(details))
        }
        _ => Ok(()),
    }
}

/// `current` with `changes` laid over it. In the objects named by `merged`, what is not given keeps its value too.
pub(crate) fn overlaid<T: Serialize, U: DeserializeOwned>(
    current: &T,
    changes: &Map<String, Value>,
    merged: &[&str],
) -> Result<U, Fault> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(current) else {
        return Err(Fault::Bug("a resource is not an object".to_owned()));
    };
    for (name, value) in changes {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) if merged.contains(&name.as_str()) => {
                old.extend(new.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
    Ok(from_map(&fields)?)
}

/// Turns a UNIQUE failure of the table's `name` into a 409.
pub(crate) fn name_taken<R: Declared>(fault: Fault, name: &str) -> Fault {
    match fault {
        Fault::Storage(error) if error.is_constraint(&format!("{}.name", R::TABLE)) => {
            let message =
                format!("This workspace has another {} named `{name}`. Choose another name.", R::NOUN);
            Error::new(Code::NameTaken, message)
                .with_details(serde_json::json!({"fields": [{"field": "name", "message": "is taken"}]}))
                .into()
        }
        other => other,
    }
}
