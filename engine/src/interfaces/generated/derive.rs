//! Request schemas, derived from the request types.
use serde_json::Value;

use crate::interfaces::generated::RequestSchemas;
use crate::operations::operation::{Operation, Presence};
use crate::operations::schema;

/// The schemas of requests to `operation`.
pub fn requests(operation: &Operation) -> RequestSchemas {
    RequestSchemas {
        query: operation.query.map(|query| {
            let mut query = schema::request(query, true);
            // An unknown parameter is a typo, so it is rejected even if its type allows it.
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
