//! Builds a call of any operation from its schemas, so that table-driven tests cover new operations automatically.
use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use sidetone_engine::config::Config;
use sidetone_engine::interfaces::Interfaces;
use sidetone_engine::interfaces::generated::{Documents, RequestSchemas};
use sidetone_engine::operations::operation::Operation;

use crate::reply::{Reply, ToolReply};
use crate::world::{BASE_URL, World};

/// A call that can be made over REST and MCP.
#[derive(Clone)]
pub struct Call {
    /// The called operation.
    pub operation: &'static Operation,
    /// The path's values by name, in order.
    pub path: Vec<(String, String)>,
    /// The query's values.
    pub query: Map<String, Value>,
    /// The body; `None` if the operation has none.
    pub body: Option<Map<String, Value>>,
}

impl Call {
    /// A valid call in this workspace: creates all resources that it refers to.
    #[track_caller]
    pub fn valid(world: &World, operation: &'static Operation) -> Self {
        let mut path: Vec<(String, String)> = Vec::new();
        for name in operation.path_names() {
            let value = path_value(world, operation, name, path.last());
            path.push((name.to_owned(), value));
        }
        let body = body_schema(operation).map(|schema| {
            let Value::Object(body) = value(world, operation, "body", schema) else {
                panic!("{}: the body is not an object", operation.id)
            };
            body
        });
        Self { operation, path, query: query(operation), body }
    }

    /// A copy with another body field.
    pub fn with_field(&self, name: &str, value: Value) -> Self {
        let mut call = self.clone();
        call.body.get_or_insert_default().insert(name.to_owned(), value);
        call
    }

    /// A copy without a body field.
    pub fn without_field(&self, name: &str) -> Self {
        let mut call = self.clone();
        call.body.get_or_insert_default().shift_remove(name);
        call
    }

    /// A copy with a query value.
    pub fn with_query(&self, name: &str, value: Value) -> Self {
        let mut call = self.clone();
        call.query.insert(name.to_owned(), value);
        call
    }

    /// A copy with other path values.
    pub fn with_path(&self, value: &str) -> Self {
        let mut call = self.clone();
        call.path.iter_mut().for_each(|(_, old)| *old = value.to_owned());
        call
    }

    /// The path and query for REST.
    pub fn uri(&self) -> String {
        let mut uri = self.operation.path.to_owned();
        for (name, value) in &self.path {
            uri = uri.replace(&format!("{{{name}}}"), &encoded(value));
        }
        for (n, (name, value)) in self.query.iter().enumerate() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            uri.push(if n == 0 { '?' } else { '&' });
            uri.push_str(&format!("{}={}", encoded(name), encoded(&text)));
        }
        uri
    }

    /// Makes the call over REST.
    #[track_caller]
    pub fn rest(&self, world: &World) -> Reply {
        let body = self.body.clone().map(Value::Object);
        world.call(self.operation.method.clone(), &self.uri(), body.as_ref())
    }

    /// The arguments of the same call over MCP, with `confirm` if it can incur usage.
    pub fn arguments(&self) -> Map<String, Value> {
        let mut arguments = self.query.clone();
        for (name, value) in &self.path {
            arguments.insert(name.clone(), value.clone().into());
        }
        if let Some(body) = &self.body {
            arguments.insert("data".to_owned(), body.clone().into());
        }
        if self.operation.spends() {
            arguments.insert("confirm".to_owned(), true.into());
        }
        arguments
    }

    /// Makes the call over MCP.
    #[track_caller]
    pub fn tool(&self, world: &World) -> ToolReply {
        world.tool(self.operation.id, self.arguments().into())
    }
}

/// The operation's request schemas, as the service derives them.
pub fn schemas(operation: &Operation) -> &'static RequestSchemas {
    static FACES: OnceLock<Interfaces> = OnceLock::new();
    let faces = FACES.get_or_init(|| {
        let config = Config::from_settings(|_| None, BASE_URL, "only the schemas are used").unwrap();
        Interfaces::new(&config, Documents::derived()).expect("the operation table is valid")
    });
    faces.schemas(operation).expect("the operation is in the table")
}

/// The schema of the operation's body.
pub fn body_schema(operation: &Operation) -> Option<&'static Value> {
    schemas(operation).body.as_ref()
}

/// The properties of an object schema, by name.
pub fn properties(schema: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.and_then(|schema| schema["properties"].as_object()).into_iter().flatten()
}

/// The types a schema allows.
pub fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A well-formed id of no resource.
pub const UNKNOWN_ID: &str = "asst_00000000000000000000000000";

/// Creates the resource in the path. New resources need a line here.
#[track_caller]
fn path_value(world: &World, operation: &Operation, name: &str, within: Option<&(String, String)>) -> String {
    let collection = operation.path.split("/{").next().unwrap_or_default();
    let made = match (collection, name) {
        ("/assistants", "id") => world.assistant(),
        ("/assistants", "revision") => {
            let (_, id) = within.expect("a revision's path contains an assistant id");
            let changed = world.patch(format!("/assistants/{id}"), json!({"name": "Renamed"})).ok();
            return (changed["revision"].as_i64().expect("a revision") - 1).to_string();
        }
        ("/tools", "id") if operation.id == "test_tool" => world.unreachable_tool(),
        ("/tools", "id") => world.a_tool(),
        ("/knowledge", "id") => world.document(10),
        ("/numbers", "number") => world.binding(),
        ("/webhooks", "id") => world.webhook(),
        ("/webhooks", "delivery_id") => {
            let (_, webhook_id) = within.expect("a delivery's path contains a webhook id");
            world.create(&format!("/webhooks/{webhook_id}/test"), json!({}))
        }
        ("/simulations/personas", "id") => world.persona(),
        ("/simulations/scenarios", "id") => world.scenario(),
        ("/simulations", "id") => world.simulation(),
        ("/simulations/runs", "id") => {
            let run = world.run();
            world.settle(&run.id);
            run
        }
        ("/simulations/batches", "id") => {
            let batch = world.batch();
            world.settle(batch["runs"][0]["id"].as_str().expect("a run"));
            batch
        }
        ("/snapshots", "hash") => {
            let run = world.run();
            world.settle(&run.id);
            return run["snapshot"].as_str().expect("a snapshot").to_owned();
        }
        ("/calls", "id") => match operation.path {
            "/calls/{id}/recording" | "/calls/{id}/waveform" => world.a_recorded_call(),
            "/calls/{id}/hang-up" => world.placed_call(),
            _ => world.runs_call(),
        },
        ("/keys", "id") => world.api_key(),
        other => panic!("{}: no example of {other:?} yet", operation.id),
    };
    made.id
}

/// What the query cannot do without. Operations that need a part of it have a line here.
fn query(operation: &Operation) -> Map<String, Value> {
    match operation.id {
        "delete_calls" => Map::from_iter([("source".to_owned(), "browser".into())]),
        "delete_simulation_runs" => Map::from_iter([("status".to_owned(), "error".into())]),
        _ => Map::new(),
    }
}

/// A value for the field's schema. Fields that refer to a resource, or have a format of their own, need a line here.
#[track_caller]
fn value(world: &World, operation: &Operation, name: &str, schema: &Value) -> Value {
    match name {
        "assistant_id" if operation.id == "start_simulation_batch" => {
            let assistant = world.assistant();
            world.simulation_of(&assistant.id);
            return assistant.id.into();
        }
        "assistant_id" => return world.assistant().id.into(),
        "from" => return world.binding().id.into(),
        "to" | "number" => return "+14155557777".into(),
        "user_number" => return "+14155550123".into(),
        "persona_id" => return world.persona().id.into(),
        "scenario_id" => return world.scenario().id.into(),
        "tool_ids" => return json!([world.a_tool().id, world.a_tool().id]),
        "knowledge_ids" => return json!([world.document(10).id, world.document(20).id]),
        "url" => return "https://example.com/example".into(),
        "model" | "judge_model" => return "builtin/rules".into(),
        "voice" => return "builtin/tone".into(),
        // The default; others have to be configured.
        "transcriber" => return "".into(),
        "language" => return "pt-BR".into(),
        "parameters" => return json!({"type": "object", "properties": {"day": {"type": "string"}}}),
        "ttl_seconds" | "max_duration_seconds" => return 60.into(),
        "mode" => return "chat".into(),
        "repeat" => return 2.into(),
        // The only kind that takes all fields of an evaluation.
        "kind" => return "tool_call".into(),
        "metadata" => return json!({"example": "1"}),
        "variables" => return json!({"name": "Ada"}),
        "pipeline_mode" => return "cascading".into(),
        _ if name.ends_with("_id") || name.ends_with("_ids") => {
            panic!("{}: no example of `{name}` yet", operation.id)
        }
        _ => {}
    }
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match types(schema).first() {
        Some(&"string") => format!("example_{}", world.count()).into(),
        Some(&"integer") => schema["maximum"].as_i64().unwrap_or(1_000).min(1_000).into(),
        Some(&"number") => schema["maximum"].as_f64().unwrap_or(1.5).into(),
        Some(&"boolean") => true.into(),
        Some(&"array") => json!([value(world, operation, name, &schema["items"])]),
        Some(&"object") => {
            let fields = properties(Some(schema));
            fields.map(|(name, schema)| (name.clone(), value(world, operation, name, schema))).collect()
        }
        _ => panic!("{}: no example of `{name}` with {schema}", operation.id),
    }
}

/// Percent-encodes all characters that are not unreserved (RFC 3986, 2.3).
pub fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
