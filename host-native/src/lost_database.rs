//! A database that is gone from its folder, as after `mv` under a running service. SQLite makes a new one in its place, and
//! deletes a log that it finds beside a database without content, also where it only reads.
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::backup::Listed;
use crate::data::{self, DataFolder, RECORDINGS, TRANSCRIPTS};
use crate::text::counted;

/// What a lost database has left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// The write-ahead log: changes that may be in no other file.
    Log(PathBuf),
    /// Recordings and transcripts, which no row names any more.
    Files {
        /// Where the database was.
        database: PathBuf,
        /// How many files there are.
        files: u64,
    },
}

impl Lost {
    /// Looks in a data folder. `None`: the database is there, or it was never there.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let database = DataFolder::database_of(folder);
        if has_content(&database) {
            return None;
        }
        Self::log_of(&database).or_else(|| {
            // The start tells of folders that cannot be read.
            let files = Listed::of(folder).map_or(0, |listed| listed.of_the_service());
            (files > 0).then_some(Self::Files { database, files })
        })
    }

    /// Looks at a database alone, before it is opened.
    pub fn log_of(database: &Path) -> Option<Self> {
        let log = data::wal_of(database);
        (!has_content(database) && has_content(&log)).then_some(Self::Log(log))
    }
}

/// A start that was killed at once leaves an empty file behind, and so may whoever takes it for a place to restore to.
pub(crate) fn has_content(file: &Path) -> bool {
    match fs::metadata(file) {
        Ok(file) => file.len() > 0,
        // Whoever opens it learns why it cannot be read.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(log) => write!(
                f,
                "the database is missing or empty, and {} has changes that are in no other file; put the database back beside \
                 it: the very file that this log belongs to, never one of a backup, which is restored into another folder. To \
                 go on without these changes, move the log away",
                log.display()
            ),
            Self::Files { database, files } => write!(
                f,
                "the database is missing or empty, and its folder has {} of {RECORDINGS} and {TRANSCRIPTS}; put {} back, or \
                 restore a backup into another folder. To begin with a new database, move these two folders away",
                counted(*files, "file"),
                database.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_without_content_is_lost_where_it_left_something() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (database, recordings) = (path.join("sidetone.db"), path.join(RECORDINGS));
        fs::write(path.join("secret"), "0123456789abcdef").unwrap();
        fs::create_dir_all(&recordings).unwrap();
        fs::write(path.join("sidetone.db-wal"), []).unwrap();
        assert_eq!(Lost::in_folder(path), None, "a first start that was killed");
        fs::write(&database, []).unwrap();
        assert_eq!(Lost::in_folder(path), None, "a little later");

        fs::write(recordings.join("notes.txt"), "somebody's").unwrap();
        assert_eq!(Lost::in_folder(path), None, "no recording");
        let workspace = recordings.join("ws_01kdvdna006rbtcft1tgva37vw");
        fs::create_dir_all(&workspace).unwrap();
        let recording = "call_01kdvdpb6g8hyqcrq96pk6gcf2.rec_01kdvdpb6g8hyqcrq96pk6gcf3.0.pcm";
        fs::write(workspace.join(recording), [0; 4]).unwrap();
        assert_eq!(Lost::in_folder(path), Some(Lost::Files { database: database.clone(), files: 1 }));
        fs::remove_file(&database).unwrap();
        assert_eq!(Lost::in_folder(path), Some(Lost::Files { database: database.clone(), files: 1 }));

        let log = path.join("sidetone.db-wal");
        fs::write(&log, [0; 100]).unwrap();
        assert_eq!(Lost::in_folder(path), Some(Lost::Log(log)));
        fs::write(&database, [0; 100]).unwrap();
        assert_eq!(Lost::in_folder(path), None, "it is there");
    }
}
