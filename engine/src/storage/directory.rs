//! Which of several databases has a workspace. The directory says so; what it does not know is looked up on every shard, since
//! they are the truth of keys and numbers, and is then remembered. Where there is one database, nothing of this is asked.
mod keys;
mod moves;
mod numbers;
mod placing;

pub(crate) use moves::{Home, Transit};
pub(crate) use numbers::{in_use, stays_with_another};

use crate::base::ids::WorkspaceId;
use crate::ports::statement::{Row, Rows, Statement};
use crate::ports::{DatabaseError, NotWritable};
use crate::services::{Services, Sharding};
use crate::sql;
use crate::storage::fault::Fault;

/// The shard of a row with `shard`. While a workspace moves, that one owns it, and its lock refuses what must not be.
fn place(sharding: &Sharding, row: Row<'_>) -> Result<usize, Fault> {
    bound(sharding, row.str("shard")?)
}

/// The shard with a name that the directory has.
fn bound(sharding: &Sharding, name: &str) -> Result<usize, Fault> {
    let unbound = || DatabaseError::Unavailable(format!("the directory names {name}, which is not bound"));
    Ok(sharding.named(name).ok_or_else(unbound)?)
}

/// Remembers a workspace that was found on a shard, unless the directory knows it.
fn insert_workspace(id: &str, shard: &str) -> Statement {
    sql!(
        "INSERT INTO workspaces (id, state, shard) VALUES (:id, 'at', :shard) ON CONFLICT (id) DO NOTHING",
        id = id,
        shard = shard
    )
}

/// Remembers the workspace of a key.
fn insert_key(hash: &str, workspace_id: &str) -> Statement {
    sql!(
        "INSERT INTO keys (hash, workspace_id) VALUES (:hash, :workspace_id) ON CONFLICT (hash) DO NOTHING",
        hash = hash,
        workspace_id = workspace_id
    )
}

fn select_workspace(id: &str) -> Statement {
    sql!("SELECT state, shard FROM workspaces WHERE id = :id", id = id)
}

impl Services {
    /// With the database of this workspace, which a token of ours or a number names.
    pub(crate) async fn at_home_of(&self, workspace_id: &WorkspaceId) -> Result<Self, Fault> {
        let Some(sharding) = self.sharding() else { return Ok(self.clone()) };
        let [known] = sharding.read([select_workspace(workspace_id)]).await?;
        if let Some(row) = known.first() {
            return Ok(self.on_shard(place(sharding, row)?));
        }
        let Some(shard) = self.search_workspace(workspace_id).await? else { return Ok(self.clone()) };
        let remember = [insert_workspace(workspace_id, sharding.name(shard)), select_workspace(workspace_id)];
        let [_, known] = sharding.write(remember).await?;
        Ok(self.on_shard(known.first().map_or(Ok(shard), |row| place(sharding, row))?))
    }

    /// The shard with a workspace that the directory does not know. Where it has been before, or does not run yet, comes last.
    async fn search_workspace(&self, workspace_id: &WorkspaceId) -> Result<Option<usize>, Fault> {
        let ask = || {
            sql!(
                "SELECT COALESCE((SELECT CASE
                   WHEN m.state = 'gone' THEN 3 + (m.moved_to IS NULL) WHEN m.state IN ('released', 'erasing') THEN 2
                   WHEN m.state IN ('arriving', 'arrived', 'opening', 'canceling') THEN 1 ELSE 0 END
                 FROM moves AS m WHERE m.workspace_id = w.id), 0) AS place FROM workspaces AS w WHERE w.id = :id",
                id = workspace_id
            )
        };
        let mut found = Vec::new();
        for (shard, rows) in self.search(ask).await? {
            found.push((rows.first().map_or(Ok(0), |row| row.integer("place"))?, shard));
        }
        Ok(found.into_iter().min().map(|(_, shard)| shard))
    }

    /// Reads the same on every shard at once, and returns those that have rows. One that does not answer is an error: it may
    /// be the one.
    pub(crate) async fn search(&self, ask: impl Fn() -> Statement) -> Result<Vec<(usize, Rows)>, Fault> {
        let every = self.on_every_shard();
        let reads = every.iter().map(|services| services.read([ask()]));
        let mut found = Vec::new();
        for (shard, answer) in futures_util::future::join_all(reads).await.into_iter().enumerate() {
            let [rows] = answer?;
            if !rows.is_empty() {
                found.push((shard, rows));
            }
        }
        Ok(found)
    }

    /// Whether the directory, if there is one, takes writes: numbers are bound with it, and some callbacks need it.
    pub(crate) async fn directory_takes_writes(&self) -> Result<(), NotWritable> {
        let Some(sharding) = self.sharding() else { return Ok(()) };
        let nothing = sql!("DELETE FROM bootstraps WHERE hash = ''");
        sharding.write([nothing]).await.map(drop).map_err(|error| NotWritable {
            reason: "the directory does not answer",
            detail: format!("{error:?}"),
        })
    }

    /// Writes what belongs to no workspace and is asked before one is known: into the directory, or the only database.
    pub(crate) async fn write_common<const N: usize>(
        &self,
        statements: [Statement; N],
    ) -> Result<[Rows; N], DatabaseError> {
        match self.sharding() {
            Some(sharding) => sharding.write(statements).await,
            None => self.write(statements).await,
        }
    }
}
