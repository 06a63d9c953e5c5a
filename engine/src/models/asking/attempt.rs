//! One request to a provider and the interpretation of its outcome.
use bytes::Bytes;

use super::outcome::FailureCode;
use super::provider::Target;
use super::written::Written;
use crate::base::limits::{MODEL_ERROR_BYTES_MAX, MODEL_RESPONSE_BYTES_MAX};
use crate::base::provider_error::{ErrorClass, ProviderError};
use crate::conversation::CallFault;
use crate::models::openai::completion::{
    Completion, CompletionError, CompletionReader, Progress, TokenCount,
};
use crate::models::openai::request::Options;
use crate::ports::{Egress, HttpError, HttpRequest, HttpStream, Ports};

/// The outcome of one request.
pub struct Attempt {
    /// The completion, or why there is none.
    pub outcome: Result<Completion, AttemptError>,
    /// The token count that the provider reported.
    pub tokens: Option<TokenCount>,
    /// An estimated token count when none was reported but the model had started to answer, which is billed.
    pub estimate: Option<TokenCount>,
}

/// Why a request failed.
pub struct AttemptError {
    pub code: FailureCode,
    /// The party that can resolve it.
    pub fault: CallFault,
    /// What happened; a message starts with "provider/name ".
    pub what: String,
    /// How to continue.
    pub next: Next,
}

/// How to continue after a failed request.
pub enum Next {
    /// Retry, after the pause in ms that the provider requested, if any.
    Again(Option<u64>),
    /// Retry with these options: the provider rejected the others.
    Without(Options),
    /// A retry of the same request would fail again.
    GiveUp,
}

impl AttemptError {
    /// A failure on the provider's side.
    pub fn new(code: FailureCode, what: impl Into<String>, next: Next) -> Self {
        Self { code, fault: CallFault::Provider, what: what.into(), next }
    }

    /// A failure that only the operator can fix.
    fn of_operator(code: FailureCode, what: impl Into<String>) -> Self {
        Self { fault: CallFault::Operator, ..Self::new(code, what, Next::GiveUp) }
    }
}

/// Sends one request and reads the response. What the model writes goes to `written` at once.
pub async fn attempt(
    ports: &Ports,
    target: &Target,
    body: Vec<u8>,
    options: Options,
    deadline_ms: u64,
    written: Option<&Written>,
) -> Attempt {
    let body = Bytes::from(body);
    let request_bytes = body.len();
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("accept", "text/event-stream, application/json".to_owned()),
        ("user-agent", concat!("Sidetone/", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    if let Some(key) = &target.endpoint.api_key {
        headers.push(("authorization", format!("Bearer {}", key.reveal())));
    }
    let outgoing = HttpRequest {
        method: "POST",
        url: format!("{}/chat/completions", target.endpoint.base_url),
        headers,
        body,
        deadline_ms,
        response_bytes_max: MODEL_RESPONSE_BYTES_MAX,
        egress: Egress::Operator,
        party: target.party.clone(),
        expected: &[],
    };
    let mut stream = match ports.http.open(outgoing).await {
        Ok(stream) => stream,
        Err(error) => return Attempt { outcome: Err(exchange_failed(&error)), tokens: None, estimate: None },
    };
    if stream.status != 200 {
        let error = refused(ports, &mut stream, options).await;
        return Attempt { outcome: Err(error), tokens: None, estimate: None };
    }
    let mut reader = CompletionReader::default();
    let outcome = read(&mut stream, &mut reader, written).await;
    let tokens = reader.usage();
    let began = !reader.is_only_an_error();
    // Some servers answer 200 and then reject the request; a rejection after a beginning is about something else.
    let outcome = outcome.map_err(|broken| match broken {
        Broken::Exchange(error) => exchange_failed(&error),
        Broken::Completion(error) => unusable(error, (!began).then_some(options)),
    });
    let estimate = (tokens.is_none() && began).then(|| TokenCount::estimate(request_bytes, reader.bytes()));
    Attempt { outcome, tokens, estimate }
}

/// Why a response with the status 200 has no completion.
enum Broken {
    Exchange(HttpError),
    Completion(CompletionError),
}

async fn read(
    stream: &mut HttpStream,
    reader: &mut CompletionReader,
    written: Option<&Written>,
) -> Result<Completion, Broken> {
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(bytes) => match reader.push(&bytes) {
                Ok(Progress::More) => {
                    if let Some(written) = written {
                        written.update(reader.text());
                    }
                }
                Ok(Progress::Complete) => break,
                Err(error) => return Err(Broken::Completion(error)),
            },
            Err(HttpError::Failed(_)) => return Err(Broken::Completion(CompletionError::Truncated)),
            Err(error) => return Err(Broken::Exchange(error)),
        }
    }
    reader.finish().map_err(Broken::Completion)
}

/// Maps a failed HTTP exchange.
fn exchange_failed(error: &HttpError) -> AttemptError {
    match error {
        HttpError::Timeout => {
            AttemptError::new(FailureCode::Timeout, "did not answer in time", Next::Again(None))
        }
        // A retry changes neither of these.
        HttpError::TooLarge(_) => unusable(CompletionError::TooLarge, None),
        HttpError::Refused => {
            AttemptError::of_operator(FailureCode::Unavailable, "has an address that is not allowed")
        }
        // The detail may contain host names of the operator's network.
        HttpError::Failed(_) => {
            AttemptError::new(FailureCode::Unavailable, "could not be reached", Next::Again(None))
        }
    }
}

/// `options`: those that may be left out when the error names one.
fn unusable(error: CompletionError, options: Option<Options>) -> AttemptError {
    match error {
        CompletionError::Reported(error) => reported(&error, None, options),
        CompletionError::Truncated => AttemptError::new(
            FailureCode::Unavailable,
            "closed the connection before its answer was complete",
            Next::Again(None),
        ),
        CompletionError::Garbled(what) => {
            let what = format!("sent an invalid answer: {what}");
            AttemptError::new(FailureCode::Garbled, what, Next::Again(None))
        }
        CompletionError::TooLarge => {
            AttemptError::new(FailureCode::Garbled, "exceeded the size limit for an answer", Next::GiveUp)
        }
    }
}

/// Reads a response with a status other than 200.
async fn refused(ports: &Ports, stream: &mut HttpStream, options: Options) -> AttemptError {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream.next().await {
        body.extend_from_slice(&piece[..piece.len().min(MODEL_ERROR_BYTES_MAX - body.len())]);
        if body.len() == MODEL_ERROR_BYTES_MAX {
            break;
        }
    }
    let pause_ms = asked_pause_ms(stream, ports.clock.now_ms());
    let error = ProviderError::read_body(&body, stream.status);
    reported(&error, pause_ms, Some(options))
}

fn reported(error: &ProviderError, pause_ms: Option<u64>, options: Option<Options>) -> AttemptError {
    let status = error.status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    let said = match error.shown() {
        text if text.is_empty() => String::new(),
        text => format!(": {text}"),
    };
    match error.class() {
        ErrorClass::RateLimit => AttemptError::new(
            FailureCode::RateLimited,
            format!("exceeded its provider's rate limit{status}"),
            Next::Again(pause_ms),
        ),
        ErrorClass::Quota => AttemptError::of_operator(
            FailureCode::RateLimited,
            "has a provider account without credit or quota; the operator must fix that",
        ),
        // The provider's message about its key is for the operator, who finds it in the provider's console.
        ErrorClass::Credentials => AttemptError::of_operator(
            FailureCode::Rejected,
            format!("has a provider that rejected this service's key{status}; the operator must fix that"),
        ),
        ErrorClass::Request => {
            let next = match options.and_then(|options| options.without_refused(error)) {
                Some(left) => Next::Without(left),
                None => Next::GiveUp,
            };
            // Its name is a setting of the operator's, like its provider's key.
            let fault = match error.is_unknown_model() && matches!(next, Next::GiveUp) {
                true => CallFault::Operator,
                false => CallFault::Provider,
            };
            let what = format!("rejected the request{status}{said}");
            AttemptError { fault, ..AttemptError::new(FailureCode::Rejected, what, next) }
        }
        ErrorClass::Timeout => AttemptError::new(
            FailureCode::Timeout,
            format!("did not answer in time{status}"),
            Next::Again(pause_ms),
        ),
        ErrorClass::Unavailable => AttemptError::new(
            FailureCode::Unavailable,
            format!("failed{status}{said}"),
            Next::Again(pause_ms),
        ),
    }
}

/// The pause that the provider requests: `Retry-After` in seconds or as a date (RFC 9110, 10.2.3).
fn asked_pause_ms(stream: &HttpStream, now_ms: i64) -> Option<u64> {
    let text = stream.header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        // The cast saturates and turns NaN into 0.
        return Some((seconds * 1000.0).ceil() as u64);
    }
    let date_ms = crate::base::time::from_http_date(text)?;
    Some(u64::try_from(date_ms.saturating_sub(now_ms)).unwrap_or(0))
}
