//! Canceling an import: what has arrived is deleted, some of it in each request.
//!
//! The row of the workspace stays, empty and locked, as that of one that was erased: to delete it, the database would search
//! every table for rows that refer to it. The workspace can arrive again.
use serde::Serialize;

use super::erase::{Blobs, LOCKED_TOMBSTONE, Next, TOMBSTONE, next};
use super::progress::Erased;
use crate::base::ids::WorkspaceId;
use crate::services::Services;
use crate::sql;
use crate::storage::calls::search;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::declined::Declined;
use crate::storage::moves::import::{self, is_import};
use crate::storage::moves::{Move, State, lock};

/// How far canceling is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canceling {
    /// There may be more rows.
    Rows,
    /// Nothing is left. Whether this step has deleted the last.
    Gone(bool),
}

/// Goes on with canceling the import. To be asked again until nothing is left of it.
pub async fn cancel_import(services: &Services, workspace_id: &WorkspaceId) -> Result<Canceling, Fault> {
    retry_stale(|| step(services, workspace_id)).await
}

async fn step(services: &Services, workspace_id: &WorkspaceId) -> Result<Canceling, Fault> {
    let Some(import) = Move::of(services, workspace_id).await?.filter(is_import) else {
        return Ok(Canceling::Gone(false));
    };
    step_of(services, &import).await
}

/// The same of this one, which may be between two databases of this host.
pub(super) async fn step_of(services: &Services, import: &Move) -> Result<Canceling, Fault> {
    match import.state {
        State::Arriving | State::Arrived => begin(services, import).await.map(|()| Canceling::Rows),
        State::Canceling => go_on(services, import).await,
        _ => Err(Declined::HandedOver.into()),
    }
}

/// Of a workspace that was here before, and has moved away, the keys stay: they tell clients where it is. In another database of
/// this host, it has the same ones.
fn kept(import: &Move) -> &'static [&'static str] {
    if import.moved_to.is_some() || import.is_between_databases() { TOMBSTONE } else { &["workspaces"] }
}

/// From here on, no part of it is received. Its numbers can be those of other workspaces again.
async fn begin(services: &Services, import: &Move) -> Result<(), Fault> {
    if services.sharding().is_some() && !import.is_between_databases() {
        let numbers = sql!("SELECT number FROM numbers WHERE workspace_id = :ws ORDER BY number");
        let [numbers] = services.read([numbers.in_workspace(&import.workspace_id)]).await?;
        let now_ms = services.now().ms();
        for row in numbers.iter() {
            services.forget_number(row.str("number")?, &import.workspace_id, now_ms).await;
        }
    }
    let beginning = Erased::beginning(kept(import))?;
    Ok(import::go_on(services, import, Vec::new(), State::Canceling, &beginning).await?)
}

async fn go_on(services: &Services, import: &Move) -> Result<Canceling, Fault> {
    let erased: Erased = import::progress(import)?;
    let Next { mut statements, place } =
        next(services, &import.workspace_id, &erased, kept(import), Blobs::of(import)).await?;
    if let Some(place) = place {
        import::go_on(services, import, statements, State::Canceling, &place).await?;
        return Ok(Canceling::Rows);
    }
    // Before the end: a repetition finds nothing to cancel.
    let Move { workspace_id, id, state, progress, .. } = import;
    let expected = lock::Expected { workspace_id, id, state: *state, progress };
    lock::disarm_left(services, &expected, LOCKED_TOMBSTONE).await?;
    // The words of the deleted calls are merged out of the text index.
    statements.push(search::erase_words().in_workspace(&import.workspace_id));
    import::go_on(services, import, statements, State::Gone, &Nothing {}).await?;
    Ok(Canceling::Gone(true))
}

/// The progress of what is gone: `{}`.
#[derive(Serialize)]
struct Nothing {}
