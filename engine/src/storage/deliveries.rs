//! A delivery: one event on its way to one webhook, as clients see it.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::base::time;
use crate::ports::statement::Row;
use crate::storage::events::EventKind;
use crate::storage::fault::Fault;

crate::words! {
    /// Where a delivery is.
    json DeliveryStatus {
        /// To be tried, or tried again, at `next_attempt_at`, as soon as the webhook is enabled.
        Pending = "pending",
        /// The receiver has taken it.
        Delivered = "delivered",
        /// Given up after the last attempt, or refused for good (410).
        Failed = "failed",
        /// Its webhook was deleted first.
        Canceled = "canceled",
    }
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Delivery {
    /// `dlv_…`
    pub id: String,
    /// The webhook it goes to.
    pub webhook_id: String,
    /// `evt_…`, the `webhook-id` header and the `id` of the body: the same in every attempt.
    pub event_id: String,
    /// What the event tells.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Where it is.
    pub status: DeliveryStatus,
    /// Attempts so far.
    pub attempts: i64,
    /// When the next attempt is due; null when there is none to make.
    pub next_attempt_at: Option<String>,
    /// The HTTP status of the last attempt; null when there was no answer.
    pub last_status: Option<i64>,
    /// Why the last attempt failed; null when it did not.
    pub last_error: Option<String>,
    /// How the last answer began; at most 1,024 bytes.
    pub last_response: Option<String>,
    /// When the event happened.
    pub created_at: String,
    /// When the receiver took it.
    pub delivered_at: Option<String>,
}

/// The columns [`Delivery::read`] needs.
pub const COLUMNS: &str = "id, webhook_id, event_id, type, status, attempts, due_at, last_status, last_error, last_response, created_at, delivered_at";

impl Delivery {
    /// One that is due at once.
    pub fn new(id: String, webhook_id: String, event_id: String, kind: EventKind, now_ms: i64) -> Self {
        Self {
            id,
            webhook_id,
            event_id,
            kind,
            status: DeliveryStatus::Pending,
            attempts: 0,
            next_attempt_at: Some(time::format(now_ms)),
            last_status: None,
            last_error: None,
            last_response: None,
            created_at: time::format(now_ms),
            delivered_at: None,
        }
    }

    /// From its row.
    pub fn read(row: Row<'_>) -> Result<Self, Fault> {
        let stored = |error: serde_json::Error| Fault::Bug(format!("stored delivery: {error}"));
        Ok(Self {
            id: row.text("id")?,
            webhook_id: row.text("webhook_id")?,
            event_id: row.text("event_id")?,
            kind: serde_json::from_value(Value::String(row.text("type")?)).map_err(stored)?,
            status: row.word("status")?,
            attempts: row.integer("attempts")?,
            next_attempt_at: time::format_optional(row.optional_integer("due_at")?),
            last_status: row.optional_integer("last_status")?,
            last_error: row.optional_text("last_error")?,
            last_response: row.optional_text("last_response")?,
            created_at: time::format(row.integer("created_at")?),
            delivered_at: time::format_optional(row.optional_integer("delivered_at")?),
        })
    }
}
