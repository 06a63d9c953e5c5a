//! Workspaces that move between hosts.
//!
//! A row of `moves` says how far a move is, and whether the workspace is locked. A lock is triggers that refuse every write
//! to its rows, whoever writes them: [`lock`]. The source closes the workspace, so that what is under way comes to its end
//! (`quiet`), freezes it then, and may cancel that until it is handed over: [`freeze`], [`cancel_export`].
//!
//! The target begins with what its operator has to know first ([`arrive`]), receives the parts of the file ([`receive`]),
//! compares what has arrived with what the file says ([`verify`]), and opens it once it was handed over ([`open`]); until then,
//! it may cancel the import ([`cancel_import`]).
//!
//! Between two databases of one host, the same steps are made without a file: [`shards`].
pub mod admin;
pub mod arrive;
mod blobs;
pub mod cancel_export;
pub mod cancel_import;
mod carried;
pub mod code;
mod cursor;
pub mod declined;
pub mod erase;
pub mod freeze;
pub mod head;
pub mod import;
mod jobs_away;
pub mod lock;
mod named_blobs;
pub mod open;
pub mod part;
pub mod parts;
mod progress;
mod quiet;
pub mod receive;
pub mod release;
pub mod requests;
pub mod shards;
pub(crate) mod told;
pub mod verify;

use serde_json::json;

use crate::base::error::{Code, Error};
use crate::base::ids::{WorkspaceId, prefix};
use crate::base::limits::MOVES_AT_ONCE_MAX;
use crate::base::time::Timestamp;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;

pub use self::progress::{Erased, Progress};
pub use self::quiet::{Wait, What};

/// For the operator.
const TOO_MANY_MOVES: &str = "Four other workspaces move already, and no more can at once. Let one of those moves end, or cancel \
    it. On a box, `sidetone workspace list` and the metric sidetone_moves show them; of a Worker, its database does \
    (docs/deploying-at-the-edge.md).";
const _: () = assert!(MOVES_AT_ONCE_MAX == 4);

/// A row of `moves`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// `exp_…` or `imp_…`; `mov_…` between two databases of this host.
    pub id: String,
    /// How far it is.
    pub state: State,
    /// The schema that its rows are of, as [`SCHEMA`](crate::storage::workspace_rows::SCHEMA) names it.
    pub schema: String,
    /// Of an export the key of its file, sealed with the server secret for its id; of an import the SHA-256 of that key, then
    /// itself, sealed in the same way.
    pub file_key: String,
    /// The import that an export was handed over to; the export that an import is of.
    pub other_id: Option<String>,
    /// Where the workspace is, once it has moved.
    pub moved_to: Option<String>,
    /// How far the step is that is under way, as JSON.
    pub progress: String,
    /// When it began.
    pub began_at: Timestamp,
    /// When the state changed.
    pub changed_at: Timestamp,
}

/// The result of a step, or why it is not made.
pub type Step<T> = Result<Result<T, Refusal>, Fault>;

impl Move {
    /// The move of this workspace.
    pub async fn of(services: &Services, workspace_id: &WorkspaceId) -> Result<Option<Self>, DatabaseError> {
        let [rows] = services.read([Self::select().in_workspace(workspace_id)]).await?;
        rows.first().map(Self::read).transpose()
    }

    /// Whether the workspace moves away from here, or has. Otherwise it arrives here, or has.
    pub fn is_export(&self) -> bool {
        self.id.strip_prefix(prefix::EXPORT).is_some_and(|rest| rest.starts_with('_'))
    }

    /// Whether nothing of the workspace is here, and nothing ever was but an import that was canceled: it has moved nowhere.
    pub(crate) fn is_nothing(&self) -> bool {
        self.state == State::Gone && self.moved_to.is_none() && !self.is_between_databases()
    }

    /// Whether it is between two databases of this host: this one is left by it, or filled.
    pub fn is_between_databases(&self) -> bool {
        self.id.strip_prefix(prefix::MOVE).is_some_and(|rest| rest.starts_with('_'))
    }

    /// Whether it is the one between two databases with this id or, without one, any to another host.
    fn is_meant(&self, between: Option<&str>) -> bool {
        between.map_or_else(|| !self.is_between_databases(), |id| self.id == id)
    }

    /// The move of workspace `:ws`; no row if there is none.
    pub(crate) fn select() -> Statement {
        sql!(
            "SELECT workspace_id, id, state, schema, file_key, other_id, moved_to, progress, began_at, changed_at
             FROM moves WHERE workspace_id = :ws"
        )
    }

    /// Reads [`Move::select`].
    pub(crate) fn read(row: Row<'_>) -> Result<Self, DatabaseError> {
        Ok(Self {
            workspace_id: row.id("workspace_id")?,
            id: row.text("id")?,
            state: row.word("state")?,
            schema: row.text("schema")?,
            file_key: row.text("file_key")?,
            other_id: row.optional_text("other_id")?,
            moved_to: row.optional_text("moved_to")?,
            progress: row.text("progress")?,
            began_at: row.timestamp("began_at")?,
            changed_at: row.timestamp("changed_at")?,
        })
    }
}

crate::words! {
    /// Why a step of a move is not made.
    plain Refusal {
        /// There is no such workspace.
        NoWorkspace = "no_workspace",
        /// As many workspaces as may move at once do.
        TooManyMoves = "too_many_moves",
        /// The upgrade from an earlier version goes on in the background.
        NotUpgraded = "not_upgraded",
        /// It arrives from another host.
        Arriving = "arriving",
        /// Its export is being canceled.
        Canceled = "canceled",
        /// It is not being closed.
        NotClosing = "not_closing",
        /// It has moved to another host.
        Moved = "moved",
        /// An import of it was canceled, and it was never here otherwise.
        NothingHere = "nothing_here",
        /// It is not frozen.
        NotFrozen = "not_frozen",
        /// It was not handed over.
        NotReleased = "not_released",
        /// It is frozen for another export, or was handed over by one.
        OtherExport = "other_export",
        /// It was handed over to another import.
        ReleasedElsewhere = "released_elsewhere",
        /// This service has been upgraded since its rows were frozen.
        SchemaChanged = "schema_changed",
        /// The key of its file was sealed with another server secret.
        KeyLost = "key_lost",
        /// Nothing of it continues where the request says.
        NoSuchPlace = "no_such_place",
        /// This host has one database.
        OneDatabase = "one_database",
        /// This host has no database of this name.
        NoSuchDatabase = "no_such_database",
        /// It moves between two databases of this host.
        BetweenDatabases = "between_databases",
        /// It moves to another host, or from there.
        BetweenHosts = "between_hosts",
        /// It is in the other database for good.
        Decided = "decided",
        /// People are members of it, or invited.
        HasPeople = "has_people",
    }
}

impl Refusal {
    /// For the operator.
    pub fn error(self) -> Error {
        let message = match self {
            Self::NoWorkspace => "There is no such workspace.",
            Self::TooManyMoves => TOO_MANY_MOVES,
            Self::NotUpgraded => {
                "This service still upgrades the data of an earlier version, in the background. Try again in a few minutes."
            }
            Self::Arriving => {
                "This workspace arrives from another host, and is not complete. Go on with that import, or cancel it."
            }
            Self::Canceled => {
                "The move of this workspace is being canceled. Repeat that first, so that it comes to its end."
            }
            Self::NotClosing => "This workspace is not being closed.",
            Self::Moved => "This workspace has moved to another host.",
            Self::NothingHere => {
                "An import of this workspace was canceled here: nothing of it is on this host."
            }
            Self::NotFrozen => {
                "This workspace is not frozen. Export it until that says that it is: `sidetone export --workspace … FILE`."
            }
            Self::NotReleased => {
                "This workspace was not handed over to another host: what is here is all there is of it."
            }
            Self::OtherExport => {
                "This workspace moves with another export than that of the file. Cancel the import of the file, and import \
                 that of the other one."
            }
            Self::ReleasedElsewhere => "This workspace was handed over to another import.",
            Self::SchemaChanged => {
                "This service was upgraded after the workspace was frozen. Cancel the move, and move it again."
            }
            Self::KeyLost => {
                "The key of this export was sealed with another SIDETONE_SECRET. Cancel the export, and move it again."
            }
            Self::NoSuchPlace => "Nothing of this workspace continues there. Begin at the first part.",
            Self::OneDatabase => "This service has one database (SIDETONE_SHARDS).",
            Self::NoSuchDatabase => "This service has no database with this name (SIDETONE_SHARDS).",
            Self::BetweenDatabases => {
                "This workspace moves between two databases of this service. Let that come to its end first, or cancel it."
            }
            Self::BetweenHosts => {
                "This workspace moves to another host, or from there. Let that come to its end first, or cancel it."
            }
            Self::Decided => {
                "This workspace is in the other database for good. Let the move come to its end; then it can move back."
            }
            Self::HasPeople => {
                "People are members of this workspace, or invited to it, and the dashboard has the first database only. Cancel \
                 the move, if it has begun (`--cancel`), remove them, and move it again."
            }
        };
        Error::new(Code::MoveRefused, message).with_details(json!({"reason": self.as_str()}))
    }
}

crate::words! {
    /// How far a move is.
    plain State {
        /// Of an export: what is under way ends, nothing new begins.
        Closing = "closing",
        /// Nothing is written; the pages can be read.
        Frozen = "frozen",
        /// Its export was canceled; the workspace runs here.
        Canceled = "canceled",
        /// Handed over to another host, for good.
        Released = "released",
        /// Its rows are being deleted.
        Erasing = "erasing",
        /// A tombstone is left: keys must make no second workspace.
        Gone = "gone",
        /// Of an import: its parts come in.
        Arriving = "arriving",
        /// Everything is there and was compared.
        Arrived = "arrived",
        /// It was handed over to here, and is being opened.
        Opening = "opening",
        /// Its import was canceled, and is being deleted.
        Canceling = "canceling",
        /// It runs here.
        Running = "running",
    }
}

impl State {
    /// Those in which a workspace is locked, and something is left to do.
    pub const UNDER_WAY: &'static [Self] = &[
        Self::Closing,
        Self::Frozen,
        Self::Released,
        Self::Erasing,
        Self::Arriving,
        Self::Arrived,
        Self::Opening,
        Self::Canceling,
    ];
}
