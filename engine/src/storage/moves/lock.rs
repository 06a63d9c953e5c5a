//! The lock: triggers that refuse every write to the rows of one workspace while its move says so.
//!
//! They are made for one workspace when its move begins, and dropped when it has ended, so all others pay nothing. They are not
//! in a migration: `wrangler d1 migrations apply` cannot create triggers. They look at `moves.lock`, so locking is one small
//! statement. A write that they refuse fails with its whole batch, also if what it follows from was read before: there is
//! no moment between looking and writing.
//!
//! SQLite has one writer and batches are atomic. So the move itself writes in a batch that first unlocks and at last locks
//! again ([`within`]): nobody can be between.
use crate::base::error::{Code, Error};
use crate::base::ids::{Id as _, WorkspaceId};
use crate::base::time::Timestamp;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::State;
use crate::storage::workspace_rows::{TABLES, Table};

/// The message of the triggers, as the `Constraint` of a
/// [`DatabaseError`](crate::ports::DatabaseError) contains it.
pub(crate) const REFUSED: &str = "workspace_moving";

/// The condition with which a statement about several workspaces leaves out the rows of those that are locked: it would fail
/// for all of them.
pub(crate) const STAYS: &str = "workspace_id NOT IN (SELECT workspace_id FROM moves WHERE lock = 2)";
/// The same for what is to be merged in the text index: it still has entries of a workspace of which only a tombstone is left.
pub(crate) const INDEX_STAYS: &str =
    "workspace_id NOT IN (SELECT workspace_id FROM moves WHERE lock = 2 AND state <> 'gone')";
/// The same of rows of `workspaces`, by this expression of their id.
pub(crate) fn stays(workspace: &str) -> String {
    STAYS.replacen("workspace_id", workspace, 1)
}

/// A statement with triggers is short, but a batch of all would be in the way of others for some milliseconds.
const AT_ONCE: usize = 40;
/// What the names of the triggers begin with that lock what is left of workspaces.
const SHARED: &str = "moved_";
/// After which time to ask again, in seconds.
const RETRY_S: i64 = 60;

/// For the client whose write was refused.
pub(crate) fn refused() -> Error {
    let message = "This workspace is being moved: no call and no run begins in it, and once it is frozen, it takes no changes. \
        Repeat the request later.";
    Error { retry_after_s: Some(RETRY_S), ..Error::new(Code::WorkspaceMoving, message) }
}

/// Makes the triggers of a workspace. May be repeated.
pub async fn arm(services: &Services, workspace_id: &WorkspaceId) -> Result<(), Fault> {
    let prefix = prefix(workspace_id)?;
    let triggers: Vec<Statement> = TABLES
        .iter()
        .flat_map(|table| On::ALL.iter().map(|on| on.create(&prefix, table, workspace_id)))
        .collect();
    for some in triggers.chunks(AT_ONCE) {
        services.ports().database.write(some.to_vec()).await?;
    }
    Ok(())
}

/// Drops those that have no effect because the workspace runs here, unless another move of it has begun since. May be repeated.
pub(super) async fn disarm_running(services: &Services, workspace_id: &WorkspaceId) -> Result<(), Fault> {
    let runs = || {
        sql!("INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS (SELECT 1 FROM moves WHERE workspace_id = :ws AND lock > 0)")
            .in_workspace(workspace_id)
    };
    for some in drops(&prefix(workspace_id)?).chunks(AT_ONCE) {
        let batch = [runs()].into_iter().chain(some.iter().cloned()).collect();
        match services.ports().database.write(batch).await {
            Ok(_) => {}
            Err(error) if error.is_constraint("stale") => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Drops those of a workspace that is not here any more, while its move is as expected: once it is gone, it may arrive again. What is
/// left of it in the tables `left` is locked by triggers that all such workspaces share: a host that many have left has no more of
/// them than after the first. May be repeated.
pub(super) async fn disarm_left(
    services: &Services,
    expected: &Expected<'_>,
    left: &[&str],
) -> Result<(), Fault> {
    let Expected { workspace_id, id, state, progress } = *expected;
    let is_so = || {
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (
               SELECT 1 FROM moves WHERE workspace_id = :workspace_id AND id = :id AND state = :state AND progress = :progress)",
            workspace_id = workspace_id,
            id = id,
            state = state.as_str(),
            progress = progress
        )
    };
    let tables = TABLES.iter().filter(|table| left.contains(&table.name));
    let shared = tables.flat_map(|table| On::ALL.iter().map(|on| on.create_shared(table)));
    let statements: Vec<Statement> = shared.chain(drops(&prefix(workspace_id)?)).collect();
    for some in statements.chunks(AT_ONCE) {
        let batch = [is_so()].into_iter().chain(some.iter().cloned()).collect();
        services.ports().database.write(batch).await?;
    }
    Ok(())
}

fn drops(prefix: &str) -> Vec<Statement> {
    TABLES
        .iter()
        .flat_map(|table| {
            On::ALL.iter().map(|on| sql!(format!("DROP TRIGGER IF EXISTS {}", on.name(prefix, table))))
        })
        .collect()
}

/// Fails the batch unless every trigger is there.
pub fn guard_armed(workspace_id: &WorkspaceId) -> Result<Statement, Fault> {
    let prefix = prefix(workspace_id)?;
    let triggers = TABLES.len() * On::ALL.len();
    Ok(sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE (SELECT COUNT(*) FROM sqlite_schema
           WHERE type = 'trigger' AND substr(name, 1, CAST(:length AS INTEGER)) = :prefix) <> :triggers
         AND :workspace_id <> ''",
        length = i64::try_from(prefix.len()).unwrap_or(0),
        prefix = prefix,
        triggers = i64::try_from(triggers).unwrap_or(0),
        workspace_id = workspace_id
    ))
}

/// How far a move has to be.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The workspace.
    pub workspace_id: &'a WorkspaceId,
    /// The id of the move.
    pub id: &'a str,
    /// Its state.
    pub state: State,
    /// How far the step is.
    pub progress: &'a str,
}

/// A batch with these statements, which write to a locked workspace, if its move is as expected; it is in `state` then.
pub fn within(
    expected: &Expected<'_>,
    statements: Vec<Statement>,
    state: State,
    progress: &str,
    now: Timestamp,
) -> Vec<Statement> {
    let Expected { workspace_id, id, .. } = *expected;
    let unlock = sql!(
        "UPDATE moves SET lock = 0 WHERE workspace_id = :workspace_id AND id = :id AND state = :state AND lock = 2
         AND progress = :progress",
        workspace_id = workspace_id,
        id = id,
        state = expected.state.as_str(),
        progress = expected.progress
    );
    // A move that has ended has no lock either: only one that is as expected was unlocked just now.
    let is_so = sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (
           SELECT 1 FROM moves WHERE workspace_id = :workspace_id AND id = :id AND state = :state AND lock = 0
           AND progress = :progress)",
        workspace_id = workspace_id,
        id = id,
        state = expected.state.as_str(),
        progress = expected.progress
    );
    let lock = sql!(
        "UPDATE moves SET lock = 2, state = :state, progress = :progress, changed_at = :now
         WHERE workspace_id = :workspace_id AND id = :id",
        state = state.as_str(),
        progress = progress,
        now = now,
        workspace_id = workspace_id,
        id = id
    );
    [unlock, is_so].into_iter().chain(statements).chain([lock]).collect()
}

/// What a trigger fires on.
#[derive(Clone, Copy)]
enum On {
    Insert,
    Update,
    Delete,
}

impl On {
    const ALL: &'static [Self] = &[Self::Insert, Self::Update, Self::Delete];

    fn name(self, prefix: &str, table: &Table) -> String {
        let on = match self {
            Self::Insert => 'i',
            Self::Update => 'u',
            Self::Delete => 'd',
        };
        format!("{prefix}{}_{on}", table.name)
    }

    /// A trigger has no parameters; the id is one of ours, so it may stand in the text.
    fn create(self, prefix: &str, table: &Table, workspace_id: &WorkspaceId) -> Statement {
        let Table { name, owner, .. } = table;
        let is_own = match self {
            Self::Insert => format!("NEW.{owner} = '{workspace_id}'"),
            Self::Update => format!("(OLD.{owner} = '{workspace_id}' OR NEW.{owner} = '{workspace_id}')"),
            Self::Delete => format!("OLD.{owner} = '{workspace_id}'"),
        };
        // While a workspace closes, only what would go on for long does not begin.
        let least = if matches!(self, Self::Insert) && ["calls", "runs"].contains(name) { 1 } else { 2 };
        let lock = format!("(SELECT lock FROM moves WHERE workspace_id = '{workspace_id}')");
        self.refuse(prefix, table, &format!("{is_own} AND {lock} >= {least}"))
    }

    /// The trigger for whatever workspace is locked.
    fn create_shared(self, table: &Table) -> Statement {
        let Table { owner, .. } = table;
        let owners = match self {
            Self::Insert => format!("NEW.{owner}"),
            Self::Update => format!("OLD.{owner}, NEW.{owner}"),
            Self::Delete => format!("OLD.{owner}"),
        };
        let is_locked = format!("EXISTS (SELECT 1 FROM moves WHERE workspace_id IN ({owners}) AND lock = 2)");
        self.refuse(SHARED, table, &is_locked)
    }

    fn refuse(self, prefix: &str, table: &Table, when: &str) -> Statement {
        let on = match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        };
        sql!(format!(
            "CREATE TRIGGER IF NOT EXISTS {} BEFORE {on} ON {}
             WHEN {when} BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END",
            self.name(prefix, table),
            table.name
        ))
    }
}

/// What the names of a workspace's triggers begin with.
fn prefix(workspace_id: &WorkspaceId) -> Result<String, Fault> {
    let ulid = workspace_id.as_str().strip_prefix(WorkspaceId::PREFIX).and_then(|id| id.strip_prefix('_'));
    match ulid.filter(|_| workspace_id.to_bytes().is_some()) {
        Some(ulid) => Ok(format!("moving_{ulid}_")),
        None => Err(Fault::Bug(format!("{workspace_id} is no workspace"))),
    }
}
