//! The events that the service sends, as the document's `webhooks`.
use serde_json::{Map, Value, json};

use crate::interfaces::docs::Examples;
use crate::storage::events::EventKind;

/// Every event. Its body is a component of its own, so that generators give it a name.
pub(super) fn webhooks(components: &mut Map<String, Value>, examples: &Examples) -> Value {
    let mut webhooks = Map::new();
    for (kind, meaning) in EventKind::ALL {
        let name = component(*kind);
        components.insert(name.clone(), body(*kind, meaning));
        let example = examples.event(kind.as_str());
        webhooks.insert(
            kind.as_str().to_owned(),
            json!({"post": {
                "operationId": format!("on_{}", kind.as_str().replace('.', "_")),
                // Not the group of the operations on webhooks: generators make one file of each group.
                "tags": ["Events"],
                "summary": meaning,
                "description": "Sent to every webhook that asks for it, signed as Standard Webhooks says.",
                "security": [],
                "parameters": [
                    header("webhook-id", "The id of the event, the same in every attempt."),
                    header("webhook-timestamp", "The time of the attempt, in seconds since 1970."),
                    header("webhook-signature", "`v1,` and the signature in base64; several are separated by a space."),
                ],
                "requestBody": {"required": true, "content": {"application/json": {
                    "schema": {"$ref": format!("#/components/schemas/{name}")},
                    "example": example,
                }}},
                "responses": {
                    "2XX": {"description": "The event has arrived. The body is not used."},
                    "410": {"description": "The receiver is gone: the webhook is disabled."},
                },
            }}),
        );
    }
    webhooks.into()
}

fn header(name: &str, note: &str) -> Value {
    json!({"name": name, "in": "header", "required": true, "description": note, "schema": {"type": "string"}})
}

/// `call.ended` is a `CallEndedEvent`.
fn component(kind: EventKind) -> String {
    let words = kind.as_str().split(['.', '_']).map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    words.chain(["Event".to_owned()]).collect()
}

fn body(kind: EventKind, meaning: &str) -> Value {
    let (field, object) = (kind.subject(), kind.subject_schema());
    json!({
        "type": "object",
        "description": meaning,
        "required": ["id", "type", "created_at", "workspace_id", "data"],
        "properties": {
            "id": {"type": "string", "description": "`evt_…`, the same in every attempt."},
            "type": {"type": "string", "enum": [kind.as_str()]},
            "created_at": {"type": "string", "format": "date-time", "description": "When it happened."},
            "workspace_id": {"type": "string", "description": "`ws_…`"},
            "data": {
                "type": "object",
                "description": "What REST returns for the object. Of an object that is too large, only its `id`.",
                "required": [field],
                "properties": {field: {"$ref": format!("#/components/schemas/{object}")}},
            },
        },
    })
}
