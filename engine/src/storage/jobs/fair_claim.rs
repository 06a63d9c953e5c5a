//! Who may start jobs now: shares the places of a queue among workspaces. Pure; [`super::claim`] carries it out.
//!
//! Places are given one at a time to whoever has the fewest, then to whoever has waited longest, while a [`FairPool`]
//! allows it. So one workspace alone can have all the places it is promised, and the first place of a newcomer is free
//! whatever the others do. Only many workspaces together can take the last place: then one that has several is to give way.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::base::fair_pool::FairPool;

/// What a holder has, and how much it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demand<K> {
    pub holder: K,
    /// Jobs that are due, counted up to the largest number that can be granted.
    pub due: u64,
    pub oldest_due_ms: i64,
    /// Jobs that are running.
    pub held: u64,
    /// The holder's own limit of running jobs.
    pub held_max: Option<u64>,
}

/// How many more jobs a holder may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant<K> {
    pub holder: K,
    pub more: u64,
    /// What it had when this was decided.
    pub held: u64,
}

/// The decision about a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision<K> {
    pub grants: Vec<Grant<K>>,
    /// Who should release a job for somebody who has none, one entry a job.
    pub give_way: Vec<K>,
    /// Whether somebody waits for a place.
    pub held_back: bool,
}

/// Grants at most `most` jobs, of a queue in which a single holder may run `places`.
pub(crate) fn decide<K: Ord + Clone>(places: u64, most: u64, demands: &[Demand<K>]) -> Decision<K> {
    let mut pool = FairPool::for_one_holder(places);
    for demand in demands {
        pool.add(&demand.holder, demand.held);
    }
    let mut granted: BTreeMap<usize, u64> = BTreeMap::new();
    let rank = |held: u64, at: usize| Reverse((held, demands[at].oldest_due_ms, at));
    let waiting = (0..demands.len()).filter(|at| demands[*at].may_start(0));
    let mut waiting: BinaryHeap<_> = waiting.map(|at| rank(demands[at].held, at)).collect();
    let mut left = most;
    while let Some(Reverse((held, _, at))) = waiting.peek().copied() {
        // Everybody after this one has at least as much, so there is no room for them either.
        if left == 0 || !pool.take(&demands[at].holder, 1, 0) {
            break;
        }
        waiting.pop();
        left -= 1;
        let more = granted.entry(at).or_default();
        *more += 1;
        if demands[at].may_start(*more) {
            waiting.push(rank(held + 1, at));
        }
    }
    let newcomers = waiting.iter().filter(|Reverse((held, _, _))| *held == 0).count();
    let give_way = if pool.free() == 0 { richest(&mut pool, newcomers) } else { Vec::new() };
    let grant =
        |(at, more): (usize, u64)| Grant { holder: demands[at].holder.clone(), more, held: demands[at].held };
    Decision { held_back: !waiting.is_empty(), give_way, grants: granted.into_iter().map(grant).collect() }
}

/// Takes `count` places from those with the most; nobody loses the only one.
fn richest<K: Ord + Clone>(pool: &mut FairPool<K>, count: usize) -> Vec<K> {
    let mut from = Vec::new();
    while from.len() < count {
        let most = pool.holders().filter(|(_, held)| *held > 1).max_by_key(|(_, held)| *held);
        let Some(holder) = most.map(|(holder, _)| holder.clone()) else { break };
        pool.give_back(&holder, 1);
        from.push(holder);
    }
    from
}

impl<K> Demand<K> {
    /// Whether the holder has another job to start after `granted` ones, and its own limit allows it.
    fn may_start(&self, granted: u64) -> bool {
        granted < self.due && self.held_max.is_none_or(|max| self.held + granted < max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demand(holder: u8, due: u64, held: u64) -> Demand<u8> {
        Demand { holder, due, oldest_due_ms: 0, held, held_max: None }
    }

    fn more(decision: &Decision<u8>, holder: u8) -> u64 {
        decision.grants.iter().filter(|grant| grant.holder == holder).map(|grant| grant.more).sum()
    }

    #[test]
    fn one_alone_gets_all_it_is_promised_and_a_newcomer_still_starts() {
        let alone = decide(64, 72, &[demand(1, 72, 0)]);
        assert_eq!((more(&alone, 1), alone.held_back), (64, true));
        let both = decide(64, 8, &[demand(1, 8, 64), demand(2, 1, 0)]);
        assert_eq!((more(&both, 1), more(&both, 2)), (0, 1));
    }

    #[test]
    fn places_go_to_who_has_the_fewest_then_to_who_waits_longest() {
        let late = Demand { oldest_due_ms: 5, ..demand(1, 4, 0) };
        let early = Demand { oldest_due_ms: 3, ..demand(2, 4, 0) };
        let one = decide(64, 1, &[late.clone(), early.clone()]);
        assert_eq!((more(&one, 1), more(&one, 2)), (0, 1));
        let three = decide(64, 3, &[late, early, demand(3, 4, 2)]);
        assert_eq!((more(&three, 1), more(&three, 2), more(&three, 3)), (1, 2, 0));
    }

    #[test]
    fn a_workspace_keeps_to_its_own_limit_and_is_in_nobodys_way() {
        let limited = Demand { held_max: Some(2), ..demand(1, 72, 0) };
        let decision = decide(64, 72, &[limited, demand(2, 3, 0)]);
        assert_eq!((more(&decision, 1), more(&decision, 2), decision.held_back), (2, 3, false));
    }

    #[test]
    fn when_all_places_are_taken_the_richest_gives_way() {
        let crowd = [demand(1, 9, 40), demand(2, 9, 32), demand(3, 1, 0), demand(4, 1, 0)];
        let decision = decide(64, 0, &crowd);
        assert_eq!((decision.grants.len(), decision.give_way), (0, vec![1, 1]));
        let room = [demand(1, 9, 40), demand(2, 9, 31), demand(3, 1, 0)];
        assert!(decide(64, 1, &room).give_way.is_empty(), "there is a place");
        let even: Vec<_> = (0..72).map(|holder| demand(holder, 1, 1)).chain([demand(99, 1, 0)]).collect();
        assert!(decide(64, 0, &even).give_way.is_empty(), "nobody loses the only one");
    }

    /// A queue under load: what each workspace has waiting and running, with the time that each job still takes.
    struct Load {
        places: u64,
        waiting: BTreeMap<u8, u64>,
        /// Since when each of them waits.
        since: BTreeMap<u8, i64>,
        running: Vec<(u8, u32)>,
    }

    impl Load {
        fn held(&self, holder: u8) -> u64 {
            self.running.iter().filter(|(one, _)| *one == holder).count() as u64
        }

        fn demands(&self) -> Vec<Demand<u8>> {
            let since = |holder: &u8| self.since.get(holder).copied().unwrap_or(0);
            let demand = |(holder, due): (&u8, &u64)| Demand {
                oldest_due_ms: since(holder),
                ..demand(*holder, *due, self.held(*holder))
            };
            self.waiting.iter().map(demand).collect()
        }

        /// One claim, then a moment of work. A job of a greedy workspace takes `slow` moments, of another one.
        fn step(&mut self, slow: u32) -> Decision<u8> {
            let capacity = self.places + self.places.div_ceil(8);
            let demands = self.demands();
            let decision = decide(self.places, capacity - self.running.len() as u64, &demands);
            assert_eq!(decision, decide(self.places, capacity - self.running.len() as u64, &demands));
            for Grant { holder, more, .. } in &decision.grants {
                *self.waiting.get_mut(holder).unwrap() -= more;
                let moments = if *holder < 10 { slow } else { 1 };
                self.running.extend((0..*more).map(|_| (*holder, moments)));
            }
            for holder in &decision.give_way {
                let at = self.running.iter().position(|(one, _)| one == holder).unwrap();
                self.running.remove(at);
                *self.waiting.get_mut(holder).unwrap() += 1;
            }
            assert!(self.running.len() as u64 <= capacity);
            decision
        }

        fn work(&mut self) {
            self.running.iter_mut().for_each(|(_, moments)| *moments -= 1);
            self.running.retain(|(_, moments)| *moments > 0);
        }
    }

    proptest! {
        /// Greedy workspaces with slow jobs (below 10), honest ones with short jobs, in any order: the places are used up
        /// to 8/9, and a workspace that has none gets one at the next claim, or at the one after when others give way.
        #[test]
        fn nobody_starves_and_no_place_is_wasted(
            places in 8_u64..80,
            greedy in 0_u8..10,
            slow in 2_u32..50,
            honest in prop::collection::vec(prop::collection::btree_map(10_u8..14, 1_u64..6, 0..4), 1..60),
        ) {
            let waiting = (0..greedy).map(|holder| (holder, 1_000)).collect();
            let mut load = Load { places, waiting, since: BTreeMap::new(), running: Vec::new() };
            let mut none_before: Vec<u8> = Vec::new();
            for (now, arrivals) in (1..).zip(honest) {
                for (holder, jobs) in arrivals {
                    let waiting = load.waiting.entry(holder).or_default();
                    if *waiting == 0 {
                        load.since.insert(holder, now);
                    }
                    *waiting += jobs;
                }
                load.step(slow);
                let none: Vec<u8> =
                    load.demands().iter().filter(|one| one.due > 0 && one.held == 0).map(|one| one.holder).collect();
                let others = load.waiting.len() as u64;
                if others <= places {
                    let twice = none.iter().find(|one| none_before.contains(one));
                    prop_assert_eq!(twice, None, "waits for the second time");
                }
                none_before = none;
                if load.waiting.values().any(|waiting| *waiting > 0) && none_before.is_empty() {
                    // 8/9 of all are `places`; the rest is for newcomers.
                    prop_assert!(load.running.len() as u64 + 2 >= places, "{}", load.running.len());
                }
                load.work();
            }
        }
    }
}
