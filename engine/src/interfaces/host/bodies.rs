//! Memory for request bodies that are being received, shared by the admission policy: among workspaces whose API keys are
//! known to be valid, and, much less of it, among the addresses of everybody else.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::fair_pool::{FairPool, Share, SharedPool};
use crate::base::limits::{BODIES_BYTES_MAX, BODY_BYTES_FREE, UNKNOWN_BODIES_BYTES_MAX};

/// Memory is taken in steps of this size.
const STEP_BYTES: u64 = 16 * 1024;

/// Who receives a body: a workspace, or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Known(String),
    Address(IpAddr),
}

/// Whether a piece of a body may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Yes.
    Taken,
    /// Not now; ask again soon.
    Wait,
    /// No: end the request with [`BodyFailure::NoRoom`](super::BodyFailure::NoRoom).
    Refused,
}

/// All bodies of one process.
#[derive(Clone)]
pub(crate) struct Bodies {
    known: SharedPool<Holder>,
    unknown: SharedPool<Holder>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// The bodies that hold memory or want some, by holder, oldest first.
    open: BTreeSet<(Holder, u64)>,
}

impl Default for Bodies {
    fn default() -> Self {
        let pool = |bytes| SharedPool::new(FairPool::new(bytes));
        Self { known: pool(BODIES_BYTES_MAX), unknown: pool(UNKNOWN_BODIES_BYTES_MAX), state: Arc::default() }
    }
}

impl Bodies {
    /// A body of a holder of a known key, or of an address.
    pub(crate) fn open(&self, holder: Option<&str>, address: IpAddr) -> Memory {
        let (holder, pool) = match holder {
            Some(known) => (Holder::Known(known.to_owned()), &self.known),
            None => (Holder::Address(address), &self.unknown),
        };
        let mut state = self.state();
        state.next += 1;
        let entry = (holder, state.next);
        state.open.insert(entry.clone());
        Memory { entry, pool: pool.clone(), share: None, bodies: self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory of one body; dropping it returns it.
pub(crate) struct Memory {
    entry: (Holder, u64),
    pool: SharedPool<Holder>,
    share: Option<Share<Holder>>,
    bodies: Bodies,
}

impl Memory {
    /// Room for a body that has arrived up to `bytes`. The oldest body of a holder may wait for room. The others are
    /// refused: if all waited, each with a part, none would ever be complete.
    pub(crate) fn room_for(&mut self, bytes: u64) -> Room {
        let held = self.share.as_ref().map_or(0, Share::amount);
        let wanted = bytes.saturating_sub(BODY_BYTES_FREE).next_multiple_of(STEP_BYTES);
        let more = wanted.saturating_sub(held);
        if more == 0 {
            return Room::Taken;
        }
        let taken = match &mut self.share {
            Some(share) => share.grow(more),
            none => {
                *none = self.pool.take(&self.entry.0, more, 0);
                none.is_some()
            }
        };
        if taken {
            return Room::Taken;
        }
        let state = self.bodies.state();
        let first = state.open.range((self.entry.0.clone(), 0)..).next();
        if first == Some(&self.entry) { Room::Wait } else { Room::Refused }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        drop(self.share.take());
        self.bodies.state().open.remove(&self.entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn an_address_without_a_key_takes_nothing_from_a_key() {
        let bodies = Bodies::default();
        let mut flood = Vec::new();
        loop {
            let mut memory = bodies.open(None, ADDRESS);
            if memory.room_for(1 << 20) != Room::Taken {
                break;
            }
            flood.push(memory);
        }
        assert!(flood.len() as u64 <= UNKNOWN_BODIES_BYTES_MAX >> 20, "{}", flood.len());
        assert_eq!(bodies.open(Some("hash"), ADDRESS).room_for(1 << 20), Room::Taken);
        assert_eq!(bodies.open(None, OTHER).room_for(64 << 10), Room::Taken);
    }

    #[test]
    fn of_many_bodies_at_once_the_oldest_waits_and_is_completed() {
        let bodies = Bodies::default();
        let mut open: Vec<Memory> = (0..1_000).map(|_| bodies.open(Some("hash"), ADDRESS)).collect();
        let mut complete = 0;
        for bytes in (0..=(1 << 20)).step_by(16 << 10) {
            let mut n = 0;
            open.retain_mut(|memory| {
                n += 1;
                match memory.room_for(bytes) {
                    Room::Refused => false,
                    Room::Taken => true,
                    Room::Wait => {
                        assert_eq!(n, 1);
                        true
                    }
                }
            });
            complete = open.len();
        }
        assert!(complete > 20, "{complete} of about 60 that fit");
        assert_eq!(open[0].room_for(1 << 20), Room::Taken);
    }

    #[test]
    fn small_bodies_need_no_memory_and_dropped_ones_return_it() {
        let bodies = Bodies::default();
        let mut small = bodies.open(None, ADDRESS);
        assert_eq!(small.room_for(BODY_BYTES_FREE), Room::Taken);
        assert_eq!(bodies.unknown.free(), UNKNOWN_BODIES_BYTES_MAX);
        assert_eq!(small.room_for(BODY_BYTES_FREE + 1), Room::Taken);
        drop(small);
        assert_eq!(bodies.unknown.free(), UNKNOWN_BODIES_BYTES_MAX);
        assert!(bodies.state().open.is_empty());
    }
}
