//! Documents that were fetched, kept for a while: a few, the oldest of which gives way to the next.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Documents at once. Nobody but the operator names the addresses.
const DOCUMENTS_MAX: usize = 8;

/// Documents by address, with the time of each.
#[derive(Debug, Default)]
pub struct Fetched(Mutex<BTreeMap<String, (i64, Bytes)>>);

impl Fetched {
    /// The document, if it was fetched within `age_ms`. A clock that was set back makes every document too old.
    pub fn get(&self, url: &str, now_ms: i64, age_ms: i64) -> Option<Bytes> {
        let documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at_ms, body) = documents.get(url)?;
        (0..age_ms).contains(&(now_ms - at_ms)).then(|| body.clone())
    }

    /// Keeps a document.
    pub fn keep(&self, url: &str, now_ms: i64, body: Bytes) {
        let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        documents.insert(url.to_owned(), (now_ms, body));
        while documents.len() > DOCUMENTS_MAX {
            let oldest = documents.iter().min_by_key(|(_, (at_ms, _))| *at_ms).map(|(url, _)| url.clone());
            let Some(oldest) = oldest else { break };
            documents.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_good_for_its_age_and_few_are_kept() {
        let fetched = Fetched::default();
        fetched.keep("a", 1_000, Bytes::from_static(b"one"));
        assert_eq!(fetched.get("a", 1_000, 60).as_deref(), Some(&b"one"[..]));
        assert!(fetched.get("a", 1_059, 60).is_some() && fetched.get("a", 1_060, 60).is_none());
        assert!(fetched.get("a", 999, 60).is_none() && fetched.get("b", 1_000, 60).is_none());
        for n in 0..DOCUMENTS_MAX {
            fetched.keep(&format!("b{n}"), 1_001, Bytes::new());
        }
        assert!(fetched.get("a", 1_002, 60).is_none() && fetched.get("b0", 1_002, 60).is_some());
    }
}
