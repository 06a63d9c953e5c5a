//! Outgoing HTTP with reqwest and rustls, with the platform's root certificates (and `SSL_CERT_FILE`). No redirects, no
//! proxy, no cookies. Requests to users' URLs never connect to a private address, whatever the name resolves to.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use hickory_resolver::TokioResolver;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, Url};
use sidetone_engine::base::targets::{is_public_address, names_private_address};
use sidetone_engine::ports::{BoxFuture, Egress, Http, HttpError, HttpReply, HttpRequest, HttpStream};
use tokio::net::lookup_host;

use crate::metrics::Metrics;
use crate::open_files::{Outgoing, OutgoingPlace};
use crate::outside::{Exchange, causes};

/// How long a connection to a user's server is kept: no place counts it, and users name any number of servers.
const PUBLIC_IDLE: Duration = Duration::from_secs(2);

/// One client for each [`Egress`] class.
pub struct HttpClient {
    public: Client,
    operator: Client,
    outgoing: Outgoing,
    metrics: Arc<Metrics>,
    /// Whether errors name their causes, such as a certificate that has expired: for operators, not for users.
    explains: bool,
}

impl HttpClient {
    /// Builds both clients. Their requests take places of `outgoing`.
    pub fn new(outgoing: Outgoing) -> Result<Self, reqwest::Error> {
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kept = outgoing.kept_for_each_server();
        let builder = || Client::builder().redirect(Policy::none()).no_proxy();
        // Users name any number of servers; the operator's are few, so what is kept for them is used again.
        let public = builder()
            .dns_resolver(PublicOnly::new())
            .pool_max_idle_per_host(kept)
            .pool_idle_timeout(PUBLIC_IDLE)
            .build()?;
        Ok(Self { public, operator: builder().build()?, outgoing, metrics: Arc::default(), explains: false })
    }

    /// Counts and measures its requests in `metrics`.
    pub fn measured(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// The same, with errors that name their causes.
    #[must_use]
    pub fn explaining(self) -> Self {
        Self { explains: true, ..self }
    }

    /// The response, whose body is not read yet, and the place of the request.
    async fn begin(&self, request: HttpRequest) -> Result<(Response, OutgoingPlace), HttpError> {
        let url = Url::parse(&request.url).map_err(|error| HttpError::Failed(error.to_string()))?;
        let client = match request.egress {
            Egress::Operator => &self.operator,
            Egress::Public if names_private_address(&url) => return Err(HttpError::Refused),
            Egress::Public => &self.public,
        };
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|error| HttpError::Failed(error.to_string()))?;
        // It includes the wait for a place, and the body.
        let (began, deadline) = (Instant::now(), Duration::from_millis(request.deadline_ms));
        let workspace = request.party.workspace.as_deref().unwrap_or_default();
        let place =
            self.outgoing.place(request.egress, workspace, deadline).await.ok_or(HttpError::Timeout)?;
        let mut outgoing =
            client.request(method, url).timeout(deadline.saturating_sub(began.elapsed())).body(request.body);
        for (name, value) in request.headers {
            outgoing = outgoing.header(name, value);
        }
        Ok((outgoing.send().await.map_err(|error| failed(error, self.explains))?, place))
    }

    fn observe(&self, request: &HttpRequest) -> Exchange {
        Exchange::begin(&self.metrics, &request.party, request.method, &request.url)
            .expecting(request.expected)
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpReply, HttpError> {
        let mut seen = self.observe(&request);
        let reply = self.receive(request, &mut seen).await;
        if let Err(error) = &reply {
            seen.failed(error);
        }
        reply
    }

    async fn receive(&self, request: HttpRequest, seen: &mut Exchange) -> Result<HttpReply, HttpError> {
        let response_bytes_max = request.response_bytes_max;
        let (response, place) = self.begin(request).await?;
        let (status, headers) = (response.status().as_u16(), headers(&response));
        seen.answered(status);
        let mut pieces =
            Pieces { response, left_bytes: response_bytes_max, is_too_large: false, _place: place };
        let mut body = BytesMut::new();
        while let Some(piece) = pieces.next().await? {
            body.extend_from_slice(&piece);
        }
        let reply = HttpReply { status, headers, body: body.freeze() };
        if pieces.is_too_large { Err(HttpError::TooLarge(reply)) } else { Ok(reply) }
    }

    async fn begin_stream(&self, request: HttpRequest) -> Result<HttpStream, HttpError> {
        let (response_bytes_max, mut seen) = (request.response_bytes_max, self.observe(&request));
        let (response, place) = self.begin(request).await.inspect_err(|error| seen.failed(error))?;
        let (status, headers) = (response.status().as_u16(), headers(&response));
        seen.answered(status);
        let pieces = Pieces { response, left_bytes: response_bytes_max, is_too_large: false, _place: place };
        let head = HttpReply { status, headers: headers.clone(), body: Bytes::new() };
        let body =
            stream::try_unfold((pieces, head), async |(mut pieces, head)| match pieces.next().await? {
                Some(piece) => Ok(Some((piece, (pieces, head)))),
                None if pieces.is_too_large => Err(HttpError::TooLarge(head)),
                None => Ok(None),
            });
        let body = body.inspect(move |piece| {
            if let Err(error) = piece {
                seen.failed(error);
            }
        });
        Ok(HttpStream { status, headers, body: Box::pin(body) })
    }
}

/// A body that is being received, within its size limit.
struct Pieces {
    response: Response,
    left_bytes: usize,
    /// Whether the body exceeded the limit.
    is_too_large: bool,
    _place: OutgoingPlace,
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        if self.is_too_large {
            return Ok(None);
        }
        let Some(mut piece) = self.response.chunk().await.map_err(|error| failed(error, false))? else {
            return Ok(None);
        };
        self.is_too_large = piece.len() > self.left_bytes;
        piece.truncate(self.left_bytes);
        self.left_bytes -= piece.len();
        Ok(Some(piece))
    }
}

fn headers(response: &Response) -> Vec<(String, String)> {
    response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

fn failed(error: reqwest::Error, explains: bool) -> HttpError {
    match error {
        error if error.is_timeout() => HttpError::Timeout,
        error if is_refusal(&error) => HttpError::Refused,
        error if explains => {
            let error = error.without_url();
            let all = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            let last = all.last().map(ToString::to_string).unwrap_or_default();
            HttpError::Failed(if last.is_empty() { error.to_string() } else { last })
        }
        error => HttpError::Failed(causes(error)),
    }
}

impl Http for HttpClient {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        Box::pin(self.exchange(request))
    }

    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        Box::pin(self.begin_stream(request))
    }
}

/// Resolves names to public addresses only. It runs at each connection, because a name may resolve to another address
/// than when the URL was saved (DNS rebinding). The system's own resolver takes a thread for each name until its name server
/// answers or 10 s are over: users' names would take all of them.
struct PublicOnly {
    /// `None` without a configuration of the system's.
    resolver: Option<TokioResolver>,
}

impl PublicOnly {
    fn new() -> Self {
        Self { resolver: TokioResolver::builder_tokio().and_then(|builder| builder.build()).ok() }
    }
}

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
        let resolver = self.resolver.clone();
        Box::pin(async move {
            let found: Vec<IpAddr> = match resolver {
                Some(resolver) => resolver.lookup_ip(name.as_str()).await?.iter().collect(),
                None => lookup_host((name.as_str(), 0)).await?.map(|address| address.ip()).collect(),
            };
            let public = found.into_iter().filter(|address| is_public_address(*address));
            let public: Vec<SocketAddr> = public.map(|address| (address, 0).into()).collect();
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
