//! The data folder: the database, the recordings, the server secret, and a lock against a second server.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sidetone_engine::base::hash::sha256_hex;

use crate::lost_database::has_content;

/// Minimum length of the secret; a shorter file was not written by Sidetone.
const SECRET_BYTES_MIN: usize = 16;

/// The database.
pub(crate) const DATABASE: &str = "sidetone.db";
/// The server secret.
pub(crate) const SECRET: &str = "secret";
/// The folder of recordings.
pub(crate) const RECORDINGS: &str = "recordings";
/// The folder of archived transcripts.
pub(crate) const TRANSCRIPTS: &str = "transcripts";
/// The file that gives its room to deletes when the disk is full.
pub(crate) const RESERVE: &str = "reserve";
/// The file that a server holds locked.
pub(crate) const LOCK: &str = "lock";
/// How often a server tries to get it: commands look at it, too.
const LOCK_ATTEMPTS: u32 = 5;
/// The pause between attempts.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// A server that runs on a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Its process; `None` if it does not say so.
    pub process: Option<u32>,
}

fn process_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// A data folder.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// Opens the folder and creates it, durably, if it does not exist. Only its owner has access.
    pub fn open(path: &Path) -> io::Result<Self> {
        let missing: Vec<&Path> = path
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .collect();
        create_folder(path)?;
        // An earlier start may have been killed before it synced the folder's own name.
        sync_folder(path)?;
        missing.into_iter().skip(1).try_for_each(sync_folder)?;
        Ok(Self { path: path.to_owned() })
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        Self::database_of(&self.path)
    }

    /// The database file of a data folder.
    pub fn database_of(folder: &Path) -> PathBuf {
        folder.join(DATABASE)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the folder against other servers until the returned file is dropped, and writes this process's id into it.
    pub fn lock(&self) -> io::Result<File> {
        let path = self.path.join(LOCK);
        let mut file = private().create(true).truncate(false).read(true).write(true).open(&path)?;
        for attempt in 1..=LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => break,
                // Or a command only looks whether there is a server.
                Err(TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => std::thread::sleep(LOCK_WAIT),
                Err(TryLockError::WouldBlock) => {
                    let process =
                        process_in(&mut file).map_or_else(String::new, |id| format!(" (process {id})"));
                    return Err(io::Error::new(
                        io::ErrorKind::WouldBlock,
                        format!(
                            "SIDETONE_DATA: another sidetone{process} is serving {}; stop it first, or choose another folder",
                            self.path.display()
                        ),
                    ));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(file)
    }

    /// The server that runs on this folder.
    pub fn server(&self) -> Option<Server> {
        Self::server_of(&self.path)
    }

    /// The server that runs on the folder with this path, whether it exists or not.
    pub fn server_of(path: &Path) -> Option<Server> {
        let mut file = File::open(path.join(LOCK)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(Server { process: process_in(&mut file) }),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    /// The server secret, created together with the database. Only its owner can read the file. A database whose secret
    /// is lost gets no new one: every signature would fail.
    pub fn secret(&self) -> io::Result<String> {
        let path = self.path.join(SECRET);
        if !path.try_exists()? && has_content(&self.database()) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!(
                    "{} is missing, and the database was used with it. Restore it from a backup, or set \
                     SIDETONE_SECRET to its content. To continue with a new secret, which changes the signing secrets \
                     of all tools and webhooks, run `sidetone secrets accept`",
                    path.display()
                ),
            ));
        }
        self.secret_or_new()
    }

    /// The server secret; a missing one is created, whatever else is in the folder.
    pub fn secret_or_new(&self) -> io::Result<String> {
        let path = self.path.join(SECRET);
        if !path.try_exists()? {
            self.create_secret(&path)?;
        }
        let secret = fs::read_to_string(&path)?.trim().to_owned();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{} is empty or too short for a server secret; restore it from a backup, or remove it and run \
                     `sidetone secrets accept` (tools and webhooks then get new signing secrets)",
                    path.display()
                ),
            ));
        }
        Ok(secret)
    }

    /// Creates the secret atomically. Of several concurrent processes, the first one wins.
    fn create_secret(&self, path: &Path) -> io::Result<()> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let part = self.path.join(format!("{SECRET}.{}.part", std::process::id()));
        let mut file = private().create(true).truncate(true).write(true).open(&part)?;
        file.write_all(sha256_hex(&bytes).as_bytes())?;
        match publish(file, &part, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(&part),
            other => other,
        }
    }
}

/// The write-ahead log of a database: changes that are not in its file yet.
pub(crate) fn wal_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Renames a complete file to its final name, durably. Fails if the name exists.
pub(crate) fn publish(file: File, part: &Path, target: &Path) -> io::Result<()> {
    file.sync_all()?;
    drop(file);
    match fs::hard_link(part, target) {
        Ok(()) => fs::remove_file(part)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Some file systems have no hard links.
        Err(_) if !target.try_exists()? => fs::rename(part, target)?,
        Err(error) => return Err(error),
    }
    sync_folder(target)
}

/// Where a path leads, as far as it exists.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
    match real {
        Some((there, real)) => real.join(path.strip_prefix(there).unwrap_or(Path::new(""))),
        None => path,
    }
}

/// Makes the creation or removal of a file durable: syncs its parent folder.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    })?
    .sync_all()?;
    Ok(())
}

/// Creates a folder and its parents if they do not exist. Only their owner has access.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options for a file that only its owner can read.
pub(crate) fn private() -> OpenOptions {
    #[allow(unused_mut, reason = "only Unix has file modes")]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a file that only its owner can read. One that is left over goes first, and so does one that another user has put there,
/// whose owner and mode it would keep.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    remove_if_there(path)?;
    private().create_new(true).write(true).open(path)
}

/// Removes a file. If there is none, that is no error.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The free space of the disk that this file or folder is on; `None` where it cannot be measured.
#[cfg(unix)]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The free space of the disk that this file or folder is on; `None` where it cannot be measured.
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}
