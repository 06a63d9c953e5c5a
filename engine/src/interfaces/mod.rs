//! Everything derived from the operation table. Only the router is built at startup, the rest on first use.
pub(crate) mod api;
pub(crate) mod dispatch;
pub(crate) mod docs;
pub mod generated;
mod home;
pub(crate) mod host;
pub(crate) mod mcp;
pub(crate) mod mounted;
#[cfg(not(target_arch = "wasm32"))]
mod openapi;
mod range;
pub(crate) mod rest;
pub(crate) mod router;
mod throttle;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;

use crate::config::Config;
use crate::interfaces::generated::{Documents, RequestSchemas};
use crate::interfaces::mcp::tools::Tools;
use crate::interfaces::router::Router;
use crate::operations::OPERATIONS;
use crate::operations::operation::Operation;
use crate::storage::fault::Fault;

/// The interfaces to the operation table.
pub struct Interfaces {
    /// REST.
    pub router: Router,
    base_url: String,
    documents: Documents,
    tools: OnceLock<Tools>,
    openapi: OnceLock<Bytes>,
    docs: OnceLock<Bytes>,
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
            docs: OnceLock::new(),
            schemas,
        })
    }

    /// MCP.
    pub fn tools(&self) -> Result<&Tools, Fault> {
        once(&self.tools, || self.documents.tools().map(Tools::new))
    }

    /// `/openapi.json`.
    pub fn openapi(&self) -> Result<Bytes, Fault> {
        once(&self.openapi, || self.documents.openapi(&self.base_url).map(Bytes::from)).cloned()
    }

    /// `/docs`.
    pub fn docs(&self) -> Result<Bytes, Fault> {
        once(&self.docs, || self.documents.docs().map(Bytes::from)).cloned()
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
