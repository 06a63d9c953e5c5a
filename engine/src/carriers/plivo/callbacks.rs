//! What Plivo's callbacks say: forms, or queries where a URL is set up to be asked with GET.
//!
//! Source: plivo.com/docs/voice/concepts/callbacks and payloads of the examples in Plivo's repositories. The callback
//! that asks for a document and the one that tells of the end are known by `Event`; an application's may come
//! without, and is then known by its `CallStatus`.
use std::borrow::Cow;

use super::{causes, is_id};
use crate::carriers::callback::Callback;
use crate::carriers::report::{Billed, CarrierEvent, IncomingCall, Progress, Report};
use crate::carriers::shared;

/// What a genuine callback says.
pub(super) fn read(callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
    let said = Said::of(callback)?;
    let Some(kind) = said.kind() else { return Ok(Vec::new()) };
    let carrier_call_id = said.call()?;
    let report = Report { carrier_call_id: carrier_call_id.clone(), ..Report::default() };
    let event = match kind {
        Kind::Incoming => {
            let from = shared::number(said.text("From")).filter(|from| !is_withheld(from));
            let to = shared::number(said.text("To")).ok_or("To is missing")?;
            CarrierEvent::Incoming(IncomingCall { carrier_call_id, from, to, region_url: None })
        }
        Kind::Asked => CarrierEvent::Asked { carrier_call_id },
        Kind::Ringing => CarrierEvent::Report(Report { progress: Some(Progress::Ringing), ..report }),
        Kind::Ended => {
            let end = causes::end(&said.hangup()).lasting(seconds_ms(said.text("Duration")));
            CarrierEvent::Report(Report {
                progress: Some(Progress::Ended(end)),
                billed: said.billed(),
                machine: said.machine(),
                ..report
            })
        }
        Kind::Machine => CarrierEvent::Report(Report { machine: said.machine(), ..report }),
    };
    Ok(vec![event])
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Incoming,
    Asked,
    Ringing,
    Ended,
    Machine,
}

struct Said<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Said<'a> {
    fn of(callback: &Callback<'a>) -> Result<Self, String> {
        match callback.method {
            "GET" => Ok(Self(callback.query_pairs())),
            "POST" if callback.is_form() => Ok(Self(callback.form_pairs())),
            _ => Err("neither a form nor a query".to_owned()),
        }
    }

    /// The value of a name; `""` when it is not there.
    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }

    fn kind(&self) -> Option<Kind> {
        let started = match self.text("Direction") {
            "inbound" => Some(Kind::Incoming),
            "outbound" => Some(Kind::Asked),
            _ => None,
        };
        match (self.text("Event"), self.text("CallStatus")) {
            ("StartApp", _) => started,
            ("Ring", _) => Some(Kind::Ringing),
            ("Hangup", _) => Some(Kind::Ended),
            ("MachineDetection", _) => Some(Kind::Machine),
            ("", "completed" | "busy" | "failed" | "timeout" | "no-answer" | "cancel") => Some(Kind::Ended),
            ("", "ringing") if matches!(started, Some(Kind::Asked)) => Some(Kind::Ringing),
            ("", "ringing" | "in-progress") => started,
            _ => None,
        }
    }

    fn call(&self) -> Result<String, String> {
        let id = self.text("CallUUID");
        is_id(id).then(|| id.to_owned()).ok_or_else(|| "CallUUID is missing or is none".to_owned())
    }

    fn hangup(&self) -> causes::Hangup<'_> {
        causes::Hangup {
            code: self.text("HangupCauseCode"),
            name: self.text("HangupCauseName"),
            cause: self.text("HangupCause"),
            source: self.text("HangupSource"),
            status: self.text("CallStatus"),
            inbound: self.text("Direction") == "inbound",
        }
    }

    /// What Plivo takes. It names no currency: an account's is US dollars, but for those of its region India.
    fn billed(&self) -> Option<Billed> {
        let billed = Billed {
            duration_ms: seconds_ms(self.text("BillDuration")),
            cost_microusd: microusd(self.text("TotalCost")),
        };
        (billed.duration_ms.is_some() || billed.cost_microusd.is_some()).then_some(billed)
    }

    fn machine(&self) -> Option<bool> {
        match self.text("Machine") {
            text if text.eq_ignore_ascii_case("true") => Some(true),
            text if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }
}

/// Words that stand where a caller's number would.
fn is_withheld(from: &str) -> bool {
    ["anonymous", "restricted", "unavailable", "private", "unknown"]
        .iter()
        .any(|word| from.eq_ignore_ascii_case(word))
}

fn seconds_ms(text: &str) -> Option<i64> {
    text.parse::<u32>().ok().map(|seconds| i64::from(seconds) * 1_000)
}

/// A decimal of dollars, such as `0.01000`, in millionths; what is beyond is rounded up.
fn microusd(text: &str) -> Option<i64> {
    const PLACES: usize = 6;
    const BYTES_MAX: usize = 18; // twelve digits before the point stay far from the end of the range
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || text.len() > BYTES_MAX || !all_digits(whole) || !all_digits(part) {
        return None;
    }
    let (kept, rest) = part.split_at(part.len().min(PLACES));
    let micros: i64 = format!("{kept:0<PLACES$}").parse().ok()?;
    let more = i64::from(rest.bytes().any(|b| b != b'0'));
    whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(micros + more)
}

#[cfg(test)]
mod tests;
