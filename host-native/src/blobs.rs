//! Recordings as files in the data folder. A file gets its final name when it is complete, and never changes
//! afterwards, so a copy of the folder contains only complete recordings, even if it is made while the service runs.
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};

use crate::data::{self, sync_folder};

/// The extension of an incomplete file.
const PART: &str = "part";

/// Blobs as files.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
    /// Free space that is left to the database: recordings fill a disk a hundred times faster than rows do.
    leaves_bytes: u64,
}

impl Files {
    /// Stores blobs in this folder, which must exist. Nothing is added when less than `leaves_bytes` of its disk are free.
    pub fn new(folder: &Path, leaves_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), leaves_bytes }
    }

    /// The type of the key guarantees that it cannot escape the folder.
    fn path(&self, key: &BlobKey) -> PathBuf {
        self.folder.join(key.as_str())
    }

    /// Runs disk I/O on a blocking thread, so that it does not delay requests.
    fn run_blocking<T: Send + 'static>(
        &self,
        key: &BlobKey,
        operation: impl FnOnce(&Path, &Path) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, BlobError>> {
        let (folder, path) = (self.folder.clone(), self.path(key));
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || {
                operation(&folder, &path).map_err(|error| wrong(&path, &error))
            });
            done.await.unwrap_or_else(|error| Err(BlobError(error.to_string())))
        })
    }
}

impl Blobs for Files {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let leaves_bytes = self.leaves_bytes;
        self.run_blocking(key, move |root, path| {
            if data::free_bytes(root)
                .is_some_and(|free| free < leaves_bytes.saturating_add(bytes.len() as u64))
            {
                let message = "the disk is nearly full: what is left is kept for the database";
                return Err(io::Error::new(ErrorKind::StorageFull, message));
            }
            put(root, path, &bytes)
        })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        self.run_blocking(key, |_, path| found(fs::metadata(path).map(|metadata| metadata.len())))
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        self.run_blocking(key, move |_, path| found(get(path, range)))
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        self.delete_all(vec![key.clone()])
    }

    /// A folder is synced once for all of its files: that is what takes time.
    fn delete_all(&self, keys: Vec<BlobKey>) -> BoxFuture<'_, Result<(), BlobError>> {
        let paths: Vec<PathBuf> = keys.iter().map(|key| self.path(key)).collect();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || delete_all(paths));
            done.await.unwrap_or_else(|error| Err(BlobError(error.to_string())))
        })
    }
}

/// Removes what can be removed of these files; then the first error, if any.
pub(crate) fn delete_all(mut paths: Vec<PathBuf>) -> Result<(), BlobError> {
    let mut outcome = Ok(());
    for path in &paths {
        outcome = outcome.and(delete(path).map_err(|error| wrong(path, &error)));
    }
    // One file stands for all of its folder, also one that an earlier try has removed without syncing.
    paths.sort_unstable();
    paths.dedup_by(|one, other| one.parent() == other.parent());
    for path in &paths {
        outcome = outcome.and(found(sync_folder(path)).map(drop).map_err(|error| wrong(path, &error)));
    }
    outcome
}

fn delete(path: &Path) -> io::Result<()> {
    data::remove_if_there(&path.with_added_extension(PART))?;
    data::remove_if_there(path)
}

fn wrong(path: &Path, error: &io::Error) -> BlobError {
    BlobError(format!("{}: {error}", path.display()))
}

fn put(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        data::create_folder(folder)?;
        // A new folder is durable only when its parent folder is synced.
        for created in folder.ancestors().take_while(|folder| *folder != root) {
            sync_folder(created)?;
        }
    }
    let part = path.with_added_extension(PART);
    let mut file = data::private().create(true).truncate(true).write(true).open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    sync_folder(path)
}

fn get(path: &Path, range: ByteRange) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(range.first))?;
    let mut bytes = Vec::new();
    file.take(range.bytes).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// `None` for a missing file, which is not an error.
fn found<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
