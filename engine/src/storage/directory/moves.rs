//! Which of two databases owns a workspace that moves between them. The directory decides, each time in one write that names
//! the move: `moving` says that the workspace still belongs to where it was, `settling` that it is decided for one of the two, and
//! the other one is to be emptied. So of going on and canceling, one happens, and a write that comes late changes nothing.
use super::bound;
use crate::base::ids::WorkspaceId;
use crate::ports::statement::{Row, Statement};
use crate::services::{Services, Sharding};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::Refusal;

/// Where a workspace is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    /// The shard that owns it.
    pub shard: usize,
    /// The move that is under way.
    pub transit: Option<Transit>,
}

/// A move between two shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transit {
    /// `mov_…`
    pub id: String,
    /// The shard that is being filled or, once it is decided, emptied.
    pub other: usize,
    /// Whether it is decided who owns the workspace.
    pub is_decided: bool,
}

impl Home {
    fn read(sharding: &Sharding, row: Row<'_>) -> Result<Self, Fault> {
        let shard = bound(sharding, row.str("shard")?)?;
        let is_decided = match row.str("state")? {
            "at" => return Ok(Self { shard, transit: None }),
            state => state == "settling",
        };
        let other = bound(sharding, row.str("other_shard")?)?;
        let id = row.optional_text("move_id")?.unwrap_or_default();
        Ok(Self { shard, transit: Some(Transit { id, other, is_decided }) })
    }
}

impl Sharding {
    /// Where the directory says that a workspace is; `None`: it does not know.
    pub(crate) async fn home_of(&self, workspace_id: &WorkspaceId) -> Result<Option<Home>, Fault> {
        let find = sql!("SELECT state, shard, other_shard, move_id FROM workspaces WHERE id = :ws");
        let [known] = self.read([find.in_workspace(workspace_id)]).await?;
        known.first().map(|row| Home::read(self, row)).transpose()
    }

    /// Begins a move from one shard to another. Whether it has: the workspace may be elsewhere, or move already.
    pub(crate) async fn depart(
        &self,
        workspace_id: &WorkspaceId,
        from: usize,
        to: usize,
        id: &str,
    ) -> Result<bool, Fault> {
        let depart = sql!(
            "UPDATE workspaces SET state = 'moving', other_shard = :other, move_id = :move_id
             WHERE id = :ws AND state = 'at' AND shard = :shard RETURNING id",
            other = self.name(to),
            move_id = id,
            shard = self.name(from)
        );
        self.change(workspace_id, depart).await
    }

    /// Decides that `owner` owns the workspace from now on, and `other` is to be emptied. Whether that is new.
    pub(crate) async fn decide(
        &self,
        workspace_id: &WorkspaceId,
        id: &str,
        owner: usize,
        other: usize,
    ) -> Result<bool, Fault> {
        let decide = sql!(
            "UPDATE workspaces SET state = 'settling', shard = :shard, other_shard = :other
             WHERE id = :ws AND state = 'moving' AND move_id = :move_id RETURNING id",
            shard = self.name(owner),
            other = self.name(other),
            move_id = id
        );
        self.change(workspace_id, decide).await
    }

    /// Ends a move that was decided. Whether it has.
    pub(crate) async fn settle(&self, workspace_id: &WorkspaceId, id: &str) -> Result<bool, Fault> {
        let settle = sql!(
            "UPDATE workspaces SET state = 'at', other_shard = NULL, move_id = NULL
             WHERE id = :ws AND state = 'settling' AND move_id = :move_id RETURNING id",
            move_id = id
        );
        self.change(workspace_id, settle).await
    }

    async fn change(&self, workspace_id: &WorkspaceId, change: Statement) -> Result<bool, Fault> {
        let [changed] = self.write([change.in_workspace(workspace_id)]).await?;
        Ok(!changed.is_empty())
    }
}

impl Services {
    /// With the database of a workspace that moves to another host, or from there: not while it moves between two databases.
    pub(crate) async fn at_only_home_of(&self, workspace_id: &WorkspaceId) -> Result<Self, Fault> {
        if let Some(sharding) = self.sharding()
            && let Some(Home { transit: Some(_), .. }) = sharding.home_of(workspace_id).await?
        {
            return Err(Refusal::BetweenDatabases.error().into());
        }
        self.at_home_of(workspace_id).await
    }
}
