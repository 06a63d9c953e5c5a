//! Moves the entries of calls of an earlier version into the text index, as a part of the sweep: in steps of limited
//! size, because each blocks other writes. Meanwhile a search looks into both indexes.
use crate::base::limits::SEARCH_UPGRADE_BATCHES_MAX;
use crate::services::Services;
use crate::storage::calls::search::upgrade;
use crate::storage::fault::Fault;

impl Services {
    /// Moves some calls; returns whether there may be more.
    pub(super) async fn upgrade_search(&self) -> Result<bool, Fault> {
        for _ in 0..SEARCH_UPGRADE_BATCHES_MAX {
            let [pending, calls] = self.read(upgrade::select()).await?;
            let Some(row) = pending.first() else {
                return Ok(false);
            };
            let step = match calls.values.is_empty() {
                true => upgrade::finish(),
                false => upgrade::move_entries(row.integer("below")?, &calls)?,
            };
            self.ports().database.write(step).await?;
        }
        Ok(true)
    }
}
