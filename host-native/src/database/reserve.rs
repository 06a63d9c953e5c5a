//! Disk space that is kept for deletes. On a full disk even a delete needs some: its changes go to the write-ahead log
//! first. When a write finds the disk full, the reserve is released, and until it can be filled again only batches that
//! remove something are written.
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidetone_engine::ports::DatabaseError;

use crate::data;

/// Less free space counts as none.
const FREE_BYTES_MIN: u64 = 1024 * 1024;
/// Free space beside the reserve before writing begins again: more than what counts as none.
const MARGIN_BYTES: u64 = FREE_BYTES_MIN + FREE_BYTES_MIN / 2;

/// Who keeps the reserve of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// This process keeps so many bytes.
    Kept(u64),
    /// The service does that runs on the database.
    ByOther,
}

/// The state of the disk.
pub struct Reserve {
    path: PathBuf,
    /// `None`: another process keeps it, and this one leaves it alone.
    bytes: Option<u64>,
    /// The reserve is released.
    released: AtomicBool,
}

impl Reserve {
    /// The reserve beside the database. When the disk has no room for it, only deletes are written.
    pub fn open(database: &Path, reserved: Reserved) -> Arc<Self> {
        let path = database.with_file_name(data::RESERVE);
        let bytes = match reserved {
            Reserved::Kept(bytes) => Some(bytes),
            Reserved::ByOther => None,
        };
        let reserve = Arc::new(Self { path, bytes, released: AtomicBool::new(false) });
        if let Err(error) = reserve.fill() {
            tracing::warn!(%error, "there is no room for the reserve (SIDETONE_RESERVE_MB)");
            reserve.release();
        }
        reserve
    }

    /// Whether only deletes are to be written.
    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Relaxed)
    }

    /// Whether there is room for writes.
    pub fn has_room(&self) -> bool {
        !self.is_released() && self.free_bytes().is_none_or(|free| free >= FREE_BYTES_MIN)
    }

    /// Releases the reserve if `error` means that the disk is full. True if it has just done so.
    pub fn release_after(&self, error: &DatabaseError) -> bool {
        let DatabaseError::Unavailable(text) = error else { return false };
        let is_full = text.contains("is full") || self.free_bytes().is_some_and(|free| free < FREE_BYTES_MIN);
        let releases = is_full && !self.is_released();
        if releases {
            tracing::error!("the disk is full: only deletes are written until there is room again");
            self.release();
        }
        releases
    }

    /// Fills a released reserve as soon as there is room. True when everything can be written again.
    pub fn refill(&self) -> bool {
        if !self.is_released() {
            return true;
        }
        let room = self.free_bytes().is_none_or(|free| free >= self.bytes.unwrap_or(0) + MARGIN_BYTES);
        if !room || self.fill().is_err() {
            self.release();
            return false;
        }
        tracing::info!("there is room on the disk again");
        self.released.store(false, Ordering::Relaxed);
        true
    }

    fn release(&self) {
        self.released.store(true, Ordering::Relaxed);
        if self.bytes.is_none() {
            return;
        }
        if let Ok(file) = File::options().write(true).open(&self.path) {
            let _ = file.set_len(0);
        }
    }

    fn fill(&self) -> io::Result<()> {
        let Some(bytes) = self.bytes else { return Ok(()) };
        let file = data::private().create(true).truncate(false).write(true).open(&self.path)?;
        if file.metadata()?.len() != bytes {
            file.set_len(0)?;
            allocate(&file, bytes)?;
        }
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        data::free_bytes(self.path.parent()?)
    }
}

/// Allocates space: a file with holes would reserve nothing.
fn allocate(mut file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Ok(()) => return Ok(()),
        // A file system without it. On a full disk nothing is written in its place.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    io::copy(&mut io::Read::take(io::repeat(1), bytes), &mut file)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_allocated_released_and_filled_again() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::open(&folder.path().join("a.db"), Reserved::Kept(1 << 20));
        let length = || folder.path().join(data::RESERVE).metadata().unwrap().len();
        assert!(reserve.has_room() && length() == 1 << 20);
        let other = DatabaseError::Unavailable("the writer panicked".to_owned());
        assert!(!reserve.release_after(&other));
        let full = DatabaseError::Unavailable("database or disk is full".to_owned());
        assert!(reserve.release_after(&full) && !reserve.release_after(&full));
        assert!(!reserve.has_room() && length() == 0);
        assert!(reserve.refill() && reserve.has_room() && length() == 1 << 20);

        let beside = Reserve::open(&folder.path().join("a.db"), Reserved::ByOther);
        assert!(beside.release_after(&full) && length() == 1 << 20);
        assert!(beside.refill() && length() == 1 << 20);
    }
}
