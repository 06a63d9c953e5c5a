//! Signing secrets, and Standard Webhooks signatures.
//!
//! A secret is derived and never stored, except those that a workspace brought from another host: they are stored, sealed.
//! What such a workspace gets from then on is derived from a salt of this host, too: its ids were chosen by whoever wrote
//! the file, and may be those of something of somebody else that was deleted.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::base::hash::hmac_sha256;
use crate::base::ids::{ToolId, WebhookId};
use crate::base::sealed::unseal;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement};
use crate::sql;

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

    const fn table(self) -> &'static str {
        match self {
            Self::Tool(_) => "tools",
            Self::Webhook(_) => "webhooks",
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Tool(id) => id,
            Self::Webhook(id) => id,
        }
    }
}

/// What the secrets of a tool or a webhook are made of, beside the server secret and its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Of the workspace, if it came from another host.
    salt: Option<String>,
    carried: Option<Carried>,
}

/// Secrets that came with the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Carried {
    /// The version of the first.
    version: i64,
    /// Sealed with the server secret; the second is of the version before.
    #[serde(default)]
    sealed: Vec<String>,
}

impl Origin {
    /// The expression of a workspace's salt; `workspace` is one of its id.
    pub(crate) fn salt(workspace: &str) -> String {
        format!("(SELECT w.secret_salt FROM workspaces AS w WHERE w.id = {workspace})")
    }

    /// Reads the columns `secret_salt` and `carried_secrets`.
    pub fn read(row: Row<'_>) -> Result<Self, DatabaseError> {
        let carried = if row.is_null("carried_secrets")? { None } else { Some(row.json("carried_secrets")?) };
        Ok(Self { salt: row.optional_text("secret_salt")?, carried })
    }

    /// `whsec_` + base64(HMAC-SHA256(server secret, `kind:id:version`)), with the salt if there is one, or a secret that was
    /// carried. A stolen database signs nothing. If the server secret was replaced, a carried one is lost like all others.
    pub fn secret(&self, server_secret: &str, owner: SecretOwner<'_>, version: i64) -> String {
        format!("whsec_{}", STANDARD.encode(self.bytes(server_secret, owner, version)))
    }

    /// The bytes of [`Origin::secret`].
    pub(crate) fn bytes(&self, server_secret: &str, owner: SecretOwner<'_>, version: i64) -> [u8; 32] {
        let label = label(owner, version);
        let carried = self.carried.as_ref().and_then(|carried| carried.of(version));
        carried.and_then(|sealed| unseal(server_secret.as_bytes(), &label, sealed)).unwrap_or_else(|| {
            let message = match &self.salt {
                Some(salt) => format!("moved:{salt}:{label}"),
                None => label,
            };
            hmac_sha256(server_secret.as_bytes(), message.as_bytes())
        })
    }
}

impl Carried {
    fn of(&self, version: i64) -> Option<&String> {
        self.sealed.get(usize::try_from(self.version.checked_sub(version)?).ok()?)
    }
}

/// What a secret is derived from and sealed for.
pub fn label(owner: SecretOwner<'_>, version: i64) -> String {
    format!("{}:{version}", owner.label())
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretVersions {
    /// The current one, from 1.
    pub version: i64,
    /// Until when the previous secret signs too, so that receivers have time to switch.
    pub old_until_ms: Option<i64>,
    /// What they are made of.
    pub origin: Origin,
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
    /// The columns of a table of owners.
    pub fn columns(table: &str) -> String {
        format!(
            "{table}.secret_version AS secret_version, {table}.old_secret_until AS old_secret_until,
             {table}.carried_secrets AS carried_secrets, {} AS secret_salt",
            Origin::salt(&format!("{table}.workspace_id"))
        )
    }

    /// Those of an owner in workspace `:ws`. One that was deleted has a row, too: its secrets were made of the same.
    pub fn select(owner: SecretOwner<'_>) -> Statement {
        let table = owner.table();
        sql!(
            format!(
                "SELECT o.secret_version AS secret_version, o.old_secret_until AS old_secret_until,
                   o.carried_secrets AS carried_secrets, w.secret_salt AS secret_salt
                 FROM workspaces AS w LEFT JOIN {table} AS o ON o.id = :owner AND o.workspace_id = w.id WHERE w.id = :ws"
            ),
            owner = owner.id()
        )
    }

    /// Reads [`SecretVersions::columns`].
    pub fn read(row: Row<'_>) -> Result<Self, DatabaseError> {
        let version = row.integer("secret_version")?;
        Ok(Self {
            version,
            old_until_ms: row.optional_integer("old_secret_until")?,
            origin: Origin::read(row)?,
        })
    }

    /// Reads [`SecretVersions::select`]; of an owner that was deleted, `last` is the version.
    pub fn read_or(row: Row<'_>, last: i64) -> Result<Self, DatabaseError> {
        let version = row.optional_integer("secret_version")?.unwrap_or(last);
        Ok(Self {
            version,
            old_until_ms: row.optional_integer("old_secret_until")?,
            origin: Origin::read(row)?,
        })
    }

    /// The `webhook-signature` value: one signature for each secret, the newest first, separated by spaces
    /// (Standard Webhooks specification, "Signature scheme": a list, so that secrets can be rotated).
    pub fn signatures(&self, server_secret: &str, owner: SecretOwner<'_>, message: &Signed<'_>) -> String {
        let Signed { id, now_ms, body } = *message;
        let of = |version: i64| {
            let secret = self.origin.secret(server_secret, owner, version);
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
    use crate::base::sealed::seal;

    fn signing_secret(server_secret: &str, owner: SecretOwner<'_>, version: i64) -> String {
        Origin::default().secret(server_secret, owner, version)
    }

    #[test]
    fn a_secret_of_a_workspace_that_stays_is_derived_from_its_id() {
        let tool = ToolId::from_stored("tool_1");
        let expected = format!("whsec_{}", STANDARD.encode(hmac_sha256(b"server", b"tool:tool_1:1")));
        assert_eq!(signing_secret("server", SecretOwner::Tool(&tool), 1), expected);
    }

    #[test]
    fn carried_secrets_sign_and_later_ones_are_not_those_of_another_workspace() {
        let tool = ToolId::from_stored("tool_1");
        let owner = SecretOwner::Tool(&tool);
        let sealed = |version| seal(b"server", &label(owner, version), [1; 16], &[version as u8; 32]);
        let carried = Carried { version: 3, sealed: vec![sealed(3), sealed(2)] };
        let origin = Origin { salt: Some("salt".to_owned()), carried: Some(carried) };
        for version in [3, 2] {
            let brought = format!("whsec_{}", STANDARD.encode([version as u8; 32]));
            assert_eq!(origin.secret("server", owner, version), brought);
        }
        // Of the first version nothing was brought, and the second one of another tool does not open.
        let other = ToolId::from_stored("tool_2");
        let salted = Origin { carried: None, ..origin.clone() };
        for (owner, version) in [(owner, 1), (owner, 4), (SecretOwner::Tool(&other), 3)] {
            let secret = origin.secret("server", owner, version);
            assert_eq!(secret, salted.secret("server", owner, version));
            assert_ne!(secret, signing_secret("server", owner, version));
        }
        // As after `sidetone secrets accept`.
        assert_eq!(origin.secret("new", owner, 3), salted.secret("new", owner, 3));
        let elsewhere = Origin { salt: Some("other".to_owned()), ..salted.clone() };
        assert_ne!(salted.secret("server", owner, 4), elsewhere.secret("server", owner, 4));
    }

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
        let versions = |old_until_ms| SecretVersions { version: 3, old_until_ms, origin: Origin::default() };
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
