//! Batches that wait to be written. Whoever has used the least of the writer's time lately is next: who sends a thousand
//! changes, or long ones, waits for them, and the next one does not. What one asker sends stays in its order.
//!
//! This is start-time fair queuing. Each asker has a clock of the time that it has used. It stands still while the asker
//! wants nothing, and is set to the clock of whoever is served when it wants something again: nobody saves up turns.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sidetone_engine::base::fair_pool::{FairPool, Kept};

/// Maximum number of waiting batches; beyond it, requests are asked to retry later. Askers share them fairly.
pub(super) const WAITING_MAX: u64 = 8_192;
/// What waits together, in bytes: a batch can have several MB. Askers share it likewise.
pub(super) const WAITING_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The part of both that they leave to the service: claims of jobs, the sweep.
const SERVICE_PART: u64 = 8;
const KEPT_FOR_SERVICE: u64 = WAITING_MAX / SERVICE_PART;
/// The service works for all askers: it may use as much time as so many of them.
const SERVICE_SHARES: u32 = 4;
/// Askers without work whose clocks are remembered. When there are more, all of them are forgotten.
const IDLE_MAX: usize = 1_024;

/// Work that takes memory while it waits.
pub trait Weighed {
    /// How much, in bytes.
    fn bytes(&self) -> u64;
}

/// Work that waits for a thread, of type `T`.
pub struct WaitingWrites<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// By asker; the service is `""`.
    lanes: BTreeMap<String, Lane<T>>,
    /// The lanes with work, the next one first: the clock, since which turn it waits, the asker.
    turns: BTreeSet<(Duration, u64, String)>,
    /// Turns that were ever waited for.
    waits: u64,
    /// The clock of the lane that was served last.
    clock: Duration,
    /// How much of each waits.
    places: FairPool<String>,
    bytes: FairPool<String>,
    is_closed: bool,
}

/// The work of one asker.
struct Lane<T> {
    work: VecDeque<T>,
    clock: Duration,
    waits_since: u64,
}

/// Nothing more is taken.
pub struct Closed;

impl<T: Weighed> WaitingWrites<T> {
    pub fn new() -> Self {
        let state = State {
            lanes: BTreeMap::new(),
            turns: BTreeSet::new(),
            waits: 0,
            clock: Duration::ZERO,
            places: FairPool::new(WAITING_MAX),
            bytes: FairPool::new(WAITING_BYTES_MAX),
            is_closed: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds work of an asker, or of the service; says why it is refused.
    pub fn push(&self, asker: Option<&str>, work: T) -> Result<(), &'static str> {
        let mut state = self.state();
        if state.is_closed {
            return Err("the writer has stopped");
        }
        let kept = |amount: u64| Kept::from(if asker.is_some() { amount } else { 0 });
        let name = asker.unwrap_or_default().to_owned();
        if !state.places.take(&name, 1, kept(KEPT_FOR_SERVICE)) {
            return Err("the writer's queue is full");
        }
        if !state.bytes.take(&name, work.bytes(), kept(WAITING_BYTES_MAX / SERVICE_PART)) {
            state.places.give_back(&name, 1);
            return Err("the writer's queue has no memory left");
        }
        state.add(name, work);
        self.changed.notify_one();
        Ok(())
    }

    /// The next piece of work, when there is one within `wait`; an error when it is closed and empty.
    pub fn next_within(&self, wait: Duration) -> Result<Option<(Option<String>, T)>, Closed> {
        let idle = |state: &mut State<T>| !state.is_closed && state.turns.is_empty();
        let (mut state, _) =
            self.changed.wait_timeout_while(self.state(), wait, idle).unwrap_or_else(PoisonError::into_inner);
        match state.next() {
            None if state.is_closed => Err(Closed),
            next => Ok(next),
        }
    }

    /// The next piece of work, if there is one now.
    pub fn next(&self) -> Option<(Option<String>, T)> {
        self.state().next()
    }

    /// An asker's work, or the service's, has taken this time.
    pub fn charge(&self, asker: Option<&str>, time: Duration) {
        let time = if asker.is_some() { time } else { time / SERVICE_SHARES };
        self.state().charge(asker.unwrap_or_default(), time);
    }

    /// Takes nothing more. What waits is still handed out.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Weighed> State<T> {
    fn add(&mut self, asker: String, work: T) {
        let new = || Lane { work: VecDeque::new(), clock: self.clock, waits_since: 0 };
        let lane = self.lanes.entry(asker.clone()).or_insert_with(new);
        let waits = !lane.work.is_empty();
        lane.work.push_back(work);
        if !waits {
            self.wait_for_turn(asker);
        }
    }

    fn wait_for_turn(&mut self, asker: String) {
        self.waits += 1;
        if let Some(lane) = self.lanes.get_mut(&asker) {
            lane.clock = lane.clock.max(self.clock);
            lane.waits_since = self.waits;
            self.turns.insert((lane.clock, lane.waits_since, asker));
        }
    }

    fn next(&mut self) -> Option<(Option<String>, T)> {
        let (clock, _, asker) = self.turns.pop_first()?;
        self.clock = clock;
        self.places.give_back(&asker, 1);
        let lane = self.lanes.get_mut(&asker)?;
        let work = lane.work.pop_front()?;
        self.bytes.give_back(&asker, work.bytes());
        if !lane.work.is_empty() {
            self.wait_for_turn(asker.clone());
        }
        Some((Some(asker).filter(|asker| !asker.is_empty()), work))
    }

    fn charge(&mut self, asker: &str, time: Duration) {
        let Some(lane) = self.lanes.get_mut(asker) else { return };
        let mut turn = (lane.clock, lane.waits_since, asker.to_owned());
        lane.clock += time;
        if self.turns.remove(&turn) {
            turn.0 = lane.clock;
            self.turns.insert(turn);
        }
        if self.lanes.len() > self.turns.len() + IDLE_MAX {
            self.lanes.retain(|_, lane| !lane.work.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    impl Weighed for u32 {
        fn bytes(&self) -> u64 {
            1
        }
    }

    /// A batch of so many MiB.
    struct Large(u64);

    impl Weighed for Large {
        fn bytes(&self) -> u64 {
            self.0 * 1024 * 1024
        }
    }

    fn drained(waiting: &WaitingWrites<u32>) -> Vec<u32> {
        std::iter::from_fn(|| waiting.next().map(|(_, work)| work)).collect()
    }

    /// Does the next piece of work, which takes `time(asker)`; the asker.
    fn served(waiting: &WaitingWrites<u32>, time: impl Fn(&str) -> Duration) -> String {
        let (asker, _) = waiting.next().unwrap();
        let name = asker.clone().unwrap_or_default();
        waiting.charge(asker.as_deref(), time(&name));
        name
    }

    #[test]
    fn askers_take_turns() {
        let waiting = WaitingWrites::new();
        for work in 0..4 {
            assert!(waiting.push(Some("greedy"), work).is_ok());
        }
        assert!(waiting.push(Some("honest"), 10).is_ok());
        assert!(waiting.push(None, 20).is_ok() && waiting.push(None, 21).is_ok());
        assert_eq!(drained(&waiting), [0, 10, 20, 1, 21, 2, 3]);
        assert_eq!(waiting.state().places.free(), WAITING_MAX, "nothing is counted twice");
    }

    #[test]
    fn who_has_used_less_time_is_next_however_much_waits() {
        let waiting = WaitingWrites::new();
        let time = |asker: &str| if asker == "greedy" { 30 * MS } else { MS };
        for work in 0..1_000 {
            assert!(waiting.push(Some("greedy"), work).is_ok());
        }
        for _ in 0..20 {
            served(&waiting, time);
        }
        for work in 0..25 {
            assert!(waiting.push(Some("honest"), work).is_ok() && waiting.push(None, work).is_ok());
            assert_ne!(served(&waiting, time), "greedy", "batch {work}");
            assert_ne!(served(&waiting, time), "greedy", "batch {work}");
        }
    }

    #[test]
    fn nobody_saves_up_turns() {
        let waiting = WaitingWrites::new();
        let time = |_: &str| 10 * MS;
        for work in 0..100 {
            assert!(waiting.push(Some("long"), work).is_ok());
        }
        for _ in 0..50 {
            served(&waiting, time);
        }
        for work in 0..50 {
            assert!(waiting.push(Some("late"), work).is_ok());
        }
        let of_long = (0..20).filter(|_| served(&waiting, time) == "long").count();
        assert!((9..=11).contains(&of_long), "{of_long} of 20");
    }

    #[test]
    fn the_service_has_several_shares() {
        let waiting = WaitingWrites::new();
        for work in 0..100 {
            assert!(waiting.push(None, work).is_ok() && waiting.push(Some("a"), work).is_ok());
        }
        let own = (0..50).filter(|_| served(&waiting, |_| MS).is_empty()).count();
        assert!((38..=42).contains(&own), "{own} of 50");
    }

    #[test]
    fn the_idle_are_forgotten() {
        let waiting = WaitingWrites::new();
        for asker in 0..3 * u32::try_from(IDLE_MAX).unwrap() {
            assert!(waiting.push(Some(&format!("ws_{asker}")), asker).is_ok());
            served(&waiting, |_| MS);
        }
        assert!(waiting.state().lanes.len() <= IDLE_MAX + 1, "{}", waiting.state().lanes.len());
    }

    /// Those who always want something have used equal time, up to one batch, and each has its work in order.
    #[test]
    fn all_who_wait_get_equal_time() {
        for times in [[1, 1, 1], [1, 7, 30], [50, 1, 2], [3, 40, 40]] {
            let waiting = WaitingWrites::new();
            for work in 0..300 {
                for asker in ["0", "1", "2"] {
                    assert!(waiting.push(Some(asker), work).is_ok());
                }
            }
            let mut done = [0; 3];
            for _ in 0..200 {
                let (asker, work) = waiting.next().unwrap();
                let at: usize = asker.as_deref().unwrap().parse().unwrap();
                assert_eq!(work, done[at], "in order");
                done[at] += 1;
                waiting.charge(asker.as_deref(), times[at] * MS);
                let used = [0, 1, 2].map(|at| done[at] * times[at]);
                let apart = used.iter().max().unwrap() - used.iter().min().unwrap();
                assert!(apart <= *times.iter().max().unwrap(), "{used:?} of {times:?}");
            }
        }
    }

    #[test]
    fn a_full_queue_of_one_leaves_room_for_the_next_and_for_the_service() {
        let waiting = WaitingWrites::new();
        let greedy =
            std::iter::repeat_with(|| waiting.push(Some("greedy"), 0)).take_while(Result::is_ok).count();
        assert!(greedy > 4_096 && (greedy as u64) < WAITING_MAX - KEPT_FOR_SERVICE + 1);
        assert!(waiting.push(None, 0).is_ok());
        let other = std::iter::repeat_with(|| waiting.push(None, 0)).take_while(Result::is_ok).count();
        assert!(other >= 100, "{other}");
    }

    #[test]
    fn large_batches_of_one_leave_memory_to_the_next_and_to_the_service() {
        let waiting = WaitingWrites::new();
        let greedy = std::iter::repeat_with(|| waiting.push(Some("greedy"), Large(2)))
            .take_while(Result::is_ok)
            .count() as u64;
        assert!(greedy * 2 > 128 && greedy * 2 < 224, "{greedy}");
        assert!(waiting.push(Some("honest"), Large(2)).is_ok(), "a batch of a run");
        assert!(waiting.push(None, Large(24)).is_ok(), "the service");
        while waiting.next().is_some() {}
        let state = waiting.state();
        assert_eq!((state.places.free(), state.bytes.free()), (WAITING_MAX, WAITING_BYTES_MAX));
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let waiting = WaitingWrites::new();
        assert!(waiting.push(None, 1).is_ok());
        waiting.close();
        assert!(waiting.push(None, 2).is_err());
        let next = waiting.next_within(Duration::ZERO).ok().flatten();
        assert_eq!(next.map(|(_, work)| work), Some(1));
        assert!(waiting.next_within(Duration::from_secs(60)).is_err());
    }
}
