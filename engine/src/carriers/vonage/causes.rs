//! From what Vonage calls the end of a call to what Sidetone calls it.
//!
//! Sources: Vonage's "Voice API Webhooks Reference" (the statuses) and the official SDKs for Java and .NET
//! (`CallStatusDetail`, `DetailedStatus`: the details, with what they mean). There is no SIP code in an event.
use crate::carriers::report::End;
use crate::conversation::EndedReason;

/// The table. A detail of `""` is any that the status has no row for, and none at all.
const CAUSES: &[(&str, &str, EndedReason)] = &[
    // The two sides were connected, and one of them hung up. Which one is not promised; where the conversation
    // ended by itself it knows better.
    ("completed", "", EndedReason::UserHungUp),
    ("busy", "", EndedReason::Busy),
    // Called off before it was answered.
    ("cancelled", "", EndedReason::Canceled),
    // It rang as long as it may (`ringing_timer`).
    ("timeout", "", EndedReason::NoAnswer),
    // Nobody answered, nobody could be reached right now, or the carrier on the other side gave up.
    ("unanswered", "", EndedReason::NoAnswer),
    ("unanswered", "declined", EndedReason::Declined),
    // Before it was connected.
    ("rejected", "", EndedReason::CarrierRefused),
    ("rejected", "restricted", EndedReason::CarrierRefused),
    ("rejected", "invalid_number", EndedReason::Unreachable),
    ("rejected", "declined", EndedReason::Declined),
    // It could not be connected.
    ("failed", "", EndedReason::CarrierFailed),
    ("failed", "internal_error", EndedReason::CarrierFailed),
    ("failed", "carrier_timeout", EndedReason::CarrierFailed),
    ("failed", "cannot_route", EndedReason::Unreachable),
    ("failed", "number_out_of_service", EndedReason::Unreachable),
];

/// The end that a status with this detail (`""` for none) means; `None` when it is no end.
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
    fn every_end_has_its_outcome_reason_and_fault() {
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
    fn every_row_is_found_and_every_status_has_a_row_without_detail() {
        for (status, detail, reason) in CAUSES {
            assert_eq!(end(status, detail).unwrap().reason, *reason);
            assert!(end(status, "never heard of").is_some(), "{status}");
        }
    }

    #[test]
    fn what_is_no_end_is_none() {
        for status in ["started", "ringing", "answered", "human", "machine", "disconnected", "complete", ""] {
            assert_eq!(end(status, ""), None, "{status}");
        }
    }
}
