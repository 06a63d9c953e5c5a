//! The data folder: the database, the recordings, the server secret, and the lock that keeps a second server out.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sidetone_engine::base::hash::sha256_hex;

/// Shorter, and the secret file is not one of ours.
const SECRET_BYTES_MIN: usize = 16;

/// A data folder.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// Makes the folder when it is not there; only its owner may look into it.
    pub fn open(path: &Path) -> io::Result<Self> {
        make_folder(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        self.path.join("sidetone.db")
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps every other server out for as long as the file is held.
    pub fn lock(&self) -> io::Result<File> {
        let file = private().create(true).truncate(false).write(true).open(self.path.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                format!("another sidetone is serving {}; stop it first", self.path.display()),
            )),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The server secret: made once, readable by its owner only.
    pub fn secret(&self) -> io::Result<String> {
        let path = self.path.join("secret");
        if !path.try_exists()? {
            self.make_secret(&path)?;
        }
        let secret = fs::read_to_string(&path)?.trim().to_owned();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{} is empty or too short for a server secret; restore it from a backup, or remove it to get a \
                     new one (tools and webhooks then get new signing secrets)",
                    path.display()
                ),
            ));
        }
        Ok(secret)
    }

    /// It appears whole or not at all; the first of several processes wins.
    fn make_secret(&self, path: &Path) -> io::Result<()> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let part = self.path.join(format!("secret.{}.part", std::process::id()));
        let mut file = private().create(true).truncate(true).write(true).open(&part)?;
        file.write_all(sha256_hex(&bytes).as_bytes())?;
        match place(file, &part, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(&part),
            placed => placed,
        }
    }
}

/// Gives a finished file its name, durably; a file that has the name already stays.
pub(crate) fn place(file: File, part: &Path, target: &Path) -> io::Result<()> {
    file.sync_all()?;
    drop(file);
    match fs::hard_link(part, target) {
        Ok(()) => fs::remove_file(part)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Not every file system has links.
        Err(_) if !target.try_exists()? => fs::rename(part, target)?,
        Err(error) => return Err(error),
    }
    sync_folder(target)
}

/// Makes a name, or its absence, durable: the folder it stands in goes to disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    })?
    .sync_all()?;
    Ok(())
}

/// Makes a folder, and those above it, when they are not there; only their owner may look into them.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
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
