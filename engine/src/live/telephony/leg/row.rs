//! The row in the database.
use serde_json::json;

use super::{HandedOver, Leg, Placing};
use crate::base::ids::{CallId, WorkspaceId};
use crate::carriers::CarrierName;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::column::Column;
use crate::storage::fault::Fault;

const COLUMNS: &str =
    "call_id, workspace_id, assistant_id, provider, carrier_call_id, region_url, job_id, max_seconds,
 placed, media_at, talked_at, hang_up_at, transfer, line_until, line_microusd, said, is_over, version, created_at";

/// The telephone calls of workspace `:ws` under way, with those that were handed over, and how many it may have at once.
const ROOM: &str = "SELECT MIN(calls_at_once, :most) AS calls_at_once,
 (SELECT COUNT(*) FROM phone_calls WHERE workspace_id = :ws AND is_over = 0)
 + (SELECT COUNT(*) FROM phone_calls WHERE workspace_id = :ws AND line_until IS NOT NULL AND is_over <> 0) AS calls
 FROM workspaces WHERE id = :ws";

/// The telephone calls of a workspace.
#[derive(Clone, Copy)]
pub struct Room {
    /// Those under way.
    pub calls: i64,
    /// How many it may have.
    pub calls_at_once: i64,
}

impl Room {
    /// Reads the row for [`Room::full`].
    pub fn select(services: &Services) -> Statement {
        sql!(ROOM, most = services.config().ceilings.calls_at_once)
    }

    /// The row of [`Room::select`], if it is full.
    pub fn full(rows: &Rows) -> Result<Option<Self>, DatabaseError> {
        let Some(row) = rows.first() else { return Ok(None) };
        let room = Self { calls: row.integer("calls")?, calls_at_once: row.integer("calls_at_once")? };
        Ok(Some(room).filter(|room| room.calls >= room.calls_at_once))
    }
}

impl Leg {
    /// Fails the batch that inserts the row when the workspace has reached its limit of concurrent calls: calls that
    /// begin at the same moment all pass the earlier check.
    pub fn concurrency_guard(&self, services: &Services) -> Statement {
        sql!(
            format!("INSERT INTO batch_guard (ok) SELECT 0 FROM ({ROOM}) WHERE calls >= calls_at_once"),
            most = services.config().ceilings.calls_at_once,
        )
        .in_workspace(&self.workspace_id)
    }

    /// Inserts the row.
    pub fn insert(&self) -> Statement {
        sql!(
            format!(
                "INSERT INTO phone_calls ({COLUMNS})
                 VALUES (:call, :ws, :assistant, :provider, :carrier_call, :region_url, :job, :max_seconds, :placing,
                 :media_at, :media_started_at, :hang_up_at, :transfer, :line_until, :line_microusd, :said, :is_over,
                 :version, :created_at)"
            ),
            call = &self.call_id,
            assistant = &self.assistant_id,
            provider = self.provider.as_str(),
            carrier_call = self.carrier_call_id.clone(),
            region_url = self.region_url.clone(),
            job = &self.job_id,
            max_seconds = self.max_seconds,
            placing = self.placing.as_str(),
            media_at = self.media_at,
            media_started_at = self.media_started_at,
            hang_up_at = self.hang_up_at,
            transfer = self.transfer.map(Placing::as_str),
            line_until = self.line.map(|line| line.until),
            line_microusd = self.line.and_then(|line| line.microusd),
            said = json!(self.facts).to_string(),
            is_over = self.is_over,
            version = self.version,
            created_at = self.created_at,
        )
        .in_workspace(&self.workspace_id)
    }

    /// Reads the row of a call.
    pub fn select(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
        Self::select_for_caller(call_id).in_workspace(workspace_id)
    }

    /// Reads the row of a call of the caller's workspace, for operations.
    pub fn select_for_caller(call_id: &CallId) -> Statement {
        sql!(
            format!("SELECT {COLUMNS} FROM phone_calls WHERE workspace_id = :ws AND call_id = :call"),
            call = call_id
        )
    }

    /// Reads the row of a call by the carrier's id. Carrier ids belong to the operator's account, across all
    /// workspaces.
    pub fn select_by_carrier(provider: CarrierName, carrier_call_id: &str) -> Statement {
        sql!(
            format!(
                "SELECT {COLUMNS} FROM phone_calls WHERE provider = :provider AND carrier_call_id = :carrier_call"
            ),
            provider = provider.as_str(),
            carrier_call = carrier_call_id,
        )
    }

    /// Reads the rows of a select.
    pub fn read(row: Row<'_>) -> Result<Self, DatabaseError> {
        Ok(Self {
            call_id: row.id("call_id")?,
            workspace_id: row.id("workspace_id")?,
            assistant_id: row.id("assistant_id")?,
            provider: row.word("provider")?,
            carrier_call_id: row.optional_text("carrier_call_id")?,
            region_url: row.optional_text("region_url")?,
            job_id: row.id("job_id")?,
            max_seconds: row.integer("max_seconds")?,
            placing: row.word("placed")?,
            media_at: row.optional_timestamp("media_at")?,
            media_started_at: row.optional_timestamp("talked_at")?,
            hang_up_at: row.optional_timestamp("hang_up_at")?,
            transfer: Column::read(row, "transfer")?,
            line: match row.optional_timestamp("line_until")? {
                Some(until) => Some(HandedOver { until, microusd: row.optional_integer("line_microusd")? }),
                None => None,
            },
            facts: row.json("said")?,
            is_over: row.flag("is_over")?,
            version: row.integer("version")?,
            created_at: row.timestamp("created_at")?,
        })
    }

    /// Reads the first row of a select.
    pub fn first(rows: Option<&Rows>) -> Result<Option<Self>, DatabaseError> {
        rows.and_then(Rows::first).map(Self::read).transpose()
    }

    /// Reads the row of a call that must have one.
    pub async fn load(
        services: &Services,
        workspace_id: &WorkspaceId,
        call_id: &CallId,
    ) -> Result<Self, Fault> {
        let [rows] = services.read([Self::select(workspace_id, call_id)]).await?;
        Self::first(Some(&rows))?.ok_or_else(|| Fault::Bug(format!("{call_id} has no leg")))
    }

    /// Updates the row; fails the batch after a concurrent change.
    pub fn change(&self) -> [Statement; 2] {
        let guard = sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM phone_calls WHERE workspace_id = :ws AND call_id = :call AND version = :version)",
            call = &self.call_id,
            version = self.version,
        );
        let update = sql!(
            "UPDATE phone_calls SET carrier_call_id = :carrier_call, placed = :placing, media_at = :media_at,
             talked_at = :media_started_at, hang_up_at = :hang_up_at, transfer = :transfer, line_until = :line_until,
             line_microusd = :line_microusd, said = :said, is_over = :is_over, version = version + 1
             WHERE workspace_id = :ws AND call_id = :call",
            call = &self.call_id,
            carrier_call = self.carrier_call_id.clone(),
            placing = self.placing.as_str(),
            media_at = self.media_at,
            media_started_at = self.media_started_at,
            hang_up_at = self.hang_up_at,
            transfer = self.transfer.map(Placing::as_str),
            line_until = self.line.map(|line| line.until),
            line_microusd = self.line.and_then(|line| line.microusd),
            said = json!(self.facts).to_string(),
            is_over = self.is_over,
        );
        [guard, update].map(|statement| statement.in_workspace(&self.workspace_id))
    }
}
