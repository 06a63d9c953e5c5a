//! Where a new workspace goes: to the emptiest shard.
use super::{insert_key, insert_workspace, place, select_workspace};
use crate::base::ids::WorkspaceId;
use crate::base::limits::FILL_STEP_BYTES;
use crate::ports::DatabaseError;
use crate::services::{Services, Sharding};
use crate::sql;
use crate::storage::fault::Fault;

impl Services {
    /// The emptiest shard: by its size in large steps, then by the workspaces that it has. One that does not answer gets none.
    pub(crate) async fn emptiest(&self, sharding: &Sharding) -> Result<usize, Fault> {
        // A bootstrap key whose workspace does not exist yet counts as one.
        let counts = sql!(
            "SELECT shard, COUNT(*) AS workspaces FROM (SELECT shard FROM workspaces UNION ALL
             SELECT shard FROM bootstraps WHERE hash NOT IN (SELECT hash FROM keys)) GROUP BY shard"
        );
        let [counts] = sharding.read([counts]).await?;
        let mut workspaces = vec![0; sharding.count()];
        for row in counts.iter() {
            if let Some(count) = sharding.named(row.str("shard")?).and_then(|shard| workspaces.get_mut(shard))
            {
                *count = row.integer("workspaces")?;
            }
        }
        let every = self.on_every_shard();
        let sizes = every.iter().map(|services| services.ports().database.bytes());
        let sizes = futures_util::future::join_all(sizes).await;
        let filled = sizes.into_iter().zip(workspaces).enumerate();
        let answering = filled.filter_map(|(shard, (bytes, workspaces))| {
            Some((bytes.ok()? / FILL_STEP_BYTES, workspaces, shard))
        });
        let none = || DatabaseError::Unavailable("no shard answers".to_owned());
        Ok(answering.min().map(|(_, _, shard)| shard).ok_or_else(none)?)
    }

    /// The database that a new workspace of the operator's goes to.
    pub(crate) async fn for_a_new_workspace(&self) -> Result<Self, Fault> {
        match self.sharding() {
            Some(sharding) => Ok(self.on_shard(self.emptiest(sharding).await?)),
            None => Ok(self.clone()),
        }
    }

    /// The database of a workspace that arrives from another host: where it was before, or the emptiest. The first request
    /// decides.
    pub(crate) async fn for_an_arriving_workspace(&self, id: &WorkspaceId) -> Result<Self, Fault> {
        let Some(sharding) = self.sharding() else { return Ok(self.clone()) };
        let shard = match self.search_workspace(id).await? {
            Some(shard) => shard,
            None => self.emptiest(sharding).await?,
        };
        let decide = [insert_workspace(id, sharding.name(shard)), select_workspace(id)];
        let [_, decided] = sharding.write(decide).await?;
        Ok(self.on_shard(decided.first().map_or(Ok(shard), |row| place(sharding, row))?))
    }

    /// Tells the directory of a new key of a workspace in this database: its first request searches nothing.
    pub(crate) async fn tell_key(&self, hash: &str, workspace_id: &WorkspaceId) {
        let Some(sharding) = self.sharding() else { return };
        let ours = self.shard().map_or("", |shard| sharding.name(shard));
        // Without it, the key is looked up on every shard once.
        let _ = sharding.write([insert_workspace(workspace_id, ours), insert_key(hash, workspace_id)]).await;
    }
}
