//! In-memory implementations of ports: blobs, clock, random bytes, wakes.
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange, Clock, Queue, Random, Wake};

use super::lock;

/// Maximum number of stored hints.
const HINTS_KEPT_MAX: usize = 10_000;

/// In-memory blobs for tests.
#[derive(Default)]
pub struct MemoryBlobs(Mutex<BTreeMap<BlobKey, Bytes>>);

impl MemoryBlobs {
    /// The keys of all blobs, in order.
    pub fn keys(&self) -> Vec<BlobKey> {
        lock(&self.0).keys().cloned().collect()
    }
}

impl Blobs for MemoryBlobs {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            lock(&self.0).insert(key, bytes);
            Ok(())
        })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        let key = key.clone();
        Box::pin(async move { Ok(lock(&self.0).get(&key).map(|bytes| bytes.len() as u64)) })
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            let place = |at: u64, bytes: &Bytes| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            let blobs = lock(&self.0);
            Ok(blobs.get(&key).map(|bytes| {
                bytes.slice(place(range.first, bytes)..place(range.first.saturating_add(range.bytes), bytes))
            }))
        })
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            lock(&self.0).remove(&key);
            Ok(())
        })
    }
}

/// A clock that only the test advances.
pub(super) struct ManualClock(pub(super) AtomicI64);

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Advances the clock, so that the pause ends at once.
    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        self.0.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::SeqCst);
        Box::pin(async {})
    }

    fn sleep_until(&self, at_ms: i64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::poll_fn(move |_| match self.now_ms() >= at_ms {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }))
    }
}

/// SHA-256 of a counter: the same bytes in every sandbox.
#[derive(Default)]
pub(super) struct SeededRandom(Mutex<u64>);

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut counter = lock(&self.0);
        for chunk in bytes.chunks_mut(32) {
            *counter += 1;
            let block = Sha256::digest(counter.to_le_bytes());
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
}

/// Stores the newest hints; older ones are dropped, because a sandbox may run for long.
#[derive(Default)]
pub(super) struct Hints(pub(super) Mutex<Vec<(Option<String>, Wake)>>);

impl Hints {
    fn keep(&self, database: Option<&str>, wake: &Wake) {
        let mut hints = lock(&self.0);
        if hints.len() >= HINTS_KEPT_MAX {
            hints.drain(..HINTS_KEPT_MAX / 2);
        }
        hints.push((database.map(str::to_owned), wake.clone()));
    }
}

impl Queue for Hints {
    fn wake(&self, wake: &Wake) {
        self.keep(None, wake);
    }

    fn wake_on(&self, shard: &str, wake: &Wake) {
        self.keep(Some(shard), wake);
    }
}
