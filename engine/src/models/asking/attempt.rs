//! One request to a provider, and what its outcome means.
use bytes::Bytes;

use super::outcome::FailureCode;
use super::provider::Target;
use crate::base::limits::{MODEL_ERROR_BYTES_MAX, MODEL_RESPONSE_BYTES_MAX};
use crate::conversation::CallFault;
use crate::models::openai::answer::{Answer, AnswerError, AnswerReader, Progress, TokenCount};
use crate::models::openai::error::{ErrorClass, ProviderError};
use crate::models::openai::request::{ChatRequest, Options};
use crate::ports::{Egress, HttpError, HttpRequest, HttpStream, Ports};

/// What one request came to.
pub struct Attempt {
    /// The answer, or why there is none.
    pub outcome: Result<Answer, AttemptError>,
    /// Tokens, where they were told.
    pub tokens: Option<TokenCount>,
    /// Where they were not and the model had begun to answer, which costs: about how many there were.
    pub estimate: Option<TokenCount>,
}

/// Why a request has no answer.
pub struct AttemptError {
    /// What kind.
    pub code: FailureCode,
    /// Whose fault it is.
    pub fault: CallFault,
    /// What happened, after "provider/name ".
    pub what: String,
    /// What to do about it.
    pub next: Next,
}

/// What to do when a request has no answer.
pub enum Next {
    /// Ask again, after the provider's own pause in ms if it named one.
    Again(Option<u64>),
    /// Ask again without the fields that were refused.
    Without(Options),
    /// The same request will fail again.
    GiveUp,
}

impl AttemptError {
    /// The provider's.
    pub fn new(code: FailureCode, what: impl Into<String>, next: Next) -> Self {
        Self { code, fault: CallFault::Provider, what: what.into(), next }
    }

    /// The operator's, who alone can do something about it.
    fn of_operator(code: FailureCode, what: impl Into<String>) -> Self {
        Self { fault: CallFault::Operator, ..Self::new(code, what, Next::GiveUp) }
    }
}

/// Sends one request and reads the answer.
pub async fn attempt(
    ports: &Ports,
    target: &Target,
    request: &ChatRequest,
    options: Options,
    deadline_ms: u64,
) -> Attempt {
    let body = Bytes::from(request.body(&target.name, options).to_string());
    let asked_bytes = body.len();
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
    };
    let mut stream = match ports.http.open(outgoing).await {
        Ok(stream) => stream,
        Err(error) => return Attempt { outcome: Err(unsent(&error)), tokens: None, estimate: None },
    };
    if stream.status != 200 {
        let error = refused(ports, &mut stream, options).await;
        return Attempt { outcome: Err(error), tokens: None, estimate: None };
    }
    let mut reader = AnswerReader::default();
    let outcome = read(&mut stream, &mut reader).await;
    let tokens = reader.usage();
    let began = !reader.is_only_an_error();
    let estimate = (tokens.is_none() && began).then(|| TokenCount::estimate(asked_bytes, reader.bytes()));
    Attempt { outcome, tokens, estimate }
}

async fn read(stream: &mut HttpStream, reader: &mut AnswerReader) -> Result<Answer, AttemptError> {
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(bytes) => match reader.push(&bytes) {
                Ok(Progress::More) => {}
                Ok(Progress::Complete) => break,
                Err(error) => return Err(unusable(error)),
            },
            Err(HttpError::Failed(_)) => return Err(unusable(AnswerError::Cut)),
            Err(error) => return Err(unsent(&error)),
        }
    }
    reader.finish().map_err(unusable)
}

/// The exchange itself failed.
fn unsent(error: &HttpError) -> AttemptError {
    match error {
        HttpError::Timeout => {
            AttemptError::new(FailureCode::Timeout, "did not answer in time", Next::Again(None))
        }
        // Neither depends on the moment.
        HttpError::TooLarge(_) => unusable(AnswerError::TooLarge),
        HttpError::Refused => {
            AttemptError::of_operator(FailureCode::Unavailable, "is at an address that is not allowed")
        }
        // The detail may name hosts of the operator's network.
        HttpError::Failed(_) => {
            AttemptError::new(FailureCode::Unavailable, "could not be reached", Next::Again(None))
        }
    }
}

fn unusable(error: AnswerError) -> AttemptError {
    match error {
        AnswerError::Reported(error) => reported(&error, None, None),
        AnswerError::Cut => {
            AttemptError::new(FailureCode::Unavailable, "broke off its answer", Next::Again(None))
        }
        AnswerError::Garbled(what) => {
            let what = format!("gave an answer that cannot be read: {what}");
            AttemptError::new(FailureCode::Garbled, what, Next::Again(None))
        }
        AnswerError::TooLarge => {
            AttemptError::new(FailureCode::Garbled, "did not come to an end with its answer", Next::GiveUp)
        }
    }
}

/// The provider answered with another status than 200.
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
            format!("gets more requests than its provider allows{status}"),
            Next::Again(pause_ms),
        ),
        ErrorClass::Quota => AttemptError::of_operator(
            FailureCode::RateLimited,
            "has a provider whose account has nothing left; its operator has to look after that",
        ),
        // What the provider says of its key is for the operator, who sees it there.
        ErrorClass::Credentials => AttemptError::of_operator(
            FailureCode::Rejected,
            format!(
                "has a provider that does not take this service's key{status}; its operator has to look after that"
            ),
        ),
        ErrorClass::Request => {
            let next = match options.and_then(|options| options.without_refused(error)) {
                Some(left) => Next::Without(left),
                None => Next::GiveUp,
            };
            AttemptError::new(FailureCode::Rejected, format!("does not take the request{status}{said}"), next)
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

/// The pause a provider asks for: `Retry-After` in seconds or as a date (RFC 9110, 10.2.3).
fn asked_pause_ms(stream: &HttpStream, now_ms: i64) -> Option<u64> {
    let text = stream.header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        // The cast saturates, and takes what is no number for 0.
        return Some((seconds * 1000.0).ceil() as u64);
    }
    let date_ms = crate::base::time::from_http_date(text)?;
    Some(u64::try_from(date_ms.saturating_sub(now_ms)).unwrap_or(0))
}
