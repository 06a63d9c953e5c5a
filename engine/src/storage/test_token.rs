//! The test token: permits one conversation with one assistant, until a given time and with a maximum duration.
//!
//! The token contains its claims and a signature, so nothing is stored until it is used. It opens only one conversation,
//! because the batch that opens the conversation inserts the token's id.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::base::ids::{AssistantId, Id, TestTokenId, WorkspaceId};
use crate::base::values::{Metadata, Variables};
use crate::ports::statement::{Rows, Statement};
use crate::sql;
use crate::storage::column::Column as _;
use crate::storage::fault::Fault;
use crate::storage::signing::test_token_signature;

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestToken {
    /// `ttok_…`, which is stored when the token is used.
    pub id: TestTokenId,
    /// The workspace that pays.
    pub workspace_id: WorkspaceId,
    /// The assistant that answers.
    pub assistant_id: AssistantId,
    /// When it expires.
    pub expires_at_ms: i64,
    /// The maximum duration of the conversation.
    pub max_duration_seconds: u16,
    /// The token that the link was made with, if its holder may get another one until it expires (`live/restart.rs`).
    pub first_id: Option<TestTokenId>,
}

/// What the conversation of a token starts with: stored, since an address has no room for it.
#[derive(Debug, Default)]
pub(crate) struct TokenValues {
    pub variables: Variables,
    pub metadata: Metadata,
}

impl TokenValues {
    /// Stores those of a token.
    pub fn insert(&self, token: &TestToken) -> Statement {
        sql!(
            "INSERT INTO test_token_values (id, workspace_id, expires_at, variables, metadata)
             VALUES (:id, :ws, :expires_at, :variables, :metadata)",
            id = token.values_id(),
            expires_at = token.expires_at_ms,
            variables = self.variables.value(),
            metadata = self.metadata.value(),
        )
    }

    /// Reads those of a token.
    pub fn select(token: &TestToken) -> Statement {
        sql!(
            "SELECT variables, metadata FROM test_token_values WHERE workspace_id = :ws AND id = :id",
            id = token.values_id()
        )
    }

    /// The answer to [`TokenValues::select`]; a token may have none.
    pub fn read(rows: &Rows) -> Result<Option<Self>, Fault> {
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Self { variables: row.json("variables")?, metadata: row.json("metadata")? }))
    }

    /// Deletes those of a token.
    pub fn delete(token: &TestToken) -> Statement {
        sql!("DELETE FROM test_token_values WHERE workspace_id = :ws AND id = :id", id = token.values_id())
    }
}

/// The prefix of all tokens; it contains the version of the layout.
const MARK: &str = "vt2_";
const ID_BYTES: usize = 16;
/// In place of an id, that there is none.
const NONE: [u8; ID_BYTES] = [0; ID_BYTES];
/// Milliseconds since 1970, until the year 10889.
const TIME_BYTES: usize = 6;
const CLAIMS_BYTES: usize = 4 * ID_BYTES + TIME_BYTES + 2;
const SIGNATURE_BYTES: usize = 32;

impl TestToken {
    /// Whether its holder may get another one until it expires.
    pub fn is_restartable(&self) -> bool {
        self.first_id.is_some()
    }

    /// The token under whose id its values are stored.
    fn values_id(&self) -> &TestTokenId {
        self.first_id.as_ref().unwrap_or(&self.id)
    }

    /// The signed token.
    pub fn sign(&self, server_secret: &str) -> Result<String, Fault> {
        let claims = self.claims().ok_or_else(|| Fault::Bug(format!("{} cannot be packed", self.id)))?;
        let mut bytes = claims.to_vec();
        bytes.extend_from_slice(&test_token_signature(server_secret, &claims));
        Ok(format!("{MARK}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The claims of a token that this server has signed. It does not check whether the token has expired.
    pub fn read(server_secret: &str, text: &str) -> Option<Self> {
        const ENCODED_CHARS: usize = (CLAIMS_BYTES + SIGNATURE_BYTES).div_ceil(3) * 4;
        let encoded = text.strip_prefix(MARK).filter(|encoded| encoded.len() <= ENCODED_CHARS)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let (claims, signature) = bytes.split_at_checked(CLAIMS_BYTES)?;
        let genuine = test_token_signature(server_secret, claims);
        if !bool::from(genuine.ct_eq(signature)) {
            return None;
        }
        let (workspace, rest) = claims.split_first_chunk::<ID_BYTES>()?;
        let (assistant, rest) = rest.split_first_chunk::<ID_BYTES>()?;
        let (id, rest) = rest.split_first_chunk::<ID_BYTES>()?;
        let (time, rest) = rest.split_first_chunk::<TIME_BYTES>()?;
        let (duration, rest) = rest.split_first_chunk::<2>()?;
        let rest: &[u8; ID_BYTES] = rest.try_into().ok()?;
        let mut expires_at = [0; 8];
        expires_at[8 - TIME_BYTES..].copy_from_slice(time);
        Some(Self {
            id: Id::from_bytes(*id),
            workspace_id: Id::from_bytes(*workspace),
            assistant_id: Id::from_bytes(*assistant),
            expires_at_ms: i64::from_be_bytes(expires_at),
            max_duration_seconds: u16::from_be_bytes(*duration),
            first_id: Some(rest).filter(|rest| **rest != NONE).map(|rest| Id::from_bytes(*rest)),
        })
    }

    fn claims(&self) -> Option<[u8; CLAIMS_BYTES]> {
        let time = self.expires_at_ms.to_be_bytes();
        let (unused, time) = time.split_at_checked(8 - TIME_BYTES)?;
        if unused.iter().any(|byte| *byte != 0) {
            return None;
        }
        let first = self.first_id.as_ref().map_or(Some(NONE), Id::to_bytes)?;
        let parts: [&[u8]; 6] = [
            &self.workspace_id.to_bytes()?,
            &self.assistant_id.to_bytes()?,
            &self.id.to_bytes()?,
            time,
            &self.max_duration_seconds.to_be_bytes(),
            &first,
        ];
        parts.concat().try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> TestToken {
        TestToken {
            id: Id::from_stored("ttok_01aryz6s41tsv4rrffq69g5fav"),
            workspace_id: Id::from_stored("ws_01aryz6s41tsv4rrffq69g5faw"),
            assistant_id: Id::from_stored("asst_01aryz6s41tsv4rrffq69g5fax"),
            expires_at_ms: 1_767_225_600_123,
            max_duration_seconds: 3_600,
            first_id: Some(Id::from_stored("ttok_01aryz6s41tsv4rrffq69g5fas")),
        }
    }

    #[test]
    fn a_token_returns_its_claims() {
        let text = token().sign("a server secret").unwrap();
        assert_eq!(text.len(), 143, "{text}");
        assert_eq!(TestToken::read("a server secret", &text), Some(token()));
        let once = TestToken { first_id: None, ..token() };
        assert_eq!(TestToken::read("a server secret", &once.sign("a server secret").unwrap()), Some(once));
    }

    #[test]
    fn changed_tokens_are_rejected() {
        let text = token().sign("a server secret").unwrap();
        assert_eq!(TestToken::read("another secret", &text), None);
        for place in 0..text.len() {
            for other in ['A', 'B', '_', '='] {
                let mut altered: Vec<char> = text.chars().collect();
                if altered[place] == other {
                    continue;
                }
                altered[place] = other;
                let altered: String = altered.into_iter().collect();
                assert_eq!(TestToken::read("a server secret", &altered), None, "{altered}");
            }
            assert_eq!(TestToken::read("a server secret", &text[..place]), None);
        }
        assert_eq!(TestToken::read("a server secret", &format!("{text}A")), None);
        assert_eq!(TestToken::read("a server secret", ""), None);
    }

    #[test]
    fn invalid_ids_cannot_be_signed() {
        for wrong in [
            TestToken { expires_at_ms: -1, ..token() },
            TestToken { expires_at_ms: i64::MAX, ..token() },
            TestToken { workspace_id: Id::from_stored("ws_1"), ..token() },
            TestToken { assistant_id: Id::from_stored(token().workspace_id.to_string()), ..token() },
        ] {
            assert!(wrong.sign("a server secret").is_err(), "{wrong:?}");
        }
    }
}
