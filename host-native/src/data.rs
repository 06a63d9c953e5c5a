//! The data folder: the database, the server secret, and the lock that keeps a second server out.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sidetone_engine::hash::sha256_hex;

/// A data folder.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// Makes the folder when it is not there; only its owner may look into it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
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
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let fresh = sha256_hex(&bytes);
        match private().create_new(true).write(true).open(&path) {
            Ok(mut file) => {
                file.write_all(fresh.as_bytes())?;
                file.sync_all()?;
                File::open(&self.path)?.sync_all()?;
                Ok(fresh)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut text = String::new();
                File::open(&path)?.read_to_string(&mut text)?;
                Ok(text.trim().to_owned())
            }
            Err(error) => Err(error),
        }
    }
}

fn private() -> OpenOptions {
    #[allow(unused_mut, reason = "only Unix has file modes")]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
