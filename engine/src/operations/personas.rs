//! Personas: who a simulated caller is.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::ids::prefix;
use crate::base::{limits, time};
use crate::config::Config;
use crate::operations::assistants::check_model;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::ports::statement::{Row, Statement};
use crate::sql;
use crate::storage::fault::Fault;

/// `GET /simulations/personas`
pub const LIST: Operation = Operation {
    id: "list_simulation_personas",
    method: http::Method::GET,
    path: "/simulations/personas",
    group: "Simulations",
    title: "List personas",
    description: "Lists all personas of the workspace, newest first.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Persona>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `GET /simulations/personas/{id}`
pub const GET: Operation = Operation {
    id: "get_simulation_persona",
    path: "/simulations/personas/{id}",
    title: "Get a persona",
    description: "Reads one persona.",
    response: Some(schema::of::<Persona>),
    run: |context, input| Box::pin(get(context, input)),
    ..LIST
};

/// `POST /simulations/personas`
pub const CREATE: Operation = Operation {
    id: "create_simulation_persona",
    method: http::Method::POST,
    path: "/simulations/personas",
    group: "Simulations",
    title: "Create a persona",
    description: "Creates a persona: who the simulated caller is and how they speak.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<Persona>),
    errors: &[],
    run: |context, input| Box::pin(create(context, input)),
};

/// `PATCH /simulations/personas/{id}`
pub const UPDATE: Operation = Operation {
    id: "update_simulation_persona",
    method: http::Method::PATCH,
    path: "/simulations/personas/{id}",
    group: "Simulations",
    title: "Change a persona",
    description: "Changes the fields given; the others keep their values. Queued runs keep what they were started with.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Persona>),
    errors: &[],
    run: |context, input| Box::pin(update(context, input)),
};

/// `DELETE /simulations/personas/{id}`
pub const DELETE: Operation = Operation {
    id: "delete_simulation_persona",
    method: http::Method::DELETE,
    path: "/simulations/personas/{id}",
    group: "Simulations",
    title: "Delete a persona",
    description: "Deletes a persona for good, with the simulations that use it. Runs stay, with what they ran with.",
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
    /// Persona name.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    name: String,
    /// Instructions for the simulated caller. At most 32,768 bytes.
    #[schemars(length(min = 1, max = limits::INSTRUCTIONS_BYTES_MAX))]
    system_prompt: String,
    /// `provider/name` of the model that speaks as this caller; null for the assistant's own.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
    model: Option<String>,
}

/// A persona.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Persona {
    /// `pers_…`
    id: String,
    /// What a client may set.
    #[serde(flatten)]
    draft: Draft,
    /// When it was made.
    created_at: String,
    /// When it last changed.
    updated_at: String,
    /// Guards concurrent changes; not shown.
    #[serde(skip)]
    revision: i64,
}

const COLUMNS: &str = "id, name, system_prompt, model, revision, created_at, updated_at";

impl Persona {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            draft: Draft {
                name: row.text("name")?,
                system_prompt: row.text("system_prompt")?,
                model: row.optional_text("model")?,
            },
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
            revision: row.integer("revision")?,
        })
    }
}

impl Draft {
    fn check(&self, config: &Config) -> Result<(), Error> {
        check_instructions("system_prompt", &self.system_prompt)?;
        check_model("model", self.model.as_deref(), config)
    }
}

/// Refuses instructions that are too large in bytes though short enough in characters.
pub fn check_instructions(field: &str, text: &str) -> Result<(), Error> {
    if text.len() > limits::INSTRUCTIONS_BYTES_MAX {
        let message =
            format!("must have at most {} bytes, has {}", limits::INSTRUCTIONS_BYTES_MAX, text.len());
        return Err(Error::field(field, message));
    }
    Ok(())
}

fn select_one(id: &str) -> Statement {
    sql!(format!("SELECT {COLUMNS} FROM personas WHERE workspace_id = :ws AND id = ?1"), id)
}

async fn list(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(format!("SELECT {COLUMNS} FROM personas WHERE workspace_id = :ws ORDER BY id DESC"));
    crud::list(context, all, Persona::read).await
}

async fn get(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    Output::ok(&crud::one(context, select_one(input.id()), "persona", Persona::read).await?)
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let draft: Draft = input.body()?;
    draft.check(context.services.config())?;
    let now_ms = context.now_ms;
    let persona = Persona {
        id: context.id(prefix::PERSONA),
        draft,
        created_at: time::format(now_ms),
        updated_at: time::format(now_ms),
        revision: 1,
    };
    let insert = sql!(
        "INSERT INTO personas (workspace_id, id, name, system_prompt, model, revision, created_at, updated_at)
         VALUES (:ws, ?1, ?2, ?3, ?4, 1, ?5, ?5)",
        &persona.id,
        &persona.draft.name,
        &persona.draft.system_prompt,
        persona.draft.model.clone(),
        now_ms,
    );
    context.commit(vec![insert], Output::created(&persona)?).await
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = crud::one(context, select_one(input.id()), "persona", Persona::read).await?;
    let Some(draft) = crud::merged(&current.draft, &input.body)? else {
        return Output::ok(&current);
    };
    draft.check(context.services.config())?;
    let now_ms = context.now_ms;
    let guard = crud::unchanged("personas", &current.id, current.revision);
    let update = sql!(
        "UPDATE personas SET name = ?2, system_prompt = ?3, model = ?4, revision = revision + 1, updated_at = ?5
         WHERE workspace_id = :ws AND id = ?1",
        &current.id,
        &draft.name,
        &draft.system_prompt,
        draft.model.clone(),
        now_ms,
    );
    let next = Persona { draft, updated_at: time::format(now_ms), ..current };
    context.commit(vec![guard, update], Output::ok(&next)?).await
}

async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let statements = vec![
        sql!("DELETE FROM simulations WHERE workspace_id = :ws AND persona_id = ?1", id),
        sql!("DELETE FROM personas WHERE workspace_id = :ws AND id = ?1 RETURNING id", id),
    ];
    crud::delete(context, statements, "persona").await
}
