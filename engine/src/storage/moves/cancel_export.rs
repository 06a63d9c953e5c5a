//! Canceling an export, until it is handed over: the workspace runs where it was.
use super::freeze::is_still;
use crate::base::ids::WorkspaceId;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::retry_stale;
use crate::storage::moves::{Move, Refusal, State, Step, jobs_away, lock};

/// Cancels the move: the workspace runs here as before. Returns whether it did not before. May be repeated.
pub async fn cancel_export(services: &Services, workspace_id: &WorkspaceId) -> Step<bool> {
    cancel_export_as(services, workspace_id, None).await
}

/// The same of the move with this id, which is between two databases; without one, of any to another host.
pub(super) async fn cancel_export_as(
    services: &Services,
    workspace_id: &WorkspaceId,
    between: Option<&str>,
) -> Step<bool> {
    let was_moving = match retry_stale(|| run_again(services, workspace_id, between)).await? {
        Ok(was_moving) => was_moving,
        Err(refusal) => return Ok(Err(refusal)),
    };
    // Not those of another move that has begun since, if this is a late repetition.
    lock::disarm_running(services, workspace_id).await?;
    let forget = sql!(
        "DELETE FROM moves WHERE workspace_id = :ws AND state = :state",
        state = State::Canceled.as_str()
    );
    services.write([forget.in_workspace(workspace_id)]).await?;
    Ok(Ok(was_moving))
}

async fn run_again(services: &Services, workspace_id: &WorkspaceId, between: Option<&str>) -> Step<bool> {
    let own = |statement: Statement| statement.in_workspace(workspace_id);
    let [found, first] = services.read([own(Move::select()), own(jobs_away::first())]).await?;
    let found = match found.first().map(Move::read).transpose()? {
        Some(found) if found.state == State::Running => return Ok(Ok(false)),
        Some(found) if !found.is_meant(between) => return Ok(Err(Refusal::BetweenDatabases)),
        Some(found) if matches!(found.state, State::Closing | State::Frozen) => found,
        Some(found) if found.state == State::Canceled => return Ok(Ok(false)),
        None => return Ok(Ok(false)),
        Some(Move {
            state: State::Arriving | State::Arrived | State::Opening | State::Canceling, ..
        }) => {
            return Ok(Err(Refusal::Arriving));
        }
        Some(found) if found.is_nothing() => return Ok(Err(Refusal::NothingHere)),
        Some(_) => return Ok(Err(Refusal::Moved)),
    };
    // It lifts the lock, so it precedes the others.
    let unlock = sql!(
        "UPDATE moves SET state = :state, lock = 0, changed_at = :now WHERE workspace_id = :ws AND id = :id",
        state = State::Canceled.as_str(),
        now = services.now(),
        id = &found.id
    );
    let [jobs, no_longer_away] = jobs_away::back();
    let mut batch = Batch::from([is_still(&found), unlock, jobs, no_longer_away].map(own));
    jobs_away::wake(services, &mut batch, &first)?;
    batch.write(services).await?;
    Ok(Ok(true))
}
