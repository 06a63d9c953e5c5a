//! OTLP over HTTP as JSON, for a host that has no library for it: where a collector is, and what it is sent.
use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{Attribute, Step};
use crate::base::hash::hex;
use crate::base::setting::SettingError;
use crate::ports::Random;

/// The setting for all signals, and the one for traces alone. One of them turns traces on.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// `true` turns everything off.
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// Sent with each request, `name=value` after `name=value`; the one for traces alone counts.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TRACES_HEADERS: &str = "OTEL_EXPORTER_OTLP_TRACES_HEADERS";
/// What the service is called; otherwise `sidetone`.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
/// What else is known of it, as the headers are written.
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// The setting that turns traces on, if one does.
pub fn turned_on_by(get: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let set = |name: &str| get(name).filter(|value| !value.trim().is_empty());
    let is_off = set(DISABLED).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    [TRACES_ENDPOINT, ENDPOINT].into_iter().find(|name| set(name).is_some()).filter(|_| !is_off)
}

/// Who collects traces, and what it is told of the service.
#[derive(Clone)]
pub struct Collector {
    /// Where requests go.
    pub url: String,
    /// What each has besides its type.
    pub headers: Vec<(String, String)>,
    resource: Vec<Value>,
}

impl Collector {
    /// Reads the settings; `None` if none turns traces on.
    pub fn from_settings(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let Some(name) = turned_on_by(&get) else { return Ok(None) };
        let set =
            |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let mut url = set(name).unwrap_or_default();
        if name == ENDPOINT {
            url = format!("{}/v1/traces", url.trim_end_matches('/'));
        }
        let parsed = url::Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        if parsed.as_ref().is_some_and(|url| !url.username().is_empty() || url.password().is_some()) {
            let message = format!("must not have a user name or password; put them into {HEADERS}");
            return Err(SettingError { name, message });
        }
        if parsed.is_none_or(|url| !url.has_host()) {
            return Err(SettingError {
                name,
                message: "is not a URL such as http://127.0.0.1:4318".to_owned(),
            });
        }
        let headers = headers(&get)?;
        let resource = resource(&get)?;
        let resource = resource.into_iter().map(|(name, value)| attribute(&name, &value.into())).collect();
        Ok(Some(Self { url, headers, resource }))
    }

    /// The body of a request with these spans, as [`spans`] writes them.
    pub fn body(&self, spans: &[String]) -> String {
        let resource = json!({ "attributes": self.resource });
        format!(
            r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{{"name":"sidetone"}},"spans":[{}]}}]}}]}}"#,
            spans.join(",")
        )
    }
}

/// What each request has besides its type.
pub fn headers(get: impl Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, SettingError> {
    let set = |name: &str| get(name).filter(|value| !value.trim().is_empty());
    let name = if set(TRACES_HEADERS).is_some() { TRACES_HEADERS } else { HEADERS };
    let headers = pairs(name, &set(name).unwrap_or_default())?;
    let is_header = |(name, value): &(String, String)| {
        HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok()
    };
    match headers.iter().all(is_header) {
        true => Ok(headers),
        false => {
            Err(SettingError { name, message: "has a name or a value that no header can have".to_owned() })
        }
    }
}

/// What a collector is told of the service.
pub fn resource(get: impl Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, SettingError> {
    let set = |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let mut known = pairs(RESOURCE, &set(RESOURCE).unwrap_or_default())?;
    let mut put =
        |name: &str, value: String, over: bool| match known.iter_mut().find(|(known, _)| known == name) {
            Some(known) if over => known.1 = value,
            Some(_) => {}
            None => known.push((name.to_owned(), value)),
        };
    put("service.version", env!("CARGO_PKG_VERSION").to_owned(), false);
    let name = set(SERVICE_NAME);
    let is_named = name.is_some();
    put("service.name", name.unwrap_or_else(|| "sidetone".to_owned()), is_named);
    Ok(known)
}

/// `name=value` after `name=value`; values may be percent-encoded.
fn pairs(name: &'static str, text: &str) -> Result<Vec<(String, String)>, SettingError> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let pair = |item: &str| {
        let (key, value) = item.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?.into_owned();
        (!key.trim().is_empty()).then(|| (key.trim().to_owned(), value))
    };
    let wrong = || SettingError { name, message: "is not a list such as name=value,other=value".to_owned() };
    items.map(|item| pair(item).ok_or_else(wrong)).collect()
}

/// A call's steps as spans of one trace, each a JSON object.
pub fn spans(call: &Step, random: &dyn Random) -> Vec<String> {
    let mut trace_id = [0; 16];
    random.fill(&mut trace_id);
    let mut written = Vec::new();
    write(call, &hex(&trace_id), "", random, &mut written);
    written
}

fn write(step: &Step, trace_id: &str, parent_id: &str, random: &dyn Random, written: &mut Vec<String>) {
    let mut id = [0; 8];
    random.fill(&mut id);
    let id = hex(&id);
    let nanoseconds = |ms: i64| format!("{}000000", ms.max(0));
    let attributes = step.attributes.iter().map(|(name, value)| attribute(name, value)).collect::<Vec<_>>();
    let mut span = json!({
        "traceId": trace_id, "spanId": id, "name": step.name, "kind": if step.is_client { 3 } else { 1 },
        "startTimeUnixNano": nanoseconds(step.start_ms), "endTimeUnixNano": nanoseconds(step.end_ms.max(step.start_ms)),
        "attributes": attributes,
    });
    if !parent_id.is_empty() {
        span["parentSpanId"] = parent_id.into();
    }
    if let Some(failure) = &step.failure {
        span["status"] = json!({"code": 2, "message": failure});
    }
    written.push(span.to_string());
    for inner in &step.inner {
        write(inner, trace_id, &id, random, written);
    }
}

fn attribute(name: &str, value: &Attribute) -> Value {
    // OTLP's JSON has whole numbers as texts.
    let value = match value {
        Attribute::Text(text) => json!({ "stringValue": text }),
        Attribute::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": name, "value": value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Option<Collector>, SettingError> {
        Collector::from_settings(|name| {
            settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_collector_is_read_as_opentelemetry_says() {
        assert!(read(&[]).unwrap().is_none());
        assert!(read(&[(ENDPOINT, "http://a.example"), (DISABLED, "TRUE")]).unwrap().is_none());
        let one = read(&[(ENDPOINT, "http://a.example:4318/"), (HEADERS, "x-key=a%20b, other = c")])
            .unwrap()
            .unwrap();
        assert_eq!(one.url, "http://a.example:4318/v1/traces");
        assert_eq!(
            one.headers,
            [("x-key".to_owned(), "a b".to_owned()), ("other".to_owned(), "c".to_owned())]
        );
        let one = read(&[
            (ENDPOINT, "http://a.example"),
            (TRACES_ENDPOINT, "https://b.example/traces"),
            (HEADERS, "a=b"),
            (TRACES_HEADERS, "c=d"),
            (RESOURCE, "service.name=x,deployment.environment.name=test"),
        ]);
        let one = one.unwrap().unwrap();
        assert_eq!((one.url.as_str(), one.headers.len()), ("https://b.example/traces", 1));
        let body: Value = serde_json::from_str(&one.body(&[])).unwrap();
        let told = body["resourceSpans"][0]["resource"]["attributes"].to_string();
        for part in [
            r#""service.name","value":{"stringValue":"x"}"#,
            "deployment.environment.name",
            "service.version",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        for (name, value) in [
            (ENDPOINT, "localhost:4318"),
            (TRACES_ENDPOINT, "ftp://a.example"),
            (TRACES_ENDPOINT, "https://user:pass@a.example"),
            (HEADERS, "a"),
            (HEADERS, "a b=c"),
            (HEADERS, "a=%0A"),
            (RESOURCE, "=b"),
        ] {
            let error = read(&[(name, value), (ENDPOINT, "http://a.example")]);
            assert_eq!(error.err().map(|error| error.name), Some(name), "{value}");
        }
    }

    #[test]
    fn spans_of_a_call_have_one_trace_and_their_parents() {
        struct Counts(std::sync::atomic::AtomicU8);
        impl Random for Counts {
            fn fill(&self, bytes: &mut [u8]) {
                bytes.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
            }
        }
        let mut call = Step::new("invoke_agent", false, 1_000, 500);
        call.attributes = vec![("a", "b".into()), ("n", 7_i64.into())];
        call.failure = Some("fault of: provider".to_owned());
        call.inner = vec![Step::new("chat", true, 1_000, 1_200)];
        let written = spans(&call, &Counts(std::sync::atomic::AtomicU8::new(1)));
        let written: Vec<Value> = written.iter().map(|span| serde_json::from_str(span).unwrap()).collect();
        assert_eq!(
            written,
            [
                json!({"traceId": "01".repeat(16), "spanId": "02".repeat(8), "name": "invoke_agent", "kind": 1,
                    "startTimeUnixNano": "1000000000", "endTimeUnixNano": "1000000000",
                    "attributes": [{"key": "a", "value": {"stringValue": "b"}}, {"key": "n", "value": {"intValue": "7"}}],
                    "status": {"code": 2, "message": "fault of: provider"}}),
                json!({"traceId": "01".repeat(16), "spanId": "03".repeat(8), "parentSpanId": "02".repeat(8), "name": "chat",
                    "kind": 3, "startTimeUnixNano": "1000000000", "endTimeUnixNano": "1200000000", "attributes": []}),
            ]
        );
    }
}
