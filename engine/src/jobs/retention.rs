//! What a workspace keeps for a number of days only: its calls and its recordings. A part of the sweep, with a budget of
//! its own. The workspaces take turns, so neither a large one nor one that fails keeps the others waiting.
use std::collections::VecDeque;

use crate::base::error::Code;
use crate::base::ids::WorkspaceId;
use crate::base::limits::{
    RETENTION_CALLS_MAX, RETENTION_CHUNKS_MAX, RETENTION_RECORDINGS_MAX, RETENTION_WORKSPACES_MAX,
    SEARCH_MERGE_PAGES, SEARCH_MERGES_MAX,
};
use crate::jobs::sweep::Round;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::calls::search;
use crate::storage::calls::write::erase::{Which, ended_before, erase};
use crate::storage::fault::Fault;
use crate::storage::moves::lock::stays;
use crate::storage::parts::Parts;
use crate::storage::recordings;
use crate::storage::service_facts;

/// A workspace with something to delete: what is older than `until_ms`.
struct Due {
    workspace_id: WorkspaceId,
    until_ms: i64,
}

/// What is kept for a time.
#[derive(Clone, Copy)]
enum Kept {
    Calls,
    Recordings,
}

impl Kept {
    /// The fact that holds the workspace whose turn was the last one.
    const fn last(self) -> &'static str {
        match self {
            Self::Calls => "last_retention_of_calls",
            Self::Recordings => "last_retention_of_recordings",
        }
    }

    /// The workspaces with something to delete, beginning behind the last one.
    fn due(self, now_ms: i64) -> Statement {
        let had_its_turn = service_facts::had_its_turn(self.last());
        let (days, oldest) = match self {
            Self::Calls => (
                "call_retention_days",
                "SELECT ended_at FROM calls WHERE workspace_id = w.id AND ended_at IS NOT NULL ORDER BY ended_at LIMIT 1",
            ),
            Self::Recordings => (
                "recording_retention_days",
                "SELECT created_at FROM recordings WHERE workspace_id = w.id AND state = 'ready' ORDER BY created_at LIMIT 1",
            ),
        };
        sql!(
            format!(
                "SELECT id, until FROM (SELECT w.id AS id, CAST(:now AS INTEGER) - w.{days} * 86400000 AS until, ({oldest}) AS oldest,
                   {had_its_turn} AS had_its_turn
                 FROM workspaces AS w WHERE w.{days} IS NOT NULL AND {}) WHERE oldest < until
                 ORDER BY had_its_turn, id LIMIT {RETENTION_WORKSPACES_MAX}",
                stays("w.id")
            ),
            now = now_ms
        )
    }
}

impl Due {
    fn own(&self, statements: Vec<Statement>) -> Vec<Statement> {
        statements.into_iter().map(|statement| statement.in_workspace(&self.workspace_id)).collect()
    }
}

impl Services {
    /// Deletes the oldest of a workspace in one batch; whether there may be more.
    async fn delete_oldest(&self, kept: Kept, due: &Due, now_ms: i64) -> Result<bool, Fault> {
        let database = &self.ports().database;
        match kept {
            Kept::Recordings => {
                let most = RETENTION_RECORDINGS_MAX;
                let delete = recordings::delete_before(due.until_ms, most, now_ms);
                let rows = database.write(due.own(delete)).await?;
                let deleted = rows.last().map_or(0, |rows| rows.values.len());
                Ok(i64::try_from(deleted).unwrap_or(0) == most)
            }
            Kept::Calls => {
                let oldest = ended_before(due.until_ms, RETENTION_CALLS_MAX).in_workspace(&due.workspace_id);
                let [found] = self.read([oldest]).await?;
                let mut parts = Parts::of(RETENTION_CALLS_MAX);
                found.iter().try_for_each(|row| parts.add(row))?;
                let mut lists = parts.lists();
                let Some(part) = lists.next() else { return Ok(false) };
                database.write(due.own(erase(Which::Listed(&part), now_ms))).await?;
                let is_full = i64::try_from(found.values.len()).unwrap_or(0) == RETENTION_CALLS_MAX;
                Ok(is_full || lists.next().is_some())
            }
        }
    }

    /// Deletes what workspaces no longer keep, then continues to remove the words of deleted calls from the text index. A
    /// workspace in which that fails is in the way of no other, nor is the text index, which takes room on the disk; returns
    /// why.
    pub(super) async fn apply_retention(&self, now_ms: i64) -> Result<(Round, Option<Fault>), Fault> {
        let (mut more, mut failed) = (false, None);
        for kept in [Kept::Calls, Kept::Recordings] {
            let [due] = self.read([kept.due(now_ms)]).await?;
            let mut turns = due
                .iter()
                .map(|row| Ok(Due { workspace_id: row.id("id")?, until_ms: row.integer("until")? }))
                .collect::<Result<VecDeque<_>, Fault>>()?;
            let all_shown = turns.len() < RETENTION_WORKSPACES_MAX;
            let mut last = None;
            for _ in 0..RETENTION_CHUNKS_MAX {
                let Some(due) = turns.pop_front() else { break };
                last = Some(due.workspace_id.clone());
                match self.delete_oldest(kept, &due, now_ms).await {
                    Ok(true) => turns.push_back(due),
                    Ok(false) => {}
                    // It was locked since: in the way of no other.
                    Err(Fault::Refused(error)) if error.code == Code::WorkspaceMoving => {}
                    Err(fault) => failed = failed.or(Some(fault)),
                }
            }
            more |= !turns.is_empty();
            // Where all were shown, it makes no difference who is first.
            if let Some(last) = last.filter(|_| !all_shown)
                && let Err(fault) = self.write([service_facts::set(kept.last(), &last)]).await
            {
                failed = failed.or(Some(fault.into()));
            }
        }
        match self.erase_words().await {
            Ok(words) => more |= words.more,
            Err(fault) => failed = failed.or(Some(fault)),
        }
        Ok((Round { more }, failed))
    }

    /// Merges segments of the text index while words of deleted calls may be in them: a limited number of pages in each
    /// batch, because a merge blocks other writes.
    async fn erase_words(&self) -> Result<Round, Fault> {
        let [found] = self.read([search::erasures()]).await?;
        let Some(row) = found.first().filter(|row| row.integer("workspaces").unwrap_or(0) > 0) else {
            return Ok(Round { more: false });
        };
        let mut begun = row.integer("merging")? > 0;
        for _ in 0..SEARCH_MERGES_MAX {
            let [_, before, _, between, _, after] =
                self.write(search::merge(SEARCH_MERGE_PAGES, begun)).await?;
            begun = true;
            let changes = |rows: &Rows| rows.first().map_or(Ok(0), |row| row.integer("changes"));
            let (before, between, after) = (changes(&before)?, changes(&between)?, changes(&after)?);
            // As SQLite documents it: one change is the command itself.
            if between - before < 2 && after - between < 2 {
                self.write([search::merged()]).await?;
                return Ok(Round { more: false });
            }
        }
        Ok(Round { more: true })
    }
}
