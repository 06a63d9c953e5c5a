//! Turns for long reads: a few run at once, and the next turn goes to whoever has the fewest, then to who waits longest.
//! One asker may have all turns as long as nobody else asks.
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
    running: BTreeMap<String, usize>,
    waiting: VecDeque<(String, oneshot::Sender<Turn>)>,
}

/// The right to read; dropping it passes it on.
pub struct Turn {
    asker: String,
    turns: Turns,
}

impl Turns {
    /// `count` reads at once.
    pub fn new(count: usize) -> Self {
        let state = State { free: count, running: BTreeMap::new(), waiting: VecDeque::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a turn; `None` when too many wait.
    pub async fn take(&self, asker: &str) -> Option<Turn> {
        let waiting = {
            let mut state = self.state();
            if state.free > 0 {
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
        *state.running.entry(asker.clone()).or_default() += 1;
        Turn { asker, turns: self.clone() }
    }

    /// A turn is over: the next one. Returns a turn that was not taken, to be dropped without the lock.
    fn pass_on(&self, asker: &str) -> Option<Turn> {
        let mut state = self.state();
        if let Some(running) = state.running.get_mut(asker) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(asker);
            }
        }
        let next = (0..state.waiting.len())
            .min_by_key(|at| state.running.get(&state.waiting[*at].0).copied().unwrap_or_default());
        match next.and_then(|at| state.waiting.remove(at)) {
            Some((asker, waiting)) => {
                let turn = self.turn(&mut state, asker);
                waiting.send(turn).err()
            }
            None => {
                state.free += 1;
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[tokio::test]
    async fn who_has_the_fewest_is_next() {
        let turns = Turns::new(2);
        let first = turns.take("greedy").await.unwrap();
        let second = turns.take("greedy").await.unwrap();
        let waiting = |asker: &'static str| {
            let turns = turns.clone();
            tokio::spawn(async move { turns.take(asker).await })
        };
        let greedy: Vec<_> = (0..10).map(|_| waiting("greedy")).collect();
        tokio::task::yield_now().await;
        let honest = waiting("honest");
        tokio::task::yield_now().await;
        drop(first);
        assert!(honest.await.unwrap().is_some(), "before ten others that asked earlier");
        drop(second);
        for one in greedy {
            assert!(one.await.unwrap().is_some());
        }
        assert_eq!(turns.state().free, 2);
    }

    #[tokio::test]
    async fn who_no_longer_waits_gets_no_turn() {
        let turns = Turns::new(1);
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
