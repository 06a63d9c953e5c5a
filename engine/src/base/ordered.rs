//! Ordered sets and maps of what an iterator gives, inserted one by one. `collect` sorts first, and compiles that sort for
//! each type of element, which makes the Worker larger.
use std::collections::{BTreeMap, BTreeSet};

/// Beside [`Iterator::collect`].
pub trait Ordered: IntoIterator + Sized {
    /// A set of the items.
    fn into_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }

    /// A map of the pairs; the last one of a key counts.
    fn into_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: IntoIterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }
}

impl<I: IntoIterator> Ordered for I {}
