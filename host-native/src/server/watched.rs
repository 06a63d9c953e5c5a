//! A client's stream, watched until a request's head is complete: how long that takes, and what is said when it is too
//! large. hyper has one timeout for idle connections and for unfinished heads, and refuses a large head with an empty
//! response.
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use sidetone_engine::base::fair_pool::Share;
use sidetone_engine::engine::Engine;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::connections::{Phase, Place, State};
use crate::log;

/// How much of a refused head is read and discarded, so that the client reads the response before the connection breaks.
const LINGER_BYTES_MAX: usize = 1024 * 1024;
/// The time for that.
const LINGER_MS: u64 = 2_000;
/// The beginning of a head takes no memory beside that of its connection.
pub(super) const HEAD_BYTES_FREE: u64 = 8 * 1024;
/// How hyper's response to a head that is too large begins.
const TOO_LARGE: &[u8] = b"HTTP/1.1 431 ";

/// How long a connection may take for what it does.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the first byte of a head to its last.
    pub head: Duration,
    /// Without a byte between requests.
    pub idle: Duration,
}

/// A stream that ends when a head is late.
pub struct Watched<S> {
    stream: S,
    place: Arc<Place>,
    engine: Engine,
    limits: Limits,
    /// Runs out when `timed` has lasted too long.
    timer: Option<Pin<Box<Sleep>>>,
    timed: Option<State>,
    /// What has arrived since the last request, and the memory for it.
    head_bytes: u64,
    head: Option<Share<IpAddr>>,
    refusal: Option<Refusal>,
}

/// Our response to a head that is too large.
struct Refusal {
    response: Bytes,
    shut_down: bool,
    left_bytes: usize,
}

impl<S> Watched<S> {
    /// Watches the stream of a connection.
    pub fn new(stream: S, place: Arc<Place>, engine: Engine, limits: Limits) -> Self {
        Self {
            stream,
            place,
            engine,
            limits,
            timer: None,
            timed: None,
            head_bytes: 0,
            head: None,
            refusal: None,
        }
    }

    /// Ready when the client has taken too long.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = self.place.state();
        let limit = match state.phase() {
            Phase::Busy => return Poll::Pending,
            Phase::Head => self.limits.head,
            Phase::Silent | Phase::Idle => self.limits.idle,
        };
        if self.timed != Some(state) {
            self.timed = Some(state);
            self.set_timer(limit);
        }
        match &mut self.timer {
            Some(timer) => ready!(timer.as_mut().poll(context)),
            None => return Poll::Pending,
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client sends no request")))
    }

    /// Takes memory for a head. An address whose unfinished heads take too much loses the next one.
    fn count_head(&mut self, bytes: u64) -> io::Result<()> {
        if self.place.state().phase() == Phase::Busy {
            (self.head_bytes, self.head) = (0, None);
            return Ok(());
        }
        self.head_bytes += bytes;
        if self.head_bytes > HEAD_BYTES_FREE {
            self.head = self.place.take_head(self.head.take(), bytes);
            if self.head.is_none() {
                return Err(io::Error::new(io::ErrorKind::OutOfMemory, "too many unfinished heads"));
            }
        }
        Ok(())
    }

    fn set_timer(&mut self, after: Duration) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(Instant::now() + after),
            none => *none = Some(Box::pin(tokio::time::sleep(after))),
        }
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    /// Sends our response in place of hyper's. `None` when there is nothing to replace.
    fn replace(
        &mut self,
        context: &mut Context<'_>,
        begins: &[u8],
        length: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        if self.refusal.is_none() {
            // hyper answers itself only while no request is open.
            if self.place.state().phase() == Phase::Busy || !begins.starts_with(TOO_LARGE) {
                return None;
            }
            let response = wire(refusal(&self.engine));
            self.refusal = Some(Refusal { response, shut_down: false, left_bytes: LINGER_BYTES_MAX });
        }
        let refusal = self.refusal.as_mut()?;
        while !refusal.response.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &refusal.response) {
                Poll::Ready(Ok(0)) => return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into()))),
                Poll::Ready(Ok(written)) => refusal.response.advance(written),
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => return Some(Poll::Pending),
            }
        }
        Some(Poll::Ready(Ok(length)))
    }
}

/// The response to a large head, which is logged here: hyper never had a request.
fn refusal(engine: &Engine) -> http::Response<Bytes> {
    let (response, record) = engine.refuse_large_head().into_parts();
    log::request(&record, Duration::ZERO);
    response
}

/// A response on the wire, after which the connection ends.
fn wire(response: http::Response<Bytes>) -> Bytes {
    let (head, body) = response.into_parts();
    let reason = head.status.canonical_reason().unwrap_or_default();
    let mut wire = BytesMut::from(format!("HTTP/1.1 {} {reason}\r\n", head.status.as_u16()).as_bytes());
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            wire.extend_from_slice(part);
        }
    }
    wire.extend_from_slice(format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes());
    wire.extend_from_slice(&body);
    wire.freeze()
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match Pin::new(&mut this.stream).poll_read(context, buffer) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                let bytes = buffer.filled().len() - before;
                if bytes > 0 {
                    this.place.received();
                }
                Poll::Ready(this.count_head(bytes as u64))
            }
            Poll::Pending => this.poll_late(context),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.replace(context, bytes, bytes.len()) {
            Some(written) => written,
            None => Pin::new(&mut this.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let begins = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
        match this.replace(context, begins, parts.iter().map(|part| part.len()).sum()) {
            Some(written) => written,
            None => Pin::new(&mut this.stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    /// After a refusal, reads what the client still sends: closing earlier would reset the connection.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(refusal) = &mut this.refusal else {
            return Pin::new(&mut this.stream).poll_shutdown(context);
        };
        if !refusal.shut_down {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            refusal.shut_down = true;
            this.timer = Some(Box::pin(tokio::time::sleep(Duration::from_millis(LINGER_MS))));
        }
        while refusal.left_bytes > 0 {
            let mut space = [0; 4096];
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut this.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    refusal.left_bytes = refusal.left_bytes.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => break,
                Poll::Pending => match &mut this.timer {
                    Some(timer) => {
                        ready!(timer.as_mut().poll(context));
                        break;
                    }
                    None => break,
                },
            }
        }
        Poll::Ready(Ok(()))
    }
}
