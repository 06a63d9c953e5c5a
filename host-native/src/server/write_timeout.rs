//! A stream with a timeout for writes, so that clients that read their responses too slowly are disconnected.
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// What a client must read while a response waits for it.
#[derive(Debug, Clone, Copy)]
pub struct ReadingFloor {
    /// At least this much in each window.
    pub bytes: u64,
    /// A window begins when a write has to wait, and ends when everything was written.
    pub window: Duration,
}

/// Whether the floor applies. Once it is off, a client must only read something in each window.
#[derive(Debug, Clone)]
pub struct FloorSwitch(Arc<AtomicBool>);

impl FloorSwitch {
    /// The floor applies until it is turned off.
    pub fn on() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// For a WebSocket: a conversation sends little, and has limits of its own.
    pub fn turn_off(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Fails writes whose client reads too slowly.
pub struct WriteTimeout<S> {
    stream: S,
    floor: ReadingFloor,
    switch: FloorSwitch,
    /// While a response waits for the client.
    waiting: Option<Window>,
    /// Whether the last write had to wait.
    is_blocked: bool,
}

struct Window {
    ends: Pin<Box<Sleep>>,
    written: u64,
}

impl<S> WriteTimeout<S> {
    /// Wraps a stream; `switch` turns the floor off.
    pub fn new(stream: S, floor: ReadingFloor, switch: FloorSwitch) -> Self {
        Self { stream, floor, switch, waiting: None, is_blocked: false }
    }

    fn within(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.is_blocked = progress.is_pending();
        if let Poll::Ready(written) = progress {
            if let (Some(window), Ok(bytes)) = (&mut self.waiting, &written) {
                window.written = window.written.saturating_add(*bytes as u64);
            }
            return Poll::Ready(written);
        }
        let length = self.floor.window;
        let window = self
            .waiting
            .get_or_insert_with(|| Window { ends: Box::pin(tokio::time::sleep(length)), written: 0 });
        while window.ends.as_mut().poll(context).is_ready() {
            let least = if self.switch.is_on() { self.floor.bytes } else { 1 };
            if window.written < least {
                let message = "the client reads its responses too slowly";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
            }
            window.written = 0;
            window.ends.as_mut().reset(Instant::now() + length);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.within(context, progress)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.within(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Flushing a socket always succeeds: while a write waits, that says nothing about the client. Otherwise
        // everything was written.
        if !this.is_blocked {
            this.waiting = None;
        }
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const WINDOW: Duration = Duration::from_millis(400);

    fn pair(least: u64) -> (WriteTimeout<DuplexStream>, DuplexStream) {
        let (near, far) = duplex(8);
        (WriteTimeout::new(near, ReadingFloor { bytes: least, window: WINDOW }, FloorSwitch::on()), far)
    }

    /// Reads 8 bytes, `times` times, with a pause before each.
    fn reads(mut far: DuplexStream, pause: Duration, times: usize) -> tokio::task::JoinHandle<DuplexStream> {
        tokio::spawn(async move {
            for _ in 0..times {
                tokio::time::sleep(pause).await;
                far.read_exact(&mut [0; 8]).await.unwrap();
            }
            far
        })
    }

    #[tokio::test]
    async fn a_stalled_write_fails() {
        let (mut stream, mut far) = pair(8);
        stream.write_all(&[0; 8]).await.unwrap();
        let stuck = stream.write_all(&[0; 8]).await.unwrap_err();
        assert_eq!(stuck.kind(), io::ErrorKind::TimedOut);
        far.read_exact(&mut [0; 8]).await.unwrap();
    }

    #[tokio::test]
    async fn a_slow_reader_above_the_floor_is_no_error() {
        let (mut stream, far) = pair(16);
        let reader = reads(far, WINDOW / 10, 64);
        stream.write_all(&[0; 512]).await.unwrap();
        reader.await.unwrap();
    }

    #[tokio::test]
    async fn a_reader_below_the_floor_is_cut_off_although_it_reads() {
        let (mut stream, far) = pair(1_000);
        let reader = reads(far, WINDOW / 10, 64);
        let error = stream.write_all(&[0; 512]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        reader.abort();
    }

    #[tokio::test]
    async fn a_reader_that_is_asked_little_is_no_error() {
        let (mut stream, far) = pair(1_000);
        let reader = reads(far, WINDOW / 10, 30);
        for _ in 0..30 {
            // Each message is written before the next one.
            stream.write_all(&[0; 8]).await.unwrap();
            stream.flush().await.unwrap();
        }
        reader.await.unwrap();
    }

    #[tokio::test]
    async fn without_the_floor_only_a_stall_is_an_error() {
        let (mut stream, far) = pair(1_000);
        stream.switch.turn_off();
        let reader = reads(far, WINDOW / 10, 30);
        stream.write_all(&[0; 240]).await.unwrap();
        let _far = reader.await.unwrap();
        let stuck = stream.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(stuck.kind(), io::ErrorKind::TimedOut);
    }
}
