//! Everything derived from the operation table. Only the router is built at startup, the rest on first use.
pub(crate) mod api;
pub(crate) mod dispatch;
pub(crate) mod docs;
pub mod generated;
mod home;
pub(crate) mod host;
pub(crate) mod mcp;
pub(crate) mod mounted;
pub(crate) mod moves;
#[cfg(not(target_arch = "wasm32"))]
mod openapi;
pub(crate) mod operator;
pub(crate) mod operator_key;
mod range;
pub(crate) mod rest;
pub(crate) mod router;
mod throttle;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use http::HeaderValue;

use crate::base::hash::sha256_hex;
use crate::config::Config;
use crate::interfaces::generated::{Documents, RequestSchemas};
use crate::interfaces::mcp::tools::Tools;
use crate::interfaces::router::Router;
use crate::operations::OPERATIONS;
use crate::operations::operation::Operation;
use crate::storage::fault::Fault;

/// A document that is the same for everybody, and as long as the process lives.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) text: Bytes,
    /// The whole field value, with its quotes. It is weak: a host may compress the text.
    pub(crate) etag: HeaderValue,
}

impl Document {
    fn new(text: String) -> Result<Self, Fault> {
        let etag = format!("W/\"{}\"", sha256_hex(text.as_bytes()));
        let etag = HeaderValue::try_from(etag).map_err(|error| Fault::Bug(format!("an ETag: {error}")))?;
        Ok(Self { text: text.into(), etag })
    }
}

/// The interfaces to the operation table.
pub struct Interfaces {
    /// REST.
    pub router: Router,
    base_url: String,
    documents: Documents,
    tools: OnceLock<Tools>,
    openapi: OnceLock<Document>,
    openapi_3_0: OnceLock<Document>,
    docs: OnceLock<Document>,
    schemas: BTreeMap<&'static str, OnceLock<RequestSchemas>>,
}

impl Interfaces {
    /// Builds the router; the rest is built on first use.
    pub fn new(config: &Config, documents: Documents) -> Result<Self, Fault> {
        let router = Router::new().map_err(|error| Fault::Bug(format!("routes: {error}")))?;
        let mut schemas = BTreeMap::new();
        for operation in OPERATIONS {
            schemas.insert(operation.id, OnceLock::new());
        }
        Ok(Self {
            router,
            base_url: config.base_url.clone(),
            documents,
            tools: OnceLock::new(),
            openapi: OnceLock::new(),
            openapi_3_0: OnceLock::new(),
            docs: OnceLock::new(),
            schemas,
        })
    }

    /// MCP.
    pub fn tools(&self) -> Result<&Tools, Fault> {
        once(&self.tools, || self.documents.tools().map(Tools::new))
    }

    /// `/openapi.json`.
    pub(crate) fn openapi(&self) -> Result<&Document, Fault> {
        once(&self.openapi, || self.documents.openapi(&self.base_url).and_then(Document::new))
    }

    /// `/openapi-3.0.json`.
    pub(crate) fn openapi_3_0(&self) -> Result<&Document, Fault> {
        once(&self.openapi_3_0, || self.documents.openapi_3_0(&self.base_url).and_then(Document::new))
    }

    /// `/docs`.
    pub(crate) fn docs(&self) -> Result<&Document, Fault> {
        once(&self.docs, || self.documents.docs(&self.base_url).and_then(Document::new))
    }

    /// The request schemas of one operation.
    pub fn schemas(&self, operation: &Operation) -> Result<&RequestSchemas, Fault> {
        match self.schemas.get(operation.id) {
            Some(schemas) => once(schemas, || self.documents.requests(operation)),
            None => Err(Fault::Bug(format!("{} is not in the table", operation.id))),
        }
    }
}

/// The value, built on first use. Two threads may build it concurrently, with the same result.
fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T, Fault>) -> Result<&T, Fault> {
    match cell.get() {
        Some(value) => Ok(value),
        None => make().map(|value| cell.get_or_init(|| value)),
    }
}
