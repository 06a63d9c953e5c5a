//! Parses Vonage's callbacks: the answer webhook (an incoming call) and the event webhook (the progress of a call).
//!
//! Sources: Vonage's "Voice API Webhooks Reference" (fields of both, prices in euro), its guide "WebSockets" (events of a
//! socket), and payloads of real calls in public repositories.
//!
//! A call that is connected to a socket has two legs. Both are reported with the same statuses, each with its own `uuid`; they
//! share `conversation_uuid`. The socket's leg is recognised by its `to`, which is the socket's URL, and by the `headers` of
//! our document, which only its events return. Its events are ignored: the socket itself shows when it closes, and the
//! telephone leg reports the end of the call.
//!
//! For an incoming call, Vonage sends the telephone leg's events to the application's own event URL, and only the socket
//! leg's to the `eventUrl` of our document: the former is recognised by its `uuid`.
use serde_json::{Map, Value};

use super::documents::LEG_HEADER;
use super::{CALL_ID_BYTES_MAX, causes};
use crate::carriers::callback::Callback;
use crate::carriers::report::{Billed, CarrierEvent, DialEnd, IncomingCall, Progress, Report, Untaken};
use crate::carriers::shared;
use crate::conversation::Greeting;

/// Longest region URL; real ones have 30 bytes.
const REGION_URL_BYTES_MAX: usize = 200;

/// The events of a callback: fields from the query of a `GET`, from JSON or a form of a `POST`.
pub fn read(callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
    let fields = fields(callback)?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if is_socket_leg(&fields) {
        return Ok(Vec::new());
    }
    let Some(status) = text("status") else {
        return incoming(&fields).map(|event| event.into_iter().collect());
    };
    let progress = match status {
        "ringing" => Some(Progress::Ringing),
        "answered" => Some(Progress::Answered),
        status => causes::end(status, text("detail").unwrap_or_default())
            .map(|end| Progress::Ended(end.lasting(duration_ms(fields.get("duration"))))),
    };
    let machine = match status {
        "machine" => Some(true),
        "human" => Some(false),
        _ => None,
    };
    let has_beep = machine == Some(true) && text("sub_state") == Some("beep_start");
    let greeting = has_beep.then_some(Greeting::Ended);
    // Even without progress the report gives the call's id, in case the response to the order was lost.
    if progress.is_none() && machine.is_none() && status != "started" {
        return Ok(Vec::new());
    }
    let carrier_call_id =
        call_id(&fields).ok_or_else(|| format!("event `{status:.40}` without a call id"))?;
    let billed = (status == "completed").then(|| billed(&fields));
    Ok(vec![CarrierEvent::Report(Report { carrier_call_id, progress, billed, machine, greeting })])
}

/// What an event of the leg to another number says of it; `None` while it rings. Such an event does not name our leg.
pub fn dial_ended(callback: &Callback<'_>) -> Result<Option<DialEnd>, String> {
    let fields = fields(callback)?;
    let status = fields.get("status").and_then(Value::as_str).unwrap_or_default();
    let untaken = match status {
        "answered" | "completed" => None,
        "busy" => Some(Untaken::Busy),
        "timeout" | "unanswered" => Some(Untaken::NoAnswer),
        // Cancelled: by whoever was connected.
        "failed" | "rejected" | "cancelled" => Some(Untaken::Failed),
        _ => return Ok(None),
    };
    Ok(Some(DialEnd { carrier_call_id: None, untaken, is_over: status == "cancelled" }))
}

/// The fields by name; for a query or a form, the first value of each name.
fn fields(callback: &Callback<'_>) -> Result<Map<String, Value>, String> {
    let pairs = match callback.body {
        [] => callback.query_pairs(),
        body if !callback.is_form() => {
            return serde_json::from_slice(body)
                .map_err(|error| format!("the body is not a JSON object: {error}"));
        }
        _ => callback.form_pairs(),
    };
    let mut fields = Map::new();
    for (name, value) in pairs {
        fields.entry(name).or_insert_with(|| value.into());
    }
    Ok(fields)
}

/// Whether the callback is about the socket's leg; see the module's documentation.
fn is_socket_leg(fields: &Map<String, Value>) -> bool {
    let is_socket = |value: &Value| {
        let Some((scheme, _)) = value.as_str().and_then(|text| text.split_once("://")) else { return false };
        scheme.eq_ignore_ascii_case("ws") || scheme.eq_ignore_ascii_case("wss")
    };
    fields.get("to").is_some_and(is_socket)
        || fields.get("headers").and_then(|headers| headers.get(LEG_HEADER)).is_some()
}

/// The answer webhook has no status but a call id and a called number. Errors have no status either; other callbacks without
/// one (recordings, transfers, input) were not requested.
fn incoming(fields: &Map<String, Value>) -> Result<Option<CarrierEvent>, String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(reason) = text("reason") {
        return Err(format!("Vonage reports an error: {}", shared::sanitized(reason)));
    }
    if ["dtmf", "speech", "recording_url", "conversation_uuid_to", "type"]
        .iter()
        .any(|name| fields.contains_key(*name))
    {
        return Ok(None);
    }
    let to =
        text("to").and_then(shared::number).ok_or("a callback with neither a status nor a called number")?;
    let carrier_call_id = call_id(fields).ok_or("an incoming call without an id")?;
    let from = text("from").filter(|from| !shared::is_withheld(from));
    Ok(Some(CarrierEvent::Incoming(IncomingCall {
        carrier_call_id,
        from: from.and_then(shared::number).or_else(|| text("from_user").and_then(shared::number)),
        to,
        region_url: text("region_url").filter(|url| url.len() <= REGION_URL_BYTES_MAX).map(str::to_owned),
    })))
}

/// The leg's id; events of machine detection call it `call_uuid`.
fn call_id(fields: &Map<String, Value>) -> Option<String> {
    let id = fields.get("uuid").or_else(|| fields.get("call_uuid"))?.as_str()?;
    is_call_id(id).then(|| id.to_owned())
}

/// Whether this can be an id: Vonage's are UUIDs, with and without `-`.
pub fn is_call_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=CALL_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(plain)
}

fn billed(fields: &Map<String, Value>) -> Billed {
    // Prices are documented to be in euro, without a field for the currency. A future currency of US dollars is accepted.
    let is_dollars = fields.get("currency").and_then(Value::as_str) == Some("USD");
    let price = fields.get("price").filter(|_| is_dollars).and_then(number);
    Billed {
        duration_ms: duration_ms(fields.get("duration")),
        cost_microusd: price.and_then(|dollars| whole(dollars * 1e6)),
    }
}

/// Seconds, as text or as a number.
fn duration_ms(seconds: Option<&Value>) -> Option<i64> {
    seconds.and_then(number).and_then(|seconds| whole(seconds * 1e3))
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A plausible amount, rounded.
fn whole(amount: f64) -> Option<i64> {
    const AMOUNT_MAX: f64 = 1e12;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (0.0..=AMOUNT_MAX).contains(&amount).then(|| amount.round() as i64)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::conversation::{EndedReason, Outcome};

    const UUID: &str = "63f61863-4a51-4f6b-86e1-46edebcf9356";

    fn get(query: &str) -> Result<Vec<CarrierEvent>, String> {
        let url = format!("https://voice.example.com/carriers/vonage/voice?{query}");
        read(&Callback { method: "GET", url: &url, headers: &HeaderMap::new(), body: b"", now_ms: 0 })
    }

    fn post_bytes(body: &[u8]) -> Result<Vec<CarrierEvent>, String> {
        let headers =
            HeaderMap::from_iter([(http::header::CONTENT_TYPE, "application/json".parse().unwrap())]);
        let url = "https://voice.example.com/carriers/vonage/status/token";
        read(&Callback { method: "POST", url, headers: &headers, body, now_ms: 0 })
    }

    fn post(body: &Value) -> Result<Vec<CarrierEvent>, String> {
        post_bytes(body.to_string().as_bytes())
    }

    fn event(status: &str) -> Value {
        json!({"from": "442079460000", "to": "447700900000", "uuid": UUID,
               "conversation_uuid": "CON-f972836a-550f-45fa-956c-12a2ab5b7d22", "status": status,
               "direction": "outbound", "timestamp": "2026-11-20T12:00:00.000Z"})
    }

    fn report(body: &Value) -> Report {
        match post(body).unwrap().as_slice() {
            [CarrierEvent::Report(report)] => report.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_came_of_the_other_leg_is_read() {
        let headers =
            HeaderMap::from_iter([(http::header::CONTENT_TYPE, "application/json".parse().unwrap())]);
        let ended = |status: &str| {
            let body = event(status).to_string();
            let url = "https://voice.example.com/carriers/vonage/voice?call=t&back=1";
            let body = body.as_bytes();
            dial_ended(&Callback { method: "POST", url, headers: &headers, body, now_ms: 0 }).unwrap()
        };
        for (status, untaken) in [
            ("answered", None),
            ("completed", None),
            ("busy", Some(Untaken::Busy)),
            ("timeout", Some(Untaken::NoAnswer)),
            ("unanswered", Some(Untaken::NoAnswer)),
            ("failed", Some(Untaken::Failed)),
            ("rejected", Some(Untaken::Failed)),
            ("cancelled", Some(Untaken::Failed)),
        ] {
            let is_over = status == "cancelled";
            assert_eq!(ended(status), Some(DialEnd { carrier_call_id: None, untaken, is_over }), "{status}");
        }
        for status in ["started", "ringing", "human", "machine", "something_new"] {
            assert_eq!(ended(status), None);
        }
    }

    #[test]
    fn parses_an_incoming_call() {
        let expected = CarrierEvent::Incoming(IncomingCall {
            carrier_call_id: UUID.to_owned(),
            from: Some("+447700900000".to_owned()),
            to: "+442079460000".to_owned(),
            region_url: Some("https://api-eu-1.nexmo.com".to_owned()),
        });
        let query = format!(
            "to=442079460000&from=447700900000&conversation_uuid=CON-aaaa&uuid={UUID}&endpoint_type=phone\
             &region_url=https%3A%2F%2Fapi-eu-1.nexmo.com"
        );
        assert_eq!(get(&query), Ok(vec![expected.clone()]));
        let body = json!({"to": "442079460000", "from": "447700900000", "conversation_uuid": "CON-aaaa",
                          "uuid": UUID, "endpoint_type": "phone", "region_url": "https://api-eu-1.nexmo.com"});
        assert_eq!(post(&body), Ok(vec![expected]));
    }

    #[test]
    fn the_caller_may_be_withheld_or_not_a_number() {
        let from = |field: &str| match get(&format!("to=442079460000&uuid={UUID}{field}")).unwrap().as_slice()
        {
            [CarrierEvent::Incoming(call)] => call.from.clone(),
            other => panic!("{other:?}"),
        };
        for withheld in ["", "&from=", "&from=anonymous", "&from=Unknown", "&from=RESTRICTED"] {
            assert_eq!(from(withheld), None, "{withheld}");
        }
        assert_eq!(from("&from_user=JaneDoe").as_deref(), Some("JaneDoe"));
        let long = from(&format!("&from_user={}", "x".repeat(100_000)));
        assert!(long.is_some_and(|long| long.len() <= crate::base::limits::CARRIER_MESSAGE_BYTES_MAX));
        assert_eq!(from("&from=sip:ada@example.com").as_deref(), Some("sip:ada@example.com"));
    }

    #[test]
    fn parses_progress() {
        for (status, progress) in [("ringing", Progress::Ringing), ("answered", Progress::Answered)] {
            let expected =
                Report { carrier_call_id: UUID.to_owned(), progress: Some(progress), ..Report::default() };
            assert_eq!(report(&event(status)), expected);
            let query = format!("status={status}&uuid={UUID}&to=447700900000");
            assert_eq!(get(&query), Ok(vec![CarrierEvent::Report(expected)]));
        }
        let named = Report { carrier_call_id: UUID.to_owned(), ..Report::default() };
        assert_eq!(report(&event("started")), named);
        for status in ["disconnected", "transfer", "new"] {
            assert_eq!(post(&event(status)), Ok(Vec::new()), "{status}");
        }
    }

    #[test]
    fn completed_has_duration_and_cost() {
        let mut body = event("completed");
        for (name, value) in [
            ("start_time", json!("2026-11-20T12:00:00.000Z")),
            ("end_time", json!("2026-11-20T12:00:42.000Z")),
            ("duration", json!("42")),
            ("rate", json!("0.00450000")),
            ("price", json!("0.00315000")),
            ("network", json!("GB-FIXED")),
        ] {
            body[name] = value;
        }
        let told = report(&body);
        let Some(Progress::Ended(end)) = &told.progress else { panic!("{told:?}") };
        assert_eq!((end.outcome, end.reason), (Outcome::Completed, EndedReason::UserHungUp));
        assert_eq!((end.duration_ms, end.cause.as_str()), (Some(42_000), "completed"));
        assert_eq!(told.billed, Some(Billed { duration_ms: Some(42_000), cost_microusd: None }));
        body["currency"] = json!("EUR");
        assert_eq!(report(&body).billed.unwrap().cost_microusd, None);
        body["currency"] = json!("USD");
        assert_eq!(report(&body).billed.unwrap().cost_microusd, Some(3_150));
    }

    #[test]
    fn implausible_numbers_are_ignored() {
        for duration in [json!("-1"), json!("soon"), json!("1e300"), json!("NaN"), json!(null), json!([])] {
            let mut body = event("completed");
            body["duration"] = duration.clone();
            assert_eq!(
                report(&body).billed,
                Some(Billed { duration_ms: None, cost_microusd: None }),
                "{duration}"
            );
        }
        let mut body = event("completed");
        body["duration"] = json!(2);
        assert_eq!(report(&body).billed.unwrap().duration_ms, Some(2_000));
    }

    #[test]
    fn an_end_before_the_answer_is_not_billed() {
        let mut body = event("failed");
        body["detail"] = json!("cannot_route");
        let told = report(&body);
        let Some(Progress::Ended(end)) = &told.progress else { panic!("{told:?}") };
        assert_eq!((end.reason, end.cause.as_str()), (EndedReason::Unreachable, "failed cannot_route"));
        assert_eq!(told.billed, None);
    }

    #[test]
    fn parses_machine_detection() {
        for (status, sub_state, is_machine, greeting) in [
            ("machine", None, true, None),
            ("machine", Some("beep_start"), true, Some(Greeting::Ended)),
            ("machine", Some("beep_timeout"), true, None),
            ("human", None, false, None),
        ] {
            let mut body = event(status);
            if let Some(sub_state) = sub_state {
                body["sub_state"] = json!(sub_state);
            }
            let body = body.as_object_mut().unwrap();
            let id = body.shift_remove("uuid").unwrap();
            body.insert("call_uuid".to_owned(), id);
            let told = report(&json!(body));
            assert_eq!((told.carrier_call_id.as_str(), told.machine), (UUID, Some(is_machine)));
            assert_eq!((told.progress, told.greeting), (None, greeting));
        }
    }

    #[test]
    fn the_sockets_leg_is_ignored() {
        for status in ["started", "ringing", "answered", "disconnected", "unanswered", "failed", "completed"]
        {
            let mut by_url = event(status);
            by_url["to"] = json!("wss://voice.example.com/carriers/vonage/media/token");
            assert_eq!(post(&by_url), Ok(Vec::new()), "{status}");
            by_url["to"] = json!("WS://127.0.0.1:8080/media");
            assert_eq!(post(&by_url), Ok(Vec::new()), "{status}");
            let mut by_header = event(status);
            by_header["headers"] = json!({"sidetone_leg": "media", "sidetone_call": UUID});
            assert_eq!(post(&by_header), Ok(Vec::new()), "{status}");
        }
        let mut telephone = event("answered");
        telephone["headers"] = json!({});
        assert_eq!(report(&telephone).progress, Some(Progress::Answered));
    }

    #[test]
    fn error_reports_and_unreadable_callbacks_are_errors() {
        let complaint = json!({"reason": "Syntax error in NCCO. Invalid value type or action.",
                               "conversation_uuid": "CON-aaaa", "timestamp": "2026-11-20T12:00:00.000Z"});
        assert!(post(&complaint).unwrap_err().contains("Syntax error in NCCO"));
        let mut nameless = event("answered");
        nameless["uuid"] = json!("../../etc");
        for wrong in [json!({}), json!({"to": "442079460000"}), json!({"uuid": UUID}), json!([]), nameless] {
            assert!(post(&wrong).is_err(), "{wrong}");
        }
        assert!(get("").is_err());
        assert!(post_bytes(b"uuid=1").is_err());
    }

    #[test]
    fn other_callbacks_are_ignored() {
        for body in [
            json!({"uuid": UUID, "to": "442079460000", "dtmf": {"digits": "1", "timed_out": false}}),
            json!({"recording_url": "https://api.nexmo.com/v1/files/x", "recording_uuid": UUID}),
            json!({"uuid": UUID, "conversation_uuid_from": "CON-a", "conversation_uuid_to": "CON-b"}),
        ] {
            assert_eq!(post(&body), Ok(Vec::new()), "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_callback_panics(query in ".{0,120}", bytes in proptest::collection::vec(any::<u8>(), 0..120),
                              status in "[a-z]{0,12}", number in any::<f64>()) {
            let _ = get(&query);
            let _ = post_bytes(&bytes);
            let _ = post(&json!({"uuid": UUID, "status": status, "duration": number, "price": number.to_string()}));
            let told = report(&json!({"uuid": UUID, "status": "completed", "duration": number}));
            prop_assert!(told.billed.unwrap().duration_ms.is_none_or(|ms| ms >= 0));
        }
    }
}
