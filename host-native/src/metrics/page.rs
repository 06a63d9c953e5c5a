//! The page with all metrics.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use prometheus_client::encoding::{prometheus_text, text};
use sidetone_engine::ports::{
    self, BoxFuture, DatabaseError, JobsOfKind, MetricsForm, MovesInState, Readings,
};
use tokio::sync::Mutex;

use super::{Gauges, KindLabels, Metrics, StateLabels, process};
use crate::data;

/// Whoever asks sooner gets the same figures.
const KEPT: Duration = Duration::from_secs(1);

/// Shows the metrics. Whoever asks while the figures are read waits for them and reads nothing.
pub struct Page {
    metrics: Arc<Metrics>,
    database: PathBuf,
    /// When the figures were read.
    read: Mutex<Option<Instant>>,
}

impl Page {
    /// The page of these metrics and of the database in this file.
    pub fn new(metrics: Arc<Metrics>, database: PathBuf) -> Self {
        metrics.gauges.start_time.set(process::start_time_s());
        Self { metrics, database, read: Mutex::default() }
    }

    fn measure(&self, readings: Readings) {
        let gauges = &self.metrics.gauges;
        gauges.show(readings);
        let bytes_of = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| whole(file.len()));
        gauges.database.set(bytes_of(&self.database));
        gauges.log.set(bytes_of(&data::wal_of(&self.database)));
        if let Some(bytes) = data::free_bytes(&self.database) {
            gauges.disk_free.set(whole(bytes));
        }
        if let Some(bytes) = process::resident_bytes() {
            gauges.resident_memory.set(whole(bytes));
        }
        if let Some(seconds) = process::cpu_seconds() {
            gauges.cpu_seconds.inner().store(seconds.to_bits(), Ordering::Relaxed);
        }
    }
}

impl ports::Metrics for Page {
    fn delivered(&self, lag_ms: i64) {
        self.metrics.delivered(lag_ms);
    }

    fn declined(&self) {
        self.metrics.declined();
    }

    fn page<'a>(
        &'a self,
        form: MetricsForm,
        readings: BoxFuture<'a, Result<Readings, DatabaseError>>,
    ) -> BoxFuture<'a, Result<String, DatabaseError>> {
        Box::pin(async move {
            let mut read = self.read.lock().await;
            if read.is_none_or(|read| read.elapsed() >= KEPT) {
                self.measure(readings.await?);
                *read = Some(Instant::now());
            }
            let (mut page, registry) = (String::new(), &self.metrics.registry);
            let written = match form {
                MetricsForm::OpenMetrics => text::encode(&mut page, registry),
                MetricsForm::Prometheus => prometheus_text::encode(&mut page, registry),
            };
            written
                .map_err(|error| DatabaseError::Shape(format!("the metrics cannot be written: {error}")))?;
            Ok(page)
        })
    }
}

impl Gauges {
    fn show(&self, readings: Readings) {
        for JobsOfKind { kind, due, oldest_late_ms } in readings.jobs {
            let labels = KindLabels { kind };
            self.jobs_due.get_or_create(&labels).set(due);
            self.jobs_oldest_late.get_or_create(&labels).set(seconds(oldest_late_ms));
        }
        for MovesInState { state, count, oldest_ms } in readings.moves {
            let labels = StateLabels { state };
            self.moves.get_or_create(&labels).set(count);
            self.moves_oldest.get_or_create(&labels).set(seconds(oldest_ms));
        }
        self.deliveries_late.set(seconds(readings.deliveries_late_ms));
        self.spent_dollars.set(readings.spent_microusd as f64 / 1e6);
        self.conversations.set(whole(readings.conversations));
        self.followers.set(whole(readings.followers));
        self.is_late.set(i64::from(readings.is_late));
        let (taken, most) = readings.memory_bytes;
        self.conversation_memory.set(whole(taken));
        self.conversation_memory_max.set(whole(most));
    }
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
