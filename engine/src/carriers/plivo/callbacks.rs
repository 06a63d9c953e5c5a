//! Parses Plivo's callbacks: forms, or queries where a URL is configured for GET.
//!
//! Source: plivo.com/docs/voice/concepts/callbacks, plivo.com/docs/voice/xml/dial (parameters of `action` and `callbackUrl`) and payloads of the examples in Plivo's repositories. `Event` identifies
//! the callback that asks for a document and the one that reports the end; those of an application may lack it and are
//! identified by `CallStatus`.
use std::borrow::Cow;

use super::{causes, is_id};
use crate::base::dollars;
use crate::carriers::callback::Callback;
use crate::carriers::report::{Billed, CarrierEvent, DialEnd, IncomingCall, Progress, Report, Untaken};
use crate::carriers::shared;

/// The events of a genuine callback.
pub(super) fn read(callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
    let parameters = Parameters::of(callback)?;
    // A callback of `<Dial>`, about the other number; it has our call's status, too.
    if !parameters.text("DialAction").is_empty() {
        return Ok(dialed(&parameters).into_iter().collect());
    }
    let Some(callback_type) = parameters.callback_type() else { return Ok(Vec::new()) };
    let carrier_call_id = parameters.call()?;
    let report = Report { carrier_call_id: carrier_call_id.clone(), ..Report::default() };
    let event = match callback_type {
        CallbackType::Incoming => {
            let from = shared::number(parameters.text("From")).filter(|from| !shared::is_withheld(from));
            let to = shared::number(parameters.text("To")).ok_or("To is missing")?;
            CarrierEvent::Incoming(IncomingCall { carrier_call_id, from, to, region_url: None })
        }
        CallbackType::AnswerRequest => CarrierEvent::Asked { carrier_call_id },
        CallbackType::Ringing => CarrierEvent::Report(Report { progress: Some(Progress::Ringing), ..report }),
        CallbackType::Ended => {
            let end = causes::end(&parameters.hangup()).lasting(seconds_ms(parameters.text("Duration")));
            CarrierEvent::Report(Report {
                progress: Some(Progress::Ended(end)),
                billed: parameters.billed(),
                machine: parameters.machine(),
                ..report
            })
        }
        CallbackType::Machine => CarrierEvent::Report(Report { machine: parameters.machine(), ..report }),
    };
    Ok(vec![event])
}

/// That the other number has answered. How it ended, `action` is told.
fn dialed(parameters: &Parameters<'_>) -> Option<CarrierEvent> {
    let other = parameters.text("DialBLegUUID");
    let has_answered = matches!(parameters.text("DialAction"), "answer" | "connected");
    (has_answered && is_id(other)).then(|| {
        CarrierEvent::Report(Report {
            carrier_call_id: other.to_owned(),
            progress: Some(Progress::Answered),
            ..Report::default()
        })
    })
}

/// What came of a `<Dial>`.
pub(super) fn dial_ended(callback: &Callback<'_>) -> Result<DialEnd, String> {
    let parameters = Parameters::of(callback)?;
    let untaken = match parameters.text("DialStatus") {
        "completed" => None,
        "busy" => Some(Untaken::Busy),
        "no-answer" | "timeout" => Some(Untaken::NoAnswer),
        "failed" | "cancel" => Some(Untaken::Failed),
        _ => return Err("DialStatus is missing or unknown".to_owned()),
    };
    let is_over = parameters.text("CallStatus") != "in-progress";
    Ok(DialEnd { carrier_call_id: Some(parameters.call()?), untaken, is_over })
}

#[derive(Debug, Clone, Copy)]
enum CallbackType {
    Incoming,
    AnswerRequest,
    Ringing,
    Ended,
    Machine,
}

struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    fn of(callback: &Callback<'a>) -> Result<Self, String> {
        match callback.method {
            "GET" => Ok(Self(callback.query_pairs())),
            "POST" if callback.is_form() => Ok(Self(callback.form_pairs())),
            _ => Err("neither a form nor a query".to_owned()),
        }
    }

    /// The value of a parameter; `""` when it is missing.
    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }

    fn callback_type(&self) -> Option<CallbackType> {
        let started = match self.text("Direction") {
            "inbound" => Some(CallbackType::Incoming),
            "outbound" => Some(CallbackType::AnswerRequest),
            _ => None,
        };
        match (self.text("Event"), self.text("CallStatus")) {
            ("StartApp", _) => started,
            ("Ring", _) => Some(CallbackType::Ringing),
            ("Hangup", _) => Some(CallbackType::Ended),
            ("MachineDetection", _) => Some(CallbackType::Machine),
            ("", "completed" | "busy" | "failed" | "timeout" | "no-answer" | "cancel") => {
                Some(CallbackType::Ended)
            }
            ("", "ringing") if matches!(started, Some(CallbackType::AnswerRequest)) => {
                Some(CallbackType::Ringing)
            }
            ("", "ringing" | "in-progress") => started,
            _ => None,
        }
    }

    fn call(&self) -> Result<String, String> {
        let id = self.text("CallUUID");
        is_id(id).then(|| id.to_owned()).ok_or_else(|| "CallUUID is missing or invalid".to_owned())
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

    /// Duration and cost as billed. Plivo names no currency: it is US dollars, except for accounts in its region India.
    fn billed(&self) -> Option<Billed> {
        let billed = Billed {
            duration_ms: seconds_ms(self.text("BillDuration")),
            cost_microusd: dollars::read_up(self.text("TotalCost")),
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

fn seconds_ms(text: &str) -> Option<i64> {
    text.parse::<u32>().ok().map(|seconds| i64::from(seconds) * 1_000)
}

#[cfg(test)]
mod tests;
