//! `Idempotency-Key`: a POST that is repeated within 24 hours gets the response of the first one.
//!
//! The batch of the change also stores the response, so either both exist or neither. The stored response contains no
//! secrets: [`OneTimeSecret`] describes how to derive them again.
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::error::{Code, Error};
use crate::base::ids::{Id, ToolId, WebhookId};
use crate::base::limits::{
    IDEMPOTENCY_KEY_CHARS_MAX, IDEMPOTENCY_WINDOW_MS, LARGE_RESPONSE_BYTES, LARGE_RESPONSES_STORED_MAX,
};
use crate::base::setting::Secret;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement, Value as SqlValue};
use crate::sql;
use crate::storage::signing::{Origin, SecretOwner, SecretVersions};
use crate::storage::test_token::TestToken;

/// The key of a request, and a fingerprint of the request.
#[derive(Debug, Clone)]
pub struct Idempotency {
    key: String,
    fingerprint: String,
}

/// A secret that is added to a stored response and is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", try_from = "StoredSecret")]
pub enum OneTimeSecret {
    /// `signing_secret` of a tool, derived again from its id and version.
    Tool {
        /// The tool's id.
        id: ToolId,
        /// The secret's version.
        version: i64,
        /// What else it is made of, as the database has it now.
        #[serde(skip)]
        origin: Origin,
    },
    /// Likewise for a webhook.
    Webhook {
        /// The webhook's id.
        id: WebhookId,
        /// The secret's version.
        version: i64,
        /// As of a tool.
        #[serde(skip)]
        origin: Origin,
    },
    /// `key`, which cannot be derived again: `null` in a replay.
    ApiKey {
        /// The key, present only in the first response; never serialised.
        #[serde(skip)]
        key: Option<Secret>,
    },
    /// A test token and its URLs, signed again: a replay returns the same ones.
    TestToken {
        /// The claims.
        token: TestToken,
    },
}

/// A [`OneTimeSecret`] as it is read: the code that reads a tagged enum is several times as large.
#[derive(Deserialize)]
struct StoredSecret {
    kind: String,
    id: Option<String>,
    version: Option<i64>,
    token: Option<TestToken>,
}

impl TryFrom<StoredSecret> for OneTimeSecret {
    type Error = &'static str;

    fn try_from(stored: StoredSecret) -> Result<Self, &'static str> {
        let StoredSecret { kind, id, version, token } = stored;
        match (kind.as_str(), id, version, token) {
            ("tool", Some(id), Some(version), _) => {
                Ok(Self::Tool { id: ToolId::from_stored(id), version, origin: Origin::default() })
            }
            ("webhook", Some(id), Some(version), _) => {
                Ok(Self::Webhook { id: WebhookId::from_stored(id), version, origin: Origin::default() })
            }
            ("api_key", ..) => Ok(Self::ApiKey { key: None }),
            ("test_token", _, _, Some(token)) => Ok(Self::TestToken { token }),
            _ => Err("not a secret that is shown once"),
        }
    }
}

impl OneTimeSecret {
    /// Reads what a signing secret of workspace `:ws` is made of, for [`OneTimeSecret::made_of`].
    pub(crate) fn select(&self) -> Option<Statement> {
        match self {
            Self::Tool { id, .. } => Some(SecretVersions::select(SecretOwner::Tool(id))),
            Self::Webhook { id, .. } => Some(SecretVersions::select(SecretOwner::Webhook(id))),
            Self::ApiKey { .. } | Self::TestToken { .. } => None,
        }
    }

    /// The same with what the columns `secret_salt` and `carried_secrets` say.
    pub(crate) fn made_of(mut self, row: Row<'_>) -> Result<Self, DatabaseError> {
        if let Self::Tool { origin, .. } | Self::Webhook { origin, .. } = &mut self {
            *origin = Origin::read(row)?;
        }
        Ok(self)
    }
}

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The status it was sent with.
    pub status: u16,
    /// The body without secrets.
    pub body: Option<String>,
    /// The revision it was sent with.
    pub etag: Option<i64>,
    /// The secret to add to it.
    pub reveal: Option<OneTimeSecret>,
}

impl Stored {
    /// An error in the form in which it is stored; [`Stored::failure`] reads it.
    pub fn failure_body(error: &Error) -> String {
        json!({"code": error.code.as_str(), "message": error.message, "details": error.details}).to_string()
    }

    /// The error, when the response is one.
    pub fn failure(&self) -> Option<Error> {
        let text = self.body.as_deref().filter(|_| self.status >= 400)?;
        let stored: Value = serde_json::from_str(text).ok()?;
        let code = Code::ALL.iter().copied().find(|code| stored["code"] == code.as_str())?;
        let mut error = Error::new(code, stored["message"].as_str()?.to_owned());
        // `request_in_progress` is not a replay: no earlier request received it as its response.
        error.replayed = code != Code::RequestInProgress;
        Some(match &stored["details"] {
            Value::Null => error,
            details => error.with_details(details.clone()),
        })
    }
}

/// The SQL expression of how many large responses workspace `:ws` has stored; it counts up to the limit.
pub(crate) fn large_responses() -> String {
    format!(
        "(SELECT COUNT(*) FROM (SELECT 1 FROM idempotency_keys INDEXED BY idempotency_keys_large WHERE workspace_id = :ws
          AND OCTET_LENGTH(body) > {LARGE_RESPONSE_BYTES} LIMIT {LARGE_RESPONSES_STORED_MAX}))"
    )
}

/// The statement that replaces the stored responses that tell about something deleted by an error. The key
/// stays: a repeated request must not do its work again. `index` and `field` are those by which they are found, `among` is an SQL
/// list of that field's values.
pub(crate) fn replace_deleted(
    error: &Error,
    index: &str,
    field: &str,
    among: &str,
) -> (String, Vec<(&'static str, SqlValue)>) {
    let sql = format!(
        "UPDATE idempotency_keys INDEXED BY {index} SET status = :status, body = :deleted, etag = NULL
         WHERE workspace_id = :ws AND json_extract(body, '$.{field}') IN ({among})"
    );
    let body = Stored::failure_body(error);
    (sql, vec![("status", i64::from(error.code.status()).into()), ("deleted", body.into())])
}

/// The statement with which a deleted resource is not read by repeating its creation.
pub(crate) fn forget_deleted(noun: &str, id: &impl Id) -> Statement {
    let (sql, values) =
        replace_deleted(&Error::not_found(noun), "idempotency_keys_by_id", "id", "SELECT CAST(:id AS TEXT)");
    Statement::named(&sql, values.into_iter().chain([("id", id.as_str().into())]).collect())
}

impl Idempotency {
    /// Checks the format of the key and takes a fingerprint of the request: the operation, its path values, its query
    /// and its body, which are the same over REST and MCP.
    pub fn new(
        key: &str,
        operation: &str,
        path: &[String],
        query: &Value,
        body: &Value,
    ) -> Result<Self, Error> {
        let printable = key.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        if key.is_empty() || key.len() > IDEMPOTENCY_KEY_CHARS_MAX || !printable {
            let problem = crate::base::error::FieldProblem::new(
                "Idempotency-Key",
                format!(
                    "must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable ASCII characters; a UUID is a good one"
                ),
            );
            return Err(Error::fields(Code::InvalidParameter, &[problem]));
        }
        let request = json!([operation, path, sorted(query), sorted(body)]);
        Ok(Self {
            key: key.to_owned(),
            fingerprint: crate::base::hash::sha256_hex(request.to_string().as_bytes()),
        })
    }

    /// Finds a stored response.
    pub fn lookup(&self, now_ms: i64) -> Statement {
        let carried = |table: &str| {
            format!(
                "(SELECT carried_secrets FROM {table} AS o WHERE o.workspace_id = :ws AND o.id = json_extract(reveal, '$.id'))"
            )
        };
        sql!(
            format!(
                "SELECT fingerprint, status, body, etag, reveal, {} AS secret_salt, COALESCE({}, {}) AS carried_secrets
                 FROM idempotency_keys WHERE workspace_id = :ws AND key = :key AND created_at > :since",
                Origin::salt(":ws"),
                carried("tools"),
                carried("webhooks"),
            ),
            key = &self.key,
            since = now_ms - IDEMPOTENCY_WINDOW_MS
        )
    }

    /// The response that [`Idempotency::lookup`] found.
    pub fn stored(&self, row: Row<'_>) -> Result<Stored, crate::storage::fault::Fault> {
        if row.text("fingerprint")? != self.fingerprint {
            let message = "This Idempotency-Key was used with another request in the last 24 hours. \
                           Use a new key for a new request.";
            return Err(Error::new(Code::IdempotencyKeyReused, message).into());
        }
        let reveal = match row.optional_text("reveal")? {
            Some(text) => {
                let reveal: OneTimeSecret = serde_json::from_str(&text)
                    .map_err(|error| crate::storage::fault::Fault::Bug(format!("stored reveal: {error}")))?;
                Some(reveal.made_of(row)?)
            }
            None => None,
        };
        let status = u16::try_from(row.integer("status")?).unwrap_or(200);
        let etag = row.optional_integer("etag")?;
        Ok(Stored { status, body: row.optional_text("body")?, etag, reveal })
    }

    /// Replaces the stored response.
    pub fn replace_stored_response(&self, status: u16, body: Option<String>) -> Statement {
        sql!(
            "UPDATE idempotency_keys SET status = :status, body = :body WHERE workspace_id = :ws AND key = :key",
            key = &self.key,
            status = i64::from(status),
            body = body
        )
    }

    /// Deletes the stored response, so that the key counts as unused.
    pub fn forget(&self) -> Statement {
        sql!("DELETE FROM idempotency_keys WHERE workspace_id = :ws AND key = :key", key = &self.key)
    }

    /// The statements that store a response, for the batch of the change.
    pub fn store(&self, stored: &Stored, now_ms: i64) -> [Statement; 2] {
        let reveal = stored.reveal.as_ref().and_then(|reveal| serde_json::to_string(reveal).ok());
        [
            sql!(
                "DELETE FROM idempotency_keys WHERE workspace_id = :ws AND key = :key AND created_at <= :until",
                key = &self.key,
                until = now_ms - IDEMPOTENCY_WINDOW_MS
            ),
            sql!(
                "INSERT INTO idempotency_keys (workspace_id, key, fingerprint, status, body, etag, reveal, created_at)
                 VALUES (:ws, :key, :fingerprint, :status, :body, :etag, :reveal, :now)",
                key = &self.key,
                fingerprint = &self.fingerprint,
                status = i64::from(stored.status),
                body = stored.body.clone(),
                etag = stored.etag,
                reveal = reveal,
                now = now_ms
            ),
        ]
    }
}

/// The same value with sorted object keys, so that their order does not matter.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut names: Vec<&String> = map.keys().collect();
            names.sort_unstable();
            names.into_iter().filter_map(|name| Some((name.clone(), sorted(map.get(name)?)))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
