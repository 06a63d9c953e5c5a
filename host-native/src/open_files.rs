//! How the limit on open files is shared out: files of the database and of recordings, outgoing sockets, connections of
//! clients. Each is bounded, so that none takes what another needs: without a file, nothing can be read or written.
use std::sync::Arc;
use std::time::Duration;

use sidetone_engine::base::fair_pool::{FairPool, Share, SharedPool};
use sidetone_engine::ports::Egress;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Concurrent connections, shared among client addresses.
pub const CONNECTIONS_MAX: usize = 14_000;
/// Outgoing requests and WebSockets at once.
pub const OUTGOING_MAX: usize = 8_192;
/// Files of the database, its readers, recordings, and logs.
pub const OTHER_FILES: usize = 128;
/// Sockets of an outgoing request: that of its connection, and one that asks for its name, tries a second address, or is
/// kept for the next request.
const FILES_OF_REQUEST: usize = 2;
/// The part of the other files that is for outgoing sockets, if there are few.
const OUTGOING_PART: usize = 2;
/// Whoever waits for a place looks again after this time, at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Connections to one of users' servers that are kept for the next request.
const KEPT_FOR_EACH_SERVER: usize = 16;
/// With a lower limit, the service has hardly room for its clients.
const FILES_MIN: usize = 512;

/// What the limit on open files allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit itself.
    pub limit: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Outgoing requests and WebSockets at once.
    pub outgoing: usize,
}

impl OpenFiles {
    /// Raises the limit of the process as far as permitted, and shares it out.
    pub fn of_process() -> Self {
        Self::within(raised_limit())
    }

    fn within(limit: usize) -> Self {
        let free = limit.saturating_sub(OTHER_FILES);
        let outgoing = OUTGOING_MAX.min(free / OUTGOING_PART / FILES_OF_REQUEST).max(2);
        let connections = CONNECTIONS_MAX.min(free.saturating_sub(outgoing * FILES_OF_REQUEST)).max(1);
        Self { limit, connections, outgoing }
    }

    /// A warning for the start when the limit is too low.
    pub fn warning(&self) -> Option<String> {
        let Self { limit, connections, outgoing } = self;
        (*limit < FILES_MIN).then(|| {
            format!(
                "the limit on open files is {limit}: only {connections} connections and {outgoing} outgoing requests at \
                 once; raise it to 65,536 (ulimit -n)"
            )
        })
    }

    /// Whether there are fewer outgoing sockets than a busy service needs, so that none is to be kept without use.
    fn is_scarce(&self) -> bool {
        self.outgoing < OUTGOING_MAX
    }
}

/// The places for outgoing requests and WebSockets. Users' addresses have half of them, which workspaces share; the operator's
/// have the other: receivers that do not answer keep neither a model nor another workspace waiting. Clones share them.
#[derive(Debug, Clone)]
pub struct Outgoing {
    public: SharedPool<String>,
    freed: Arc<Notify>,
    operator: Arc<Semaphore>,
    is_scarce: bool,
}

/// The place of a request; dropping it frees it.
#[derive(Debug)]
pub enum OutgoingPlace {
    /// For a request to a user's address.
    Public(PublicPlace),
    /// For the operator's.
    Operator(OwnedSemaphorePermit),
}

/// A place that workspaces share.
#[derive(Debug)]
pub struct PublicPlace {
    share: Option<Share<String>>,
    freed: Arc<Notify>,
}

impl Drop for PublicPlace {
    fn drop(&mut self) {
        drop(self.share.take());
        self.freed.notify_one();
    }
}

impl Outgoing {
    /// The places that these files allow.
    pub fn new(files: &OpenFiles) -> Self {
        let half = files.outgoing / 2;
        Self {
            public: SharedPool::new(FairPool::new(half as u64)),
            freed: Arc::default(),
            operator: Arc::new(Semaphore::new(half)),
            is_scarce: files.is_scarce(),
        }
    }

    /// Waits for a place for a workspace; `None` when there was none in time. Empty: the service itself.
    pub async fn place(&self, egress: Egress, workspace: &str, wait: Duration) -> Option<OutgoingPlace> {
        let place = async {
            match egress {
                Egress::Public => Some(OutgoingPlace::Public(self.public_place(workspace).await)),
                Egress::Operator => {
                    self.operator.clone().acquire_owned().await.ok().map(OutgoingPlace::Operator)
                }
            }
        };
        tokio::time::timeout(wait, place).await.ok()?
    }

    async fn public_place(&self, workspace: &str) -> PublicPlace {
        loop {
            if let Some(share) = self.public.take(&workspace.to_owned(), 1, 0) {
                return PublicPlace { share: Some(share), freed: self.freed.clone() };
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, self.freed.notified()).await;
        }
    }

    /// How many connections to one of users' servers are kept for the next request.
    pub fn kept_for_each_server(&self) -> usize {
        if self.is_scarce { 0 } else { KEPT_FOR_EACH_SERVER }
    }
}

/// Enough for everything: for tests.
impl Default for Outgoing {
    fn default() -> Self {
        Self::new(&OpenFiles::within(usize::MAX))
    }
}

#[cfg(unix)]
fn raised_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // `None`: unlimited.
    files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
fn raised_limit() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_out_is_within_the_limit() {
        for limit in [512, 1_024, 4_096, 16_384, 20_000, 65_536, 1_048_576] {
            let files = OpenFiles::within(limit);
            let OpenFiles { connections, outgoing, .. } = files;
            assert!(OTHER_FILES + connections + FILES_OF_REQUEST * outgoing <= limit, "{files:?}");
            assert!(connections >= 192 && outgoing >= 96, "{files:?}");
        }
        let plenty = OpenFiles { limit: 65_536, connections: CONNECTIONS_MAX, outgoing: OUTGOING_MAX };
        assert_eq!(OpenFiles::within(65_536), plenty);
        assert_eq!(OpenFiles::within(1_024), OpenFiles { limit: 1_024, connections: 448, outgoing: 224 });
    }

    #[test]
    fn a_limit_that_is_too_low_is_a_warning() {
        assert_eq!(OpenFiles::within(1_024).warning(), None);
        let files = OpenFiles::within(100);
        assert!(files.connections >= 1 && files.outgoing >= 2, "{files:?}");
        assert!(files.warning().is_some_and(|warning| warning.contains("open files is 100")));
    }

    #[tokio::test]
    async fn receivers_that_do_not_answer_keep_no_model_waiting() {
        let outgoing = Outgoing::new(&OpenFiles::within(512));
        let soon = Duration::from_millis(5);
        let mut held = Vec::new();
        while let Some(place) = outgoing.place(Egress::Public, "ws_a", soon).await {
            held.push(place);
        }
        assert_eq!(held.len(), 42, "of 48: what is left is for others");
        assert!(outgoing.place(Egress::Operator, "ws_a", soon).await.is_some());
        let other = outgoing.place(Egress::Public, "ws_b", soon).await;
        assert!(other.is_some());
        drop(other);
        held.pop();
        assert!(outgoing.place(Egress::Public, "ws_a", soon).await.is_some());
    }

    #[tokio::test]
    async fn who_waits_gets_a_place_that_is_freed() {
        let outgoing = Outgoing::new(&OpenFiles::within(512));
        let mut held = Vec::new();
        while let Some(place) = outgoing.place(Egress::Public, "ws_a", Duration::from_millis(5)).await {
            held.push(place);
        }
        let waiting = {
            let outgoing = outgoing.clone();
            tokio::spawn(async move { outgoing.place(Egress::Public, "ws_a", Duration::from_secs(10)).await })
        };
        tokio::task::yield_now().await;
        held.pop();
        assert!(waiting.await.unwrap().is_some());
    }
}
