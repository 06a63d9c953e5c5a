//! Outgoing HTTP: reqwest over rustls, with the platform's roots (and `SSL_CERT_FILE`). No redirect,
//! no proxy, no cookie; for users' addresses, no private address whatever a name resolves to.
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Url};
use sidetone_engine::ports::{BoxFuture, Egress, Http, HttpError, HttpReply, HttpRequest};
use sidetone_engine::targets::{is_public_address, names_private_address};

/// The two clients, by where their requests may go.
pub struct HttpClient {
    public: Client,
    operator: Client,
}

impl HttpClient {
    /// Builds both clients.
    pub fn new() -> Result<Self, reqwest::Error> {
        // A second installation in the same process is harmless: the first one counts.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || Client::builder().redirect(Policy::none()).no_proxy();
        Ok(Self { public: builder().dns_resolver(PublicOnly).build()?, operator: builder().build()? })
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpReply, HttpError> {
        let failed = |error: reqwest::Error| match error {
            error if error.is_timeout() => HttpError::Timeout,
            error if is_refusal(&error) => HttpError::Refused,
            error => HttpError::Failed(error.without_url().to_string()),
        };
        let url = Url::parse(&request.url).map_err(|error| HttpError::Failed(error.to_string()))?;
        let client = match request.egress {
            Egress::Operator => &self.operator,
            Egress::Public if names_private_address(&url) => return Err(HttpError::Refused),
            Egress::Public => &self.public,
        };
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|error| HttpError::Failed(error.to_string()))?;
        let mut outgoing = client
            .request(method, url)
            .timeout(Duration::from_millis(request.deadline_ms))
            .body(request.body);
        for (name, value) in request.headers {
            outgoing = outgoing.header(name, value);
        }
        let mut response = outgoing.send().await.map_err(failed)?;
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let status = response.status().as_u16();
        let reply = |body: BytesMut| HttpReply { status, headers, body: Bytes::from(body) };
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            let room = request.response_bytes_max - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                return Err(HttpError::TooLarge(reply(body)));
            }
        }
        Ok(reply(body))
    }
}

impl Http for HttpClient {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        Box::pin(self.exchange(request))
    }
}

/// Resolves names to public addresses only, at the moment of connecting: what a name meant when it
/// was saved does not count (DNS rebinding).
struct PublicOnly;

#[derive(Debug)]
struct NoPublicAddress;

impl std::fmt::Display for NoPublicAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the name has no public address")
    }
}

impl std::error::Error for NoPublicAddress {}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public_address(address.ip())).collect();
            if public.is_empty() {
                return Err(NoPublicAddress.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

fn is_refusal(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.is::<NoPublicAddress>() {
            return true;
        }
        cause = error.source();
    }
    false
}
