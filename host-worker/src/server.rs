//! One request of the platform's into the engine, one response back: reads a body within the limit,
//! hands the request over, writes the answer and logs what must be logged.
use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_channel::oneshot;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderName, HeaderValue, Response as Answer};
use sidetone_engine::base::error::{Code, Error};
use sidetone_engine::base::limits::{BODY_BYTES_MAX, REQUEST_READ_MS};
use sidetone_engine::base::response::Incident;
use sidetone_engine::live::telephony::without_token;
use sidetone_engine::live::{Accept, LiveSession};
use sidetone_engine::ports::Incoming;
use sidetone_engine::ports::blobs::Slice;
use worker::js_sys::{Array, JSON, Uint8Array};
use worker::web_sys::{ReadableStream, Request, Response, ResponseInit};
use worker::{Body, Context, Delay, Env, WebSocketPair, console_error};

use crate::isolate::{self, Service};
use crate::socket::EdgeSocket;

/// What the edge says of who is calling; a client cannot set it.
const PEER_HEADER: &str = "cf-connecting-ip";

/// Answers a request. Never fails on what a client sends.
pub async fn answer(request: Request, env: &Env, context: &Context) -> worker::Result<Response> {
    let url = request.url();
    let (origin, target) = split(&url);
    let service = match isolate::for_request(env, origin) {
        Ok(service) => service,
        Err(detail) => return unconfigured(&detail),
    };
    let engine = &service.engine;
    let (method, path) = (request.method(), target.split('?').next().unwrap_or_default());
    let mut response = match handle(&service, context, &request, &method, target).await {
        Handled::Answer(response) => response,
        Handled::Session(session) => return upgrade(*session, &service, context),
    };
    let mut stream = None;
    if let Some(slice) = response.extensions().get::<Slice>().cloned() {
        match service.blobs.stream(&slice).await {
            Ok(Some(found)) => stream = Some(found),
            Ok(None) => response = engine.lost(&slice),
            Err(error) => response = engine.unreadable(error),
        }
    }
    log(&response, &method, path);
    if !service.wakes.is_empty() {
        let service = service.clone();
        context.wait_until(async move { service.send_wakes().await });
    }
    to_platform(response, stream.as_ref())
}

enum Handled {
    Answer(Answer<Bytes>),
    Session(Box<LiveSession>),
}

/// Hands the client its end of a socket and leaves the conversation to the invocation, which lasts as
/// long as the socket does; what is written afterwards has the platform's time for that.
fn upgrade(session: LiveSession, service: &Service, context: &Context) -> worker::Result<Response> {
    let WebSocketPair { client, server } = WebSocketPair::new()?;
    let service = service.clone();
    context.wait_until(async move {
        let incident = match EdgeSocket::accept(&server) {
            Ok(mut socket) => session.run(&mut socket).await,
            Err(_) => session.abandon().await,
        };
        if let Some(detail) = incident {
            console_error!("a conversation failed on our side: {detail}");
        }
        service.send_wakes().await;
    });
    Ok(worker::Response::from_websocket(client)?.into())
}

async fn handle(
    service: &Service,
    context: &Context,
    request: &Request,
    method: &str,
    target: &str,
) -> Handled {
    let engine = &service.engine;
    let parts = match head(request, method, target) {
        Ok(parts) => parts,
        Err(error) => return Handled::Answer(engine.broken(error.to_string())),
    };
    if engine.wants_socket(&parts) {
        let peer = peer(&parts.headers);
        let request = http::Request::from_parts(parts, Bytes::new());
        return match engine.accept(Incoming { request, peer }).await {
            Accept::Refused(response) => Handled::Answer(response),
            Accept::Session(session) => Handled::Session(session),
        };
    }
    Handled::Answer(answered(service, context, request, parts).await)
}

fn head(request: &Request, method: &str, target: &str) -> http::Result<http::request::Parts> {
    let mut head = http::Request::builder().method(method).uri(target);
    if let Some(slot) = head.headers_mut() {
        *slot = headers(request);
    }
    Ok(head.body(())?.into_parts().0)
}

fn peer(headers: &HeaderMap) -> Option<std::net::IpAddr> {
    headers.get(PEER_HEADER).and_then(|value| value.to_str().ok()?.parse().ok())
}

async fn answered(
    service: &Service,
    context: &Context,
    request: &Request,
    parts: http::request::Parts,
) -> Answer<Bytes> {
    let engine = &service.engine;
    if let Some(response) = engine.refuse_by_head(&parts.headers) {
        return response;
    }
    let body = match request.body() {
        None => Bytes::new(),
        Some(stream) => match read(stream, engine.admits_body(&parts)).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => return engine.body_too_large(),
            Err(Unread::Late) => return engine.request_timeout(),
        },
    };
    let (peer, only_reads) = (peer(&parts.headers), engine.only_reads(&parts));
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    let incoming = Incoming { request: http::Request::from_parts(parts, body), peer };
    if only_reads {
        return engine.handle(incoming).await;
    }
    let (done, answer) = oneshot::channel();
    let working = service.clone();
    context.wait_until(async move {
        // The client may be gone by then.
        if let Err(response) = done.send(working.engine.handle(incoming).await) {
            log(&response, method.as_str(), &path);
            working.send_wakes().await;
        }
    });
    answer.await.unwrap_or_else(|_| engine.broken("the platform stopped a request".to_owned()))
}

/// `https://host/path?query`, before and from the path.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..].find(['/', '?']).map_or(url.len(), |at| host + at);
    (&url[..path], &url[path..])
}

/// The headers as one text: asking for each name and value would cross the border to JavaScript five times a header.
fn headers(request: &Request) -> HeaderMap {
    let pairs = Array::from(request.headers().as_ref());
    let text = JSON::stringify(&pairs).map(String::from).unwrap_or_default();
    let pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = serde_json::from_str(&text).unwrap_or_default();
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in &pairs {
        // What is no header by our reading is none that the engine looks at.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        {
            headers.append(name, value);
        }
    }
    headers
}

enum Unread {
    TooLarge,
    Late,
}

/// Reads a body within the limit; of one that cannot matter nothing is kept.
async fn read(stream: ReadableStream, matters: bool) -> Result<Bytes, Unread> {
    let collect = async {
        let mut chunks = Body::new(stream);
        let mut body = BytesMut::new();
        let mut bytes = 0;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Unread::Late)?;
            bytes += chunk.len();
            if bytes > BODY_BYTES_MAX {
                return Err(Unread::TooLarge);
            }
            if matters {
                body.extend_from_slice(&chunk);
            }
        }
        Ok(body.freeze())
    };
    match select(pin!(collect), Delay::from(Duration::from_millis(REQUEST_READ_MS))).await {
        Either::Left((body, _)) => body,
        Either::Right(_) => Err(Unread::Late),
    }
}

/// `stream` stands in for the body.
fn to_platform(response: Answer<Bytes>, stream: Option<&ReadableStream>) -> worker::Result<Response> {
    let (parts, body) = response.into_parts();
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

/// There is no engine to answer: a setting or a binding is missing. Which one is for the log, and by
/// its name for whoever deploys.
fn unconfigured(detail: &str) -> worker::Result<Response> {
    console_error!("{detail}");
    let name = detail.split(':').next().unwrap_or_default();
    let message = format!("This service is not set up yet ({name}). Its log says what is missing.");
    let error = Error::new(Code::Unavailable, message);
    let mut response = Answer::new(Bytes::from(error.to_json("").to_string()));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    to_platform(response, None)
}

/// Our own failures are logged with their private detail; the platform's log has the rest. Headers and
/// bodies never are: they hold keys and secrets.
fn log(response: &Answer<Bytes>, method: &str, path: &str) {
    let Some(Incident(detail)) = response.extensions().get::<Incident>() else { return };
    let status = response.status().as_u16();
    let request_id = response.headers().get("x-request-id").and_then(|value| value.to_str().ok());
    let request_id = request_id.unwrap_or_default();
    let path = without_token(path);
    console_error!("a request failed on our side: {request_id} {method} {path} {status}: {detail}");
}
