//! Twilio's requests to the service.
use super::{ACCOUNT_SID, sign};
use crate::fakes::carrier::wire::{Answerer, CallEvent, CallbackRequest, EndKind, PhoneCall};

/// The request for an event, if there is one and a URL for it.
///
/// For an incoming call Twilio reports only its arrival, to the number's voice URL, and its end, to the number's "call status
/// changes" URL.
pub fn callback(call: &PhoneCall, event: &CallEvent, nth: u32, now_s: i64) -> Option<CallbackRequest> {
    if let CallEvent::Detected(answerer) = event {
        return detected(call, *answerer, nth);
    }
    if let CallEvent::OtherAnswered { url, other_call_id } = event {
        // The other call is a child of the first one.
        let other = PhoneCall { carrier_call_id: other_call_id.clone(), ..call.clone() };
        let mut parameters = about(&other, "in-progress");
        parameters.retain(|(name, _)| *name != "Direction");
        parameters.extend([
            ("Direction", "outbound-dial".to_owned()),
            ("ParentCallSid", call.carrier_call_id.clone()),
            ("CallbackSource", "call-progress-events".to_owned()),
            ("SequenceNumber", "0".to_owned()),
            ("Timestamp", rfc_2822(now_s)),
        ]);
        return Some(signed(call, url, &parameters, nth));
    }
    if let CallEvent::OtherEnded { url, other_call_id, how, is_over } = event {
        let mut parameters = about(call, if *is_over { "completed" } else { "in-progress" });
        let has_talked = matches!(how, EndKind::HungUp | EndKind::HungUpByService);
        parameters.extend([
            ("DialBridged", has_talked.to_string()),
            ("DialCallSid", other_call_id.clone()),
            ("DialCallStatus", status_of(*how).to_owned()),
        ]);
        if has_talked {
            parameters.push(("DialCallDuration", "30".to_owned()));
        }
        return Some(signed(call, url, &parameters, nth));
    }
    let (url, status) = match event {
        CallEvent::Incoming if !call.outbound => (&call.voice_url, "ringing"),
        CallEvent::Ringing if call.outbound => (&call.status_url, "ringing"),
        CallEvent::Answered if call.outbound => (&call.status_url, "in-progress"),
        CallEvent::Ended { how, .. } => (&call.status_url, status_of(*how)),
        // The order of an outgoing call contains its document; prices are not reported.
        _ => return None,
    };
    if url.is_empty() {
        return None;
    }
    let mut parameters = about(call, status);
    if *event == CallEvent::Incoming {
        parameters
            .push(("CallToken", "%7B%22parentCallInfoToken%22%3A%22eyJhbGciOiJFUzI1NiJ9%22%7D".to_owned()));
        parameters.push(("StirVerstat", "TN-Validation-Passed-A".to_owned()));
    } else {
        parameters.push(("CallbackSource", "call-progress-events".to_owned()));
        parameters.push(("SequenceNumber", nth.to_string()));
        parameters.push(("Timestamp", rfc_2822(now_s)));
    }
    if let CallEvent::Ended { how, seconds } = event {
        parameters.push(("CallDuration", seconds.to_string()));
        // Billed minutes.
        parameters.push(("Duration", seconds.div_ceil(60).to_string()));
        parameters.push(("SipResponseCode", sip_response_code_of(*how).to_string()));
    }
    Some(signed(call, url, &parameters, nth))
}

/// The result of an asynchronous detection: one callback, which has neither a status nor numbers. With `DetectMessageEnd` it comes
/// after the greeting.
fn detected(call: &PhoneCall, answerer: Answerer, nth: u32) -> Option<CallbackRequest> {
    let detection = call.detection.as_ref()?;
    let answered_by = match answerer {
        Answerer::Person => "human",
        Answerer::Machine if detection.reports_greeting => return None,
        Answerer::Machine => "machine_start",
        Answerer::GreetedMachine if detection.reports_greeting => "machine_end_beep",
        Answerer::GreetedMachine => return None,
        Answerer::Fax => "fax",
        Answerer::Unsure => "unknown",
    };
    let parameters = [
        ("AccountSid", ACCOUNT_SID.to_owned()),
        ("AnsweredBy", answered_by.to_owned()),
        ("CallSid", call.carrier_call_id.clone()),
        ("MachineDetectionDuration", "2100".to_owned()),
    ];
    Some(signed(call, &detection.url, &parameters, nth))
}

fn signed(call: &PhoneCall, url: &str, parameters: &[(&str, String)], nth: u32) -> CallbackRequest {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    let digits = call.carrier_call_id.trim_start_matches("CA");
    let headers = vec![
        ("content-type", "application/x-www-form-urlencoded; charset=UTF-8".to_owned()),
        ("accept", "*/*".to_owned()),
        ("user-agent", "TwilioProxy/1.1".to_owned()),
        ("i-twilio-idempotency-token", format!("{digits}-{nth}")),
        ("x-twilio-signature", sign(url, parameters)),
    ];
    CallbackRequest { method: "POST", url: url.to_owned(), headers, body: body.into_bytes() }
}

/// The common parameters; the unknown locations of the numbers are empty.
fn about(call: &PhoneCall, status: &str) -> Vec<(&'static str, String)> {
    let direction = if call.outbound { "outbound-api" } else { "inbound" };
    let mut all = vec![
        ("AccountSid", ACCOUNT_SID.to_owned()),
        ("ApiVersion", "2010-04-01".to_owned()),
        ("CallSid", call.carrier_call_id.clone()),
        ("CallStatus", status.to_owned()),
        ("Direction", direction.to_owned()),
        ("From", call.from.clone()),
        ("Caller", call.from.clone()),
        ("To", call.to.clone()),
        ("Called", call.to.clone()),
    ];
    let places = [
        "FromCity",
        "FromState",
        "FromZip",
        "FromCountry",
        "CallerCity",
        "CallerState",
        "CallerZip",
        "CallerCountry",
        "ToCity",
        "ToState",
        "ToZip",
        "ToCountry",
        "CalledCity",
        "CalledState",
        "CalledZip",
        "CalledCountry",
    ];
    all.extend(places.map(|name| (name, if name.ends_with("Country") { "US" } else { "" }.to_owned())));
    all
}

fn status_of(how: EndKind) -> &'static str {
    match how {
        EndKind::HungUp | EndKind::HungUpByService => "completed",
        EndKind::NoAnswer => "no-answer",
        EndKind::Busy | EndKind::Declined => "busy",
        EndKind::Failed => "failed",
        EndKind::Canceled => "canceled",
    }
}

/// RFC 3261, 21.
fn sip_response_code_of(how: EndKind) -> u16 {
    match how {
        EndKind::HungUp | EndKind::HungUpByService => 200,
        EndKind::NoAnswer | EndKind::Canceled => 487,
        EndKind::Busy => 486,
        EndKind::Declined => 603,
        EndKind::Failed => 404,
    }
}

/// `Sat, 07 May 2022 14:30:14 +0000`
pub fn rfc_2822(now_s: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (now_s.div_euclid(86_400), now_s.rem_euclid(86_400));
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut left) = (1970, days);
    while left >= if is_leap(year) { 366 } else { 365 } {
        left -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or_default()];
    format!("{weekday}, {:02} {} {year} {hour:02}:{minute:02}:{second:02} +0000", left + 1, MONTHS[month])
}
