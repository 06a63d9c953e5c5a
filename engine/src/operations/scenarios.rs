//! Scenarios: what a simulated caller wants, and what has to come of it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::ids::prefix;
use crate::base::{limits, time};
use crate::config::Config;
use crate::operations::assistants::check_model;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::personas::check_instructions;
use crate::operations::{crud, schema};
use crate::ports::statement::{Row, Statement};
use crate::simulation::evaluation::{EVALUATIONS_PER_SCENARIO_MAX, Evaluation};
use crate::sql;
use crate::storage::fault::Fault;

/// `GET /simulations/scenarios`
pub const LIST: Operation = Operation {
    id: "list_simulation_scenarios",
    method: http::Method::GET,
    path: "/simulations/scenarios",
    group: "Simulations",
    title: "List scenarios",
    description: "Lists all scenarios of the workspace, newest first.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Scenario>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `GET /simulations/scenarios/{id}`
pub const GET: Operation = Operation {
    id: "get_simulation_scenario",
    path: "/simulations/scenarios/{id}",
    title: "Get a scenario",
    description: "Reads one scenario.",
    response: Some(schema::of::<Scenario>),
    run: |context, input| Box::pin(get(context, input)),
    ..LIST
};

/// `POST /simulations/scenarios`
pub const CREATE: Operation = Operation {
    id: "create_simulation_scenario",
    method: http::Method::POST,
    path: "/simulations/scenarios",
    group: "Simulations",
    title: "Create a scenario",
    description: "Creates a scenario: what the simulated caller wants, and the evaluations that decide whether the assistant did well.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<Scenario>),
    errors: &[],
    run: |context, input| Box::pin(create(context, input)),
};

/// `PATCH /simulations/scenarios/{id}`
pub const UPDATE: Operation = Operation {
    id: "update_simulation_scenario",
    method: http::Method::PATCH,
    path: "/simulations/scenarios/{id}",
    group: "Simulations",
    title: "Change a scenario",
    description: "Changes the fields given; the others keep their values. Queued runs keep what they were started with.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Scenario>),
    errors: &[],
    run: |context, input| Box::pin(update(context, input)),
};

/// `DELETE /simulations/scenarios/{id}`
pub const DELETE: Operation = Operation {
    id: "delete_simulation_scenario",
    method: http::Method::DELETE,
    path: "/simulations/scenarios/{id}",
    group: "Simulations",
    title: "Delete a scenario",
    description: "Deletes a scenario for good, with the simulations that use it. Runs stay, with what they ran with.",
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
    /// Scenario name.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    name: String,
    /// What the caller says and wants; quoted lines are spoken verbatim. At most 32,768 bytes.
    #[schemars(length(min = 1, max = limits::INSTRUCTIONS_BYTES_MAX))]
    instructions: String,
    /// What decides whether a run passes; all of them have to.
    #[serde(default)]
    #[schemars(length(max = EVALUATIONS_PER_SCENARIO_MAX))]
    evaluations: Vec<Evaluation>,
    /// `provider/name` of the model that rules on `judge` evaluations; null for the assistant's own.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
    judge_model: Option<String>,
}

/// A scenario.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scenario {
    /// `scen_…`
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

const COLUMNS: &str = "id, name, instructions, evaluations, judge_model, revision, created_at, updated_at";

impl Scenario {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            draft: Draft {
                name: row.text("name")?,
                instructions: row.text("instructions")?,
                evaluations: row.json("evaluations")?,
                judge_model: row.optional_text("judge_model")?,
            },
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
            revision: row.integer("revision")?,
        })
    }
}

impl Draft {
    fn check(&self, config: &Config) -> Result<(), Error> {
        check_instructions("instructions", &self.instructions)?;
        check_model("judge_model", self.judge_model.as_deref(), config)
    }

    fn evaluations_json(&self) -> String {
        serde_json::json!(self.evaluations).to_string()
    }
}

fn select_one(id: &str) -> Statement {
    sql!(format!("SELECT {COLUMNS} FROM scenarios WHERE workspace_id = :ws AND id = ?1"), id)
}

async fn list(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(format!("SELECT {COLUMNS} FROM scenarios WHERE workspace_id = :ws ORDER BY id DESC"));
    crud::list(context, all, Scenario::read).await
}

async fn get(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    Output::ok(&crud::one(context, select_one(input.id()), "scenario", Scenario::read).await?)
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let draft: Draft = input.body()?;
    draft.check(context.services.config())?;
    let now_ms = context.now_ms;
    let scenario = Scenario {
        id: context.id(prefix::SCENARIO),
        draft,
        created_at: time::format(now_ms),
        updated_at: time::format(now_ms),
        revision: 1,
    };
    let insert = sql!(
        "INSERT INTO scenarios (workspace_id, id, name, instructions, evaluations, judge_model, revision, created_at, updated_at)
         VALUES (:ws, ?1, ?2, ?3, ?4, ?5, 1, ?6, ?6)",
        &scenario.id,
        &scenario.draft.name,
        &scenario.draft.instructions,
        scenario.draft.evaluations_json(),
        scenario.draft.judge_model.clone(),
        now_ms,
    );
    context.commit(vec![insert], Output::created(&scenario)?).await
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = crud::one(context, select_one(input.id()), "scenario", Scenario::read).await?;
    let Some(draft) = crud::merged(&current.draft, &input.body)? else {
        return Output::ok(&current);
    };
    draft.check(context.services.config())?;
    let now_ms = context.now_ms;
    let guard = crud::unchanged("scenarios", &current.id, current.revision);
    let update = sql!(
        "UPDATE scenarios SET name = ?2, instructions = ?3, evaluations = ?4, judge_model = ?5, revision = revision + 1, updated_at = ?6
         WHERE workspace_id = :ws AND id = ?1",
        &current.id,
        &draft.name,
        &draft.instructions,
        draft.evaluations_json(),
        draft.judge_model.clone(),
        now_ms,
    );
    let next = Scenario { draft, updated_at: time::format(now_ms), ..current };
    context.commit(vec![guard, update], Output::ok(&next)?).await
}

async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let statements = vec![
        sql!("DELETE FROM simulations WHERE workspace_id = :ws AND scenario_id = ?1", id),
        sql!("DELETE FROM scenarios WHERE workspace_id = :ws AND id = ?1 RETURNING id", id),
    ];
    crud::delete(context, statements, "scenario").await
}
