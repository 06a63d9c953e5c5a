//! A backup in one tar archive. `backup.json` is its last entry, so an archive that was cut off has none.
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path};

use super::files;
use super::folder::secret_words;
use super::{BLOBS, DATABASE, Failure, MANIFEST, Manifest, SECRET};
use crate::data::{self, DataFolder};
use crate::database::Sqlite;

/// Writes everything into a new file. It gets its name when it is complete and durable.
pub(super) fn backup(data: &DataFolder, target: &Path, say: &mut dyn FnMut(&str)) -> Result<String, Failure> {
    if target.try_exists()? {
        return Err(format!("{} exists; choose another file", target.display()).into());
    }
    let part = target.with_added_extension("part");
    let database = target.with_added_extension("database");
    let written = write(data, &part, &database, say);
    // The copy of the database is in the archive, or of no use.
    let _ = fs::remove_file(&database);
    let manifest = written.inspect_err(|_| drop(fs::remove_file(&part)))?;
    data::publish(data::private().write(true).open(&part)?, &part, target)?;
    Ok(format!(
        "The backup is in {}: the database, {}, {} files of recordings and transcripts.\n\
         Restore it into an empty data folder with: sidetone restore {}",
        target.display(),
        secret_words(&manifest),
        manifest.blobs,
        target.display(),
    ))
}

fn write(
    data: &DataFolder,
    part: &Path,
    database: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Manifest, Failure> {
    let secret = data.path().join(SECRET);
    let mut manifest = Manifest::begun(secret.try_exists()?);
    say("database");
    let _ = fs::remove_file(database);
    Sqlite::backup(&data.database(), database)?;
    let file = data::private().create(true).truncate(true).write(true).open(part)?;
    let mut archive = tar::Builder::new(io::BufWriter::new(file));
    archive.mode(tar::HeaderMode::Deterministic);
    // A sparse entry is none that a restore takes. SQLite leaves a hole at 1 GiB.
    archive.sparse(false);
    archive.append_path_with_name(database, DATABASE)?;
    if manifest.has_secret {
        archive.append_path_with_name(&secret, SECRET)?;
    }
    let found = files::all_blobs(data.path())?;
    for (n, one) in found.iter().enumerate() {
        if n % 1_000 == 999 {
            say(&format!("recordings and transcripts: {} of {} files", n + 1, found.len()));
        }
        match archive.append_path_with_name(data.path().join(&one.name), &one.name) {
            // Deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            appended => {
                appended?;
                manifest.blobs += 1;
                manifest.blobs_bytes += one.bytes;
            }
        }
    }
    manifest.complete = true;
    let text = manifest.text();
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o600);
    archive.append_data(&mut header, MANIFEST, text.as_bytes())?;
    archive.into_inner()?.flush()?;
    Ok(manifest)
}

/// Unpacks an archive into a new folder. Only what a backup has is taken.
pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<(), Failure> {
    let mut archive = tar::Archive::new(io::BufReader::new(fs::File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        let ours = [DATABASE, SECRET, MANIFEST].iter().any(|known| name == Path::new(known))
            || BLOBS.iter().any(|folder| name.starts_with(folder) && name != Path::new(folder));
        if !(plain && ours && entry.header().entry_type().is_file()) {
            return Err(format!("the archive has an entry `{}`, which no backup has", name.display()).into());
        }
        files::write(&folder.join(&name), &mut entry)?;
    }
    Ok(())
}
