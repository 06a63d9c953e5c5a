//! A limit on wrong keys: after a number of them from one address within a window, 429 until the window ends. The
//! counts are in memory for a bounded number of addresses, so guessing keys causes no database queries.
use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::base::limits::{
    INVALID_CREDENTIALS_ADDRESSES_MAX, INVALID_CREDENTIALS_MAX, INVALID_CREDENTIALS_WINDOW_MS,
};

struct Window {
    started_ms: i64,
    count: u32,
}

/// Counts wrong keys by address.
#[derive(Default)]
pub struct Throttle {
    windows: BTreeMap<IpAddr, Window>,
}

impl Throttle {
    /// Counts one wrong key. `Some(seconds)` if the address must wait.
    pub fn wrong_key(&mut self, address: IpAddr, now_ms: i64) -> Option<i64> {
        if self.windows.len() >= INVALID_CREDENTIALS_ADDRESSES_MAX && !self.windows.contains_key(&address) {
            self.make_room(now_ms);
        }
        let window = self.windows.entry(address).or_insert(Window { started_ms: now_ms, count: 0 });
        let age_ms = now_ms - window.started_ms;
        if !(0..INVALID_CREDENTIALS_WINDOW_MS).contains(&age_ms) {
            *window = Window { started_ms: now_ms, count: 0 };
        }
        if window.count < INVALID_CREDENTIALS_MAX {
            window.count += 1;
            return None;
        }
        let left_ms = window.started_ms + INVALID_CREDENTIALS_WINDOW_MS - now_ms;
        Some((left_ms + 999) / 1000)
    }

    /// Whether the next wrong key from this address must wait.
    pub fn is_over(&self, address: IpAddr, now_ms: i64) -> bool {
        self.windows.get(&address).is_some_and(|window| {
            let age_ms = now_ms - window.started_ms;
            (0..INVALID_CREDENTIALS_WINDOW_MS).contains(&age_ms) && window.count >= INVALID_CREDENTIALS_MAX
        })
    }

    fn make_room(&mut self, now_ms: i64) {
        self.windows
            .retain(|_, window| (0..INVALID_CREDENTIALS_WINDOW_MS).contains(&(now_ms - window.started_ms)));
        if self.windows.len() >= INVALID_CREDENTIALS_ADDRESSES_MAX {
            // The table is full: remove the older half at once, so that many new addresses cost one sweep per half
            // table, not one per wrong key.
            let mut starts: Vec<i64> = self.windows.values().map(|w| w.started_ms).collect();
            starts.sort_unstable();
            let middle = starts[starts.len() / 2];
            self.windows.retain(|_, window| window.started_ms > middle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_wrong_key_waits_until_the_window_ends() {
        let mut throttle = Throttle::default();
        let address = IpAddr::from([1, 2, 3, 4]);
        for _ in 0..10 {
            assert_eq!(throttle.wrong_key(address, 5_000), None);
        }
        assert!(throttle.is_over(address, 64_999) && !throttle.is_over(address, 65_000));
        assert_eq!(throttle.wrong_key(address, 5_000), Some(60));
        assert_eq!(throttle.wrong_key(address, 64_001), Some(1));
        assert_eq!(throttle.wrong_key(IpAddr::from([1, 2, 3, 5]), 5_000), None);
        assert_eq!(throttle.wrong_key(address, 65_000), None);
    }

    #[test]
    fn the_table_stays_bounded() {
        let mut throttle = Throttle::default();
        for n in 0..50_000_u32 {
            throttle.wrong_key(IpAddr::from(n.to_be_bytes()), i64::from(n) / 10);
        }
        assert!(throttle.windows.len() <= INVALID_CREDENTIALS_ADDRESSES_MAX);
    }
}
