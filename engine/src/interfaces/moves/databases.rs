//! A workspace moves to another database of this service: `/operator/workspaces/{workspace}/database`.
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

use super::exports::wait;
use super::replies::{self, Answer, Asked, Offered};
use crate::base::ids::WorkspaceId;
use crate::base::response::with_note;
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::moves::requests::Moving;
use crate::storage::moves::shards::{self, Told, Wish};

/// What can be asked.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Move,
    Cancel,
}

const STEPS: &[Offered<Step>] = &[
    ("", "GET", "database_read", Step::Read),
    ("", "POST", "database_move", Step::Move),
    ("", "DELETE", "database_cancel", Step::Cancel),
];

/// Answers the requests of this path.
pub(super) async fn answer(services: &Services, request: &Request<Bytes>, workspace: &str) -> Answer {
    match Asked::read(STEPS, request, workspace, &[]) {
        Err(error) => Answer::refused(error),
        Ok(asked) => {
            let outcome = run(services, request, asked.step, &asked.workspace_id).await;
            asked.answer(outcome)
        }
    }
}

async fn run(
    services: &Services,
    request: &Request<Bytes>,
    step: Step,
    workspace_id: &WorkspaceId,
) -> Result<Response<Bytes>, Fault> {
    let told = match step {
        Step::Read => shards::status(services, workspace_id).await?,
        Step::Move => {
            let Moving { database, without_late_prices } = replies::body(request)?;
            let wish = Wish::To { database: &database, without_late_prices };
            shards::step(services, workspace_id, wish).await?
        }
        Step::Cancel => shards::step(services, workspace_id, Wish::Cancel).await?,
    };
    let mut told = told.map_err(replies::refused)?;
    let note = told.note.take();
    let response = replies::ok(&shown(&told));
    Ok(match note {
        Some(note) => with_note(response, note),
        None => response,
    })
}

/// How far the move is.
fn shown(told: &Told) -> Value {
    let Told { stage, database, other, waits, rows, note: _ } = told;
    let mut shown = json!({"state": stage.as_str(), "database": database});
    if let Some(other) = other {
        shown["other_database"] = json!(other);
    }
    if !waits.is_empty() {
        shown["waiting_for"] = waits.iter().map(wait).collect();
    }
    if *rows > 0 {
        shown["rows"] = json!(rows);
    }
    shown
}
