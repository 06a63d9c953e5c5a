//! The engine: one request in, one response out; one job in, done or put back.
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use crate::auth::throttle::Throttle;
use crate::auth::{self, Credential};
use crate::blobs::{BlobError, Slice};
use crate::config::Config;
use crate::context::Context;
use crate::documents::Documents;
use crate::error::{Code, Error, Fault};
use crate::faces::Faces;
use crate::ids::{Ids, prefix};
use crate::limits::BODY_BYTES_MAX;
use crate::live::places::Places;
use crate::ports::{Incoming, Ports};
use crate::recordings::NotServed;
use crate::{docs, live, mcp, rest, telephony};

/// The whole service. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    ports: Ports,
    faces: Faces,
    ids: Ids,
    throttle: Mutex<Throttle>,
    live: Arc<Places>,
}

/// What went wrong on our side, for the host's log; it rides on the response and is never sent.
#[derive(Debug, Clone)]
pub struct Incident(pub String);

impl Engine {
    /// Puts the service together. Fails only when the operation table contradicts itself.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(config: Config, ports: Ports) -> Result<Self, Fault> {
        Self::with_documents(config, ports, Documents::derived())
    }

    /// The same over documents that were made before.
    pub fn with_documents(config: Config, ports: Ports, documents: Documents) -> Result<Self, Fault> {
        let faces = Faces::new(&config, documents)?;
        let inner = Inner {
            config,
            ports,
            faces,
            ids: Ids::default(),
            throttle: Mutex::default(),
            live: Arc::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the operator decided.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// What the host lends.
    pub fn ports(&self) -> &Ports {
        &self.inner.ports
    }

    /// What is derived from the operation table.
    pub fn faces(&self) -> &Faces {
        &self.inner.faces
    }

    /// The places for live conversations in this process.
    pub(crate) fn live(&self) -> &Arc<Places> {
        &self.inner.live
    }

    /// A new id.
    pub fn id(&self, prefix: &str) -> String {
        self.inner.ids.make(prefix, &*self.inner.ports.clock, &*self.inner.ports.random)
    }

    /// Answers one request. The body has been read within [`BODY_BYTES_MAX`]; a host that meets a
    /// larger one answers with [`Engine::body_too_large`] instead of reading on.
    ///
    /// An answer with a [`Slice`] among its extensions has no body yet: it is those bytes of a blob, and the host
    /// streams them from its own storage. It opens the blob first; one that is not there any more it answers with
    /// [`Engine::lost`], one that cannot be read with [`Engine::unreadable`].
    pub async fn handle(&self, mut incoming: Incoming) -> Response<Bytes> {
        join_repeated(incoming.request.headers_mut());
        let request_id = self.id(prefix::REQUEST);
        let now_ms = self.inner.ports.clock.now_ms();
        let mut response = self.route(&incoming, now_ms, &request_id).await;
        finish(&mut response, &request_id);
        response
    }

    /// Whether the body of a request can matter. Without what can be a key it cannot: a host then
    /// throws it away as it comes, and calls [`Engine::handle`] with an empty one.
    pub fn admits_body(&self, head: &http::request::Parts) -> bool {
        // Carriers sign their callbacks, body and all.
        head.uri.path().starts_with(telephony::PATH)
            || matches!(Credential::from_headers(&head.headers), Credential::Key { .. })
    }

    async fn route(&self, incoming: &Incoming, now_ms: i64, request_id: &str) -> Response<Bytes> {
        let path = incoming.request.uri().path();
        let open = match path {
            "/healthz" => Some(self.health().await),
            "/openapi.json" => {
                Some(self.document(|text| json_response(200, text), self.faces().openapi(), request_id))
            }
            "/docs" => Some(self.document(docs::page, self.faces().docs(), request_id)),
            live::PAGE_PATH => Some(live::page::response(self.config())),
            _ => None,
        };
        if let Some(response) = open {
            return match *incoming.request.method() {
                Method::GET | Method::HEAD => response,
                _ => error_response(&crate::router::method_not_allowed("GET"), request_id),
            };
        }
        if path == live::SOCKET_PATH {
            return live::door::without_upgrade(self, incoming, now_ms, request_id).await;
        }
        if path.starts_with(telephony::PATH) {
            return telephony::callbacks::handle(self, incoming, request_id).await;
        }
        if path == "/mcp" {
            return mcp::handle(self, incoming, now_ms, request_id).await;
        }
        rest::handle(self, incoming, now_ms, request_id).await
    }

    fn document(
        &self,
        respond: impl FnOnce(Bytes) -> Response<Bytes>,
        text: Result<Bytes, Fault>,
        request_id: &str,
    ) -> Response<Bytes> {
        match text {
            Ok(text) => respond(text),
            Err(fault) => {
                let (error, incident) = fault.split();
                let mut response = error_response(&error, request_id);
                response.extensions_mut().insert(Incident(incident.unwrap_or_default()));
                response
            }
        }
    }

    /// Storage answers, so the service does.
    async fn health(&self) -> Response<Bytes> {
        let probe = vec![crate::sql!("SELECT 1 AS up")];
        match self.inner.ports.database.read(probe).await {
            Ok(_) => json_response(200, Bytes::from_static(br#"{"status":"ok"}"#)),
            Err(error) => {
                let mut response = json_response(503, Bytes::from_static(br#"{"status":"unavailable"}"#));
                response.extensions_mut().insert(Incident(format!("{error:?}")));
                response
            }
        }
    }

    /// A request's state, once the Authorization header has been looked at.
    pub(crate) fn context(&self, headers: &HeaderMap, now_ms: i64) -> Result<Context, Error> {
        match Credential::from_headers(headers) {
            Credential::Absent => Err(auth::missing_key()),
            Credential::Malformed => Ok(Context::new(self.clone(), now_ms, None)),
            Credential::Key { hash } => Ok(Context::new(self.clone(), now_ms, Some(hash))),
        }
    }

    /// The error for a fault, with a wrong key counted, and the detail for the log.
    pub(crate) fn explain(&self, fault: Fault, incoming: &Incoming, now_ms: i64) -> (Error, Option<String>) {
        let (error, incident) = fault.split();
        let presented = incoming.request.headers().contains_key(header::AUTHORIZATION);
        if error.code != Code::Unauthorized || !presented {
            return (error, incident);
        }
        let trusted = &self.inner.config.trusted_proxies;
        let address = auth::client_address(incoming.request.headers(), incoming.peer, trusted);
        let wait_s = {
            let mut throttle = self.inner.throttle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            throttle.wrong_key(address, now_ms)
        };
        match wait_s {
            None => (error, incident),
            Some(seconds) => {
                let message = "Too many wrong API keys from this address. Wait, then try with a valid key.";
                let mut throttled = Error::new(Code::TooManyInvalidCredentials, message);
                throttled.retry_after_s = Some(seconds);
                (throttled, incident)
            }
        }
    }

    /// Whether a request only reads: a host may drop it once its client is gone. What has begun to change something comes
    /// to its end. Carriers tell of calls by `GET`, too.
    pub fn only_reads(&self, head: &http::request::Parts) -> bool {
        head.method.is_safe() && !head.uri.path().starts_with(telephony::PATH)
    }

    /// The answer to a request whose body a host need not even begin to read: its head already says
    /// that there is too much of it.
    pub fn refuse_by_head(&self, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let declared = headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse::<u64>().ok()?;
        (declared > BODY_BYTES_MAX as u64).then(|| self.body_too_large())
    }

    /// The answer to a body of more than [`BODY_BYTES_MAX`] bytes.
    pub fn body_too_large(&self) -> Response<Bytes> {
        let message = format!("The body is larger than {BODY_BYTES_MAX} bytes. Send less in one request.");
        self.refuse(&Error::new(Code::BodyTooLarge, message))
    }

    /// The answer to a request that did not arrive in time, or broke off.
    pub fn request_timeout(&self) -> Response<Bytes> {
        let message = "The request did not arrive in time. Send it again.";
        self.refuse(&Error::new(Code::RequestTimeout, message))
    }

    /// The answer to a body that is not framed as its headers say.
    pub fn broken_body(&self) -> Response<Bytes> {
        let message = "The body is not what its headers say: its chunks cannot be read.";
        self.refuse(&Error::new(Code::InvalidJson, message))
    }

    /// The answer when the blob of a [`Slice`] is not there: it was deleted a moment ago, or somebody took it out
    /// of storage, which is for the log.
    pub fn lost(&self, slice: &Slice) -> Response<Bytes> {
        let mut response = self.refuse(&NotServed::None.into());
        let detail = format!("{} is not in storage; was it deleted just now?", slice.key.as_str());
        response.extensions_mut().insert(Incident(detail));
        response
    }

    /// The answer when the blob of a [`Slice`] cannot be read.
    pub fn unreadable(&self, error: BlobError) -> Response<Bytes> {
        let (error, incident) = Fault::from(error).split();
        let mut response = self.refuse(&error);
        response.extensions_mut().insert(Incident(incident.unwrap_or_default()));
        response
    }

    /// The answer when the host itself failed to run a request; `detail` goes to its log.
    pub fn broken(&self, detail: String) -> Response<Bytes> {
        let (error, incident) = Fault::Bug(detail).split();
        let mut response = self.refuse(&error);
        response.extensions_mut().insert(Incident(incident.unwrap_or_default()));
        response
    }

    fn refuse(&self, error: &Error) -> Response<Bytes> {
        let request_id = self.id(prefix::REQUEST);
        let mut response = error_response(error, &request_id);
        finish(&mut response, &request_id);
        response
    }
}

/// A header given twice means both values, joined by a comma (RFC 9110, 5.3). Some hosts get them
/// joined already, so all are; of two values for what takes one, none is picked in silence.
fn join_repeated(headers: &mut HeaderMap) {
    if headers.len() == headers.keys_len() {
        return;
    }
    let names: Vec<_> = headers.keys().cloned().collect();
    for name in names {
        let values: Vec<&[u8]> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
        if values.len() > 1
            && let Ok(joined) = HeaderValue::from_bytes(&values.join(&b", "[..]))
        {
            headers.insert(name, joined);
        }
    }
}

/// Says of an answer that it repeats an earlier one.
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The envelope with its status and headers.
pub(crate) fn error_response(error: &Error, request_id: &str) -> Response<Bytes> {
    let mut response = json_response(error.code.status(), Bytes::from(error.to_json(request_id).to_string()));
    let headers = response.headers_mut();
    if error.code.status() == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"sidetone\""));
    }
    if error.code == Code::UpgradeRequired {
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    if let Some(seconds) = error.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if error.replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    if let Some(allow) = error.allow.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(header::ALLOW, allow);
    }
    response
}

/// A JSON body with a status.
pub(crate) fn json_response(status: u16, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn finish(response: &mut Response<Bytes>, request_id: &str) {
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", value);
    }
    // Answers hold configuration and now and then a secret: no cache keeps them.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
