//! Values that several users share while any of them uses them: a value is dropped with its last user.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Entries before unused ones are looked for.
const SWEEP_MIN: usize = 64;

/// What is in use, by key.
#[derive(Debug)]
pub struct SharedCache<K, V> {
    entries: Mutex<Entries<K, V>>,
}

#[derive(Debug)]
struct Entries<K, V> {
    values: BTreeMap<K, Weak<V>>,
    sweep_at: usize,
}

impl<K: Ord, V> Default for SharedCache<K, V> {
    fn default() -> Self {
        Self { entries: Mutex::new(Entries { values: BTreeMap::new(), sweep_at: SWEEP_MIN }) }
    }
}

impl<K: Ord, V> SharedCache<K, V> {
    /// The value that somebody uses under this key.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.with(|entries| entries.values.get(key).and_then(Weak::upgrade))
    }

    /// Shares `value`, unless somebody else has shared one under this key meanwhile: then that one.
    pub fn share(&self, key: K, value: Arc<V>) -> Arc<V> {
        self.with(|entries| {
            if let Some(known) = entries.values.get(&key).and_then(Weak::upgrade) {
                return known;
            }
            entries.values.insert(key, Arc::downgrade(&value));
            // The memory of the entries stays within twice what is in use.
            if entries.values.len() >= entries.sweep_at {
                entries.values.retain(|_, value| value.strong_count() > 0);
                entries.sweep_at = SWEEP_MIN.max(entries.values.len() * 2);
            }
            value
        })
    }

    fn with<T>(&self, action: impl FnOnce(&mut Entries<K, V>) -> T) -> T {
        action(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lives_as_long_as_its_users() {
        let cache = SharedCache::default();
        let first = cache.share(1, Arc::new("one"));
        assert!(Arc::ptr_eq(&first, &cache.share(1, Arc::new("another"))));
        assert!(Arc::ptr_eq(&first, &cache.share(2, cache.get(&1).unwrap())), "under another key");
        drop(first);
        assert_eq!((cache.get(&1), cache.get(&2)), (None, None));
        assert_eq!(*cache.share(1, Arc::new("again")), "again");
    }

    #[test]
    fn unused_entries_do_not_pile_up() {
        let cache = SharedCache::default();
        let used: Vec<_> = (0..200).map(|key| cache.share(key, Arc::new(key))).collect();
        (1_000..10_000).for_each(|key| drop(cache.share(key, Arc::new(key))));
        let entries = cache.with(|entries| entries.values.len());
        assert!(entries <= 2 * used.len() + SWEEP_MIN, "{entries}");
        assert!((0..200).all(|key| cache.get(&key).is_some()));
    }
}
