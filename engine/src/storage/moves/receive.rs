//! A part of the file that arrives: checked, and written together with the place of the next one.
mod blobs;
mod rows;
mod secrets;

use bytes::Bytes;

use crate::base::ids::WorkspaceId;
use crate::base::limits::{
    ASSISTANTS_MAX, DOCUMENTS_MAX, NUMBERS_MAX, PERSONAS_MAX, RUNS_QUEUED_MAX, SCENARIOS_MAX,
    SIMULATIONS_MAX, TOOLS_MAX, WEBHOOKS_MAX,
};
use crate::services::Services;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::arrive::check_given;
use crate::storage::moves::declined::Declined;
use crate::storage::moves::head::named_by_rows;
use crate::storage::moves::import::{self, Arriving, At, Compared};
use crate::storage::moves::part::{Kind, Part, WrongPart};
use crate::storage::moves::{Move, State, lock};
use crate::storage::workspace_rows::{Page, Sum, TABLES};

/// Rows of these tables that a workspace has at most: one batch or one request takes all of them. Runs that were under way wait
/// beside those that are queued. The head has room for few keys.
const MOST: &[(&str, i64)] = &[
    ("assistants", ASSISTANTS_MAX),
    ("documents", DOCUMENTS_MAX),
    ("jobs_away", 2 * (RUNS_QUEUED_MAX + WEBHOOKS_MAX)),
    ("numbers", NUMBERS_MAX),
    ("personas", PERSONAS_MAX),
    ("scenarios", SCENARIOS_MAX),
    ("simulations", SIMULATIONS_MAX),
    ("tools", TOOLS_MAX),
    ("webhooks", WEBHOOKS_MAX),
];

impl From<WrongPart> for Declined {
    fn from(WrongPart(what): WrongPart) -> Self {
        Self::part(what)
    }
}

/// Receives part `n` of the file, from 1; returns which one comes next. A repetition is answered.
pub async fn receive(
    services: &Services,
    workspace_id: &WorkspaceId,
    n: u64,
    bytes: &Bytes,
) -> Result<u64, Fault> {
    retry_stale(|| try_receive(services, workspace_id, n, bytes)).await
}

async fn try_receive(
    services: &Services,
    workspace_id: &WorkspaceId,
    n: u64,
    bytes: &Bytes,
) -> Result<u64, Fault> {
    let import = import::find(services, workspace_id).await?;
    match import.state {
        State::Arriving => {}
        State::Canceling => return Err(Declined::Canceling.into()),
        _ => return Err(Declined::Complete.into()),
    }
    import::check_schema(&import)?;
    let mut arriving: Arriving = import::progress(&import)?;
    let next = arriving.next_part();
    if n < next {
        return Ok(next);
    }
    if n > next || arriving.compared.is_some() {
        return Err(Declined::OutOfOrder(next).into());
    }
    let part = Part::read(bytes).map_err(Declined::from)?;
    if let Kind::End(told) = &part.head.kind {
        if *told != arriving.tally {
            return Err(Declined::part("the end does not say what has arrived").into());
        }
        // What refused the head looked at these, and later steps take all of them at once.
        if arriving.named != named_by_rows(services, workspace_id).await? {
            return Err(Declined::part("its head names other numbers or keys than its rows").into());
        }
        arriving.compared = Some(Compared { at: At::first(), absent: 0 });
        import::go_on(services, &import, Vec::new(), State::Arriving, &arriving).await?;
        return Ok(arriving.next_part());
    }
    let pages = part.pages().map_err(Declined::from)?;
    arriving.tally.add_with(&part, &pages).map_err(Declined::from)?;
    let rows = |table: &str| arriving.tally.sums.get(table).map_or(0, |sum| sum.rows);
    if let Some((table, most)) = MOST.iter().find(|(table, most)| rows(table) > *most as u64) {
        return Err(Declined::part(format!("with it, there are more than {most} rows of {table}")).into());
    }
    take(services, &import, &part, &pages, &arriving).await?;
    Ok(arriving.next_part())
}

/// Writes what the part has. `arriving` is how far the import is with it.
async fn take(
    services: &Services,
    import: &Move,
    part: &Part,
    pages: &[Page],
    arriving: &Arriving,
) -> Result<(), Fault> {
    let workspace_id = &import.workspace_id;
    let mut batch = Vec::new();
    if arriving.tally.parts == 1 {
        // Whoever began the import may have died before they were all there.
        lock::arm(services, workspace_id).await?;
        batch.push(lock::guard_armed(workspace_id)?);
    }
    match &part.head.kind {
        Kind::Rows(_) => {
            check_given(services.config(), workspace_id, &rows::numbers(pages))?;
            batch.extend(rows::statements(workspace_id, pages, services.now().ms())?);
            let written = import::go_on(services, import, batch, State::Arriving, arriving).await;
            match written {
                Ok(()) => Ok(()),
                Err(error) => Err(rows::refused(services, workspace_id, pages, error).await),
            }
        }
        Kind::Secrets => {
            let carried = part.secrets().map_err(Declined::from)?;
            batch.extend(secrets::statements(services, workspace_id, &carried).await?);
            Ok(import::go_on(services, import, batch, State::Arriving, arriving).await?)
        }
        Kind::Blobs(_) => {
            blobs::put(services, workspace_id, part).await?;
            Ok(import::go_on(services, import, batch, State::Arriving, arriving).await?)
        }
        Kind::End(_) => Err(Fault::Bug("the end of a file has nothing to write".to_owned())),
    }
}

impl At {
    /// Where comparing begins.
    pub(super) fn first() -> Self {
        let table = TABLES.first().map_or("", |table| table.name);
        Self::Rows { table: table.to_owned(), after: Vec::new(), sum: Sum::of(table) }
    }
}
