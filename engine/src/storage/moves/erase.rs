//! Deleting the rows and blobs of a workspace that is not here any more, step by step, in the reverse order of their arrival:
//! what is referred to goes last, and a blob goes before the row that names it.
//!
//! Of a workspace that was handed over, a tombstone is left: its row, its keys, which tell clients where it is, and the row of
//! the move. Otherwise a key of the settings would make a second workspace.
use super::blobs::first_of;
use super::cursor::{from_json, to_json};
use super::lock::{self, Expected};
use super::progress::{Erased, Progress};
use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::{
    MOVE_ERASED_RECORDINGS_MAX, MOVE_ERASED_ROWS_MAX, MOVE_ERASED_SEGMENTS_MAX, MOVE_LOOKED_AT_MAX,
    MOVE_LOOKS_MAX, MOVE_ROWS_BYTES,
};
use crate::ports::statement::{Statement, Value};
use crate::services::Services;
use crate::sql;
use crate::storage::calls::search;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::{Move, Refusal, State, Step};
use crate::storage::workspace_rows::{EMPTY, Keys, TABLES, Table, Window};
use crate::storage::{archives, recordings};

/// The tables of the tombstone.
pub(super) const TOMBSTONE: &[&str] = &["workspaces", "api_keys"];
/// The tables that stay locked for a tombstone: nobody makes a key for it, and no operation changes anything in it, since each begins
/// with an entry of the audit log. Further triggers would cost every other workspace time for nothing.
pub(super) const LOCKED_TOMBSTONE: &[&str] = &["workspaces", "api_keys", "audit_entries"];

/// How far the rows of a workspace that was handed over are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erasing {
    /// There may be more.
    Rows(Erased),
    /// The tombstone is left. Whether this step has deleted the last.
    Gone(bool),
}

/// Deletes the next rows of a workspace that was handed over. To be asked again until it is gone.
pub async fn erase(services: &Services, workspace_id: &WorkspaceId) -> Step<Erasing> {
    erase_as(services, workspace_id, None).await
}

/// The same of the move with this id, which is between two databases; without one, of any to another host.
pub(super) async fn erase_as(
    services: &Services,
    workspace_id: &WorkspaceId,
    between: Option<&str>,
) -> Step<Erasing> {
    retry_stale(|| try_erase(services, workspace_id, between)).await
}

async fn try_erase(services: &Services, workspace_id: &WorkspaceId, between: Option<&str>) -> Step<Erasing> {
    let found = match Move::of(services, workspace_id).await? {
        Some(found) if matches!(found.state, State::Released | State::Erasing) => {
            match found.is_meant(between) {
                true => found,
                false => return Ok(Err(Refusal::BetweenDatabases)),
            }
        }
        Some(found) if found.is_nothing() => return Ok(Err(Refusal::NothingHere)),
        Some(found) if found.state == State::Gone => return Ok(Ok(Erasing::Gone(false))),
        _ => return Ok(Err(Refusal::NotReleased)),
    };
    let progress = Progress::of(&found)?;
    let erased = match progress.erased.clone() {
        Some(erased) => erased,
        None => Erased::beginning(TOMBSTONE)?,
    };
    let blobs = Blobs::of(&found);
    let Next { statements, place } = next(services, workspace_id, &erased, TOMBSTONE, blobs).await?;
    let expected = Expected { workspace_id, id: &found.id, state: found.state, progress: &found.progress };
    let (statements, state, told) = match &place {
        Some(place) => (statements, State::Erasing, Erasing::Rows(place.clone())),
        // There are no statements.
        None => {
            // Before it is gone: from then on, the words of its calls in the text index are merged away with those of others.
            lock::disarm_left(services, &expected, LOCKED_TOMBSTONE).await?;
            (vec![search::erase_words().in_workspace(workspace_id)], State::Gone, Erasing::Gone(true))
        }
    };
    let progress = Progress { erased: Some(place.unwrap_or(erased)), ..progress };
    let batch = lock::within(&expected, statements, state, &progress.to_json(), services.now());
    services.ports().database.write(batch).await?;
    Ok(Ok(told))
}

/// What becomes of the blobs that deleted rows name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blobs {
    /// They are removed.
    Go,
    /// They stay: the rows are in another database of this host, too.
    Stay,
}

impl Blobs {
    /// Of a move.
    pub(super) fn of(found: &Move) -> Self {
        if found.is_between_databases() { Self::Stay } else { Self::Go }
    }
}

/// The next rows to delete.
pub(super) struct Next {
    /// What deletes them. Their blobs are gone.
    pub statements: Vec<Statement>,
    /// Where the ones after them begin; `None`: there were none any more.
    pub place: Option<Erased>,
}

impl Erased {
    /// Before the first row, where the rows of the tables in `but` stay.
    pub(super) fn beginning(but: &[&str]) -> Result<Self, Fault> {
        let table = tables(but).next();
        let table = table.ok_or_else(|| Fault::Bug("there are no tables of workspaces".to_owned()))?;
        Ok(Self { table: table.name.to_owned(), after: Vec::new(), rows: 0 })
    }
}

/// The tables with rows to delete, those with references first. The others are empty where nothing is under way.
fn tables(but: &[&str]) -> impl Iterator<Item = &'static Table> {
    TABLES.iter().rev().filter(move |table| !but.contains(&table.name) && !EMPTY.contains(&table.name))
}

/// Finds the next rows to delete, and removes their blobs if they go. The rows of the tables in `but` stay.
pub(super) async fn next(
    services: &Services,
    workspace_id: &WorkspaceId,
    erased: &Erased,
    but: &[&str],
    blobs: Blobs,
) -> Result<Next, Fault> {
    let no_place = || Fault::Bug(format!("the rows of {workspace_id} are deleted from nowhere"));
    let mut left = tables(but).skip_while(|known| known.name != erased.table);
    let mut table = left.next().ok_or_else(no_place)?;
    let mut after = from_json(&erased.after, table.key.len()).ok_or_else(no_place)?;
    let place = |table: &Table, after: &[Value], rows| Erased {
        table: table.name.to_owned(),
        after: to_json(after),
        rows,
    };
    for _ in 0..MOVE_LOOKS_MAX {
        let database = &*services.ports().database;
        let keys = window(table).keys(database, table, workspace_id, &after).await?;
        let keys = match blobs {
            Blobs::Go => without_blobs(services, workspace_id, keys).await?,
            Blobs::Stay => keys,
        };
        if let Some(last) = keys.keys.last() {
            let rows = erased.rows + keys.keys.len() as u64;
            let place = Some(place(table, last, rows));
            return Ok(Next { statements: keys.delete(workspace_id), place });
        }
        after = match keys.next {
            Some(next) => next,
            None => {
                let Some(following) = left.next() else {
                    return Ok(Next { statements: Vec::new(), place: None });
                };
                table = following;
                Vec::new()
            }
        };
    }
    Ok(Next { statements: Vec::new(), place: Some(place(table, &after, erased.rows)) })
}

fn window(table: &Table) -> Window {
    let rows = if table.name == "recordings" { MOVE_ERASED_RECORDINGS_MAX } else { MOVE_ERASED_ROWS_MAX };
    Window { rows, looked_at: MOVE_LOOKED_AT_MAX, bytes: MOVE_ROWS_BYTES }
}

/// Removes the blobs that these rows name, and leaves the keys of those rows. If recordings have many segments, there are fewer.
async fn without_blobs(
    services: &Services,
    workspace_id: &WorkspaceId,
    mut keys: Keys,
) -> Result<Keys, Fault> {
    match keys.table.name {
        _ if keys.keys.is_empty() => {}
        "recordings" => {
            let removed = remove_recordings(services, workspace_id, &keys).await?;
            keys.keys.truncate(removed);
        }
        "call_transcripts" => {
            let archived = sql!(
                "SELECT c.id AS id FROM call_transcripts AS t CROSS JOIN calls AS c ON c.seq = t.seq
                 WHERE t.workspace_id = :ws AND c.workspace_id = :ws AND t.archive_bytes IS NOT NULL
                 AND t.seq IN (SELECT value FROM json_each(:seqs))",
                seqs = first_of(&keys.keys)
            );
            remove_transcripts(services, workspace_id, archived).await?;
        }
        "archives_to_remove" => {
            let deleted = sql!(
                "SELECT call_id AS id FROM archives_to_remove WHERE workspace_id = :ws
                 AND call_id IN (SELECT value FROM json_each(:ids))",
                ids = first_of(&keys.keys)
            );
            remove_transcripts(services, workspace_id, deleted).await?;
        }
        _ => {}
    }
    Ok(keys)
}

/// Removes the blobs of the first of these recordings, in whatever state they are; of how many.
async fn remove_recordings(
    services: &Services,
    workspace_id: &WorkspaceId,
    keys: &Keys,
) -> Result<usize, Fault> {
    let select = sql!(
        "SELECT r.id AS id, r.call_id AS call_id, COALESCE(r.segments, 0) AS segments, r.segments IS NULL AS is_whole
         FROM recordings AS r WHERE r.workspace_id = :ws AND r.id IN (SELECT value FROM json_each(:ids)) ORDER BY r.id",
        ids = first_of(&keys.keys)
    );
    let [rows] = services.read([select.in_workspace(workspace_id)]).await?;
    let (mut removed, mut segments) = (0, 0);
    for row in rows.iter() {
        if segments >= MOVE_ERASED_SEGMENTS_MAX {
            break;
        }
        let call_id: CallId = row.id("call_id")?;
        recordings::remove(services, workspace_id, &call_id, &row).await??;
        // A very early version wrote one file.
        if row.flag("is_whole")? {
            let key = recordings::key(workspace_id, &call_id, &row.id("id")?)?;
            services.ports().blobs.delete(&key).await?;
        }
        segments += row.integer("segments")?;
        removed += 1;
    }
    Ok(removed)
}

/// Removes the blobs of the transcripts of the calls that a statement selects.
async fn remove_transcripts(
    services: &Services,
    workspace_id: &WorkspaceId,
    calls: Statement,
) -> Result<(), Fault> {
    let [calls] = services.read([calls.in_workspace(workspace_id)]).await?;
    let mut keys = Vec::with_capacity(calls.values.len());
    for row in calls.iter() {
        keys.push(archives::key(workspace_id, &row.id("id")?)?);
    }
    if !keys.is_empty() {
        services.ports().blobs.delete_all(keys).await?;
    }
    Ok(())
}
