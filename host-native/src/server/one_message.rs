//! A stream that ends with an error when one message takes too many bytes, however many frames it has.
use std::io::{Error, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The stream, and what was read of the current message.
pub struct OneMessage<S> {
    stream: S,
    bytes: usize,
    bytes_max: usize,
}

impl<S> OneMessage<S> {
    /// A message may take `bytes_max`, and what one read brings beyond it.
    pub const fn new(stream: S, bytes_max: usize) -> Self {
        Self { stream, bytes: 0, bytes_max }
    }

    /// The next bytes belong to another message, unless this one took too many.
    pub fn message_is_read(&mut self) {
        if !self.is_over() {
            self.bytes = 0;
        }
    }

    /// Whether a message took too many bytes.
    pub const fn is_over(&self) -> bool {
        self.bytes > self.bytes_max
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for OneMessage<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if self.is_over() {
            return Poll::Ready(Err(Error::other("a message has too many frames")));
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.bytes += buffer.filled().len().saturating_sub(before);
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for OneMessage<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
