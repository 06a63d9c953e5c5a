//! A backup in one tar archive. `backup.json` is its last entry, so an archive that was cut off has none.
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path};

use super::copied::Copied;
use super::files;
use super::folder::secret_words;
use super::{BLOBS, Failure, MANIFEST, Manifest};
use crate::data::{self, DATABASE, DataFolder, SECRET};
use crate::text::counted;

/// Writes everything into a new file. It gets its name when it is complete and durable.
pub(super) fn backup(
    data: &DataFolder,
    target: &Path,
    secret: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    if target.try_exists()? {
        return Err(format!("{} exists; choose another file", target.display()).into());
    }
    let part = target.with_added_extension("part");
    let database = target.with_added_extension("database");
    let written = write(data, &part, &database, secret, say);
    // The copy of the database is in the archive, or of no use.
    let _ = fs::remove_file(&database);
    let manifest = written.inspect_err(|_| drop(fs::remove_file(&part)))?;
    data::publish(data::private().write(true).open(&part)?, &part, target)?;
    Ok(format!(
        "The backup is in {}: the database, {}, {} of recordings and transcripts.\n\
         Restore it into an empty data folder with: sidetone restore {}",
        target.display(),
        secret_words(&manifest),
        counted(manifest.blobs, "file"),
        target.display(),
    ))
}

fn write(
    data: &DataFolder,
    part: &Path,
    database: &Path,
    setting: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Manifest, Failure> {
    let secret = data.path().join(SECRET);
    let mut manifest = Manifest::begun();
    say("database");
    let _ = fs::remove_file(database);
    manifest.has_secret = Copied::of(data, database)?.takes_secret(data, setting)?;
    let mut archive = tar::Builder::new(io::BufWriter::new(data::create_private(part)?));
    append_file(&mut archive, database, Path::new(DATABASE))?;
    if manifest.has_secret {
        append_file(&mut archive, &secret, Path::new(SECRET))?;
    }
    let found = files::all_blobs(data.path())?;
    for (n, one) in found.iter().enumerate() {
        if n % 1_000 == 999 {
            say(&format!("recordings and transcripts: {} of {} files", n + 1, found.len()));
        }
        match append_file(&mut archive, &data.path().join(&one.name), &one.name) {
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
    append(&mut archive, Path::new(MANIFEST), text.len() as u64, text.as_bytes())?;
    archive.into_inner()?.flush()?;
    Ok(manifest)
}

/// Appends a file, with its holes as zeros: a sparse entry is none that a restore takes, and SQLite leaves a hole at 1 GiB.
fn append_file(archive: &mut tar::Builder<impl Write>, path: &Path, name: &Path) -> io::Result<()> {
    let file = fs::File::open(path)?;
    let bytes = file.metadata()?.len();
    append(archive, name, bytes, file)
}

/// Appends an entry that only its owner can read wherever it is unpacked, and that is the same each time: without owner and time.
fn append(
    archive: &mut tar::Builder<impl Write>,
    name: &Path,
    bytes: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    archive.append_data(&mut header, name, content.take(bytes))
}

/// Unpacks an archive into a new folder. Only what a backup has is taken.
pub(super) fn unpack(source: &Path, folder: &Path) -> Result<(), Failure> {
    let broken = |error: io::Error| {
        format!(
            "{} cannot be read as an archive ({error}): it was cut off or damaged, or is not a backup; take another copy",
            source.display()
        )
    };
    let mut archive = tar::Archive::new(io::BufReader::new(fs::File::open(source)?));
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?.into_owned();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Sqlite;

    #[test]
    fn only_its_owner_can_read_what_an_archive_has() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(&folder.path().join("data")).unwrap();
        drop(Sqlite::open(&data.database(), 0).unwrap());
        data.secret_or_new().unwrap();
        let segment = "recordings/ws_1/call_1.rec_1.0.pcm";
        files::write(&data.path().join(segment), &mut &b"a voice"[..]).unwrap();
        let target = folder.path().join("copy.tar");
        // Another user waits for it, with a file that everybody can read.
        fs::write(target.with_added_extension("part"), "").unwrap();
        backup(&data, &target, None, &mut |_| {}).unwrap();

        let mut archive = tar::Archive::new(fs::File::open(&target).unwrap());
        let mut entries = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!((entry.header().mode().unwrap(), entry.header().mtime().unwrap()), (0o600, 0));
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            entries.push((entry.path().unwrap().display().to_string(), content));
        }
        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [DATABASE, SECRET, segment, MANIFEST]);
        assert_eq!(entries[2].1, b"a voice");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
