//! What clients are told of a workspace that is not here any more, or not yet.
use serde_json::json;

use super::lock;
use crate::base::error::{Code, Error};
use crate::base::ids::WorkspaceId;
use crate::base::ids::prefix::MOVE;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::moves::State;
use crate::storage::workspace_rows::AWAY;

/// What whoever sends the key with this hash is told; `None`: it is the key of no such workspace. One that is in another database
/// of this host is none: whoever remembers this one for the key asks the directory then. In between, it moves.
pub(crate) async fn moved_key(services: &Services, hash: &str) -> Result<Option<Error>, DatabaseError> {
    let find = sql!(
        format!(
            "SELECT CASE WHEN substr(m.id, 1, 4) = '{MOVE}_' THEN 'frozen' ELSE m.state END AS state, m.moved_to AS moved_to
             FROM api_keys AS k JOIN moves AS m ON m.workspace_id = k.workspace_id WHERE k.hash = :hash AND k.revoked_at = {AWAY}
             AND NOT (substr(m.id, 1, 4) = '{MOVE}_' AND m.state IN ('arriving', 'canceling', 'erasing', 'gone'))"
        ),
        hash = hash
    );
    told(services, find).await
}

/// What whoever has a link into this workspace is told; `None`: it does not move.
pub(crate) async fn moved_workspace(
    services: &Services,
    workspace_id: &WorkspaceId,
) -> Result<Option<Error>, DatabaseError> {
    let find = sql!("SELECT state, moved_to FROM moves WHERE workspace_id = :ws AND lock > 0");
    told(services, find.in_workspace(workspace_id)).await
}

async fn told(services: &Services, find: Statement) -> Result<Option<Error>, DatabaseError> {
    let [found] = services.read([find]).await?;
    found.first().map(error).transpose()
}

fn error(row: Row<'_>) -> Result<Error, DatabaseError> {
    match row.word("state")? {
        State::Released | State::Erasing | State::Gone => Ok(moved(row.optional_text("moved_to")?)),
        _ => Ok(lock::refused()),
    }
}

fn moved(base_url: Option<String>) -> Error {
    let message = match &base_url {
        Some(url) => {
            format!("This workspace has moved to {url}. Send the same request there, with the same key.")
        }
        None => "This workspace has moved to another host.".to_owned(),
    };
    Error::new(Code::WorkspaceMoved, message).with_details(json!({"base_url": base_url}))
}
