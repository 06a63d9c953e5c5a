//! Events and their deliveries.

/// Entries in a webhook's `events`.
pub const WEBHOOK_EVENTS_MAX: u64 = 16;
/// Deliveries of a workspace that may wait for their receivers, shared equally by its webhooks. A webhook whose receiver
/// fails while more than its part waits is disabled.
pub const DELIVERIES_WAITING_MAX: i64 = 50_000;
/// Deadline of one delivery attempt (Standard Webhooks: 15 to 30 s).
pub const DELIVERY_DEADLINE_MS: u64 = 15_000;
/// Bytes of a receiver's response that are read.
pub const DELIVERY_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a receiver's response that are stored.
pub const DELIVERY_RESPONSE_KEPT_BYTES_MAX: usize = 1024;
/// The pauses after the first failed attempt, the second and so on. A delivery that then fails again is given up (Svix's
/// schedule, 27 h 35 min in total).
pub const DELIVERY_RETRY_MS: [i64; 7] =
    [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000];
/// Random extra time per pause, in percent: a receiver that was down does not get all retries at the same time.
pub const DELIVERY_JITTER_PERCENT_MAX: i64 = 10;
/// Concurrent attempts to one webhook.
pub const DELIVERIES_AT_ONCE: usize = 16;
/// Total size of the bodies of concurrent attempts, when there is more than one.
pub const DELIVERIES_AT_ONCE_BYTES_MAX: i64 = 1024 * 1024;
/// Rounds of deliveries to one webhook before a host with a single worker serves other webhooks.
pub const DELIVERY_ROUNDS_MAX: usize = 16;
/// Pending deliveries that one batch cancels when their webhook is deleted.
pub const CANCELED_AT_ONCE: i64 = 200;
/// Size of an event's body: a row of D1 holds 2 MB. A larger event is sent with ids only.
pub const EVENT_BYTES_MAX: usize = 1_800_000;
/// Retention of events and deliveries.
pub const EVENT_KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
