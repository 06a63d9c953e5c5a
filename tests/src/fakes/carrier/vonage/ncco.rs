//! Call Control Objects, from Vonage's "NCCO reference" and the models of its SDKs.
use serde_json::{Map, Value};

use super::fields::{address, method, number, object, text, url, within};

/// The instruction of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Ncco {
    /// Connects to a WebSocket.
    Connect(SocketLeg),
    /// Connects to a telephone.
    Dial {
        /// The called number.
        to: String,
        /// The number that is shown.
        from: Option<String>,
        /// The most that the connection may last.
        seconds: u32,
        /// The URL for events of that leg, whose answers may be documents.
        event_url: String,
    },
    /// Ends the call, possibly after a spoken text.
    Over,
}

/// A connection to a WebSocket.
#[derive(Debug, Clone, PartialEq)]
pub struct SocketLeg {
    /// `ws://` or `wss://`
    pub uri: String,
    /// Samples per second.
    pub rate_hz: u32,
    /// The headers, which its events and its first message repeat.
    pub headers: Map<String, Value>,
    /// The URL for its events.
    pub event_url: Option<String>,
    /// Whether its opening request has Vonage's token.
    pub is_signed: bool,
}

/// Parses a document.
pub fn read(document: &Value) -> Result<Ncco, String> {
    let actions = document.as_array().ok_or("an NCCO is an array")?;
    let mut found = Ncco::Over;
    for action in actions {
        match action.get("action").and_then(Value::as_str) {
            Some("talk") => talk(action)?,
            Some("connect") if found == Ncco::Over => found = connect(action)?,
            other => return Err(format!("Syntax error in NCCO. Invalid value type or action: {other:?}")),
        }
    }
    Ok(found)
}

fn talk(action: &Value) -> Result<(), String> {
    const CHARACTERS_MAX: usize = 1_500;
    let known = ["action", "text", "bargeIn", "loop", "level", "language", "style", "premium"];
    let action = object(action, "talk", &known)?;
    match text(action, "text")?.chars().count() <= CHARACTERS_MAX {
        true => Ok(()),
        false => Err("text: is too long".to_owned()),
    }
}

fn connect(action: &Value) -> Result<Ncco, String> {
    let known = [
        "action",
        "endpoint",
        "from",
        "randomFromNumber",
        "eventType",
        "timeout",
        "limit",
        "machineDetection",
        "advancedMachineDetection",
        "eventUrl",
        "eventMethod",
        "ringbackTone",
    ];
    let action = object(action, "connect", &known)?;
    let from = action.get("from").map(|from| number(Some(from), "from")).transpose()?;
    within(action, "limit", 1..=7_200)?;
    within(action, "timeout", 1..=600)?;
    method(action, "eventMethod")?;
    let event_url =
        action.get("eventUrl").map(|_| url(action.get("eventUrl"), "eventUrl", "http")).transpose()?;
    let endpoint = super::fields::one(action.get("endpoint"), "endpoint")?;
    if endpoint["type"] == "phone" {
        let endpoint = object(endpoint, "endpoint", &["type", "number"])?;
        // Without them Vonage has limits of its own.
        let seconds = |name: &str| {
            let seconds =
                action.get(name).and_then(Value::as_u64).and_then(|seconds| seconds.try_into().ok());
            seconds.ok_or_else(|| format!("{name}: is missing"))
        };
        seconds("timeout")?;
        let to = number(endpoint.get("number"), "endpoint.number")?;
        // Without it, a service learns of nothing.
        if text(action, "eventType")? != "synchronous" {
            return Err("eventType: its answers would not count".to_owned());
        }
        let event_url = event_url.ok_or("eventUrl: is missing")?;
        return Ok(Ncco::Dial { to, from, seconds: seconds("limit")?, event_url });
    }
    let endpoint =
        object(endpoint, "endpoint", &["type", "uri", "content-type", "headers", "authorization"])?;
    if text(endpoint, "type")? != "websocket" {
        return Err("endpoint.type: this fake connects to WebSockets and telephones".to_owned());
    }
    if from.is_none() {
        return Err("from: is missing".to_owned());
    }
    Ok(Ncco::Connect(SocketLeg {
        uri: address(text(endpoint, "uri")?, "endpoint.uri", "ws")?,
        rate_hz: rate_hz(text(endpoint, "content-type")?)?,
        headers: headers(endpoint.get("headers"))?,
        event_url,
        is_signed: is_signed(endpoint.get("authorization"))?,
    }))
}

fn rate_hz(content_type: &str) -> Result<u32, String> {
    match content_type {
        "audio/l16;rate=8000" => Ok(8_000),
        "audio/l16;rate=16000" => Ok(16_000),
        "audio/l16;rate=24000" => Ok(24_000),
        other => Err(format!("content-type: {other} is not supported")),
    }
}

fn headers(headers: Option<&Value>) -> Result<Map<String, Value>, String> {
    const BYTES_MAX: usize = 512;
    let headers = headers.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    match headers {
        Value::Object(headers) if Value::Object(headers.clone()).to_string().len() <= BYTES_MAX => {
            Ok(headers)
        }
        _ => Err(format!("headers: must be an object of at most {BYTES_MAX} bytes")),
    }
}

fn is_signed(authorization: Option<&Value>) -> Result<bool, String> {
    let Some(authorization) = authorization else { return Ok(false) };
    let authorization = object(authorization, "authorization", &["type", "value"])?;
    match text(authorization, "type")? {
        "vonage" => Ok(true),
        "custom" => text(authorization, "value").map(|_| false),
        other => Err(format!("authorization.type: {other} is not known")),
    }
}
