//! Numbers: which assistant answers calls to which phone number. A binding is a routing record: it
//! buys, releases or cancels nothing at the carrier.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::phone::E164;
use crate::base::{limits, time};
use crate::carriers::CarrierName;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::ports::statement::Row;
use crate::sql;
use crate::storage::fault::Fault;

/// `GET /numbers`
pub const LIST: Operation = Operation {
    id: "list_numbers",
    method: http::Method::GET,
    path: "/numbers",
    group: "Numbers",
    title: "List number bindings",
    description: "Lists all number bindings of the workspace, by number.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Number>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `PUT /numbers/{number}`
pub const BIND: Operation = Operation {
    id: "bind_number",
    method: http::Method::PUT,
    path: "/numbers/{number}",
    group: "Numbers",
    title: "Bind a number to an assistant",
    description: "Routes incoming calls to the number to an assistant, in place of the one before. Only the routing \
        changes: the carrier's webhook is set up at the carrier. Calls that are live stay where they are.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<Number>),
    errors: &[Code::InvalidParameter, Code::NumberInUse],
    run: |context, input| Box::pin(bind(context, input)),
};

/// `DELETE /numbers/{number}`
pub const UNBIND: Operation = Operation {
    id: "unbind_number",
    method: http::Method::DELETE,
    path: "/numbers/{number}",
    group: "Numbers",
    title: "Unbind a number",
    description: "Removes the routing of a number. The number stays yours at the carrier.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: false,
    query: None,
    body: None,
    response: None,
    errors: &[Code::InvalidParameter],
    run: |context, input| Box::pin(unbind(context, input)),
};

/// What a client may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The assistant that receives incoming calls.
    assistant_id: String,
    /// The carrier the number is at.
    provider: CarrierName,
    /// The carrier's region, where it has one.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::REGION_CHARS_MAX))]
    region: Option<String>,
}

/// A number's binding.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// E.164.
    number: String,
    /// What a client may set.
    #[serde(flatten)]
    draft: Draft,
    /// When it was first bound.
    created_at: String,
    /// When it last changed.
    updated_at: String,
}

impl Number {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            number: row.text("number")?,
            draft: Draft {
                assistant_id: row.text("assistant_id")?,
                provider: row.word("provider")?,
                region: row.optional_text("region")?,
            },
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
        })
    }
}

fn number(input: &Input) -> Result<E164, Error> {
    E164::parse(input.id()).map_err(|error| {
        let problem = FieldProblem::new("number", error.to_string());
        Error::fields(Code::InvalidParameter, &[problem])
    })
}

async fn list(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(
        "SELECT number, assistant_id, provider, region, created_at, updated_at
         FROM numbers WHERE workspace_id = :ws ORDER BY number"
    );
    crud::list(context, all, Number::read).await
}

async fn bind(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let number = number(input)?;
    let draft: Draft = input.body()?;
    let reads = vec![
        sql!(
            "SELECT number, assistant_id, provider, region, created_at, updated_at, workspace_id = :ws AS ours
             FROM numbers WHERE number = ?1",
            number.as_str()
        ),
        sql!("SELECT id FROM assistants WHERE workspace_id = :ws AND id = ?1", &draft.assistant_id),
    ];
    let rows = context.read(reads).await?;
    if rows.get(1).is_none_or(|rows| rows.is_empty()) {
        return Err(Error::field("assistant_id", "is no assistant of this workspace").into());
    }
    let now_ms = context.now_ms;
    let bound = match rows.first().and_then(|rows| rows.first()) {
        Some(row) if !row.flag("ours")? => {
            let message = "Another workspace has bound this number. Unbind it there first.";
            return Err(Error::new(Code::NumberInUse, message).into());
        }
        Some(row) => Some(Number::read(row)?),
        None => None,
    };
    let created_at = match &bound {
        Some(bound) if bound.draft == draft => return Output::ok(bound),
        Some(bound) => bound.created_at.clone(),
        None => time::format(now_ms),
    };
    // The update applies only within the workspace: a number that another one has bound meanwhile
    // leaves no row of ours, and the guard undoes the batch.
    let statements = vec![
        sql!(
            "INSERT INTO numbers (workspace_id, number, assistant_id, provider, region, created_at, updated_at)
             VALUES (:ws, ?1, ?2, ?3, ?4, ?5, ?5)
             ON CONFLICT (number) DO UPDATE SET assistant_id = excluded.assistant_id, provider = excluded.provider,
             region = excluded.region, updated_at = excluded.updated_at WHERE numbers.workspace_id = excluded.workspace_id",
            number.as_str(),
            &draft.assistant_id,
            draft.provider.as_str(),
            draft.region.clone(),
            now_ms,
        ),
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM numbers WHERE workspace_id = :ws AND number = ?1)",
            number.as_str()
        ),
    ];
    let next =
        Number { number: number.as_str().to_owned(), draft, created_at, updated_at: time::format(now_ms) };
    context.commit(statements, Output::ok(&next)?).await
}

async fn unbind(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let number = number(input)?;
    let delete = sql!(
        "DELETE FROM numbers WHERE workspace_id = :ws AND number = ?1 RETURNING number",
        number.as_str()
    );
    crud::delete(context, vec![delete], "number binding").await
}
