//! Moves of workspaces that somebody has to bring to their end.
use std::path::Path;

use sidetone_engine::storage::backups;
use sidetone_engine::storage::moves::State;

use super::Finding;
use crate::data::DataFolder;
use crate::database::{OpenError, open_to_read};
use crate::text::clean;

/// What findings about moves are called.
const CHECK: &str = "moves";

/// A move of a workspace that has not come to its end.
struct UnfinishedMove {
    workspace_id: String,
    name: String,
    /// `exp_…` or `imp_…`
    id: String,
    /// How far it is; `None`: a later version has more states.
    state: Option<State>,
    /// Of an import the export, of an export the import that it was handed over to.
    other_id: Option<String>,
}

/// A finding for each move in the database of this folder.
pub fn findings(folder: &Path) -> Vec<Finding> {
    match unfinished(folder) {
        Ok(moves) => moves.iter().map(left_over).collect(),
        Err(error) => vec![Finding::warning(CHECK, error.to_string())],
    }
}

fn unfinished(folder: &Path) -> Result<Vec<UnfinishedMove>, OpenError> {
    let database = open_to_read(&DataFolder::database_of(folder))?;
    if !database.prepare(backups::HAS_MOVES)?.exists([])? {
        return Ok(Vec::new());
    }
    let mut select = database.prepare(backups::MOVES)?;
    let rows = select.query_map([], |row| {
        let state: String = row.get(3)?;
        let (workspace_id, name, id, other_id) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?);
        Ok(UnfinishedMove { workspace_id, name, id, state: State::parse(&state), other_id })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A move that somebody has to bring to its end, and the command that goes on with it.
fn left_over(found: &UnfinishedMove) -> Finding {
    let UnfinishedMove { workspace_id, id, state, .. } = found;
    let name = clean(&found.name);
    let export = format!("sidetone export --workspace {workspace_id}");
    // Of an import.
    let cancel_import = format!("sidetone import --workspace {workspace_id} --cancel");
    let of = found.other_id.as_deref().unwrap_or("EXPORT");
    let next = match state {
        Some(State::Closing) => {
            format!("no call and no run begins in it. Go on: `{export} FILE`; cancel: `{export} --cancel`")
        }
        Some(State::Frozen) => format!(
            "it takes no changes. Go on at the other host: `sidetone import FILE`; cancel: `{export} --cancel`"
        ),
        Some(State::Released) => {
            format!(
                "it was handed over. Once it runs at the other host, erase what is left: `{export} --erase`"
            )
        }
        Some(State::Erasing) => format!("not everything of it is erased. Go on: `{export} --erase --yes`"),
        Some(State::Arriving) => {
            format!("not everything of it is here. Go on: `sidetone import FILE`; cancel: `{cancel_import}`")
        }
        Some(State::Arrived) => format!(
            "it waits to be handed over. Go on at the host that it comes from: `{export} --release {id} --export-id {of} --to URL`, then \
             here: `sidetone import FILE --code`; cancel: `{cancel_import}`"
        ),
        Some(State::Opening) => format!(
            "it was handed over to here, and does not run yet. Go on: `sidetone import FILE --code`. The host that it comes \
             from tells the code again: `{export} --release {id} --export-id {of} --to URL`"
        ),
        Some(State::Canceling) => {
            format!("not everything of its import is removed. Go on: `{cancel_import}`")
        }
        // These are of no move that is under way, or this version does not know the word.
        Some(State::Canceled | State::Gone | State::Running) | None => {
            "its move is not at its end; use the version of Sidetone that has begun it".to_owned()
        }
    };
    let state = state.map_or("moving", State::as_str);
    Finding::warning(CHECK, format!("{name} ({workspace_id}) is {state}: {next}"))
}
