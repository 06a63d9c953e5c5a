//! Why a step of an import is not made.
use serde_json::{Value, json};

use crate::base::error::{Code, Error};
use crate::storage::fault::Fault;
use crate::storage::moves::TOO_MANY_MOVES;
use crate::storage::workspace_rows;

/// Numbers that are named in one error.
const NUMBERS_NAMED: usize = 20;

/// Why a step of an import is not made. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declined {
    /// No workspace arrives under this id.
    NoImport,
    /// This is no head of a file, for this reason.
    Form(String),
    /// The file is of an earlier version than this host.
    SchemaOlder,
    /// It is of a later one.
    SchemaNewer,
    /// This host was upgraded since the import began, or has other tables than its version.
    SchemaChanged,
    /// As many workspaces as may move at once do.
    TooManyMoves,
    /// The upgrade of this host from an earlier version goes on in the background.
    NotUpgraded,
    /// The workspace is here.
    WorkspaceExists,
    /// It has moved away from here, and its rows were not erased.
    NotErased,
    /// It arrives with another file.
    OtherExport,
    /// An import of it is being canceled.
    Canceling,
    /// Other workspaces have these numbers, or the operator has given them to others.
    NumbersTaken(Vec<String>),
    /// So many of its API keys are those of other workspaces.
    KeysTaken(usize),
    /// Its id ends as that of another workspace.
    IdTaken,
    /// This part is the next one.
    OutOfOrder(u64),
    /// Everything is here: no part is taken any more.
    Complete,
    /// The part cannot be what an export has written.
    WrongPart(Place, String),
    /// A page names something of another workspace here.
    NamesAStranger(Place),
    /// A row of this table is here already.
    Exists(&'static str),
    /// Parts are missing: this is the next one.
    NotComplete(u64),
    /// This table, or this blob, is not as the file says.
    Differs(String),
    /// Not everything is there and compared yet.
    NotArrived,
    /// The code is not that of this import.
    WrongCode,
    /// It was handed over to this host, and is nowhere else.
    HandedOver,
}

/// Where in a part something is wrong. Pages and rows count from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The page.
    pub page: Option<usize>,
    /// The row in it.
    pub row: Option<usize>,
    /// The column.
    pub column: Option<&'static str>,
}

impl Place {
    fn of(page: usize, wrong: &workspace_rows::Wrong) -> Self {
        Self { page: Some(page), row: Some(wrong.row), column: wrong.column }
    }

    /// What a sentence about it begins with.
    fn text(&self) -> String {
        let place = |name: &str, n: Option<usize>| n.map(|n| format!("{name} {n}, ")).unwrap_or_default();
        let column = self.column.map(|column| format!("{column} ")).unwrap_or_default();
        place("page", self.page) + &place("row", self.row) + &column
    }
}

impl Declined {
    /// A part that is wrong as a whole.
    pub(super) fn part(what: impl Into<String>) -> Self {
        Self::WrongPart(Place::default(), what.into())
    }

    /// A page that is wrong. `page` counts from 1.
    pub(super) fn page(page: usize, wrong: &workspace_rows::Wrong) -> Self {
        Self::WrongPart(Place::of(page, wrong), wrong.what.to_owned())
    }

    /// A page that names something of another workspace. `page` counts from 1.
    pub(super) fn stranger(page: usize, wrong: &workspace_rows::Wrong) -> Self {
        Self::NamesAStranger(Place::of(page, wrong))
    }

    /// The reason, as `details.reason` has it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoImport => "no_import",
            Self::Form(_) => "form",
            Self::SchemaOlder => "schema_older",
            Self::SchemaNewer => "schema_newer",
            Self::SchemaChanged => "schema_changed",
            Self::TooManyMoves => "too_many_moves",
            Self::NotUpgraded => "not_upgraded",
            Self::WorkspaceExists => "workspace_exists",
            Self::NotErased => "not_erased",
            Self::OtherExport => "other_export",
            Self::Canceling => "canceling",
            Self::NumbersTaken(_) => "numbers_taken",
            Self::KeysTaken(_) => "keys_taken",
            Self::IdTaken => "id_taken",
            Self::OutOfOrder(_) => "out_of_order",
            Self::Complete => "complete",
            Self::WrongPart(..) => "wrong_part",
            Self::NamesAStranger(_) => "names_a_stranger",
            Self::Exists(_) => "exists",
            Self::NotComplete(_) => "not_complete",
            Self::Differs(_) => "differs",
            Self::NotArrived => "not_arrived",
            Self::WrongCode => "wrong_code",
            Self::HandedOver => "handed_over",
        }
    }

    /// The error for the operator. No value of the file is in it but telephone numbers.
    pub fn error(&self) -> Error {
        let code = if *self == Self::NoImport { Code::NotFound } else { Code::MoveRefused };
        let mut details = self.details();
        details["reason"] = json!(self.reason());
        Error::new(code, self.message()).with_details(details)
    }

    fn details(&self) -> Value {
        match self {
            Self::NumbersTaken(numbers) => json!({"numbers": numbers}),
            Self::KeysTaken(count) => json!({"count": count}),
            Self::OutOfOrder(next) | Self::NotComplete(next) => json!({"next_part": next}),
            Self::WrongPart(Place { page, row, column }, what) => {
                json!({"page": page, "row": row, "column": column, "what": what})
            }
            Self::NamesAStranger(Place { page, row, column }) => {
                json!({"page": page, "row": row, "column": column})
            }
            Self::Exists(table) => json!({"table": table}),
            Self::Differs(what) => json!({"what": what}),
            _ => json!({}),
        }
    }

    fn message(&self) -> String {
        let plain = match self {
            Self::Form(why) => return format!("This is no file of a move: {why}."),
            Self::NumbersTaken(numbers) => {
                let named =
                    numbers.iter().take(NUMBERS_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
                return format!(
                    "Other workspaces of this host have numbers of this one, or are given them by SIDETONE_NUMBERS: {named}. \
                     Unbind them there, or change the setting, then repeat."
                );
            }
            Self::KeysTaken(count) => {
                return format!(
                    "{count} API keys of this workspace are those of other workspaces of this host: both hosts were probably \
                     started with the same SIDETONE_BOOTSTRAP_KEYS. Import it at another host."
                );
            }
            Self::OutOfOrder(next) => return format!("Part {next} is the next one."),
            Self::WrongPart(place, what) => {
                return format!("No export writes such a part: {}{what}. Export again.", place.text());
            }
            Self::NamesAStranger(place) => {
                return format!(
                    "No export writes such a part: {}names something of another workspace of this host.",
                    place.text()
                );
            }
            Self::Exists(table) => {
                return format!(
                    "A row of {table} is in this database already. Cancel the move, and begin again."
                );
            }
            Self::NotComplete(next) => return format!("Part {next} is missing."),
            Self::Differs(what) => {
                return format!(
                    "{what} is not as it was where it comes from. Cancel the move, and begin again."
                );
            }
            Self::IdTaken => {
                "The id of this workspace ends as that of another workspace of this host, whose searches would read its calls, too. \
                 Import it at another host."
            }
            Self::NoImport => "No workspace with this id arrives here.",
            Self::SchemaOlder => {
                "The file is of an earlier version than this host. Upgrade the source, and export again."
            }
            Self::SchemaNewer => "The file is of a later version than this host. Upgrade this host.",
            Self::SchemaChanged => {
                "This host has other tables than the file was written for. Run the same version on both, cancel the import, and \
                 export again."
            }
            Self::TooManyMoves => TOO_MANY_MOVES,
            Self::NotUpgraded => {
                "This service still upgrades the data of an earlier version, in the background. Try again in a few minutes."
            }
            Self::WorkspaceExists => "This workspace is on this host.",
            Self::NotErased => {
                "This workspace has moved away from here, and its rows are still here. Erase them first."
            }
            Self::OtherExport => {
                "This workspace arrives here with another file already. Go on with that one, or cancel it."
            }
            Self::Canceling => "An import of this workspace is being canceled. Repeat that until it is done.",
            Self::Complete => "Everything of the file is here.",
            Self::NotArrived => "Not every part is there and compared yet.",
            Self::WrongCode => {
                "This is not the code of this import. The source makes one with `--release` and the import's id."
            }
            Self::HandedOver => {
                "The source has handed this workspace over to this import, and it runs nowhere else. It cannot be canceled."
            }
        };
        plain.to_owned()
    }
}

impl From<Declined> for Fault {
    fn from(declined: Declined) -> Self {
        Self::Refused(declined.error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_and_why() {
        let wrong = workspace_rows::Wrong { row: 2, column: Some("call_id"), what: "is not such an id" };
        let error = Declined::page(3, &wrong).error();
        let details = json!({"page": 3, "row": 2, "column": "call_id", "what": "is not such an id", "reason": "wrong_part"});
        assert_eq!((error.code, error.details.as_deref()), (Code::MoveRefused, Some(&details)));
        let message = "No export writes such a part: page 3, row 2, call_id is not such an id. Export again.";
        assert_eq!(error.message, message);
        assert_eq!(Declined::NoImport.error().code, Code::NotFound);
    }
}
