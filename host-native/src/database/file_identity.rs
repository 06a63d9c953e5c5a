//! Which file a database is. Its path may name another file later, or none, as after a restore beside a service that runs:
//! whoever has the first one open reads and writes it as before, and nobody else ever sees that.
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a service looks whether its file is still there.
const LOOK: Duration = Duration::from_secs(1);

/// A device, and the number of a file on it: no two files have the same while they are open.
type Id = (u64, u64);

/// The file that was opened at a path.
#[derive(Debug, Clone)]
pub struct FileIdentity {
    path: PathBuf,
    id: Id,
}

impl FileIdentity {
    /// Of the file at this path, which has just been opened.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), id: id_of(&path.metadata()?) })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path names another file now, or none, or one without content. An error of the disk says nothing.
    pub fn is_lost(&self) -> bool {
        match self.path.metadata() {
            Ok(found) => found.len() == 0 || id_of(&found) != self.id,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }

    /// Resolves soon after the file was lost.
    pub async fn lost(&self) {
        while !self.is_lost() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[cfg(unix)]
fn id_of(found: &Metadata) -> Id {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino())
}

/// Elsewhere a file that is open can neither be removed nor replaced.
#[cfg(not(unix))]
fn id_of(_: &Metadata) -> Id {
    (0, 0)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_file_that_is_written_stays_and_one_that_is_removed_or_replaced_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let (data, path) = (folder.path().join("data"), folder.path().join("data").join("a.db"));
        fs::create_dir(&data).unwrap();
        let open = File::create(&path).unwrap();
        let file = FileIdentity::of(&path).unwrap();
        fs::write(&path, "more").unwrap();
        assert!(!file.is_lost());
        fs::write(&path, "").unwrap();
        assert!(file.is_lost(), "it was truncated");
        fs::write(&path, "again").unwrap();
        fs::remove_dir_all(&data).unwrap();
        assert!(file.is_lost());
        fs::create_dir(&data).unwrap();
        fs::write(&path, "of a backup").unwrap();
        assert!(file.is_lost());
        drop(open);
    }
}
