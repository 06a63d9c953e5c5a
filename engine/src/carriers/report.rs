//! A carrier's reports about calls, independent of the carrier.
use serde::{Deserialize, Serialize};

use super::shared;
use crate::conversation::{CallFault, EndedReason, Greeting, Outcome};

/// An event in a callback.
#[derive(Debug, Clone, PartialEq)]
pub enum CarrierEvent {
    /// An incoming call to one of our numbers: answer or refuse it.
    Incoming(IncomingCall),
    /// An outgoing call was answered and the carrier asks for instructions.
    Asked {
        /// The carrier's call id.
        carrier_call_id: String,
    },
    /// A call progressed or ended.
    Report(Report),
}

/// A call to one of our numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IncomingCall {
    /// The carrier's call id: identical in a repeated callback.
    pub carrier_call_id: String,
    /// The caller, with a leading `+` if it is a number; `None` when withheld.
    pub from: Option<String>,
    /// The called number, with a leading `+`.
    pub to: String,
    /// The base URL for requests about this call, if the carrier gives one.
    pub region_url: Option<String>,
}

/// The state of a call. Reports may be repeated, late and out of order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The carrier's call id.
    pub carrier_call_id: String,
    /// The progress, if the report contains it.
    pub progress: Option<Progress>,
    /// The billed amount; some carriers report it with the end, some later.
    pub billed: Option<Billed>,
    /// True once the carrier detected a machine, false for a person.
    pub machine: Option<bool>,
    /// What is known of the machine's greeting.
    pub greeting: Option<Greeting>,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The other side rings.
    Ringing,
    /// A person or a machine answered.
    Answered,
    /// The call ended.
    Ended(End),
}

/// A side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The calling side.
    Caller,
    /// The called side.
    Callee,
}

/// How a call ended, according to the carrier. Each carrier's file has the table from its causes to these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The reason. If the conversation ended itself, the conversation's reason takes precedence.
    pub reason: EndedReason,
    /// The party responsible for a failure.
    pub fault: CallFault,
    /// The carrier's own cause, unchanged: `busy`, `busy 486`, `NORMAL_CLEARING`.
    pub cause: String,
    /// The connected time by the carrier's clock, if reported.
    pub duration_ms: Option<i64>,
    /// The side that ended the call, if the carrier names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Side>,
}

impl End {
    /// An end whose outcome and fault follow from the reason.
    #[must_use]
    pub fn of(reason: EndedReason, cause: &str) -> Self {
        let cause = shared::sanitized(cause);
        Self { outcome: reason.outcome(), reason, fault: reason.fault(), cause, duration_ms: None, by: None }
    }

    /// Sets the duration that the carrier reports.
    #[must_use]
    pub fn lasting(self, duration_ms: Option<i64>) -> Self {
        Self { duration_ms, ..self }
    }

    /// Sets the side that the carrier names.
    #[must_use]
    pub fn ended_by(self, by: Option<Side>) -> Self {
        Self { by, ..self }
    }
}

/// What a carrier bills for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// The billed duration.
    pub duration_ms: Option<i64>,
    /// In millionths of a US dollar; `None` when it is not reported, or in another currency.
    pub cost_microusd: Option<i64>,
}

crate::words! {
    /// Why nobody has taken a call that was handed over.
    json Untaken {
        /// The other line is busy.
        Busy = "busy",
        /// Nobody has answered.
        NoAnswer = "no_answer",
        /// The number could not be reached.
        Failed = "failed",
    }
}

/// What came of a number that a call was connected to; the carrier asks how to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialEnd {
    /// The carrier's call id of our line, where it says so.
    pub carrier_call_id: Option<String>,
    /// Why nobody has taken the call; `None` if they have talked.
    pub untaken: Option<Untaken>,
    /// Whether our line is over, too: who was connected has hung up.
    pub is_over: bool,
}

/// Why an incoming call is declined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No assistant is assigned to this number.
    Unbound,
    /// The assistant is unavailable: all lines are in use, or the workspace reached its spend limit.
    Busy,
}
