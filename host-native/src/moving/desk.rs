//! Who answers the operator's requests: a service, by its URL and the operator's key, or the engine on this machine's folder.
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use reqwest::{Client, Url};
use sidetone_engine::base::setting::Secret;
use sidetone_engine::engine::Engine;

use super::Stop;
use super::asking::Refusal;

/// A part has 16 MiB.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Tries of a request: each can be repeated.
const TRIES: u32 = 5;
/// The first pause between two tries; each further one is twice as long.
const PAUSE_MS: u64 = 200;
/// A `Retry-After` is kept up to this.
const RETRY_AFTER_SECONDS_MAX: u64 = 30;
/// The deadline of a request.
const DEADLINE_SECONDS: u64 = 60;

/// A host.
pub trait Desk {
    /// Answers a request, whose URI is a path. Each may be repeated.
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>>;

    /// Its URL.
    fn place(&self) -> &str;

    /// What names it in a further command: ` --url URL`; nothing for the folder of this machine.
    fn option(&self) -> String;
}

/// A service.
#[derive(Debug)]
pub struct Remote {
    client: Client,
    base: String,
    /// The setting that the key is from.
    key_name: &'static str,
    key: Secret,
}

impl Remote {
    /// The service with this URL, which `option` has given, and the operator's key of it, which the setting `key_name` has.
    pub fn new(option: &str, url: &str, key_name: &'static str, key: &str) -> Result<Self, Stop> {
        let parsed = Url::parse(url).map_err(|error| Stop::failed(format!("{option} {url}: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(Stop::failed(format!("{option} {url}: has to begin with https:// or http://")));
        }
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("sidetone/", env!("CARGO_PKG_VERSION")))
            .timeout(Duration::from_secs(DEADLINE_SECONDS));
        let client = builder.build().map_err(|error| Stop::failed(error.to_string()))?;
        Ok(Self { client, base: url.trim_end_matches('/').to_owned(), key_name, key: Secret::new(key) })
    }

    async fn repeat(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Stop> {
        let mut pause = PAUSE_MS;
        let mut left = TRIES;
        loop {
            left -= 1;
            let (problem, wait) = match self.once(&request).await {
                Ok(response) => match later(&self.base, &response) {
                    Some(refusal) => (refusal.message, retry_after(response.headers())),
                    None if response.status() == StatusCode::UNAUTHORIZED
                        && Refusal::of(&self.base, &response).code == "unauthorized" =>
                    {
                        return Err(Stop::failed(format!(
                            "{} is not the operator's key of {}",
                            self.key_name, self.base
                        )));
                    }
                    None => return Ok(response),
                },
                Err(problem) => (problem, None),
            };
            if left == 0 {
                return Err(Stop::failed(format!(
                    "{}: {}. Once it answers, run the same command again: it goes on where it was",
                    self.base,
                    problem.trim_end_matches('.')
                )));
            }
            tokio::time::sleep(wait.unwrap_or(Duration::from_millis(pause))).await;
            pause *= 2;
        }
    }

    async fn once(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, String> {
        let url = format!("{}{}", self.base, request.uri());
        let mut sent = self.client.request(request.method().clone(), url).bearer_auth(self.key.reveal());
        if let Some(kind) = request.headers().get(header::CONTENT_TYPE) {
            sent = sent.header(header::CONTENT_TYPE, kind);
        }
        if *request.method() != Method::GET {
            sent = sent.body(request.body().clone());
        }
        let mut received = sent.send().await.map_err(|error| cause(&error))?;
        let mut bytes = Vec::new();
        while let Some(piece) = received.chunk().await.map_err(|error| cause(&error))? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err("the answer is too large".to_owned());
            }
        }
        let mut response = Response::new(Bytes::from(bytes));
        *response.status_mut() = received.status();
        *response.headers_mut() = received.headers().clone();
        Ok(response)
    }
}

impl Desk for Remote {
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
        Box::pin(self.repeat(request))
    }

    fn place(&self) -> &str {
        &self.base
    }

    fn option(&self) -> String {
        format!(" --url {}", self.base)
    }
}

/// What a service says that may answer the same request later; `None` if it has answered.
fn later(place: &str, response: &Response<Bytes>) -> Option<Refusal> {
    let may_answer = matches!(response.status().as_u16(), 408 | 429 | 502 | 503 | 504);
    let refusal = may_answer.then(|| Refusal::of(place, response))?;
    // These pass after minutes, or when somebody does something.
    let is_for_long = ["too_many_invalid_credentials", "workspace_moving"].contains(&refusal.code.as_str());
    (!is_for_long).then_some(refusal)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.min(RETRY_AFTER_SECONDS_MAX)))
}

/// The innermost reason: the outer ones only say that a request failed.
fn cause(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason.to_string()
}

/// The data folder of this machine, also while a service runs on it. Whoever may open it needs no key.
pub struct Folder {
    engine: Engine,
}

impl Folder {
    /// The engine on it.
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Stop> {
        let (response, record) = self.engine.as_operator(request).await.into_parts();
        // Whoever is at the command line is told what others find in the log.
        match record.incident() {
            Some(incident) => Err(Stop::failed(incident)),
            None => Ok(response),
        }
    }
}

impl Desk for Folder {
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
        Box::pin(self.answer(request))
    }

    fn place(&self) -> &str {
        self.engine.base_url()
    }

    fn option(&self) -> String {
        String::new()
    }
}
