//! Who is connected. Connections are shared among client addresses by the engine's admission policy, and when they run
//! out, those that wait for nothing are closed, so that a new one is always accepted.
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use sidetone_engine::base::fair_pool::{FairPool, Share, SharedPool};
use sidetone_engine::base::network::network_of;
use tokio::sync::Notify;

use super::write_timeout::FloorSwitch;

/// Total size of unfinished heads, without the beginning of each.
pub(super) const HEADS_BYTES_MAX: u64 = 36 * 1024 * 1024;
/// How long a new connection waits for one that is being closed.
const CLOSING_MS: u64 = 100;
/// How often it tries.
const ATTEMPTS: usize = 10;
/// When connections run out, this part of those that can be closed is closed at once: looking for them takes time.
const CLOSED_PART: usize = 16;

/// All connections.
pub struct Connections {
    pool: SharedPool<IpAddr>,
    /// Memory for unfinished heads, in bytes.
    heads: SharedPool<IpAddr>,
    places: Mutex<Places>,
    /// Wakes when a connection has ended.
    ended: Notify,
    started: Instant,
}

#[derive(Default)]
struct Places {
    next: u64,
    open: HashMap<u64, Weak<Place>>,
}

/// What a connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has sent nothing since it was opened.
    Silent,
    /// The head of a request is incomplete.
    Head,
    /// A request is being received or answered, or the connection has become a WebSocket.
    Busy,
    /// Its last request is answered, and it has sent nothing since.
    Idle,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Silent, Self::Head, Self::Busy, Self::Idle];
}

/// A phase, since when, and whether a request was answered, in one word: it changes with every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State(u64);

impl State {
    fn new(phase: Phase, served: bool, since_ms: u64) -> Self {
        Self(since_ms << 3 | u64::from(served) << 2 | phase as u64)
    }

    /// What the connection does.
    pub fn phase(self) -> Phase {
        Phase::ALL[(self.0 & 3) as usize]
    }

    fn served(self) -> bool {
        self.0 & 4 != 0
    }

    /// The smallest is closed first: those that never sent a whole request, then the oldest.
    fn rank(self) -> (bool, u64) {
        (self.served(), self.0 >> 3)
    }
}

/// What a stop has cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The client's address, of IPv6 its network.
    pub address: IpAddr,
    /// Whether it is a WebSocket, of a conversation; otherwise a request.
    pub is_socket: bool,
    /// How long it has been open.
    pub open_ms: u64,
}

/// One connection's place; dropping the last reference gives it back. A WebSocket keeps it after the HTTP connection.
pub struct Place {
    id: u64,
    address: IpAddr,
    state: AtomicU64,
    /// Whether it has become a WebSocket.
    is_socket: AtomicBool,
    close: Notify,
    share: Option<Share<IpAddr>>,
    all: Arc<Connections>,
}

/// The connection of a request.
#[derive(Clone)]
pub struct Connection {
    pub(super) peer: SocketAddr,
    /// The floor for reading responses.
    pub(super) floor: FloorSwitch,
    place: Arc<Place>,
}

impl Connections {
    /// At most `max` connections.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            pool: SharedPool::new(FairPool::new(max as u64)),
            heads: SharedPool::new(FairPool::new(HEADS_BYTES_MAX)),
            places: Mutex::default(),
            ended: Notify::new(),
            started: Instant::now(),
        })
    }

    /// Finds a place for a new connection, if necessary by closing others. `None`: all of those that it could have are
    /// answering requests.
    pub async fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Connection> {
        let address = network_of(peer.ip());
        for _ in 0..ATTEMPTS {
            if let Some(share) = self.pool.take(&address, 1, 0) {
                return Some(Connection {
                    peer,
                    floor: FloorSwitch::on(),
                    place: self.enter(address, share),
                });
            }
            let ended = self.ended.notified();
            if !self.make_room(&address) {
                return None;
            }
            let _ = tokio::time::timeout(Duration::from_millis(CLOSING_MS), ended).await;
        }
        None
    }

    /// Closes some connections that wait for nothing. False when there are none.
    pub fn make_room(&self, address: &IpAddr) -> bool {
        let mut idle = self.idle();
        // An address with more than its share gives up its own. Otherwise whoever has most of the idle ones does.
        let loser = match self.pool.free() {
            0 => most(&idle),
            _ => Some(*address),
        };
        idle.retain(|(_, place)| Some(place.address) == loser);
        idle.sort_unstable_by_key(|(state, _)| state.rank());
        let count = idle.len().div_ceil(CLOSED_PART);
        for (_, place) in idle.iter().take(count) {
            place.close.notify_one();
        }
        count > 0
    }

    /// Closes some connections, whoever has them: the process has run out of files.
    pub fn make_any_room(&self) {
        let idle = self.idle();
        if let Some(address) = most(&idle) {
            let count = idle.len().div_ceil(CLOSED_PART);
            let of_it = idle.iter().filter(|(_, place)| place.address == address);
            of_it.take(count).for_each(|(_, place)| place.close.notify_one());
        }
    }

    /// Resolves when no connection is left.
    pub async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.places().open.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// What is not finished: requests, also those that have not arrived in full, and conversations. The oldest first.
    pub fn unfinished(&self) -> Vec<Cut> {
        let now_ms = self.now_ms();
        let open: Vec<Arc<Place>> = self.places().open.values().filter_map(Weak::upgrade).collect();
        let busy = open.iter().filter(|place| place.state().phase() == Phase::Busy);
        let mut all: Vec<Cut> = busy
            .map(|place| Cut {
                address: place.address,
                is_socket: place.is_socket.load(Ordering::Relaxed),
                open_ms: now_ms.saturating_sub(place.state().0 >> 3),
            })
            .collect();
        all.sort_unstable_by_key(|one| std::cmp::Reverse(one.open_ms));
        all
    }

    fn idle(&self) -> Vec<(State, Arc<Place>)> {
        let places = self.places();
        let open = places.open.values().filter_map(Weak::upgrade);
        open.map(|place| (place.state(), place)).filter(|(state, _)| state.phase() != Phase::Busy).collect()
    }

    fn enter(self: &Arc<Self>, address: IpAddr, share: Share<IpAddr>) -> Arc<Place> {
        let mut places = self.places();
        places.next += 1;
        let place = Arc::new(Place {
            id: places.next,
            address,
            state: AtomicU64::new(State::new(Phase::Silent, false, self.now_ms()).0),
            is_socket: AtomicBool::new(false),
            close: Notify::new(),
            share: Some(share),
            all: self.clone(),
        });
        places.open.insert(place.id, Arc::downgrade(&place));
        place
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address with most of them.
fn most(idle: &[(State, Arc<Place>)]) -> Option<IpAddr> {
    let mut counts = HashMap::<IpAddr, usize>::new();
    idle.iter().for_each(|(_, place)| *counts.entry(place.address).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address)
}

impl Place {
    /// What the connection does.
    pub fn state(&self) -> State {
        State(self.state.load(Ordering::Relaxed))
    }

    fn enter(&self, phase: Phase) {
        let served = phase == Phase::Idle || self.state().served();
        self.state.store(State::new(phase, served, self.all.now_ms()).0, Ordering::Relaxed);
    }

    /// Memory for a part of a head; `None` when others have it.
    pub fn take_head(&self, held: Option<Share<IpAddr>>, bytes: u64) -> Option<Share<IpAddr>> {
        match held {
            Some(mut share) => share.grow(bytes).then_some(share),
            None => self.all.heads.take(&self.address, bytes, 0),
        }
    }

    /// Bytes have arrived.
    pub fn received(&self) {
        if matches!(self.state().phase(), Phase::Silent | Phase::Idle) {
            self.enter(Phase::Head);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // First, so that whoever is woken finds it free.
        drop(self.share.take());
        self.all.places().open.remove(&self.id);
        self.all.ended.notify_waiters();
    }
}

impl Connection {
    /// The place.
    pub fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// A request has begun; dropping what is returned says that it is answered.
    pub fn begin_request(&self) -> OpenRequest {
        self.place.enter(Phase::Busy);
        OpenRequest(Some(self.place.clone()))
    }

    /// Resolves when the connection is to be closed to make room for another.
    pub async fn closed(&self) {
        loop {
            self.place.close.notified().await;
            // It may have begun a request meanwhile.
            if self.place.state().phase() != Phase::Busy {
                return;
            }
        }
    }
}

/// A request that is not answered yet.
pub struct OpenRequest(Option<Arc<Place>>);

impl OpenRequest {
    /// The connection is no longer one of HTTP: it never becomes idle.
    pub fn upgraded(mut self) {
        if let Some(place) = self.0.take() {
            place.is_socket.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            place.enter(Phase::Idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 1))
    }

    /// Serves a connection as far as closing it goes.
    fn hold(connection: Connection) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { connection.closed().await })
    }

    #[tokio::test]
    async fn a_flood_closes_its_own_silent_connections_only() {
        let all = Connections::new(90);
        let honest = all.admit(peer(1)).await.unwrap();
        drop(honest.begin_request());
        let honest = hold(honest);
        for _ in 0..1_000 {
            hold(all.admit(peer(2)).await.expect("the oldest makes room"));
        }
        assert!(!honest.is_finished());
        assert!(all.admit(peer(3)).await.is_some());
        assert!(all.pool.free() > 0);
    }

    #[tokio::test]
    async fn when_all_are_taken_by_many_addresses_idle_ones_make_room() {
        let all = Connections::new(20);
        let mut held: Vec<_> = (0..20_u8).map(peer).collect();
        for address in held.drain(..) {
            hold(all.admit(address).await.expect("there is room"));
        }
        assert_eq!(all.pool.free(), 0);
        assert!(all.admit(peer(99)).await.is_some());
    }

    #[tokio::test]
    async fn busy_connections_are_never_closed() {
        let all = Connections::new(9);
        let mut busy = Vec::new();
        while let Some(connection) = all.admit(peer(1)).await {
            busy.push((connection.begin_request(), hold(connection)));
        }
        assert_eq!(busy.len(), 8, "eight ninths");
        assert!(busy.iter().all(|(_, held)| !held.is_finished()));
        let (request, _) = busy.remove(0);
        drop(request);
        assert!(all.admit(peer(1)).await.is_some());
    }

    #[test]
    fn those_without_a_whole_request_go_first() {
        let rank = |phase, served, since| State::new(phase, served, since).rank();
        assert!(rank(Phase::Silent, false, 9) < rank(Phase::Idle, true, 1));
        assert!(rank(Phase::Head, false, 1) < rank(Phase::Silent, false, 2));
        assert_eq!(State::new(Phase::Busy, true, 1 << 40).phase(), Phase::Busy);
    }
}
