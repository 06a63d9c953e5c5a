//! Parses Twilio's callbacks.
//!
//! Sources: Twilio's pages "TwiML: Twilio's request to your application", "Call resource: StatusCallback",
//! "Answering machine detection" and "TwiML: Dial" (parameters of the request to `action`).
use std::borrow::Cow;

use super::{causes, signature};
use crate::base::text::truncate;
use crate::carriers::callback::Callback;
use crate::carriers::report::{Billed, CarrierEvent, DialEnd, End, IncomingCall, Progress, Report, Untaken};
use crate::carriers::shared;
use crate::conversation::Greeting;

/// Bytes of a value that an error quotes.
const QUOTED_BYTES_MAX: usize = 40;

/// Values of `From` for an unknown caller, beside words: the words as typed on a telephone keypad (anonymous, restricted,
/// blocked, unknown, unavailable).
const WITHHELD_NUMBERS: &[&str] = &["+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253"];

/// The events of a callback, by its content: one URL may be configured for a number's calls and for their status.
pub fn read(callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
    let fields = Fields::of(callback);
    let carrier_call_id = call_sid(&fields)?;
    // Status callbacks of a stream were not requested; the media socket has this information.
    if fields.get("StreamEvent").is_some() {
        return Ok(Vec::new());
    }
    let event = match fields.get("CallStatus") {
        Some(status) if is_incoming(&fields, status) => incoming(&fields, carrier_call_id).map(Some)?,
        status => report(&fields, carrier_call_id, status)?.map(CarrierEvent::Report),
    };
    Ok(event.into_iter().collect())
}

/// What came of a `<Dial>`.
pub fn dial_ended(callback: &Callback<'_>) -> Result<DialEnd, String> {
    let fields = Fields::of(callback);
    let untaken = match fields.get("DialCallStatus") {
        Some("completed" | "answered") => None,
        Some("busy") => Some(Untaken::Busy),
        Some("no-answer") => Some(Untaken::NoAnswer),
        // Canceled: who was connected has hung up, or another program has.
        Some("failed" | "canceled") => Some(Untaken::Failed),
        other => return Err(format!("unknown DialCallStatus {}", quoted(other.unwrap_or_default()))),
    };
    let is_over = fields.get("CallStatus") != Some("in-progress");
    Ok(DialEnd { carrier_call_id: Some(call_sid(&fields)?.to_owned()), untaken, is_over })
}

fn call_sid<'a>(fields: &'a Fields<'_>) -> Result<&'a str, String> {
    let sid = fields.get("CallSid").ok_or("no CallSid")?;
    if super::is_sid("CA", sid) { Ok(sid) } else { Err(format!("invalid CallSid {}", quoted(sid))) }
}

/// Whether a call waits for a document. It rings, or is in progress when another document of the operator redirected it to us.
/// Progress callbacks have a source.
fn is_incoming(fields: &Fields<'_>, status: &str) -> bool {
    fields.get("Direction") == Some("inbound")
        && fields.get("CallbackSource").is_none()
        && matches!(status, "queued" | "ringing" | "in-progress")
}

fn incoming(fields: &Fields<'_>, carrier_call_id: &str) -> Result<CarrierEvent, String> {
    let to = fields.get("To").or(fields.get("Called")).and_then(shared::number).ok_or("no To")?;
    let from = fields.get("From").or(fields.get("Caller")).and_then(shared::number);
    let is_withheld = |from: &String| WITHHELD_NUMBERS.contains(&from.as_str()) || shared::is_withheld(from);
    Ok(CarrierEvent::Incoming(IncomingCall {
        carrier_call_id: carrier_call_id.to_owned(),
        from: from.filter(|from| !is_withheld(from)),
        to,
        region_url: None,
    }))
}

/// The progress of a call; `None` for callbacks without interest (recordings).
fn report(
    fields: &Fields<'_>,
    carrier_call_id: &str,
    status: Option<&str>,
) -> Result<Option<Report>, String> {
    let progress = match status {
        None | Some("queued" | "initiated") => None,
        Some("ringing") => Some(Progress::Ringing),
        Some("in-progress" | "answered") => Some(Progress::Answered),
        Some(status) => Some(Progress::Ended(end(fields, status)?)),
    };
    let billed = match progress {
        // Billed minutes; the price is known later and not reported.
        Some(Progress::Ended(_)) => fields
            .number("Duration")
            .map(|minutes| Billed { duration_ms: Some(minutes.saturating_mul(60_000)), cost_microusd: None }),
        _ => None,
    };
    let (machine, greeting) = match fields.get("AnsweredBy") {
        Some("human") => (Some(false), None),
        Some("fax") => (Some(true), Some(Greeting::None)),
        Some(by) if by.starts_with("machine_end_") => (Some(true), Some(Greeting::Ended)),
        Some(by) if by.starts_with("machine_") => (Some(true), None),
        _ => (None, None),
    };
    // Even without progress the report gives the call's SID, in case the response to the order was lost.
    let is_taken = matches!(status, Some("queued" | "initiated"));
    if progress.is_none() && machine.is_none() && !is_taken {
        return Ok(None);
    }
    Ok(Some(Report { carrier_call_id: carrier_call_id.to_owned(), progress, billed, machine, greeting }))
}

fn end(fields: &Fields<'_>, status: &str) -> Result<End, String> {
    let sip_response_code = fields.get("SipResponseCode").and_then(|code| code.parse().ok());
    let reason = causes::ended(status, sip_response_code)
        .ok_or_else(|| format!("unknown CallStatus {}", quoted(status)))?;
    let cause = match sip_response_code {
        Some(code) => format!("{status} {code}"),
        None => status.to_owned(),
    };
    let duration_ms = fields.number("CallDuration").map(|seconds| seconds.saturating_mul(1_000));
    Ok(End::of(reason, &cause).lasting(duration_ms))
}

fn quoted(text: &str) -> String {
    format!("{:?}", truncate(text.to_owned(), QUOTED_BYTES_MAX))
}

/// The signed parameters: a form's, or those of the URL when there is no body.
struct Fields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Fields<'a> {
    fn of(callback: &Callback<'a>) -> Self {
        Self(if signature::is_get(callback) { callback.query_pairs() } else { callback.form_pairs() })
    }

    /// The first value of a parameter; `None` when it is missing or empty.
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_ref()).filter(|value| !value.is_empty())
    }

    /// A non-negative number.
    fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok().filter(|number| *number >= 0)
    }
}

#[cfg(test)]
mod tests;
