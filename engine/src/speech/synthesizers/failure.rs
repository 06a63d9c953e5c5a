//! Providers' errors as the operator reads them: who can resolve them, without keys and addresses.
use serde_json::Value;

use crate::base::text::{collapse_whitespace, truncate};
use crate::ports::TOO_LARGE_CODE;
use crate::speech::exchange::{ExchangeFailure, SpeechFailure, SpeechFault};

/// The most bytes of a provider's own words in a message.
const QUOTE_BYTES_MAX: usize = 200;
/// From this length on, a word with digits and no spaces is taken for a key.
const KEY_CHARS_MIN: usize = 24;

/// A failure of the provider that may not happen again. Only what the operator must resolve is for good.
pub(super) fn temporary(message: impl Into<String>) -> SpeechFailure {
    SpeechFailure { message: message.into(), fault: SpeechFault::Provider, is_temporary: true }
}

/// An error response.
pub(super) fn refused(provider: &str, status: u16, body: &str) -> SpeechFailure {
    let said = said(body);
    let quote = quote(&said);
    let message = match quote.as_str() {
        "" if status < 400 => {
            format!(
                "{provider} answered with status {status} and not as its protocol does; check the base URL"
            )
        }
        "" => format!("{provider} answered with status {status}"),
        quote => format!("{provider} answered with status {status}: {quote}"),
    };
    judged(message, Some(status), &said)
}

/// An error inside a stream, or the reason of a closed socket.
pub(super) fn reported(provider: &str, status: Option<u16>, said: &str) -> SpeechFailure {
    let message = match quote(said).as_str() {
        "" => format!("{provider} reported an error"),
        quote => format!("{provider} reported an error: {quote}"),
    };
    judged(message, status, said)
}

/// A closed socket.
pub(super) fn closed(provider: &str, code: u16, reason: &str) -> SpeechFailure {
    let message = match quote(reason).as_str() {
        // Whoever of the two closed it.
        "" if code == TOO_LARGE_CODE => {
            format!("{provider} sent or got a message that was too large (code {code})")
        }
        "" => format!("{provider} closed the connection with code {code}"),
        quote => format!("{provider} closed the connection with code {code}: {quote}"),
    };
    judged(message, None, reason)
}

/// No connection, or a broken one.
pub(super) fn broken(provider: &str, failure: &ExchangeFailure) -> SpeechFailure {
    match failure {
        ExchangeFailure::Timeout => temporary(format!("{provider} did not answer in time")),
        ExchangeFailure::Rejected { status, body } => refused(provider, *status, body),
        ExchangeFailure::TooLarge => temporary(format!("{provider} sent more than a line can have")),
        ExchangeFailure::Broken(_) => {
            temporary(format!("{provider} could not be reached, or the connection broke"))
        }
    }
}

/// Decides who can resolve a failure, by its status and its words.
fn judged(message: String, status: Option<u16>, said: &str) -> SpeechFailure {
    let said = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let is_account = has(&["quota", "credit", "payment", "billing", "subscription"]);
    let is_key = has(&["api key", "api_key", "unauthorized", "authenticat", "credential", "permission"]);
    let is_unknown = has(&["not found", "not_found", "unknown", "invalid", "does not exist", "unsupported"]);
    let is_name = has(&["voice", "model", "language"]) && is_unknown;
    let is_operators = match status {
        Some(408 | 409 | 425) => false,
        Some(429) => is_account,
        Some(400..500) => true,
        Some(500..) => false,
        _ => is_account || is_key || is_name,
    };
    if is_operators {
        SpeechFailure { message, fault: SpeechFault::Operator, is_temporary: false }
    } else {
        temporary(message)
    }
}

/// The message inside an error's body, in the forms in which providers have it.
fn said(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else {
        return if body.trim_start().starts_with('<') { String::new() } else { body.to_owned() };
    };
    let inner = ["error", "detail"].iter().filter_map(|name| value.get(name)).find(|inner| !inner.is_null());
    let places = [inner, Some(&value)];
    for place in places.into_iter().flatten() {
        if let Some(text) = place.as_str() {
            return text.to_owned();
        }
        let parts: Vec<&str> = ["title", "message", "err_msg", "reason", "description", "status", "code"]
            .iter()
            .filter_map(|name| place.get(name).and_then(Value::as_str))
            .collect();
        if !parts.is_empty() {
            return parts.join(", ");
        }
    }
    String::new()
}

/// A provider's words, short and without what looks like a key or an address.
fn quote(text: &str) -> String {
    let text = truncate(text.to_owned(), 4 * QUOTE_BYTES_MAX);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().map(shown).collect();
    truncate(collapse_whitespace(&words.join(" ")), QUOTE_BYTES_MAX)
}

/// A word, or what stands for it.
fn shown(word: &str) -> &str {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_key = bare.starts_with("sk-")
        || bare.starts_with("sk_")
        || (bare.chars().count() >= KEY_CHARS_MIN && bare.chars().any(|c| c.is_ascii_digit()))
        || bare.contains("***");
    if is_key {
        return "(hidden)";
    }
    if word.contains("://") || is_host(bare) { "(address)" } else { word }
}

/// Whether a word is a host name or an IP address, with or without a port and path.
fn is_host(word: &str) -> bool {
    let host = word.split(['/', '?']).next().unwrap_or_default();
    if host.matches(':').count() >= 2 && host.chars().all(|c| c.is_ascii_hexdigit() || ":.[]".contains(c)) {
        return true;
    }
    let (host, is_port) = match host.split_once(':') {
        Some((host, port)) => (host, !port.is_empty() && port.chars().all(|c| c.is_ascii_digit())),
        None => (host, false),
    };
    let labels: Vec<&str> = host.split('.').collect();
    let is_label =
        |label: &&str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_number = |label: &str| label.chars().all(|c| c.is_ascii_digit());
    if is_port && labels.iter().all(is_label) && !is_number(host) {
        return true;
    }
    if labels.len() < 2 || !labels.iter().all(is_label) {
        return false;
    }
    let is_ip = labels.len() == 4 && labels.iter().all(|label| is_number(label));
    let top = labels.last().copied().unwrap_or_default();
    is_ip || (top.len() >= 2 && top.chars().all(|c| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_keys_and_unknown_voices_are_the_operators() {
        for (status, body) in [
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-ab***yz.","code":"invalid_api_key"}}"#,
            ),
            (401, r#"{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials.","request_id":"r"}"#),
            (
                404,
                r#"{"detail":{"status":"voice_not_found","message":"A voice with that id was not found"}}"#,
            ),
            (402, ""),
            (429, r#"{"error":{"message":"You exceeded your current quota"}}"#),
        ] {
            let failure = refused("X", status, body);
            assert_eq!(failure.fault, SpeechFault::Operator, "{failure:?}");
            assert!(!failure.is_temporary);
        }
        for (status, body) in
            [(429, r#"{"error":"slow down"}"#), (500, ""), (503, "<html>busy</html>"), (200, "<html>")]
        {
            let failure = refused("X", status, body);
            assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Provider, true), "{failure:?}");
        }
        assert!(refused("X", 200, "<html>").message.ends_with("check the base URL"));
        assert_eq!(closed("X", 1008, "invalid_api_key").fault, SpeechFault::Operator);
        assert_eq!(closed("X", 1011, "").message, "X closed the connection with code 1011");
    }

    #[test]
    fn messages_name_no_key_and_no_address() {
        let said = "Key 0123456789abcdef0123456789abcdef for api.example.com at https://10.1.2.3/v1 \
                    (localhost:8880, 10.0.0.7, fe80::1:2) is bad: sk-abc. Ask us, e.g. by mail. Use v1.5 or 3.25";
        let shown = refused("X", 401, said).message;
        for secret in ["0123", "example", "10.1", "localhost", "10.0.0.7", "fe80", "sk-abc"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
        assert!(shown.contains("is bad") && shown.contains("v1.5 or 3.25"), "{shown}");
        assert!(refused("X", 500, &"é ".repeat(5_000)).message.len() < 300);
    }
}
