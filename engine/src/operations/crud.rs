//! What the plain resources share: reading one, reading all, laying a PATCH over, deleting.
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::error::{Code, Error};
use crate::operations::context::Context;
use crate::operations::operation::{Output, from_map};
use crate::ports::statement::{Row, Statement};
use crate::sql;
use crate::storage::fault::Fault;

/// The rows of one statement as a JSON array.
pub async fn list<T: Serialize>(
    context: &mut Context,
    select: Statement,
    read: fn(Row<'_>) -> Result<T, Fault>,
) -> Result<Output, Fault> {
    let rows = context.read(vec![select]).await?;
    let all: Vec<T> = rows.iter().flat_map(|rows| rows.iter()).map(read).collect::<Result<_, _>>()?;
    Output::ok(&all)
}

/// The one row of a statement, or 404.
pub async fn one<T>(
    context: &mut Context,
    select: Statement,
    noun: &str,
    read: fn(Row<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let rows = context.read(vec![select]).await?;
    match rows.first().and_then(|rows| rows.first()) {
        Some(row) => read(row),
        None => Err(Error::not_found(noun).into()),
    }
}

/// Deletes in one batch; its last statement returns the deleted row's id, or there was none: 404.
pub async fn delete(context: &mut Context, statements: Vec<Statement>, noun: &str) -> Result<Output, Fault> {
    let rows = context.write(statements).await?;
    match rows.last() {
        Some(deleted) if !deleted.is_empty() => Ok(Output::empty()),
        _ => Err(Error::not_found(noun).into()),
    }
}

/// `current` with the fields of `changes` laid over it; `None` when that changes nothing.
pub fn merged<T>(current: &T, changes: &Map<String, Value>) -> Result<Option<T>, Fault>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let Ok(Value::Object(mut fields)) = serde_json::to_value(current) else {
        return Err(Fault::Bug("a resource is not an object".to_owned()));
    };
    for (name, value) in changes {
        fields.insert(name.clone(), value.clone());
    }
    let next: T = from_map(&fields)?;
    Ok((next != *current).then_some(next))
}

/// Undoes the batch when the row is not what was read any more.
pub fn unchanged(table: &'static str, id: &str, revision: i64) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM {table} WHERE workspace_id = :ws AND id = ?1 AND revision = ?2)"
        ),
        id,
        revision
    )
}

/// Turns the UNIQUE failure of `column` (such as `tools.name`) into a 409.
pub fn name_taken(fault: Fault, column: &str, noun: &str, name: &str) -> Fault {
    match fault {
        Fault::Storage(error) if error.is_constraint(column) => {
            let message = format!("This workspace has another {noun} named `{name}`. Choose another name.");
            Error::new(Code::NameTaken, message)
                .with_details(serde_json::json!({"fields": [{"field": "name", "message": "is taken"}]}))
                .into()
        }
        other => other,
    }
}
