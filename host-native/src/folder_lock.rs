//! Keeps two commands from working in one folder at once. The folder itself is locked, so nothing is left behind in it.
use std::fs::{File, TryLockError};
use std::path::Path;

/// Another command works in the folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken;

/// Keeps all other commands out until the returned file is closed. Where the folder cannot be locked, nobody is kept out.
pub fn exclusive(folder: &Path) -> Result<Option<File>, Taken> {
    held(folder, File::try_lock)
}

/// Keeps those out that would be alone in the folder. One that cannot be locked is read all the same: nobody else locks it
/// either.
pub fn shared(folder: &Path) -> Result<Option<File>, Taken> {
    held(folder, File::try_lock_shared)
}

fn held(folder: &Path, lock: fn(&File) -> Result<(), TryLockError>) -> Result<Option<File>, Taken> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    match lock(&file) {
        Err(TryLockError::WouldBlock) => Err(Taken),
        _ => Ok(Some(file)),
    }
}
