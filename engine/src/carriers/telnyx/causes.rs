//! Maps Telnyx's hang-up causes and errors to ours.
use serde_json::Value;

use crate::carriers::order::{Rejection, RejectionCause};
use crate::carriers::report::{End, Side};
use crate::carriers::shared;
use crate::conversation::EndedReason;
use crate::ports::HttpReply;

/// A call id is `v3:` and some fifty characters; a longer one is invalid.
pub(super) const ID_BYTES_MAX: usize = 256;

/// Maps the end of a call. `cause` is one of nine words, `source` is the side that ended the call (`caller`, `callee`,
/// `unknown`), `sip` is a SIP status or `unspecified`.
///
/// | `hangup_cause` | and | reason (determines outcome and fault) |
/// | --- | --- | --- |
/// | `normal_clearing` | a side ended it, or SIP reports no failure | user hung up |
/// | `normal_clearing` | unknown side, SIP has a reason | by SIP |
/// | `time_limit` | | duration limit |
/// | `user_busy` | | busy |
/// | `no_answer`, `timeout` | | no answer |
/// | `originator_cancel` | | canceled |
/// | `not_found` | | unreachable |
/// | `call_rejected` | the callee, or SIP has no failure with more information | declined, or by SIP |
/// | `call_rejected` | 401, 402, 403 or 407, not by the callee: a D-code of Telnyx | carrier refused |
/// | `unspecified`, others | | by SIP |
///
/// By SIP: 200 user hung up; 486, 600 busy; 603, 607, 608 declined; 408, 480 no answer; 487 canceled; 404, 410, 484,
/// 485, 604 unreachable; 401, 402, 403, 407 carrier refused; all else carrier failed.
///
/// Sources: the SDK's `types/call_hangup.py`, and Telnyx's "SIP Response Codes". Which side is the `caller` depends on the
/// call's direction, which this event lacks: the end names the side, and the leg knows the direction. For a call that we hung
/// up, the conversation's reason takes precedence.
pub(super) fn end(cause: &str, source: &str, sip: &str) -> End {
    let cause_and_sip = match sip {
        "" | "unspecified" => cause.to_owned(),
        sip => format!("{cause} {sip}"),
    };
    let by = match source {
        "caller" => Some(Side::Caller),
        "callee" => Some(Side::Callee),
        _ => None,
    };
    End::of(reason(cause, source, sip), &cause_and_sip).ended_by(by)
}

fn reason(cause: &str, source: &str, sip: &str) -> EndedReason {
    let known = matches!(source, "caller" | "callee");
    match cause {
        "normal_clearing" if known || matches!(sip, "" | "unspecified") => EndedReason::UserHungUp,
        "time_limit" => EndedReason::DurationLimit,
        "user_busy" => EndedReason::Busy,
        "no_answer" | "timeout" => EndedReason::NoAnswer,
        "originator_cancel" => EndedReason::Canceled,
        "not_found" => EndedReason::Unreachable,
        "call_rejected" => match by_sip(sip) {
            EndedReason::CarrierRefused if source == "callee" => EndedReason::Declined,
            reason @ (EndedReason::CarrierRefused | EndedReason::Busy | EndedReason::Unreachable) => reason,
            _ => EndedReason::Declined,
        },
        _ => by_sip(sip),
    }
}

fn by_sip(sip: &str) -> EndedReason {
    match sip {
        "200" => EndedReason::UserHungUp,
        "486" | "600" => EndedReason::Busy,
        "603" | "607" | "608" => EndedReason::Declined,
        "408" | "480" => EndedReason::NoAnswer,
        "487" => EndedReason::Canceled,
        "404" | "410" | "484" | "485" | "604" => EndedReason::Unreachable,
        "401" | "402" | "403" | "407" => EndedReason::CarrierRefused,
        _ => EndedReason::CarrierFailed,
    }
}

/// The call id in a successful response: `{"data": {"call_control_id": …}}`.
pub(super) fn call_control_id(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    id(body.pointer("/data/call_control_id")?)
}

/// A valid call id.
pub(super) fn id(value: &Value) -> Option<String> {
    value.as_str().filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX).map(str::to_owned)
}

/// Reads an error response: `{"errors": [{"code", "title", "detail", "source": {"pointer"}}]}`, of which the first counts.
///
/// The first matching row determines who can resolve it:
///
/// | error | who |
/// | --- | --- |
/// | a SIP code in the message: D1–D5, D22, D56 (channels), P05, P15 (calls per second), D9 | retry later |
/// | D11, D14, D40, D41, D50, D53, D58, D59: the called number | the request |
/// | other D-codes: profile, balance, country, caller id, account level | the account |
/// | HTTP 429 | retry later |
/// | 10015 about `/connection_id`: the operator's setting | the account |
/// | 10009, 10010 | the account |
/// | 10002, 10015, 10016 | the request |
/// | other | by HTTP status |
///
/// 10011 is "too many requests" with 429, and is also used with 422 for conflicting fields.
/// Sources: "API error codes" and the responses of "Dial" in the API reference; "SIP Response Codes".
pub(super) fn rejection(reply: &HttpReply) -> Rejection {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let error = body.pointer("/errors/0").cloned().unwrap_or_default();
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let code = match error.get("code") {
        Some(Value::String(code)) if code.len() <= 32 => Some(code.clone()),
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => None,
    };
    let message = match (text("title"), text("detail")) {
        ("", "") => "no reason given".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (title, detail) => format!("{title}: {detail}"),
    };
    let mut rejection = shared::rejection(reply.status, code, &message);
    let pointer = error.pointer("/source/pointer").and_then(Value::as_str).unwrap_or_default();
    rejection.cause = match (sip_code(&message), rejection.code.as_str()) {
        (Some(cause), _) => cause,
        _ if reply.status == 429 => RejectionCause::Busy,
        (None, "10015") if pointer == "/connection_id" => RejectionCause::Account,
        (None, _) if pointer == "/from" && reply.status < 500 => RejectionCause::Account,
        (None, "10009" | "10010") => RejectionCause::Account,
        (None, "10002" | "10015" | "10016") if reply.status < 500 => RejectionCause::Request,
        _ => rejection.cause,
    };
    rejection
}

/// The cause of the last Telnyx SIP code in a text, such as `Unverified origination number D51`.
fn sip_code(text: &str) -> Option<RejectionCause> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_code = |word: &&str| {
        let digits = word.strip_prefix(['D', 'P']).unwrap_or_default();
        matches!(digits.len(), 1..=2) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let code = words.rfind(is_code)?;
    Some(match code {
        "D1" | "D2" | "D3" | "D4" | "D5" | "D9" | "D22" | "D56" | "P05" | "P15" => RejectionCause::Busy,
        "D11" | "D14" | "D40" | "D41" | "D50" | "D53" | "D58" | "D59" => RejectionCause::Request,
        _ => RejectionCause::Account,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::conversation::{CallFault, Outcome};

    #[test]
    fn maps_every_end() {
        use EndedReason::*;
        let table = [
            ("normal_clearing", "callee", "200", UserHungUp),
            ("normal_clearing", "caller", "503", UserHungUp),
            ("normal_clearing", "unknown", "unspecified", UserHungUp),
            ("normal_clearing", "", "", UserHungUp),
            ("normal_clearing", "unknown", "200", UserHungUp),
            ("normal_clearing", "unknown", "404", Unreachable),
            ("time_limit", "unknown", "unspecified", DurationLimit),
            ("user_busy", "unknown", "486", Busy),
            ("no_answer", "callee", "480", NoAnswer),
            ("timeout", "caller", "487", NoAnswer),
            ("originator_cancel", "caller", "487", Canceled),
            ("not_found", "callee", "404", Unreachable),
            ("call_rejected", "callee", "603", Declined),
            ("call_rejected", "callee", "403", Declined),
            ("call_rejected", "unknown", "403", CarrierRefused),
            ("call_rejected", "callee", "486", Busy),
            ("call_rejected", "unknown", "404", Unreachable),
            ("call_rejected", "callee", "unspecified", Declined),
            ("call_rejected", "unknown", "503", Declined),
            ("unspecified", "unknown", "503", CarrierFailed),
            ("unspecified", "unknown", "unspecified", CarrierFailed),
            ("unspecified", "unknown", "403", CarrierRefused),
            ("unspecified", "unknown", "480", NoAnswer),
            ("unspecified", "unknown", "487", Canceled),
            ("unspecified", "callee", "607", Declined),
            ("a_new_word", "unknown", "600", Busy),
        ];
        for (cause, source, sip, reason) in table {
            let end = end(cause, source, sip);
            assert_eq!(end.reason, reason, "{cause} {source} {sip}");
            assert_eq!((end.outcome, end.fault), (reason.outcome(), reason.fault()));
        }
        let busy = end("user_busy", "unknown", "486");
        assert_eq!(
            (busy.outcome, busy.fault, busy.cause.as_str()),
            (Outcome::Busy, CallFault::None, "user_busy 486")
        );
        assert_eq!(end("timeout", "", "unspecified").cause, "timeout");
        let by = |source| end("normal_clearing", source, "200").by;
        assert_eq!((by("caller"), by("callee")), (Some(Side::Caller), Some(Side::Callee)));
        assert_eq!((by("unknown"), by("")), (None, None));
    }

    fn no(status: u16, body: &Value) -> Rejection {
        let body = Bytes::from(body.to_string());
        rejection(&HttpReply { status, headers: Vec::new(), body })
    }

    #[test]
    fn rejections_have_a_cause() {
        use RejectionCause::*;
        let table = [
            (401, "10009", "Authentication failed", "", "", Account),
            (403, "10010", "Authorization failed", "Unverified origination number D51", "", Account),
            (
                403,
                "10010",
                "Authorization failed",
                "Dialed number is not included in whitelisted countries D13",
                "",
                Account,
            ),
            (403, "10010", "Authorization failed", "User channel limit exceeded D1", "", Busy),
            (403, "10010", "Authorization failed", "CPS limit reached (P05).", "", Busy),
            (422, "10015", "Bad Request", "Dialed number is not valid D14", "/to", Request),
            (
                422,
                "10015",
                "Invalid value for connection_id (Call Control App ID)",
                "It does not exist.",
                "/connection_id",
                Account,
            ),
            (422, "10015", "Bad Request", "The request failed because it was not well-formed.", "", Request),
            (
                422,
                "10016",
                "Phone number must be in +E164 format",
                "The 'to' parameter must be in E164 format.",
                "/to",
                Request,
            ),
            (400, "10002", "Invalid phone number", "", "/to", Request),
            (422, "10016", "Phone number must be in +E164 format", "", "/from", Account),
            (429, "10011", "Too many requests", "You have exceeded the limit.", "", Busy),
            (422, "10011", "Media encryption not supported for PSTN calls", "", "/media_encryption", Request),
            (402, "20100", "Insufficient funds", "", "", Account),
            (500, "10007", "Unexpected error", "An unexpected error occured.", "", Carrier),
        ];
        for (status, code, title, detail, pointer, cause) in table {
            let error =
                json!({"code": code, "title": title, "detail": detail, "source": {"pointer": pointer}});
            let no = no(status, &json!({"errors": [error]}));
            assert_eq!((no.code.as_str(), no.cause), (code, cause), "{title} {detail}");
            assert!(no.message.starts_with(title), "{}", no.message);
        }
    }

    #[test]
    fn without_details_the_status_decides() {
        for body in [
            json!(null),
            json!([]),
            json!({"errors": []}),
            json!({"errors": {"0": 1}}),
            json!({"errors": [7]}),
        ] {
            let no = no(403, &body);
            assert_eq!((no.code.as_str(), no.cause), ("403", RejectionCause::Account), "{body}");
            assert_eq!(no.message, "no reason given");
        }
        assert_eq!(no(422, &json!({"errors": [{"code": 10016, "title": "x"}]})).code, "10016");
        let long = json!({"errors": [{"code": "1".repeat(99), "title": "x".repeat(9_000)}]});
        assert_eq!(no(400, &long).code, "400");
        assert!(no(400, &long).message.len() <= crate::base::limits::CARRIER_MESSAGE_BYTES_MAX);
    }
}
