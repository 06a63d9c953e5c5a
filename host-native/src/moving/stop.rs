//! Why a command did not come to its end, and its exit code.
use std::fmt;
use std::io;
use std::path::Path;

/// A sentence or more for whoever typed the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Not yet, or not without whoever typed it. Nothing is wrong.
    Waits(String),
    /// It could not do its work.
    Failed(String),
}

impl Stop {
    /// Something failed.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// Something failed with this file.
    pub(super) fn of_file(path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        Self::Failed(match error.kind() {
            io::ErrorKind::IsADirectory => format!("{path} is a folder; name a file in it"),
            _ => format!("{path}: {error}"),
        })
    }

    /// The same, with what is to be done.
    pub(super) fn and(self, more: &str) -> Self {
        match self {
            Self::Waits(text) => Self::Waits(text + more),
            Self::Failed(text) => Self::Failed(text + more),
        }
    }

    /// The exit code of the process: as of `sidetone apply`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Waits(_) => 1,
            Self::Failed(_) => 2,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waits(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Stop {}
