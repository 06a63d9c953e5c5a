//! Everything derived from the operation table, made once at the start.
use std::collections::BTreeMap;

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
    /// MCP.
    pub tools: Tools,
    /// `/openapi.json`.
    pub openapi: Bytes,
    /// `/docs`.
    pub docs: Bytes,
    schemas: BTreeMap<&'static str, RequestSchemas>,
    none: RequestSchemas,
}

impl Faces {
    /// Derives them all.
    pub fn new(config: &Config) -> Result<Self, Fault> {
        let router = Router::new().map_err(|error| Fault::Bug(format!("routes: {error}")))?;
        let schemas: BTreeMap<_, _> =
            OPERATIONS.iter().map(|operation| (operation.id, request_schemas(operation))).collect();
        let document = openapi::document(config, &schemas);
        Ok(Self {
            router,
            tools: Tools::new(&schemas),
            docs: Bytes::from(docs::render(&document)),
            openapi: Bytes::from(document.to_string()),
            schemas,
            none: RequestSchemas::default(),
        })
    }

    /// The request schemas of one operation.
    pub fn schemas(&self, operation: &Operation) -> &RequestSchemas {
        self.schemas.get(operation.id).unwrap_or(&self.none)
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
