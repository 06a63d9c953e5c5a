//! Backups: the database, the server secret and the blobs (recordings and archived transcripts), in a folder of the form of a data folder or in one tar
//! archive. `backup.json` says what made it, and whether it is complete.
mod archive;
mod blob_names;
mod copied;
mod files;
mod folder;
mod manifest;
mod read;
mod restore;
mod unnamed;
mod verify;

use std::fmt::Display;
use std::io;
use std::path::Path;

pub use manifest::Manifest;
pub use restore::restore;
pub use unnamed::{Listed, Unnamed, remove_unnamed};
pub use verify::{Verified, verify, verify_quickly};

use crate::data::{DataFolder, RECORDINGS, SECRET, TRANSCRIPTS, resolved};
use crate::database::OpenError;
use copied::Copied;

/// The name of the file that describes a backup.
const MANIFEST: &str = "backup.json";
/// Folders of blobs.
const BLOBS: [&str; 2] = [RECORDINGS, TRANSCRIPTS];

/// Why a backup or a restore failed: what, and what to do.
pub type Failure = Box<dyn std::error::Error>;

/// The form of a backup, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `*.db`: the database alone.
    Database,
    /// `*.tar`: all in one archive.
    Archive,
    /// A folder; only what has changed since the last time is copied.
    Folder,
}

impl Form {
    /// The form of a backup with this path.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("db") => Self::Database,
            Some("tar") => Self::Archive,
            _ => Self::Folder,
        }
    }
}

/// Copies what `data` has to `target`, also while the service runs. `secret` is the value of SIDETONE_SECRET; `say` is told how far
/// it is.
pub fn backup(
    data: &DataFolder,
    target: &Path,
    secret: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    if !data.database().try_exists()? {
        return Err(format!(
            "{} has no database; set SIDETONE_DATA to the data folder of the service",
            data.path().display()
        )
        .into());
    }
    if resolved(target).starts_with(resolved(data.path())) {
        return Err(format!(
            "{} is in the data folder itself; choose a place outside of it",
            target.display()
        )
        .into());
    }
    let form = Form::of(target);
    refuse_place(target, form)?;
    let made = match form {
        Form::Database => database_alone(data, target),
        Form::Archive => archive::backup(data, target, secret, say),
        Form::Folder => folder::backup(data, target, secret, say),
    };
    made.map_err(|error| at(target.display(), error))
}

fn database_alone(data: &DataFolder, target: &Path) -> Result<String, Failure> {
    if target.try_exists()? {
        return Err(format!("{} exists; choose another file", target.display()).into());
    }
    Copied::of(data, target)?;
    Ok(format!(
        "The database is in {}. Keep {folder}/{SECRET} with it, and copies of {folder}/{RECORDINGS} and {folder}/{TRANSCRIPTS}, if there are any, made after it.",
        target.display(),
        folder = data.path().display()
    ))
}

/// An error of the system or of SQLite, with the place that it is about: they name none.
fn at(place: impl Display, error: Failure) -> Failure {
    if is_full(&*error) {
        return format!(
            "{place} cannot be written: its disk is full; make room there, or name a place on another one"
        )
        .into();
    }
    match error.is::<io::Error>() || error.is::<OpenError>() || error.is::<rusqlite::Error>() {
        true => format!("{place}: {error}").into(),
        false => error,
    }
}

fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let sqlite = match error.downcast_ref::<OpenError>() {
        Some(OpenError::Sqlite(error)) => Some(error),
        Some(OpenError::File(error)) => return is_full(error),
        _ => error.downcast_ref::<rusqlite::Error>(),
    };
    sqlite.and_then(rusqlite::Error::sqlite_error_code) == Some(rusqlite::ErrorCode::DiskFull)
        || error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        })
}

/// A folder is made with those above it, and a file is not.
fn refuse_place(target: &Path, form: Form) -> Result<(), Failure> {
    let why = match form {
        Form::Folder => target.ancestors().find(|path| path.is_file()).map(|file| {
            format!(
                "{} is a file; name a folder, a new file NAME.tar (all in one archive) or a new file NAME.db (the database alone)",
                file.display()
            )
        }),
        Form::Archive | Form::Database => target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
            .map(|folder| {
                format!(
                    "the folder {} does not exist or cannot be reached; make it, or name another one",
                    folder.display()
                )
            }),
    };
    why.map_or(Ok(()), |why| Err(why.into()))
}
