//! What a backup says of itself.
use std::path::Path;

use serde_json::{Value, json};
use sidetone_engine::base::time;
use sidetone_engine::ports::Clock;
use sidetone_engine::storage::migrations::MIGRATIONS;

use super::{Failure, MANIFEST};
use crate::system::SystemClock;

/// The description of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Whether everything was copied. A backup that was interrupted is repeated into the same folder.
    pub complete: bool,
    /// When it was begun, as RFC 3339.
    pub made_at: String,
    /// Whether the server secret is in it, rather than in a setting.
    pub has_secret: bool,
    /// Files of recordings and of archived transcripts.
    pub blobs: u64,
    /// Their bytes.
    pub blobs_bytes: u64,
}

impl Manifest {
    /// The manifest of a backup that begins now, and has nothing yet.
    pub fn begun() -> Self {
        Self {
            complete: false,
            made_at: time::format(SystemClock.now_ms()),
            has_secret: false,
            blobs: 0,
            blobs_bytes: 0,
        }
    }

    /// As the text of `backup.json`.
    pub fn text(&self) -> String {
        let value = json!({
            "complete": self.complete,
            "made_at": self.made_at,
            // For people: the version that made it, and the newest migration that it knows.
            "version": env!("CARGO_PKG_VERSION"),
            "schema": MIGRATIONS.last().map_or("", |migration| migration.name),
            "secret": self.has_secret,
            "blobs": {"files": self.blobs, "bytes": self.blobs_bytes},
        });
        format!("{value:#}\n")
    }

    /// Reads a `backup.json` that is of this backup: errors name the backup.
    pub fn read(path: &Path, backup: &Path) -> Result<Self, Failure> {
        let unreadable =
            |what: &str| format!("{MANIFEST} of {} {what}; it is not a backup of Sidetone", backup.display());
        let text = std::fs::read_to_string(path)
            .map_err(|error| unreadable(&format!("cannot be read ({error})")))?;
        let value: Value = serde_json::from_str(&text).map_err(|_| unreadable("is not JSON"))?;
        let number = |name: &str| value["blobs"][name].as_u64().ok_or_else(|| unreadable("lacks `blobs`"));
        Ok(Self {
            complete: value["complete"] == true,
            made_at: value["made_at"].as_str().ok_or_else(|| unreadable("lacks `made_at`"))?.to_owned(),
            has_secret: value["secret"] == true,
            blobs: number("files")?,
            blobs_bytes: number("bytes")?,
        })
    }
}
