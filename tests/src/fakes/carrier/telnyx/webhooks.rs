//! Telnyx's webhooks: the fields of the SDK's webhook types, and additional ones in recorded webhooks (`end_time`,
//! `calling_party_type`, `from_sip_uri`, `to_sip_uri`, `meta`).
use serde_json::{Value, json};

use super::super::wire::{Answerer, CallEvent, EndKind, PhoneCall};
use super::{CONNECTION_ID, leg_id, uuid};

/// How long the other side rings before it answers.
const RINGING_S: i64 = 4;

/// The body of a webhook; `None` when Telnyx sends none.
pub(super) fn body(call: &PhoneCall, event: &CallEvent, nth: u32, now_s: i64, url: &str) -> Option<Value> {
    let (event_type, payload) = match event {
        CallEvent::Incoming if !call.outbound => ("call.initiated", initiated(call, now_s)),
        CallEvent::Ringing if call.outbound => ("call.initiated", initiated(call, now_s)),
        CallEvent::Incoming | CallEvent::Ringing | CallEvent::Asked | CallEvent::Transferring { .. } => {
            return None;
        }
        CallEvent::OtherAnswered { other_call_id, .. } => {
            ("call.answered", answered(&other(call, other_call_id), now_s))
        }
        CallEvent::OtherEnded { other_call_id, how, .. } => {
            ("call.hangup", hangup(&other(call, other_call_id), *how, 0, now_s))
        }
        CallEvent::Answered => ("call.answered", answered(call, now_s)),
        CallEvent::Detected(answerer) => {
            call.detection.as_ref()?;
            let (event_type, result) = detected(*answerer);
            (event_type, with(common(call), json!({"result": result})))
        }
        CallEvent::Ended { how, seconds } => ("call.hangup", hangup(call, *how, *seconds, now_s)),
        CallEvent::Priced { seconds } => ("call.cost", cost(call, *seconds, now_s)),
    };
    let id = uuid(&format!("event {nth} {}", call.carrier_call_id));
    Some(json!({
        "data": {
            "event_type": event_type,
            "id": id,
            "occurred_at": iso(now_s),
            "payload": payload,
            "record_type": "event",
        },
        "meta": {"attempt": 1, "delivered_to": url},
    }))
}

/// The call to the number that a call is transferred to.
fn other(call: &PhoneCall, id: &str) -> PhoneCall {
    PhoneCall { carrier_call_id: id.to_owned(), outbound: true, ..call.clone() }
}

fn common(call: &PhoneCall) -> Value {
    json!({
        "call_control_id": call.carrier_call_id,
        "call_leg_id": leg_id(call),
        "call_session_id": call.other_id,
        "client_state": null,
        "connection_id": CONNECTION_ID,
        "from": call.from,
        "to": call.to,
    })
}

fn with(mut payload: Value, more: Value) -> Value {
    if let (Value::Object(payload), Value::Object(more)) = (&mut payload, more) {
        payload.extend(more);
    }
    payload
}

fn initiated(call: &PhoneCall, now_s: i64) -> Value {
    let (direction, state) = if call.outbound { ("outgoing", "bridging") } else { ("incoming", "parked") };
    let user = call.from.trim_start_matches('+');
    let more = json!({
        "caller_id_name": call.from,
        "calling_party_type": "pstn",
        "connection_codecs": "PCMA,PCMU,VP8,H264",
        "custom_headers": [],
        "direction": direction,
        "from_sip_uri": format!("{user}@206.147.72.186:5060"),
        "offered_codecs": "PCMU,G729",
        "shaken_stir_attestation": "A",
        "shaken_stir_validated": true,
        "sip_headers": [],
        "start_time": iso(now_s),
        "state": state,
        "tags": [],
        "to_sip_uri": format!("{}@192.76.120.10:5060", call.to),
    });
    with(common(call), more)
}

fn answered(call: &PhoneCall, now_s: i64) -> Value {
    let more = json!({
        "calling_party_type": "pstn",
        "custom_headers": [],
        "sip_headers": [],
        "start_time": iso(now_s - RINGING_S),
        "state": "answered",
        "tags": [],
    });
    with(common(call), more)
}

/// The premium detection. A beep before its end is the only event.
fn detected(answerer: Answerer) -> (&'static str, &'static str) {
    const DETECTION: &str = "call.machine.premium.detection.ended";
    match answerer {
        Answerer::Person => (DETECTION, "human_residence"),
        Answerer::Machine => (DETECTION, "machine"),
        Answerer::Fax => (DETECTION, "fax_detected"),
        Answerer::Unsure => (DETECTION, "not_sure"),
        Answerer::GreetedMachine => ("call.machine.premium.greeting.ended", "beep_detected"),
    }
}

fn hangup(call: &PhoneCall, how: EndKind, seconds: u32, now_s: i64) -> Value {
    let (person, service) = if call.outbound { ("callee", "caller") } else { ("caller", "callee") };
    let (cause, source, sip) = match how {
        EndKind::HungUp => ("normal_clearing", person, "200"),
        EndKind::HungUpByService if call.outbound => ("normal_clearing", service, "200"),
        EndKind::HungUpByService => ("normal_clearing", service, "unspecified"),
        EndKind::NoAnswer => ("no_answer", "unknown", "487"),
        EndKind::Busy => ("user_busy", "unknown", "486"),
        EndKind::Declined => ("call_rejected", "callee", "603"),
        EndKind::Failed => ("not_found", "unknown", "404"),
        EndKind::Canceled => ("originator_cancel", "caller", "487"),
    };
    let more = json!({
        "call_quality_stats": {
            "inbound": {
                "jitter_max_variance": "63.77",
                "jitter_packet_count": "0",
                "mos": "4.50",
                "packet_count": (seconds * 50).to_string(),
                "skip_packet_count": "13",
            },
            "outbound": {"packet_count": (seconds * 50).to_string(), "skip_packet_count": "0"},
        },
        "calling_party_type": "pstn",
        "custom_headers": [],
        "end_time": iso(now_s),
        "hangup_cause": cause,
        "hangup_source": source,
        "sip_hangup_cause": sip,
        "sip_headers": [],
        // The time of the set-up, not of the answer.
        "start_time": iso(now_s - i64::from(seconds) - RINGING_S),
        "state": "hangup",
        "tags": [],
    });
    with(common(call), more)
}

/// Two parts, at 0.002 and 0.005 dollars per started minute.
fn cost(call: &PhoneCall, seconds: u32, now_s: i64) -> Value {
    let minutes = seconds.div_ceil(60);
    let money = |thousandths: u32| format!("{}.{:03}0", thousandths / 1_000, thousandths % 1_000);
    let part = |name: &str, rate: u32| {
        json!({
            "billed_duration_secs": minutes * 60,
            "call_part": name,
            "cost": money(rate * minutes),
            "currency": "USD",
            "rate": money(rate),
        })
    };
    json!({
        "billed_duration_secs": minutes * 60,
        "billing_group_id": null,
        "call_control_id": call.carrier_call_id,
        "call_leg_id": leg_id(call),
        "call_session_id": call.other_id,
        "client_state": null,
        "connection_id": CONNECTION_ID,
        "cost_parts": [part("call-control", 2), part("sip-trunking", 5)],
        "occurred_at": iso(now_s),
        "status": "success",
        "total_cost": money(7 * minutes),
    })
}

/// ISO 8601 with microseconds, from seconds since 1970.
fn iso(at_s: i64) -> String {
    let (days, second) = (at_s.div_euclid(86_400), at_s.rem_euclid(86_400));
    // Years start in March, so that leap days come last (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000000Z")
}

#[cfg(test)]
mod tests {
    #[test]
    fn seconds_are_dates() {
        for (at_s, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_700_000_000, "2023-11-14T22:13:20.000000Z"),
            (1_795_219_199, "2026-11-20T23:59:59.000000Z"),
        ] {
            assert_eq!(super::iso(at_s), text);
        }
    }
}
