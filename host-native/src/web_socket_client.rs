//! Outgoing WebSockets: the handshake (RFC 6455, 4.1) by reqwest, which brings TLS and the roots, the frames by tungstenite.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{self, SplitSink};
use futures_util::{SinkExt, StreamExt};
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Upgraded};
use sidetone_engine::base::limits::{CLIENT_MESSAGE_BYTES_MAX, CLIENT_QUEUE_BYTES_MAX, SOCKET_CONNECT_MS};
use sidetone_engine::ports::{
    BoxFuture, ClientReceived, ClientSender, ClientSocket, EXCHANGE_ERROR_BYTES_MAX, Egress, ExchangeFailure,
    NotSent, SocketMessage, SocketRequest, WebSockets,
};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::metrics::Metrics;
use crate::open_files::{Outgoing, OutgoingPlace};
use crate::outside::{Exchange, causes};

/// Bytes of a read. The library clears a buffer of this size before each read and keeps it for each connection; most
/// messages with audio have a few hundred bytes.
pub const READ_BYTES: usize = 4 * 1024;

type Stream = WebSocketStream<Upgraded>;

/// Opens WebSockets.
pub struct WebSocketClient {
    client: Client,
    outgoing: Outgoing,
    metrics: Arc<Metrics>,
}

impl WebSocketClient {
    /// Builds the client. Each socket takes a place of `outgoing`.
    pub fn new(outgoing: Outgoing) -> Result<Self, reqwest::Error> {
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(Policy::none()).no_proxy().build()?;
        Ok(Self { client, outgoing, metrics: Arc::default() })
    }

    /// Counts and measures its sockets in `metrics`.
    pub fn measured(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    async fn open(&self, request: SocketRequest) -> Result<ClientSocket, ExchangeFailure> {
        let limit = Duration::from_millis(SOCKET_CONNECT_MS);
        let place = self.outgoing.place(Egress::Operator, "", limit).await.ok_or(ExchangeFailure::Timeout)?;
        // Both halves of the socket hold it.
        let place = Arc::new(place);
        let key = generate_key();
        let mut outgoing = self
            .client
            .get(request.http_url())
            .header(CONNECTION, "Upgrade")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        for (name, value) in request.http_headers() {
            outgoing = outgoing.header(name, value);
        }
        let response = outgoing.send().await.map_err(broken)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(rejected(response).await);
        }
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(|value| value.as_bytes());
        if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(ExchangeFailure::Broken("the server's handshake is wrong".to_owned()));
        }
        let stream = response.upgrade().await.map_err(broken)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(CLIENT_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(CLIENT_MESSAGE_BYTES_MAX))
            .read_buffer_size(READ_BYTES);
        let (sink, received) =
            WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await.split();
        let received = stream::unfold(Some((received, place.clone())), async |received| {
            let (mut received, place) = received?;
            loop {
                let next = match received.next().await {
                    Some(Ok(Message::Text(text))) => SocketMessage::Text(text.as_str().to_owned()),
                    Some(Ok(Message::Binary(bytes))) => SocketMessage::Binary(bytes),
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                    Some(Ok(Message::Close(Some(frame)))) => {
                        let (code, reason) = (frame.code.into(), frame.reason.to_string());
                        return Some((ClientReceived::Closed { code, reason }, None));
                    }
                    Some(Err(Error::Capacity(_))) => return Some((ClientReceived::TOO_LARGE, None)),
                    Some(Ok(Message::Close(None)) | Err(_)) | None => {
                        return Some((ClientReceived::lost(), None));
                    }
                };
                return Some((ClientReceived::Message(next), Some((received, place))));
            }
        });
        Ok(ClientSocket { sender: Box::new(Sender::start(sink, place)), received: Box::pin(received) })
    }
}

impl WebSockets for WebSocketClient {
    fn connect(&self, request: SocketRequest) -> BoxFuture<'_, Result<ClientSocket, ExchangeFailure>> {
        Box::pin(async move {
            let limit = Duration::from_millis(SOCKET_CONNECT_MS);
            let mut seen = Exchange::begin(&self.metrics, &request.party, "websocket", &request.url);
            let opened = tokio::time::timeout(limit, self.open(request)).await;
            let socket = opened.unwrap_or(Err(ExchangeFailure::Timeout));
            let ClientSocket { sender, received } = socket.inspect_err(|failure| seen.not_opened(failure))?;
            seen.answered(StatusCode::SWITCHING_PROTOCOLS.as_u16());
            let received = received.inspect(move |received| {
                if let ClientReceived::Closed { code, .. } = received {
                    seen.closed(*code);
                }
            });
            Ok(ClientSocket { sender, received: Box::pin(received) })
        })
    }
}

/// The queue of a socket; a task writes what is in it, and closes the socket when the queue ends.
struct Sender {
    queue: mpsc::UnboundedSender<Message>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl Sender {
    fn start(mut sink: SplitSink<Stream, Message>, place: Arc<OutgoingPlace>) -> Self {
        let (queue, mut waiting) = mpsc::unbounded_channel::<Message>();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let counter = waiting_bytes.clone();
        tokio::spawn(async move {
            while let Some(message) = waiting.recv().await {
                let bytes = message.len();
                if sink.send(message).await.is_err() {
                    return;
                }
                counter.fetch_sub(bytes, Ordering::Relaxed);
            }
            let _ = sink.close().await;
            drop(place);
        });
        Self { queue, waiting_bytes }
    }
}

impl ClientSender for Sender {
    fn send(&mut self, message: SocketMessage) -> Result<(), NotSent> {
        let message = match message {
            SocketMessage::Text(text) => Message::text(text),
            SocketMessage::Binary(bytes) => Message::binary(bytes),
        };
        let bytes = message.len();
        if self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > CLIENT_QUEUE_BYTES_MAX {
            return Err(NotSent::QueueFull);
        }
        self.queue.send(message).map_err(|_| NotSent::Closed)
    }
}

async fn rejected(mut response: Response) -> ExchangeFailure {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while body.len() < EXCHANGE_ERROR_BYTES_MAX
        && let Ok(Some(piece)) = response.chunk().await
    {
        body.extend_from_slice(&piece);
    }
    ExchangeFailure::rejected(status, &body)
}

fn broken(error: reqwest::Error) -> ExchangeFailure {
    match error.is_timeout() {
        true => ExchangeFailure::Timeout,
        false => ExchangeFailure::Broken(causes(error)),
    }
}

#[cfg(test)]
mod tests {
    use sidetone_engine::ports::Party;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_message_that_is_too_large_ends_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            for bytes in [CLIENT_MESSAGE_BYTES_MAX, CLIENT_MESSAGE_BYTES_MAX + 1] {
                // The client goes away in the middle of the second one.
                let _ = socket.send(Message::binary(vec![0; bytes])).await;
            }
        });
        let request = SocketRequest {
            url,
            headers: Vec::new(),
            subprotocols: Vec::new(),
            party: Party::speech("test"),
        };
        let socket = WebSocketClient::new(Outgoing::default()).unwrap().connect(request).await.unwrap();
        let received: Vec<_> = socket.received.collect().await;
        let [ClientReceived::Message(SocketMessage::Binary(largest)), ended] = received.as_slice() else {
            panic!("{} arrived", received.len());
        };
        assert_eq!((largest.len(), ended), (CLIENT_MESSAGE_BYTES_MAX, &ClientReceived::TOO_LARGE));
        server.await.unwrap();
    }
}
