//! The assistants in use: each is read and parsed once for all of its conversations, and counts for its memory while one
//! lasts.
use std::sync::Arc;

use super::admission::Admission;
use crate::base::fair_pool::Share;
use crate::base::ids::{AssistantId, WorkspaceId};
use crate::models::AssistantInUse;
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::snapshots::{
    AssistantSnapshot, AssistantVersion, Snapshot, assistant_reads, assistant_snapshot,
};

/// The result of a lookup.
pub(crate) enum Lookup {
    Found(Arc<AssistantInUse>),
    /// It was deleted.
    Missing,
    /// Others have the memory that a conversation with it needs.
    NoRoom,
}

/// A stored snapshot that is not read yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) id: &'a str,
    pub(crate) bytes: u64,
}

/// The assistant as it is configured now, of this version. It is read only if no conversation uses it, and only once there
/// is memory for it; stale if it has changed until then.
pub(crate) async fn current(
    services: &Services,
    workspace_id: &WorkspaceId,
    id: &AssistantId,
    version: Option<AssistantVersion>,
    admission: &mut Admission,
) -> Result<Lookup, Fault> {
    let Some(version) = version else { return Ok(Lookup::Missing) };
    let memory = match room(services, workspace_id, &version.id, version.bytes, admission) {
        Some(Room::InUse(known)) => return Ok(Lookup::Found(known)),
        Some(Room::ToRead(memory)) => memory,
        None => return Ok(Lookup::NoRoom),
    };
    let [assistant, tools, documents] = assistant_reads(":id", id);
    let reads = [AssistantVersion::select(id), assistant, tools, documents]
        .map(|statement| statement.in_workspace(workspace_id));
    let [again, rows @ ..] = services.read(reads).await?;
    if AssistantVersion::read(&again)?.as_ref() != Some(&version) {
        return Err(Fault::Stale);
    }
    let Some(snapshot) = assistant_snapshot(&rows)? else { return Ok(Lookup::Missing) };
    drop(rows);
    let snapshot_id = Snapshot::of(&snapshot)?.id;
    let found = prepare(services, workspace_id, snapshot_id, snapshot, version.bytes, memory)
        // Under its version, too: a run knows only the snapshot.
        .map(|found| services.assistants().share((workspace_id.clone(), version.id), found))
        .and_then(|found| admitted(found, admission));
    Ok(found.map_or(Lookup::NoRoom, Lookup::Found))
}

/// The assistant of a run, likewise; `None` while others have the memory that a run with it needs.
pub(crate) async fn of_run(
    services: &Services,
    workspace_id: &WorkspaceId,
    stored: Stored<'_>,
    admission: &mut Admission,
) -> Result<Option<Arc<AssistantInUse>>, Fault> {
    let memory = match room(services, workspace_id, stored.id, stored.bytes, admission) {
        Some(Room::InUse(known)) => return Ok(Some(known)),
        Some(Room::ToRead(memory)) => memory,
        None => return Ok(None),
    };
    let [rows] = services.read([Snapshot::select(workspace_id, stored.id)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let snapshot: AssistantSnapshot = row.json("content")?;
    drop(rows);
    let found = prepare(services, workspace_id, stored.id.to_owned(), snapshot, stored.bytes, memory);
    Ok(found.and_then(|found| admitted(found, admission)))
}

/// What a conversation finds of its assistant.
pub(crate) enum Room {
    InUse(Arc<AssistantInUse>),
    /// Memory to read it into.
    ToRead(Share<WorkspaceId>),
}

/// Room for an assistant whose stored texts are that large; `None` while others have it.
pub(crate) fn room(
    services: &Services,
    workspace_id: &WorkspaceId,
    id: &str,
    bytes: u64,
    admission: &mut Admission,
) -> Option<Room> {
    match in_use(services, workspace_id, id) {
        Some(known) => admitted(known, admission).map(Room::InUse),
        None => admission.another(AssistantInUse::memory_of_text(bytes)).map(Room::ToRead),
    }
}

fn in_use(services: &Services, workspace_id: &WorkspaceId, id: &str) -> Option<Arc<AssistantInUse>> {
    services.assistants().get(&(workspace_id.clone(), id.to_owned()))
}

/// Prepares the assistant of a snapshot, unless another conversation has done so meanwhile.
fn prepare(
    services: &Services,
    workspace_id: &WorkspaceId,
    snapshot_id: String,
    snapshot: AssistantSnapshot,
    text_bytes: u64,
    memory: Share<WorkspaceId>,
) -> Option<Arc<AssistantInUse>> {
    let known = in_use(services, workspace_id, &snapshot_id);
    known.or_else(|| {
        let assistant = AssistantInUse::new(&services.config().catalog, snapshot, text_bytes, memory)?;
        Some(services.assistants().share((workspace_id.clone(), snapshot_id), Arc::new(assistant)))
    })
}

/// The assistant, once a request to its model has memory, too.
fn admitted(assistant: Arc<AssistantInUse>, admission: &mut Admission) -> Option<Arc<AssistantInUse>> {
    admission.fits(assistant.request_bytes()).then_some(assistant)
}
