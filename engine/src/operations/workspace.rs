//! The caller's workspace: its name and its limits.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::ids::WorkspaceId;
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::config::{Ceilings, Config};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource;
use crate::ports::statement::Row;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::spending::{self, RESERVED};

/// `GET /workspace`
pub const GET: Operation = Operation::get("get_workspace", "/workspace", run!(get))
    .docs(
        "Get the workspace",
        "Returns the workspace that the key belongs to: its limits, and what its models and telephone calls have cost this \
        month.",
    )
    .returns::<Workspace>();

/// `PATCH /workspace`
pub const UPDATE: Operation = Operation::patch("update_workspace", "/workspace", run!(update))
    .docs("Update the workspace", "Changes the given fields; the others keep their values.")
    .partial_body::<Draft>()
    .returns::<Workspace>()
    .for_admins();

/// The fields that you set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Draft {
    /// The name of the workspace.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    name: String,
    /// What models and carriers may cost in a calendar month, in millionths of a US dollar; null for no limit. What
    /// starts reserves what it may cost; once nothing is left, nothing that costs money can start. A lower limit of the
    /// operator takes precedence.
    #[serde(default)]
    #[schemars(range(min = 0, max = limits::INTEGER_MAX))]
    monthly_spend_limit_microusd: Option<i64>,
    /// How many simulation runs can be in progress at once; further ones wait in the queue.
    #[schemars(range(min = 1, max = limits::RUNS_AT_ONCE_MAX))]
    runs_at_once: i64,
    /// How many telephone calls can be live at once; further outgoing calls are refused and further incoming calls
    /// declined.
    #[schemars(range(min = 1, max = limits::CALLS_AT_ONCE_MAX))]
    calls_at_once: i64,
    /// Calls are deleted this many days after they ended, with their recordings; null keeps them.
    #[serde(default)]
    #[schemars(range(min = 1, max = limits::RETENTION_DAYS_MAX))]
    call_retention_days: Option<i64>,
    /// Recordings are deleted this many days after they were stored, their calls stay; null keeps them as long as
    /// their calls.
    #[serde(default)]
    #[schemars(range(min = 1, max = limits::RETENTION_DAYS_MAX))]
    recording_retention_days: Option<i64>,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Workspace {
    /// `ws_…`
    id: WorkspaceId,
    #[serde(flatten)]
    draft: Draft,
    /// What models and carriers have cost this calendar month (UTC), in millionths of a US dollar.
    spent_this_month_microusd: i64,
    /// What the calls and runs in progress may still cost, in millionths of a US dollar. Without a spending limit,
    /// nothing is reserved.
    reserved_microusd: i64,
    /// What keeps the limits above from holding as they are set: lower limits of the operator, and providers of models
    /// and carriers without rates. Empty if nothing does.
    warnings: Vec<String>,
    /// When it was created.
    created_at: Timestamp,
}

impl Workspace {
    fn read(row: Row<'_>, config: &Config) -> Result<Self, Fault> {
        let draft = Draft {
            name: row.text("name")?,
            monthly_spend_limit_microusd: row.optional_integer("monthly_spend_limit_microusd")?,
            runs_at_once: row.integer("runs_at_once")?,
            calls_at_once: row.integer("calls_at_once")?,
            call_retention_days: row.optional_integer("call_retention_days")?,
            recording_retention_days: row.optional_integer("recording_retention_days")?,
        };
        Ok(Self {
            id: row.id("id")?,
            warnings: draft.warnings(config),
            draft,
            spent_this_month_microusd: row.integer("spent")?,
            reserved_microusd: row.integer("reserved")?,
            created_at: row.timestamp("created_at")?,
        })
    }
}

impl Draft {
    /// What keeps these limits from holding as they are set.
    fn warnings(&self, config: &Config) -> Vec<String> {
        let Ceilings { monthly_spend_limit_microusd: ceiling, runs_at_once, calls_at_once } = config.ceilings;
        let mut warnings = Vec::new();
        if let Some(ceiling) = ceiling
            && self.monthly_spend_limit_microusd.is_none_or(|own| own > ceiling)
        {
            let unit = "millionths of a US dollar in a month";
            warnings.push(format!("The operator allows this workspace at most {ceiling} {unit}."));
        }
        let counts = [
            (self.runs_at_once, runs_at_once, "simulation runs"),
            (self.calls_at_once, calls_at_once, "telephone calls"),
        ];
        for (own, most, what) in counts {
            if own > most {
                warnings.push(format!("The operator allows this workspace at most {most} {what} at once."));
            }
        }
        if ceiling.or(self.monthly_spend_limit_microusd).is_some() {
            warnings.extend(config.limit_warnings());
        }
        warnings
    }
}

async fn load(context: &mut Context) -> Result<Workspace, Fault> {
    let select = sql!(
        format!(
            "SELECT id, name, monthly_spend_limit_microusd, runs_at_once, calls_at_once,
             call_retention_days, recording_retention_days, created_at,
             COALESCE((SELECT microusd FROM spending WHERE spending.workspace_id = :ws AND month = :month), 0) AS spent,
             {RESERVED} AS reserved FROM workspaces WHERE id = :ws"
        ),
        month = spending::month(context.now_ms),
        call = "",
    );
    let [rows] = context.read_each([select]).await?;
    let row = rows.first().ok_or_else(|| Error::not_found("workspace"))?;
    Workspace::read(row, context.services.config())
}

async fn get(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    Output::ok(&load(context).await?)
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = load(context).await?;
    let draft: Draft = resource::overlaid(&current.draft, &input.body, &[])?;
    if draft == current.draft {
        return Output::ok(&current);
    }
    // A workspace has no revision, so the values that were read guard the change.
    let before = &current.draft;
    let guard = sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM workspaces WHERE id = :ws
         AND name = :name AND monthly_spend_limit_microusd IS :spend AND runs_at_once = :runs AND calls_at_once = :calls
         AND call_retention_days IS :call_days AND recording_retention_days IS :recording_days)",
        name = &before.name,
        spend = before.monthly_spend_limit_microusd,
        runs = before.runs_at_once,
        calls = before.calls_at_once,
        call_days = before.call_retention_days,
        recording_days = before.recording_retention_days
    );
    let update = sql!(
        "UPDATE workspaces SET name = :name, monthly_spend_limit_microusd = :spend, runs_at_once = :runs,
         calls_at_once = :calls, call_retention_days = :call_days, recording_retention_days = :recording_days WHERE id = :ws",
        name = &draft.name,
        spend = draft.monthly_spend_limit_microusd,
        runs = draft.runs_at_once,
        calls = draft.calls_at_once,
        call_days = draft.call_retention_days,
        recording_days = draft.recording_retention_days
    );
    let warnings = draft.warnings(context.services.config());
    let next = Workspace { draft, warnings, ..current };
    context.commit(vec![guard, update], Output::ok(&next)?).await
}
