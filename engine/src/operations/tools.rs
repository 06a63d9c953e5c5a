//! Tools: HTTP endpoints of the user's that an assistant may call during a conversation.
pub mod rotate_secret;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::prefix;
use crate::base::targets::{PublicUrl, TargetError};
use crate::base::tool_parameters::ToolParameters;
use crate::base::{limits, time};
use crate::config::Config;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema, validate};
use crate::ports::statement::{Row, Statement};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;
use crate::storage::snapshots::ToolMethod;

/// `GET /tools`
pub const LIST: Operation = Operation {
    id: "list_tools",
    method: http::Method::GET,
    path: "/tools",
    group: "Tools",
    title: "List tools",
    description: "Lists all HTTP tools of the workspace, newest first.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Tool>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `GET /tools/{id}`
pub const GET: Operation = Operation {
    id: "get_tool",
    path: "/tools/{id}",
    title: "Get a tool",
    description: "Reads one HTTP tool.",
    response: Some(schema::of::<Tool>),
    run: |context, input| Box::pin(get(context, input)),
    ..LIST
};

/// `POST /tools`
pub const CREATE: Operation = Operation {
    id: "create_tool",
    method: http::Method::POST,
    path: "/tools",
    group: "Tools",
    title: "Create a tool",
    description: "Creates an HTTP tool. Its URL is not called now. The answer holds the signing secret, which is shown \
        once: callbacks are signed with it (Standard Webhooks). Attach the tool to an assistant to use it.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<CreatedTool>),
    errors: &[Code::PrivateTarget, Code::NameTaken],
    run: |context, input| Box::pin(create(context, input)),
};

/// `PATCH /tools/{id}`
pub const UPDATE: Operation = Operation {
    id: "update_tool",
    method: http::Method::PATCH,
    path: "/tools/{id}",
    group: "Tools",
    title: "Change a tool",
    description: "Changes the fields given; the others keep their values. The signing secret stays.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Tool>),
    errors: &[Code::PrivateTarget, Code::NameTaken],
    run: |context, input| Box::pin(update(context, input)),
};

/// `DELETE /tools/{id}`
pub const DELETE: Operation = Operation {
    id: "delete_tool",
    method: http::Method::DELETE,
    path: "/tools/{id}",
    group: "Tools",
    title: "Delete a tool",
    description: "Deletes a tool for good and detaches it from every assistant, whose revisions rise.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: false,
    query: None,
    body: None,
    response: None,
    errors: &[],
    run: |context, input| Box::pin(delete(context, input)),
};

/// What a client may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Function name: letters, digits and underscore, not starting with a digit. Unique in the workspace.
    #[schemars(length(min = 1, max = limits::TOOL_NAME_CHARS_MAX), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"))]
    pub name: String,
    /// Public HTTPS URL that is called.
    #[schemars(length(min = 1, max = crate::base::targets::URL_BYTES_MAX))]
    pub url: String,
    /// How it is called: POST, PUT and PATCH send JSON, GET and DELETE query parameters.
    #[serde(default)]
    pub method: ToolMethod,
    /// What the tool is for, so that the model knows when to call it.
    #[serde(default)]
    #[schemars(length(max = limits::TOOL_DESCRIPTION_CHARS_MAX))]
    pub description: String,
    /// JSON Schema (`type: object`) of the arguments.
    #[serde(default = "no_parameters")]
    pub parameters: Map<String, Value>,
    /// How long the call may take, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    #[schemars(range(min = limits::TOOL_TIMEOUT_MS_MIN, max = limits::TOOL_TIMEOUT_MS_MAX))]
    pub timeout_ms: i64,
}

fn no_parameters() -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), json!({}));
    schema
}

fn default_timeout_ms() -> i64 {
    limits::TOOL_TIMEOUT_MS_DEFAULT
}

/// An HTTP tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tool {
    /// `tool_…`
    pub id: String,
    /// What a client may set.
    #[serde(flatten)]
    pub draft: Draft,
    /// When it was made.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// Guards concurrent changes; not shown.
    #[serde(skip)]
    revision: i64,
}

/// A tool as its creation answers it.
#[derive(Serialize, JsonSchema)]
pub struct CreatedTool {
    /// The tool.
    #[serde(flatten)]
    tool: Tool,
    /// `whsec_…`, shown this once.
    signing_secret: String,
}

const COLUMNS: &str =
    "id, name, url, method, description, parameters, timeout_ms, revision, created_at, updated_at";

impl Tool {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            draft: Draft {
                name: row.text("name")?,
                url: row.text("url")?,
                method: row.word("method")?,
                description: row.text("description")?,
                parameters: row.json("parameters")?,
                timeout_ms: row.integer("timeout_ms")?,
            },
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
            revision: row.integer("revision")?,
        })
    }
}

impl Draft {
    fn check(&self, config: &Config) -> Result<(), Error> {
        let mut problems = Vec::new();
        if !is_function_name(&self.name) {
            problems.push(FieldProblem::new(
                "name",
                "must consist of letters, digits and underscores and not start with a digit, such as `find_slot`",
            ));
        }
        if let Err(some) = ToolParameters::parse(&Value::Object(self.parameters.clone())) {
            problems.extend(some.into_iter().map(|problem| {
                let dot = if problem.field.is_empty() || problem.field.starts_with('[') { "" } else { "." };
                FieldProblem::new(format!("parameters{dot}{}", problem.field), problem.message)
            }));
        }
        check_target(&self.url, config, problems)
    }
}

/// Refuses `problems`, and a `url` that users' requests may not go to. That the target is private
/// has a code of its own when nothing else is wrong.
pub fn check_target(url: &str, config: &Config, mut problems: Vec<FieldProblem>) -> Result<(), Error> {
    match PublicUrl::parse(url, config.allow_private_targets) {
        Err(TargetError::NotPublic(message)) if problems.is_empty() => {
            return Err(Error::fields(Code::PrivateTarget, &[FieldProblem::new("url", message)]));
        }
        Err(TargetError::NotPublic(message) | TargetError::Malformed(message)) => {
            problems.push(FieldProblem::new("url", message));
        }
        Ok(_) => {}
    }
    validate::refuse(&problems)
}

fn is_function_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

fn select_one(id: &str) -> Statement {
    sql!(format!("SELECT {COLUMNS} FROM tools WHERE workspace_id = :ws AND id = ?1"), id)
}

async fn list(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(format!("SELECT {COLUMNS} FROM tools WHERE workspace_id = :ws ORDER BY id DESC"));
    crud::list(context, all, Tool::read).await
}

async fn get(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    Output::ok(&crud::one(context, select_one(input.id()), "tool", Tool::read).await?)
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let draft: Draft = input.body()?;
    draft.check(context.services.config())?;
    let now_ms = context.now_ms;
    let tool = Tool {
        id: context.id(prefix::TOOL),
        draft,
        created_at: time::format(now_ms),
        updated_at: time::format(now_ms),
        revision: 1,
    };
    let draft = &tool.draft;
    let insert = sql!(
        "INSERT INTO tools (workspace_id, id, name, url, method, description, parameters, timeout_ms, secret_version, revision, created_at, updated_at)
         VALUES (:ws, ?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, 1, ?8, ?8)",
        &tool.id,
        &draft.name,
        &draft.url,
        draft.method.as_str(),
        &draft.description,
        Value::Object(draft.parameters.clone()).to_string(),
        draft.timeout_ms,
        now_ms,
    );
    let output = Output::created(&tool)?.revealing(OneTimeSecret::Tool { id: tool.id.clone(), version: 1 });
    context.commit(vec![insert], output).await.map_err(|fault| name_taken(fault, &tool.draft))
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = crud::one(context, select_one(input.id()), "tool", Tool::read).await?;
    let Some(draft) = crud::merged(&current.draft, &input.body)? else {
        return Output::ok(&current);
    };
    draft.check(context.services.config())?;
    let now_ms = context.now_ms;
    let guard = crud::unchanged("tools", &current.id, current.revision);
    let update = sql!(
        "UPDATE tools SET name = ?2, url = ?3, method = ?4, description = ?5, parameters = ?6, timeout_ms = ?7,
         revision = revision + 1, updated_at = ?8 WHERE workspace_id = :ws AND id = ?1",
        &current.id,
        &draft.name,
        &draft.url,
        draft.method.as_str(),
        &draft.description,
        Value::Object(draft.parameters.clone()).to_string(),
        draft.timeout_ms,
        now_ms,
    );
    let next = Tool { draft, updated_at: time::format(now_ms), ..current };
    let output = Output::ok(&next)?;
    context.commit(vec![guard, update], output).await.map_err(|fault| name_taken(fault, &next.draft))
}

fn name_taken(fault: Fault, draft: &Draft) -> Fault {
    crud::name_taken(fault, "tools.name", "tool", &draft.name)
}

async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let statements = vec![
        sql!(
            "UPDATE assistants SET revision = revision + 1, updated_at = ?2 WHERE workspace_id = :ws AND id IN
             (SELECT assistant_id FROM assistant_tools WHERE tool_id = ?1)",
            id,
            context.now_ms
        ),
        sql!("DELETE FROM assistant_tools WHERE workspace_id = :ws AND tool_id = ?1", id),
        sql!("DELETE FROM tools WHERE workspace_id = :ws AND id = ?1 RETURNING id", id),
    ];
    crud::delete(context, statements, "tool").await
}
