//! What the service says of itself to its operator. Each figure is a few look-ups in an index, however much is stored;
//! only what was spent takes one for each workspace.
use serde_json::json;

use crate::base::limits::{FOLLOWERS_MAX, JOBS_COUNTED_MAX, LIVE_SESSIONS_MAX};
use crate::ports::statement::Statement;
use crate::ports::{DatabaseError, JobsOfKind, MovesInState, Readings};
use crate::services::Services;
use crate::sql;
use crate::storage::jobs::JobKind;
use crate::storage::moves::State;
use crate::storage::spending::month;

impl Services {
    /// Reads all figures.
    pub async fn readings(&self) -> Result<Readings, DatabaseError> {
        let now_ms = self.ports().clock.now_ms();
        let [jobs, delivery, spent, moves] =
            self.read([due_jobs(now_ms), oldest_delivery(), spent(now_ms), moves()]).await?;
        let late_ms = |at: Option<i64>| at.map_or(0, |at| (now_ms - at).max(0));
        let mut readings = Readings {
            conversations: LIVE_SESSIONS_MAX - self.live_places().free().min(LIVE_SESSIONS_MAX),
            memory_bytes: (
                self.config().memory_bytes.saturating_sub(self.memory().free()),
                self.config().memory_bytes,
            ),
            followers: FOLLOWERS_MAX.saturating_sub(self.followers().free()),
            is_late: self.is_late(),
            ..Readings::default()
        };
        for row in jobs.iter() {
            let kind: JobKind = row.word("kind")?;
            let (first, next) = (row.optional_integer("first_at")?, row.optional_integer("next_at")?);
            readings.jobs.push(JobsOfKind {
                kind: kind.as_str(),
                due: row.integer("due")?,
                oldest_late_ms: late_ms(first.into_iter().chain(next).min()),
            });
        }
        if let Some(row) = delivery.first() {
            readings.deliveries_late_ms = late_ms(row.optional_integer("due_at")?);
        }
        if let Some(row) = spent.first() {
            readings.spent_microusd = row.integer("microusd")?;
        }
        // A state that no move is in any more is shown as well.
        let none = |state: &State| MovesInState { state: state.as_str(), ..MovesInState::default() };
        readings.moves = State::UNDER_WAY.iter().map(none).collect();
        for row in moves.iter() {
            let state: State = row.word("state")?;
            if let Some(shown) = readings.moves.iter_mut().find(|shown| shown.state == state.as_str()) {
                shown.count = row.integer("moves")?;
                shown.oldest_ms = late_ms(row.optional_integer("began_at")?);
            }
        }
        Ok(readings)
    }
}

/// A job that may be claimed at once is due since it was made. The first of these is the oldest one, for the rows of an index
/// are in the order in which they were made.
fn due_jobs(now_ms: i64) -> Statement {
    let kinds: Vec<_> = JobKind::ALL.iter().map(|kind| kind.as_str()).collect();
    sql!(
        "SELECT value AS kind,
           (SELECT COUNT(*) FROM (SELECT 1 FROM jobs WHERE kind = value AND due_at <= :now LIMIT CAST(:most AS INTEGER))) AS due,
           (SELECT MAX(due_at, created_at) FROM jobs WHERE kind = value AND due_at <= :now ORDER BY due_at LIMIT 1) AS first_at,
           (SELECT MIN(due_at) FROM jobs WHERE kind = value AND due_at > 0) AS next_at
         FROM json_each(:kinds)",
        kinds = json!(kinds).to_string(),
        most = JOBS_COUNTED_MAX,
        now = now_ms
    )
}

/// Of each webhook that is told something, the oldest delivery.
fn oldest_delivery() -> Statement {
    sql!(
        "SELECT MIN(first) AS due_at FROM (
           SELECT (SELECT MIN(due_at) FROM deliveries WHERE webhook_id = subject_id AND +workspace_id = owner AND due_at IS NOT NULL) AS first
           FROM (SELECT subject_id, workspace_id AS owner FROM jobs WHERE kind = :kind ORDER BY due_at LIMIT CAST(:most AS INTEGER)))",
        kind = JobKind::WebhookDelivery.as_str(),
        most = JOBS_COUNTED_MAX
    )
}

/// One look-up a workspace: the months before are not read.
fn spent(now_ms: i64) -> Statement {
    sql!(
        "SELECT COALESCE(SUM(s.microusd), 0) AS microusd
         FROM workspaces AS w CROSS JOIN spending AS s ON s.workspace_id = w.id AND s.month = :month",
        month = month(now_ms)
    )
}

/// There are few rows: one of each workspace that moves or has moved.
fn moves() -> Statement {
    sql!(
        "SELECT state, COUNT(*) AS moves, MIN(began_at) AS began_at FROM moves WHERE lock > 0 AND state <> :gone GROUP BY state",
        gone = State::Gone.as_str()
    )
}
