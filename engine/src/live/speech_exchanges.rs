//! Performs what the protocols of speech providers ask for, over the ports.
use std::collections::BTreeMap;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{self, SelectAll, Stream};

use crate::ports::{
    BoxStream, ClientReceived, ClientSender, HttpError, HttpRequest, NotSent, Ports, SocketRequest,
};
use crate::speech::exchange::{
    Arrival, EXCHANGE_ERROR_BYTES_MAX, ExchangeFailure, ExchangeId, SpeechService, Transmit,
};

/// The exchanges with the speech providers of one conversation.
pub(super) struct SpeechExchanges<'a> {
    /// `None` where no provider is reached.
    ports: Option<&'a Ports>,
    arrivals: SelectAll<BoxStream<'a, Step>>,
    running: BTreeMap<(SpeechService, ExchangeId), Running>,
}

struct Running {
    abort: AbortHandle,
    /// Of an open socket.
    sender: Option<Box<dyn ClientSender>>,
}

/// What one exchange produces.
struct Step {
    key: (SpeechService, ExchangeId),
    arrival: Arrival,
    /// With [`Arrival::Opened`].
    sender: Option<Box<dyn ClientSender>>,
}

impl<'a> SpeechExchanges<'a> {
    pub(super) fn new(ports: &'a Ports) -> Self {
        Self { ports: Some(ports), arrivals: SelectAll::new(), running: BTreeMap::new() }
    }

    /// For voices without a provider.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { ports: None, arrivals: SelectAll::new(), running: BTreeMap::new() }
    }

    /// Does what a protocol asks for. An error of a socket arrives as any other.
    pub(super) fn perform(&mut self, service: SpeechService, transmit: Transmit) {
        let Some(ports) = self.ports else { return };
        match transmit {
            Transmit::Request { id, request } => {
                let steps = request_steps(ports, request);
                self.begin((service, id), steps.map(|arrival| (arrival, None)).boxed_here());
            }
            Transmit::Connect { id, request } => {
                let steps = socket_steps(ports, request);
                self.begin((service, id), steps.boxed_here());
            }
            Transmit::Send { id, message } => {
                let key = (service, id);
                let Some(running) = self.running.get_mut(&key) else { return };
                let Some(sender) = running.sender.as_mut() else { return };
                match sender.send(message) {
                    Ok(()) => {}
                    // How it was closed arrives, after what was received before.
                    Err(NotSent::Closed) => running.sender = None,
                    Err(NotSent::QueueFull) => {
                        self.end(key);
                        let failure = ExchangeFailure::Broken("the server reads too slowly".to_owned());
                        let step = Step { key, arrival: Arrival::Failed(failure), sender: None };
                        self.arrivals.push(stream::iter([step]).boxed_here());
                    }
                }
            }
            Transmit::Drop { id } => self.end((service, id)),
        }
    }

    /// The next arrival; pending while there is none.
    pub(super) async fn next(&mut self) -> (SpeechService, ExchangeId, Arrival) {
        loop {
            match self.arrivals.next().await {
                Some(Step { key, arrival, sender }) => {
                    if let (Some(sender), Some(running)) = (sender, self.running.get_mut(&key)) {
                        running.sender = Some(sender);
                    }
                    if is_last(&arrival) {
                        self.running.remove(&key);
                    }
                    return (key.0, key.1, arrival);
                }
                None => std::future::pending().await,
            }
        }
    }

    fn begin(
        &mut self,
        key: (SpeechService, ExchangeId),
        steps: BoxStream<'a, (Arrival, Option<Box<dyn ClientSender>>)>,
    ) {
        let (abort, registration) = AbortHandle::new_pair();
        let steps = steps.map(move |(arrival, sender)| Step { key, arrival, sender });
        self.arrivals.push(Abortable::new(steps, registration).boxed_here());
        self.running.insert(key, Running { abort, sender: None });
    }

    fn end(&mut self, key: (SpeechService, ExchangeId)) {
        if let Some(running) = self.running.remove(&key) {
            running.abort.abort();
        }
    }
}

/// Boxes a stream as [`BoxStream`], which is `Send` on hosts with threads only.
trait BoxedHere<'a>: Stream {
    fn boxed_here(self) -> BoxStream<'a, Self::Item>;
}

#[cfg(not(target_arch = "wasm32"))]
impl<'a, S: Stream + Send + 'a> BoxedHere<'a> for S {
    fn boxed_here(self) -> BoxStream<'a, Self::Item> {
        Box::pin(self)
    }
}

#[cfg(target_arch = "wasm32")]
impl<'a, S: Stream + 'a> BoxedHere<'a> for S {
    fn boxed_here(self) -> BoxStream<'a, Self::Item> {
        Box::pin(self)
    }
}

fn request_steps(ports: &Ports, request: HttpRequest) -> impl Stream<Item = Arrival> {
    stream::once(ports.http.open(request)).flat_map(|opened| match opened {
        Ok(http) => {
            let head = Arrival::Head { status: http.status, headers: http.headers };
            let body = http.body.map(|piece| match piece {
                Ok(bytes) => Arrival::Body(bytes),
                Err(error) => Arrival::Failed(failure(error)),
            });
            let body = until_over(body.chain(stream::iter([Arrival::End])));
            stream::iter([head]).chain(body).left_stream()
        }
        Err(error) => stream::iter([Arrival::Failed(failure(error))]).right_stream(),
    })
}

/// The arrivals to the end of their exchange: nothing follows it.
fn until_over(arrivals: impl Stream<Item = Arrival>) -> impl Stream<Item = Arrival> {
    arrivals.scan(false, |is_over, arrival| {
        let next = (!*is_over).then_some(arrival);
        *is_over = next.as_ref().is_none_or(is_last);
        std::future::ready(next)
    })
}

const fn is_last(arrival: &Arrival) -> bool {
    matches!(arrival, Arrival::End | Arrival::Closed { .. } | Arrival::Failed(_))
}

fn failure(error: HttpError) -> ExchangeFailure {
    match error {
        HttpError::Timeout => ExchangeFailure::Timeout,
        HttpError::TooLarge(_) => ExchangeFailure::TooLarge,
        HttpError::Refused => ExchangeFailure::Broken("the address is not allowed".to_owned()),
        HttpError::Failed(why) => ExchangeFailure::Broken(why),
    }
}

fn socket_steps(
    ports: &Ports,
    request: SocketRequest,
) -> impl Stream<Item = (Arrival, Option<Box<dyn ClientSender>>)> {
    stream::once(ports.web_sockets.connect(request)).flat_map(|connected| match connected {
        Ok(socket) => {
            let opened = stream::iter([(Arrival::Opened, Some(socket.sender))]);
            let received = socket.received.map(|received| match received {
                ClientReceived::Message(message) => Arrival::Message(message),
                ClientReceived::Closed { code, reason } => Arrival::Closed { code, reason },
            });
            // A host that cannot keep what the server sends stops to receive.
            let lost = ExchangeFailure::Broken("the server sent more than can be read".to_owned());
            let received = until_over(received.chain(stream::iter([Arrival::Failed(lost)])));
            opened.chain(received.map(|arrival| (arrival, None))).left_stream()
        }
        Err(ExchangeFailure::Rejected { status, mut body }) => {
            body.truncate(body.floor_char_boundary(EXCHANGE_ERROR_BYTES_MAX));
            let failure = ExchangeFailure::Rejected { status, body };
            stream::iter([(Arrival::Failed(failure), None)]).right_stream()
        }
        Err(failure) => stream::iter([(Arrival::Failed(failure), None)]).right_stream(),
    })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn an_exchange_ends_once() {
        let lost = || Arrival::Failed(ExchangeFailure::Broken("lost".into()));
        let closed = || Arrival::Closed { code: 1000, reason: String::new() };
        let until = |arrivals: Vec<Arrival>| {
            until_over(stream::iter(arrivals)).collect::<Vec<_>>().now_or_never().unwrap()
        };
        assert_eq!(until(vec![Arrival::Opened, closed(), lost()]), [Arrival::Opened, closed()]);
        assert_eq!(until(vec![lost(), Arrival::End]), [lost()]);
        // A host that stops to receive has told no end.
        assert_eq!(until(vec![Arrival::Opened, lost()]), [Arrival::Opened, lost()]);
    }
}
