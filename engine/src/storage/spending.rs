//! The spending of a workspace by month, its monthly limit, and what calls under way have reserved of it.
//!
//! A call that may cost something reserves as it starts what it may cost at most, or what is left if that is less, and
//! may not spend more. The reservation ends with the call, in the batch that adds its costs to the month; a call whose
//! process died is ended by its job. The analysis after a call reserves again and gives back as it is answered; what a
//! process left that died over the analysis of a call that was deleted meanwhile, the sweep gives back. A line that is
//! handed over reserves for both of its ends (`line_microusd` of its leg), until it has ended. With neither a limit of the
//! workspace nor one of the operator, nothing is reserved.
pub mod budget;

pub use budget::{Budget, Grant, LineGrant, PhoneGrant};

use serde::{Deserialize, Serialize};

use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::{LIVE_COST_MICROUSD_MAX, RUNS_WOKEN_MAX};
use crate::base::time;
use crate::models::RULES_MODEL;
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::jobs::{DUE_AT_ONCE, JobKind};

/// The month of a time in UTC, such as `2026-11`.
pub fn month(now_ms: i64) -> String {
    const YEAR_AND_MONTH_CHARS: usize = 7;
    let mut text = time::format(now_ms);
    text.truncate(YEAR_AND_MONTH_CHARS);
    text
}

/// Adds a cost to the month of the workspace; goes into the batch that finishes what cost it. A negative amount corrects
/// a price that was lowered afterwards; the sum of a month never becomes negative.
pub fn add(workspace_id: &WorkspaceId, now_ms: i64, microusd: i64) -> Option<Statement> {
    (microusd != 0).then(|| {
        sql!(
            "INSERT INTO spending (workspace_id, month, microusd) VALUES (:workspace_id, :month, MAX(0, :microusd))
             ON CONFLICT DO UPDATE SET microusd = MAX(0, microusd + :microusd)",
            workspace_id = workspace_id,
            month = month(now_ms),
            microusd = microusd
        )
    })
}

/// The limit that applies: the lower one of the workspace's and the operator's; null without one.
const LIMIT: &str =
    "COALESCE(MIN(monthly_spend_limit_microusd, :ceiling), monthly_spend_limit_microusd, :ceiling)";
const SPENT: &str =
    "COALESCE((SELECT microusd FROM spending WHERE spending.workspace_id = :ws AND month = :month), 0)";
/// What other calls have reserved, whichever month they began in: their costs count in the month of their end. Lines that
/// were handed over have reserved, too.
pub(crate) const RESERVED: &str = "(COALESCE((SELECT SUM(r.microusd) FROM spending_reservations AS r
    WHERE r.workspace_id = :ws AND r.call_id <> :call), 0)
    + COALESCE((SELECT SUM(l.line_microusd) FROM phone_calls AS l
    WHERE l.workspace_id = :ws AND l.line_until IS NOT NULL), 0))";

/// Reads the row for [`Budget::read`], in an operation that may cost money.
pub fn select(services: &Services, now_ms: i64) -> Statement {
    select_beside(services, now_ms, None)
}

/// The same for a call that may have a reservation already, which does not count.
pub fn select_beside(services: &Services, now_ms: i64, call_id: Option<&CallId>) -> Statement {
    sql!(
        format!(
            "SELECT {LIMIT} AS spend_limit, {SPENT} AS spent, {RESERVED} AS reserved FROM workspaces WHERE id = :ws"
        ),
        ceiling = services.config().ceilings.monthly_spend_limit_microusd,
        month = month(now_ms),
        call = call_id.map_or("", |id| id),
    )
}

/// Reserves an amount for a call, replacing what it had reserved. Fails the batch when less is left: others may have
/// reserved since the budget was read.
pub fn reserve(
    services: &Services,
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    now_ms: i64,
    reservation: Reservation,
) -> [Statement; 2] {
    let guard = guard_left(services, workspace_id, call_id, now_ms, reservation.microusd);
    [guard, set_reservation(workspace_id, call_id, reservation)]
}

/// Fails the batch when less than this is left beside what the call has reserved.
pub fn guard_left(
    services: &Services,
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    now_ms: i64,
    microusd: i64,
) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 FROM workspaces
             WHERE id = :ws AND {LIMIT} - {SPENT} - {RESERVED} < :microusd"
        ),
        ceiling = services.config().ceilings.monthly_spend_limit_microusd,
        month = month(now_ms),
        call = call_id,
        microusd = microusd,
    )
    .in_workspace(workspace_id)
}

/// Replaces what a call has reserved, by less or by what [`guard_left`] has found.
pub fn set_reservation(
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    Reservation { microusd, models_microusd }: Reservation,
) -> Statement {
    sql!(
        "INSERT INTO spending_reservations (workspace_id, call_id, microusd, models_microusd)
         VALUES (:ws, :call, :microusd, :models)
         ON CONFLICT DO UPDATE SET microusd = excluded.microusd, models_microusd = excluded.models_microusd",
        call = call_id,
        microusd = microusd,
        models = models_microusd,
    )
    .in_workspace(workspace_id)
}

/// What a call has reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// For carrier and models.
    pub microusd: i64,
    /// The part for the models.
    pub models_microusd: i64,
}

impl Reservation {
    /// A reservation for models only.
    pub const fn for_models(microusd: i64) -> Self {
        Self { microusd, models_microusd: microusd }
    }

    /// Reads the reservation of a call.
    pub fn select(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
        sql!(
            "SELECT microusd, models_microusd FROM spending_reservations WHERE workspace_id = :ws AND call_id = :call",
            call = call_id
        )
        .in_workspace(workspace_id)
    }

    /// The row of [`Reservation::select`].
    pub fn first(rows: &Rows) -> Result<Option<Self>, DatabaseError> {
        let read = |row: crate::ports::statement::Row<'_>| {
            Ok(Self { microusd: row.integer("microusd")?, models_microusd: row.integer("models_microusd")? })
        };
        rows.first().map(read).transpose()
    }
}

/// Gives the reservation of a call back, if it has one, and lets runs continue that wait for money.
pub fn release(workspace_id: &WorkspaceId, call_id: &CallId) -> [Statement; 2] {
    let has_one =
        "EXISTS (SELECT 1 FROM spending_reservations AS r WHERE r.workspace_id = :ws AND r.call_id = :call)";
    let wake = sql!(
        format!("{WAKE_WAITING} AND {has_one}"),
        at_once = DUE_AT_ONCE,
        kind = JobKind::SimulationRun.as_str(),
        most = RUNS_WOKEN_MAX,
        call = call_id,
    );
    let delete = sql!(
        "DELETE FROM spending_reservations WHERE workspace_id = :ws AND call_id = :call",
        call = call_id
    );
    [wake, delete].map(|statement| statement.in_workspace(workspace_id))
}

/// Makes runs due that wait for money: jobs that never began, and are not due.
const WAKE_WAITING: &str = "UPDATE jobs SET due_at = :at_once WHERE id IN
    (SELECT w.id FROM jobs AS w WHERE w.kind = :kind AND w.workspace_id = :ws AND w.due_at > :at_once
     AND w.lease IS NULL AND w.attempts = 0 ORDER BY w.due_at, w.id LIMIT CAST(:most AS INTEGER))";

/// Lets runs continue that wait for money: a line has ended that had reserved some, or a run was refused, and the next ones
/// are refused as well.
pub fn wake_waiting(workspace_id: &WorkspaceId) -> Statement {
    sql!(WAKE_WAITING, at_once = DUE_AT_ONCE, kind = JobKind::SimulationRun.as_str(), most = RUNS_WOKEN_MAX,)
        .in_workspace(workspace_id)
}

/// Fails the batch unless everything that is left is still reserved by calls under way, so that one of them will wake
/// who waits.
pub fn guard_all_reserved(services: &Services, workspace_id: &WorkspaceId, now_ms: i64) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 FROM workspaces WHERE id = :ws AND ({RESERVED} = 0
             OR COALESCE({LIMIT} - {SPENT} - {RESERVED}, 1) > 0 OR {SPENT} >= {LIMIT})"
        ),
        ceiling = services.config().ceilings.monthly_spend_limit_microusd,
        month = month(now_ms),
        call = "",
    )
    .in_workspace(workspace_id)
}

/// Whether a conversation with these models costs nothing for certain: a provider's model may have a price that nobody
/// told the service.
pub fn is_free<'a>(models: impl IntoIterator<Item = &'a str>, speech_may_cost: bool) -> bool {
    !speech_may_cost && models.into_iter().all(|model| model == RULES_MODEL)
}

/// What the model and the speech of a live conversation may cost at most.
pub fn wanted_by_models(services: &Services, model: &str, voice: &str) -> i64 {
    let config = services.config();
    let may_cost = config.catalog.may_cost(model) || config.speech.may_cost(voice);
    if may_cost { LIVE_COST_MICROUSD_MAX } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id;

    #[test]
    fn formats_months() {
        assert_eq!(month(1_767_225_600_000), "2026-01");
        assert_eq!(month(1_767_225_599_999), "2025-12");
    }

    #[test]
    fn nothing_spent_writes_nothing() {
        let workspace = WorkspaceId::from_stored("ws_1");
        assert!(add(&workspace, 0, 0).is_none());
        assert!(add(&workspace, 0, 1).is_some());
        assert!(add(&workspace, 0, -1).is_some(), "a price that was lowered");
    }
}
