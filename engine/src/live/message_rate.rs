//! The rate limit of a client's messages: a burst, then a steady rate.
use crate::base::limits::{LIVE_MESSAGE_MS, LIVE_MESSAGES_BURST};

/// Counts messages.
pub struct RateLimit {
    remaining: u32,
    counted_ms: i64,
}

impl RateLimit {
    /// A full burst for a new client.
    pub const fn new(now_ms: i64) -> Self {
        Self { remaining: LIVE_MESSAGES_BURST, counted_ms: now_ms }
    }

    /// Whether one more message is allowed.
    pub fn allows(&mut self, now_ms: i64) -> bool {
        let earned = now_ms.saturating_sub(self.counted_ms).max(0) / LIVE_MESSAGE_MS;
        self.counted_ms += earned * LIVE_MESSAGE_MS;
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.remaining = self.remaining.saturating_add(earned).min(LIVE_MESSAGES_BURST);
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
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
    fn a_burst_then_a_steady_rate() {
        let mut limit = RateLimit::new(0);
        let burst = (0..100).filter(|_| limit.allows(0)).count();
        assert_eq!(burst, LIVE_MESSAGES_BURST as usize);
        assert!(!limit.allows(LIVE_MESSAGE_MS - 1));
        assert!(limit.allows(LIVE_MESSAGE_MS));
        assert!(!limit.allows(LIVE_MESSAGE_MS));
        let burst = (0..100).filter(|_| limit.allows(i64::MAX)).count();
        assert_eq!(burst, LIVE_MESSAGES_BURST as usize);
    }
}
