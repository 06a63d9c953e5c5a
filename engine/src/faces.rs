//! Everything derived from the operation table. Only the router is made at the start, the rest when it is
//! first asked for: all of it at once is 40 ms of processor time in a Worker's isolate, whose first
//! request may have 10.
use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;

use crate::config::Config;
use crate::error::Fault;
use crate::mcp::tools::Tools;
use crate::operation::{Operation, Presence};
use crate::operations::OPERATIONS;
use crate::router::Router;
use crate::{docs, openapi, schema};

/// What a request to one operation has to look like.
#[derive(Default)]
pub struct RequestSchemas {
    /// The query, an object schema.
    pub query: Option<Value>,
    /// The body, an object schema.
    pub body: Option<Value>,
}

/// The faces of the operation table.
pub struct Faces {
    /// REST.
    pub router: Router,
    base_url: String,
    tools: OnceLock<Tools>,
    openapi: OnceLock<Bytes>,
    docs: OnceLock<Bytes>,
    schemas: BTreeMap<&'static str, OnceLock<RequestSchemas>>,
    none: RequestSchemas,
}

impl Faces {
    /// Makes the router, and room for the rest.
    pub fn new(config: &Config) -> Result<Self, Fault> {
        let router = Router::new().map_err(|error| Fault::Bug(format!("routes: {error}")))?;
        let mut schemas = BTreeMap::new();
        for operation in OPERATIONS {
            schemas.insert(operation.id, OnceLock::new());
        }
        Ok(Self {
            router,
            base_url: config.base_url.clone(),
            tools: OnceLock::new(),
            openapi: OnceLock::new(),
            docs: OnceLock::new(),
            schemas,
            none: RequestSchemas::default(),
        })
    }

    /// MCP.
    pub fn tools(&self) -> &Tools {
        self.tools.get_or_init(|| Tools::new(self))
    }

    /// `/openapi.json`.
    pub fn openapi(&self) -> Bytes {
        let text = || Bytes::from(openapi::document(&self.base_url, self).to_string());
        self.openapi.get_or_init(text).clone()
    }

    /// `/docs`.
    pub fn docs(&self) -> Bytes {
        let page = || Bytes::from(docs::render(&openapi::document(&self.base_url, self)));
        self.docs.get_or_init(page).clone()
    }

    /// The request schemas of one operation.
    pub fn schemas(&self, operation: &Operation) -> &RequestSchemas {
        match self.schemas.get(operation.id) {
            Some(schemas) => schemas.get_or_init(|| request_schemas(operation)),
            None => &self.none,
        }
    }
}

fn request_schemas(operation: &Operation) -> RequestSchemas {
    RequestSchemas {
        query: operation.query.map(|query| {
            let mut query = schema::request(query, true);
            // A parameter nobody knows is a typo, whether or not its type remembers to say so.
            query["additionalProperties"] = false.into();
            without_null(&mut query);
            query
        }),
        body: operation.body.map(|body| schema::request(body.schema, body.presence == Presence::Partial)),
    }
}

/// A query value can be left out but never be null.
fn without_null(query: &mut Value) {
    let properties = query.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|all| all.values_mut()) {
        if let Some(Value::Array(kinds)) = property.get("type")
            && let Some(kind) = kinds.iter().find(|kind| *kind != "null").cloned()
        {
            property["type"] = kind;
        }
        if let Some(values) = property.get_mut("enum").and_then(Value::as_array_mut) {
            values.retain(Value::is_string);
        }
    }
}
