//! Plivo's callbacks and their URLs.
use super::{AUTH_ID, request_uuid};
use crate::fakes::carrier::wire::{Answerer, CallEvent, EndKind, PhoneCall};

/// The price of a started minute, in hundred thousandths of a dollar.
const RATE: u32 = 500;

/// The URL and the form of an event's callback. `None` for events without one: the request for instructions reports the answer,
/// and the callback of the end contains the price.
pub(super) fn fields<'a>(
    call: &'a PhoneCall,
    event: &'a CallEvent,
    now_s: i64,
) -> Option<(&'a str, Vec<(&'static str, String)>)> {
    let (url, name, call_status) = match event {
        CallEvent::Incoming => (&call.voice_url, "StartApp", "ringing"),
        CallEvent::Transferring { url } => (url, "StartApp", "in-progress"),
        CallEvent::Asked => (&call.voice_url, "StartApp", "in-progress"),
        CallEvent::Ringing if call.outbound => (&call.status_url, "Ring", "ringing"),
        CallEvent::Ended { how, .. } => (&call.status_url, "Hangup", status(*how)),
        // Nothing else is reported.
        CallEvent::Detected(Answerer::Machine | Answerer::Fax) => {
            (&call.detection.as_ref()?.url, "MachineDetection", "in-progress")
        }
        CallEvent::OtherAnswered { url, .. } | CallEvent::OtherEnded { url, is_over: false, .. } => {
            (url, "", "in-progress")
        }
        CallEvent::OtherEnded { url, .. } => (url, "", "completed"),
        CallEvent::Ringing | CallEvent::Answered | CallEvent::Priced { .. } | CallEvent::Detected(_) => {
            return None;
        }
    };
    let mut fields = vec![
        ("BillRate", dollars(RATE)),
        ("CallStatus", call_status.to_owned()),
        ("CallUUID", call.carrier_call_id.clone()),
        ("Direction", if call.outbound { "outbound" } else { "inbound" }.to_owned()),
        ("Event", name.to_owned()),
        ("From", digits(&call.from)),
        ("ParentAuthID", AUTH_ID.to_owned()),
        ("SessionStart", format!("{}.238707", time(now_s))),
        ("To", digits(&call.to)),
    ];
    if call.outbound {
        fields.push(("ALegRequestUUID", request_uuid(call).to_owned()));
        fields.push(("ALegUUID", call.carrier_call_id.clone()));
        fields.push(("RequestUUID", request_uuid(call).to_owned()));
    } else {
        fields.push(("CallerName", digits(&call.from)));
        fields.push(("STIRVerification", "Not Applicable".to_owned()));
    }
    // Not documented of these two.
    fields.retain(|(field, _)| *field != "Event" || !name.is_empty());
    match event {
        CallEvent::OtherAnswered { other_call_id, .. } => fields.extend([
            ("DialAction", "answer".to_owned()),
            ("DialALegUUID", call.carrier_call_id.clone()),
            ("DialBLegStatus", "answer".to_owned()),
            ("DialBLegUUID", other_call_id.clone()),
        ]),
        CallEvent::OtherEnded { other_call_id, how, .. } => {
            let has_talked = matches!(how, EndKind::HungUp | EndKind::HungUpByService);
            fields.extend([
                ("DialALegUUID", call.carrier_call_id.clone()),
                ("DialBLegUUID", if has_talked { other_call_id.clone() } else { String::new() }),
                ("DialHangupCause", cause(call, *how).2.to_owned()),
                ("DialRingStatus", (*how != EndKind::Failed).to_string()),
                ("DialStatus", status(*how).to_owned()),
            ]);
        }
        _ => {}
    }
    if matches!(event, CallEvent::Detected(_)) {
        fields.push(("IfMachine", "continue".to_owned()));
        fields.push(("Machine", "true".to_owned()));
    }
    if let CallEvent::Ended { how, seconds } = event {
        fields.extend(end(call, *how, *seconds, now_s));
    }
    Some((url, fields))
}

fn end(call: &PhoneCall, how: EndKind, seconds: u32, now_s: i64) -> Vec<(&'static str, String)> {
    let (code, name, cause, source) = cause(call, how);
    let minutes = seconds.div_ceil(60);
    let started_s = now_s - i64::from(seconds);
    let answered = if seconds == 0 { String::new() } else { time(started_s) };
    vec![
        ("AnswerTime", answered),
        ("BillDuration", (minutes * 60).to_string()),
        ("Duration", seconds.to_string()),
        ("EndTime", time(now_s)),
        ("HangupCause", cause.to_owned()),
        ("HangupCauseCode", code.to_owned()),
        ("HangupCauseName", name.to_owned()),
        ("HangupSource", source.to_owned()),
        ("StartTime", time(started_s)),
        ("TotalCost", dollars(RATE * minutes)),
    ]
}

fn status(how: EndKind) -> &'static str {
    match how {
        EndKind::HungUp | EndKind::HungUpByService => "completed",
        EndKind::NoAnswer => "no-answer",
        EndKind::Busy => "busy",
        EndKind::Declined | EndKind::Failed => "failed",
        EndKind::Canceled => "cancel",
    }
}

/// Plivo's code, its name, the cause, and the source.
fn cause(call: &PhoneCall, how: EndKind) -> (&'static str, &'static str, &'static str, &'static str) {
    let person = if call.outbound { "Callee" } else { "Caller" };
    match how {
        EndKind::HungUp => ("4000", "Normal Hangup", "NORMAL_CLEARING", person),
        EndKind::HungUpByService => ("4000", "Normal Hangup", "NORMAL_CLEARING", "API Request"),
        EndKind::NoAnswer => ("3000", "No Answer", "NO_ANSWER", "Carrier"),
        EndKind::Busy => ("3010", "Busy Line", "USER_BUSY", "Callee"),
        EndKind::Declined => ("3020", "Rejected", "CALL_REJECTED", "Callee"),
        EndKind::Failed => ("3050", "Unallocated number", "UNALLOCATED_NUMBER", "Carrier"),
        EndKind::Canceled if call.outbound => ("1000", "Canceled", "ORIGINATOR_CANCEL", "API Request"),
        EndKind::Canceled => ("4000", "Normal Hangup", "ORIGINATOR_CANCEL", "Caller"),
    }
}

/// Plivo writes numbers without `+`.
fn digits(number: &str) -> String {
    number.trim_start_matches('+').to_owned()
}

fn dollars(hundred_thousandths: u32) -> String {
    format!("{}.{:05}", hundred_thousandths / 100_000, hundred_thousandths % 100_000)
}

/// `2024-09-26 14:05:18`, in UTC.
fn time(unix_s: i64) -> String {
    let (mut days, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + i64::from(is_leap(year)) {
        days -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + i64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02}", days + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn formats_calendar_times() {
        let rows = [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_727_359_518, "2024-09-26 14:05:18"),
            (1_735_689_599, "2024-12-31 23:59:59"),
        ];
        for (unix_s, text) in rows {
            assert_eq!(super::time(unix_s), text);
        }
    }
}
