//! Identifiers: `<prefix>_` and a lower-case ULID made from the ports' time and bytes.
use std::sync::Mutex;

use ulid::Ulid;

use crate::ports::{Clock, Random};

/// Every kind of id, by its prefix.
pub mod prefix {
    #![allow(missing_docs, reason = "the names say it")]
    pub const WORKSPACE: &str = "ws";
    pub const KEY: &str = "key";
    pub const ASSISTANT: &str = "asst";
    pub const TOOL: &str = "tool";
    pub const DOCUMENT: &str = "doc";
    pub const WEBHOOK: &str = "hook";
    pub const PERSONA: &str = "pers";
    pub const SCENARIO: &str = "scen";
    pub const SIMULATION: &str = "sim";
    pub const RUN: &str = "run";
    pub const BATCH: &str = "batch";
    pub const REQUEST: &str = "req";
    pub const JOB: &str = "job";
    pub const LEASE: &str = "lease";
}

/// Longer texts are no id of ours.
pub const ID_CHARS_MAX: u64 = 64;

/// Makes ids. Within one process they sort in the order they were made, also within a millisecond.
#[derive(Default)]
pub struct Ids {
    last: Mutex<Option<Ulid>>,
}

impl Ids {
    /// A new id with `prefix`.
    pub fn make(&self, prefix: &str, clock: &dyn Clock, random: &dyn Random) -> String {
        let now_ms = u64::try_from(clock.now_ms()).unwrap_or(0);
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let next = match *last {
            Some(previous) if previous.timestamp_ms() >= now_ms => previous.increment().ok(),
            _ => None,
        };
        let ulid = next.unwrap_or_else(|| {
            let mut bytes = [0; 16];
            // The top bit stays clear, so that counting up within the millisecond cannot overflow.
            random.fill(&mut bytes[..10]);
            bytes[9] &= 0x7f;
            Ulid::from_parts(now_ms, u128::from_le_bytes(bytes))
        });
        *last = Some(ulid);
        let mut id = String::with_capacity(prefix.len() + 27);
        id.push_str(prefix);
        id.push('_');
        let mut buffer = [0; ulid::ULID_LEN];
        id.push_str(ulid.array_to_str(&mut buffer));
        id.make_ascii_lowercase();
        id
    }
}
