//! Outgoing HTTP over the platform's `fetch`. No redirects, no cache, no cookies. The platform resolves names itself
//! and connects only to the public internet; IP addresses in URLs are checked here.
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream;
use sidetone_engine::base::targets::names_private_address;
use sidetone_engine::ports::{BoxFuture, Egress, Http, HttpError, HttpReply, HttpRequest, HttpStream};
use worker::js_sys::Uint8Array;
use worker::{
    AbortController, ByteStream, CacheMode, Delay, Fetch, Headers, Method, Request, RequestInit,
    RequestRedirect, Url,
};

/// The platform's `fetch`.
pub struct PlatformHttp;

impl Http for PlatformHttp {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        Box::pin(async move {
            let mut exchange = Exchange::begin(&request).await?;
            let mut body = BytesMut::new();
            while let Some(piece) = exchange.next().await? {
                body.extend_from_slice(&piece);
            }
            let Head { status, headers } = std::mem::take(&mut exchange.head);
            let reply = HttpReply { status, headers, body: body.freeze() };
            if exchange.is_too_large { Err(HttpError::TooLarge(reply)) } else { Ok(reply) }
        })
    }

    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        Box::pin(async move {
            let mut exchange = Exchange::begin(&request).await?;
            let Head { status, headers } = std::mem::take(&mut exchange.head);
            let head = HttpReply { status, headers: headers.clone(), body: Bytes::new() };
            let body = stream::try_unfold((exchange, head), async |(mut exchange, head)| {
                match exchange.next().await? {
                    Some(piece) => Ok(Some((piece, (exchange, head)))),
                    None if exchange.is_too_large => Err(HttpError::TooLarge(head)),
                    None => Ok(None),
                }
            });
            Ok(HttpStream { status, headers, body: Box::pin(body) })
        })
    }
}

/// One request and its response, with its deadline and size limit.
struct Exchange {
    head: Head,
    /// `None` for a response without a body.
    body: Option<ByteStream>,
    left_bytes: usize,
    /// Whether the body exceeded the limit.
    is_too_large: bool,
    deadline: Pin<Box<Delay>>,
    _abort: AbortOnDrop,
}

#[derive(Default)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Exchange {
    async fn begin(request: &HttpRequest) -> Result<Self, HttpError> {
        let url = Url::parse(&request.url).map_err(|error| HttpError::Failed(error.to_string()))?;
        if request.egress == Egress::Public && names_private_address(&url) {
            return Err(HttpError::Refused);
        }
        let controller = AbortController::default();
        let signal = controller.signal();
        let abort = AbortOnDrop::new(controller);
        let mut deadline = Box::pin(Delay::from(Duration::from_millis(request.deadline_ms)));
        let sending = Fetch::Request(outgoing(request).map_err(failed)?);
        let mut response = match select(pin!(sending.send_with_signal(&signal)), &mut deadline).await {
            Either::Left((response, _)) => response.map_err(failed)?,
            Either::Right(_) => return Err(HttpError::Timeout),
        };
        let body = match response.body() {
            worker::ResponseBody::Empty => None,
            _ => Some(response.stream().map_err(failed)?),
        };
        let head = Head { status: response.status_code(), headers: response.headers().entries().collect() };
        Ok(Self {
            head,
            body,
            left_bytes: request.response_bytes_max,
            is_too_large: false,
            deadline,
            _abort: abort,
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(body) = self.body.as_mut().filter(|_| !self.is_too_large) else { return Ok(None) };
        let mut piece = match select(body.next(), &mut self.deadline).await {
            Either::Left((Some(piece), _)) => piece.map_err(failed)?,
            Either::Left((None, _)) => return Ok(None),
            Either::Right(_) => return Err(HttpError::Timeout),
        };
        self.is_too_large = piece.len() > self.left_bytes;
        piece.truncate(self.left_bytes);
        self.left_bytes -= piece.len();
        Ok(Some(Bytes::from(piece)))
    }
}

/// Aborts the exchange when dropped; has no effect after its end.
pub struct AbortOnDrop(Option<AbortController>);

impl AbortOnDrop {
    /// Aborts with this controller.
    pub fn new(controller: AbortController) -> Self {
        Self(Some(controller))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(controller) = self.0.take() {
            controller.abort();
        }
    }
}

fn failed(error: worker::Error) -> HttpError {
    HttpError::Failed(error.to_string())
}

fn outgoing(request: &HttpRequest) -> worker::Result<Request> {
    let headers = Headers::new();
    for (name, value) in &request.headers {
        headers.append(name, value)?;
    }
    let mut init = RequestInit::new();
    init.with_method(Method::from(request.method.to_owned()))
        .with_headers(headers)
        .with_redirect(RequestRedirect::Manual)
        .with_cache(CacheMode::NoStore);
    if !request.body.is_empty() {
        init.with_body(Some(Uint8Array::from(request.body.as_ref()).into()));
    }
    Request::new_with_init(&request.url, &init)
}
