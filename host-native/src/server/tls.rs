//! TLS in front of HTTP: certificate and key of files that are read again when they change. No client waits for that, and
//! files that do not fit together leave the earlier ones in use.
use std::fs;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sidetone_engine::base::setting::SettingError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::write_timeout::WriteTimeout;
use crate::settings::{TLS_CERT, TLS_KEY, TlsFiles};

/// How often the files are looked at.
const LOOK_SECONDS: u64 = 10;
/// The memory of an unfinished handshake: what a client may send before it is refused.
pub(super) const HANDSHAKE_BYTES: u64 = 68 * 1024;
/// The first byte of every connection with TLS: a record of the handshake (RFC 8446, 5.1).
const HANDSHAKE_RECORD: u8 = 22;
/// To whoever speaks plain HTTP here.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 43\r\nconnection: close\r\n\r\nThis port speaks TLS: use https:// (wss://)";

/// The certificate in use, and the files that it comes from.
pub struct Tls {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
}

/// When both files were last changed, and how large they are.
type Looks = [Option<(SystemTime, u64)>; 2];

impl Tls {
    /// Reads the files. The error names the setting and the path.
    pub fn load(files: TlsFiles) -> Result<Self, SettingError> {
        let current = RwLock::new(read(&files)?);
        Ok(Self { files, current })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }

    /// Reads the files again whenever they change, and at SIGHUP.
    pub async fn follow(self: Arc<Self>) {
        let mut seen = looks(&self.files);
        let mut hang_up = HangUp::new();
        let mut told = String::new();
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(LOOK_SECONDS)) => false,
                () = hang_up.received() => true,
            };
            let now = looks(&self.files);
            if now == seen && !asked {
                continue;
            }
            match read(&self.files) {
                Ok(config) => {
                    // Of two files that are replaced one after the other, the second is another change.
                    seen = now;
                    told.clear();
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
                    tracing::info!("the certificate was read again, and is used for new connections");
                }
                Err(error) => {
                    // Again at the next look: who may read a file is not looked at.
                    seen = Looks::default();
                    let problem = error.to_string();
                    if asked || problem != told {
                        tracing::error!(%error, "the certificate has changed and cannot be used; the earlier one stays");
                    }
                    told = problem;
                }
            }
        }
    }
}

fn looks(files: &TlsFiles) -> Looks {
    [&files.cert, &files.key].map(|path| {
        let found = fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}

/// Reads certificate chain and key, and checks that they belong together.
fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, SettingError> {
    let wrong = |name, path: &Path, what: String| SettingError {
        name,
        message: format!("{} {what}", path.display()),
    };
    let unread = |name, path: &Path, error: PemError, what: &str| match error {
        PemError::Io(error) => wrong(
            name,
            path,
            format!("cannot be read ({error}); name a file that the user of the service may read"),
        ),
        PemError::NoItemsFound => wrong(name, path, format!("has no {what} in it; it must be PEM text")),
        error => wrong(name, path, format!("is not PEM text with a {what} in it ({error})")),
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| unread(TLS_CERT, &files.cert, error, "certificate (-----BEGIN CERTIFICATE-----)"))?;
    if chain.is_empty() {
        let what = "certificate (-----BEGIN CERTIFICATE-----)";
        return Err(unread(TLS_CERT, &files.cert, PemError::NoItemsFound, what));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unread(TLS_KEY, &files.key, error, "private key (-----BEGIN PRIVATE KEY-----)"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => wrong(
            TLS_KEY,
            &files.key,
            format!(
                "is not the key of the certificate in {}; both come from the same request",
                files.cert.display()
            ),
        ),
        error => wrong(TLS_CERT, &files.cert, format!("and its key cannot be used: {error}")),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The signal that asks a service to read its files again.
struct HangUp {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl HangUp {
    fn new() -> Self {
        Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    async fn received(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals
            && signals.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}

/// Whether a connection that begins with this byte is one with TLS.
pub(super) fn is_handshake(first: u8) -> bool {
    first == HANDSHAKE_RECORD
}

/// Tells whoever speaks plain HTTP, as far as that is possible at once.
pub(super) fn refuse_plain(stream: &TcpStream) {
    let _ = stream.try_write(PLAIN);
}

/// A client's connection, with TLS or without.
pub(super) enum Stream {
    Plain(WriteTimeout<TcpStream>),
    /// The timeout is below: it sees what is written to the network.
    Tls(Box<TlsStream<WriteTimeout<TcpStream>>>),
}

macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream.get_mut() {
            Stream::Plain($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
            Stream::Tls($inner) => {
                let $inner = Pin::new(&mut **$inner);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, inner => inner.poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, inner => inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, inner => inner.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(inner) => inner.is_write_vectored(),
            Self::Tls(inner) => inner.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, inner => inner.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, inner => inner.poll_shutdown(context))
    }
}
