//! What a file of a move begins with.
use serde::{Deserialize, Serialize};

use super::{WrongPart, as_json, from_json};
use crate::base::ids::WorkspaceId;
use crate::base::limits::{MODEL_CHARS_MAX, NAME_CHARS_MAX};
use crate::base::text::is_line;

/// The first line of the file: in which form the others are.
pub const FORM: &str = "SIDETONE MOVE 1";

/// What a file is of: its second line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// `exp_…`
    pub export_id: String,
    /// The workspace, which keeps its id.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// What its rows are of, as [`SCHEMA`](crate::storage::workspace_rows::SCHEMA) says.
    pub schema: String,
    /// When it was frozen: RFC 3339.
    pub frozen_at: String,
    /// The host that it comes from.
    pub base_url: String,
    /// The SHA-256 of the key with which its secrets are sealed; a [`Code`](crate::storage::moves::code::Code) has the key.
    pub key_sha256: String,
    /// Its telephone numbers.
    pub numbers: Vec<String>,
    /// The SHA-256 of each of its API keys that is not revoked.
    pub key_hashes: Vec<String>,
    /// What its assistants use.
    pub needs: Needs,
}

/// What the operator of the next host has to have configured, so that calls go on as before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Carriers of numbers.
    pub carriers: Vec<String>,
    /// Models.
    pub models: Vec<String>,
    /// Voices.
    pub voices: Vec<String>,
    /// Transcribers.
    pub transcribers: Vec<String>,
}

impl Head {
    /// The line, without its line feed.
    pub fn to_line(&self) -> String {
        as_json(self)
    }

    /// Reads the line.
    pub fn from_line(line: &str) -> Result<Self, WrongPart> {
        from_json(line, "the head of the file")
    }

    /// Whether what is told of it to the operator can be shown: a terminal would obey other texts, or take them for the command's.
    pub fn is_fit(&self) -> bool {
        let Needs { carriers, models, voices, transcribers } = &self.needs;
        let mut others = [&self.numbers, carriers, models, voices, transcribers].into_iter().flatten();
        is_line(&self.name, NAME_CHARS_MAX) && others.all(|text| is_line(text, MODEL_CHARS_MAX))
    }
}
