//! The REST API: the two requests on the Calls resource that a service sends.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde_json::{Value, json};

use super::{ACCOUNT_SID, AUTH_TOKEN, document};
use crate::fakes::carrier::wire::{ApiReply, ApiRequest, Command, Detection, Instruction};

/// The accepted parameters for creating a call.
const CREATE: &[&str] = &[
    "To",
    "From",
    "Url",
    "Method",
    "Twiml",
    "StatusCallback",
    "StatusCallbackMethod",
    "StatusCallbackEvent",
    "Timeout",
    "TimeLimit",
    "MachineDetection",
    "AsyncAmd",
    "AsyncAmdStatusCallback",
    "AsyncAmdStatusCallbackMethod",
];

/// The events for status callbacks.
const EVENTS: &[&str] = &["initiated", "ringing", "answered", "completed"];

/// Longest inline TwiML.
const TWIML_CHARS_MAX: usize = 4_000;

/// Parses a request.
pub fn read(request: &ApiRequest) -> Result<Command, ApiReply> {
    let base = format!("/2010-04-01/Accounts/{ACCOUNT_SID}/");
    let resource = request.path.strip_prefix(&base).ok_or_else(|| missing(&request.path))?;
    let expected = format!("Basic {}", STANDARD.encode(format!("{ACCOUNT_SID}:{AUTH_TOKEN}")));
    if request.header("authorization") != Some(expected.as_str()) {
        return Err(error(401, 20_003, "Authenticate"));
    }
    if request.method != "POST" {
        return Err(error(405, 20_004, "Method not allowed"));
    }
    let form = Form::of(request)?;
    if resource == "Calls.json" {
        return create(&form);
    }
    match resource.strip_prefix("Calls/").and_then(|rest| rest.strip_suffix(".json")) {
        Some(sid) if is_sid("CA", sid) => update(&form, sid),
        _ => Err(missing(&request.path)),
    }
}

/// The Calls resource with all fields.
pub fn call(sid: &str, status: &str, from: &str, to: &str) -> Value {
    let uri = format!("/2010-04-01/Accounts/{ACCOUNT_SID}/Calls/{sid}");
    let part = |name: &str| format!("{uri}/{name}.json");
    json!({
        "sid": sid, "account_sid": ACCOUNT_SID, "parent_call_sid": null, "api_version": "2010-04-01",
        "to": to, "to_formatted": to, "from": from, "from_formatted": from, "phone_number_sid": null,
        "status": status, "direction": "outbound-api", "answered_by": null, "caller_name": null,
        "forwarded_from": null, "group_sid": null, "trunk_sid": null, "queue_time": "0",
        "date_created": null, "date_updated": null, "start_time": null, "end_time": null, "duration": null,
        "price": null, "price_unit": "USD", "annotation": null, "uri": format!("{uri}.json"),
        "subresource_uris": {
            "events": part("Events"), "notifications": part("Notifications"), "payments": part("Payments"),
            "recordings": part("Recordings"), "siprec": part("Siprec"), "streams": part("Streams"),
            "transcriptions": part("Transcriptions"), "user_defined_messages": part("UserDefinedMessages"),
            "user_defined_message_subscriptions": part("UserDefinedMessageSubscriptions"),
        },
    })
}

/// An error in Twilio's format.
pub fn error(status: u16, code: u32, message: &str) -> ApiReply {
    let more_info = format!("https://www.twilio.com/docs/errors/{code}");
    ApiReply::json(
        status,
        &json!({"code": code, "message": message, "more_info": more_info, "status": status}),
    )
}

fn create(form: &Form) -> Result<Command, ApiReply> {
    form.only(CREATE)?;
    let to = form.get("To").ok_or_else(|| error(400, 21_201, "No 'To' number is specified"))?;
    let from = form.get("From").ok_or_else(|| error(400, 21_213, "No 'From' number is specified"))?;
    if !is_e164(to) {
        return Err(error(
            400,
            21_211,
            &format!("The phone number you are attempting to call, {to}, is not valid."),
        ));
    }
    if !is_e164(from) {
        return Err(error(
            400,
            21_212,
            &format!("The phone number {from} provided as a caller ID is not valid."),
        ));
    }
    let (instruction, answer_url) = match (form.get("Twiml"), form.get("Url")) {
        (Some(twiml), None) if twiml.chars().count() <= TWIML_CHARS_MAX => {
            let parsed = document::parse(twiml).map_err(|problem| error(400, 12_100, &problem))?;
            if parsed.rejects {
                return Err(error(400, 12_200, "Reject declines incoming calls"));
            }
            (Some(parsed.instruction), None)
        }
        (None, Some(url)) if is_web_url(url) => (None, Some(url.to_owned())),
        _ => return Err(error(400, 21_205, "Url parameter is required.")),
    };
    let status_url = form.get("StatusCallback").unwrap_or_default();
    if !status_url.is_empty() && !is_web_url(status_url) {
        return Err(error(400, 21_609, &format!("The StatusCallback URL {status_url} is not a valid URL.")));
    }
    let is_method = |name: &str| form.get(name).is_none_or(|method| matches!(method, "GET" | "POST"));
    let events = form.all("StatusCallbackEvent");
    if !is_method("StatusCallbackMethod")
        || !is_method("Method")
        || !events.iter().all(|it| EVENTS.contains(it))
    {
        return Err(error(400, 21_200, "An invalid callback method or event"));
    }
    let within = |name: &str, most: u32| {
        form.get(name).is_none_or(|text| text.parse().is_ok_and(|seconds: u32| (1..=most).contains(&seconds)))
    };
    if !within("Timeout", 600) || !within("TimeLimit", 86_400) {
        return Err(error(400, 21_200, "An invalid Timeout or TimeLimit"));
    }
    // The default contains only the end; a service must request all events.
    if !status_url.is_empty() && events.len() != EVENTS.len() {
        return Err(error(400, 21_200, "Not all events of the call are requested"));
    }
    Ok(Command::Place {
        from: from.to_owned(),
        to: to.to_owned(),
        status_url: status_url.to_owned(),
        instruction,
        answer_url,
        detection: detection(form)?,
    })
}

/// Without `AsyncAmd`, the person would hear nothing until it is decided; without a URL, nobody would learn of it.
fn detection(form: &Form) -> Result<Option<Detection>, ApiReply> {
    let reports_greeting = match form.get("MachineDetection") {
        None => return Ok(None),
        Some("Enable") => false,
        Some("DetectMessageEnd") => true,
        Some(other) => return Err(error(400, 21_200, &format!("Invalid MachineDetection {other}"))),
    };
    let url = form.get("AsyncAmdStatusCallback").filter(|url| is_web_url(url));
    match (form.get("AsyncAmd"), url, form.get("AsyncAmdStatusCallbackMethod")) {
        (Some("true"), Some(url), Some("POST")) => {
            Ok(Some(Detection { reports_greeting, url: url.to_owned() }))
        }
        _ => Err(error(400, 21_200, "A detection that is not asynchronous")),
    }
}

fn update(form: &Form, sid: &str) -> Result<Command, ApiReply> {
    form.only(&["Status", "Twiml"])?;
    let carrier_call_id = sid.to_owned();
    match (form.get("Status"), form.get("Twiml")) {
        (Some("completed" | "canceled"), None) => Ok(Command::HangUp { carrier_call_id }),
        (None, Some(twiml)) if twiml.chars().count() <= TWIML_CHARS_MAX => {
            let parsed = document::parse(twiml).map_err(|problem| error(400, 12_100, &problem))?;
            match parsed.instruction {
                dial @ Instruction::Dial { .. } => {
                    Ok(Command::Transfer { carrier_call_id, instruction: Ok(dial) })
                }
                other => Err(error(400, 12_200, &format!("a live call is only transferred, not: {other:?}"))),
            }
        }
        _ => Err(error(400, 21_218, "Invalid 'Status' value")),
    }
}

fn missing(path: &str) -> ApiReply {
    error(404, 20_404, &format!("The requested resource {path} was not found"))
}

fn is_sid(kind: &str, text: &str) -> bool {
    text.strip_prefix(kind).is_some_and(|digits| {
        digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
    })
}

pub fn is_e164(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (7..=15).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.starts_with('0')
    })
}

/// `http` or `https`, with a host without underscores.
pub fn is_web_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default();
    matches!(uri.scheme_str(), Some("http" | "https")) && !host.is_empty() && !host.contains('_')
}

/// The parameters of a request.
struct Form(Vec<(String, String)>);

impl Form {
    /// A body of another type has no parameters.
    fn of(request: &ApiRequest) -> Result<Self, ApiReply> {
        let content_type = request.header("content-type").unwrap_or_default();
        if content_type.split(';').next().map(str::trim) != Some("application/x-www-form-urlencoded") {
            return Ok(Self(Vec::new()));
        }
        match std::str::from_utf8(&request.body) {
            Ok(_) => Ok(Self(form_urlencoded::parse(&request.body).into_owned().collect())),
            Err(_) => Err(error(400, 20_001, "Invalid characters")),
        }
    }

    /// Checks that every name is known and not repeated, except for lists.
    fn only(&self, known: &[&str]) -> Result<(), ApiReply> {
        for (name, _) in &self.0 {
            let times = self.all(name).len();
            if !known.contains(&name.as_str()) || (times > 1 && name != "StatusCallbackEvent") {
                return Err(error(400, 20_001, &format!("Unexpected parameter {name}")));
            }
        }
        Ok(())
    }

    fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }
}
