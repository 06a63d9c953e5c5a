//! Plivo's API: the requests that a service sends.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{AUTH_ID, AUTH_TOKEN};
use crate::fakes::carrier::wire::{ApiReply, ApiRequest, Behaviour, Command, Detection};

const API_ID: &str = "97ceeb52-58b6-11e1-86da-77300b68f8bb";
const METHODS: [&str; 4] = ["answer_method", "ring_method", "hangup_method", "machine_detection_method"];
const SECONDS_MAX: u64 = 86_400;

pub(super) fn read(request: &ApiRequest) -> Result<Command, ApiReply> {
    let expected = format!("Basic {}", STANDARD.encode(format!("{AUTH_ID}:{AUTH_TOKEN}")));
    if request.header("authorization") != Some(expected.as_str()) {
        return Err(unauthorized());
    }
    let rest = request.path.strip_prefix("/v1/Account/").and_then(|rest| rest.strip_prefix(AUTH_ID));
    let parts: Vec<&str> = rest.unwrap_or_default().split('/').collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["", "Call", ""]) => place(request),
        ("POST", ["", "Call", id, ""]) if is_uuid(id) => transfer(request, id),
        ("DELETE", ["", "Call" | "Request", id, ""]) if is_uuid(id) => match request.body.is_empty() {
            true => Ok(Command::HangUp { carrier_call_id: (*id).to_owned() }),
            false => Err(error(400, "a DELETE has no body")),
        },
        (_, ["", "Call", ""] | ["", "Call" | "Request", _, ""]) => Err(error(405, "HTTP method not allowed")),
        _ => Err(error(404, "not found")),
    }
}

pub(super) fn placed(request_uuid: &str) -> ApiReply {
    ApiReply::json(201, &json!({"message": "call fired", "request_uuid": request_uuid, "api_id": API_ID}))
}

pub(super) fn refused(behaviour: Behaviour) -> Option<ApiReply> {
    Some(match behaviour {
        Behaviour::Take | Behaviour::Late | Behaviour::Hang | Behaviour::Cut => return None,
        Behaviour::BadNumber => error(400, "to parameter is invalid"),
        Behaviour::NotOurs => error(400, "from parameter is not a number of this account"),
        Behaviour::Unauthorized => unauthorized(),
        Behaviour::TooMany => error(429, "You have exceeded the number of requests allowed"),
        Behaviour::Broken => error(500, "Internal Server Error"),
        Behaviour::NoId => ApiReply::json(201, &json!({"message": "call fired", "api_id": API_ID})),
    })
}

pub(super) fn error(status: u16, text: &str) -> ApiReply {
    ApiReply::json(status, &json!({"api_id": API_ID, "error": text}))
}

/// The only response that is not JSON.
fn unauthorized() -> ApiReply {
    let body = "Could not verify your access level for that URL.\nYou have to login with proper credentials";
    ApiReply { status: 401, content_type: "text/html; charset=utf-8", body: body.to_owned() }
}

pub(super) fn transferred(call_uuid: &str) -> ApiReply {
    ApiReply::json(202, &json!({"message": "call transferred", "call_uuids": [call_uuid], "api_id": API_ID}))
}

fn place(request: &ApiRequest) -> Result<Command, ApiReply> {
    if request.header("content-type") != Some("application/json") {
        return Err(error(400, "the request body must be application/json"));
    }
    let body: Map<String, Value> = serde_json::from_slice(&request.body)
        .map_err(|_| error(400, "the request body is no JSON object"))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).ok_or_else(|| invalid(name));
    let number = |name: &str| text(name).ok().filter(|text| is_number(text)).ok_or_else(|| invalid(name));
    let url = |name: &str| text(name).ok().filter(|text| is_url(text)).ok_or_else(|| invalid(name));
    let (from, to) = (number("from")?, number("to")?);
    if from == to {
        return Err(error(400, "src and destination cannot overlap"));
    }
    let (answer_url, ring_url, hangup_url) = (url("answer_url")?, url("ring_url")?, url("hangup_url")?);
    // The service has one URL for status callbacks.
    if ring_url != hangup_url {
        return Err(invalid("ring_url"));
    }
    for (name, value) in &body {
        let fits = match name.as_str() {
            "from" | "to" | "answer_url" | "ring_url" | "hangup_url" | "machine_detection_url" => true,
            // With `hangup`, Plivo ends the call itself.
            "machine_detection" => value == "true",
            name if METHODS.contains(&name) => value == "POST",
            "time_limit" | "ring_timeout" => value.as_u64().is_some_and(|s| (1..=SECONDS_MAX).contains(&s)),
            _ => false,
        };
        if !fits {
            return Err(invalid(name));
        }
    }
    let detection = match (body.contains_key("machine_detection"), body.get("machine_detection_url")) {
        (false, None) => None,
        // Without a URL, nobody would learn of it while the call goes on.
        (true, Some(_)) => {
            let url = url("machine_detection_url")?.to_owned();
            Some(Detection { reports_greeting: false, url })
        }
        _ => return Err(invalid("machine_detection")),
    };
    Ok(Command::Place {
        from: format!("+{from}"),
        to: format!("+{to}"),
        status_url: hangup_url.to_owned(),
        instruction: None,
        answer_url: Some(answer_url.to_owned()),
        detection,
    })
}

fn transfer(request: &ApiRequest, id: &str) -> Result<Command, ApiReply> {
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|_| error(400, "the request body is no JSON object"))?;
    let url = body["aleg_url"].as_str().filter(|url| is_url(url)).ok_or_else(|| invalid("aleg_url"))?;
    match body == json!({"legs": "aleg", "aleg_url": url, "aleg_method": "POST"}) {
        true => Ok(Command::Transfer { carrier_call_id: id.to_owned(), instruction: Err(url.to_owned()) }),
        false => Err(invalid("legs")),
    }
}

fn invalid(name: &str) -> ApiReply {
    error(400, &format!("{name} parameter is invalid"))
}

pub(super) fn is_number(text: &str) -> bool {
    (7..=15).contains(&text.len()) && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_url(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')) && !text.contains(char::is_whitespace)
}

fn is_uuid(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
