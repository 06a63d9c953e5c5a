//! Handing a workspace over: from here on it does not run on this host any more, and never will again. Only then the code is
//! told that opens it on the other one, and for one import.
use super::code::Code;
use super::head::file_key;
use super::lock::{self, Expected};
use crate::base::ids::WorkspaceId;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::retry_stale;
use crate::storage::moves::{Move, Refusal, State, Step};
use crate::storage::workspace_rows::{AWAY, SCHEMA};

/// To whom a workspace is handed over.
#[derive(Debug, Clone, Copy)]
pub struct Receiver<'a> {
    /// The export whose file has arrived there.
    pub export_id: &'a str,
    /// The import.
    pub import_id: &'a str,
    /// The address of its host, which clients are told.
    pub base_url: &'a str,
    /// The import that it was handed over to before, if that is lost for good: the operator vouches for it.
    pub instead_of: Option<&'a str>,
}

/// A workspace that was handed over.
#[derive(Debug)]
pub struct Released {
    /// What opens the import.
    pub code: Code,
    /// What came of the request.
    pub outcome: Outcome,
}

/// What a request to hand over has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was handed over.
    Over,
    /// It was before, to the same import.
    Again,
    /// It was before, to another import.
    Instead,
}

/// Hands a frozen workspace over. May be repeated: the same import gets the same code.
pub async fn release(
    services: &Services,
    workspace_id: &WorkspaceId,
    receiver: Receiver<'_>,
) -> Step<Released> {
    retry_stale(|| try_release(services, workspace_id, receiver)).await
}

async fn try_release(
    services: &Services,
    workspace_id: &WorkspaceId,
    receiver: Receiver<'_>,
) -> Step<Released> {
    let Some(found) = Move::of(services, workspace_id).await? else { return Ok(Err(Refusal::NotFrozen)) };
    let outcome = match found.state {
        State::Gone if found.is_nothing() => return Ok(Err(Refusal::NothingHere)),
        // A file of an export that was canceled has rows of then.
        State::Frozen | State::Released | State::Erasing | State::Gone if found.id != receiver.export_id => {
            return Ok(Err(Refusal::OtherExport));
        }
        State::Frozen => Outcome::Over,
        State::Released | State::Erasing | State::Gone => {
            let other = found.other_id.as_deref();
            if other == Some(receiver.import_id) {
                Outcome::Again
            } else if receiver.instead_of.is_some_and(|one| other == Some(one)) {
                Outcome::Instead
            } else {
                return Ok(Err(Refusal::ReleasedElsewhere));
            }
        }
        _ => return Ok(Err(Refusal::NotFrozen)),
    };
    // Without the key there would be no code, and the workspace could run nowhere.
    let code = Code::new(file_key(services, &found)?, receiver.import_id);
    if outcome == Outcome::Again {
        return Ok(Ok(Released { code, outcome }));
    }
    // The file was written before it was handed over.
    if outcome == Outcome::Over && found.schema != SCHEMA {
        return Ok(Err(Refusal::SchemaChanged));
    }
    let mut statements = vec![sql!(
        "UPDATE moves SET other_id = :import_id, moved_to = :base_url WHERE workspace_id = :ws AND id = :id",
        import_id = receiver.import_id,
        base_url = receiver.base_url,
        id = &found.id
    )];
    if outcome == Outcome::Over {
        statements.extend(close_for_everybody());
    }
    let statements = statements.into_iter().map(|statement| statement.in_workspace(workspace_id)).collect();
    let expected = Expected { workspace_id, id: &found.id, state: found.state, progress: &found.progress };
    // What is erased here stays so.
    let state = if outcome == Outcome::Over { State::Released } else { found.state };
    let batch = lock::within(&expected, statements, state, &found.progress, services.now());
    services.ports().database.write(batch).await?;
    Ok(Ok(Released { code, outcome }))
}

/// Keys open nothing, and nobody is a member. People have their accounts here; on the other host they are invited.
pub(super) fn close_for_everybody() -> [Statement; 3] {
    [
        sql!(format!(
            "UPDATE api_keys SET revoked_at = {AWAY} WHERE workspace_id = :ws AND revoked_at IS NULL"
        )),
        sql!("DELETE FROM memberships WHERE workspace_id = :ws"),
        sql!("DELETE FROM invitations WHERE workspace_id = :ws"),
    ]
}
