//! How far an import is.
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::base::ids::WorkspaceId;
use crate::ports::DatabaseError;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::moves::declined::Declined;
use crate::storage::moves::lock::{self, Expected};
use crate::storage::moves::part::{Chain, Tally};
use crate::storage::moves::{Move, State};
use crate::storage::workspace_rows::{SCHEMA, Sum};

/// An import, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// How far it is.
    pub state: State,
    /// The export that it is of.
    pub export_id: String,
    /// The part that comes next, also after the end; `None`: no part is taken any more.
    pub next_part: Option<u64>,
    /// The chain of the parts that have arrived, without the end: only a file with the same parts goes on from there.
    pub chain: Option<Chain>,
    /// What is being compared: a table, or blobs; `None`: nothing yet, or everything was.
    pub comparing: Option<String>,
    /// Its own id, once everything is there and was compared: only then is the workspace handed over to it.
    pub import_id: Option<String>,
}

impl Status {
    /// Of the row of an import.
    pub(super) fn of(import: &Move) -> Result<Self, Fault> {
        let arriving: Option<Arriving> = match import.state {
            State::Arriving => Some(progress(import)?),
            _ => None,
        };
        let is_verified = matches!(import.state, State::Arrived | State::Opening | State::Running);
        Ok(Self {
            state: import.state,
            export_id: import.other_id.clone().unwrap_or_default(),
            next_part: arriving.as_ref().map(Arriving::next_part),
            chain: arriving.as_ref().map(|arriving| arriving.tally.chain.clone()),
            comparing: arriving.and_then(|arriving| arriving.compared).map(|compared| compared.at.name()),
            import_id: is_verified.then(|| import.id.clone()),
        })
    }
}

/// How far the import into this workspace is.
pub async fn status(services: &Services, workspace_id: &WorkspaceId) -> Result<Status, Fault> {
    Status::of(&find(services, workspace_id).await?)
}

/// The row of the import into this workspace.
pub(super) async fn find(services: &Services, workspace_id: &WorkspaceId) -> Result<Move, Fault> {
    let found = Move::of(services, workspace_id).await?;
    Ok(found.filter(is_import).ok_or(Declined::NoImport)?)
}

/// Whether a move is one to here, of which something is left.
pub(super) fn is_import(found: &Move) -> bool {
    !found.is_export() && !found.is_between_databases() && found.state != State::Gone
}

/// What `progress` says.
pub(super) fn progress<T: DeserializeOwned>(import: &Move) -> Result<T, Fault> {
    serde_json::from_str(&import.progress)
        .map_err(|error| Fault::Bug(format!("the progress of {}: {error}", import.id)))
}

/// Refuses to go on with rows of another schema than that of this host.
pub(super) fn check_schema(import: &Move) -> Result<(), Declined> {
    if import.schema == SCHEMA { Ok(()) } else { Err(Declined::SchemaChanged) }
}

/// Writes the next step of an import, if it is still as it was read.
pub(super) async fn go_on(
    services: &Services,
    import: &Move,
    statements: Vec<Statement>,
    state: State,
    progress: &impl Serialize,
) -> Result<(), DatabaseError> {
    let Move { workspace_id, id, state: expected, progress: before, .. } = import;
    let expected = Expected { workspace_id, id, state: *expected, progress: before };
    // Numbers, texts, and lists and maps of them can always be written.
    let progress = serde_json::to_string(progress).unwrap_or_default();
    let batch = lock::within(&expected, statements, state, &progress, services.now());
    services.ports().database.write(batch).await.map(drop)
}

/// How far an import is while it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arriving {
    /// Of the head alone. Another file of the same export begins with another one.
    pub head: Chain,
    /// Of the numbers and keys that the head names, as [`named`](super::head::named) has it.
    pub named: String,
    /// What has arrived.
    pub tally: Tally,
    /// How far it was compared; `None`: parts are missing.
    pub compared: Option<Compared>,
}

impl Arriving {
    /// The part that comes next. The end of the file is one, too.
    pub(super) fn next_part(&self) -> u64 {
        self.tally.parts + 1 + u64::from(self.compared.is_some())
    }
}

/// How far what has arrived was compared with what the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compared {
    /// What comes next.
    pub at: At,
    /// Blobs that rows name and that are not there.
    pub absent: u64,
}

/// What is compared next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum At {
    /// The rows of a table after this key; the sum of those before.
    Rows { table: String, after: Vec<Json>, sum: Sum },
    /// Segments of recordings, from this one of the recording that follows.
    Recordings { after: Vec<Json>, segment: u64 },
    /// Archived transcripts.
    Transcripts { after: Vec<Json> },
}

impl At {
    fn name(&self) -> String {
        match self {
            Self::Rows { table, .. } => table.clone(),
            Self::Recordings { .. } => "recordings of calls".to_owned(),
            Self::Transcripts { .. } => "archived transcripts".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_put_aside() {
        let after = vec![Json::from("ws_1"), Json::from(3)];
        let places = [
            At::Rows { table: "calls".to_owned(), after: after.clone(), sum: Sum::of("calls") },
            At::Recordings { after: Vec::new(), segment: 7 },
            At::Transcripts { after },
        ];
        for at in places {
            let compared = Compared { at, absent: 1 };
            let text = serde_json::to_string(&compared).unwrap();
            assert_eq!(serde_json::from_str::<Compared>(&text).unwrap(), compared, "{text}");
        }
    }
}
