//! Identifiers: `<prefix>_` and a lower-case ULID made from the ports' clock and random bytes.
use std::sync::Mutex;

/// The prefix of each type of id.
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
    pub const CALL: &str = "call";
    pub const RECORDING: &str = "rec";
    pub const RUN: &str = "run";
    pub const BATCH: &str = "batch";
    pub const REQUEST: &str = "req";
    pub const JOB: &str = "job";
    pub const LEASE: &str = "lease";
    pub const TEST_TOKEN: &str = "ttok";
    pub const TOOL_TEST: &str = "ttest";
    pub const EVENT: &str = "evt";
    pub const EXPORT: &str = "exp";
    pub const IMPORT: &str = "imp";
    pub const MOVE: &str = "mov";
    pub const DELIVERY: &str = "dlv";
    pub const ACCOUNT: &str = "acct";
    pub const SESSION: &str = "sess";
    pub const SIGN_IN: &str = "sgn";
    pub const INVITATION: &str = "inv";
    pub const AUDIT_ENTRY: &str = "aud";
}

/// An id of one kind of thing. A type for each keeps the ids of two things from changing places.
pub trait Id: Sized {
    /// What ids of this kind begin with.
    const PREFIX: &'static str;

    /// An id that storage or another part of the service has given out before.
    fn from_stored(text: impl Into<String>) -> Self;

    /// The id as text.
    fn as_str(&self) -> &str;

    /// The 16 bytes of the id, for compact encodings; `None` for a text that is not an id of this kind.
    fn to_bytes(&self) -> Option<[u8; 16]> {
        to_bytes(Self::PREFIX, self.as_str())
    }

    /// The id that [`Id::to_bytes`] encoded.
    fn from_bytes(bytes: [u8; 16]) -> Self {
        Self::from_stored(write(Self::PREFIX, u128::from_be_bytes(bytes)))
    }
}

macro_rules! ids {
    ($($(#[$about:meta])* $name:ident = $prefix:ident;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl Id for $name {
            const PREFIX: &'static str = prefix::$prefix;

            fn from_stored(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        /// A plain string on the wire.
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    )*};
}

ids! {
    /// The id of a workspace.
    WorkspaceId = WORKSPACE;
    /// The id of an API key.
    KeyId = KEY;
    /// The id of an assistant.
    AssistantId = ASSISTANT;
    /// The id of a tool.
    ToolId = TOOL;
    /// The id of a knowledge document.
    DocumentId = DOCUMENT;
    /// The id of a webhook.
    WebhookId = WEBHOOK;
    /// The id of an event.
    EventId = EVENT;
    /// The id of a delivery of an event to a webhook.
    DeliveryId = DELIVERY;
    /// The id of a persona.
    PersonaId = PERSONA;
    /// The id of a scenario.
    ScenarioId = SCENARIO;
    /// The id of a simulation.
    SimulationId = SIMULATION;
    /// The id of a simulation run.
    RunId = RUN;
    /// The id of a batch of runs.
    BatchId = BATCH;
    /// The id of a call.
    CallId = CALL;
    /// The id of a recording.
    RecordingId = RECORDING;
    /// The id of a job.
    JobId = JOB;
    /// The id of a test token.
    TestTokenId = TEST_TOKEN;
    /// The id of the request that tests a tool.
    ToolTestId = TOOL_TEST;
    /// The id of a person's account.
    AccountId = ACCOUNT;
    /// The id of a person's session in the dashboard.
    SessionId = SESSION;
    /// The id of a code and a link to sign in with.
    SignInId = SIGN_IN;
    /// The id of an invitation to a workspace.
    InvitationId = INVITATION;
    /// The id of an entry of the audit log.
    AuditEntryId = AUDIT_ENTRY;
    /// The id of a request.
    RequestId = REQUEST;
}

/// Generates ids. Within one process they sort in the order of creation, also within one millisecond.
#[derive(Default)]
pub struct Ids {
    last: Mutex<u128>,
}

/// A ULID is 48 bits of milliseconds above 80 random bits (github.com/ulid/spec).
const RANDOM_BITS: u32 = 80;
/// Crockford's base 32, in lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 128 bits are 26 digits of base 32.
pub(crate) const ULID_CHARS: usize = 26;

impl Ids {
    /// A new id with `prefix`.
    pub fn generate(&self, prefix: &str, now_ms: i64, fill_random: impl FnOnce(&mut [u8])) -> String {
        let now_ms = u128::try_from(now_ms).unwrap_or(0);
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let ulid = if *last >> RANDOM_BITS >= now_ms && *last != 0 {
            *last + 1
        } else {
            let mut bytes = [0; 16];
            // The top bit stays clear, so that increments cannot overflow into the time.
            fill_random(&mut bytes[..10]);
            bytes[9] &= 0x7f;
            (now_ms << RANDOM_BITS) | u128::from_le_bytes(bytes)
        };
        *last = ulid;
        drop(last);
        write(prefix, ulid)
    }
}

/// The smallest id with `prefix` for the time `ms`: ids that sort before it are older.
pub fn lower_bound(prefix: &str, ms: i64) -> String {
    write(prefix, u128::try_from(ms).unwrap_or(0) << RANDOM_BITS)
}

/// Whether this is what follows an id's prefix and `_`.
pub(crate) fn is_ulid(text: &str) -> bool {
    text.len() == ULID_CHARS && text.bytes().all(|digit| ALPHABET.contains(&digit))
}

fn write(prefix: &str, ulid: u128) -> String {
    let mut id = String::with_capacity(prefix.len() + 1 + ULID_CHARS);
    id.push_str(prefix);
    id.push('_');
    for digit in (0..ULID_CHARS).rev() {
        let value = (ulid >> (digit * 5)) & 31;
        id.push(char::from(ALPHABET[value as usize]));
    }
    id
}

fn to_bytes(prefix: &str, id: &str) -> Option<[u8; 16]> {
    let digits = id.strip_prefix(prefix)?.strip_prefix('_')?;
    if digits.len() != ULID_CHARS {
        return None;
    }
    digits
        .bytes()
        .try_fold(0u128, |ulid, digit| {
            let value = ALPHABET.iter().position(|known| *known == digit)?;
            Some(ulid.checked_mul(32)? | u128::try_from(value).ok()?)
        })
        .map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generate(ids: &Ids, prefix: &str, now_ms: i64) -> String {
        ids.generate(prefix, now_ms, |bytes| bytes.fill(0xff))
    }

    #[test]
    fn the_time_is_the_first_ten_digits() {
        // The example of the ULID specification: 1469918176385 is 01ARYZ6S41.
        let id = generate(&Ids::default(), "asst", 1_469_918_176_385);
        assert_eq!(&id[..15], "asst_01aryz6s41");
        assert_eq!(id.len(), "asst_".len() + ULID_CHARS);
    }

    #[test]
    fn the_lower_bound_of_a_time_separates_older_from_newer_ids() {
        let ids = Ids::default();
        let (before, then) = (generate(&ids, "evt", 6), generate(&ids, "evt", 7));
        let bound = lower_bound("evt", 7);
        assert!(before < bound && bound < then, "{before} {bound} {then}");
    }

    #[test]
    fn ids_sort_by_creation_even_when_the_clock_stops_or_goes_back() {
        let ids = Ids::default();
        let made: Vec<String> = [5, 5, 5, 4, 6].iter().map(|ms| generate(&ids, "run", *ms)).collect();
        let mut sorted = made.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(made, sorted);
    }
}
