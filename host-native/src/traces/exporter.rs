//! Says once in the log that traces are lost: after the last attempt, because the library tries a batch again where that may
//! help.
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::collector::LastProblem;

/// The library's exporter, with what the log says of it.
#[derive(Debug)]
pub struct Exporter {
    exporter: opentelemetry_otlp::SpanExporter,
    last_problem: LastProblem,
    /// Whether the last batch was lost, so that this is logged once.
    is_lost: AtomicBool,
}

impl Exporter {
    /// The requests of `exporter` leave what went wrong with them in `last_problem`.
    pub fn new(exporter: opentelemetry_otlp::SpanExporter, last_problem: LastProblem) -> Self {
        Self { exporter, last_problem, is_lost: AtomicBool::new(false) }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let exported = self.exporter.export(batch).await;
        match (self.is_lost.swap(exported.is_err(), Ordering::Relaxed), &exported) {
            (false, Err(error)) => {
                let problem = self.last_problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let problem = problem.unwrap_or_else(|| error.to_string());
                tracing::warn!(problem, "the collector takes no traces: they are lost");
            }
            (true, Ok(())) => tracing::info!("the collector takes traces again"),
            _ => {}
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
