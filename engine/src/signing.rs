//! Signing secrets, which are derived and never stored, and Standard Webhooks signatures.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a signing secret belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A tool's callbacks.
    Tool,
    /// A webhook's deliveries.
    Webhook,
}

impl SecretKind {
    /// The word that enters the derivation: never change it, or every receiver breaks.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Webhook => "webhook",
        }
    }
}

/// `whsec_` + base64(HMAC-SHA256(server secret, `kind:id:version`)). A stolen database signs nothing.
pub fn signing_secret(server_secret: &str, kind: SecretKind, id: &str, version: i64) -> String {
    let message = format!("{}:{id}:{version}", kind.as_str());
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

fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    // HMAC takes a key of any length; the error type exists for other MACs.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_standard_webhooks_vector_holds() {
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
    fn secrets_differ_by_everything_they_are_made_of() {
        let base = signing_secret("server", SecretKind::Tool, "tool_1", 1);
        assert!(base.starts_with("whsec_"));
        for other in [
            signing_secret("server2", SecretKind::Tool, "tool_1", 1),
            signing_secret("server", SecretKind::Webhook, "tool_1", 1),
            signing_secret("server", SecretKind::Tool, "tool_2", 1),
            signing_secret("server", SecretKind::Tool, "tool_1", 2),
        ] {
            assert_ne!(base, other);
        }
    }
}
