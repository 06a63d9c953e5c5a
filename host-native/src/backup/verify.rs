//! Checks a data folder that no service uses: the database, the secret, and the recordings and archived transcripts that it names.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sidetone_engine::storage::backups;
use sidetone_engine::storage::migrations::MIGRATIONS;
use sidetone_engine::storage::recordings::SEGMENTS_UNCOUNTED_MAX;
use sidetone_engine::storage::server_secret::secret_fingerprint;

use super::blob_names::{archives, is_ours, name_of, selected};
use super::{Failure, read};
use crate::data::{DataFolder, RECORDINGS, SECRET, TRANSCRIPTS};
use crate::text::{count, counted};

/// What a data folder has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Workspaces.
    pub workspaces: u64,
    /// Calls.
    pub calls: u64,
    /// Recordings that can be read.
    pub recordings: u64,
    /// How many of them are in workspaces that a move keeps locked.
    pub locked_recordings: u64,
    /// How many segments each recording counts, by `<workspace>/<call>.<recording>`; `None`: an earlier
    /// version counted none.
    pub segments: Option<BTreeMap<String, u64>>,
    /// The files that transcripts may have, below the folder.
    pub transcripts: BTreeSet<PathBuf>,
    /// The files that the service has still to remove, below the folder, without `.json` or `.<n>.pcm`: what they belong to was
    /// deleted.
    pub due: BTreeSet<PathBuf>,
    /// Calls whose recordings or archived transcripts should be there and are not.
    pub missing: Vec<String>,
}

/// Checks the folder. `secret` is the value of SIDETONE_SECRET, which replaces the file.
pub fn verify(folder: &Path, secret: Option<&str>) -> Result<Verified, Failure> {
    verify_copy(folder, &DataFolder::database_of(folder), secret)
}

/// The same of a folder with a copy of this database, which errors name instead.
pub(super) fn verify_copy(folder: &Path, database: &Path, secret: Option<&str>) -> Result<Verified, Failure> {
    verify_by(folder, database, secret, read::INTEGRITY_CHECK)
}

/// The same without a comparison of each index with its table.
pub fn verify_quickly(folder: &Path, secret: Option<&str>) -> Result<Verified, Failure> {
    verify_by(folder, &DataFolder::database_of(folder), secret, "PRAGMA quick_check")
}

fn verify_by(folder: &Path, shown: &Path, secret: Option<&str>, check: &str) -> Result<Verified, Failure> {
    let path = DataFolder::database_of(folder);
    let shown = shown.display();
    if !path.try_exists()? {
        return Err(format!("there is no database {shown}; restore a backup that has one").into());
    }
    let broken =
        |what: String| format!("the database {shown} is damaged ({what}); restore a backup that is sound");
    let database = read::open(&path).map_err(|error| broken(error.to_string()))?;
    let texts = |select: &str| read::texts(&database, select);
    if let Some(what) = read::damage(&database, check).map_err(|error| broken(error.to_string()))? {
        return Err(broken(what).into());
    }
    let migrations = match texts(backups::HAS_MIGRATIONS)?.is_empty() {
        true => Vec::new(),
        false => texts(backups::MIGRATIONS)?,
    };
    if MIGRATIONS.first().is_some_and(|first| migrations.iter().all(|name| name != first.name)) {
        return Err(format!(
            "{shown} is not a database of Sidetone; take one that `sidetone backup` has made"
        )
        .into());
    }
    if let Some(what) = read::rows_of_nothing(&database)? {
        return Err(broken(what).into());
    }
    for name in migrations {
        if MIGRATIONS.iter().all(|migration| migration.name != name) {
            return Err(format!(
                "the database was written by a newer Sidetone (it has migration {name}); use that version, or restore a backup"
            )
            .into());
        }
    }
    check_secret(folder, secret, &texts(backups::SECRET).unwrap_or_default())?;
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    let ready = texts(backups::RECORDINGS)?;
    let first = |name: &String| folder.join(RECORDINGS).join(format!("{name}.0.pcm")).is_file();
    let mut missing: Vec<String> =
        ready.iter().filter(|name| !first(name)).filter_map(|name| call_of(name)).collect();
    let transcript = |name: &String| Path::new(TRANSCRIPTS).join(format!("{name}.json"));
    for name in archives(&database, backups::ARCHIVES)? {
        if !folder.join(transcript(&name)).is_file() {
            missing.extend(call_of(&format!("{name}.json")));
        }
    }
    let transcripts = archives(&database, backups::TRANSCRIPT_FILES)?.iter().map(transcript).collect();
    let locked_recordings = match texts(backups::HAS_MOVES)?.is_empty() {
        true => 0,
        false => count(backups::LOCKED_RECORDINGS)?,
    };
    let segments = match texts(backups::HAS_SEGMENTS)?.is_empty() {
        true => None,
        false => Some(texts(backups::SEGMENTS)?),
    };
    Ok(Verified {
        workspaces: count(backups::WORKSPACES)?,
        calls: count(backups::CALLS)?,
        recordings: ready.len() as u64,
        locked_recordings,
        segments: segments.map(|rows| {
            let pair = |row: &String| {
                row.rsplit_once(' ').and_then(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
            };
            rows.iter().filter_map(pair).collect()
        }),
        transcripts,
        due: selected(&database, backups::DUE_RECORDINGS, backups::DUE_ARCHIVES)?,
        missing,
    })
}

impl Verified {
    /// `3 workspaces, 1,204 calls, 1,198 recordings (17 in workspaces that a move keeps locked)`
    pub fn summary(&self) -> String {
        // No check compares these with their files.
        let locked = match self.locked_recordings {
            0 => String::new(),
            some => format!(" ({} in workspaces that a move keeps locked)", count(some)),
        };
        format!(
            "{}, {}, {}{locked}",
            counted(self.workspaces, "workspace"),
            counted(self.calls, "call"),
            counted(self.recordings, "recording")
        )
    }

    /// Whether the service has made this file, which is below the folder, and no row names it any more: with the row, the service
    /// would remove the file.
    pub(super) fn is_unnamed(&self, file: &Path) -> bool {
        is_ours(file)
            && match file.strip_prefix(RECORDINGS) {
                Ok(name) => !self.has_segment(name),
                Err(_) => !self.transcripts.contains(file),
            }
    }

    /// Whether the service has made this file, which is below the folder, and removes it in one of its next sweeps.
    pub(super) fn is_due(&self, file: &Path) -> bool {
        is_ours(file) && self.due.contains(&name_of(file))
    }

    fn has_segment(&self, name: &Path) -> bool {
        let Some(segments) = &self.segments else { return true };
        let parts = name.to_str().and_then(|text| text.strip_suffix(".pcm")?.rsplit_once('.'));
        parts.is_some_and(|(recording, n)| {
            let most = segments.get(recording).map(|count| count.saturating_add(SEGMENTS_UNCOUNTED_MAX));
            n.parse().is_ok_and(|n: u64| most.is_some_and(|most| n < most))
        })
    }
}

fn call_of(name: &str) -> Option<String> {
    Some(name.split_once('/')?.1.split_once('.')?.0.to_owned())
}

/// The secret must be the one that the database was used with.
fn check_secret(folder: &Path, setting: Option<&str>, known: &[String]) -> Result<(), Failure> {
    let Some(known) = known.first() else { return Ok(()) };
    let file = std::fs::read_to_string(folder.join(SECRET)).ok().map(|text| text.trim().to_owned());
    let Some(secret) = setting.map(str::to_owned).or(file) else {
        return Err(
            "there is no server secret beside the database; set SIDETONE_SECRET to the one that it was used with. If it is \
             lost for good, copy the files of the backup into an empty folder yourself, and run `sidetone secrets accept` there"
                .into(),
        );
    };
    match secret_fingerprint(&secret) == *known {
        true => Ok(()),
        false => Err("the server secret is not the one that the database was used with; set SIDETONE_SECRET to that one".into()),
    }
}
