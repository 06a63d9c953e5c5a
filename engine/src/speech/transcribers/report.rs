//! What went wrong at a provider, as the operator reads it: whose fault it is, and whether trying again can help. Keys, host
//! names and addresses are left out.
use serde_json::Value;

use super::{TranscriberKind, TranscriberSettings};
use crate::base::provider_error::{ErrorClass, ProviderError, shown};
use crate::base::text::hide_words;
use crate::ports::TOO_LARGE_CODE;
use crate::speech::exchange::{ExchangeFailure, SpeechFailure, SpeechFault};

/// Reports the failures of one provider.
pub(super) struct Reporter {
    label: &'static str,
    /// Texts that no message contains: the key and the host. Empty ones hide nothing.
    hidden: [String; 2],
}

/// Words in errors, and in the reasons of closed connections, after which the operator must act.
const ACCOUNT_PROBLEMS: [&str; 6] = [
    "account_deactivated",
    "billing_hard_limit_reached",
    "invalid_auth",
    "insufficient_permissions",
    "payment_required",
    "credits",
];

impl Reporter {
    pub(super) fn new(kind: TranscriberKind, settings: &TranscriberSettings) -> Self {
        Self::labelled(kind.label(), settings)
    }

    /// With another name in messages.
    pub(super) fn labelled(label: &'static str, settings: &TranscriberSettings) -> Self {
        let url = url::Url::parse(&settings.base_url).ok();
        let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default().to_owned();
        Self { label, hidden: [settings.api_key.reveal().to_owned(), host] }
    }

    /// The provider's own words.
    fn said(&self, text: &str) -> String {
        let [key, host] = &self.hidden;
        shown(&hide_words(text, &[key, host], "…"))
    }

    fn failure(&self, what: &str, said: &str, fault: SpeechFault, is_temporary: bool) -> SpeechFailure {
        let said = self.said(said);
        let colon = if said.is_empty() { "" } else { ": " };
        SpeechFailure { message: format!("{} {what}{colon}{said}", self.label), fault, is_temporary }
    }

    /// The provider is at fault, and may be well again soon.
    pub(super) fn disturbed(&self, what: &str, said: &str) -> SpeechFailure {
        self.failure(what, said, SpeechFault::Provider, true)
    }

    /// The operator has to correct something.
    pub(super) fn misconfigured(&self, what: &str, said: &str) -> SpeechFailure {
        self.failure(what, said, SpeechFault::Operator, false)
    }

    /// An exchange that came to nothing.
    pub(super) fn exchange(&self, failure: &ExchangeFailure) -> SpeechFailure {
        match failure {
            ExchangeFailure::Timeout => self.disturbed("did not answer in time", ""),
            ExchangeFailure::Rejected { status, body } => self.status(*status, body.as_bytes()),
            ExchangeFailure::TooLarge => self.disturbed("sent too much", ""),
            ExchangeFailure::Broken(why) => self.disturbed("cannot be reached", why),
        }
    }

    /// A response with this status that is not what was asked for.
    pub(super) fn status(&self, status: u16, body: &[u8]) -> SpeechFailure {
        if status < 400 {
            let what =
                format!("answered with status {status} and not as this protocol does; check the base URL");
            return self.disturbed(&what, "");
        }
        self.error(&ProviderError::read_body(body, status))
    }

    /// An error in a message.
    pub(super) fn message(&self, error: &Value) -> SpeechFailure {
        self.error(&ProviderError::read(error, None))
    }

    /// The connection was closed by the server.
    pub(super) fn closed(&self, code: u16, reason: &str) -> SpeechFailure {
        // Codes from 3000 stand for HTTP's; below, only the reason may say more.
        let status = match code {
            3000 | 4001 | 4401 => Some(401),
            3003 | 4003 | 4403 => Some(403),
            4004 | 4404 => Some(404),
            4429 => Some(429),
            _ => None,
        };
        let error = ProviderError {
            status,
            kind: reason.to_ascii_lowercase(),
            message: reason.to_owned(),
            ..ProviderError::default()
        };
        let failure = self.error(&error);
        if failure.is_temporary {
            let what = match code {
                TOO_LARGE_CODE => format!("sent or got a message that was too large (code {code})"),
                _ => format!("closed the connection (code {code})"),
            };
            return self.disturbed(&what, reason);
        }
        failure
    }

    fn error(&self, error: &ProviderError) -> SpeechFailure {
        let said = error.message.as_str();
        let kind = error.kind.to_ascii_lowercase();
        let code = error.status.map(|status| format!(" ({status})")).unwrap_or_default();
        if kind.contains("session_expired") {
            return self.disturbed("ended the session", said);
        }
        if error.is_unknown_model() {
            return self.misconfigured(&format!("does not know the model or the address{code}"), said);
        }
        let needs_operator = ACCOUNT_PROBLEMS.iter().any(|word| kind.contains(word));
        match error.class() {
            ErrorClass::Credentials => self.misconfigured(&format!("rejected the API key{code}"), said),
            ErrorClass::Quota => {
                self.misconfigured(&format!("has no credit left for this account{code}"), said)
            }
            _ if needs_operator => self.misconfigured(&format!("does not serve this account{code}"), said),
            ErrorClass::Request => self.misconfigured(&format!("rejected the request{code}"), said),
            ErrorClass::RateLimit => self.disturbed(&format!("has too many requests at present{code}"), said),
            ErrorClass::Timeout => self.disturbed(&format!("took too long{code}"), said),
            ErrorClass::Unavailable => self.disturbed(&format!("failed{code}"), said),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::setting::Secret;
    use crate::ports::Party;
    use serde_json::json;

    fn reporter() -> Reporter {
        let settings = TranscriberSettings {
            party: Party::speech("test"),
            base_url: "https://stt.customer.example/v1".into(),
            api_key: Secret::new("dg-1234"),
            model: "m".into(),
            language: None,
            keyterms: vec![],
            turn_ends_ms: 3_000,
        };
        Reporter::new(TranscriberKind::Deepgram, &settings)
    }

    #[test]
    fn whose_fault_it_is() {
        let reporter = reporter();
        let rejected = |status, body: &str| {
            reporter.exchange(&ExchangeFailure::Rejected { status, body: body.to_owned() })
        };
        let invalid = r#"{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials.","request_id":"x"}"#;
        for (failure, fault, is_temporary, message) in [
            (rejected(401, invalid), SpeechFault::Operator, false, "Deepgram rejected the API key (401): Invalid credentials."),
            (rejected(403, ""), SpeechFault::Operator, false, "Deepgram rejected the API key (403)"),
            (rejected(402, ""), SpeechFault::Operator, false, "Deepgram has no credit left for this account (402)"),
            (rejected(404, "{}"), SpeechFault::Operator, false, "Deepgram does not know the model or the address (404)"),
            (
                rejected(400, r#"{"err_msg":"Bad Request: no such model/language combination"}"#),
                SpeechFault::Operator,
                false,
                "Deepgram does not know the model or the address (400): Bad Request: no such model/language combination",
            ),
            (rejected(429, ""), SpeechFault::Provider, true, "Deepgram has too many requests at present (429)"),
            (rejected(503, "<html>"), SpeechFault::Provider, true, "Deepgram failed (503)"),
            (
                rejected(200, "<html>"),
                SpeechFault::Provider,
                true,
                "Deepgram answered with status 200 and not as this protocol does; check the base URL",
            ),
            (
                reporter.exchange(&ExchangeFailure::Timeout),
                SpeechFault::Provider,
                true,
                "Deepgram did not answer in time",
            ),
            (
                reporter.closed(1011, "NET-0001"),
                SpeechFault::Provider,
                true,
                "Deepgram closed the connection (code 1011): NET-0001",
            ),
            (reporter.closed(1008, "DATA-0000"), SpeechFault::Provider, true, "Deepgram closed the connection (code 1008): DATA-0000"),
            (
                reporter.closed(3000, "invalid_request_error.invalid_api_key"),
                SpeechFault::Operator,
                false,
                "Deepgram rejected the API key (401): invalid_request_error.invalid_api_key",
            ),
            (
                reporter.message(&json!({"type": "invalid_request_error", "code": "session_expired", "message": "60 minutes"})),
                SpeechFault::Provider,
                true,
                "Deepgram ended the session: 60 minutes",
            ),
            (
                reporter.message(&json!({"type": "insufficient_quota", "message": "You exceeded your quota"})),
                SpeechFault::Operator,
                false,
                "Deepgram has no credit left for this account: You exceeded your quota",
            ),
        ] {
            assert_eq!(failure, SpeechFailure { message: message.to_owned(), fault, is_temporary });
        }
    }

    #[test]
    fn no_key_and_no_host_is_told() {
        let reporter = reporter();
        let said = "cannot resolve STT.customer.example (10.0.0.7:443) with Token dg-1234 or sk-abc";
        let failure = reporter.exchange(&ExchangeFailure::Broken(said.into()));
        assert_eq!(failure.message, "Deepgram cannot be reached: cannot resolve … … with Token … or …");
        assert!(reporter.closed(1011, &"x ".repeat(9_000)).message.len() < 400);
    }
}
