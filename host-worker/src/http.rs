//! Outgoing HTTP over the platform's `fetch`. No redirect, no cache, no cookie. The platform resolves
//! names itself and connects to the public internet only; what it leaves to us, an address written
//! into the URL, is checked here.
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use sidetone_engine::ports::{BoxFuture, Egress, Http, HttpError, HttpReply, HttpRequest};
use sidetone_engine::targets::names_private_address;
use worker::js_sys::Uint8Array;
use worker::{
    AbortController, AbortSignal, CacheMode, Delay, Fetch, Headers, Method, Request, RequestInit,
    RequestRedirect, Response, Url,
};

/// `fetch`.
pub struct PlatformHttp;

impl Http for PlatformHttp {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        Box::pin(within_deadline(request))
    }
}

async fn within_deadline(request: HttpRequest) -> Result<HttpReply, HttpError> {
    let url = Url::parse(&request.url).map_err(|error| HttpError::Failed(error.to_string()))?;
    if request.egress == Egress::Public && names_private_address(&url) {
        return Err(HttpError::Refused);
    }
    let controller = AbortController::default();
    let signal = controller.signal();
    let deadline = Delay::from(Duration::from_millis(request.deadline_ms));
    match select(pin!(exchange(&request, &signal)), deadline).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => {
            controller.abort();
            Err(HttpError::Timeout)
        }
    }
}

async fn exchange(request: &HttpRequest, signal: &AbortSignal) -> Result<HttpReply, HttpError> {
    let failed = |error: worker::Error| HttpError::Failed(error.to_string());
    let mut response =
        Fetch::Request(outgoing(request).map_err(failed)?).send_with_signal(signal).await.map_err(failed)?;
    let reply = |body: BytesMut, response: &Response| HttpReply {
        status: response.status_code(),
        headers: response.headers().entries().collect(),
        body: Bytes::from(body),
    };
    let mut body = BytesMut::new();
    if !matches!(response.body(), worker::ResponseBody::Empty) {
        let mut chunks = response.stream().map_err(failed)?;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(failed)?;
            let room = request.response_bytes_max - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                return Err(HttpError::TooLarge(reply(body, &response)));
            }
        }
    }
    Ok(reply(body, &response))
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
