//! Permits limit the number of live conversations in one process.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::limits::LIVE_SESSIONS_MAX;

/// Counts the permits in use; [`LIVE_SESSIONS_MAX`] exist.
#[derive(Default)]
pub struct Permits(AtomicUsize);

/// Allows one live conversation; dropping it returns it.
pub struct Permit(Arc<Permits>);

impl Permits {
    /// Takes a permit; `None` when all are in use.
    pub fn take(self: &Arc<Self>) -> Option<Permit> {
        let more = |taken| (taken < LIVE_SESSIONS_MAX).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Permit(self.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_permit_is_free_again() {
        let permits = Arc::<Permits>::default();
        let mut taken: Vec<Permit> = std::iter::from_fn(|| permits.take()).collect();
        assert_eq!(taken.len(), LIVE_SESSIONS_MAX);
        taken.pop();
        assert!(permits.take().is_some());
    }
}
