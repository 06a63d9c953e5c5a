//! Recordings and transcripts that no row names. A copy brings them back that was made before they were deleted, and the service, which
//! removes what its rows name, would keep them for ever. Of what was deleted a moment ago, a row is left by which the service removes
//! the files, so these are its own until then.
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sidetone_engine::ports::BlobError;

use super::blob_names::is_ours;
use super::files::{self, Found};
use super::verify::{Verified, verify};
use super::{BLOBS, Failure};
use crate::blobs;
use crate::data::DataFolder;
use crate::text::counted;

/// The files in the folders of recordings and transcripts, to be listed before the database is read: a row is written before its
/// files and goes after them, so nothing new that a service is writing meanwhile is without one.
#[derive(Debug)]
pub struct Listed(Vec<Found>);

/// The recordings and transcripts that no row names.
#[derive(Debug)]
pub struct Unnamed {
    /// Their paths below the data folder.
    pub files: Vec<PathBuf>,
    /// The size of all of them.
    pub bytes: u64,
    /// How many files of recordings and transcripts there are, named or not.
    pub of_files: u64,
}

impl Listed {
    /// Lists them.
    pub fn of(folder: &Path) -> io::Result<Self> {
        Ok(Self(files::all_blobs(folder)?))
    }

    /// Those that the service has not made.
    pub fn foreign(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|file| file.name.as_path()).filter(|name| !is_ours(name))
    }

    /// How many the service has made.
    pub fn of_the_service(&self) -> u64 {
        (self.0.len() - self.foreign().count()) as u64
    }

    /// Those that no row names and that are still there.
    pub fn unnamed(&self, folder: &Path, verified: &Verified) -> Unnamed {
        self.those(folder, |name| verified.is_unnamed(name))
    }

    /// Those for which this holds and that are still there.
    fn those(&self, folder: &Path, holds: impl Fn(&Path) -> bool) -> Unnamed {
        let is_one = |file: &&Found| holds(&file.name) && folder.join(&file.name).exists();
        let found: Vec<&Found> = self.0.iter().filter(is_one).collect();
        Unnamed {
            bytes: found.iter().map(|file| file.bytes).sum(),
            files: found.into_iter().map(|file| file.name.clone()).collect(),
            of_files: self.of_the_service(),
        }
    }
}

/// Finds what no row of a sound database names, and what it names as deleted, and removes it for good if whoever typed the command
/// is sure of it.
pub fn remove_unnamed(data: &DataFolder, secret: Option<&str>, is_sure: bool) -> Result<Unnamed, Failure> {
    // A service could write a transcript under a name that was listed and that no row had yet.
    let _lock = data.lock().map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => runs(data),
        _ => error.to_string(),
    })?;
    let listed = Listed::of(data.path())?;
    let verified = verify(data.path(), secret)?;
    if verified.calls == 0 {
        let unnamed = listed.unnamed(data.path(), &verified).files.len() as u64;
        if unnamed > 0 {
            let [recordings, transcripts] = BLOBS;
            return Err(format!(
                "the database has no calls, so {} in {recordings} and {transcripts} must be another one's, and stay: restore that \
                 database. If it is lost for good, remove these two folders yourself",
                counted(unnamed, "file")
            )
            .into());
        }
    }
    // No service runs that would remove what is due.
    let unnamed = listed.those(data.path(), |name| verified.is_unnamed(name) || verified.is_due(name));
    if is_sure {
        blobs::delete_all(unnamed.files.iter().map(|file| data.path().join(file)).collect())
            .map_err(|BlobError(why)| why)?;
    }
    Ok(unnamed)
}

/// What keeps it from removing anything.
fn runs(data: &DataFolder) -> String {
    let process = data.server().and_then(|server| server.process);
    format!(
        "--remove-unnamed works only while no service runs: sidetone{} is serving {}; stop it first",
        process.map_or_else(String::new, |id| format!(" (process {id})")),
        data.path().display()
    )
}
