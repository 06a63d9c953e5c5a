//! Moves the transcripts of old calls to the storage of blobs, where the operator wants it (`SIDETONE_ARCHIVE_DAYS`). A part of
//! the sweep, with a budget of its own. The workspaces take turns, so neither a large one nor one that fails keeps the others
//! waiting.
use std::collections::{BTreeSet, VecDeque};

use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::{ARCHIVE_BATCHES_MAX, ARCHIVE_PAUSE_MS, RETENTION_WORKSPACES_MAX};
use crate::jobs::sweep::Round;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::storage::archives::{self, Written, content, key};
use crate::storage::fault::Fault;
use crate::storage::service_facts;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Services {
    /// Archives a limited number of transcripts; what failed in a workspace, beside it.
    pub(super) async fn archive_old_calls(&self, now_ms: i64) -> Result<(Round, Option<Fault>), Fault> {
        let Some(days) = self.config().archive_days else { return Ok((Round { more: false }, None)) };
        let until_ms = now_ms - days * DAY_MS;
        let [found] = self.read([archives::workspaces(until_ms, now_ms, RETENTION_WORKSPACES_MAX)]).await?;
        if found.is_empty() {
            return Ok((Round { more: false }, None));
        }
        let due = found.iter().filter_map(|row| row.optional_id("id").transpose());
        let mut turns = due.collect::<Result<VecDeque<WorkspaceId>, _>>()?;
        let all_shown = turns.len() < RETENTION_WORKSPACES_MAX;
        let (mut failed, mut done, mut last) = (None, 0, None);
        while done < ARCHIVE_BATCHES_MAX
            && let Some(workspace_id) = turns.pop_front()
        {
            last = Some(workspace_id.clone());
            match self.archive_oldest(&workspace_id, until_ms).await {
                Ok(more) => {
                    done += 1;
                    turns.extend(more.then_some(workspace_id));
                }
                // One workspace is in nobody's way.
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        // While nothing can be written, the next regular sweep tries again.
        let more = done > 0 && (!turns.is_empty() || !all_shown);
        let fact = match last {
            Some(last) if more || failed.is_some() => service_facts::set(archives::LAST, &last),
            _ => service_facts::set(archives::NEXT, &(now_ms + ARCHIVE_PAUSE_MS).to_string()),
        };
        // What failed before tells more than that nothing can be written.
        match self.write([fact]).await {
            Err(fault) if failed.is_none() => Err(fault.into()),
            _ => Ok((Round { more }, failed)),
        }
    }

    /// Archives the oldest transcripts of a workspace; whether there may be more.
    async fn archive_oldest(&self, workspace_id: &WorkspaceId, until_ms: i64) -> Result<bool, Fault> {
        let own = |statement: Statement| statement.in_workspace(workspace_id);
        let [found] = self.read([own(archives::next(until_ms))]).await?;
        let Some(last) = found.iter().last() else {
            self.write(archives::archived(&[], until_ms).map(own)).await?;
            return Ok(false);
        };
        let reached_ms = last.integer("ended_at")?;
        let seqs = found.iter().map(|row| row.integer("seq")).collect::<Result<Vec<_>, _>>()?;
        let [marked] = self.write([own(archives::mark(&seqs))]).await?;
        let marked = marked.iter().map(|row| row.integer("seq")).collect::<Result<BTreeSet<_>, _>>()?;
        let mut written = Vec::new();
        for row in found.iter() {
            let seq = row.integer("seq")?;
            // Another one was deleted meanwhile.
            if marked.contains(&seq) {
                let call_id: CallId = row.id("id")?;
                let content = content(row.text("transcript")?, row.text("turns")?)?;
                let (bytes, sha256) = (content.len(), sha256_hex(&content));
                self.ports().blobs.put(&key(workspace_id, &call_id)?, content).await?;
                written.push(Written { seq, bytes, sha256 });
            }
        }
        self.write(archives::archived(&written, reached_ms).map(own)).await?;
        Ok(true)
    }
}
