//! The sweep: deletes expired rows and removes unreachable blobs.
use crate::base::ids::{self, prefix};
use crate::base::limits::{EVENT_KEPT_MS, IDEMPOTENCY_WINDOW_MS, SWEEP_CHUNKS_MAX, SWEEP_ROWS_MAX};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::recordings;

/// The deliveries of an event are created right after it, so their ids contain the same time or a slightly later one. An
/// event is deleted this much later, when its deliveries must be gone.
const MARGIN_MS: i64 = 60_000;

impl Services {
    /// Deletes expired rows and removes unreachable blobs. It is cheap; a host calls it regularly.
    pub async fn sweep(&self) -> Result<(), Fault> {
        let now_ms = self.ports().clock.now_ms();
        let delete_keys = sql!(
            "DELETE FROM idempotency_keys WHERE created_at <= :until",
            until = now_ms - IDEMPOTENCY_WINDOW_MS
        );
        // An expired token is rejected anyway.
        let delete_tokens = sql!("DELETE FROM used_test_tokens WHERE expires_at <= :now", now = now_ms);
        let [abandon, due] = recordings::due(now_ms);
        let [.., due] = self.write([delete_keys, delete_tokens, abandon, due]).await?;
        let oldest_ms = now_ms - EVENT_KEPT_MS;
        let mut chunks = SWEEP_CHUNKS_MAX;
        self.delete_older("deliveries", &ids::lower_bound(prefix::DELIVERY, oldest_ms), &mut chunks).await?;
        self.delete_older("events", &ids::lower_bound(prefix::EVENT, oldest_ms - MARGIN_MS), &mut chunks)
            .await?;
        self.apply_retention(now_ms).await?;
        self.remove_recordings(&due).await
    }

    /// Deletes rows whose ids sort before `bound`, a limited number in each batch: a large batch would block other writes.
    async fn delete_older(&self, table: &'static str, bound: &str, chunks: &mut usize) -> Result<(), Fault> {
        while *chunks > 0 {
            *chunks -= 1;
            let delete = sql!(
                format!(
                    "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE id < :bound ORDER BY id LIMIT {SWEEP_ROWS_MAX}) RETURNING 1 AS gone"
                ),
                bound = bound
            );
            let [gone] = self.write([delete]).await?;
            if gone.values.len() < usize::try_from(SWEEP_ROWS_MAX).unwrap_or(usize::MAX) {
                break;
            }
        }
        Ok(())
    }
}
