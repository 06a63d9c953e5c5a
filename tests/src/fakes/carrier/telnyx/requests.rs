//! The requests to Telnyx's API, field by field. Documented fields that no service of ours sends are rejected.
use serde_json::{Map, Value};

use super::super::wire::{ApiReply, ApiRequest, Command, Detection, Instruction, Told};
use super::{API_KEY, CONNECTION_ID, error, unauthorized};

/// The type of a field.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
    Connection,
    Url(&'static [&'static str]),
    Base64,
    OneOf(&'static [&'static str]),
    Integer(i64, i64),
    Rate,
    Flag,
    Headers,
    /// For event types, when a webhook is sent again.
    Retries,
}

/// A field: its name, its type, whether it is required.
type Field = (&'static str, Kind, bool);

const WEB: Kind = Kind::Url(&["https://", "http://"]);
/// Real values are encrypted; those of tests are not.
const SOCKET: Kind = Kind::Url(&["wss://", "ws://"]);
const CODECS: Kind = Kind::OneOf(&["PCMU", "PCMA", "G722", "OPUS", "AMR-WB", "L16"]);

/// `types/calls/action_answer_params.py`; `types/call_dial_params.py` contains all of it as well.
const ANSWER: &[Field] = &[
    ("client_state", Kind::Base64, false),
    ("command_id", Kind::Text, false),
    ("send_silence_when_idle", Kind::Flag, false),
    ("stream_bidirectional_codec", CODECS, false),
    ("stream_bidirectional_mode", Kind::OneOf(&["mp3", "rtp"]), false),
    ("stream_bidirectional_target_legs", Kind::OneOf(&["both", "self", "opposite"]), false),
    ("stream_codec", Kind::OneOf(&["PCMU", "PCMA", "G722", "OPUS", "AMR-WB", "L16", "default"]), false),
    ("stream_track", Kind::OneOf(&["inbound_track", "outbound_track", "both_tracks"]), false),
    ("stream_url", SOCKET, false),
    ("webhook_url", WEB, false),
    ("webhook_url_method", Kind::OneOf(&["POST", "GET"]), false),
];

/// The words of `answering_machine_detection`.
const DETECTIONS: &[&str] = &[
    "premium",
    "premium_ios_call_screening_detection",
    "detect",
    "detect_beep",
    "detect_words",
    "greeting_end",
    "disabled",
];

/// The additional fields of a dial.
const DIAL: &[Field] = &[
    ("answering_machine_detection", Kind::OneOf(DETECTIONS), false),
    ("connection_id", Kind::Connection, true),
    ("from", Kind::Number, true),
    ("to", Kind::Number, true),
    ("retry_on_timeout", Kind::Flag, false),
    ("stream_bidirectional_sampling_rate", Kind::Rate, false),
    ("stream_establish_before_call_originate", Kind::Flag, false),
    ("time_limit_secs", Kind::Integer(1, 14_400), false),
    ("timeout_secs", Kind::Integer(5, 600), false),
];

/// `types/calls/action_reject_params.py`.
const REJECT: &[Field] = &[
    ("cause", Kind::OneOf(&["CALL_REJECTED", "NOT_FOUND", "TEMPORARILY_UNAVAILABLE", "USER_BUSY"]), true),
    ("client_state", Kind::Base64, false),
    ("command_id", Kind::Text, false),
];

/// `types/calls/action_hangup_params.py`.
const HANGUP: &[Field] = &[
    ("client_state", Kind::Base64, false),
    ("command_id", Kind::Text, false),
    ("reason", Kind::Text, false),
];

/// `types/calls/action_transfer_params.py`.
const TRANSFER: &[Field] = &[
    ("to", Kind::Number, true),
    ("from", Kind::Number, false),
    ("client_state", Kind::Base64, false),
    ("command_id", Kind::Text, false),
    ("custom_headers", Kind::Headers, false),
    // Not required, but the default of the second one is four hours.
    ("timeout_secs", Kind::Integer(5, 600), true),
    ("time_limit_secs", Kind::Integer(30, 14_400), true),
    ("webhook_retries_policies", Kind::Retries, false),
    ("webhook_url", WEB, false),
    ("webhook_url_method", Kind::OneOf(&["POST", "GET"]), false),
];

/// `types/calls/action_start_streaming_params.py`.
const STREAMING: &[Field] = &[
    ("client_state", Kind::Base64, false),
    ("command_id", Kind::Text, false),
    ("stream_bidirectional_codec", CODECS, false),
    ("stream_bidirectional_mode", Kind::OneOf(&["mp3", "rtp"]), false),
    ("stream_bidirectional_sampling_rate", Kind::Rate, false),
    ("stream_bidirectional_target_legs", Kind::OneOf(&["both", "self", "opposite"]), false),
    ("stream_codec", Kind::OneOf(&["PCMU", "PCMA", "G722", "OPUS", "AMR-WB", "L16", "default"]), false),
    ("stream_track", Kind::OneOf(&["inbound_track", "outbound_track", "both_tracks"]), false),
    ("stream_url", SOCKET, false),
];

/// Parses a request.
pub(super) fn read(request: &ApiRequest) -> Result<Command, ApiReply> {
    if request.header("authorization") != Some(&format!("Bearer {API_KEY}")) {
        return Err(unauthorized());
    }
    let segments: Vec<&str> = request.path.split('/').collect();
    let fields: Vec<Field> = match (request.method.as_str(), segments.as_slice()) {
        ("POST", ["", "v2", "calls"]) => [ANSWER, DIAL].concat(),
        ("POST", ["", "v2", "calls", _, "actions", "answer"]) => ANSWER.to_vec(),
        ("POST", ["", "v2", "calls", _, "actions", "reject"]) => REJECT.to_vec(),
        ("POST", ["", "v2", "calls", _, "actions", "hangup"]) => HANGUP.to_vec(),
        ("POST", ["", "v2", "calls", _, "actions", "transfer"]) => TRANSFER.to_vec(),
        ("POST", ["", "v2", "calls", _, "actions", "streaming_start"]) => STREAMING.to_vec(),
        _ => {
            let detail = "The requested resource or URL could not be found.";
            return Err(error(404, "10005", "Resource not found", detail, None));
        }
    };
    let body = object(request)?;
    check(&body, &fields)?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let carrier_call_id = match segments.get(3) {
        Some(id) => call_control_id(id)?,
        None => {
            return Ok(Command::Place {
                from: text("from").unwrap_or_default(),
                to: text("to").unwrap_or_default(),
                status_url: text("webhook_url").unwrap_or_default(),
                instruction: Some(connect(&body)?),
                answer_url: None,
                detection: detection(&body),
            });
        }
    };
    match segments[5] {
        "answer" => Ok(Command::Answer { carrier_call_id, instruction: connect(&body)? }),
        "reject" => Ok(Command::Refuse { carrier_call_id }),
        "streaming_start" => Ok(Command::Reconnect { carrier_call_id, instruction: connect(&body)? }),
        "transfer" => {
            let seconds = body.get("time_limit_secs").and_then(Value::as_u64).unwrap_or_default();
            let dial = Instruction::Dial {
                to: text("to").unwrap_or_default(),
                caller_id: text("from"),
                seconds: seconds.try_into().unwrap_or_default(),
                told: text("webhook_url").map(|url| Told { status_url: url.clone(), back_url: url }),
            };
            Ok(Command::Transfer { carrier_call_id, instruction: Ok(dial) })
        }
        _ => Ok(Command::HangUp { carrier_call_id }),
    }
}

/// All but `disabled` report a result at the call's URL, and all but `detect` more about a greeting.
fn detection(body: &Map<String, Value>) -> Option<Detection> {
    let kind = body.get("answering_machine_detection")?.as_str().filter(|kind| *kind != "disabled")?;
    let url = body.get("webhook_url")?.as_str()?.to_owned();
    Some(Detection { reports_greeting: kind != "detect", url })
}

/// With `mp3`, the default, Telnyx would drop our audio. Here that is an error.
fn connect(body: &Map<String, Value>) -> Result<Instruction, ApiReply> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let media_url = text("stream_url").ok_or_else(|| missing("stream_url"))?.to_owned();
    for (name, expected) in [
        ("stream_track", "inbound_track"),
        ("stream_codec", "PCMU"),
        ("stream_bidirectional_mode", "rtp"),
        ("stream_bidirectional_codec", "PCMU"),
    ] {
        if text(name) != Some(expected) {
            return Err(invalid(name, &format!("This fake plays {expected} only.")));
        }
    }
    Ok(Instruction::Connect { media_url, status_url: text("webhook_url").map(str::to_owned) })
}

fn object(request: &ApiRequest) -> Result<Map<String, Value>, ApiReply> {
    let content_type = request.header("content-type").unwrap_or_default();
    if content_type.split(';').next().map(str::trim) != Some("application/json") {
        let detail = "The request failed because the server does not support the media type.";
        return Err(error(415, "10014", "Unsupported Media Type", detail, None));
    }
    serde_json::from_slice(&request.body).map_err(|_| {
        error(400, "10015", "Bad Request", "The request failed because it was not well-formed.", None)
    })
}

fn check(body: &Map<String, Value>, fields: &[Field]) -> Result<(), ApiReply> {
    if let Some((name, ..)) = fields.iter().find(|(name, _, needed)| *needed && !body.contains_key(*name)) {
        return Err(missing(name));
    }
    for (name, value) in body {
        let Some((_, kind, _)) = fields.iter().find(|(known, ..)| known == name) else {
            return Err(invalid(name, "There is no such parameter."));
        };
        fits(name, value, *kind)?;
    }
    Ok(())
}

fn fits(name: &str, value: &Value, kind: Kind) -> Result<(), ApiReply> {
    let text = value.as_str().unwrap_or_default();
    let fits = match kind {
        Kind::Text => !text.is_empty(),
        Kind::Number => {
            let digits = text.strip_prefix('+').unwrap_or_default();
            let e164 = (7..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !e164 {
                let detail = format!("The '{name}' parameter must be in E164 format.");
                let pointer = format!("/{name}");
                return Err(error(
                    422,
                    "10016",
                    "Phone number must be in +E164 format",
                    &detail,
                    Some(&pointer),
                ));
            }
            true
        }
        Kind::Connection if text != CONNECTION_ID => {
            let title = "Invalid value for connection_id (Call Control App ID)";
            let detail =
                "The requested connection_id (Call Control App ID) is either invalid or does not exist.";
            return Err(error(422, "10015", title, detail, Some("/connection_id")));
        }
        Kind::Connection => true,
        Kind::Url(schemes) => schemes.iter().any(|scheme| {
            text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        }),
        Kind::Base64 => {
            use base64::Engine as _;
            !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok()
        }
        Kind::OneOf(words) if !words.contains(&text) => {
            let detail = format!("The value must be one of: {}.", words.join(", "));
            let pointer = format!("/{name}");
            return Err(error(422, "10032", "Invalid enumerated value", &detail, Some(&pointer)));
        }
        Kind::OneOf(_) => true,
        Kind::Integer(min, max) if value.as_i64().is_some_and(|number| !(min..=max).contains(&number)) => {
            let detail = format!("The value is outside of allowed range {min} to {max}");
            let pointer = format!("/{name}");
            return Err(error(422, "10033", "Value outside of range", &detail, Some(&pointer)));
        }
        Kind::Integer(..) => value.is_i64(),
        Kind::Rate => matches!(value.as_i64(), Some(8_000 | 16_000 | 22_050 | 24_000 | 48_000)),
        Kind::Flag => value.is_boolean(),
        Kind::Headers => value.as_array().is_some_and(|headers| {
            headers.iter().all(|header| {
                header["name"].as_str().is_some_and(|name| name.starts_with("X-"))
                    && header["value"].is_string()
            })
        }),
        Kind::Retries => value.as_object().is_some_and(|policies| {
            policies.iter().all(|(event, policy)| {
                let delays = policy["retries_ms"].as_array().map(Vec::as_slice).unwrap_or_default();
                let sum_ms: Option<u64> = delays.iter().map(Value::as_u64).sum();
                event.starts_with("call.")
                    && (1..=5).contains(&delays.len())
                    && sum_ms.is_some_and(|sum_ms| sum_ms <= 60_000)
            })
        }),
    };
    if fits { Ok(()) } else { Err(invalid(name, &format!("The value {value} is not valid."))) }
}

fn missing(name: &str) -> ApiReply {
    let detail = format!("The '{name}' parameter is required and cannot be blank.");
    error(422, "10004", "Missing required parameter", &detail, Some(&format!("/{name}")))
}

fn invalid(name: &str, detail: &str) -> ApiReply {
    error(422, "10015", "Invalid parameter", detail, Some(&format!("/{name}")))
}

/// The id in the path: `v3:…`, with the colon plain or percent-encoded.
fn call_control_id(segment: &str) -> Result<String, ApiReply> {
    let id = segment.replace("%3A", ":").replace("%3a", ":");
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-' | '=' | '.');
    if id.contains(':') && id.chars().all(known) {
        return Ok(id);
    }
    let detail = "The call_control_id provided was not valid.";
    Err(error(422, "90015", "Invalid Call Control ID", detail, Some("/call_control_id")))
}
