//! A backup in a folder. The next one into the same folder copies only the recordings and transcripts that are new.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::blob_names::name_of;
use super::copied::Copied;
use super::files;
use super::{Failure, MANIFEST, Manifest};
use crate::data::{self, DATABASE, DataFolder, SECRET};
use crate::folder_lock;
use crate::text::counted;

/// Copies everything. The folder is new, empty, or has an earlier backup.
pub(super) fn backup(
    data: &DataFolder,
    target: &Path,
    setting: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    let has_manifest = target.join(MANIFEST).try_exists()?;
    if !has_manifest && fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!(
            "{} has files and no {MANIFEST}; choose a new folder, or one with an earlier backup",
            target.display()
        )
        .into());
    }
    data::create_folder(target)?;
    // Two backups at once would take each other's files.
    let _lock = folder_lock::exclusive(target).map_err(|_| taken(target))?;
    let mut manifest = Manifest::begun();
    if !has_manifest {
        // An interrupted backup is not taken for a complete one.
        write_manifest(target, &manifest)?;
    }

    // Until all that takes room and time is here, an earlier backup stays whole.
    say("database");
    let next = target.join(DATABASE).with_added_extension("next");
    data::remove_if_there(&next)?;
    let database = Copied::of(data, &next)?;
    let secret =
        Secret::of(&database, data, target, setting).inspect_err(|_| drop(fs::remove_file(&next)))?;
    manifest.has_secret = secret != Secret::None;

    // After the database: what its rows name is there, unless it was deleted meanwhile.
    let source = files::all_blobs(data.path())?;
    let there = files::all_blobs(target)?;
    let earlier: BTreeMap<&Path, u64> = there.iter().map(|found| (&*found.name, found.bytes)).collect();
    let (mut copied, mut cut) = (0_u64, 0_u64);
    for (n, found) in source.iter().enumerate() {
        if n % 1_000 == 999 {
            say(&format!("recordings and transcripts: {} of {} files", n + 1, source.len()));
        }
        // They never change.
        let bytes = match earlier.get(&*found.name) {
            Some(bytes) if *bytes == found.bytes => Some(found.bytes),
            Some(bytes) if database.is_cut(&found.name, found.bytes, *bytes) => {
                cut += 1;
                Some(*bytes)
            }
            _ => {
                let bytes = files::copy(&data.path().join(&found.name), &target.join(&found.name))?;
                copied += u64::from(bytes.is_some());
                bytes
            }
        };
        if let Some(bytes) = bytes {
            manifest.blobs += 1;
            manifest.blobs_bytes += bytes;
        }
    }
    // From here on it is the new one.
    files::sync_names(target)?;
    write_manifest(target, &manifest)?;
    data::sync_folder(&target.join(MANIFEST))?;
    fs::rename(&next, target.join(DATABASE))?;
    match secret {
        Secret::Copied => drop(files::copy(&data.path().join(SECRET), &target.join(SECRET))?),
        Secret::Kept => {}
        Secret::None => data::remove_if_there(&target.join(SECRET))?,
    }
    // What was deleted goes from the backup, too. What the database names stays: the data folder has lost it.
    let kept: BTreeSet<&PathBuf> = source.iter().map(|found| &found.name).collect();
    let gone = there.iter().filter(|found| !kept.contains(&found.name));
    let (mut removed, mut lost) = (0_u64, 0_u64);
    for found in gone {
        if database.names.contains(&name_of(&found.name)) {
            manifest.blobs += 1;
            manifest.blobs_bytes += found.bytes;
            lost += 1;
        } else {
            data::remove_if_there(&target.join(&found.name))?;
            removed += 1;
        }
    }
    if lost > 0 {
        say(&format!(
            "{} that the database names and the data folder has lost: kept as in the earlier backup",
            counted(lost, "file")
        ));
    }
    if cut > 0 {
        say(&format!(
            "{} that the data folder does not have in full: kept as in the earlier backup; `sidetone check` names what is wrong",
            counted(cut, "file")
        ));
    }
    if secret == Secret::Kept {
        say("the server secret is missing in the data folder: kept as in the earlier backup");
    }
    files::sync_names(target)?;
    manifest.complete = true;
    write_manifest(target, &manifest)?;
    data::sync_folder(&target.join(MANIFEST))?;
    Ok(format!(
        "The backup is in {}: the database, {}, {} of recordings and transcripts ({copied} new, {removed} removed).\n\
         Restore it into an empty data folder with: sidetone restore {}",
        target.display(),
        secret_words(&manifest),
        counted(manifest.blobs, "file"),
        target.display(),
    ))
}

/// What a backup has of the server secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secret {
    /// That of the data folder.
    Copied,
    /// That of an earlier backup: the data folder has none.
    Kept,
    /// It is a setting, or lost.
    None,
}

impl Secret {
    fn of(
        database: &Copied,
        data: &DataFolder,
        target: &Path,
        setting: Option<&str>,
    ) -> Result<Self, Failure> {
        database.refuse_other(&target.join(DATABASE), target, data.path())?;
        let is_setting = setting.is_some_and(|secret| database.is_of(secret));
        Ok(match database.takes_secret(data, setting)? {
            true => Self::Copied,
            false if !is_setting && database.is_secret(&target.join(SECRET)) => Self::Kept,
            false => Self::None,
        })
    }
}

/// What a command says that has to wait for another one in the same folder.
pub(super) fn taken(folder: &Path) -> Failure {
    format!("a backup into {0} or a restore from it is under way; wait for it", folder.display()).into()
}

/// What a summary says of the secret.
pub(super) fn secret_words(manifest: &Manifest) -> &'static str {
    match manifest.has_secret {
        true => "the server secret",
        false => "no server secret (keep SIDETONE_SECRET yourself)",
    }
}

fn write_manifest(target: &Path, manifest: &Manifest) -> Result<(), Failure> {
    files::write(&target.join(MANIFEST), &mut manifest.text().as_bytes())?;
    Ok(())
}
