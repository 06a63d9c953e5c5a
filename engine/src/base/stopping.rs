//! Whether the process is about to stop: its host says so once, and whoever waits for long without doing anything gives up.
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Whether the process is about to stop.
#[derive(Default)]
pub(crate) struct Stopping {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    has_begun: bool,
    /// Numbers those who wait.
    latest: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Stopping {
    /// The process stops from now on.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.has_begun = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Whether it stops.
    pub(crate) fn has_begun(&self) -> bool {
        self.state().has_begun
    }

    /// Waits until it stops.
    pub(crate) async fn begun(&self) {
        let place = self.place();
        poll_fn(|context| {
            let mut state = place.stopping.state();
            if state.has_begun {
                return Poll::Ready(());
            }
            state.waiting.insert(place.number, context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn place(&self) -> Place<'_> {
        let mut state = self.state();
        state.latest += 1;
        Place { stopping: self, number: state.latest }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits.
struct Place<'a> {
    stopping: &'a Stopping,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.stopping.state().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use futures_util::future::join;
    use std::pin::pin;

    #[test]
    fn all_who_wait_are_told_and_who_gives_up_leaves_nothing_behind() {
        let stopping = Stopping::default();
        let mut both = Box::pin(join(stopping.begun(), stopping.begun()));
        assert_eq!(both.as_mut().now_or_never(), None);
        {
            let gives_up = pin!(stopping.begun());
            assert_eq!(gives_up.now_or_never(), None);
        }
        assert_eq!(stopping.state().waiting.len(), 2);
        assert!(!stopping.has_begun());
        stopping.begin();
        assert_eq!(both.as_mut().now_or_never(), Some(((), ())));
        drop(both);
        assert_eq!(stopping.begun().now_or_never(), Some(()));
        assert!(stopping.has_begun() && stopping.state().waiting.is_empty());
    }
}
