//! API keys. Every key has full access to its workspace, including the creation of further keys.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::api_key::ApiKey;
use crate::base::error::Code;
use crate::base::ids::KeyId;
use crate::base::limits;
use crate::base::setting::Secret;
use crate::base::time::Timestamp;
use crate::operations::checks;
use crate::operations::context::Context;
use crate::operations::listing::{self, List, Part};
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource;
use crate::sql;
use crate::storage::column::record;
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;

/// The fields that you set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Draft {
    /// What the key is for.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    name: String,
}

record! {
    /// An API key's entry; the key itself is not stored.
    #[schemars(rename = "ApiKey")]
    pub struct Key {
        /// `key_…`
        pub id: KeyId,
        /// What the key is for.
        pub name: String,
        /// `sidetone_…` and the last 4 characters; empty for keys that the operator configured.
        pub hint: String,
        /// When it was created.
        pub created_at: Timestamp,
        /// When a request last came with it, to the hour; null when none has.
        pub last_used_at: Option<Timestamp>,
    }
}

/// `GET /keys`
pub const LIST: Operation = Operation::get("list_api_keys", "/keys", run!(list))
    .docs(
        "List API keys",
        "Lists the workspace's keys that are not revoked, newest first. The keys themselves are not stored: `hint` \
        shows a key's last 4 characters.",
    )
    .query::<Part>()
    .returns::<Vec<Key>>();

/// `POST /keys`
pub const CREATE: Operation = Operation::post("create_api_key", "/keys", run!(create))
    .docs(
        "Create an API key",
        "Creates a key with full access to the workspace. It is shown only once: only its SHA-256 hash is stored.",
    )
    .body::<Draft>()
    .returns::<CreatedKey>()
    .errors(&[Code::LimitReached])
    .for_admins();

/// `DELETE /keys/{id}`
pub const REVOKE: Operation = Operation::delete("revoke_api_key", "/keys/{id}", run!(revoke))
    .docs(
        "Revoke an API key",
        "Revokes a key permanently: the next request with it is refused. A key can revoke itself.",
    )
    .for_admins();

/// A key with its entry, as the response to its creation.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CreatedApiKey")]
struct CreatedKey {
    /// The key's entry.
    #[serde(flatten)]
    entry: Key,
    /// The key, shown only this once; null when an Idempotency-Key repeats the response.
    key: Option<String>,
}

const NOUN: &str = "API key";
const IN_USE: &str = " AND revoked_at IS NULL";

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let (table, columns, bytes, read) = ("api_keys", Key::COLUMNS, "0", Key::read);
    let key = listing::Key::newest::<KeyId>();
    let list = List { table, columns, bytes, key, filter: IN_USE, values: Vec::new(), read };
    listing::run(context, input.query()?, list).await
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Draft { name } = input.body()?;
    let mut bytes = [0; 32];
    context.services.ports().random.fill(&mut bytes);
    let key = ApiKey::from_bytes(bytes);
    let created_at = Timestamp::from_ms(context.now_ms);
    let entry = Key { id: context.services.new_id(), name, hint: key.hint(), created_at, last_used_at: None };
    let insert = sql!(
        "INSERT INTO api_keys (workspace_id, id, name, hash, hint, created_at)
         VALUES (:ws, :id, :name, :hash, :hint, :created_at)",
        id = &entry.id,
        name = &entry.name,
        hash = key.sha256_hex(),
        hint = &entry.hint,
        created_at = created_at
    );
    let secret = OneTimeSecret::ApiKey { key: Some(Secret::new(key.as_str())) };
    let room = checks::room("api_keys", IN_USE, limits::KEYS_MAX);
    let committed = context.commit([room, insert], Output::created(&entry)?.revealing(secret)).await;
    if committed.is_ok() {
        context.services.tell_key(&key.sha256_hex(), context.workspace_id()?).await;
    }
    committed.map_err(|fault| checks::explain_room(fault, NOUN, limits::KEYS_MAX))
}

async fn revoke(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let revoke = sql!(
        "UPDATE api_keys SET revoked_at = :now
         WHERE workspace_id = :ws AND id = :id AND revoked_at IS NULL RETURNING id",
        id = &input.id::<KeyId>(),
        now = context.now_ms
    );
    resource::write_one(context, vec![revoke], NOUN).await
}
