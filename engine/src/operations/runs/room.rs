//! Room for what a start reads, writes and leaves behind: memory of the process, and storage of the workspace.
use crate::base::error::Error;
use crate::base::fair_pool::Share;
use crate::base::ids::WorkspaceId;
use crate::base::limits::{
    LARGE_RESPONSE_BYTES, LARGE_RESPONSES_STORED_MAX, START_MEMORY_PER_BYTE, STARTS_BYTES_MAX,
};
use crate::operations::checks::limit_reached;
use crate::operations::context::Context;
use crate::operations::operation::Output;
use crate::ports::statement::{Rows, Statement};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::{idempotency, named_snapshots};

/// Memory for a start that has read this, until its runs are written. It is taken before anything is copied: a request of a few
/// bytes can start runs of an assistant of almost 2 MB.
pub(super) fn memory<'a>(
    context: &Context,
    read: impl IntoIterator<Item = &'a Rows>,
) -> Result<Share<WorkspaceId>, Fault> {
    let bytes: u64 = read.into_iter().map(Rows::bytes).sum();
    context.services.starts().take(context.workspace_id()?, memory_of(bytes), 0).ok_or_else(|| {
        let message = "Too many runs are being started at the moment. Nothing was started: try again soon.";
        Error::unavailable(message, 1).into()
    })
}

/// The memory of a start that has read so many bytes. The largest one must not need more than there is.
fn memory_of(bytes: u64) -> u64 {
    bytes.saturating_mul(START_MEMORY_PER_BYTE).min(STARTS_BYTES_MAX / 2)
}

/// Reads how much workspace `:ws` keeps, for [`Kept::read`].
pub(super) fn kept() -> Statement {
    let large = idempotency::large_responses();
    sql!(format!("SELECT snapshot_bytes, {large} AS large_responses FROM workspaces WHERE id = :ws"))
}

/// What a workspace keeps. Starts at the same time can pass a limit together, by what they add.
pub(super) struct Kept {
    large_responses: i64,
}

impl Kept {
    /// Refuses a start in a workspace that keeps as many configurations as it may.
    pub(super) fn read(rows: &Rows) -> Result<Self, Fault> {
        let Some(row) = rows.first() else { return Ok(Self { large_responses: 0 }) };
        named_snapshots::check_kept(rows)?;
        Ok(Self { large_responses: row.integer("large_responses")? })
    }

    /// Refuses a large response that would be stored, if there are as many as there may be.
    pub(super) fn check_response(&self, context: &Context, output: &Output) -> Result<(), Fault> {
        let bytes = output.body.as_ref().map_or(0, String::len);
        let is_stored = context.stores_response() && bytes > LARGE_RESPONSE_BYTES;
        if !is_stored || self.large_responses < LARGE_RESPONSES_STORED_MAX {
            return Ok(());
        }
        let message = format!(
            "This workspace has started {LARGE_RESPONSES_STORED_MAX} large batches under an Idempotency-Key in the last 24 hours, which is the limit. Start fewer runs at once, or without a key."
        );
        Err(limit_reached(message, "large stored responses", LARGE_RESPONSES_STORED_MAX).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::fair_pool::FairPool;
    use crate::base::limits::SNAPSHOT_BYTES_MAX;

    #[test]
    fn the_largest_start_fits_and_leaves_room_for_the_next_workspace() {
        let mut pool = FairPool::new(STARTS_BYTES_MAX);
        assert!(pool.take(&"large", memory_of(u64::MAX), 0));
        assert!(!pool.take(&"large", memory_of(u64::MAX), 0));
        assert!(pool.take(&"next", memory_of(SNAPSHOT_BYTES_MAX as u64), 0));
        assert!(memory_of(1) < memory_of(2));
    }
}
