//! What an operation is: written once, served as REST, MCP, OpenAPI and documentation.
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::error::{Code, Error};
use crate::base::ids::Id;
use crate::base::page::Pagination;
use crate::operations::all_problems::{self, Problems};
use crate::operations::context::Context;
use crate::operations::field_at_fault;
use crate::operations::following::Follow;
use crate::operations::schema::{self, SchemaOf};
use crate::ports::BoxFuture;
use crate::ports::blobs::StoredFile;
use crate::storage::fault::Fault;
use crate::storage::idempotency::{OneTimeSecret, Stored};

/// One row of the table in [`crate::operations`].
pub struct Operation {
    /// The MCP tool's name and the OpenAPI operationId.
    pub id: &'static str,
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: http::Method,
    /// The route, with `{name}` for path values.
    pub path: &'static str,
    /// The group it is documented in, set by the table.
    pub group: &'static str,
    /// The title in MCP and the summary in OpenAPI.
    pub title: &'static str,
    /// What it does and what a caller has to know.
    pub description: &'static str,
    /// Its effects on the workspace.
    pub effects: Effects,
    /// The response to success.
    pub success: Success,
    /// See [`Operation::reaches_out`].
    pub(crate) reaches_out: bool,
    /// See [`Operation::destroys`].
    pub(crate) replaces: bool,
    /// Whether a person in the dashboard has to be an admin for it.
    pub for_admins: bool,
    /// Whether it takes If-Match (MCP `if_revision`).
    pub revision: bool,
    /// The query parameters, an object schema; `None` for none.
    pub query: Option<SchemaOf>,
    /// The request body, an object schema; `None` for none.
    pub body: Option<BodySchema>,
    /// The body of success; `None` when it is empty.
    pub response: Option<SchemaOf>,
    /// The errors it can answer, beyond those that every operation can.
    pub errors: &'static [Code],
    /// See [`Operation::shorter_over_mcp`].
    pub(crate) shorter: Option<Shorter>,
    /// The function that does the work.
    pub run: Run,
}

/// Shortens a body. `None` where it stays as it is.
pub(crate) type Shorter = fn(&str) -> Option<Shortened>;

/// A shortened body.
pub(crate) struct Shortened {
    /// What is left of it.
    pub(crate) body: String,
    /// How to get the whole one, where the body does not say it.
    pub(crate) note: Option<&'static str>,
}

/// A row of the table starts as its verb's defaults and says what differs from them.
impl Operation {
    /// `GET`: reads, and answers 200.
    pub(crate) const fn get(id: &'static str, path: &'static str, run: Run) -> Self {
        Self::new(http::Method::GET, Effects::Read, Success::Ok, id, path, run)
    }

    /// `POST`: creates, and answers 201.
    pub(crate) const fn post(id: &'static str, path: &'static str, run: Run) -> Self {
        Self::new(http::Method::POST, Effects::Create, Success::Created, id, path, run)
    }

    /// `PATCH`: updates, and answers 200.
    pub(crate) const fn patch(id: &'static str, path: &'static str, run: Run) -> Self {
        Self::new(http::Method::PATCH, Effects::Update, Success::Ok, id, path, run)
    }

    /// `PUT`: replaces, and answers 200.
    pub(crate) const fn put(id: &'static str, path: &'static str, run: Run) -> Self {
        Self::new(http::Method::PUT, Effects::Replace, Success::Ok, id, path, run)
    }

    /// `DELETE`: deletes, and answers 204.
    pub(crate) const fn delete(id: &'static str, path: &'static str, run: Run) -> Self {
        Self::new(http::Method::DELETE, Effects::Delete, Success::Empty, id, path, run)
    }

    const fn new(
        method: http::Method,
        effects: Effects,
        success: Success,
        id: &'static str,
        path: &'static str,
        run: Run,
    ) -> Self {
        Self {
            id,
            method,
            path,
            group: "",
            title: "",
            description: "",
            effects,
            success,
            reaches_out: false,
            replaces: false,
            for_admins: false,
            revision: false,
            query: None,
            body: None,
            response: None,
            errors: &[],
            shorter: None,
            run,
        }
    }

    pub(crate) const fn docs(mut self, title: &'static str, description: &'static str) -> Self {
        self.title = title;
        self.description = description;
        self
    }

    pub(crate) const fn in_group(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    pub(crate) const fn without_docs(mut self) -> Self {
        self.response = None;
        self.errors(&[]).docs("", "")
    }

    /// Can incur usage.
    pub(crate) const fn spending(mut self) -> Self {
        self.effects = Effects::Spend;
        self.reaches_out = true;
        self
    }

    pub(crate) const fn reaching_out(mut self) -> Self {
        self.reaches_out = true;
        self
    }

    /// Takes the place of what was there, though a repetition does more than nothing.
    pub(crate) const fn replacing(mut self) -> Self {
        self.replaces = true;
        self
    }

    /// In the dashboard, for admins only.
    pub(crate) const fn for_admins(mut self) -> Self {
        self.for_admins = true;
        self
    }

    /// A body of success is shortened over MCP, where it would be sent twice, to a model.
    pub(crate) const fn shorter_over_mcp(mut self, shorter: Shorter) -> Self {
        self.shorter = Some(shorter);
        self
    }

    /// Takes If-Match (MCP `if_revision`).
    pub(crate) const fn with_revision(mut self) -> Self {
        self.revision = true;
        self
    }

    pub(crate) const fn with_effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    pub(crate) const fn with_success(mut self, success: Success) -> Self {
        self.success = success;
        self
    }

    pub(crate) const fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(schema::of::<T>);
        self
    }

    /// Takes a body of which nothing required may be left out.
    pub(crate) const fn body<T: JsonSchema + DeserializeOwned>(self) -> Self {
        self.with_body::<T>(Presence::Whole)
    }

    /// Takes a PATCH body.
    pub(crate) const fn partial_body<T: JsonSchema + DeserializeOwned>(self) -> Self {
        self.with_body::<T>(Presence::Partial)
    }

    /// Takes a body that may be left out.
    pub(crate) const fn optional_body<T: JsonSchema + DeserializeOwned>(self) -> Self {
        self.with_body::<T>(Presence::Optional)
    }

    const fn with_body<T: JsonSchema + DeserializeOwned>(mut self, presence: Presence) -> Self {
        let problems = all_problems::of_type::<T>;
        self.body = Some(BodySchema { schema: schema::of::<T>, presence, problems });
        self
    }

    /// Lists the problems of a body that was refused: for bodies with rules beyond their type.
    pub(crate) const fn listing_problems(mut self, problems: Problems) -> Self {
        if let Some(body) = &mut self.body {
            body.problems = problems;
        }
        self
    }

    /// Answers with a body.
    pub(crate) const fn returns<T: JsonSchema>(mut self) -> Self {
        self.response = Some(schema::of::<T>);
        self
    }

    /// Can answer these errors, beyond those that every operation can.
    pub(crate) const fn errors(mut self, errors: &'static [Code]) -> Self {
        self.errors = errors;
        self
    }
}

/// An operation's work. It may be run again when it ends in [`Fault::Stale`].
pub type Run = for<'a> fn(&'a mut Context, &'a Input) -> BoxFuture<'a, Result<Output, Fault>>;

/// The request body of an operation.
#[derive(Clone, Copy)]
pub struct BodySchema {
    /// The fields.
    pub schema: SchemaOf,
    /// What may be left out.
    pub presence: Presence,
    /// Lists what the type and the resource refuse.
    pub(crate) problems: Problems,
}

/// What may be left out of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nothing that the schema requires.
    Whole,
    /// Any field: a PATCH, where fields left out keep their values.
    Partial,
    /// The whole body: every field has a default.
    Optional,
}

/// The effects of calling an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// Reads only.
    Read,
    /// Creates something new each time.
    Create,
    /// Changes something that others may change too: clients must not repeat it automatically.
    Update,
    /// Replaces something as a whole; repeating the call changes nothing more.
    Replace,
    /// Removes something permanently; repeating the call finds nothing.
    Delete,
    /// Can incur usage: MCP asks for `confirm: true`.
    Spend,
}

/// The response to success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    /// 200 with a body.
    Ok,
    /// 201 with a body.
    Created,
    /// 204 without a body.
    Empty,
    /// 200 with a recording, or 206 with a part of it. MCP does not offer it.
    Audio,
    /// 200 with server-sent events, or 204 after the last of them. MCP does not offer it.
    Events,
}

impl Success {
    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Ok | Self::Audio | Self::Events => 200,
            Self::Created => 201,
            Self::Empty => 204,
        }
    }
}

impl Operation {
    /// The names in the path, in order.
    pub fn path_names(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|segment| segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')))
    }

    /// Whether a request may come without a body.
    pub fn body_may_be_empty(&self) -> bool {
        self.body.is_none_or(|body| body.presence == Presence::Optional)
    }

    /// Whether calling it can incur usage, so that MCP asks for `confirm`.
    pub fn spends(&self) -> bool {
        self.effects == Effects::Spend
    }

    /// Whether it may reach a service outside of this one: a carrier, a model's provider or a webhook's receiver. MCP
    /// counts every write to an assistant among these.
    pub fn reaches_out(&self) -> bool {
        self.reaches_out
    }

    /// Whether what was there before is gone after it: deletions, and what is replaced as a whole. An update changes what it
    /// names.
    pub fn destroys(&self) -> bool {
        self.replaces || matches!(self.effects, Effects::Replace | Effects::Delete)
    }

    /// Whether MCP offers it as a tool: all but downloads and streams.
    pub fn is_tool(&self) -> bool {
        !matches!(self.success, Success::Audio | Success::Events)
    }

    /// Whether it takes an Idempotency-Key.
    pub fn takes_idempotency_key(&self) -> bool {
        self.method == http::Method::POST
    }
}

/// A request, checked against the operation's schemas.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The path's values, decoded, in order.
    pub path: Vec<String>,
    /// The query's values, typed.
    pub query: Map<String, Value>,
    /// The body's fields.
    pub body: Map<String, Value>,
    /// If-Match.
    pub if_revision: Option<i64>,
    /// Last-Event-ID; 0 without it.
    pub after_event: i64,
}

impl Input {
    /// The path's first value.
    pub fn path_value(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// The path's first value, as an id.
    pub fn id<I: Id>(&self) -> I {
        I::from_stored(self.path_value())
    }

    /// The path's second value, as an id.
    pub fn second_id<I: Id>(&self) -> I {
        I::from_stored(self.path.get(1).map_or("", String::as_str))
    }

    /// The body as a type. Its schema has been checked; only the type's own rules can refuse it.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Error> {
        from_map(&self.body)
    }

    /// The query as a type.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Error> {
        from_map(&self.query)
    }
}

/// Reads an object that passed its schema into a type; an error names the field that the type refuses.
pub fn from_map<T: DeserializeOwned>(map: &Map<String, Value>) -> Result<T, Error> {
    T::deserialize(map)
        .map_err(|error| field_at_fault::explain(map, &error, &|map| T::deserialize(map).err()))
}

/// The response of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// 200, 201 or 204.
    pub status: u16,
    /// JSON; `None` for an empty body.
    pub body: Option<String>,
    /// The revision for `ETag`.
    pub etag: Option<i64>,
    /// The secret to show once, added to the body.
    pub reveal: Option<OneTimeSecret>,
    /// A file sent in place of the body.
    pub file: Option<Box<File>>,
    /// What is followed: a stream of events is sent in place of the body.
    pub follow: Option<Follow>,
    /// Where a list continues; `None` at its end.
    pub next: Option<Next>,
}

/// The query parameter that continues a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// `after` or `page`.
    pub parameter: &'static str,
    /// Its value.
    pub value: String,
}

impl Next {
    /// Continues after a row.
    pub fn after(cursor: String) -> Self {
        Self { parameter: "after", value: cursor }
    }

    /// Continues with a page.
    pub fn page(number: i64) -> Self {
        Self { parameter: "page", value: number.to_string() }
    }
}

/// A blob as a response: REST sends it, or the requested part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where it is stored.
    pub file: StoredFile,
    /// Its size.
    pub size_bytes: u64,
    /// The field value of `ETag`: changes whenever a byte changes.
    pub etag: String,
    /// The field value of `Content-Type`.
    pub media_type: &'static str,
    /// A file name for clients: letters, digits, `_` and `.`.
    pub name: String,
}

impl Output {
    /// 200 with `body`.
    pub fn ok(body: &impl Serialize) -> Result<Self, Fault> {
        Self::json(200, body)
    }

    /// 201 with `body`.
    pub fn created(body: &impl Serialize) -> Result<Self, Fault> {
        Self::json(201, body)
    }

    /// An error to store as the response under an Idempotency-Key.
    pub fn failure(error: &Error) -> Self {
        Self::text(error.code.status(), Stored::failure_body(error))
    }

    /// 204.
    pub fn empty() -> Self {
        Self::new(204, None)
    }

    /// 200 with a file.
    pub fn file(file: File) -> Self {
        Self { file: Some(Box::new(file)), ..Self::new(200, None) }
    }

    /// 200 with the events of what is followed.
    pub fn follow(follow: Follow) -> Self {
        Self { follow: Some(follow), ..Self::new(200, None) }
    }

    /// A body that is JSON already.
    pub fn text(status: u16, body: String) -> Self {
        Self::new(status, Some(body))
    }

    /// The same with the next page.
    pub fn with_page_after(mut self, pagination: Pagination) -> Self {
        self.next = pagination.next().map(Next::page);
        self
    }

    /// A response as it was stored under an Idempotency-Key.
    pub(crate) fn stored(status: u16, body: Option<String>) -> Self {
        Self::new(status, body)
    }

    fn new(status: u16, body: Option<String>) -> Self {
        Self { status, body, etag: None, reveal: None, file: None, follow: None, next: None }
    }

    /// The same with a secret to show.
    pub fn revealing(mut self, reveal: OneTimeSecret) -> Self {
        self.reveal = Some(reveal);
        self
    }

    fn json(status: u16, body: &impl Serialize) -> Result<Self, Fault> {
        let text = serde_json::to_string(body)
            .map_err(|error| Fault::Bug(format!("a response does not serialise: {error}")))?;
        Ok(Self::text(status, text))
    }
}
