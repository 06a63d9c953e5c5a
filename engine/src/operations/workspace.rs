//! The caller's workspace: its name, and what it allows itself.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::{limits, time};
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::ports::statement::{Row, Statement};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::spending;

/// `GET /workspace`
pub const GET: Operation = Operation {
    id: "get_workspace",
    method: http::Method::GET,
    path: "/workspace",
    group: "Workspace",
    title: "Get the workspace",
    description: "Reads the workspace the key belongs to: its limits, and what its models and its telephone calls have cost this month.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Workspace>),
    errors: &[],
    run: |context, input| Box::pin(get(context, input)),
};

/// `PATCH /workspace`
pub const UPDATE: Operation = Operation {
    id: "update_workspace",
    method: http::Method::PATCH,
    path: "/workspace",
    group: "Workspace",
    title: "Change the workspace",
    description: "Changes the fields given; the others keep their values.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Workspace>),
    errors: &[],
    run: |context, input| Box::pin(update(context, input)),
};

/// What a client may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Workspace name.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    name: String,
    /// Starting a run or placing a call is refused once the month's costs have reached this many millionths of a
    /// US dollar; null for no ceiling.
    #[serde(default)]
    #[schemars(range(min = 0, max = limits::INTEGER_MAX))]
    monthly_spend_limit_microusd: Option<i64>,
    /// Simulation runs in progress at once; the others wait in the queue.
    #[schemars(range(min = 1, max = limits::RUNS_AT_ONCE_MAX))]
    runs_at_once: i64,
    /// Telephone calls at once; further ones are refused, those that come in politely.
    #[schemars(range(min = 1, max = limits::CALLS_AT_ONCE_MAX))]
    calls_at_once: i64,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Workspace {
    /// `ws_…`
    id: String,
    /// What a client may set.
    #[serde(flatten)]
    draft: Draft,
    /// What models and carriers have cost this calendar month (UTC), in millionths of a US dollar.
    spent_this_month_microusd: i64,
    /// When it was made.
    created_at: String,
}

impl Workspace {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            draft: Draft {
                name: row.text("name")?,
                monthly_spend_limit_microusd: row.optional_integer("monthly_spend_limit_microusd")?,
                runs_at_once: row.integer("runs_at_once")?,
                calls_at_once: row.integer("calls_at_once")?,
            },
            spent_this_month_microusd: row.integer("spent")?,
            created_at: time::format(row.integer("created_at")?),
        })
    }
}

fn select(now_ms: i64) -> Statement {
    sql!(
        "SELECT id, name, monthly_spend_limit_microusd, runs_at_once, calls_at_once, created_at,
         COALESCE((SELECT microusd FROM spending WHERE spending.workspace_id = :ws AND month = ?1), 0) AS spent
         FROM workspaces WHERE id = :ws",
        spending::month(now_ms)
    )
}

async fn get(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    Output::ok(&crud::one(context, select(context.now_ms), "workspace", Workspace::read).await?)
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = crud::one(context, select(context.now_ms), "workspace", Workspace::read).await?;
    let Some(draft) = crud::merged(&current.draft, &input.body)? else {
        return Output::ok(&current);
    };
    // Guarded by what was read: a workspace has no revision.
    let before = &current.draft;
    let guard = sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM workspaces WHERE id = :ws
         AND name = ?1 AND monthly_spend_limit_microusd IS ?2 AND runs_at_once = ?3 AND calls_at_once = ?4)",
        &before.name,
        before.monthly_spend_limit_microusd,
        before.runs_at_once,
        before.calls_at_once
    );
    let update = sql!(
        "UPDATE workspaces SET name = ?1, monthly_spend_limit_microusd = ?2, runs_at_once = ?3, calls_at_once = ?4
         WHERE id = :ws",
        &draft.name,
        draft.monthly_spend_limit_microusd,
        draft.runs_at_once,
        draft.calls_at_once
    );
    let next = Workspace { draft, ..current };
    context.commit(vec![guard, update], Output::ok(&next)?).await
}
