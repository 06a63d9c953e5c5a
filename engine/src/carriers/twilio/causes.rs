//! Maps Twilio's call statuses and error codes to ours.
use crate::carriers::order::RejectionCause;
use crate::conversation::EndedReason;

/// "Invalid call state": the request needs a call that has not ended (error 21220).
pub const CALL_IS_OVER: u32 = 21_220;

/// The reason of a call's end by its final `CallStatus` and the `SipResponseCode` next to it; `None` for a status that is not
/// final. Outcome and fault follow from the reason.
///
/// | `CallStatus` | `SipResponseCode` | reason | outcome | fault |
/// | --- | --- | --- | --- | --- |
/// | `completed` | any | user hung up¹ | completed | none |
/// | `canceled` | any | canceled | canceled | none |
/// | `busy`, `no-answer`, `failed` | 603, 607, 608 | declined | busy | none |
/// | `busy` | any other | busy | busy | none |
/// | `no-answer` | any other | no answer | no answer | none |
/// | `failed` | 486, 600 | busy | busy | none |
/// | `failed` | 408, 480, 487 | no answer | no answer | none |
/// | `failed` | 401, 402, 403, 407 | carrier refused | failed | operator |
/// | `failed` | 488, 491, 606, 5xx | carrier failed | failed | carrier |
/// | `failed` | any other, none | unreachable² | failed | caller |
///
/// ¹ Twilio does not report which side hung up; the conversation knows if it was not the user.
/// ² "Most likely because the phone number is non-existent", according to the pages on call statuses.
///
/// Sources: Twilio's page "What are the possible call statuses"; the codes are defined in RFC 3261 (21), RFC 8197 (607) and
/// RFC 8688 (608). Twilio does not document which code comes with which status.
pub fn ended(call_status: &str, sip_response_code: Option<u16>) -> Option<EndedReason> {
    Some(match (call_status, sip_response_code) {
        ("completed", _) => EndedReason::UserHungUp,
        ("canceled", _) => EndedReason::Canceled,
        ("busy" | "no-answer" | "failed", Some(603 | 607 | 608)) => EndedReason::Declined,
        ("busy", _) => EndedReason::Busy,
        ("no-answer", _) => EndedReason::NoAnswer,
        ("failed", Some(486 | 600)) => EndedReason::Busy,
        ("failed", Some(408 | 480 | 487)) => EndedReason::NoAnswer,
        ("failed", Some(401 | 402 | 403 | 407)) => EndedReason::CarrierRefused,
        ("failed", Some(488 | 491 | 606 | 500..=599)) => EndedReason::CarrierFailed,
        ("failed", _) => EndedReason::Unreachable,
        _ => return None,
    })
}

/// The party that can resolve an error, if the error code is more specific than the HTTP status.
///
/// Source: Twilio's error and warning dictionary.
pub fn rejection(code: u32) -> Option<RejectionCause> {
    Some(match code {
        // The account is inactive, on trial, or may not use voice.
        10_001..=10_003 | 10_005 => RejectionCause::Account,
        // Too many concurrent calls or requests.
        10_004 | 20_429 => RejectionCause::Busy,
        // Credentials, a suspended account, permissions, or an account that does not exist.
        20_003..=20_006 | 20_008 | 20_403 | 20_404 => RejectionCause::Account,
        // International calls, countries and numbers that the account may not call.
        21_203 | 21_215 | 21_216 | 13_227 | 32_205 => RejectionCause::Account,
        // A trial account can only call verified numbers.
        21_219 | 573_005 => RejectionCause::Account,
        // The account does not own the calling number, or has not verified it.
        21_210 | 21_212 | 21_213 => RejectionCause::Account,
        // The numbers and other parameters of the Calls resource.
        21_200..=21_299 => RejectionCause::Request,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{CallFault, Outcome};

    type Row = (&'static str, &'static [Option<u16>], EndedReason, Outcome, CallFault);

    #[test]
    fn maps_every_row_of_the_table() {
        let rows: &[Row] = &[
            (
                "completed",
                &[None, Some(200), Some(603)],
                EndedReason::UserHungUp,
                Outcome::Completed,
                CallFault::None,
            ),
            ("canceled", &[None, Some(487)], EndedReason::Canceled, Outcome::Canceled, CallFault::None),
            (
                "busy",
                &[Some(603), Some(607), Some(608)],
                EndedReason::Declined,
                Outcome::Busy,
                CallFault::None,
            ),
            ("no-answer", &[Some(603)], EndedReason::Declined, Outcome::Busy, CallFault::None),
            ("failed", &[Some(603)], EndedReason::Declined, Outcome::Busy, CallFault::None),
            (
                "busy",
                &[None, Some(486), Some(600), Some(480)],
                EndedReason::Busy,
                Outcome::Busy,
                CallFault::None,
            ),
            (
                "no-answer",
                &[None, Some(487), Some(480), Some(404)],
                EndedReason::NoAnswer,
                Outcome::NoAnswer,
                CallFault::None,
            ),
            ("failed", &[Some(486), Some(600)], EndedReason::Busy, Outcome::Busy, CallFault::None),
            (
                "failed",
                &[Some(408), Some(480), Some(487)],
                EndedReason::NoAnswer,
                Outcome::NoAnswer,
                CallFault::None,
            ),
            (
                "failed",
                &[Some(401), Some(402), Some(403), Some(407)],
                EndedReason::CarrierRefused,
                Outcome::Failed,
                CallFault::Operator,
            ),
            (
                "failed",
                &[Some(488), Some(500), Some(503), Some(599), Some(606)],
                EndedReason::CarrierFailed,
                Outcome::Failed,
                CallFault::Carrier,
            ),
            (
                "failed",
                &[None, Some(404), Some(410), Some(484), Some(604)],
                EndedReason::Unreachable,
                Outcome::Failed,
                CallFault::Caller,
            ),
        ];
        for (status, codes, reason, outcome, fault) in rows {
            for code in *codes {
                assert_eq!(ended(status, *code), Some(*reason), "{status} {code:?}");
            }
            assert_eq!((reason.outcome(), reason.fault()), (*outcome, *fault), "{status}");
        }
        for status in ["queued", "initiated", "ringing", "in-progress", "", "Completed"] {
            assert_eq!(ended(status, Some(486)), None, "{status}");
        }
    }
}
