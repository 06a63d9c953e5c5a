//! Signing secrets in a file of a move.
use serde::{Deserialize, Serialize};

use crate::base::ids::{ToolId, WebhookId};
use crate::storage::signing::SecretOwner;
use crate::storage::workspace_rows::at_most;

/// Secrets of one owner: that of the current version, and of the one before.
pub const SEALED_MAX: usize = 2;

/// The secrets of one owner that sign at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedSecrets {
    /// Whose.
    pub owner: Owner,
    /// The version of the first.
    pub version: i64,
    /// Sealed with the file's key, each for its [`label`](crate::storage::signing::label); the second is of the version before.
    #[serde(deserialize_with = "at_most::<SEALED_MAX, _, _>")]
    pub sealed: Vec<String>,
}

/// The owner of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A tool.
    Tool(ToolId),
    /// A webhook.
    Webhook(WebhookId),
}

impl Owner {
    /// The same, for signing.
    pub fn as_secret_owner(&self) -> SecretOwner<'_> {
        match self {
            Self::Tool(id) => SecretOwner::Tool(id),
            Self::Webhook(id) => SecretOwner::Webhook(id),
        }
    }
}
