//! Sends traces with the HTTP client that everything else has, too: one TLS, the same root certificates.
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use reqwest::Client;
use reqwest::redirect::Policy;
use tokio::runtime::Handle;

use crate::outside::causes;

/// How long a collector may take for a batch.
const DEADLINE: Duration = Duration::from_secs(10);
/// What is read of a collector's answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What the collector did not like about the last request; `None` if it took it.
pub type LastProblem = Arc<Mutex<Option<String>>>;

/// The way to the collector.
#[derive(Debug)]
pub struct Collector {
    client: Client,
    /// Batches are made on a thread of their own, without a runtime.
    runtime: Handle,
    last_problem: LastProblem,
}

impl Collector {
    /// On the runtime of whoever calls.
    pub fn new() -> Result<Self, reqwest::Error> {
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(Policy::none()).no_proxy().timeout(DEADLINE).build()?;
        Ok(Self { client, runtime: Handle::current(), last_problem: Arc::default() })
    }

    /// Where requests leave what went wrong with them: the library does not tell.
    pub fn last_problem(&self) -> LastProblem {
        self.last_problem.clone()
    }
}

impl HttpClient for Collector {
    fn send_bytes<'me, 'future>(
        &'me self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'me: 'future,
        Self: 'future,
    {
        let sending = self.runtime.spawn(send(self.client.clone(), request));
        let last_problem = self.last_problem.clone();
        Box::pin(async move {
            let sent = match sending.await {
                Ok(sent) => sent,
                Err(error) => Err(error.to_string()),
            };
            *last_problem.lock().unwrap_or_else(PoisonError::into_inner) = match &sent {
                Ok(response) if response.status().is_success() => None,
                Ok(response) => Some(format!("it answered {}", response.status())),
                Err(problem) => Some(problem.clone()),
            };
            sent.map_err(HttpError::from)
        })
    }
}

async fn send(client: Client, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let (head, body) = request.into_parts();
    let outgoing = client.request(head.method, head.uri.to_string()).headers(head.headers).body(body);
    let mut response = outgoing.send().await.map_err(causes)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut answer = BytesMut::new();
    while answer.len() < ANSWER_BYTES_MAX
        && let Some(piece) = response.chunk().await.map_err(causes)?
    {
        answer.extend_from_slice(&piece);
    }
    let mut whole = Response::new(answer.freeze());
    *whole.status_mut() = status;
    // The library keeps to Retry-After.
    *whole.headers_mut() = headers;
    Ok(whole)
}
