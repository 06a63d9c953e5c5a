//! Turns for long reads: a few run at once, one asker has some of them at most, and the next turn goes to whoever has the
//! fewest, then to whoever got one the longest ago. A search of one workspace so waits for no search of another one, as
//! long as not many search at once.
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Waiting reads of one asker; beyond it, they are refused.
const WAITING_MAX: usize = 64;
/// Waiting reads of all.
const ALL_WAITING_MAX: usize = 1_024;

/// Who may read.
#[derive(Clone)]
pub struct Turns(Arc<Mutex<State>>);

struct State {
    free: usize,
    /// How many turns one asker can have at once.
    of_one: usize,
    /// Turns that were ever given.
    given: u64,
    /// Those who have turns or wait.
    askers: BTreeMap<String, Asker>,
    waiting: VecDeque<(String, oneshot::Sender<Turn>)>,
}

#[derive(Default)]
struct Asker {
    running: usize,
    /// The number of its latest turn.
    latest: u64,
}

/// The right to read; dropping it passes it on.
pub struct Turn {
    asker: String,
    turns: Turns,
}

impl Turns {
    /// `count` reads at once, at most `of_one` of them of one asker.
    pub fn new(count: usize, of_one: usize) -> Self {
        let (askers, waiting) = (BTreeMap::new(), VecDeque::new());
        Self(Arc::new(Mutex::new(State { free: count, of_one, given: 0, askers, waiting })))
    }

    /// Waits for a turn; `None` when too many wait.
    pub async fn take(&self, asker: &str) -> Option<Turn> {
        let waiting = {
            let mut state = self.state();
            if state.free > 0 && state.may_run(asker) {
                state.free -= 1;
                return Some(self.turn(&mut state, asker.to_owned()));
            }
            // Those whose clients have gone.
            state.waiting.retain(|(_, turn)| !turn.is_closed());
            let own = state.waiting.iter().filter(|(other, _)| other == asker).count();
            if own >= WAITING_MAX || state.waiting.len() >= ALL_WAITING_MAX {
                return None;
            }
            let (turn, waiting) = oneshot::channel();
            state.waiting.push_back((asker.to_owned(), turn));
            waiting
        };
        waiting.await.ok()
    }

    fn turn(&self, state: &mut State, asker: String) -> Turn {
        state.given += 1;
        let latest = state.given;
        let running = state.askers.get(&asker).map_or(0, |known| known.running) + 1;
        state.askers.insert(asker.clone(), Asker { running, latest });
        Turn { asker, turns: self.clone() }
    }

    /// A turn is over: the next one. Returns a turn that was not taken, to be dropped without the lock.
    fn pass_on(&self, asker: &str) -> Option<Turn> {
        let mut state = self.state();
        if let Some(known) = state.askers.get_mut(asker) {
            known.running = known.running.saturating_sub(1);
        }
        let next =
            (0..state.waiting.len()).filter(|at| state.may_run(&state.waiting[*at].0)).min_by_key(|at| {
                state.askers.get(&state.waiting[*at].0).map(|known| (known.running, known.latest))
            });
        let untaken = match next.and_then(|at| state.waiting.remove(at)) {
            Some((asker, waiting)) => {
                let turn = self.turn(&mut state, asker);
                waiting.send(turn).err()
            }
            None => {
                state.free += 1;
                None
            }
        };
        let State { askers, waiting, .. } = &mut *state;
        askers.retain(|name, known| known.running > 0 || waiting.iter().any(|(other, _)| other == name));
        untaken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_run(&self, asker: &str) -> bool {
        self.askers.get(asker).is_none_or(|known| known.running < self.of_one)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let untaken = self.turns.clone().pass_on(&self.asker);
        drop(untaken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(turns: &Turns, asker: &'static str) -> tokio::task::JoinHandle<Option<Turn>> {
        let turns = turns.clone();
        tokio::spawn(async move { turns.take(asker).await })
    }

    fn free_and_known(turns: &Turns) -> (usize, usize) {
        let state = turns.state();
        (state.free, state.askers.len())
    }

    #[tokio::test]
    async fn who_has_the_fewest_is_next() {
        let turns = Turns::new(2, 2);
        let first = turns.take("greedy").await.unwrap();
        let second = turns.take("greedy").await.unwrap();
        let greedy: Vec<_> = (0..10).map(|_| waiting(&turns, "greedy")).collect();
        tokio::task::yield_now().await;
        let honest = waiting(&turns, "honest");
        tokio::task::yield_now().await;
        drop(first);
        assert!(honest.await.unwrap().is_some(), "before ten others that asked earlier");
        drop(second);
        for one in greedy {
            assert!(one.await.unwrap().is_some());
        }
        assert_eq!(free_and_known(&turns), (2, 0));
    }

    #[tokio::test]
    async fn a_turn_stays_free_for_others() {
        let turns = Turns::new(3, 2);
        let held = [turns.take("greedy").await.unwrap(), turns.take("greedy").await.unwrap()];
        let third = waiting(&turns, "greedy");
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        for _ in 0..10 {
            assert!(turns.take("honest").await.is_some(), "at once");
        }
        assert!(!third.is_finished(), "what others leave is not for it");
        drop(held);
        assert!(third.await.unwrap().is_some());
        assert_eq!(free_and_known(&turns), (3, 0));
    }

    #[tokio::test]
    async fn who_had_a_turn_is_behind_who_had_none() {
        let turns = Turns::new(1, 1);
        let held = turns.take("greedy").await.unwrap();
        let greedy: Vec<_> = (0..3).map(|_| waiting(&turns, "greedy")).collect();
        tokio::task::yield_now().await;
        let honest = waiting(&turns, "honest");
        tokio::task::yield_now().await;
        drop(held);
        assert!(honest.await.unwrap().is_some());
        for one in greedy {
            assert!(one.await.unwrap().is_some());
        }
    }

    #[tokio::test]
    async fn who_no_longer_waits_gets_no_turn() {
        let turns = Turns::new(1, 1);
        let held = turns.take("a").await.unwrap();
        let gone = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take("b").await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err());
        drop(held);
        assert!(turns.take("a").await.is_some());
        for _ in 0..2 * WAITING_MAX {
            assert!(turns.take("a").await.is_some());
        }
    }
}
