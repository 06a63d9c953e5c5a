//! Shares a limited amount (slots, bytes, connections) among holders (workspaces, addresses) so that none can take the
//! share of the next. The one admission policy of the service: whatever is limited and shared goes through it.
//!
//! The rule is the dynamic threshold of shared-memory switches (Choudhury and Hahne, "Dynamic queue length thresholds
//! for shared-memory packet switches", IEEE/ACM Transactions on Networking, 1998): a holder may grow while what it holds
//! is at most [`THRESHOLD`] times what is free. A single holder gets 8/9 of the capacity, two get 8/17 each, and a part
//! stays free for a holder that has nothing yet. Nobody is asked to predict the load, and nothing is reserved by name.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many times the free amount a holder may have.
pub const THRESHOLD: u64 = 8;

/// What a request leaves free, for requests that matter more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// When its holder has something already.
    pub by_holder: u64,
    /// When its holder has nothing yet.
    pub by_newcomer: u64,
}

impl From<u64> for Kept {
    fn from(amount: u64) -> Self {
        Self { by_holder: amount, by_newcomer: amount }
    }
}

/// How a request is judged.
#[derive(Debug, Clone, Copy)]
struct Standing {
    is_newcomer: bool,
    /// What it leaves free.
    kept: u64,
}

/// A limited amount and who holds how much of it. A state machine without clock or lock; see [`SharedPool`].
#[derive(Debug, Clone)]
pub struct FairPool<K> {
    capacity: u64,
    used: u64,
    /// What stays free for holders that have nothing yet.
    for_newcomers: u64,
    held: BTreeMap<K, u64>,
}

impl<K: Ord + Clone> FairPool<K> {
    /// A pool of which nothing is taken.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, used: 0, for_newcomers: 0, held: BTreeMap::new() }
    }

    /// The same pool, of which whoever holds something already leaves `amount` free. The threshold alone leaves little to
    /// a newcomer when many greedy holders share the pool.
    #[must_use]
    pub fn keeping_for_newcomers(self, amount: u64) -> Self {
        Self { for_newcomers: amount, ..self }
    }

    /// A pool from which a single holder can take all of `amount`, while as much again as one [`THRESHOLD`]th of it stays
    /// free for others.
    pub fn for_one_holder(amount: u64) -> Self {
        Self::new(amount.saturating_add(amount.div_ceil(THRESHOLD)))
    }

    /// Takes `amount` for `holder`, and leaves at least `kept` free, for requests that matter more. Changes nothing and
    /// returns false when that is not fair or not there.
    pub fn take(&mut self, holder: &K, amount: u64, kept: impl Into<Kept>) -> bool {
        self.take_as(self.standing(holder, kept.into()), holder, amount)
    }

    fn standing(&self, holder: &K, kept: Kept) -> Standing {
        match self.held_by(holder) {
            0 => Standing { is_newcomer: true, kept: kept.by_newcomer },
            _ => Standing { is_newcomer: false, kept: kept.by_holder },
        }
    }

    fn take_as(&mut self, standing: Standing, holder: &K, amount: u64) -> bool {
        let held = self.held_by(holder);
        let for_newcomers = if standing.is_newcomer { 0 } else { self.for_newcomers };
        let free = self.free().saturating_sub(standing.kept).saturating_sub(for_newcomers);
        // Compared with what is free afterwards: a large request must leave room, too. The last unit is for a newcomer.
        let is_fair = amount <= free
            && (held.saturating_add(amount) <= (free - amount).saturating_mul(THRESHOLD)
                || held == 0 && amount == 1);
        if is_fair {
            self.add(holder, amount);
        }
        is_fair
    }

    /// Counts `amount` for `holder` whether it is fair or not: for what is held already.
    pub fn add(&mut self, holder: &K, amount: u64) {
        if amount > 0 {
            self.used = self.used.saturating_add(amount);
            let held = self.held.entry(holder.clone()).or_default();
            *held = held.saturating_add(amount);
        }
    }

    /// Returns `amount`, at most what `holder` has.
    pub fn give_back(&mut self, holder: &K, amount: u64) {
        if let Some(held) = self.held.get_mut(holder) {
            let amount = amount.min(*held);
            *held -= amount;
            self.used = self.used.saturating_sub(amount);
            if *held == 0 {
                self.held.remove(holder);
            }
        }
    }

    /// What `holder` has.
    pub fn held_by(&self, holder: &K) -> u64 {
        self.held.get(holder).copied().unwrap_or_default()
    }

    /// What nobody has.
    pub fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// Everybody who holds something, and how much.
    pub fn holders(&self) -> impl Iterator<Item = (&K, u64)> {
        self.held.iter().map(|(holder, held)| (holder, *held))
    }
}

/// A [`FairPool`] that several tasks use; what is taken is returned when its [`Share`] is dropped.
#[derive(Debug)]
pub struct SharedPool<K>(Arc<Mutex<FairPool<K>>>);

impl<K> Clone for SharedPool<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Ord + Clone> SharedPool<K> {
    /// Shares a pool.
    pub fn new(pool: FairPool<K>) -> Self {
        Self(Arc::new(Mutex::new(pool)))
    }

    /// Takes `amount` for `holder`, leaving `kept` free; `None` when that is not fair or not there.
    pub fn take(&self, holder: &K, amount: u64, kept: impl Into<Kept>) -> Option<Share<K>> {
        let standing = self.with(|pool| pool.standing(holder, kept.into()));
        self.take_as(standing, holder, amount)
    }

    fn take_as(&self, standing: Standing, holder: &K, amount: u64) -> Option<Share<K>> {
        let taken = self.with(|pool| pool.take_as(standing, holder, amount));
        taken.then(|| Share { pool: self.clone(), holder: holder.clone(), amount, standing })
    }

    /// Counts `amount` for `holder` whether it is fair or not: for what is held already.
    pub fn add(&self, holder: &K, amount: u64) -> Share<K> {
        let standing = self.with(|pool| {
            let standing = pool.standing(holder, 0.into());
            pool.add(holder, amount);
            standing
        });
        Share { pool: self.clone(), holder: holder.clone(), amount, standing }
    }

    /// What nobody has.
    pub fn free(&self) -> u64 {
        self.with(|pool| pool.free())
    }

    fn with<T>(&self, action: impl FnOnce(&mut FairPool<K>) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What somebody holds of a [`SharedPool`]; dropping it returns it. What is added to the first share of a newcomer is
/// judged like the share itself: whoever was let in with a first part also gets the rest.
#[derive(Debug)]
pub struct Share<K: Ord + Clone> {
    pool: SharedPool<K>,
    holder: K,
    amount: u64,
    standing: Standing,
}

impl<K: Ord + Clone> Share<K> {
    /// Takes `more`; false when that is not fair or not there, and nothing changes.
    #[must_use]
    pub fn grow(&mut self, more: u64) -> bool {
        let taken = self.pool.with(|pool| pool.take_as(self.standing, &self.holder, more));
        if taken {
            self.amount = self.amount.saturating_add(more);
        }
        taken
    }

    /// Counts `more`, whether it is fair or not: for what is held already.
    pub fn add(&mut self, more: u64) {
        self.pool.with(|pool| pool.add(&self.holder, more));
        self.amount = self.amount.saturating_add(more);
    }

    /// Takes another share for the same holder; `None` when that is not fair or not there.
    pub fn another(&self, amount: u64) -> Option<Self> {
        self.pool.take_as(self.standing, &self.holder, amount)
    }

    /// A share of nothing for the same holder, to be added to.
    pub fn nothing(&self) -> Self {
        Self { pool: self.pool.clone(), holder: self.holder.clone(), amount: 0, standing: self.standing }
    }

    /// How much it is.
    pub fn amount(&self) -> u64 {
        self.amount
    }
}

impl<K: Ord + Clone> Drop for Share<K> {
    fn drop(&mut self) {
        self.pool.with(|pool| pool.give_back(&self.holder, self.amount));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take_all(pool: &mut FairPool<&'static str>, holder: &'static str) -> u64 {
        std::iter::from_fn(|| pool.take(&holder, 1, 0).then_some(())).count() as u64
    }

    #[test]
    fn one_holder_gets_what_it_was_promised_and_the_next_still_gets_some() {
        let mut pool = FairPool::for_one_holder(64);
        assert_eq!(take_all(&mut pool, "greedy"), 64);
        assert!(take_all(&mut pool, "honest") >= 7);
        assert!(pool.free() > 0, "a third finds room");
        assert!(pool.take(&"third", 1, 0));
    }

    #[test]
    fn as_the_greedy_one_gives_back_both_come_to_the_same() {
        let mut pool = FairPool::for_one_holder(64);
        take_all(&mut pool, "greedy");
        for _ in 0..1_000 {
            pool.give_back(&"greedy", 1);
            take_all(&mut pool, "honest");
            take_all(&mut pool, "greedy");
        }
        // The threshold moves in steps of eight.
        assert!(pool.held_by(&"honest").abs_diff(pool.held_by(&"greedy")) <= THRESHOLD, "{pool:?}");
    }

    #[test]
    fn what_is_kept_stays_free() {
        let mut pool = FairPool::new(100);
        let browsers = std::iter::from_fn(|| pool.take(&"a", 1, 20).then_some(())).count();
        assert!(browsers <= 80 && pool.free() >= 20);
        assert!(pool.take(&"b", 20, 0), "a telephone call");
    }

    #[test]
    fn a_dropped_share_is_free_again() {
        let pool = SharedPool::new(FairPool::new(10));
        let mut share = pool.take(&"a", 3, 0).unwrap();
        assert!(share.grow(2) && !share.grow(6));
        assert_eq!((share.amount(), pool.free()), (5, 5));
        assert!(share.another(2).is_some_and(|other| other.amount() == 2) && share.another(6).is_none());
        share.add(7);
        assert_eq!((share.amount(), pool.free()), (12, 0));
        drop(share);
        assert_eq!(pool.free(), 10);
    }

    #[test]
    fn a_newcomer_gets_the_rest_of_what_its_first_share_needs() {
        let pool = SharedPool::new(FairPool::new(100).keeping_for_newcomers(20));
        let kept = Kept { by_holder: 25, by_newcomer: 10 };
        let greedy: Vec<_> = std::iter::from_fn(|| pool.take(&"greedy", 1, 10)).collect();
        assert_eq!((greedy.len(), pool.free()), (62, 38));
        let _others: Vec<_> = ["a", "b", "c"].iter().map(|other| pool.take(other, 3, 10).unwrap()).collect();
        assert_eq!(pool.free(), 29);
        let mut first = pool.take(&"newcomer", 2, kept).unwrap();
        assert!(pool.take(&"newcomer", 1, kept).is_none(), "a second one is no newcomer's");
        assert!(first.grow(4) && first.another(4).is_some());
        assert!(!first.grow(20), "what is kept for telephones");
    }

    #[test]
    fn what_is_held_already_counts_beyond_the_capacity() {
        let pool = SharedPool::new(FairPool::new(10));
        let share = pool.add(&"a", 12);
        assert_eq!((share.amount(), pool.free()), (12, 0));
        assert!(pool.take(&"b", 1, 0).is_none());
        drop(share);
        assert_eq!(pool.free(), 10);
    }

    proptest! {
        /// Greedy holders leave what is kept for newcomers, so that many of these find a first unit.
        #[test]
        fn newcomers_find_what_is_kept_for_them(
            steps in prop::collection::vec((0_u64..30, any::<bool>()), 0..2_000),
            kept in 0_u64..20,
        ) {
            let mut pool = FairPool::new(200).keeping_for_newcomers(50);
            for (holder, gives_back) in steps {
                match gives_back && holder % 3 == 0 {
                    true => pool.give_back(&holder, 1),
                    false => { pool.take(&holder, 1, kept); }
                }
            }
            // At most 30 of the 50 were the first units of those who hold something now.
            let came = (100..200).filter(|newcomer| pool.take(newcomer, 1, kept)).count();
            prop_assert!(came >= 20, "{} came: {:?}", came, pool);
        }

        /// Whatever several holders do, in whatever order: what is used is what is held, it is never more than the
        /// capacity, and a newcomer gets a first unit unless other newcomers have the last ones.
        #[test]
        fn nobody_is_shut_out(
            capacity in 20_u64..500,
            steps in prop::collection::vec((0_u8..8, 0_u64..40, any::<bool>()), 0..400),
        ) {
            let mut pool = FairPool::new(capacity);
            for (holder, amount, gives_back) in steps {
                match gives_back {
                    true => pool.give_back(&holder, amount),
                    false => { pool.take(&holder, amount, 0); }
                }
                let sum: u64 = pool.holders().map(|(_, held)| held).sum();
                prop_assert_eq!(sum, capacity - pool.free());
            }
            if pool.held.values().all(|held| *held > 1) {
                prop_assert!(pool.clone().take(&99, 1, 0), "{:?}", pool);
            }
        }
    }
}
