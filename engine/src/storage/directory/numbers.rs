//! Telephone numbers, which have one workspace among all shards. The directory is asked before a number is bound, and routes
//! calls by it. Of a claim whose request died before it bound the number, nothing is left to tidy up: whoever binds the number
//! later finds that it is not bound there, and takes the claim over.
use super::{insert_workspace, place};
use crate::base::error::{Code, Error};
use crate::base::ids::{Id as _, WorkspaceId};
use crate::base::limits::NUMBER_CLAIM_MS;
use crate::ports::statement::{Row, Statement};
use crate::services::{Services, Sharding};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::lock;

/// `claimed_at` of a binding that was found. Any that is not positive says that the binding is what counts: no time is kept for
/// it. Of one that was claimed, it is the negative of when, so that no two are the same.
const BOUND: i64 = 0;

/// The right of a workspace to bind a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    /// Different from that of every other claim of the workspace.
    claimed_at: i64,
    /// Whether no other request of the workspace may be about to bind the number. Only then it may be given back.
    is_only: bool,
}

/// The 409 for a number of another workspace.
pub(crate) fn in_use() -> Error {
    Error::new(Code::NumberInUse, "Another workspace has bound this number. Unbind it there first.")
}

/// The 409 for a number of another workspace that moves, or has moved: nothing of it changes until it is erased here.
pub(crate) fn stays_with_another() -> Error {
    let message = "Another workspace has bound this number, and moves to another host or from one, or has moved to one. Its numbers \
        stay with it until the operator of the service has brought the move to its end, and erased here what has moved. Ask the \
        operator when to repeat this.";
    Error::new(Code::NumberInUse, message)
}

fn select(number: &str) -> Statement {
    sql!(
        "SELECT n.workspace_id, n.claimed_at, w.state, w.shard FROM numbers AS n
         LEFT JOIN workspaces AS w ON w.id = n.workspace_id WHERE n.number = :number",
        number = number
    )
}

/// A claim of a number that nobody has, or the same workspace. It differs from what the workspace had before.
fn claim(number: &str, workspace_id: &str, now_ms: i64) -> Statement {
    sql!(
        "INSERT INTO numbers (number, workspace_id, claimed_at) VALUES (:number, :workspace_id, :now)
         ON CONFLICT (number) DO UPDATE SET claimed_at = MAX(excluded.claimed_at, ABS(claimed_at) + 1)
         WHERE workspace_id = excluded.workspace_id",
        number = number,
        workspace_id = workspace_id,
        now = now_ms
    )
}

/// Remembers a binding that was found on a shard, unless the directory knows the number by now.
fn found(number: &str, workspace_id: &str) -> Statement {
    sql!(
        "INSERT INTO numbers (number, workspace_id, claimed_at) VALUES (:number, :workspace_id, :bound)
         ON CONFLICT (number) DO NOTHING",
        number = number,
        workspace_id = workspace_id,
        bound = BOUND
    )
}

/// Gives the workspace what another one had, if it still has it so; its own claim follows. If it is not granted, that one has to
/// be where it was asked: a workspace that has moved since has its bindings elsewhere.
fn take_over(
    number: &str,
    workspace_id: &WorkspaceId,
    before: Row<'_>,
    is_granted: bool,
) -> Result<Statement, Fault> {
    Ok(sql!(
        "UPDATE numbers SET workspace_id = :workspace_id, claimed_at = :bound
         WHERE number = :number AND workspace_id = :before AND claimed_at = :claimed_at AND (:is_granted OR EXISTS (
           SELECT 1 FROM workspaces WHERE id = :before AND state = 'at' AND shard = :shard))",
        number = number,
        workspace_id = workspace_id,
        bound = BOUND,
        before = before.str("workspace_id")?,
        claimed_at = before.integer("claimed_at")?,
        is_granted = is_granted,
        shard = before.optional_text("shard")?.unwrap_or_default()
    ))
}

impl Services {
    /// Claims a number for a workspace of this database before it is bound; `None`: there is one database. `is_granted`: the
    /// operator has given it to the workspace, so that no other has it, whatever was bound before.
    pub(crate) async fn claim_number(
        &self,
        number: &str,
        workspace_id: &WorkspaceId,
        is_granted: bool,
    ) -> Result<Option<Claim>, Fault> {
        let Some(sharding) = self.sharding() else { return Ok(None) };
        let [known] = sharding.read([select(number)]).await?;
        let take_over = match known.first() {
            Some(row) if row.str("workspace_id")? == workspace_id.as_str() => None,
            Some(row) if is_granted || self.is_given_up(sharding, number, row).await? => {
                Some(take_over(number, workspace_id, row, is_granted)?)
            }
            Some(_) => return Err(in_use().into()),
            None => match self.search_number(number).await? {
                // Bound before there was a directory.
                Some((shard, owner)) if owner != *workspace_id && !is_granted => {
                    let told = [insert_workspace(&owner, sharding.name(shard)), found(number, &owner)];
                    sharding.write(told).await?;
                    return Err(in_use().into());
                }
                _ => None,
            },
        };
        // Before the directory names this one: that of a workspace that moves stays with it, in the directory, too.
        if is_granted {
            self.unbind_elsewhere(number, workspace_id).await?;
        }
        // A workspace of the dashboard may be unknown: nobody could tell then whether it has bound the number.
        let ours = insert_workspace(workspace_id, self.shard().map_or("", |shard| sharding.name(shard)));
        let take_over = take_over.unwrap_or_else(|| select(number));
        // Not when the request began: a message of a batch may come minutes later.
        let now_ms = self.now().ms();
        let claim = claim(number, workspace_id, now_ms);
        let [_, before, _, _, claimed] =
            sharding.write([ours, select(number), take_over, claim, select(number)]).await?;
        let is_ours = |row: &Row<'_>| Ok::<_, Fault>(row.str("workspace_id")? == workspace_id.as_str());
        let claim = match claimed.first() {
            Some(row) if is_ours(&row)? => {
                let is_only = match before.first() {
                    Some(row) if is_ours(&row)? => now_ms - row.integer("claimed_at")? >= NUMBER_CLAIM_MS,
                    _ => true,
                };
                Claim { claimed_at: row.integer("claimed_at")?, is_only }
            }
            _ => return Err(in_use().into()),
        };
        Ok(Some(claim))
    }

    /// A number that the operator has given to this workspace is not bound by another one any more. In this database, that goes
    /// with the batch that binds it.
    async fn unbind_elsewhere(&self, number: &str, workspace_id: &WorkspaceId) -> Result<(), Fault> {
        let ask = || {
            sql!(
                "SELECT 1 AS bound FROM numbers WHERE number = :number AND workspace_id <> :workspace_id",
                number = number,
                workspace_id = workspace_id
            )
        };
        for (shard, _) in self.search(ask).await? {
            if Some(shard) != self.shard() {
                let unbind = sql!(
                    "DELETE FROM numbers WHERE number = :number AND workspace_id <> :workspace_id",
                    number = number,
                    workspace_id = workspace_id
                );
                self.on_shard(shard).write([unbind]).await.map_err(|error| {
                    // Not this workspace's: it has no rows there.
                    match error.is_constraint(lock::REFUSED) {
                        true => Fault::from(stays_with_another()),
                        false => Fault::from(error),
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Whether the workspace of a claim has not bound the number, and no request of it can still be about to.
    async fn is_given_up(&self, sharding: &Sharding, number: &str, claim: Row<'_>) -> Result<bool, Fault> {
        let age_ms = self.now().ms() - claim.integer("claimed_at")?;
        if age_ms < NUMBER_CLAIM_MS || claim.is_null("shard")? {
            return Ok(false);
        }
        let bound = sql!(
            "SELECT 1 AS bound FROM numbers WHERE workspace_id = :workspace_id AND number = :number",
            workspace_id = claim.str("workspace_id")?,
            number = number
        );
        let [bound] = self.on_shard(place(sharding, claim)?).read([bound]).await?;
        Ok(bound.is_empty())
    }

    /// The number is bound: from now on its binding is what counts, and no time is kept for it. An assistant that is deleted takes
    /// its bindings along.
    pub(crate) async fn confirm_number(&self, number: &str, workspace_id: &WorkspaceId, claim: Claim) {
        let Some(sharding) = self.sharding() else { return };
        let confirm = sql!(
            "UPDATE numbers SET claimed_at = -claimed_at
             WHERE number = :number AND workspace_id = :workspace_id AND claimed_at = :claimed_at",
            number = number,
            workspace_id = workspace_id,
            claimed_at = claim.claimed_at
        );
        // Without it, the number stays kept for the rest of the time.
        let _ = sharding.write([confirm]).await;
    }

    /// The request has not bound the number: the next one need not wait.
    pub(crate) async fn release_number(&self, number: &str, workspace_id: &WorkspaceId, claim: Claim) {
        let Some(sharding) = self.sharding().filter(|_| claim.is_only) else { return };
        let release = sql!(
            "DELETE FROM numbers WHERE number = :number AND workspace_id = :workspace_id AND claimed_at = :claimed_at",
            number = number,
            workspace_id = workspace_id,
            claimed_at = claim.claimed_at
        );
        // Without it, the claim is found to be given up later.
        let _ = sharding.write([release]).await;
    }

    /// The number was unbound by a request that began at this time; what was claimed later is another binding's.
    pub(crate) async fn forget_number(&self, number: &str, workspace_id: &WorkspaceId, began_ms: i64) {
        let Some(sharding) = self.sharding() else { return };
        let forget = sql!(
            "DELETE FROM numbers WHERE number = :number AND workspace_id = :workspace_id
             AND claimed_at BETWEEN :least AND :bound",
            number = number,
            workspace_id = workspace_id,
            least = -began_ms,
            bound = BOUND
        );
        // Without it, the number is found to be given up later.
        let _ = sharding.write([forget]).await;
    }

    /// With the database of the workspace that has bound the number that is called.
    pub(crate) async fn at_home_of_number(&self, number: &str) -> Result<Self, Fault> {
        let Some(sharding) = self.sharding() else { return Ok(self.clone()) };
        let [known] = sharding.read([select(number)]).await?;
        if let Some(row) = known.first() {
            return match row.is_null("shard")? {
                true => self.at_home_of(&row.id("workspace_id")?).await,
                false => Ok(self.on_shard(place(sharding, row)?)),
            };
        }
        let Some((shard, owner)) = self.search_number(number).await? else { return Ok(self.clone()) };
        let told = [insert_workspace(&owner, sharding.name(shard)), found(number, &owner)];
        sharding.write(told).await?;
        self.at_home_of(&owner).await
    }

    /// The shard and the workspace that has bound the number there; of several, one that the operator permits.
    async fn search_number(&self, number: &str) -> Result<Option<(usize, WorkspaceId)>, Fault> {
        let ask = || sql!("SELECT workspace_id FROM numbers WHERE number = :number", number = number);
        let grants = self.config().carriers.grants();
        let mut owners = Vec::new();
        for (shard, rows) in self.search(ask).await? {
            for row in rows.iter() {
                owners.push((shard, row.id::<WorkspaceId>("workspace_id")?));
            }
        }
        Ok(owners.into_iter().find(|(_, owner)| grants.permit(owner, number)))
    }
}
