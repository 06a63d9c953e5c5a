//! Maps the ends of Plivo's calls to ours.
//!
//! `HangupCauseCode` decides: Plivo's table at plivo.com/docs/voice/troubleshooting/hangup-causes. The normal codes only say
//! that a call ended; `HangupSource` says who ended it. For a code outside the table, `HangupCause` (a FreeSWITCH name)
//! decides, then `CallStatus`.
//!
//! | code | meaning |
//! |---|---|
//! | 4000 to 4030 | ended normally: by the person, by us, or by the carrier ([`who`]) |
//! | 1000, 9000, 9110 | canceled |
//! | 1010, 1020, 2030 to 2070, 3030, 3130, 3140, 5030 | refused: credit, limits, permissions, caller id |
//! | 2000, 2010, 2020, 3050, 3120 | unreachable |
//! | 3000, 6010 | not answered |
//! | 3010, 3100 | busy |
//! | 3020, 3040, 3110 | declined |
//! | 3070 to 3090, 5000 to 5020 | failed at the carrier |
//! | 6000 | duration limit |
//! | 6020 | no audio for a minute |
//! | 7011 to 7034, 8011 to 8014 | Plivo could not fetch or read our document |
//! | 9100 | a machine answered, and Plivo hung up |
use crate::carriers::report::{End, Side};
use crate::conversation::{CallFault, EndedReason, Outcome};

/// The details of a hangup callback; a field is empty where the callback lacks it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hangup<'a> {
    /// `HangupCauseCode`: `4000`.
    pub code: &'a str,
    /// `HangupCauseName`: `Normal Hangup`.
    pub name: &'a str,
    /// `HangupCause`: `NORMAL_CLEARING`.
    pub cause: &'a str,
    /// `HangupSource`: `Callee`.
    pub source: &'a str,
    /// `CallStatus`: `completed`.
    pub status: &'a str,
    /// Whether the person called us.
    pub inbound: bool,
}

/// The end of a call.
pub(super) fn end(hangup: &Hangup<'_>) -> End {
    let words = words(hangup);
    let by = match hangup.source {
        "Caller" => Some(Side::Caller),
        "Callee" | "Call recipient" => Some(Side::Callee),
        _ => None,
    };
    let end = End::of(reason(hangup), &words).ended_by(by);
    match hangup.code {
        MACHINE => End { outcome: Outcome::Voicemail, fault: CallFault::None, ..end },
        _ => end,
    }
}

const MACHINE: &str = "9100";

fn reason(hangup: &Hangup<'_>) -> EndedReason {
    let by_code = match hangup.code.parse().unwrap_or(0) {
        4000 | 4010 | 4020 | 4030 => return over(hangup),
        1000 | 9000 | 9110 => Some(EndedReason::Canceled),
        1010 | 1020 | 2030 | 2040 | 2050 | 2060 | 2070 | 3030 | 3130 | 3140 | 5030 => {
            Some(EndedReason::CarrierRefused)
        }
        2000 | 2010 | 2020 | 3050 | 3120 => Some(EndedReason::Unreachable),
        3000 | 6010 => Some(EndedReason::NoAnswer),
        3010 | 3100 => Some(EndedReason::Busy),
        3020 | 3040 | 3110 => Some(EndedReason::Declined),
        3070 | 3080 | 3090 | 5000 | 5010 | 5020 => Some(EndedReason::CarrierFailed),
        6000 => Some(EndedReason::DurationLimit),
        6020 => Some(EndedReason::MediaLost),
        7011..=7034 | 8011..=8014 => Some(EndedReason::Aborted),
        9100 => Some(EndedReason::AssistantEnded),
        _ => None,
    };
    by_code.or_else(|| by_cause(hangup)).or_else(|| by_status(hangup)).unwrap_or(EndedReason::CarrierFailed)
}

/// A normal end. For an unanswered call only the status has information.
fn over(hangup: &Hangup<'_>) -> EndedReason {
    match hangup.status {
        "completed" | "" => who(hangup),
        _ => by_status(hangup).unwrap_or_else(|| who(hangup)),
    }
}

fn by_cause(hangup: &Hangup<'_>) -> Option<EndedReason> {
    Some(match hangup.cause {
        "USER_BUSY" => EndedReason::Busy,
        "NO_ANSWER" | "NO_USER_RESPONSE" => EndedReason::NoAnswer,
        "CALL_REJECTED" => EndedReason::Declined,
        "ORIGINATOR_CANCEL" => EndedReason::Canceled,
        "UNALLOCATED_NUMBER" | "INVALID_NUMBER_FORMAT" | "NO_ROUTE_DESTINATION" => EndedReason::Unreachable,
        "NETWORK_OUT_OF_ORDER" | "NORMAL_TEMPORARY_FAILURE" => EndedReason::CarrierFailed,
        "NORMAL_CLEARING" => over(hangup),
        _ => return None,
    })
}

fn by_status(hangup: &Hangup<'_>) -> Option<EndedReason> {
    Some(match hangup.status {
        "completed" => who(hangup),
        "busy" => EndedReason::Busy,
        "no-answer" | "timeout" => EndedReason::NoAnswer,
        "rejected" => EndedReason::Declined,
        "cancel" | "canceled" | "cancelled" => EndedReason::Canceled,
        "failed" => EndedReason::CarrierFailed,
        _ => return None,
    })
}

/// The side that ended a connected call. The person is the caller of an incoming call and the callee of an outgoing
/// one; requests and documents are ours. A hang-up by a carrier comes from the person's side.
fn who(hangup: &Hangup<'_>) -> EndedReason {
    match (hangup.source, hangup.inbound) {
        ("Caller", false) | ("Callee" | "Call recipient", true) => EndedReason::AssistantEnded,
        ("API Request" | "Answer XML" | "Plivo", _) => EndedReason::AssistantEnded,
        ("Error", _) => EndedReason::CarrierFailed,
        _ => EndedReason::UserHungUp,
    }
}

/// Plivo's text: `Busy Line 3010`.
fn words(hangup: &Hangup<'_>) -> String {
    let name = [hangup.name, hangup.cause, hangup.status].into_iter().find(|text| !text.is_empty());
    [name.unwrap_or("unknown"), hangup.code].join(" ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str, status: &str, source: &str, inbound: bool) -> End {
        end(&Hangup { code, status, source, inbound, name: "Name", cause: "" })
    }

    #[test]
    fn maps_every_code_of_the_table() {
        use CallFault as F;
        use EndedReason as R;
        use Outcome as O;
        let rows: &[(&[u32], O, R, F)] = &[
            (&[1000, 9000, 9110], O::Canceled, R::Canceled, F::None),
            (
                &[1010, 1020, 2030, 2040, 2050, 2060, 2070, 3030, 3130, 3140, 5030],
                O::Failed,
                R::CarrierRefused,
                F::Operator,
            ),
            (&[2000, 2010, 2020, 3050, 3120], O::Failed, R::Unreachable, F::Caller),
            (&[3000, 6010], O::NoAnswer, R::NoAnswer, F::None),
            (&[3010, 3100], O::Busy, R::Busy, F::None),
            (&[3020, 3040, 3110], O::Busy, R::Declined, F::None),
            (&[3070, 3080, 3090, 5000, 5010, 5020], O::Failed, R::CarrierFailed, F::Carrier),
            (&[6000], O::Completed, R::DurationLimit, F::Operator),
            (&[6020], O::Failed, R::MediaLost, F::Carrier),
            (
                &[7011, 7012, 7013, 7014, 7022, 7023, 7024, 7032, 7033, 7034, 8011, 8012, 8013, 8014],
                O::Failed,
                R::Aborted,
                F::Platform,
            ),
            (&[9100], O::Voicemail, R::AssistantEnded, F::None),
        ];
        for (codes, outcome, reason, fault) in rows {
            for code in *codes {
                // Regardless of the status: Plivo reports unanswered calls as completed, too.
                for status in ["completed", "failed", ""] {
                    let end = of(&code.to_string(), status, "Plivo", false);
                    assert_eq!((end.outcome, end.reason, end.fault), (*outcome, *reason, *fault), "{code}");
                    assert_eq!(end.cause, format!("Name {code}"));
                }
            }
        }
    }

    #[test]
    fn who_hung_up_depends_on_the_direction() {
        for code in ["4000", "4010", ""] {
            let rows = [
                ("Caller", true, EndedReason::UserHungUp),
                ("Caller", false, EndedReason::AssistantEnded),
                ("Callee", true, EndedReason::AssistantEnded),
                ("Callee", false, EndedReason::UserHungUp),
                ("Call recipient", false, EndedReason::UserHungUp),
                ("Carrier", false, EndedReason::UserHungUp),
                ("API Request", false, EndedReason::AssistantEnded),
                ("Answer XML", true, EndedReason::AssistantEnded),
                ("Plivo", true, EndedReason::AssistantEnded),
                ("Error", true, EndedReason::CarrierFailed),
                ("Unknown", true, EndedReason::UserHungUp),
            ];
            for (source, inbound, reason) in rows {
                assert_eq!(
                    of(code, "completed", source, inbound).reason,
                    reason,
                    "{code} {source} {inbound}"
                );
            }
        }
    }

    #[test]
    fn maps_the_side() {
        let by = |source| of("4000", "completed", source, true).by;
        assert_eq!(by("Caller"), Some(Side::Caller));
        assert_eq!((by("Callee"), by("Call recipient")), (Some(Side::Callee), Some(Side::Callee)));
        for nobody in ["Carrier", "API Request", "Answer XML", "Plivo", "Error", "Unknown", ""] {
            assert_eq!(by(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn without_a_known_code_cause_and_status_decide() {
        let status = |status| of("1234", status, "Carrier", false).reason;
        assert_eq!(status("busy"), EndedReason::Busy);
        assert_eq!(status("no-answer"), EndedReason::NoAnswer);
        assert_eq!(status("timeout"), EndedReason::NoAnswer);
        assert_eq!(status("cancel"), EndedReason::Canceled);
        assert_eq!(status("failed"), EndedReason::CarrierFailed);
        assert_eq!(status("completed"), EndedReason::UserHungUp);
        assert_eq!(status("who knows"), EndedReason::CarrierFailed);
        let cause = |cause| end(&Hangup { cause, status: "completed", ..Hangup::default() });
        assert_eq!(cause("USER_BUSY").reason, EndedReason::Busy);
        assert_eq!(cause("UNALLOCATED_NUMBER").reason, EndedReason::Unreachable);
        assert_eq!(cause("NORMAL_CLEARING").reason, EndedReason::UserHungUp);
        assert_eq!(cause("NORMAL_CLEARING").cause, "NORMAL_CLEARING");
        // Ended before the call was answered.
        assert_eq!(of("4000", "cancel", "Caller", true).reason, EndedReason::Canceled);
        assert_eq!(of("4000", "no-answer", "Plivo", false).reason, EndedReason::NoAnswer);
        assert_eq!(end(&Hangup::default()).cause, "unknown");
    }
}
