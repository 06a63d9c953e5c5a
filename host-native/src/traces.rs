//! Traces of calls over OTLP/HTTP, for the collector that OpenTelemetry's own variables name. A trace is made of the record of
//! a call when it has ended, so nothing of it is in the way of a conversation; what the collector does not take in time is
//! dropped.
mod collector;
mod steps;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Span as _, SpanBuilder, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use serde_json::Value;
use sidetone_engine::base::setting::SettingError;
use sidetone_engine::ports;

use collector::Collector;
use steps::{Step, step_of_call};

/// The setting for all signals, and the one for traces alone. One of them turns traces on.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// `true` turns everything off.
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// Without this setting the service is called `sidetone`.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// Makes spans of calls and sends them.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// `None` without an endpoint. The library reads its other variables itself.
    pub fn from_settings(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let is_off = get(DISABLED).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
        let name = match [TRACES_ENDPOINT, ENDPOINT].into_iter().find(|name| get(name).is_some()) {
            Some(name) if !is_off => name,
            _ => return Ok(None),
        };
        let wrong = |message: String| SettingError { name, message };
        let collector = Collector::new().map_err(|error| wrong(error.to_string()))?;
        let exporter = SpanExporter::builder().with_http().with_http_client(collector).build();
        let exporter =
            exporter.map_err(|_| wrong("is not a URL such as http://127.0.0.1:4318".to_owned()))?;
        let resource =
            Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        let resource = match get(SERVICE_NAME) {
            Some(_) => resource,
            None => resource.with_service_name("sidetone"),
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        let tracer = provider.tracer("sidetone");
        Ok(Some(Self { provider, tracer }))
    }

    /// Sends what waits, within this time.
    pub fn stop(&self, within: Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(within) {
            tracing::warn!(%error, "some traces were not sent");
        }
    }

    fn record(&self, step: Step, around: &Context) {
        let Step { name, kind, start_ms, end_ms, attributes, failure, inner } = step;
        let builder = SpanBuilder::from_name(name)
            .with_kind(kind)
            .with_start_time(time(start_ms))
            .with_attributes(attributes);
        let mut span = self.tracer.build_with_context(builder, around);
        if let Some(failure) = failure {
            span.set_status(Status::error(failure));
        }
        let within = around.with_span(span);
        for step in inner {
            self.record(step, &within);
        }
        within.span().end_with_timestamp(time(end_ms.max(start_ms)));
    }
}

impl ports::Traces for Traces {
    fn ended(&self, workspace_id: &str, call: &Value) {
        if let Some(step) = step_of_call(workspace_id, call) {
            self.record(step, &Context::new());
        }
    }
}

fn time(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(ms).unwrap_or_default())
}
