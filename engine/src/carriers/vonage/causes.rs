//! Maps Vonage's call statuses to ours.
//!
//! Sources: Vonage's "Voice API Webhooks Reference" (the statuses) and the official SDKs for Java and .NET
//! (`CallStatusDetail`, `DetailedStatus`: the details and their meaning). Events contain no SIP code.
use crate::carriers::report::End;
use crate::conversation::EndedReason;

/// Status, detail, reason. The detail `""` matches every detail without a row of its own, and a missing one.
const CAUSES: &[(&str, &str, EndedReason)] = &[
    // Connected, then one side hung up. Which side is not guaranteed; when the conversation ended by itself, its own reason takes
    // precedence.
    ("completed", "", EndedReason::UserHungUp),
    ("busy", "", EndedReason::Busy),
    // Cancelled before the answer.
    ("cancelled", "", EndedReason::Canceled),
    // Rang for the maximum time (`ringing_timer`).
    ("timeout", "", EndedReason::NoAnswer),
    // Not answered, currently unreachable, or given up by the carrier on the other side.
    ("unanswered", "", EndedReason::NoAnswer),
    ("unanswered", "declined", EndedReason::Declined),
    // Rejected before the connection.
    ("rejected", "", EndedReason::CarrierRefused),
    ("rejected", "restricted", EndedReason::CarrierRefused),
    ("rejected", "invalid_number", EndedReason::Unreachable),
    ("rejected", "declined", EndedReason::Declined),
    // The connection failed.
    ("failed", "", EndedReason::CarrierFailed),
    ("failed", "internal_error", EndedReason::CarrierFailed),
    ("failed", "carrier_timeout", EndedReason::CarrierFailed),
    ("failed", "cannot_route", EndedReason::Unreachable),
    ("failed", "number_out_of_service", EndedReason::Unreachable),
];

/// The end for a status and its detail (`""` for none); `None` when the status is not final.
pub fn end(status: &str, detail: &str) -> Option<End> {
    let of_status = || CAUSES.iter().filter(|(known, ..)| *known == status);
    let found = of_status()
        .find(|(_, known, _)| *known == detail)
        .or_else(|| of_status().find(|row| row.1.is_empty()));
    let (_, _, reason) = found?;
    let cause = match detail {
        "" => status.to_owned(),
        detail => format!("{status} {detail}"),
    };
    Some(End::of(*reason, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{CallFault, Outcome};

    #[test]
    fn maps_every_end() {
        use {CallFault as F, EndedReason as R, Outcome as O};
        for (status, detail, outcome, reason, fault) in [
            ("completed", "", O::Completed, R::UserHungUp, F::None),
            ("completed", "new_detail", O::Completed, R::UserHungUp, F::None),
            ("busy", "", O::Busy, R::Busy, F::None),
            ("cancelled", "", O::Canceled, R::Canceled, F::None),
            ("timeout", "", O::NoAnswer, R::NoAnswer, F::None),
            ("unanswered", "", O::NoAnswer, R::NoAnswer, F::None),
            ("unanswered", "unavailable", O::NoAnswer, R::NoAnswer, F::None),
            ("unanswered", "timeout", O::NoAnswer, R::NoAnswer, F::None),
            ("unanswered", "declined", O::Busy, R::Declined, F::None),
            ("rejected", "", O::Failed, R::CarrierRefused, F::Operator),
            ("rejected", "restricted", O::Failed, R::CarrierRefused, F::Operator),
            ("rejected", "invalid_number", O::Failed, R::Unreachable, F::Caller),
            ("rejected", "declined", O::Busy, R::Declined, F::None),
            ("failed", "", O::Failed, R::CarrierFailed, F::Carrier),
            ("failed", "internal_error", O::Failed, R::CarrierFailed, F::Carrier),
            ("failed", "carrier_timeout", O::Failed, R::CarrierFailed, F::Carrier),
            ("failed", "cannot_route", O::Failed, R::Unreachable, F::Caller),
            ("failed", "number_out_of_service", O::Failed, R::Unreachable, F::Caller),
        ] {
            let end = end(status, detail).unwrap();
            let cause = [status, detail].join(" ").trim().to_owned();
            assert_eq!(
                end,
                End { outcome, reason, fault, cause, duration_ms: None, by: None },
                "{status} {detail}"
            );
        }
    }

    #[test]
    fn every_status_has_a_default_row() {
        for (status, detail, reason) in CAUSES {
            assert_eq!(end(status, detail).unwrap().reason, *reason);
            assert!(end(status, "never heard of").is_some(), "{status}");
        }
    }

    #[test]
    fn other_statuses_are_not_final() {
        for status in ["started", "ringing", "answered", "human", "machine", "disconnected", "complete", ""] {
            assert_eq!(end(status, ""), None, "{status}");
        }
    }
}
