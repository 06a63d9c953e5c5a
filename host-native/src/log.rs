//! The log: lines of text or JSON on standard error. Whoever reads them slowly does not hold up the service.
use std::io::{self, IsTerminal};
use std::time::Duration;

use serde_json::json;
use sidetone_engine::base::setting::SettingError;
use sidetone_engine::base::time;
use sidetone_engine::engine::LogRecord;
use sidetone_engine::ports::Clock as _;
use tracing::Metadata;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::variable;
use crate::system::SystemClock;

/// The setting that chooses between text and JSON.
pub const LOG_FORMAT: &str = "SIDETONE_LOG_FORMAT";
/// The setting of the `tracing` crates that says what is logged.
const RUST_LOG: &str = "RUST_LOG";
/// What is logged of what OpenTelemetry's library says: the queue of spans is full, so many were lost, and a collector has
/// rejected some. The rest is said here already or comes with each batch, and answers of a collector are in it.
const OF_OPENTELEMETRY: [&str; 3] = [
    "BatchSpanProcessor.SpanDroppingStarted",
    "BatchSpanProcessor.SpansDropped",
    "HttpTraceClient.PartialSuccess",
];
/// Lines that wait to be written. What comes when so many wait is dropped.
const WAITING_LINES_MAX: usize = 16_384;

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

impl LogFormat {
    /// Reads the setting.
    pub fn read(value: Option<&str>) -> Result<Self, SettingError> {
        match value.map(str::trim) {
            None | Some("text") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            Some(other) => Err(SettingError {
                name: LOG_FORMAT,
                message: format!("`{other}` is not a log format; use `text` or `json`"),
            }),
        }
    }
}

/// Starts the log. Lines that still wait are written when the guard is dropped.
pub fn start(format: LogFormat) -> Result<WorkerGuard, SettingError> {
    let filter = filter(std::env::var(RUST_LOG).ok().as_deref())?;
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING_LINES_MAX);
    let (writer, guard) = builder.thread_name("log").finish(io::stderr());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        // On a full disk the log cannot be written either; saying so on standard error would panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => {
            let lines = lines.with_ansi(io::stderr().is_terminal());
            lines.finish().with(filter_fn(is_logged)).init();
        }
        LogFormat::Json => {
            let lines = lines.with_ansi(false).json().flatten_event(true).with_current_span(false);
            lines.finish().with(filter_fn(is_logged)).init();
        }
    }
    Ok(guard)
}

/// Why a service has ended, as the last line of its log, also where the log was never started.
pub fn last_line(error: &str) -> String {
    match LogFormat::read(variable(LOG_FORMAT).as_deref()) {
        Ok(LogFormat::Json) => {
            let timestamp = time::format(SystemClock.now_ms());
            json!({"timestamp": timestamp, "level": "ERROR", "message": error, "target": "sidetone"})
                .to_string()
        }
        _ => last_line_of_command(error),
    }
}

/// Why a command has failed: people read it, whatever the format of the log.
pub fn last_line_of_command(error: &str) -> String {
    format!("sidetone: {error}")
}

/// Whatever `RUST_LOG` says.
fn is_logged(event: &Metadata<'_>) -> bool {
    !event.target().starts_with("opentelemetry") || OF_OPENTELEMETRY.contains(&event.name())
}

fn filter(value: Option<&str>) -> Result<EnvFilter, SettingError> {
    let value = value.filter(|value| !value.trim().is_empty()).unwrap_or("info");
    EnvFilter::builder().parse(value).map_err(|error| SettingError {
        name: RUST_LOG,
        message: format!(
            "`{value}` cannot be read ({error}); use a level such as `info` or `sidetone=debug`"
        ),
    })
}

/// In milliseconds, to a tenth.
pub(crate) fn duration_ms(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}

/// One line for a request that was answered.
pub fn request(record: &LogRecord, took: Duration) {
    let duration_ms = duration_ms(took);
    let request_id = record.request_id();
    let (method, route, status) = (record.method().as_str(), record.route(), record.status().as_u16());
    let (operation, workspace, key) = (record.operation(), record.workspace(), record.key_last_four());
    let address = record.address().map(tracing::field::display);
    if let Some(note) = record.note() {
        tracing::info!(request_id, "{note}");
    }
    macro_rules! line {
        ($level:expr, $message:literal $(, $more:tt)*) => {
            tracing::event!(target: "sidetone::requests", $level, $($more,)* request_id, method, route, operation, status, duration_ms, workspace, key, address, $message)
        };
    }
    match record.incident() {
        Some(detail) => {
            let path = &*record.path();
            line!(tracing::Level::ERROR, "a request failed on our side", detail, path);
        }
        None if record.is_probe() => line!(tracing::Level::DEBUG, "request"),
        None => line!(tracing::Level::INFO, "request"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(LogFormat::read(Some("json")), Ok(LogFormat::Json));
        assert_eq!(LogFormat::read(None), Ok(LogFormat::Text));
        assert_eq!(LogFormat::read(Some("xml")).unwrap_err().name, LOG_FORMAT);
        assert_eq!(filter(Some("sidetone=loud")).unwrap_err().name, RUST_LOG);
        assert!(filter(Some("warn,sidetone::requests=off")).is_ok() && filter(Some(" ")).is_ok());
    }
}
