//! API keys. Every key has full access to its workspace, the making of further keys included.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::api_key::ApiKey;
use crate::base::ids::prefix;
use crate::base::{limits, time};
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::ports::statement::Row;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;

/// `GET /keys`
pub const LIST: Operation = Operation {
    id: "list_api_keys",
    method: http::Method::GET,
    path: "/keys",
    group: "Keys",
    title: "List API keys",
    description: "Lists the workspace's keys that are not revoked, newest first. The keys themselves are not stored: \
        `hint` shows a key's last 4 characters.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Key>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `POST /keys`
pub const CREATE: Operation = Operation {
    id: "create_api_key",
    method: http::Method::POST,
    path: "/keys",
    group: "Keys",
    title: "Create an API key",
    description: "Creates a key with full access to the workspace. It is shown this once: only its SHA-256 is stored.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<CreatedKey>),
    errors: &[],
    run: |context, input| Box::pin(create(context, input)),
};

/// `DELETE /keys/{id}`
pub const REVOKE: Operation = Operation {
    id: "revoke_api_key",
    method: http::Method::DELETE,
    path: "/keys/{id}",
    group: "Keys",
    title: "Revoke an API key",
    description: "Revokes a key for good: from the next request on it authenticates nobody. The key in use can revoke itself.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: false,
    query: None,
    body: None,
    response: None,
    errors: &[],
    run: |context, input| Box::pin(revoke(context, input)),
};

/// What a client may set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// What the key is for.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    name: String,
}

/// A key, without the key.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Key {
    /// `key_…`
    id: String,
    /// What the key is for.
    name: String,
    /// `sidetone_…` and the last 4 characters; empty for keys the operator brought.
    hint: String,
    /// When it was made.
    created_at: String,
}

/// A key as its creation answers it.
#[derive(Serialize, JsonSchema)]
pub struct CreatedKey {
    /// The key's row.
    #[serde(flatten)]
    row: Key,
    /// The key, shown this once; null when an Idempotency-Key repeats the answer.
    key: Option<String>,
}

impl Key {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            name: row.text("name")?,
            hint: row.text("hint")?,
            created_at: time::format(row.integer("created_at")?),
        })
    }
}

async fn list(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(
        "SELECT id, name, hint, created_at FROM api_keys
         WHERE workspace_id = :ws AND revoked_at IS NULL ORDER BY id DESC"
    );
    crud::list(context, all, Key::read).await
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Draft { name } = input.body()?;
    let mut bytes = [0; 32];
    context.services.ports().random.fill(&mut bytes);
    let key = ApiKey::from_bytes(bytes);
    let row =
        Key { id: context.id(prefix::KEY), name, hint: key.hint(), created_at: time::format(context.now_ms) };
    let insert = sql!(
        "INSERT INTO api_keys (workspace_id, id, name, hash, hint, created_at) VALUES (:ws, ?1, ?2, ?3, ?4, ?5)",
        &row.id,
        &row.name,
        key.sha256_hex(),
        &row.hint,
        context.now_ms,
    );
    let reveal = OneTimeSecret::ApiKey { key: Some(key.as_str().to_owned()) };
    context.commit(vec![insert], Output::created(&row)?.revealing(reveal)).await
}

async fn revoke(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let revoke = sql!(
        "UPDATE api_keys SET revoked_at = ?2
         WHERE workspace_id = :ws AND id = ?1 AND revoked_at IS NULL RETURNING id",
        input.id(),
        context.now_ms
    );
    crud::delete(context, vec![revoke], "API key").await
}
