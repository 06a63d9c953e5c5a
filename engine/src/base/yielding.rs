//! Lets other tasks of the thread run, in the middle of work that waits for nothing.
use std::future::poll_fn;
use std::task::Poll;

/// Goes on when the tasks that are ready have had their turn.
pub async fn yield_now() {
    let mut is_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_second_poll_goes_on() {
        let mut future = pin!(yield_now());
        assert_eq!(future.as_mut().now_or_never(), None);
        assert_eq!(future.now_or_never(), Some(()));
    }
}
