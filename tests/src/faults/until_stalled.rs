//! Work that may be killed in the middle.
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a future until it ends or nothing wakes it any more; `None` for one that has not ended, which is dropped in the state
/// it is in. A plan's kill stalls a future, and a turn that it gives to other tasks does not.
pub fn until_stalled<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        if !woken.0.swap(false, Ordering::Relaxed) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends at the second poll, as work does that gives the other tasks a turn.
    async fn turn() {
        let mut is_first = true;
        std::future::poll_fn(|context| {
            if !std::mem::take(&mut is_first) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn what_gives_a_turn_ends_and_what_waits_for_nothing_does_not() {
        assert_eq!(until_stalled(turn()), Some(()));
        let stalled = async {
            turn().await;
            std::future::pending::<()>().await;
        };
        assert_eq!(until_stalled(stalled), None);
    }
}
