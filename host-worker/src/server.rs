//! Passes the platform's requests to the engine, sends the responses, and logs errors.
use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_channel::oneshot;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use sidetone_engine::engine::{
    Admission, BodyFailure, FinalResponse, PendingRequest, PreparedResponse, SocketAdmission,
};
use sidetone_engine::live::LiveSocket;
use sidetone_engine::ports::BoxStream;
use worker::js_sys::{Array, JSON, Uint8Array};
use worker::wasm_bindgen::JsCast;
use worker::web_sys::{ReadableStream, Request, Response, ResponseInit};
use worker::{Body, Context, Delay, Env, State, WebSocketPair, console_error, console_log};

use crate::homes;
use crate::isolate::{self, NotReady, Service};
use crate::socket::EdgeSocket;
use crate::system::{PlatformClock, PlatformRandom};

/// The client's address as the edge reports it; a client cannot set it.
const PEER_HEADER: &str = "cf-connecting-ip";

/// Answers a request. No client input makes it fail.
pub async fn answer(request: Request, env: &Env, context: &Context) -> worker::Result<Response> {
    let url = request.url();
    let (origin, target) = split(&url);
    let head = head(&request, target);
    let service = match isolate::for_request(env, origin) {
        Ok(service) => service,
        Err(not_ready) => return unconfigured(head, not_ready),
    };
    let peer = peer(&head.headers);
    // The platform performs the WebSocket handshake.
    let (response, stream) = match service.engine.begin(head, peer, Some(())) {
        Admission::Respond(response) => (response, None),
        Admission::ReadBody(pending) => match answered(pending, &service, context, request.body()).await {
            PreparedResponse::Complete(response) => (response, None),
            PreparedResponse::Blob(blob) => {
                let opened = service.blobs.stream(blob.slice()).await;
                blob.resolve(opened)
            }
            PreparedResponse::Events(events) => {
                let (response, pieces) = events.into_parts();
                (response, Some(streamed(pieces)))
            }
        },
        Admission::Socket(pending, ()) => {
            let trace = pending.trace();
            match pending.find_home().await {
                Ok(call_id) => match homes::forward(env, &call_id, request).await {
                    Ok(response) => return Ok(response),
                    Err(error) => (trace.broken(format!("{call_id} has no home: {error}")), None),
                },
                Err(response) => (*response, None),
            }
        }
    };
    if service.has_collected() {
        let service = service.clone();
        context.wait_until(async move { service.send_collected().await });
    }
    send(response, stream.as_ref())
}

/// The pieces as a stream of the platform, which drops them when the client has gone.
fn streamed(pieces: BoxStream<'static, Bytes>) -> ReadableStream {
    let pieces = pieces.map(|piece| Ok(Uint8Array::from(piece.as_ref()).into()));
    wasm_streams::ReadableStream::from_stream(pieces).into_raw().unchecked_into()
}

/// Accepts the socket of a call in the object that is its home. What is no such request has been answered elsewhere.
pub async fn hold(request: &Request, env: &Env, state: &State) -> worker::Result<Response> {
    let url = request.url();
    let (origin, target) = split(&url);
    let head = head(request, target);
    let service = match isolate::for_request(env, origin) {
        Ok(service) => service,
        Err(not_ready) => return unconfigured(head, not_ready),
    };
    let peer = peer(&head.headers);
    let Admission::Socket(pending, ()) = service.engine.begin(head, peer, Some(())) else {
        return Err("this request opens no call".into());
    };
    match pending.accept().await {
        SocketAdmission::Refused(response) => {
            // A call that is not served is ended.
            state.wait_until(async move { service.send_collected().await });
            send(*response, None)
        }
        SocketAdmission::Accepted(session) => upgrade(session, &service, state),
    }
}

/// Returns the client's end of a socket. The object lives as long as the socket, and some time afterwards for the final
/// writes.
fn upgrade(session: LiveSocket, service: &Service, state: &State) -> worker::Result<Response> {
    let WebSocketPair { client, server } = WebSocketPair::new()?;
    let service = service.clone();
    state.wait_until(async move {
        let incident = match EdgeSocket::accept(&server) {
            Ok(mut socket) => session.run(&mut socket).await,
            Err(_) => session.abandon().await,
        };
        if let Some(detail) = incident {
            console_error!("a conversation failed on our side: {detail}");
        }
        service.send_collected().await;
    });
    Ok(worker::Response::from_websocket(client)?.into())
}

/// The request without its body. The platform has parsed it already; a path that `http` rejects becomes `/`.
fn head(request: &Request, target: &str) -> Parts {
    let mut head = http::Request::new(()).into_parts().0;
    head.method = Method::from_bytes(request.method().as_bytes()).unwrap_or_default();
    head.uri = target.parse::<Uri>().unwrap_or_default();
    head.headers = headers(request);
    head
}

fn peer(headers: &HeaderMap) -> Option<std::net::IpAddr> {
    headers.get(PEER_HEADER).and_then(|value| value.to_str().ok()?.parse().ok())
}

/// Reads the body and answers. A request that may write runs to its end, even if the client disconnects.
async fn answered(
    mut pending: PendingRequest,
    service: &Service,
    context: &Context,
    body: Option<ReadableStream>,
) -> PreparedResponse {
    if let Some(stream) = body
        && let Err(failure) = read(stream, &mut pending).await
    {
        return PreparedResponse::Complete(pending.fail(failure));
    }
    if pending.only_reads() {
        return pending.answer().await;
    }
    let trace = pending.trace();
    let (done, answer) = oneshot::channel();
    let working = service.clone();
    context.wait_until(async move {
        // The client may have disconnected meanwhile.
        if let Err(PreparedResponse::Complete(response)) = done.send(pending.answer().await) {
            log(response);
            working.send_collected().await;
        }
    });
    let stopped = || PreparedResponse::Complete(trace.broken("the platform stopped a request".to_owned()));
    answer.await.unwrap_or_else(|_| stopped())
}

/// Splits `https://host/path?query` before the path.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..].find(['/', '?']).map_or(url.len(), |at| host + at);
    (&url[..path], &url[path..])
}

/// Reads the headers as one JSON text: reading each of them would cross the border to JavaScript five times per header.
fn headers(request: &Request) -> HeaderMap {
    let pairs = Array::from(request.headers().as_ref());
    let text = JSON::stringify(&pairs).map(String::from).unwrap_or_default();
    let pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = serde_json::from_str(&text).unwrap_or_default();
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in &pairs {
        // The engine does not use headers that `http` cannot represent.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        {
            headers.append(name, value);
        }
    }
    headers
}

/// Passes a body to the engine.
async fn read(stream: ReadableStream, pending: &mut PendingRequest) -> Result<(), BodyFailure> {
    let reading = async {
        let mut pieces = Body::new(stream);
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| BodyFailure::Late)?;
            pending.receive(piece).map_err(|_| BodyFailure::TooLarge)?;
        }
        Ok(())
    };
    let deadline = Delay::from(Duration::from_millis(PendingRequest::DEADLINE_MS));
    match select(pin!(reading), deadline).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Err(BodyFailure::Late),
    }
}

/// Logs a response and converts it for the platform; `stream` replaces the body.
fn send(response: FinalResponse, stream: Option<&ReadableStream>) -> worker::Result<Response> {
    let (parts, body) = log(response).into_parts();
    let pairs: Vec<(&str, Cow<'_, str>)> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())))
        .collect();
    let init = ResponseInit::new();
    init.set_status(parts.status.as_u16());
    init.set_headers(&JSON::parse(&serde_json::to_string(&pairs)?)?);
    let response = if stream.is_some() {
        Response::new_with_opt_readable_stream_and_init(stream, &init)
    } else if body.is_empty() {
        Response::new_with_opt_str_and_init(None, &init)
    } else {
        let body = Uint8Array::from(body.as_ref());
        Response::new_with_opt_buffer_source_and_init(Some(&body), &init)
    };
    Ok(response?)
}

/// The response when a missing or invalid setting or binding prevents the service from starting.
fn unconfigured(head: Parts, not_ready: NotReady) -> worker::Result<Response> {
    let detail = not_ready.to_string();
    let head = (head.method, head.uri);
    send(FinalResponse::unconfigured(head, &not_ready.name, detail, &PlatformClock, &PlatformRandom), None)
}

/// Logs notes and internal errors. There is no line for each request: docs/operating.md, "Logs at the edge".
fn log(response: FinalResponse) -> http::Response<Bytes> {
    let (response, record) = response.into_parts();
    if let Some(note) = record.note() {
        console_log!("{note}");
    }
    if record.incident().is_some() {
        console_error!("{record}");
    }
    response
}
