//! Vonage's protocol from Vonage's side: the Voice API, signed answer and event webhooks, and the media socket.
//!
//! Sources: Vonage's Voice API reference, "NCCO reference", "Voice API Webhooks Reference", the guides "WebSockets" and
//! "Webhooks" (decoding signed webhooks), and the models of its official SDKs.
mod fields;
mod media;
mod ncco;
pub mod token;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::clock_s;
use super::wire::{
    Answerer, ApiReply, ApiRequest, Behaviour, CallEvent, CallbackRequest, Command, Detection, EndKind,
    Instruction, MediaWire, PhoneCall, Public, Told, Wire,
};
use fields::{method, number, object, one, text, url, within};
use media::VonageMedia;
use ncco::{Ncco, SocketLeg};

/// The account's application.
pub const APPLICATION_ID: &str = "78d335fa-323d-0114-9c3d-d6f0d48968cf";
/// The account's API key.
pub const API_KEY: &str = "abcd1234";
/// The secret that signs the account's webhooks.
pub const SIGNATURE_SECRET: &str = "Zl7ZcBRoAgYkcmsCLYPrnhPB2DdjLUCgdTtVZRzVvcJCuKTQ4w";

/// The protocol of Vonage. It stores the sockets in documents, because events and first messages return their headers.
#[derive(Debug, Default)]
pub struct VonageWire {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    api_url: String,
    /// By the URL of its events, and by the call id in the headers.
    legs: BTreeMap<String, SocketLeg>,
}

impl VonageWire {
    /// An event of the socket's leg: it has the same statuses as the telephone leg, and another `uuid`. A service must ignore it.
    /// `None` if no document has connected the call.
    pub fn socket_leg(&self, call: &PhoneCall, status: &str, now_s: i64) -> Option<CallbackRequest> {
        let leg = self.leg(call)?;
        let mut event = Map::new();
        event.insert("from".to_owned(), json!("Unknown"));
        event.insert("to".to_owned(), json!(leg.uri));
        event.insert("uuid".to_owned(), json!(socket_uuid(&call.carrier_call_id)));
        event.insert("conversation_uuid".to_owned(), json!(call.other_id));
        event.insert("status".to_owned(), json!(status));
        event.insert("direction".to_owned(), json!("outbound"));
        event.insert("timestamp".to_owned(), json!(timestamp(now_s)));
        event.insert("headers".to_owned(), Value::Object(leg.headers));
        if status == "completed" {
            event.extend(summary(7, now_s));
        }
        Some(post(&leg.event_url.unwrap_or_else(|| call.status_url.clone()), &Value::Object(event), now_s))
    }

    fn of_other(
        &self,
        call: &PhoneCall,
        url: &str,
        id: &str,
        event: &CallEvent,
        now_s: i64,
    ) -> Option<CallbackRequest> {
        let (carrier_call_id, status_url) = (id.to_owned(), url.to_owned());
        let other = PhoneCall { carrier_call_id, status_url, outbound: true, ..call.clone() };
        self.callback(&Public { base_url: String::new() }, &other, event, 0, now_s)
    }

    fn leg(&self, call: &PhoneCall) -> Option<SocketLeg> {
        let state = self.state();
        state.legs.get(&call.carrier_call_id).or_else(|| state.legs.get(&call.status_url)).cloned()
    }

    fn remember(&self, leg: &SocketLeg) {
        let mut state = self.state();
        let ids: Vec<String> = leg.headers.values().filter_map(Value::as_str).map(str::to_owned).collect();
        for key in ids.into_iter().chain(leg.event_url.clone()) {
            state.legs.insert(key, leg.clone());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, body: &Value) -> Result<Command, String> {
        let known = [
            "to",
            "from",
            "random_from_number",
            "ncco",
            "answer_url",
            "answer_method",
            "event_url",
            "event_method",
            "machine_detection",
            "advanced_machine_detection",
            "length_timer",
            "ringing_timer",
        ];
        let order = object(body, "body", &known)?;
        let to = object(one(order.get("to"), "to")?, "to", &["type", "number", "dtmfAnswer", "shaken"])?;
        let from = object(order.get("from").unwrap_or(&Value::Null), "from", &["type", "number"])?;
        for (end, what) in [(to, "to"), (from, "from")] {
            if text(end, "type")? != "phone" {
                return Err(format!("{what}.type: must be phone"));
            }
        }
        method(order, "event_method")?;
        method(order, "answer_method")?;
        within(order, "ringing_timer", 1..=120)?;
        within(order, "length_timer", 1..=86_400)?;
        let status_url = url(order.get("event_url"), "event_url", "http")?;
        let (instruction, answer_url) = match (order.get("ncco"), order.get("answer_url")) {
            (Some(document), None) => (Some(self.instructed(document)?), None),
            (None, Some(_)) => (None, Some(url(order.get("answer_url"), "answer_url", "http")?)),
            _ => return Err("ncco: either that or answer_url".to_owned()),
        };
        let (from, to) = (number(from.get("number"), "from.number")?, number(to.get("number"), "to.number")?);
        let detection = detection(order, &status_url)?;
        Ok(Command::Place { from, to, status_url, instruction, answer_url, detection })
    }

    fn transfer(&self, id: &str, body: &Value) -> Result<Command, String> {
        let body = object(body, "body", &["action", "destination"])?;
        let destination = body.get("destination").unwrap_or(&Value::Null);
        let destination = object(destination, "destination", &["type", "ncco"])?;
        if text(destination, "type")? != "ncco" {
            return Err("destination.type: must be ncco".to_owned());
        }
        let instruction = self.instructed(destination.get("ncco").unwrap_or(&Value::Null))?;
        Ok(Command::Transfer { carrier_call_id: id.to_owned(), instruction: Ok(instruction) })
    }

    /// Events of the telephone leg keep their URL; `eventUrl` applies to the socket's leg only.
    fn instructed(&self, document: &Value) -> Result<Instruction, String> {
        Ok(match ncco::read(document)? {
            Ncco::Over => Instruction::HangUp,
            Ncco::Dial { to, from, seconds, event_url } => {
                let told = Told { status_url: event_url.clone(), back_url: event_url };
                Instruction::Dial { to, caller_id: from, seconds, told: Some(told) }
            }
            Ncco::Connect(leg) => {
                self.remember(&leg);
                Instruction::Connect { media_url: leg.uri, status_url: None }
            }
        })
    }
}

impl Wire for VonageWire {
    fn provider(&self) -> &'static str {
        "vonage"
    }

    fn settings(&self, api_url: &str) -> Vec<(&'static str, String)> {
        api_url.clone_into(&mut self.state().api_url);
        vec![
            ("SIDETONE_VONAGE_APPLICATION_ID", APPLICATION_ID.to_owned()),
            ("SIDETONE_VONAGE_PRIVATE_KEY", token::PRIVATE_KEY.to_owned()),
            ("SIDETONE_VONAGE_API_KEY", API_KEY.to_owned()),
            ("SIDETONE_VONAGE_SIGNATURE_SECRET", SIGNATURE_SECRET.to_owned()),
            ("SIDETONE_VONAGE_BASE_URL", api_url.to_owned()),
        ]
    }

    fn read(&self, request: &ApiRequest) -> Result<Command, ApiReply> {
        check_token(request.header("authorization")).map_err(|wrong| unauthorized(&wrong))?;
        if request.header("content-type") != Some("application/json") {
            return Err(problem(415, "Unsupported Media Type", "application/json is expected", None));
        }
        let wrong = |message: String| bad_request(&message);
        let body: Value = serde_json::from_slice(&request.body).map_err(|error| wrong(error.to_string()))?;
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/v1/calls") => self.order(&body).map_err(wrong),
            ("PUT", path) => match path.strip_prefix("/v1/calls/") {
                Some(id)
                    if body == json!({"action": "hangup"}) && !id.is_empty() && !id.contains(['/', '?']) =>
                {
                    Ok(Command::HangUp { carrier_call_id: id.to_owned() })
                }
                Some(id) if body["action"] == "transfer" => self.transfer(id, &body).map_err(wrong),
                Some(_) => Err(wrong("action: must be hangup or transfer".to_owned())),
                None => Err(self.gone()),
            },
            _ => Err(self.gone()),
        }
    }

    fn placed(&self, call: &PhoneCall) -> ApiReply {
        let body = json!({"uuid": call.carrier_call_id, "status": "started", "direction": "outbound",
                          "conversation_uuid": call.other_id});
        ApiReply::json(201, &body)
    }

    fn refused(&self, behaviour: Behaviour) -> Option<ApiReply> {
        Some(match behaviour {
            Behaviour::BadNumber => bad_request("to[0].number: must be a number in E.164"),
            Behaviour::NotOurs => bad_request("from.number: is not linked to this application"),
            Behaviour::Unauthorized => unauthorized("no such application"),
            Behaviour::TooMany => problem(429, "Too Many Requests", "Please slow down", None),
            Behaviour::Broken => problem(500, "Internal Server Error", "Something went wrong", None),
            Behaviour::NoId => ApiReply::json(201, &json!({"status": "started", "direction": "outbound"})),
            Behaviour::Take | Behaviour::Late | Behaviour::Hang | Behaviour::Cut => return None,
        })
    }

    fn done(&self, _: &Command) -> ApiReply {
        ApiReply::empty(204)
    }

    fn gone(&self) -> ApiReply {
        problem(404, "Not Found", "Call does not exist, or is over", None)
    }

    fn callback(
        &self,
        _: &Public,
        call: &PhoneCall,
        event: &CallEvent,
        _: u32,
        now_s: i64,
    ) -> Option<CallbackRequest> {
        let (status, detail, rest) = match event {
            CallEvent::Incoming => return Some(answer_webhook(call, &self.state().api_url, now_s)),
            CallEvent::Detected(answerer) => return detected(call, *answerer, now_s),
            CallEvent::Ringing => ("ringing", None, Map::new()),
            CallEvent::Answered => {
                let empty = json!({"start_time": null, "rate": null, "network": null});
                ("answered", None, empty.as_object().cloned().unwrap_or_default())
            }
            CallEvent::Ended { how: EndKind::HungUp | EndKind::HungUpByService, seconds } => {
                ("completed", None, summary(*seconds, now_s))
            }
            CallEvent::Ended { how: EndKind::NoAnswer, .. } => ("timeout", None, Map::new()),
            CallEvent::Ended { how: EndKind::Busy, .. } => ("busy", None, Map::new()),
            CallEvent::Ended { how: EndKind::Declined, .. } => ("rejected", Some("declined"), Map::new()),
            CallEvent::Ended { how: EndKind::Failed, .. } => ("failed", Some("cannot_route"), Map::new()),
            CallEvent::Ended { how: EndKind::Canceled, .. } => ("cancelled", None, Map::new()),
            // The order contains the document, and the end contains the price.
            CallEvent::Asked | CallEvent::Priced { .. } | CallEvent::Transferring { .. } => return None,
            // Events of another leg of the conversation, which do not name the first one.
            CallEvent::OtherAnswered { url, other_call_id } => {
                return self.of_other(call, url, other_call_id, &CallEvent::Answered, now_s);
            }
            CallEvent::OtherEnded { url, other_call_id, how, is_over } => {
                let how = if *is_over { EndKind::Canceled } else { *how };
                let ended = CallEvent::Ended { how, seconds: 30 };
                return self.of_other(call, url, other_call_id, &ended, now_s);
            }
        };
        let mut body = json!({
            "headers": {},
            "from": digits(&call.from),
            "to": digits(&call.to),
            "uuid": call.carrier_call_id,
            "conversation_uuid": call.other_id,
            "status": status,
            "direction": if call.outbound { "outbound" } else { "inbound" },
            "timestamp": timestamp(now_s),
        });
        let object = body.as_object_mut()?;
        object.extend(rest);
        if let Some(detail) = detail {
            object.insert("detail".to_owned(), json!(detail));
        }
        Some(post(&call.status_url, &body, now_s))
    }

    fn instruction(&self, status: u16, content_type: &str, body: &[u8]) -> Result<Instruction, String> {
        if status != 200 || content_type.split(';').next() != Some("application/json") {
            return Err(format!("an NCCO is a 200 of application/json, not {status} of {content_type}"));
        }
        let document: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        self.instructed(&document)
    }

    fn socket_headers(&self, url: &str) -> Vec<(&'static str, String)> {
        let state = self.state();
        if !state.legs.values().any(|leg| leg.uri == url && leg.is_signed) {
            return Vec::new();
        }
        // Signed when the socket opens, whatever time the callbacks before it have.
        vec![("authorization", bearer(b"", clock_s()))]
    }

    fn media(&self, call: &PhoneCall) -> Box<dyn MediaWire> {
        let (rate_hz, headers) =
            self.leg(call).map_or((16_000, Map::new()), |leg| (leg.rate_hz, leg.headers));
        Box::new(VonageMedia { rate_hz, headers })
    }
}

/// In the mode `default`, the call is connected at once, and a beep is reported, too.
fn detection(order: &Map<String, Value>, status_url: &str) -> Result<Option<Detection>, String> {
    let Some(detection) = order.get("advanced_machine_detection") else { return Ok(None) };
    let detection = object(detection, "advanced_machine_detection", &["behavior", "mode", "beep_timeout"])?;
    within(detection, "beep_timeout", 45..=120)?;
    match (text(detection, "behavior")?, text(detection, "mode")?) {
        ("continue", "default") => Ok(Some(Detection { reports_greeting: true, url: status_url.to_owned() })),
        other => Err(format!("advanced_machine_detection: this fake does not wait for it: {other:?}")),
    }
}

/// The leg's id has another name in these events.
fn detected(call: &PhoneCall, answerer: Answerer, now_s: i64) -> Option<CallbackRequest> {
    let detection = call.detection.as_ref()?;
    let (status, sub_state) = match answerer {
        Answerer::Person => ("human", None),
        Answerer::Machine | Answerer::Fax => ("machine", None),
        Answerer::GreetedMachine => ("machine", Some("beep_start")),
        Answerer::Unsure => return None,
    };
    let mut body = json!({
        "from": digits(&call.from),
        "to": digits(&call.to),
        "call_uuid": call.carrier_call_id,
        "conversation_uuid": call.other_id,
        "status": status,
        "timestamp": timestamp(now_s),
    });
    if let Some(sub_state) = sub_state {
        body["sub_state"] = json!(sub_state);
    }
    Some(post(&detection.url, &body, now_s))
}

/// A `GET` with the call in its query. Vonage hashes its own JSON form of it for the token.
fn answer_webhook(call: &PhoneCall, api_url: &str, now_s: i64) -> CallbackRequest {
    let fields = json!({
        "to": digits(&call.to),
        "from": digits(&call.from),
        "conversation_uuid": call.other_id,
        "uuid": call.carrier_call_id,
        "endpoint_type": "phone",
        "region_url": api_url,
    });
    let pairs = fields.as_object().into_iter().flatten();
    let query: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={}", percent(value.as_str().unwrap_or_default())))
        .collect();
    let mark = if call.voice_url.contains('?') { '&' } else { '?' };
    CallbackRequest {
        method: "GET",
        url: format!("{}{mark}{}", call.voice_url, query.join("&")),
        headers: vec![("authorization", bearer(fields.to_string().as_bytes(), now_s))],
        body: Vec::new(),
    }
}

fn post(url: &str, body: &Value, now_s: i64) -> CallbackRequest {
    let body = body.to_string().into_bytes();
    let headers =
        vec![("content-type", "application/json".to_owned()), ("authorization", bearer(&body, now_s))];
    CallbackRequest { method: "POST", url: url.to_owned(), headers, body }
}

/// Each token has an id of its own, also for the same body.
fn bearer(body: &[u8], now_s: i64) -> String {
    static TOKENS: AtomicU64 = AtomicU64::new(0);
    let nth = TOKENS.fetch_add(1, Ordering::Relaxed);
    let id = token::sha256(format!("{}-{nth}-{now_s}", std::process::id()).as_bytes());
    let claims = json!({
        "iat": now_s,
        "jti": format!("{}-{}-4{}-8{}-{}", &id[..8], &id[8..12], &id[12..15], &id[15..18], &id[18..30]),
        "iss": "Vonage",
        "payload_hash": token::sha256(body),
        "api_key": API_KEY,
        "application_id": APPLICATION_ID,
    });
    format!("Bearer {}", token::signed(SIGNATURE_SECRET, &claims))
}

/// The additional fields of `completed`: duration and price are strings, the price is in euro.
fn summary(seconds: u32, now_s: i64) -> Map<String, Value> {
    let body = json!({
        "start_time": timestamp(now_s - i64::from(seconds)),
        "end_time": timestamp(now_s),
        "duration": seconds.to_string(),
        "rate": "0.00450000",
        "price": format!("{:.8}", f64::from(seconds) * 0.0045 / 60.0),
        "network": "GB-FIXED",
        "disconnected_by": "user",
    });
    body.as_object().cloned().unwrap_or_default()
}

fn check_token(authorization: Option<&str>) -> Result<(), String> {
    let claims = token::verified(authorization)?;
    let claims = object(&claims, "claims", &["application_id", "iat", "jti", "exp", "nbf", "sub", "acl"])?;
    if text(claims, "application_id")? != APPLICATION_ID {
        return Err("application_id: another one's".to_owned());
    }
    text(claims, "jti")?;
    let seconds =
        |name: &str| claims.get(name).and_then(Value::as_i64).ok_or_else(|| format!("{name}: is missing"));
    // The service may have a manual clock, so only the lifetime of the token is checked, not its absolute times.
    match seconds("exp")? - seconds("iat")? {
        1..=86_400 => Ok(()),
        lasts => Err(format!("exp: {lasts} seconds after iat")),
    }
}

fn unauthorized(why: &str) -> ApiReply {
    ApiReply::json(401, &json!({"type": "UNAUTHORIZED", "error_title": "Unauthorized", "detail": why}))
}

fn bad_request(message: &str) -> ApiReply {
    let (name, reason) = message.split_once(": ").unwrap_or(("body", message));
    problem(400, "Bad Request", "The request is invalid", Some(json!([{"name": name, "reason": reason}])))
}

fn problem(status: u16, title: &str, detail: &str, invalid: Option<Value>) -> ApiReply {
    let mut body = json!({"type": "https://developer.vonage.com/api-errors", "title": title, "detail": detail,
                          "instance": "bf0ca0bf927b3b52e3cb03217e1a1ddf"});
    if let Some(invalid) = invalid {
        body["invalid_parameters"] = invalid;
    }
    ApiReply { status, content_type: "application/problem+json", body: body.to_string() }
}

fn digits(number: &str) -> &str {
    number.trim_start_matches('+')
}

/// The id of the socket's leg.
fn socket_uuid(carrier_call_id: &str) -> String {
    let hash = token::sha256(carrier_call_id.as_bytes());
    format!("{}-{}-4{}-9{}-{}", &hash[..8], &hash[8..12], &hash[12..15], &hash[15..18], &hash[18..30])
}

fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// `2020-01-01T12:00:00.000Z`
fn timestamp(now_s: i64) -> String {
    sidetone_engine::base::time::format(now_s * 1_000)
}

#[cfg(test)]
mod tests;
