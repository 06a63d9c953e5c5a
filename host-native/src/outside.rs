//! What happens outside: every request and WebSocket to others is counted, and one line of the log says what failed.
use std::sync::Arc;
use std::time::Instant;

use reqwest::Url;
use sidetone_engine::ports::{ExchangeFailure, HttpError, Party, PartyKind};

use crate::log;
use crate::metrics::{Metrics, class_of};

/// Characters of an error in the log.
const DETAIL_CHARS_MAX: usize = 300;

/// The result of what went well, and of a WebSocket or a response that nobody here wanted to the end.
const OK: &str = "ok";
/// The result of what was given up here before an answer came.
const DROPPED: &str = "dropped";

/// A request or a WebSocket that is under way. It is counted once: by the first result, or when it is dropped.
pub struct Exchange {
    metrics: Arc<Metrics>,
    party: Party,
    method: &'static str,
    server: String,
    /// Statuses beyond 2xx that are no failure.
    expected: &'static [u16],
    began: Instant,
    is_answered: bool,
    is_over: bool,
}

impl Exchange {
    /// Begins an exchange with the server of `url`.
    pub fn begin(metrics: &Arc<Metrics>, party: &Party, method: &'static str, url: &str) -> Self {
        Self {
            metrics: metrics.clone(),
            party: party.clone(),
            method,
            server: server_of(url),
            expected: &[],
            began: Instant::now(),
            is_answered: false,
            is_over: false,
        }
    }

    /// The same, with these statuses beyond 2xx that are no failure.
    #[must_use]
    pub fn expecting(mut self, statuses: &'static [u16]) -> Self {
        self.expected = statuses;
        self
    }

    /// The head of the response has arrived. What follows may still fail.
    pub fn answered(&mut self, status: u16) {
        self.is_answered = true;
        self.metrics.answered(&self.party, self.began.elapsed());
        if !matches!(status, 101 | 200..=299) && !self.expected.contains(&status) {
            self.over(class_of(status), Some(status), None);
        }
    }

    /// There is no response, or no complete one.
    pub fn failed(&mut self, error: &HttpError) {
        match error {
            // Of a webhook's response, the status counts, however its body ends.
            _ if self.is_answered && self.party.kind == PartyKind::Webhook => {}
            HttpError::Timeout => self.over("timeout", None, None),
            HttpError::Refused => self.over("refused", None, Some("the address is not public")),
            // Only the status of these counts.
            HttpError::TooLarge(_)
                if matches!(self.party.kind, PartyKind::Webhook | PartyKind::Carrier | PartyKind::Mail) => {}
            HttpError::TooLarge(reply) => self.over("too_large", Some(reply.status), None),
            HttpError::Failed(detail) => self.over("failed", None, Some(detail)),
        }
    }

    /// The WebSocket was not opened.
    pub fn not_opened(&mut self, failure: &ExchangeFailure) {
        match failure {
            ExchangeFailure::Timeout => self.over("timeout", None, None),
            ExchangeFailure::Rejected { status, .. } => self.over(class_of(*status), Some(*status), None),
            ExchangeFailure::TooLarge => self.over("too_large", None, None),
            ExchangeFailure::Broken(detail) => self.over("failed", None, Some(detail)),
        }
    }

    /// The other end has closed the WebSocket, with this code. Without a fault it says 1000, 1001 or nothing (1005).
    pub fn closed(&mut self, code: u16) {
        match code {
            1000 | 1001 | 1005 => self.over(OK, None, None),
            code => self.over("closed", None, Some(&format!("close code {code}"))),
        }
    }

    /// A mail was not accepted.
    pub fn not_sent(&mut self, detail: &str) {
        self.over("failed", None, Some(detail));
    }

    fn over(&mut self, result: &'static str, status: Option<u16>, detail: Option<&str>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.metrics.exchanged(&self.party, result);
        if matches!(result, OK | DROPPED) {
            return;
        }
        let Party { kind, provider, workspace } = &self.party;
        let duration_ms = log::duration_ms(self.began.elapsed());
        let detail = detail.map(one_line);
        tracing::warn!(
            target: "sidetone::outside",
            party = kind.as_str(),
            provider = Some(&**provider).filter(|provider| !provider.is_empty()),
            workspace = workspace.as_deref(),
            method = self.method,
            server = &*self.server,
            result,
            status,
            duration_ms,
            detail,
            "failed outside"
        );
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.over(if self.is_answered { OK } else { DROPPED }, None, None);
    }
}

/// Host and port: paths, queries and user names may be secret.
fn server_of(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return String::new() };
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(DETAIL_CHARS_MAX).collect()
}

/// An error of the HTTP client with its causes, and without the address that it was about.
pub fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_the_server_is_logged() {
        assert_eq!(server_of("https://user:key@hooks.example/T0/secret?token=1"), "hooks.example");
        assert_eq!(server_of("http://[::1]:8080/a"), "[::1]:8080");
        assert_eq!(server_of("wss://voice.example/v1?key=1"), "voice.example");
        assert_eq!(server_of("nothing"), "");
    }

    #[test]
    fn an_exchange_is_counted_once() {
        let metrics = Arc::new(Metrics::default());
        let begin = || Exchange::begin(&metrics, &Party::model("openai"), "POST", "https://a.example/");
        drop(begin());
        begin().answered(200);
        let mut twice = begin();
        twice.answered(503);
        twice.failed(&HttpError::Timeout);
        drop(twice);
        begin().failed(&HttpError::Timeout);
        begin().closed(1011);
        let counts = ["2xx", "5xx", OK, DROPPED, "timeout", "closed"]
            .map(|result| metrics.count(&Party::model("openai"), result));
        assert_eq!(counts, [0, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn a_status_that_is_expected_is_no_failure() {
        let metrics = Arc::new(Metrics::default());
        let party = Party::of_operator(PartyKind::Carrier, "telnyx");
        for status in [200, 404, 422, 401, 429, 503] {
            Exchange::begin(&metrics, &party, "POST", "https://a.example/")
                .expecting(&[404, 422])
                .answered(status);
        }
        assert_eq!([OK, "4xx", "5xx"].map(|result| metrics.count(&party, result)), [3, 2, 1]);
    }

    #[test]
    fn of_a_webhooks_response_the_status_counts() {
        let metrics = Arc::new(Metrics::default());
        let party = Party::of_operator(PartyKind::Webhook, "");
        let begin = || Exchange::begin(&metrics, &party, "POST", "https://a.example/");
        let mut stalled = begin();
        stalled.answered(200);
        stalled.failed(&HttpError::Timeout);
        drop(stalled);
        begin().failed(&HttpError::Timeout);
        assert_eq!([OK, "timeout"].map(|result| metrics.count(&party, result)), [1, 1]);
    }
}
