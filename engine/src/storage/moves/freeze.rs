//! The source of a move: nothing new begins in the workspace, and it is frozen once nothing is under way.
use crate::base::ids::{WorkspaceId, prefix};
use crate::base::limits::MOVES_AT_ONCE_MAX;
use crate::base::sealed::seal;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::progress::Progress;
use crate::storage::moves::quiet::{self, Asked, Wait};
use crate::storage::moves::{Move, Refusal, State, Step, jobs_away, lock};
use crate::storage::workspace_rows::SCHEMA;

/// Whether a workspace is frozen.
#[derive(Debug, PartialEq, Eq)]
pub enum Freeze {
    /// Nothing changes any more.
    Frozen,
    /// It still waits for this.
    Waits(Vec<Wait>),
}

/// Lets nothing new begin in the workspace: no call and no run. May be repeated.
pub async fn close(services: &Services, workspace_id: &WorkspaceId) -> Step<Move> {
    close_as(services, workspace_id, &services.id(prefix::EXPORT)).await
}

/// The same for a move with this id. If another one is under way, it is returned.
pub(super) async fn close_as(services: &Services, workspace_id: &WorkspaceId, id: &str) -> Step<Move> {
    let begun = retry_stale(|| begin(services, workspace_id, id)).await?;
    if let Ok(found) = &begun
        && found.state == State::Closing
    {
        lock::arm(services, workspace_id).await?;
    }
    Ok(begun)
}

async fn begin(services: &Services, workspace_id: &WorkspaceId, id: &str) -> Step<Move> {
    let others = sql!(format!(
        "SELECT COUNT(*) AS others FROM moves WHERE lock > 0 AND state <> '{}'",
        State::Gone.as_str()
    ));
    let not_upgraded = sql!(
        "SELECT EXISTS (SELECT 1 FROM search_upgrade) OR EXISTS (
           SELECT 1 FROM events INDEXED BY events_of_unknown_calls WHERE workspace_id = :ws AND call_id IS NULL) AS is_so"
    );
    let exists = sql!("SELECT 1 AS found FROM workspaces WHERE id = :ws");
    let own = |statement: Statement| statement.in_workspace(workspace_id);
    let [found, others, not_upgraded, exists] =
        services.read([own(Move::select()), others, own(not_upgraded), own(exists)]).await?;
    if exists.is_empty() {
        return Ok(Err(Refusal::NoWorkspace));
    }
    let found = found.first().map(Move::read).transpose()?;
    match found.as_ref().map(|found| found.state) {
        None | Some(State::Running) => {}
        Some(State::Gone) if found.as_ref().is_some_and(Move::is_nothing) => {
            return Ok(Err(Refusal::NothingHere));
        }
        Some(State::Closing | State::Frozen | State::Released | State::Erasing | State::Gone) => {
            return found.map(Ok).ok_or_else(|| Fault::Bug("a move that was read".to_owned()));
        }
        // The triggers are being dropped.
        Some(State::Canceled) => return Ok(Err(Refusal::Canceled)),
        Some(State::Arriving | State::Arrived | State::Opening | State::Canceling) => {
            return Ok(Err(Refusal::Arriving));
        }
    }
    if others.first().map_or(Ok(0), |row| row.integer("others"))? >= MOVES_AT_ONCE_MAX {
        return Ok(Err(Refusal::TooManyMoves));
    }
    if not_upgraded.first().map_or(Ok(false), |row| row.flag("is_so"))? {
        return Ok(Err(Refusal::NotUpgraded));
    }
    let (mut key, mut nonce) = ([0; 32], [0; 16]);
    services.ports().random.fill(&mut key);
    services.ports().random.fill(&mut nonce);
    // What was read, in the batch that writes: another one may begin at the same moment.
    let only = sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS (SELECT 1 FROM moves WHERE workspace_id = :ws AND state <> '{}')
             OR (SELECT COUNT(*) FROM moves WHERE lock > 0 AND state <> '{}') >= {MOVES_AT_ONCE_MAX}
             OR EXISTS (SELECT 1 FROM search_upgrade)",
            State::Running.as_str(),
            State::Gone.as_str()
        )
    );
    let insert = sql!(
        format!(
            "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
             SELECT :ws, :id, '{}', 1, :schema, :file_key, :now, :now WHERE true
             ON CONFLICT (workspace_id) DO UPDATE SET id = excluded.id, state = excluded.state, lock = excluded.lock,
               schema = excluded.schema, file_key = excluded.file_key, other_id = NULL, moved_to = NULL, progress = '{{}}',
               began_at = excluded.began_at, changed_at = excluded.changed_at",
            State::Closing.as_str()
        ),
        id = id,
        schema = SCHEMA,
        file_key = seal(services.config().secret.as_bytes(), id, nonce, &key),
        now = services.now()
    );
    let [_, _, rows] = services.write([own(only), own(insert), own(Move::select())]).await?;
    let row = rows.first().ok_or_else(|| Fault::Bug("a move that was written".to_owned()))?;
    Ok(Ok(Move::read(row)?))
}

/// Freezes the workspace if nothing is under way in it. To be asked again and again: what has not begun yet is put away by
/// each.
pub async fn freeze(
    services: &Services,
    workspace_id: &WorkspaceId,
    without_late_prices: bool,
) -> Step<Freeze> {
    freeze_as(services, workspace_id, None, without_late_prices).await
}

/// The same of the move with this id, which is between two databases; without one, of any to another host.
pub(super) async fn freeze_as(
    services: &Services,
    workspace_id: &WorkspaceId,
    between: Option<&str>,
    without_late_prices: bool,
) -> Step<Freeze> {
    retry_stale(|| try_freeze(services, workspace_id, between, without_late_prices)).await
}

async fn try_freeze(
    services: &Services,
    workspace_id: &WorkspaceId,
    between: Option<&str>,
    without_late_prices: bool,
) -> Step<Freeze> {
    let own = |statement: Statement| statement.in_workspace(workspace_id);
    let [found] = services.read([own(Move::select())]).await?;
    let found = match found.first().map(Move::read).transpose()? {
        Some(found) if found.state != State::Running && !found.is_meant(between) => {
            return Ok(Err(Refusal::BetweenDatabases));
        }
        Some(found) if found.state == State::Closing => found,
        Some(found) if found.state == State::Frozen => return Ok(Ok(Freeze::Frozen)),
        _ => return Ok(Err(Refusal::NotClosing)),
    };
    let now = services.now();
    services.ports().database.write(jobs_away::put_unstarted_runs().map(own).to_vec()).await?;
    let asked = Asked { now, closed_at: found.began_at, without_late_prices };
    let waits = quiet::waits(services, workspace_id, asked).await?;
    if !waits.is_empty() {
        return Ok(Ok(Freeze::Waits(waits)));
    }
    // They may be missing: a process that closed the workspace may have died in between.
    lock::arm(services, workspace_id).await?;
    // Nothing begins any more, and nothing that has begun goes on: what is left now is left for ever, and nothing is added.
    let left = quiet::left(services, workspace_id).await?;
    if !left.is_empty() {
        return Ok(Ok(Freeze::Waits(left)));
    }
    // Whoever still sends a webhook something has lost the lease then.
    let [put_jobs, no_longer_due] = jobs_away::put_all();
    let mut batch = vec![own(is_still(&found)), lock::guard_armed(workspace_id)?];
    batch.extend(quiet::guards(workspace_id, asked));
    batch.extend(
        [
            put_jobs,
            no_longer_due,
            // What a crashed process has left: nobody will end it. What is being written has a time at which it is given up.
            sql!(
                "UPDATE recordings SET state = 'abandoned', due_at = :now, peaks = NULL WHERE id IN (
                   SELECT id FROM recordings WHERE state = 'writing' AND due_at IS NOT NULL AND workspace_id = :ws)",
                now = now
            ),
            sql!(
                "UPDATE moves SET state = :state, lock = 2, progress = :progress, changed_at = :now WHERE workspace_id = :ws AND id = :id",
                state = State::Frozen.as_str(),
                progress = Progress { frozen_at: now.ms(), erased: None }.to_json(),
                now = now,
                id = &found.id
            ),
        ]
        .map(own),
    );
    services.ports().database.write(batch).await?;
    Ok(Ok(Freeze::Frozen))
}

/// Fails the batch unless the move is in the state that was read.
pub(super) fn is_still(found: &Move) -> Statement {
    sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (
           SELECT 1 FROM moves WHERE workspace_id = :ws AND id = :id AND state = :state)",
        id = &found.id,
        state = found.state.as_str()
    )
}
