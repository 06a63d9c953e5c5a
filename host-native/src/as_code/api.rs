//! Requests to a service, by its URL and an API key.
use std::time::Duration;

use reqwest::{Client, Method, Url};
use serde_json::Value;
use sidetone_engine::base::setting::Secret;
use sidetone_engine::operations::operation::Operation;

use super::failure::Failure;

/// A page of a list has 4 MiB.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Tries of a request: each can be repeated.
const TRIES: u32 = 5;
/// The first pause between two tries; each further one is twice as long.
const PAUSE_MS: u64 = 200;
/// A `Retry-After` is kept up to this.
const RETRY_AFTER_SECONDS_MAX: u64 = 30;
/// The deadline of a request.
const DEADLINE_SECONDS: u64 = 60;

/// A service.
#[derive(Debug, Clone)]
pub struct Api {
    client: Client,
    base: String,
    key: Secret,
}

/// A response below 500.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body; null without one.
    pub json: Value,
    /// Whether it is that of an earlier request with the same key.
    pub is_replay: bool,
    next: Option<String>,
}

impl Answer {
    /// The code of the error.
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    /// The body of a success; otherwise what the service says is wrong.
    pub fn success(self) -> Result<Value, Failure> {
        if self.status < 300 && !self.json.is_null() {
            return Ok(self.json);
        }
        let error = &self.json["error"];
        let mut text = match error["message"].as_str() {
            Some(message) => message.to_owned(),
            None => {
                return Err(Failure(format!("the answer is HTTP {} and not one of Sidetone", self.status)));
            }
        };
        for field in error["details"]["fields"].as_array().into_iter().flatten() {
            let part = |name: &str| field[name].as_str().unwrap_or_default().to_owned();
            text.push_str(&format!("\n      {} {}", part("field"), part("message")));
        }
        Err(Failure(text))
    }
}

/// What is sent with a request.
#[derive(Debug, Default, Clone, Copy)]
pub struct Extras<'a> {
    /// The body.
    pub body: Option<&'a Value>,
    /// `If-Match`.
    pub revision: Option<i64>,
    /// `Idempotency-Key`.
    pub key: Option<&'a str>,
}

impl Api {
    /// For the service with this URL.
    pub fn new(url: &str, key: &str) -> Result<Self, Failure> {
        let parsed = Url::parse(url).map_err(|error| Failure(format!("--url {url}: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(Failure(format!("--url {url}: has to begin with https:// or http://")));
        }
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("sidetone/", env!("CARGO_PKG_VERSION")))
            .timeout(Duration::from_secs(DEADLINE_SECONDS));
        let client = builder.build().map_err(|error| Failure(error.to_string()))?;
        Ok(Self { client, base: url.trim_end_matches('/').to_owned(), key: Secret::new(key) })
    }

    /// Calls an operation, whose path has at most one value.
    pub async fn call(&self, operation: &Operation, id: &str, extras: Extras<'_>) -> Result<Answer, Failure> {
        let path = match operation.path_names().next() {
            Some(name) => operation.path.replace(&format!("{{{name}}}"), id),
            None => operation.path.to_owned(),
        };
        self.send(operation.method.clone(), &format!("{}{path}", self.base), extras).await
    }

    /// All rows of a list.
    pub async fn list(&self, operation: &Operation) -> Result<Vec<Value>, Failure> {
        let mut rows = Vec::new();
        let mut url = format!("{}{}", self.base, operation.path);
        loop {
            let mut answer = self.send(Method::GET, &url, Extras::default()).await?;
            let next = answer.next.take();
            match answer.success()? {
                Value::Array(part) => rows.extend(part),
                _ => return Err(Failure(format!("{url} is no list of Sidetone"))),
            }
            // The link has the URL that the service knows of itself; a tunnel may have another one.
            match next.as_deref().and_then(|next| next.split_once('?')) {
                Some((_, query)) => url = format!("{}{}?{query}", self.base, operation.path),
                None => return Ok(rows),
            }
        }
    }

    async fn send(&self, method: Method, url: &str, extras: Extras<'_>) -> Result<Answer, Failure> {
        let mut pause = PAUSE_MS;
        for left in (0..TRIES).rev() {
            let (problem, wait) = match self.once(method.clone(), url, extras).await {
                Ok((Answer { status: status @ (429 | 502 | 503 | 504), json, .. }, wait))
                    if json["error"]["code"] != "too_many_invalid_credentials" =>
                {
                    let message = json["error"]["message"].as_str().map(str::to_owned);
                    (message.unwrap_or_else(|| format!("the answer is HTTP {status}")), wait)
                }
                Ok((answer, _)) if answer.code() == "request_in_progress" => {
                    ("the same request is still running".to_owned(), None)
                }
                Ok((answer, _)) => return Ok(answer),
                Err(error) => (error, None),
            };
            if left == 0 {
                return Err(Failure(format!("{}: {problem}", self.base)));
            }
            tokio::time::sleep(wait.unwrap_or(Duration::from_millis(pause))).await;
            pause *= 2;
        }
        Err(Failure(format!("{}: no answer", self.base)))
    }

    async fn once(
        &self,
        method: Method,
        url: &str,
        extras: Extras<'_>,
    ) -> Result<(Answer, Option<Duration>), String> {
        let mut request = self.client.request(method, url).bearer_auth(self.key.reveal());
        if let Some(body) = extras.body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        if let Some(revision) = extras.revision {
            request = request.header("if-match", format!("\"{revision}\""));
        }
        if let Some(key) = extras.key {
            request = request.header("idempotency-key", key);
        }
        let mut response = request.send().await.map_err(|error| cause(&error))?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let is_replay = header("idempotent-replayed") == Some("true");
        let seconds = header("retry-after").and_then(|value| value.parse().ok());
        let next = header("link").and_then(next_link).map(str::to_owned);
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| cause(&error))? {
            bytes.extend_from_slice(&part);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err("the answer is too large".to_owned());
            }
        }
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let wait = seconds.map(|seconds: u64| Duration::from_secs(seconds.min(RETRY_AFTER_SECONDS_MAX)));
        Ok((Answer { status, json, is_replay, next }, wait))
    }
}

/// The URL in `<URL>; rel="next"`.
fn next_link(header: &str) -> Option<&str> {
    header.split_once('<')?.1.split_once(">; rel=\"next\"").map(|(url, _)| url)
}

/// The innermost reason: the outer ones only say that a request failed.
fn cause(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason.to_string()
}
