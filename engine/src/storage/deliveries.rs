//! A delivery: one event for one webhook, as the API returns it.
use crate::base::ids::{DeliveryId, EventId, WebhookId};
use crate::base::time::Timestamp;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Value};
use crate::storage::column::{Column, record};
use crate::storage::events::EventKind;

crate::words! {
    /// The status of a delivery.
    json DeliveryStatus {
        /// Waits for its attempt at `next_attempt_at`; only enabled webhooks are sent deliveries.
        Pending = "pending",
        /// The receiver has accepted it.
        Delivered = "delivered",
        /// The last attempt failed, or the receiver answered 410.
        Failed = "failed",
        /// The webhook, or the call or run that the event tells about, was deleted before the delivery.
        Canceled = "canceled",
    }
}

record! {
    /// A delivery.
    pub struct Delivery {
        /// `dlv_…`
        pub id: DeliveryId,
        /// The webhook.
        pub webhook_id: WebhookId,
        /// `evt_…`: the `webhook-id` header and the `id` of the body, the same in every attempt.
        pub event_id: EventId,
        /// The type of the event.
        #[serde(rename = "type")]
        pub kind: EventKind = "type",
        /// The status of the delivery.
        pub status: DeliveryStatus,
        /// The number of attempts so far.
        pub attempts: i64,
        /// When the next attempt is due; null when none is planned.
        pub next_attempt_at: Option<Timestamp> = "due_at",
        /// The HTTP status of the last attempt; null when there was no response.
        pub last_status: Option<i64>,
        /// Why the last attempt failed; null if it did not.
        pub last_error: Option<String>,
        /// The beginning of the last response, at most 1,024 bytes.
        pub last_response: Option<String>,
        /// When the event happened.
        pub created_at: Timestamp,
        /// When the receiver accepted it.
        pub delivered_at: Option<Timestamp>,
    }
}

impl Delivery {
    /// A new delivery, due at once.
    pub fn new(
        id: DeliveryId,
        webhook_id: WebhookId,
        event_id: EventId,
        kind: EventKind,
        now_ms: i64,
    ) -> Self {
        let now = Timestamp::from_ms(now_ms);
        Self {
            id,
            webhook_id,
            event_id,
            kind,
            status: DeliveryStatus::Pending,
            attempts: 0,
            next_attempt_at: Some(now),
            last_status: None,
            last_error: None,
            last_response: None,
            created_at: now,
            delivered_at: None,
        }
    }
}

impl Column for EventKind {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        let error = |error: serde_json::Error| DatabaseError::Shape(format!("{column}: {error}"));
        serde_json::from_value(serde_json::Value::String(row.text(column)?)).map_err(error)
    }

    fn value(&self) -> Value {
        self.as_str().into()
    }
}
