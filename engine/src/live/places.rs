//! How many live conversations one process carries.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::LIVE_SESSIONS_MAX;

/// The places of a process.
#[derive(Default)]
pub struct Places(AtomicUsize);

/// One of them, given back when it is dropped.
pub struct Place(Arc<Places>);

impl Places {
    /// A place, if one is free.
    pub fn take(self: &Arc<Self>) -> Option<Place> {
        let more = |taken| (taken < LIVE_SESSIONS_MAX).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Place(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_is_left() {
        let places = Arc::<Places>::default();
        let mut taken: Vec<Place> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(taken.len(), LIVE_SESSIONS_MAX);
        taken.pop();
        assert!(places.take().is_some());
    }
}
