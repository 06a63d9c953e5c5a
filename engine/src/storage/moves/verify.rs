//! Whether everything is there: rows are read back and compared with what the file says, then blobs are asked for. Only what is
//! complete can be handed over. Each request compares some, and puts aside how far it is.
use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value as Json;

use crate::base::error::Code;
use crate::base::ids::{Id as _, RecordingId, WorkspaceId};
use crate::base::limits::{MOVE_LOOKED_AT_MAX, MOVE_LOOKS_MAX, MOVE_PART_ROWS_MAX, MOVE_ROWS_BYTES};
use crate::ports::BlobKey;
use crate::ports::statement::Value;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::blobs::table;
use crate::storage::moves::cursor::{from_json, to_json};
use crate::storage::moves::declined::Declined;
use crate::storage::moves::import::{self, Arriving, At, Compared, Status};
use crate::storage::moves::named_blobs::{Recordings, transcripts_at};
use crate::storage::moves::parts::To;
use crate::storage::moves::{Move, State};
use crate::storage::workspace_rows::{Sum, TABLES, Table, Window};

/// Blobs of one request.
const BLOBS_MAX: usize = 100;
/// Blobs that are asked for at once.
const BLOBS_AT_ONCE: usize = 8;

/// Rows that one look compares.
const LOOK: Window =
    Window { rows: MOVE_PART_ROWS_MAX, looked_at: MOVE_LOOKED_AT_MAX, bytes: MOVE_ROWS_BYTES };

/// Compares some of what has arrived. To be asked until the import has arrived.
pub async fn verify(services: &Services, workspace_id: &WorkspaceId) -> Result<Status, Fault> {
    retry_stale(|| step(services, workspace_id)).await?;
    import::status(services, workspace_id).await
}

async fn step(services: &Services, workspace_id: &WorkspaceId) -> Result<(), Fault> {
    let import = import::find(services, workspace_id).await?;
    match import.state {
        State::Arriving => {}
        State::Canceling => return Err(Declined::Canceling.into()),
        _ => return Ok(()),
    }
    import::check_schema(&import)?;
    let mut arriving: Arriving = import::progress(&import)?;
    let Some(Compared { at, absent }) = arriving.compared.take() else {
        return Err(Declined::NotComplete(arriving.next_part()).into());
    };
    let (next, missed) = match at {
        At::Rows { table, after, sum } => {
            let place = Place::of(&import, &table, &after)?;
            (
                Some(rows(services, workspace_id, place, sum, &arriving.tally.sums, To::AnotherHost).await?),
                Vec::new(),
            )
        }
        At::Recordings { after, segment } => {
            let place = Place::of(&import, "recordings", &after)?;
            let (next, blobs) = recordings(services, workspace_id, place, segment).await?;
            (Some(next), missing(services, blobs).await?)
        }
        At::Transcripts { after } => {
            let place = Place::of(&import, "call_transcripts", &after)?;
            let (next, blobs) = transcripts(services, workspace_id, place).await?;
            (next, missing(services, blobs).await?)
        }
    };
    let absent = absent + missed.len() as u64;
    // The source may have lost some.
    if let Some(key) = missed.last().filter(|_| absent > arriving.tally.missing) {
        return Err(Declined::Differs(key.as_str().to_owned()).into());
    }
    match next {
        Some(at) => {
            arriving.compared = Some(Compared { at, absent });
            import::go_on(services, &import, Vec::new(), State::Arriving, &arriving).await?;
        }
        None => {
            claim_numbers(services, workspace_id).await?;
            import::go_on(services, &import, Vec::new(), State::Arrived, &Nothing {}).await?;
        }
    }
    Ok(())
}

/// The progress of an import that has arrived: `{}`.
#[derive(Serialize)]
struct Nothing {}

/// A place in a table.
pub(super) struct Place {
    table: &'static Table,
    after: Vec<Value>,
}

impl Place {
    /// The place that the row of the import names.
    pub(super) fn of(import: &Move, name: &str, after: &[Json]) -> Result<Self, Fault> {
        let table = table(name)?;
        let after = from_json(after, table.key.len());
        let lost = || Fault::Bug(format!("the progress of {} names no place in {name}", import.id));
        Ok(Self { table, after: after.ok_or_else(lost)? })
    }
}

/// Compares the next rows of a table, and those of the following tables if there are few. Returns what comes next.
pub(super) async fn rows(
    services: &Services,
    workspace_id: &WorkspaceId,
    place: Place,
    mut sum: Sum,
    sums: &BTreeMap<String, Sum>,
    from: To,
) -> Result<At, Fault> {
    let Place { mut table, mut after } = place;
    let first = table.name;
    let mut following = TABLES.iter().skip_while(move |known| known.name != first).skip(1);
    for _ in 0..MOVE_LOOKS_MAX {
        let database = &*services.ports().database;
        let page = LOOK.read(database, table, workspace_id, &after).await?;
        let page = from.page(page, table);
        page.rows.iter().for_each(|row| sum.add(row));
        match page.next {
            Some(next) => after = next,
            None => {
                let name = table.name;
                if sums.get(name).cloned().unwrap_or_else(|| Sum::of(name)) != sum {
                    return Err(Declined::Differs(name.to_owned()).into());
                }
                let Some(next) = following.next() else {
                    return Ok(At::Recordings { after: Vec::new(), segment: 0 });
                };
                (table, after, sum) = (next, Vec::new(), Sum::of(next.name));
            }
        }
    }
    Ok(At::Rows { table: table.name.to_owned(), after: to_json(&after), sum })
}

/// A blob, and how large it has to be at least: that of a segment may have more than its recording counts.
type Expected = (BlobKey, u64);

/// The next segments of recordings, from this one of the recording that follows, and what comes after them.
async fn recordings(
    services: &Services,
    workspace_id: &WorkspaceId,
    place: Place,
    segment: u64,
) -> Result<(At, Vec<Expected>), Fault> {
    let Place { table, mut after } = place;
    let window = Window { rows: BLOBS_MAX as i64, ..LOOK };
    let keys = window.keys(&*services.ports().database, table, workspace_id, &after).await?;
    let ids: Vec<&str> = keys.keys.iter().filter_map(|key| text(key)).collect();
    let found = Recordings::named(services, workspace_id, &ids).await?;
    let (mut blobs, mut n) = (Vec::new(), segment);
    for key in &keys.keys {
        if let Some(recording) = text(key).and_then(|id| found.get(&RecordingId::from_stored(id))) {
            while let Some(bytes) = recording.segment_bytes(n) {
                if blobs.len() == BLOBS_MAX {
                    return Ok((At::Recordings { after: to_json(&after), segment: n }, blobs));
                }
                blobs.push((recording.file.key.segment(n), bytes));
                n += 1;
            }
        }
        (after, n) = (key.clone(), 0);
    }
    let next = match keys.next {
        Some(next) => At::Recordings { after: to_json(&next), segment: 0 },
        None => At::Transcripts { after: Vec::new() },
    };
    Ok((next, blobs))
}

/// The text that a key of one column is.
fn text(key: &[Value]) -> Option<&str> {
    match key {
        [Value::Text(text) | Value::Asker(text)] => Some(text.as_str()),
        _ => None,
    }
}

/// The next archived transcripts, and what comes after them; `None`: nothing.
async fn transcripts(
    services: &Services,
    workspace_id: &WorkspaceId,
    place: Place,
) -> Result<(Option<At>, Vec<Expected>), Fault> {
    let Place { table, after } = place;
    let window = Window { rows: BLOBS_MAX as i64, ..LOOK };
    let keys = window.keys(&*services.ports().database, table, workspace_id, &after).await?;
    let found = transcripts_at(services, workspace_id, &keys.keys).await?;
    let blobs = found.into_iter().map(|transcript| (transcript.key, transcript.bytes)).collect();
    Ok((keys.next.map(|next| At::Transcripts { after: to_json(&next) }), blobs))
}

/// Those of the blobs that are not there, or are too small.
async fn missing(services: &Services, blobs: Vec<Expected>) -> Result<Vec<BlobKey>, Fault> {
    let mut missing = Vec::new();
    for some in blobs.chunks(BLOBS_AT_ONCE) {
        let sizes = join_all(some.iter().map(|(key, _)| services.ports().blobs.size(key))).await;
        for ((key, bytes), size) in some.iter().zip(sizes) {
            if size?.is_none_or(|size| size < *bytes) {
                missing.push(key.clone());
            }
        }
    }
    Ok(missing)
}

/// Where there are several databases, each number has one workspace among all. A number that is taken is told before the
/// workspace is handed over.
async fn claim_numbers(services: &Services, workspace_id: &WorkspaceId) -> Result<(), Fault> {
    if services.sharding().is_none() {
        return Ok(());
    }
    let numbers = sql!("SELECT number FROM numbers WHERE workspace_id = :ws ORDER BY number");
    let [numbers] = services.read([numbers.in_workspace(workspace_id)]).await?;
    for row in numbers.iter() {
        let number = row.text("number")?;
        match services.claim_number(&number, workspace_id, false).await {
            Ok(Some(claim)) => services.confirm_number(&number, workspace_id, claim).await,
            Ok(None) => {}
            Err(Fault::Refused(error)) if error.code == Code::NumberInUse => {
                return Err(Declined::NumbersTaken(vec![number]).into());
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
