//! Restores a backup: everything is copied beside the data folder, checked there, and gets its name as a whole.
use std::fs;
use std::path::{Path, PathBuf};

use super::files;
use super::verify::verify_copy;
use super::{Failure, Form, MANIFEST, Manifest, archive, at, folder, is_full};
use crate::data::{self, DATABASE, DataFolder, SECRET};
use crate::folder_lock;
use crate::text::{count, counted};

/// Restores `source` as the data folder `target`, which must not exist or be empty. `secret` is the value of SIDETONE_SECRET.
pub fn restore(
    source: &Path,
    target: &Path,
    secret: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    let restored = restore_checked(source, target, secret, say);
    restored.map_err(|error| match is_full(&*error) {
        true => at(target.display(), error),
        false => at(format_args!("the restore of {} into {}", source.display(), target.display()), error),
    })
}

fn restore_checked(
    source: &Path,
    target: &Path,
    secret: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    if fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!(
            "{} is not empty, and a restore never overwrites; set SIDETONE_DATA to a new folder, or move this one away. If a disk or \
             volume is mounted there, set SIDETONE_DATA to a new folder in it",
            target.display()
        )
        .into());
    }
    if !source.try_exists()? {
        return Err(format!(
            "{} does not exist; name a folder or a file that `sidetone backup` has made",
            source.display()
        )
        .into());
    }
    refuse_other_form(source)?;
    let staging = staging(target);
    if staging.try_exists()? {
        return Err(format!(
            "{} is left over from a restore that was interrupted; remove it and try again",
            staging.display()
        )
        .into());
    }
    if target.try_exists()? {
        fs::remove_dir(target).map_err(|error| {
            format!(
                "{} cannot be replaced ({error}); if a disk or volume is mounted there, set SIDETONE_DATA to a new folder in it",
                target.display()
            )
        })?;
    }
    data::create_folder(&staging).map_err(|error| {
        format!(
            "{} cannot be made ({error}); run this as a user who may write beside the data folder",
            staging.display()
        )
    })?;
    let restored = restore_into(source, &staging, secret, say).and_then(|summary| {
        files::sync_names(&staging)?;
        fs::rename(&staging, target)?;
        data::sync_folder(target)?;
        Ok(summary)
    });
    if restored.is_err() {
        let _ = fs::remove_dir_all(&staging);
    }
    Ok(format!("{} now has {}", target.display(), restored?))
}

fn restore_into(
    source: &Path,
    staging: &Path,
    secret: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    let form = Form::of(source);
    let _lock = match form {
        // No backup may change it meanwhile.
        Form::Folder => folder_lock::shared(source).map_err(|_| folder::taken(source))?,
        Form::Database | Form::Archive => None,
    };
    refuse_wal(source, form)?;
    say("copying");
    match form {
        Form::Database => {
            files::copy(source, &staging.join(DATABASE))?;
        }
        Form::Archive => archive::unpack(source, staging)?,
        Form::Folder => copy_folder(source, staging)?,
    }
    let manifest = match form {
        Form::Database => None,
        Form::Archive | Form::Folder => Some(complete(&staging.join(MANIFEST), source, form)?),
    };
    say("checking");
    let database = match form {
        Form::Database => source.to_owned(),
        Form::Archive | Form::Folder => DataFolder::database_of(source),
    };
    let verified = verify_copy(staging, &database, secret)?;
    if let Some(manifest) = &manifest {
        let found = files::all_blobs(staging)?;
        let bytes: u64 = found.iter().map(|file| file.bytes).sum();
        // More is of a later backup that was interrupted.
        if (found.len() as u64) < manifest.blobs || bytes < manifest.blobs_bytes {
            return Err(format!(
                "{} says {} of recordings and transcripts with {}, and it has {} with {}: it was changed or cut off",
                source.display(),
                counted(manifest.blobs, "file"),
                counted(manifest.blobs_bytes, "byte"),
                count(found.len() as u64),
                count(bytes)
            )
            .into());
        }
        fs::remove_file(staging.join(MANIFEST))?;
        // What was archived or recorded after the database was copied: no row would ever remove it.
        for file in &found {
            if verified.is_unnamed(&file.name) {
                fs::remove_file(staging.join(&file.name))?;
            }
        }
    }
    let mut summary = format!("{}.", verified.summary());
    if let Some(manifest) = manifest {
        summary.push_str(&format!(" It is as of {}.", manifest.made_at));
    }
    summary.push_str(&not_in_it(&verified.missing));
    Ok(summary)
}

/// A further line about these calls, whose recordings or archived transcripts should be there.
fn not_in_it(calls: &[String]) -> String {
    match calls {
        [] => String::new(),
        [call] => format!(
            "\n1 recording or archived transcript was deleted while the backup was made, or is not in it: that of {call}"
        ),
        [first, ..] => format!(
            "\n{} recordings and archived transcripts were deleted while the backup was made, or are not in it; the first: {first}",
            count(calls.len() as u64)
        ),
    }
}

/// What a backup is, its name says.
fn refuse_other_form(source: &Path) -> Result<(), Failure> {
    match (Form::of(source), source.is_dir()) {
        (Form::Folder, false) => Err(format!(
            "{} is a file, and its name ends neither in .tar (an archive) nor in .db (a database); name what `sidetone backup` \
             has made, or give the file that ending",
            source.display()
        )
        .into()),
        (Form::Archive | Form::Database, true) => Err(format!(
            "{} is a folder, and only the name of a file may end in .tar or .db; rename it and try again",
            source.display()
        )
        .into()),
        _ => Ok(()),
    }
}

/// Changes that are only in the write-ahead log would be lost.
fn refuse_wal(source: &Path, form: Form) -> Result<(), Failure> {
    let database = match form {
        Form::Folder => DataFolder::database_of(source),
        Form::Database | Form::Archive => source.to_owned(),
    };
    match fs::metadata(data::wal_of(&database)) {
        Ok(wal) if wal.len() > 0 => Err(format!(
            "{} has a write-ahead log (-wal) with changes that are not in the database file. Restore what `sidetone backup` \
             made, or back that folder up first.",
            source.display()
        )
        .into()),
        _ => Ok(()),
    }
}

fn complete(path: &Path, source: &Path, form: Form) -> Result<Manifest, Failure> {
    if !path.try_exists()? {
        let why = match form {
            Form::Archive => {
                "it was cut off (that is its last file), or it is not a backup of Sidetone; take another copy"
            }
            Form::Folder | Form::Database => {
                "it is not a backup of Sidetone; name a folder or a file that `sidetone backup` has made"
            }
        };
        return Err(format!("{} has no {MANIFEST}: {why}", source.display()).into());
    }
    let manifest = Manifest::read(path, source)?;
    match manifest.complete {
        true => Ok(manifest),
        false => Err(format!(
            "{} is not complete: the backup was interrupted. Run it again into the same folder, or take another one",
            source.display()
        )
        .into()),
    }
}

fn copy_folder(source: &Path, staging: &Path) -> Result<(), Failure> {
    for name in [DATABASE, SECRET, MANIFEST] {
        files::copy(&source.join(name), &staging.join(name))?;
    }
    for found in files::all_blobs(source)? {
        files::copy(&source.join(&found.name), &staging.join(&found.name))?;
    }
    Ok(())
}

/// Where a data folder is made before it gets its name: beside it, on the same disk.
fn staging(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_a_backup_is_counted() {
        let told =
            |calls: &[&str]| not_in_it(&calls.iter().map(|call| (*call).to_owned()).collect::<Vec<_>>());
        assert_eq!(told(&[]), "");
        let one = told(&["call_1"]);
        assert!(one.contains("1 recording or archived transcript was") && one.ends_with("call_1"), "{one}");
        let two = told(&["call_1", "call_2"]);
        assert!(two.contains("2 recordings and archived transcripts were"), "{two}");
        assert!(two.ends_with("the first: call_1"), "{two}");
    }
}
