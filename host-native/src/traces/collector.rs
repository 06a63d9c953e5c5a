//! Sends traces with the HTTP client that everything else has, too: one TLS, the same root certificates.
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// The way to the collector.
#[derive(Debug)]
pub struct Collector {
    client: Client,
    /// Batches are made on a thread of their own, without a runtime.
    runtime: Handle,
    /// Whether the last batch was lost, so that this is logged once.
    is_lost: Arc<AtomicBool>,
}

impl Collector {
    /// On the runtime of whoever calls.
    pub fn new() -> Result<Self, reqwest::Error> {
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(Policy::none()).no_proxy().timeout(DEADLINE).build()?;
        Ok(Self { client, runtime: Handle::current(), is_lost: Arc::default() })
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
        let is_lost = self.is_lost.clone();
        Box::pin(async move {
            let sent = match sending.await {
                Ok(sent) => sent,
                Err(error) => Err(error.to_string()),
            };
            let problem = match &sent {
                Ok(response) if response.status().is_success() => None,
                Ok(response) => Some(format!("it answered {}", response.status())),
                Err(problem) => Some(problem.clone()),
            };
            match (is_lost.swap(problem.is_some(), Ordering::Relaxed), problem) {
                (false, Some(problem)) => {
                    tracing::warn!(problem, "the collector takes no traces: they are lost")
                }
                (true, None) => tracing::info!("the collector takes traces again"),
                _ => {}
            }
            sent.map_err(HttpError::from)
        })
    }
}

async fn send(client: Client, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let (head, body) = request.into_parts();
    let outgoing = client.request(head.method, head.uri.to_string()).headers(head.headers).body(body);
    let mut response = outgoing.send().await.map_err(causes)?;
    let status = response.status();
    let mut answer = BytesMut::new();
    while answer.len() < ANSWER_BYTES_MAX
        && let Some(piece) = response.chunk().await.map_err(causes)?
    {
        answer.extend_from_slice(&piece);
    }
    let mut whole = Response::new(answer.freeze());
    *whole.status_mut() = status;
    Ok(whole)
}
