//! The engine: one request in, one response out; one job in, done or put back.
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, header};

use crate::base::error::{Code, Error};
use crate::base::ids::prefix;
use crate::base::limits::BODY_BYTES_MAX;
use crate::base::response::{Incident, error_response, finish, json_response, method_not_allowed};
use crate::config::Config;
use crate::interfaces::api::Api;
use crate::interfaces::documents::Documents;
use crate::interfaces::{Interfaces, docs, mcp, rest};
use crate::live::{self, telephony};
use crate::operations::auth::Credential;
use crate::ports::blobs::{BlobError, Slice};
use crate::ports::{Incoming, Ports};
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::recordings::NotServed;

/// The whole service. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    api: Arc<Api>,
}

/// Settings, ports and jobs.
impl Deref for Engine {
    type Target = Services;

    fn deref(&self) -> &Services {
        self.api.services()
    }
}

impl Engine {
    /// Puts the service together. Fails only when the operation table contradicts itself.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(config: Config, ports: Ports) -> Result<Self, Fault> {
        Self::with_documents(config, ports, Documents::derived())
    }

    /// The same over documents that were made before.
    pub fn with_documents(config: Config, ports: Ports, documents: Documents) -> Result<Self, Fault> {
        Ok(Self { api: Arc::new(Api::new(config, ports, documents)?) })
    }

    /// What is derived from the operation table.
    pub fn interfaces(&self) -> &Interfaces {
        self.api.interfaces()
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
        let now_ms = self.ports().clock.now_ms();
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
                Some(self.document(|text| json_response(200, text), self.interfaces().openapi(), request_id))
            }
            "/docs" => Some(self.document(docs::page, self.interfaces().docs(), request_id)),
            live::PAGE_PATH => Some(live::page::response(self.config())),
            _ => None,
        };
        if let Some(response) = open {
            return match *incoming.request.method() {
                Method::GET | Method::HEAD => response,
                _ => error_response(&method_not_allowed("GET"), request_id),
            };
        }
        if path == live::SOCKET_PATH {
            return live::handshake::without_upgrade(self, incoming, now_ms, request_id).await;
        }
        if path.starts_with(telephony::PATH) {
            return telephony::callbacks::handle(self, incoming, request_id).await;
        }
        if path == "/mcp" {
            return mcp::handle(&self.api, incoming, now_ms, request_id).await;
        }
        rest::handle(&self.api, incoming, now_ms, request_id).await
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
        match self.ports().database.read(probe).await {
            Ok(_) => json_response(200, Bytes::from_static(br#"{"status":"ok"}"#)),
            Err(error) => {
                let mut response = json_response(503, Bytes::from_static(br#"{"status":"unavailable"}"#));
                response.extensions_mut().insert(Incident(format!("{error:?}")));
                response
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
