//! The examples of the API reference: every operation, event and tool request, as the service answers and sends them.
//! Recorded in the Sandbox, whose clock and randomness are fixed, and compared with the file that `/docs` is made with.
mod shorten;
mod story;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sidetone::sandbox::memory;
use sidetone_engine::operations::operation::{Operation, Success};
use sidetone_engine::operations::{self, OPERATIONS};
use sidetone_engine::ports::{HttpError, HttpReply, HttpRequest};
use sidetone_tests::World;

use self::shorten::{shortened, shortened_stream};

/// Where the practice of the examples receives its events.
const EVENTS_URL: &str = "https://dental.example.com/events";
/// Where its tools are.
const TOOLS_URL: &str = "https://dental.example.com/tools/";
/// A model that cannot be reached.
const AWAY: &str = "cloud/away";
/// What its tools answer.
const SLOT: &str = r#"{"slot": "2026-01-05T10:00", "free": true}"#;

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn examples() {
    let providers = r#"{"cloud": {"base_url": "https://models.example.com/v1"}}"#;
    // The ids in the examples are those of a service with one database.
    let world = World::over_with(Arc::new(memory()), &[("SIDETONE_PROVIDERS", providers)]);
    let mut book = Book::open(&world);
    story::tell(&mut book);
    let missing: Vec<&str> =
        OPERATIONS.iter().map(|one| one.id).filter(|id| !book.operations.contains_key(*id)).collect();
    assert!(
        missing.is_empty(),
        "no example of {missing:?}: add a line for each to reference_examples/story.rs"
    );
    matches_file(&book.close());
}

/// What has been recorded.
struct Book<'a> {
    world: &'a World,
    operations: Map<String, Value>,
    error: Value,
}

impl<'a> Book<'a> {
    /// Answers what the service sends, so that each recording has the same answers.
    fn open(world: &'a World) -> Self {
        let sandbox = world.sandbox().expect("the Sandbox");
        sandbox.answer_http_with(|request| {
            Ok(if request.url.starts_with(TOOLS_URL) {
                answer(200, SLOT)
            } else if request.url.starts_with(EVENTS_URL) {
                answer(204, "")
            } else if request.url.contains("models.example.com") {
                return Err(HttpError::Failed("the connection was refused".to_owned()));
            } else {
                answer(201, r#"{"sid": "CA0f2d4c0b8e6a4f7f9c3b5d1e2a7c9b40", "status": "queued"}"#)
            })
        });
        Self { world, operations: Map::new(), error: Value::Null }
    }

    /// Makes a call, a second after the last one. The first call of an operation is its example. `path` has the values
    /// in the path and the query, such as `asst_…/revisions?limit=2`, in the place of the operation's own.
    #[track_caller]
    fn call(&mut self, id: &str, path: &[&str], query: &str, body: Option<Value>) -> Value {
        let operation = operations::by_id(id).unwrap_or_else(|| panic!("no operation {id}"));
        let names: Vec<&str> = operation.path_names().collect();
        assert_eq!(names.len(), path.len(), "{id}: the values of {names:?}");
        let mut uri = operation.path.to_owned();
        for (name, value) in names.iter().zip(path) {
            uri = uri.replace(&format!("{{{name}}}"), &sidetone_tests::call::encoded(value));
        }
        if !query.is_empty() {
            uri = format!("{uri}?{query}");
        }
        self.world.sandbox().expect("the Sandbox").advance(1_000);
        let reply = self.world.call(operation.method.clone(), &uri, body.as_ref());
        assert_eq!(reply.status, operation.success.status(), "{id}: {reply:?}");
        if !self.operations.contains_key(id) {
            let mut example = Map::new();
            if !path.is_empty() {
                let values = names.iter().zip(path).map(|(name, value)| ((*name).to_owned(), json!(value)));
                example.insert("path".to_owned(), values.collect::<Map<_, _>>().into());
            }
            if !query.is_empty() {
                example.insert("query".to_owned(), query.into());
            }
            if let Some(body) = body {
                example.insert("body".to_owned(), body);
            }
            example.extend(answered(operation, &reply));
            self.operations.insert(id.to_owned(), example.into());
        }
        reply.json
    }

    /// The same, and returns the id of what was made.
    #[track_caller]
    fn make(&mut self, id: &str, path: &[&str], body: Value) -> String {
        let made = self.call(id, path, "", Some(body));
        made["id"].as_str().unwrap_or_else(|| panic!("{id}: no id: {made}")).to_owned()
    }

    /// A request that is refused: the example of an error.
    fn refused(&mut self, path: &str, body: Value) {
        self.error = self.world.post(path, body).refused("validation_failed").json;
    }

    /// Does what waits: conversations, analyses, deliveries.
    fn wait(&self) {
        self.world.sandbox().expect("the Sandbox").run_jobs();
    }

    /// Everything, in the order of the table of operations. Events are those that were really sent.
    fn close(mut self) -> Value {
        let sent = self.world.sandbox().expect("the Sandbox").sent_http();
        let mut events = Map::new();
        let mut event = Value::Null;
        let mut tool = Value::Null;
        for request in &sent {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            if request.url.starts_with(TOOLS_URL) {
                // A test of a tool has no call.
                if tool.is_null() && body["call"]["id"].is_string() {
                    tool = wired(request);
                    tool["body"] = body;
                    tool["answer"] = SLOT.into();
                }
            } else if request.url.starts_with(EVENTS_URL) {
                if event.is_null() {
                    event = wired(request);
                }
                let kind = body["type"].as_str().expect("a type").to_owned();
                events.entry(kind).or_insert_with(|| shortened(&body));
            }
        }
        for kind in kinds() {
            assert!(
                events.contains_key(&kind),
                "no `{kind}` was sent: let it happen in reference_examples/story.rs"
            );
        }
        let operations: Map<String, Value> = OPERATIONS
            .iter()
            .filter_map(|one| Some((one.id.to_owned(), self.operations.shift_remove(one.id)?)))
            .collect();
        let events: Map<String, Value> = kinds()
            .into_iter()
            .filter_map(|kind| events.shift_remove(&kind).map(|body| (kind, body)))
            .collect();
        json!({"operations": operations, "event": event, "events": events, "tool": tool, "error": self.error})
    }
}

/// What an operation answered.
fn answered(operation: &Operation, reply: &sidetone_tests::Reply) -> Map<String, Value> {
    let mut example = Map::from_iter([("status".to_owned(), reply.status.into())]);
    match operation.success {
        Success::Ok | Success::Created => {
            example.insert("response".to_owned(), shortened(&reply.json));
        }
        Success::Events => {
            example.insert("stream".to_owned(), shortened_stream(&reply.body).into());
        }
        Success::Empty | Success::Audio => {}
    }
    example
}

/// The kinds of events that a webhook can ask for.
fn kinds() -> Vec<String> {
    let create = operations::by_id("create_webhook").expect("webhooks are created");
    let schema = sidetone_tests::call::body_schema(create).expect("a body");
    let kinds = schema["properties"]["events"]["items"]["enum"].as_array().expect("kinds of events");
    kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "*").map(str::to_owned).collect()
}

fn answer(status: u16, body: &'static str) -> HttpReply {
    HttpReply { status, headers: Vec::new(), body: Bytes::from_static(body.as_bytes()) }
}

/// A request as it went out, without its body.
fn wired(request: &HttpRequest) -> Value {
    let headers: Map<String, Value> =
        request.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    json!({"method": request.method, "url": request.url, "headers": headers})
}

fn matches_file(examples: &Value) {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "engine", "src", "interfaces", "docs", "examples.json"]
            .iter()
            .collect();
    let mut text = serde_json::to_string_pretty(examples).expect("JSON");
    text.push('\n');
    if std::env::var_os("SIDETONE_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).expect("the file can be written");
        return;
    }
    let stored: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    for part in ["operations", "event", "events", "tool", "error"] {
        let (now, then) = (&examples[part], &stored[part]);
        for (name, value) in now.as_object().into_iter().flatten() {
            assert_eq!(
                value, &then[name],
                "the example of {name} is no longer what the service says. If that is meant, run this test with \
                 SIDETONE_UPDATE_SNAPSHOTS=1 and commit the file."
            );
        }
    }
    assert_eq!(
        examples.to_string(),
        stored.to_string(),
        "the file has more than was recorded, or another order"
    );
}
