//! Parses Telnyx's webhooks.
//!
//! A webhook is `{"data": {"event_type", "id", "occurred_at", "payload", "record_type": "event"}, "meta": {…}}`.
//! Sources: the SDK's `types/unwrap_webhook_event.py` and the types of each event; "Voice API Webhooks".
//!
//! | event | meaning |
//! | --- | --- |
//! | `call.initiated`, incoming | an incoming call |
//! | `call.initiated`, outgoing | ringing: the invitation is sent, and there is no further event before the answer |
//! | `call.answered` | answered |
//! | `call.hangup` | ended, see [`causes::end`] |
//! | `call.cost` | the billed amount |
//! | `call.machine.detection.ended`, `call.machine.premium.detection.ended` | machine or person |
//! | `call.machine.greeting.ended`, `call.machine.premium.greeting.ended` | the end of a machine's greeting |
//! | all others | ignored: keys and audio arrive on the media socket |
//!
//! A hang-up does not contain the connected time. Its `start_time` is that of `call.initiated`, also for unanswered calls, so
//! the time to `end_time` includes ringing.
use serde_json::Value;

use super::causes;
use crate::base::dollars;
use crate::carriers::report::{Billed, CarrierEvent, IncomingCall, Progress, Report};
use crate::carriers::shared;
use crate::conversation::Greeting;

/// The events of one webhook.
pub(super) fn read(body: &[u8]) -> Result<Vec<CarrierEvent>, String> {
    let body: Value = serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))?;
    let event_type = body.pointer("/data/event_type").and_then(Value::as_str).ok_or("no data.event_type")?;
    // The names have also been observed with underscores.
    let event_type = event_type.replace('_', ".");
    let nothing = Value::Null;
    let payload = body.pointer("/data/payload").unwrap_or(&nothing);
    let progress = match event_type.as_str() {
        "call.initiated" => match text(payload, "direction") {
            "incoming" => return Ok(vec![CarrierEvent::Incoming(incoming(payload)?)]),
            "outgoing" => Some(Progress::Ringing),
            other => return Err(format!("call.initiated with the direction {:?}", short(other))),
        },
        "call.answered" => Some(Progress::Answered),
        "call.hangup" => Some(Progress::Ended(causes::end(
            text(payload, "hangup_cause"),
            text(payload, "hangup_source"),
            text(payload, "sip_hangup_cause"),
        ))),
        "call.cost"
        | "call.machine.detection.ended"
        | "call.machine.premium.detection.ended"
        | "call.machine.greeting.ended"
        | "call.machine.premium.greeting.ended" => None,
        _ => return Ok(Vec::new()),
    };
    let (machine, greeting) = match event_type.starts_with("call.machine.") {
        true => machine(text(payload, "result")),
        false => (None, None),
    };
    let report = Report {
        carrier_call_id: call_id(payload)?,
        billed: if event_type == "call.cost" { billed(payload) } else { None },
        machine,
        greeting,
        progress,
    };
    match report {
        Report { progress: None, billed: None, machine: None, greeting: None, .. } => Ok(Vec::new()),
        report => Ok(vec![CarrierEvent::Report(report)]),
    }
}

fn incoming(payload: &Value) -> Result<IncomingCall, String> {
    let to = shared::number(text(payload, "to")).ok_or("an incoming call to nobody")?;
    let from = shared::number(text(payload, "from")).filter(|from| !shared::is_withheld(from));
    Ok(IncomingCall { carrier_call_id: call_id(payload)?, from, to, region_url: None })
}

fn call_id(payload: &Value) -> Result<String, String> {
    payload.get("call_control_id").and_then(causes::id).ok_or_else(|| "no call_control_id".to_owned())
}

/// The amount of a `call.cost` that has been calculated. The cost parts name the currency.
fn billed(payload: &Value) -> Option<Billed> {
    if text(payload, "status") == "error" {
        return None;
    }
    let seconds = payload.get("billed_duration_secs").and_then(Value::as_i64).filter(|seconds| *seconds >= 0);
    let parts = payload.get("cost_parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut currencies =
        parts.iter().map(|part| text(part, "currency")).filter(|currency| !currency.is_empty());
    let in_dollars =
        currencies.next().is_some_and(|first| first == "USD") && currencies.all(|more| more == "USD");
    let cost_microusd = match payload.get("total_cost").and_then(Value::as_str).and_then(dollars::read_up) {
        // Zero is zero in any currency.
        Some(0) => Some(0),
        Some(cost) if in_dollars => Some(cost),
        _ => None,
    };
    let billed =
        Billed { duration_ms: seconds.and_then(|seconds| seconds.checked_mul(1_000)), cost_microusd };
    (billed.duration_ms.is_some() || billed.cost_microusd.is_some()).then_some(billed)
}

/// The result of a detection or of a greeting: whether it is a machine, `None` when that is unsure, and what is known of its
/// greeting. A beep before the detection has ended is the only event.
fn machine(result: &str) -> (Option<bool>, Option<Greeting>) {
    match result {
        "machine" => (Some(true), None),
        "fax_detected" => (Some(true), Some(Greeting::None)),
        "beep_detected" => (Some(true), Some(Greeting::Ended)),
        "ended" | "no_beep_detected" | "prompt_ended" => (None, Some(Greeting::Ended)),
        "human" | "human_residence" | "human_business" => (Some(false), None),
        _ => (None, None),
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn short(text: &str) -> String {
    crate::base::text::truncate(text.to_owned(), 40)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::conversation::EndedReason;

    fn webhook(event_type: &str, payload: &Value) -> Vec<u8> {
        let data = json!({
            "record_type": "event",
            "event_type": event_type,
            "id": "0ccc7b54-4df3-4bca-a65a-3da1ecc777f0",
            "occurred_at": "2026-11-20T10:00:00.000000Z",
            "payload": payload,
        });
        json!({"data": data, "meta": {"attempt": 1, "delivered_to": "https://voice.example/x"}})
            .to_string()
            .into()
    }

    fn report(event_type: &str, mut payload: Value) -> Option<Report> {
        payload["call_control_id"] = json!("v3:a");
        let mut events = read(&webhook(event_type, &payload)).unwrap();
        assert!(events.len() <= 1);
        match events.pop() {
            None => None,
            Some(CarrierEvent::Report(report)) => {
                assert_eq!(report.carrier_call_id, "v3:a");
                Some(report)
            }
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn parses_an_incoming_call() {
        let mut payload = json!({
            "call_control_id": "v3:abc_-", "call_leg_id": "428c31b6-7af4-4bcb-b7f5-5013ef9657c1",
            "client_state": null, "connection_id": "7267", "direction": "incoming", "state": "parked",
            "from": "+35319605860", "to": "+13129457420", "start_time": "2026-11-20T10:00:00.000000Z",
        });
        let call = |payload: &Value| match read(&webhook("call.initiated", payload)).as_deref() {
            Ok([CarrierEvent::Incoming(call)]) => call.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            call(&payload),
            IncomingCall {
                carrier_call_id: "v3:abc_-".to_owned(),
                from: Some("+35319605860".to_owned()),
                to: "+13129457420".to_owned(),
                region_url: None,
            }
        );
        for withheld in ["", "anonymous", "Restricted", "+anonymous"] {
            payload["from"] = json!(withheld);
            assert_eq!(call(&payload).from, None, "{withheld}");
        }
        payload["from"] = json!("sip:ada@example.com");
        assert_eq!(call(&payload).from.as_deref(), Some("sip:ada@example.com"));
        payload["to"] = json!("");
        assert!(read(&webhook("call.initiated", &payload)).is_err());
    }

    #[test]
    fn parses_progress() {
        let progress = |event: &str, payload| report(event, payload).and_then(|report| report.progress);
        assert_eq!(progress("call.initiated", json!({"direction": "outgoing"})), Some(Progress::Ringing));
        assert_eq!(progress("call.answered", json!({})), Some(Progress::Answered));
        assert_eq!(progress("call_answered", json!({})), Some(Progress::Answered));
        let end = json!({
            "hangup_cause": "normal_clearing", "hangup_source": "callee", "sip_hangup_cause": "200",
            "start_time": "2026-11-20T10:00:00Z", "end_time": "2026-11-20T10:00:30Z",
        });
        let Some(Progress::Ended(end)) = progress("call.hangup", end) else { panic!("it is over") };
        assert_eq!((end.reason, end.cause.as_str()), (EndedReason::UserHungUp, "normal_clearing 200"));
        assert_eq!(end.duration_ms, None, "it would include ringing");
    }

    #[test]
    fn costs_need_a_dollar_currency() {
        let cost = |total: &str, currencies: &[&str]| {
            let parts: Vec<_> = currencies
                .iter()
                .map(|currency| json!({"call_part": "call-control", "cost": "0.002", "currency": currency}))
                .collect();
            let payload = json!({"status": "success", "billed_duration_secs": 60, "total_cost": total, "cost_parts": parts});
            report("call.cost", payload).and_then(|report| report.billed).unwrap()
        };
        let told = |cost_microusd| Billed { duration_ms: Some(60_000), cost_microusd };
        assert_eq!(cost("0.0180", &["USD", "USD"]), told(Some(18_000)));
        assert_eq!(cost("12", &["USD"]), told(Some(12_000_000)));
        assert_eq!(cost("0.0000005", &["USD"]), told(Some(1)));
        assert_eq!(cost("0.0180", &["USD", "EUR"]), told(None));
        assert_eq!(cost("0.0180", &["EUR"]), told(None));
        assert_eq!(cost("0.0180", &[]), told(None));
        assert_eq!(cost("0.0000", &[]), told(Some(0)));
        for odd in ["", ".", "1e3", "-1", "1.2.3", "99999999999999999999", "1,5"] {
            assert_eq!(cost(odd, &["USD"]), told(None), "{odd}");
        }
        assert_eq!(report("call.cost", json!({"status": "error", "total_cost": "1"})), None);
        assert_eq!(report("call.cost", json!({"status": "success"})), None);
    }

    #[test]
    fn parses_machine_detection() {
        let table = [
            ("call.machine.detection.ended", "human", Some(false), None),
            ("call.machine.detection.ended", "machine", Some(true), None),
            ("call.machine.detection.ended", "not_sure", None, None),
            ("call.machine.greeting.ended", "ended", None, Some(Greeting::Ended)),
            ("call.machine.greeting.ended", "beep_detected", Some(true), Some(Greeting::Ended)),
            ("call.machine.greeting.ended", "not_sure", None, None),
            ("call.machine.premium.detection.ended", "human_residence", Some(false), None),
            ("call.machine.premium.detection.ended", "human_business", Some(false), None),
            ("call.machine.premium.detection.ended", "machine", Some(true), None),
            ("call.machine.premium.detection.ended", "fax_detected", Some(true), Some(Greeting::None)),
            ("call.machine.premium.detection.ended", "silence", None, None),
            ("call.machine.premium.greeting.ended", "beep_detected", Some(true), Some(Greeting::Ended)),
            ("call.machine.premium.greeting.ended", "no_beep_detected", None, Some(Greeting::Ended)),
        ];
        for (event, result, machine, greeting) in table {
            let report = report(event, json!({"result": result})).unwrap_or_default();
            assert_eq!((report.machine, report.greeting), (machine, greeting), "{event} {result}");
        }
    }

    #[test]
    fn other_events_are_ignored() {
        for event in ["streaming.started", "streaming.stopped", "call.dtmf.received", "call.bridged", "x"] {
            assert_eq!(report(event, json!({"digit": "1"})), None, "{event}");
        }
    }

    #[test]
    fn unreadable_webhooks_are_errors() {
        let unreadable: [&[u8]; 4] = [b"", b"[]", br#"{"data": {}}"#, br#"{"data": {"event_type": 1}}"#];
        for body in unreadable {
            assert!(read(body).is_err());
        }
        for payload in [
            json!({}),
            json!({"call_control_id": ""}),
            json!({"call_control_id": "x".repeat(257)}),
            json!(null),
        ] {
            assert!(read(&webhook("call.hangup", &payload)).is_err(), "{payload}");
        }
        assert!(
            read(&webhook("call.initiated", &json!({"call_control_id": "v3:a", "direction": "x"}))).is_err()
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(body: Vec<u8>) {
            let _ = read(&body);
        }

        #[test]
        fn arbitrary_values_do_not_panic(cause: String, sip: String, id: String, money: String) {
            let payload = json!({"call_control_id": id, "hangup_cause": cause, "sip_hangup_cause": sip, "total_cost": money});
            let _ = read(&webhook("call.hangup", &payload));
            let _ = read(&webhook("call.cost", &payload));
        }
    }
}
