//! Outgoing WebSockets over the platform's `fetch`: a request with `Upgrade: websocket`, which takes headers of ours.
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures_channel::mpsc;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use sidetone_engine::base::limits::SOCKET_CONNECT_MS;
use sidetone_engine::ports::{
    BoxFuture, ClientReceived, ClientSender, ClientSocket, EXCHANGE_ERROR_BYTES_MAX, ExchangeFailure,
    NotSent, SocketMessage, SocketRequest, WebSockets,
};
use worker::js_sys::Reflect;
use worker::wasm_bindgen::JsValue;
use worker::wasm_bindgen_futures::spawn_local;
use worker::{
    Delay, Fetch, Headers, Method, Request, RequestInit, RequestRedirect, Response, WebSocket, WebsocketEvent,
};

/// Messages that wait to be read. A provider that sends more at once is cut off.
const RECEIVED_MAX: usize = 1_024;
/// The status of an opened socket.
const SWITCHING_PROTOCOLS: u16 = 101;

/// The platform's sockets.
pub struct PlatformWebSockets;

impl WebSockets for PlatformWebSockets {
    fn connect(&self, request: SocketRequest) -> BoxFuture<'_, Result<ClientSocket, ExchangeFailure>> {
        Box::pin(async move {
            let late = Delay::from(Duration::from_millis(SOCKET_CONNECT_MS));
            match select(Box::pin(open(request)), late).await {
                Either::Left((opened, _)) => opened,
                Either::Right(_) => Err(ExchangeFailure::Timeout),
            }
        })
    }
}

async fn open(request: SocketRequest) -> Result<ClientSocket, ExchangeFailure> {
    let mut response = Fetch::Request(outgoing(&request).map_err(broken)?).send().await.map_err(broken)?;
    let status = response.status_code();
    if status != SWITCHING_PROTOCOLS {
        return Err(ExchangeFailure::rejected(status, &beginning_of_body(&mut response).await));
    }
    let socket = response.websocket().ok_or_else(|| ExchangeFailure::Broken("no socket".to_owned()))?;
    let (queue, received) = mpsc::channel(RECEIVED_MAX);
    let mut receiving = Box::pin(receive(socket.clone(), queue));
    // Until its first wait, which is after the platform's socket was accepted: nothing can be sent before.
    let is_over = poll_fn(|context| Poll::Ready(receiving.as_mut().poll(context).is_ready())).await;
    if is_over {
        return Err(ExchangeFailure::Broken("the socket was not accepted".to_owned()));
    }
    spawn_local(receiving);
    Ok(ClientSocket { sender: Box::new(Sender(socket)), received: Box::pin(received) })
}

/// Why a provider refuses, as far as it is read.
async fn beginning_of_body(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    if let Ok(mut pieces) = response.stream() {
        while body.len() < EXCHANGE_ERROR_BYTES_MAX
            && let Some(Ok(piece)) = pieces.next().await
        {
            body.extend(piece);
        }
    }
    body
}

/// Passes on what arrives, until the socket or its reader has gone.
async fn receive(socket: WebSocket, mut queue: mpsc::Sender<ClientReceived>) {
    let Ok(mut events) = socket.events() else { return };
    // Otherwise the platform delivers binary messages as blobs, which can only be read asynchronously.
    let platform: &JsValue = socket.as_ref().as_ref();
    if Reflect::set(platform, &"binaryType".into(), &"arraybuffer".into()).is_err()
        || socket.accept().is_err()
    {
        return;
    }
    while let Some(event) = events.next().await {
        let received = match event {
            Ok(WebsocketEvent::Message(message)) => ClientReceived::message(match message.text() {
                Some(text) => SocketMessage::Text(text),
                None => SocketMessage::Binary(message.bytes().unwrap_or_default().into()),
            }),
            Ok(WebsocketEvent::Close(close)) => {
                ClientReceived::Closed { code: close.code(), reason: close.reason() }
            }
            Err(_) => ClientReceived::lost(),
        };
        let is_over = matches!(received, ClientReceived::Closed { .. });
        if queue.try_send(received).is_err() || is_over {
            break;
        }
    }
    let _ = socket.close(Some(1000), Some(""));
}

/// Closes the socket when it is dropped.
struct Sender(WebSocket);

impl ClientSender for Sender {
    fn send(&mut self, message: SocketMessage) -> Result<(), NotSent> {
        match message {
            SocketMessage::Text(text) => self.0.send_with_str(text),
            SocketMessage::Binary(bytes) => self.0.send_with_bytes(bytes),
        }
        .map_err(|_| NotSent::Closed)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.close(Some(1000), Some(""));
    }
}

fn broken(error: worker::Error) -> ExchangeFailure {
    ExchangeFailure::Broken(error.to_string())
}

/// `fetch` opens sockets at `https` and `http` addresses.
fn outgoing(request: &SocketRequest) -> worker::Result<Request> {
    let headers = Headers::new();
    for (name, value) in request.http_headers() {
        headers.append(name, &value)?;
    }
    let mut init = RequestInit::new();
    init.with_method(Method::Get).with_headers(headers).with_redirect(RequestRedirect::Manual);
    Request::new_with_init(&request.http_url(), &init)
}
