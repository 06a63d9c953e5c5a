//! The copy of a database that goes into a backup, and what it says about the files beside it.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sidetone_engine::storage::backups;
use sidetone_engine::storage::server_secret::secret_fingerprint;

use super::Failure;
use super::blob_names::{archives, name_of, selected};
use super::read::{INTEGRITY_CHECK, damage, open, rows_of_nothing, texts};
use crate::data::{DataFolder, SECRET, TRANSCRIPTS};
use crate::database::{OpenError, Sqlite, is_damaged};

/// A copy that is sound.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// The recordings and archived transcripts that it names, as [`name_of`] names their files.
    pub(super) names: BTreeSet<PathBuf>,
    /// The bytes of each archived transcript, by the same names.
    transcripts: BTreeMap<PathBuf, u64>,
    workspaces: BTreeSet<String>,
    /// Of the server secret that it was used with.
    fingerprint: Option<String>,
}

impl Copied {
    /// Copies the database of a data folder to a new file, and checks the copy: a restore would refuse a damaged one, when the last
    /// sound one is gone.
    pub(super) fn of(data: &DataFolder, target: &Path) -> Result<Self, Failure> {
        let source = data.database();
        Sqlite::backup(&source, target).map_err(|error| -> Failure {
            match &error {
                // It is not the backup that is damaged.
                OpenError::Sqlite(why) if is_damaged(why) => format!("{}: {error}", source.display()).into(),
                _ => error.into(),
            }
        })?;
        Self::checked(data, target).inspect_err(|_| drop(fs::remove_file(target)))
    }

    fn checked(data: &DataFolder, copy: &Path) -> Result<Self, Failure> {
        let database = open(copy)?;
        let found = damage(&database, INTEGRITY_CHECK)?;
        let found = if found.is_some() { found } else { rows_of_nothing(&database)? };
        if let Some(what) = found {
            return Err(format!(
                "the database {} is damaged ({what}), so there is no backup of it, and an earlier one stays as it was; keep the \
                 folder, and restore that one into a new folder",
                data.database().display()
            )
            .into());
        }
        let sizes = archives(&database, backups::ARCHIVE_BYTES)?;
        let size = |line: &String| {
            let (name, bytes) = line.rsplit_once(' ')?;
            Some((Path::new(TRANSCRIPTS).join(name), bytes.parse().ok()?))
        };
        Ok(Self {
            names: selected(&database, backups::RECORDINGS, backups::ARCHIVES)?,
            transcripts: sizes.iter().filter_map(size).collect(),
            workspaces: texts(&database, backups::WORKSPACE_IDS)?.into_iter().collect(),
            fingerprint: texts(&database, backups::SECRET).unwrap_or_default().into_iter().next(),
        })
    }

    /// Refuses to replace a backup of another database: whoever starts the service without its disk has a new database, and the next
    /// backup would be the end of the last one.
    pub(super) fn refuse_other(&self, earlier: &Path, target: &Path, data: &Path) -> Result<(), Failure> {
        // One that cannot be read is of no use to anybody.
        let of = |database| texts(&database, backups::WORKSPACE_IDS).unwrap_or_default();
        let earlier =
            if earlier.try_exists()? { open(earlier).map(of).unwrap_or_default() } else { Vec::new() };
        match earlier.is_empty() || earlier.iter().any(|id| self.workspaces.contains(id)) {
            true => Ok(()),
            false => Err(format!(
                "{} is a backup of another database: none of its workspaces is in {}. Make sure that this is the folder of your service; \
                 then name another folder for the backup",
                target.display(),
                data.display()
            )
            .into()),
        }
    }

    /// Whether the file with the server secret goes into the backup. `setting`: SIDETONE_SECRET, which takes its place.
    pub(super) fn takes_secret(&self, data: &DataFolder, setting: Option<&str>) -> Result<bool, Failure> {
        let file = data.path().join(SECRET);
        match fs::read_to_string(&file) {
            Ok(secret) if self.is_of(secret.trim()) => Ok(true),
            Ok(_) if setting.is_some_and(|secret| self.is_of(secret)) => Ok(false),
            Ok(_) => Err(format!(
                "{} is not the server secret that the database was used with, and a backup with it could not be used; put that one \
                 there, or set SIDETONE_SECRET to it. A backup whose name ends in .db has the database alone",
                file.display()
            )
            .into()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("{}: {error}", file.display()).into()),
        }
    }

    /// Whether the database was used with the secret in this file.
    pub(super) fn is_secret(&self, file: &Path) -> bool {
        fs::read_to_string(file).is_ok_and(|secret| self.is_of(secret.trim()))
    }

    /// Whether the database was used with this secret.
    pub(super) fn is_of(&self, secret: &str) -> bool {
        self.fingerprint.as_ref().is_none_or(|known| secret_fingerprint(secret) == *known)
    }

    /// Whether a file of this size, which an earlier backup has, is whole, and that of the data folder is not. Files of recordings
    /// never change; of archived transcripts the database knows the sizes.
    pub(super) fn is_cut(&self, name: &Path, bytes: u64, earlier: u64) -> bool {
        match name.starts_with(TRANSCRIPTS) {
            true => self.transcripts.get(&name_of(name)) == Some(&earlier),
            false => earlier > bytes,
        }
    }
}
