//! How late this process is, because others take the processors or because it has too much to do.
use std::sync::Arc;
use std::time::Duration;

use sidetone_engine::base::limits::LATENESS_TICK_MS;
use sidetone_engine::services::Services;
use tokio::time::Instant;

use crate::metrics::Metrics;

/// Tells the service how late its timers are, until the future is dropped. Runs beside the conversations, whose timers are as late.
pub async fn watch(services: Services, metrics: Arc<Metrics>) {
    let mut was_late = false;
    loop {
        let due = Instant::now() + Duration::from_millis(LATENESS_TICK_MS);
        tokio::time::sleep_until(due).await;
        let late_ms = Instant::now().saturating_duration_since(due).as_millis();
        let late_ms = i64::try_from(late_ms).unwrap_or(i64::MAX);
        metrics.timer(late_ms);
        let is_late = services.note_lateness(late_ms);
        match (std::mem::replace(&mut was_late, is_late), is_late) {
            (false, true) => {
                tracing::warn!("late with the audio of the calls under way: further calls are declined")
            }
            (true, false) => tracing::info!("on time again: calls are taken"),
            _ => {}
        }
    }
}
