//! Which of several databases has a workspace. The directory says so; what it does not know is looked up on every shard, since
//! they are the truth of keys and numbers, and is then remembered. Where there is one database, nothing of this is asked.
mod keys;
mod numbers;
mod placing;

pub(crate) use numbers::in_use;

use crate::base::error::Error;
use crate::base::ids::WorkspaceId;
use crate::ports::statement::{Row, Rows, Statement};
use crate::ports::{DatabaseError, NotWritable};
use crate::services::{Services, Sharding};
use crate::sql;
use crate::storage::fault::Fault;

/// After how many seconds a client whose workspace is being moved tries again.
const MOVING_RETRY_S: i64 = 2;

/// What is refused while a workspace is between two databases.
fn moving() -> Fault {
    let message = "This workspace is being moved to another database. Try again in a moment.";
    Error::unavailable(message, MOVING_RETRY_S).into()
}

/// The shard of a row with `state` and `shard`.
fn place(sharding: &Sharding, row: Row<'_>) -> Result<usize, Fault> {
    if row.str("state")? != "at" {
        return Err(moving());
    }
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
        let ask = || sql!("SELECT id FROM workspaces WHERE id = :id", id = workspace_id);
        let Some((shard, _)) = self.search(ask).await?.into_iter().next() else { return Ok(self.clone()) };
        let remember = [insert_workspace(workspace_id, sharding.name(shard)), select_workspace(workspace_id)];
        let [_, known] = sharding.write(remember).await?;
        Ok(self.on_shard(known.first().map_or(Ok(shard), |row| place(sharding, row))?))
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
