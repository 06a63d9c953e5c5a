//! The engine in a module without an operating system, to check its imports and that it runs.
//!
//! The ports are minimal. A database that never responds is enough, because the path to
//! its error passes through the whole engine.
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use sidetone_engine::config::Config;
use sidetone_engine::engine::{Engine, PreparedResponse};
use sidetone_engine::interfaces::generated::Documents;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{
    BlobError, BlobKey, Blobs, BoxFuture, ByteRange, Clock, Database, DatabaseError, Http, HttpError,
    HttpReply, HttpRequest, Keys, NoWebSockets, Ports, Queue, Random, Wake,
};

struct Nothing;

impl Database for Nothing {
    fn read(&self, _: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async { Err(DatabaseError::Unavailable(String::new())) })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.read(batch)
    }
}

impl Blobs for Nothing {
    fn put(&self, _: &BlobKey, _: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        Box::pin(async { Ok(()) })
    }

    fn size(&self, _: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        Box::pin(async { Ok(None) })
    }

    fn get(&self, _: &BlobKey, _: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        Box::pin(async { Ok(None) })
    }

    fn delete(&self, _: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Clock for Nothing {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000
    }

    fn sleep(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Random for Nothing {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

impl Queue for Nothing {
    fn wake(&self, _: &Wake) {}
}

impl Http for Nothing {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        Box::pin(async { Err(HttpError::Failed(String::new())) })
    }
}

impl Keys for Nothing {
    fn verify_ed25519(&self, _: [u8; 32], _: Bytes, _: [u8; 64]) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    fn verify_rs256(&self, _: &[u8], _: &[u8], _: Bytes, _: &[u8]) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    fn sign_rs256(&self, _: &[u8], _: Bytes) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async { Err(String::new()) })
    }
}

/// Requests the engine's OpenAPI document; returns the status, or 0 after an earlier failure.
#[unsafe(no_mangle)]
pub extern "C" fn probe() -> u32 {
    let nothing = Arc::new(Nothing);
    let ports = Ports {
        database: nothing.clone(),
        blobs: nothing.clone(),
        clock: nothing.clone(),
        random: nothing.clone(),
        queue: nothing.clone(),
        http: nothing.clone(),
        web_sockets: Arc::new(NoWebSockets),
        keys: nothing,
        mailer: None,
    };
    let secret = "0123456789abcdef".repeat(4);
    let Ok(config) = Config::from_settings(|_| None, "http://127.0.0.1:8787", &secret) else {
        return 0;
    };
    let documents = Documents::embedded(include_str!(concat!(env!("OUT_DIR"), "/documents")));
    let Ok(engine) = Engine::with_documents(config, ports, documents) else {
        return 0;
    };
    let Ok(request) = http::Request::get("/openapi.json").body(Bytes::new()) else {
        return 0;
    };
    let handled = pin!(engine.handle(request, None));
    match handled.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(PreparedResponse::Complete(response)) => response.into_parts().0.status().as_u16().into(),
        Poll::Ready(PreparedResponse::Blob(_)) => 0,
        Poll::Pending => 0,
    }
}
