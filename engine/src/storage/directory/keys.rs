//! Which shard a request with an API key is about.
use super::{bound, insert_key, insert_workspace, place};
use crate::services::{Services, Sharding};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::workspace_rows::AWAY;

impl Services {
    /// The shard with the workspace of the key with this hash; `None`: nobody has this key. A key that the directory does not
    /// know is looked up on every shard only with `may_search`. A bootstrap key that no shard knows gets one, once.
    pub(crate) async fn find_key(
        &self,
        sharding: &Sharding,
        hash: &str,
        may_search: bool,
    ) -> Result<Option<usize>, Fault> {
        let find = sql!(
            "SELECT w.state, w.shard FROM keys AS k JOIN workspaces AS w ON w.id = k.workspace_id WHERE k.hash = :hash",
            hash = hash
        );
        let chosen = sql!("SELECT shard FROM bootstraps WHERE hash = :hash", hash = hash);
        let [found, chosen] = sharding.read([find, chosen]).await?;
        let is_bootstrap = self.config().bootstrap_hashes.iter().any(|known| known == hash);
        let shard = match (found.first(), chosen.first()) {
            (Some(row), _) => place(sharding, row)?,
            (None, _) if !may_search && !is_bootstrap => return Ok(None),
            (None, chosen) => match (self.search_key(sharding, hash).await?, chosen) {
                (Some(shard), _) => shard,
                (None, Some(row)) => bound(sharding, row.str("shard")?)?,
                (None, None) if is_bootstrap => self.place_bootstrap(sharding, hash).await?,
                (None, None) => return Ok(None),
            },
        };
        sharding.remember(hash, shard);
        Ok(Some(shard))
    }

    /// Looks a key up on every shard, and tells the directory. A revoked one is found, too: a bootstrap key that was revoked
    /// must not create another workspace. One that is valid comes first, and last one of a workspace that has moved away.
    async fn search_key(&self, sharding: &Sharding, hash: &str) -> Result<Option<usize>, Fault> {
        let ask = || {
            sql!(
                format!(
                    "SELECT workspace_id, CASE WHEN revoked_at IS NULL THEN 0 WHEN revoked_at = {AWAY} THEN 2 ELSE 1 END AS place
                     FROM api_keys WHERE hash = :hash"
                ),
                hash = hash
            )
        };
        let mut found = Vec::new();
        for (shard, rows) in self.search(ask).await? {
            if let Some(row) = rows.first() {
                found.push((row.integer("place")?, shard, row.text("workspace_id")?));
            }
        }
        let Some((_, shard, workspace_id)) = found.into_iter().min() else { return Ok(None) };
        let remember = [
            insert_workspace(&workspace_id, sharding.name(shard)),
            insert_key(hash, &workspace_id),
            super::select_workspace(&workspace_id),
        ];
        let [_, _, known] = sharding.write(remember).await?;
        known.first().map_or(Ok(shard), |row| place(sharding, row)).map(Some)
    }

    /// The shard on which a bootstrap key creates its workspace. The first request decides; if it dies before the workspace
    /// exists, the next one finds what was decided, and creates it there.
    async fn place_bootstrap(&self, sharding: &Sharding, hash: &str) -> Result<usize, Fault> {
        let emptiest = self.emptiest(sharding).await?;
        let decide = [
            sql!(
                "INSERT INTO bootstraps (hash, shard) VALUES (:hash, :shard) ON CONFLICT (hash) DO NOTHING",
                hash = hash,
                shard = sharding.name(emptiest)
            ),
            sql!("SELECT shard FROM bootstraps WHERE hash = :hash", hash = hash),
        ];
        let [_, decided] = sharding.write(decide).await?;
        decided.first().map_or(Ok(emptiest), |row| bound(sharding, row.str("shard")?))
    }
}
