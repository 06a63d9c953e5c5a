//! The spending of a workspace by month, and its monthly limit.
use crate::base::error::{Code, Error};
use crate::base::ids::WorkspaceId;
use crate::base::time;
use crate::ports::statement::{Rows, Statement};
use crate::sql;
use crate::storage::fault::Fault;

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

/// Reads the row for [`check`], in an operation that may cost money.
pub fn select(now_ms: i64) -> Statement {
    sql!(
        "SELECT monthly_spend_limit_microusd, COALESCE((SELECT microusd FROM spending
         WHERE spending.workspace_id = :ws AND month = :month), 0) AS spent FROM workspaces WHERE id = :ws",
        month = month(now_ms)
    )
}

/// Rejects an operation that costs money (one with the built-in model does not) once the limit is reached. Conversations
/// that have begun continue, each within its own limit.
pub fn check(rows: Option<&Rows>, spends: bool) -> Result<(), Fault> {
    let Some(row) = rows.and_then(Rows::first).filter(|_| spends) else {
        return Ok(());
    };
    let spent = row.integer("spent")?;
    match row.optional_integer("monthly_spend_limit_microusd")? {
        Some(limit) if spent >= limit => {
            let message = format!(
                "This workspace has spent {spent} of the {limit} millionths of a US dollar it allows itself this month. \
                 Raise monthly_spend_limit_microusd (PATCH /workspace) or wait for the next month."
            );
            let details = serde_json::json!({"limit_microusd": limit, "spent_microusd": spent});
            Err(Error::new(Code::SpendLimitReached, message).with_details(details).into())
        }
        _ => Ok(()),
    }
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
