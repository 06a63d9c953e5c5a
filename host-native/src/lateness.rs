//! How late this process is, because others take the processors or because it has too much to do.
use std::time::Duration;

use sidetone_engine::base::limits::LATENESS_TICK_MS;
use sidetone_engine::services::Services;
use tokio::time::Instant;

/// Tells the service how late its timers are, until the future is dropped. Runs beside the conversations, whose timers are as late.
pub async fn watch(services: Services) {
    loop {
        let due = Instant::now() + Duration::from_millis(LATENESS_TICK_MS);
        tokio::time::sleep_until(due).await;
        let late_ms = Instant::now().saturating_duration_since(due).as_millis();
        services.note_lateness(i64::try_from(late_ms).unwrap_or(i64::MAX));
    }
}
