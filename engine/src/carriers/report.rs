//! What a carrier tells of calls, in our words.
use serde::{Deserialize, Serialize};

use super::shared;
use crate::conversation::{CallFault, EndedReason, Outcome};

/// One thing that a callback says.
#[derive(Debug, Clone, PartialEq)]
pub enum CarrierEvent {
    /// Somebody calls one of our numbers: answer or refuse.
    Incoming(IncomingCall),
    /// A call that was placed was answered and the carrier asks what to do with it.
    Asked {
        /// The carrier's id of the call.
        carrier_call_id: String,
    },
    /// A call got on, or is over.
    Report(Report),
}

/// A call to one of our numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IncomingCall {
    /// The carrier's id of it: the same when the callback is repeated.
    pub carrier_call_id: String,
    /// Who calls, with a leading `+` where it is a number; `None` when withheld.
    pub from: Option<String>,
    /// The number that was called, with a leading `+`.
    pub to: String,
    /// Where the carrier wants requests about this call, where it says so.
    pub region_url: Option<String>,
}

/// What became of a call. Reports come twice, late and out of order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The carrier's id of the call.
    pub carrier_call_id: String,
    /// Where the call is.
    pub progress: Option<Progress>,
    /// What the carrier takes for it; some tell with the end, some later.
    pub billed: Option<Billed>,
    /// True once the carrier has found that a machine answered, false for a person.
    pub machine: Option<bool>,
}

/// Where a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The other side rings.
    Ringing,
    /// Somebody, or something, has answered.
    Answered,
    /// It is over.
    Ended(End),
}

/// A side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The one that called.
    Caller,
    /// The one that was called.
    Callee,
}

/// How a call ended, as far as the carrier knows. Each carrier's file has the table from its causes to these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// What came of it.
    pub outcome: Outcome,
    /// Why. Of a call whose conversation ended by itself, the conversation knows better.
    pub reason: EndedReason,
    /// Whose fault it is that it did not go well.
    pub fault: CallFault,
    /// The carrier's own words for why, as they came: `busy`, `busy 486`, `NORMAL_CLEARING`.
    pub cause: String,
    /// How long the two sides were connected by the carrier's clock, where it tells.
    pub duration_ms: Option<i64>,
    /// Which side ended it, where the carrier names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Side>,
}

impl End {
    /// An end whose reason says all.
    #[must_use]
    pub fn of(reason: EndedReason, cause: &str) -> Self {
        let cause = shared::words(cause);
        Self { outcome: reason.outcome(), reason, fault: reason.fault(), cause, duration_ms: None, by: None }
    }

    /// The same, with how long the carrier says it lasted.
    #[must_use]
    pub fn lasting(self, duration_ms: Option<i64>) -> Self {
        Self { duration_ms, ..self }
    }

    /// The same, with the side that the carrier names.
    #[must_use]
    pub fn ended_by(self, by: Option<Side>) -> Self {
        Self { by, ..self }
    }
}

/// What a carrier takes for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// How long it counts.
    pub duration_ms: Option<i64>,
    /// In millionths of a US dollar; `None` when it did not tell, or told in another currency.
    pub cost_microusd: Option<i64>,
}

/// Why an incoming call is declined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No assistant answers this number.
    Unbound,
    /// One does, and cannot at the moment: all lines are taken, or the workspace may spend no more.
    Busy,
}
