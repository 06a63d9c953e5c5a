//! The rate limit of a client's messages: a burst, then a steady rate.
use crate::base::limits::{LIVE_MESSAGE_MS, LIVE_MESSAGES_BURST};

/// Counts messages.
pub struct Pace {
    left: u32,
    counted_ms: i64,
}

impl Pace {
    /// The limit of a new client.
    pub const fn new(now_ms: i64) -> Self {
        Self { left: LIVE_MESSAGES_BURST, counted_ms: now_ms }
    }

    /// Whether one more message is allowed.
    pub fn allows(&mut self, now_ms: i64) -> bool {
        let earned = now_ms.saturating_sub(self.counted_ms).max(0) / LIVE_MESSAGE_MS;
        self.counted_ms += earned * LIVE_MESSAGE_MS;
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(earned).min(LIVE_MESSAGES_BURST);
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_one_at_a_time() {
        let mut pace = Pace::new(0);
        let burst = (0..100).filter(|_| pace.allows(0)).count();
        assert_eq!(burst, LIVE_MESSAGES_BURST as usize);
        assert!(!pace.allows(LIVE_MESSAGE_MS - 1));
        assert!(pace.allows(LIVE_MESSAGE_MS));
        assert!(!pace.allows(LIVE_MESSAGE_MS));
        let burst = (0..100).filter(|_| pace.allows(i64::MAX)).count();
        assert_eq!(burst, LIVE_MESSAGES_BURST as usize);
    }
}
