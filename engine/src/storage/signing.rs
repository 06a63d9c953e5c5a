//! Signing secrets, which are derived and never stored, and Standard Webhooks signatures.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base::hash::hmac_sha256;
use crate::base::ids::{ToolId, WebhookId};
use crate::ports::DatabaseError;
use crate::ports::statement::Row;

/// The owner of a signing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretOwner<'a> {
    /// A tool, to which requests are signed.
    Tool(&'a ToolId),
    /// A webhook, whose deliveries are signed.
    Webhook(&'a WebhookId),
}

impl SecretOwner<'_> {
    /// `kind:id`. Part of the key derivation: changing it would break every receiver.
    fn label(self) -> String {
        match self {
            Self::Tool(id) => format!("tool:{id}"),
            Self::Webhook(id) => format!("webhook:{id}"),
        }
    }
}

/// `whsec_` + base64(HMAC-SHA256(server secret, `kind:id:version`)). A stolen database signs nothing.
pub fn signing_secret(server_secret: &str, owner: SecretOwner<'_>, version: i64) -> String {
    let message = format!("{}:{version}", owner.label());
    format!("whsec_{}", STANDARD.encode(hmac_sha256(server_secret.as_bytes(), message.as_bytes())))
}

/// The `webhook-signature` value: `v1,<base64>` over `id.timestamp.body`
/// (Standard Webhooks specification, "Signature scheme").
pub fn webhook_signature(secret: &str, id: &str, timestamp_s: i64, body: &[u8]) -> String {
    let encoded = secret.strip_prefix("whsec_").unwrap_or(secret);
    let key = STANDARD.decode(encoded).unwrap_or_else(|_| secret.as_bytes().to_vec());
    let mut message = format!("{id}.{timestamp_s}.").into_bytes();
    message.extend_from_slice(body);
    format!("v1,{}", STANDARD.encode(hmac_sha256(&key, &message)))
}

/// The versions of the secret of a tool or webhook that sign at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretVersions {
    /// The current one, from 1.
    pub version: i64,
    /// Until when the previous secret signs too, so that receivers have time to switch.
    pub old_until_ms: Option<i64>,
}

/// A message as Standard Webhooks signs it.
pub struct Signed<'a> {
    /// The same in every attempt.
    pub id: &'a str,
    /// When it is sent, in milliseconds since 1970; whole seconds of it are signed.
    pub now_ms: i64,
    /// The raw body.
    pub body: &'a [u8],
}

impl Signed<'_> {
    /// The `webhook-timestamp` value.
    pub fn timestamp_s(&self) -> i64 {
        self.now_ms / 1000
    }
}

impl SecretVersions {
    /// Reads the columns `secret_version` and `old_secret_until`.
    pub fn read(row: Row<'_>) -> Result<Self, DatabaseError> {
        Ok(Self {
            version: row.integer("secret_version")?,
            old_until_ms: row.optional_integer("old_secret_until")?,
        })
    }

    /// The `webhook-signature` value: one signature for each secret, the newest first, separated by spaces
    /// (Standard Webhooks specification, "Signature scheme": a list, so that secrets can be rotated).
    pub fn signatures(self, server_secret: &str, owner: SecretOwner<'_>, message: &Signed<'_>) -> String {
        let Signed { id, now_ms, body } = *message;
        let of = |version: i64| {
            let secret = signing_secret(server_secret, owner, version);
            webhook_signature(&secret, id, message.timestamp_s(), body)
        };
        match self.old_until_ms {
            Some(until_ms) if until_ms > now_ms && self.version > 1 => {
                format!("{} {}", of(self.version), of(self.version - 1))
            }
            _ => of(self.version),
        }
    }
}

/// The signature of a test token over its claims. Its key is derived for this use only, so that nothing else that the
/// server signs is accepted as a token.
pub fn test_token_signature(server_secret: &str, claims: &[u8]) -> [u8; 32] {
    let key = hmac_sha256(server_secret.as_bytes(), b"test_token:1");
    hmac_sha256(&key, claims)
}

/// The signature of a token in the URLs of a call, with a separate key for each purpose.
pub fn call_token_signature(server_secret: &str, purpose: &str, claims: &[u8]) -> [u8; 32] {
    let key = hmac_sha256(server_secret.as_bytes(), format!("call_token:{purpose}:1").as_bytes());
    hmac_sha256(&key, claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id;

    #[test]
    fn matches_the_published_standard_webhooks_vector() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signature = webhook_signature(
            secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn the_old_secret_signs_too_until_the_overlap_ends() {
        let message = Signed { id: "evt_1", now_ms: 100_999, body: b"{}" };
        let versions = |old_until_ms| SecretVersions { version: 3, old_until_ms };
        let webhook = WebhookId::from_stored("hook_1");
        let owner = SecretOwner::Webhook(&webhook);
        let signed = |old| versions(old).signatures("server", owner, &message);
        let alone = signed(None);
        assert_eq!(signed(Some(100_999)), alone);
        let both = signed(Some(101_000));
        let old = signing_secret("server", owner, 2);
        assert_eq!(both, format!("{alone} {}", webhook_signature(&old, "evt_1", 100, b"{}")));
    }

    #[test]
    fn secrets_differ_by_everything_they_are_made_of() {
        let (tool, other_tool) = (ToolId::from_stored("tool_1"), ToolId::from_stored("tool_2"));
        let webhook = WebhookId::from_stored("tool_1");
        let base = signing_secret("server", SecretOwner::Tool(&tool), 1);
        assert!(base.starts_with("whsec_"));
        for other in [
            signing_secret("server2", SecretOwner::Tool(&tool), 1),
            signing_secret("server", SecretOwner::Webhook(&webhook), 1),
            signing_secret("server", SecretOwner::Tool(&other_tool), 1),
            signing_secret("server", SecretOwner::Tool(&tool), 2),
        ] {
            assert_ne!(base, other);
        }
    }
}
