//! The blobs that a database names, and the form of their names.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sidetone_engine::base::ids::Id;
use sidetone_engine::ports::BlobKey;
use sidetone_engine::storage::backups;

use super::read::texts;
use crate::data::{RECORDINGS, TRANSCRIPTS};

/// The recordings and the archived transcripts that these queries select, as [`name_of`] names their files.
pub(super) fn selected(
    database: &Connection,
    recordings: &str,
    transcripts: &str,
) -> rusqlite::Result<BTreeSet<PathBuf>> {
    let recordings = match texts(database, backups::HAS_RECORDINGS)?.is_empty() {
        true => Vec::new(),
        false => texts(database, recordings)?,
    };
    let recordings = recordings.into_iter().map(|name| Path::new(RECORDINGS).join(name));
    let transcripts =
        archives(database, transcripts)?.into_iter().map(|name| Path::new(TRANSCRIPTS).join(name));
    Ok(recordings.chain(transcripts).collect())
}

/// The path of a blob without `.json` or `.<n>.pcm`.
pub(super) fn name_of(file: &Path) -> PathBuf {
    let text = file.to_string_lossy();
    let segment = || text.strip_suffix(".pcm")?.rsplit_once('.').map(|(name, _)| name);
    PathBuf::from(text.strip_suffix(".json").or_else(segment).unwrap_or(&text))
}

/// Whether the service makes files with this path below a data folder. Any other is of an earlier form, or somebody else's.
pub(super) fn is_ours(file: &Path) -> bool {
    let path = file.to_str();
    path.is_some_and(|path| key(path).is_some_and(|key| key.as_str() == path))
}

/// The key that has the parts of this path.
fn key(path: &str) -> Option<BlobKey> {
    let parts: Vec<&str> = path.split(['/', '.']).collect();
    match parts[..] {
        [RECORDINGS, workspace, call, recording, n, "pcm"] => {
            let recording = BlobKey::recording(&id(workspace)?, &id(call)?, &id(recording)?)?;
            Some(recording.segment(n.parse().ok()?))
        }
        [TRANSCRIPTS, workspace, call, "json"] => BlobKey::transcript(&id(workspace)?, &id(call)?),
        _ => None,
    }
}

fn id<Kind: Id>(text: &str) -> Option<Kind> {
    let id = Kind::from_stored(text);
    id.to_bytes().is_some().then_some(id)
}

/// `<workspace>/<call>` of each transcript that this query of archives selects; a database of an earlier version has none.
pub(super) fn archives(database: &Connection, select: &str) -> rusqlite::Result<Vec<String>> {
    match texts(database, backups::HAS_ARCHIVES)?.is_empty() {
        true => Ok(Vec::new()),
        false => texts(database, select),
    }
}
