//! Traces of calls over OTLP/HTTP, for the collector that OpenTelemetry's own variables name. A trace is made of the record of
//! a call when it has ended, so nothing of it is in the way of a conversation; what the collector does not take in time is
//! dropped.
mod collector;
mod exporter;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use sidetone_engine::base::setting::SettingError;
use sidetone_engine::ports::{self, Attribute, Step, otlp};

use collector::Collector;
use exporter::Exporter;

/// Makes spans of calls and sends them.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// `None` without an endpoint. The library reads its other variables itself.
    pub fn from_settings(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let Some(name) = otlp::turned_on_by(&lookup) else { return Ok(None) };
        // To the library, an empty variable is set, and hides the one for all signals. It decodes these values once more.
        let headers = otlp::headers(&lookup)?.into_iter();
        let headers = headers.map(|(name, value)| (name, value.replace('%', "%25"))).collect();
        let wrong = |message: String| SettingError { name, message };
        let collector = Collector::new().map_err(|error| wrong(error.to_string()))?;
        let last_problem = collector.last_problem();
        let exporter =
            SpanExporter::builder().with_http().with_http_client(collector).with_headers(headers).build();
        let exporter =
            exporter.map_err(|_| wrong("is not a URL such as http://127.0.0.1:4318".to_owned()))?;
        let known = otlp::resource(&lookup)?.into_iter().map(|(name, value)| KeyValue::new(name, value));
        let resource = Resource::builder().with_attributes(known);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Exporter::new(exporter, last_problem))
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
        let Step { name, is_client, start_ms, end_ms, attributes, failure, inner } = step;
        let kind = if is_client { SpanKind::Client } else { SpanKind::Internal };
        let attributes = attributes.into_iter().map(|(name, value)| match value {
            Attribute::Text(text) => KeyValue::new(name, text),
            Attribute::Number(number) => KeyValue::new(name, number),
        });
        let builder = SpanBuilder::from_name(name)
            .with_kind(kind)
            .with_start_time(time(start_ms))
            .with_attributes(attributes.collect::<Vec<_>>());
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
    fn ended(&self, call: Step) {
        self.record(call, &Context::new());
    }
}

fn time(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(ms).unwrap_or_default())
}
