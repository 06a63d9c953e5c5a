//! Errors as providers report them: OpenAI, compatible servers, and providers of speech.
use serde_json::Value;

use crate::base::limits::{MODEL_ERROR_BYTES_MAX, MODEL_ERROR_TEXT_BYTES_MAX};
use crate::base::text::{collapse_whitespace, truncate, without_controls};

/// An error reported by a provider, with an HTTP status or inside a 200 response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The HTTP status, or the number in the error object.
    pub status: Option<u16>,
    /// `type` and `code`, such as `rate_limit_error rate_limit_exceeded`.
    pub kind: String,
    /// The request field that the error is about, if any.
    pub param: String,
    /// The provider's message. Do not show it directly: see [`ProviderError::shown`].
    pub message: String,
    /// The whole error as it was sent, for names of fields in places that we do not know. Never shown.
    pub body: String,
}

impl ProviderError {
    /// Reads an error in any known form: OpenAI's `{"error": {message, type, param, code}}`, the same without the envelope,
    /// `{"detail": …}`, Mistral's `{"message": {"detail": …}}`, or a list with one of these.
    pub fn read(value: &Value, status: Option<u16>) -> Self {
        let body = value.to_string();
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| error.get(name).and_then(Value::as_u64);
        let message = said(error);
        let param = match text("param") {
            "" => places(error).join(" "),
            param => param.to_owned(),
        };
        let own_status = number("code").or_else(|| number("status")).and_then(|n| u16::try_from(n).ok());
        Self {
            status: status.or(own_status.filter(|status| (400..600).contains(status))),
            kind: collapse_whitespace(&truncate(
                format!("{} {}", text("type"), text("code")),
                MODEL_ERROR_TEXT_BYTES_MAX,
            )),
            param: truncate(param, MODEL_ERROR_TEXT_BYTES_MAX),
            // Long enough to search for field names in it.
            message: truncate(message, 8 * MODEL_ERROR_TEXT_BYTES_MAX),
            body: truncate(body, MODEL_ERROR_BYTES_MAX),
        }
    }

    /// Reads the body of an error response.
    pub fn read_body(body: &[u8], status: u16) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::read(&value, Some(status)),
            Err(_) => {
                let body = String::from_utf8_lossy(body).into_owned();
                Self { status: Some(status), body, ..Self::default() }
            }
        }
    }

    /// Classifies the error.
    pub fn class(&self) -> ErrorClass {
        let says = |part: &str| self.kind.contains(part);
        if says("insufficient_quota") {
            return ErrorClass::Quota;
        }
        match self.status {
            Some(401 | 403) => ErrorClass::Credentials,
            Some(402) => ErrorClass::Quota,
            Some(429) => ErrorClass::RateLimit,
            Some(408) => ErrorClass::Timeout,
            // 409 is documented as a temporary conflict.
            Some(409 | 500..) => ErrorClass::Unavailable,
            Some(_) => ErrorClass::Request,
            None if says("rate_limit") => ErrorClass::RateLimit,
            None if says("invalid_api_key") || says("authentication") => ErrorClass::Credentials,
            None if says("invalid_request") => ErrorClass::Request,
            None => ErrorClass::Unavailable,
        }
    }

    /// Whether the provider does not know the model. Providers word it differently, some with status 400.
    pub fn is_unknown_model(&self) -> bool {
        if self.class() != ErrorClass::Request {
            return false;
        }
        let kind = self.kind.to_ascii_lowercase();
        let message = self.message.to_ascii_lowercase();
        let unknown = [
            "not found",
            "not exist",
            "unknown",
            "invalid model",
            "not a valid model",
            "no such",
            "not available",
            "not supported for api version",
        ];
        let is_about_a_model =
            self.param.is_empty() && message.contains("model") && !message.contains("parameter");
        (self.status == Some(404) && self.misses_model_or_address(&message))
            || (kind.contains("model")
                && ["not_found", "invalid", "not_available"].iter().any(|word| kind.contains(word)))
            || ((self.param == "model" || is_about_a_model)
                && unknown.iter().any(|words| message.contains(words)))
    }

    /// Whether a 404 is about the model or the address, both of which are the operator's settings: an address without chat
    /// completions answers 404, too. Other things that a request names can be missing as well.
    fn misses_model_or_address(&self, message: &str) -> bool {
        let settings = ["model", "deployment", "engine", "endpoint", "url", "path", "route", "page"];
        let says_nothing = message.is_empty() || message.trim_end_matches('.') == "not found";
        matches!(self.param.as_str(), "" | "model")
            && (says_nothing || settings.iter().any(|word| message.contains(word)))
    }

    /// The provider's message for the assistant's owner: addresses and anything that looks like a key, even truncated or
    /// masked, are replaced with `…`.
    pub fn shown(&self) -> String {
        shown(&self.message)
    }
}

/// A provider's words without addresses and keys, at most [`MODEL_ERROR_TEXT_BYTES_MAX`] bytes of them.
pub fn shown(text: &str) -> String {
    let kept: Vec<&str> =
        text.split_whitespace().map(|word| if is_private(word) { "…" } else { word }).collect();
    truncate(without_controls(&kept.join(" ")), MODEL_ERROR_TEXT_BYTES_MAX)
}

/// How to react to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// A later retry may succeed.
    RateLimit,
    /// The account's quota is exhausted; a retry fails as well.
    Quota,
    /// The key was rejected.
    Credentials,
    /// The request was rejected.
    Request,
    /// The provider took too long.
    Timeout,
    /// The provider failed.
    Unavailable,
}

/// The error in a response that has one instead of an answer.
pub fn reported_error(value: &Value) -> Option<ProviderError> {
    let is_list = value.get(0).is_some_and(|first| first.get("error").is_some());
    let has_error = value.get("error").is_some_and(|error| !error.is_null());
    let is_error = value.get("object").is_some_and(|object| object == "error");
    (is_list || has_error || is_error).then(|| ProviderError::read(value, None))
}

/// What an error says, in any of these forms: a text, an object with `message`, `msg`, `detail`, `errors`, `err_msg` or
/// `description` (each in one of these forms again), or a list of them.
fn said(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items = items.iter().map(said).filter(|text| !text.is_empty());
            items.collect::<Vec<_>>().join("; ")
        }
        Value::Object(fields) => {
            let inner = SAYING.iter().filter_map(|name| fields.get(*name));
            let text = inner.map(said).find(|text| !text.is_empty()).unwrap_or_default();
            match fields.get("loc").map(place) {
                Some(place) if !place.is_empty() => format!("{place}: {text}"),
                _ => text,
            }
        }
        _ => String::new(),
    }
}

/// The fields in which providers say what is wrong; the last two are Deepgram's.
const SAYING: [&str; 6] = ["message", "msg", "detail", "errors", "err_msg", "description"];

/// Every `loc` in an error: validators list the places of the fields that they reject. Depth is bounded by the JSON
/// parser's limit.
fn places(error: &Value) -> Vec<String> {
    match error {
        Value::Array(items) => items.iter().flat_map(places).collect(),
        Value::Object(fields) => {
            let own = fields.get("loc").map(place).filter(|place| !place.is_empty());
            let inner =
                fields.iter().filter(|(name, _)| matches!(name.as_str(), "message" | "detail" | "errors"));
            own.into_iter().chain(inner.flat_map(|(_, value)| places(value))).collect()
        }
        _ => Vec::new(),
    }
}

/// `["body", "seed"]` as `body.seed`.
fn place(loc: &Value) -> String {
    match loc {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("."),
        _ => String::new(),
    }
}

/// Whether a word may be a key or an address.
fn is_private(word: &str) -> bool {
    /// Longer unbroken runs of letters and digits are probably keys.
    const WORD_BYTES_MAX: usize = 40;
    let lower = word.to_ascii_lowercase();
    let key = ["sk-", "gsk_", "key-", "bearer", "***", "sidetone_"];
    lower.contains("://")
        || key.iter().any(|part| lower.contains(part))
        || lower.contains('@')
        || is_address(&lower)
        || word.len() > WORD_BYTES_MAX
}

/// Whether a word names a machine: gateways report which server behind them failed.
fn is_address(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != ':');
    let word = word.trim_end_matches(':');
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, true)
        }
        _ => (word, false),
    };
    let host = host.trim_end_matches(']');
    let local = ["localhost", "local", "internal"];
    host.parse::<std::net::IpAddr>().is_ok()
        || word.parse::<std::net::Ipv6Addr>().is_ok()
        || (port && host.contains('.'))
        || host == "localhost"
        || host.rsplit_once('.').is_some_and(|(_, last)| local.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_every_form() {
        let (status, message) = (Some(400), "no such model");
        for (body, kind) in [
            (json!({"error": {"message": message, "type": "a", "param": null, "code": "b"}}), "a b"),
            (json!({"error": message}), ""),
            (json!({"object": "error", "message": message, "type": "a", "code": 400}), "a"),
            (json!([{"error": {"message": message, "code": 400, "status": "X"}}]), ""),
        ] {
            let error = ProviderError::read(&body, None);
            assert_eq!((error.message.as_str(), error.kind.as_str()), (message, kind), "{body}");
            assert_eq!(ProviderError::read_body(body.to_string().as_bytes(), 400).status, status);
            assert!(reported_error(&body).is_some(), "{body}");
        }
        let detail = json!({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs", "input": 7}]});
        for body in [json!({"message": detail, "type": "x"}), detail.clone(), json!({"error": detail})] {
            let error = ProviderError::read(&body, status);
            let told = (error.message.as_str(), error.param.as_str());
            assert_eq!(told, ("body.seed: Extra inputs", "body.seed"), "{body}");
        }
        let page = ProviderError::read_body(b"<html>", 502);
        assert_eq!((page.status, page.message.as_str(), page.body.as_str()), (Some(502), "", "<html>"));
        assert_eq!(reported_error(&json!({"error": null, "choices": []})), None);
    }

    #[test]
    fn classifies_errors() {
        let class = |status: Option<u16>, kind: &str| {
            ProviderError { status, kind: kind.into(), ..ProviderError::default() }.class()
        };
        assert_eq!(class(Some(429), ""), ErrorClass::RateLimit);
        assert_eq!(class(Some(429), "insufficient_quota"), ErrorClass::Quota);
        assert_eq!(class(Some(402), ""), ErrorClass::Quota);
        assert_eq!(class(Some(401), ""), ErrorClass::Credentials);
        assert_eq!(class(Some(404), ""), ErrorClass::Request);
        assert_eq!(class(Some(409), ""), ErrorClass::Unavailable);
        assert_eq!(class(Some(408), ""), ErrorClass::Timeout);
        assert_eq!(class(Some(503), ""), ErrorClass::Unavailable);
        assert_eq!(class(None, "requests rate_limit_exceeded"), ErrorClass::RateLimit);
        assert_eq!(class(None, "invalid_request_error"), ErrorClass::Request);
        assert_eq!(class(None, "server_error"), ErrorClass::Unavailable);
    }

    #[test]
    fn an_unknown_model_is_recognized_in_every_wording() {
        let error = |status, body: Value| ProviderError::read(&body, Some(status));
        for (status, body) in [
            (
                404,
                json!({"error": {"message": "The model `x` does not exist", "type": "invalid_request_error", "code": "model_not_found"}}),
            ),
            (
                404,
                json!({"error": {"message": "model 'x' not found, try pulling it first", "type": "api_error"}}),
            ),
            (404, json!(null)),
            (404, json!({"detail": "Not Found"})),
            (404, json!({"error": {"message": "Invalid URL (POST /v2/chat/completions)", "param": null}})),
            (404, json!({"error": {"message": "The model `x` has been deprecated", "param": "model"}})),
            (
                400,
                json!({"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"}),
            ),
            (400, json!({"error": {"message": "x is not a valid model ID", "code": 400}})),
            (
                400,
                json!({"error": {"message": "Model Not Exist", "type": "invalid_request_error", "param": null}}),
            ),
        ] {
            assert!(error(status, body.clone()).is_unknown_model(), "{body}");
        }
        for (status, body) in [
            (
                400,
                json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model.", "param": "max_tokens"}}),
            ),
            (400, json!({"error": {"message": "This model's maximum context length is 8192 tokens."}})),
            (422, json!({"detail": [{"loc": ["body", "seed"], "msg": "unknown field"}]})),
            (401, json!({"error": {"message": "model not found for this key"}})),
            (404, json!({"error": {"message": "File file_1 not found", "param": null}})),
            (404, json!({"error": {"message": "No such tool for this model", "param": "tools"}})),
            (503, json!({"error": {"message": "model not found on any server"}})),
        ] {
            assert!(!error(status, body.clone()).is_unknown_model(), "{body}");
        }
    }

    #[test]
    fn keys_and_addresses_are_not_shown() {
        let message = "Wrong key sk-proj-***abcd. See https://platform.example/keys now, ops@example.com";
        let error = ProviderError { message: message.into(), ..ProviderError::default() };
        assert_eq!(error.shown(), "Wrong key … See … now, …");
        for machine in [
            "10.0.0.5:8000",
            "(10.0.0.5)",
            "vllm-2.cluster.local",
            "gpu.example.com:8000:",
            "localhost:11434,",
            "[fd00::1]:80",
            "fd00::1",
        ] {
            let message =
                format!("Cannot connect to {machine} at 12:30 of version 1.5 after max_tokens: 4096.");
            let error = ProviderError { message, ..ProviderError::default() };
            assert_eq!(
                error.shown(),
                "Cannot connect to … at 12:30 of version 1.5 after max_tokens: 4096.",
                "{machine}"
            );
        }
    }
}
