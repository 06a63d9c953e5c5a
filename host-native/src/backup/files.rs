//! Files of a backup: found in a stable order, and copied durably.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::BLOBS;
use crate::data;

/// A file below a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    /// Its path below the folder.
    pub(super) name: PathBuf,
    pub(super) bytes: u64,
}

/// All blobs in a data folder or a backup, sorted.
pub(super) fn all_blobs(folder: &Path) -> io::Result<Vec<Found>> {
    let mut all = Vec::new();
    for name in BLOBS {
        let found = all_below(&folder.join(name))?.into_iter();
        all.extend(found.map(|file| Found { name: Path::new(name).join(file.name), bytes: file.bytes }));
    }
    Ok(all)
}

/// All complete files below `folder`, sorted. A folder that does not exist has none.
fn all_below(folder: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let entries = match fs::read_dir(folder.join(&inner)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = inner.join(entry.file_name());
            let metadata = match entry.metadata() {
                // Deleted meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            if metadata.is_dir() {
                folders.push(name);
            } else if metadata.is_file() && name.extension().is_none_or(|extension| extension != "part") {
                found.push(Found { name, bytes: metadata.len() });
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies a file, durably, in place of an older one. `Ok(None)`: the source is gone. Only its owner can read the copy.
pub(super) fn copy(source: &Path, target: &Path) -> io::Result<Option<u64>> {
    let mut from = match fs::File::open(source) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let bytes = write(target, &mut from)?;
    Ok(Some(bytes))
}

/// Writes a file, durably, in place of an older one.
pub(super) fn write(target: &Path, content: &mut dyn io::Read) -> io::Result<u64> {
    if let Some(folder) = target.parent() {
        data::create_folder(folder)?;
    }
    let part = target.with_added_extension("part");
    let mut file = data::create_private(&part)?;
    let bytes = io::copy(content, &mut file)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&part, target)?;
    Ok(bytes)
}

/// Makes the names of all files below a folder durable.
pub(super) fn sync_names(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        // `sync_folder` syncs the parent of a path, and that of `inner/.` is the parent of `inner`.
        data::sync_folder(&inner.join("any"))?;
        for entry in fs::read_dir(&inner)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    data::sync_folder(folder)
}
