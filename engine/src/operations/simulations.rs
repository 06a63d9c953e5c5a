//! Simulations: an assistant under test, with a persona in a scenario.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::error::{Error, FieldProblem};
use crate::base::ids::prefix;
use crate::base::{limits, time};
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema, validate};
use crate::ports::statement::{Row, Rows, Statement};
use crate::sql;
use crate::storage::fault::Fault;

/// `GET /simulations`
pub const LIST: Operation = Operation {
    id: "list_simulations",
    method: http::Method::GET,
    path: "/simulations",
    group: "Simulations",
    title: "List simulations",
    description: "Lists the simulations of the workspace or of one assistant, newest first.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: Some(schema::of::<Filter>),
    body: None,
    response: Some(schema::of::<Vec<Simulation>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `GET /simulations/{id}`
pub const GET: Operation = Operation {
    id: "get_simulation",
    path: "/simulations/{id}",
    title: "Get a simulation",
    description: "Reads one simulation.",
    query: None,
    response: Some(schema::of::<Simulation>),
    run: |context, input| Box::pin(get(context, input)),
    ..LIST
};

/// `POST /simulations`
pub const CREATE: Operation = Operation {
    id: "create_simulation",
    method: http::Method::POST,
    path: "/simulations",
    group: "Simulations",
    title: "Create a simulation",
    description: "Pairs an assistant with a persona and a scenario. Nothing runs until a run is started.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<Simulation>),
    errors: &[],
    run: |context, input| Box::pin(create(context, input)),
};

/// `PATCH /simulations/{id}`
pub const UPDATE: Operation = Operation {
    id: "update_simulation",
    method: http::Method::PATCH,
    path: "/simulations/{id}",
    group: "Simulations",
    title: "Change a simulation",
    description: "Changes the fields given; the others keep their values. A name of null makes the default name again.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Simulation>),
    errors: &[],
    run: |context, input| Box::pin(update(context, input)),
};

/// `DELETE /simulations/{id}`
pub const DELETE: Operation = Operation {
    id: "delete_simulation",
    method: http::Method::DELETE,
    path: "/simulations/{id}",
    group: "Simulations",
    title: "Delete a simulation",
    description: "Deletes a simulation for good. Its runs stay, with what they ran with.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: false,
    query: None,
    body: None,
    response: None,
    errors: &[],
    run: |context, input| Box::pin(delete(context, input)),
};

/// The default name joins two names, so it may be longer than one.
const SIMULATION_NAME_CHARS_MAX: u64 = 2 * limits::NAME_CHARS_MAX + 3;

/// Which simulations.
#[derive(Deserialize, JsonSchema)]
pub struct Filter {
    /// Only those of this assistant.
    assistant_id: Option<String>,
}

/// What a client may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The assistant under test.
    assistant_id: String,
    /// Who calls.
    persona_id: String,
    /// What they want.
    scenario_id: String,
    /// Default: persona × scenario.
    #[serde(default)]
    #[schemars(length(min = 1, max = SIMULATION_NAME_CHARS_MAX))]
    name: Option<String>,
}

/// A simulation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Simulation {
    /// `sim_…`
    id: String,
    /// The assistant under test.
    assistant_id: String,
    /// Who calls.
    persona_id: String,
    /// What they want.
    scenario_id: String,
    /// Its name.
    name: String,
    /// When it was made.
    created_at: String,
    /// When it last changed.
    updated_at: String,
    /// Guards concurrent changes; not shown.
    #[serde(skip)]
    revision: i64,
}

const COLUMNS: &str = "id, assistant_id, persona_id, scenario_id, name, revision, created_at, updated_at";

impl Simulation {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            assistant_id: row.text("assistant_id")?,
            persona_id: row.text("persona_id")?,
            scenario_id: row.text("scenario_id")?,
            name: row.text("name")?,
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
            revision: row.integer("revision")?,
        })
    }

    fn draft(&self) -> Draft {
        Draft {
            assistant_id: self.assistant_id.clone(),
            persona_id: self.persona_id.clone(),
            scenario_id: self.scenario_id.clone(),
            name: Some(self.name.clone()),
        }
    }
}

fn select_one(id: &str) -> Statement {
    sql!(format!("SELECT {COLUMNS} FROM simulations WHERE workspace_id = :ws AND id = ?1"), id)
}

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Filter { assistant_id } = input.query()?;
    let all = match assistant_id {
        Some(id) => sql!(
            format!(
                "SELECT {COLUMNS} FROM simulations WHERE workspace_id = :ws AND assistant_id = ?1 ORDER BY id DESC"
            ),
            id
        ),
        None => sql!(format!("SELECT {COLUMNS} FROM simulations WHERE workspace_id = :ws ORDER BY id DESC")),
    };
    crud::list(context, all, Simulation::read).await
}

async fn get(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    Output::ok(&crud::one(context, select_one(input.id()), "simulation", Simulation::read).await?)
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let draft: Draft = input.body()?;
    let rows = context.read(names(input, "").to_vec()).await?;
    let name = name(&draft, &rows)?;
    let now_ms = context.now_ms;
    let simulation = Simulation {
        id: context.id(prefix::SIMULATION),
        assistant_id: draft.assistant_id,
        persona_id: draft.persona_id,
        scenario_id: draft.scenario_id,
        name,
        created_at: time::format(now_ms),
        updated_at: time::format(now_ms),
        revision: 1,
    };
    let insert = sql!(
        "INSERT INTO simulations (workspace_id, id, assistant_id, persona_id, scenario_id, name, revision, created_at, updated_at)
         VALUES (:ws, ?1, ?2, ?3, ?4, ?5, 1, ?6, ?6)",
        &simulation.id,
        &simulation.assistant_id,
        &simulation.persona_id,
        &simulation.scenario_id,
        &simulation.name,
        now_ms,
    );
    context.commit(vec![insert], Output::created(&simulation)?).await
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let mut reads = vec![select_one(input.id())];
    reads.extend(names(input, input.id()));
    let rows = context.read(reads).await?;
    let row = rows.first().and_then(|rows| rows.first()).ok_or_else(|| Error::not_found("simulation"))?;
    let current = Simulation::read(row)?;
    let Some(draft) = crud::merged(&current.draft(), &input.body)? else {
        return Output::ok(&current);
    };
    let name = name(&draft, rows.get(1..).unwrap_or_default())?;
    let now_ms = context.now_ms;
    let next = Simulation {
        assistant_id: draft.assistant_id,
        persona_id: draft.persona_id,
        scenario_id: draft.scenario_id,
        name,
        updated_at: current.updated_at.clone(),
        created_at: current.created_at.clone(),
        id: current.id.clone(),
        revision: current.revision,
    };
    if next == current {
        return Output::ok(&current);
    }
    let guard = crud::unchanged("simulations", &current.id, current.revision);
    let update = sql!(
        "UPDATE simulations SET assistant_id = ?2, persona_id = ?3, scenario_id = ?4, name = ?5,
         revision = revision + 1, updated_at = ?6 WHERE workspace_id = :ws AND id = ?1",
        &next.id,
        &next.assistant_id,
        &next.persona_id,
        &next.scenario_id,
        &next.name,
        now_ms,
    );
    let next = Simulation { updated_at: time::format(now_ms), ..next };
    context.commit(vec![guard, update], Output::ok(&next)?).await
}

/// What a simulation joins, by the names of its fields.
const NOUNS: [&str; 3] = ["assistant", "persona", "scenario"];

/// Reads the names of what the body names or, where it leaves a field out, of what the simulation `id`
/// has: in the batch that reads the simulation, so that a change takes one round trip to decide.
fn names(input: &Input, id: &str) -> [Statement; 3] {
    NOUNS.map(|noun| {
        sql!(
            format!(
                "SELECT name FROM {noun}s WHERE workspace_id = :ws AND id =
                 COALESCE(?1, (SELECT {noun}_id FROM simulations WHERE workspace_id = :ws AND id = ?2))"
            ),
            input.body.get(&format!("{noun}_id")).and_then(Value::as_str),
            id
        )
    })
}

/// Refuses ids that are not the workspace's; returns the name given or made. `rows` are the answers to
/// [`names`].
fn name(draft: &Draft, rows: &[Rows]) -> Result<String, Fault> {
    let mut problems = Vec::new();
    let mut names = Vec::new();
    for (rows, noun) in rows.iter().zip(NOUNS) {
        match rows.first() {
            Some(row) => names.push(row.text("name")?),
            None => problems
                .push(FieldProblem::new(format!("{noun}_id"), format!("is no {noun} of this workspace"))),
        }
    }
    validate::refuse(&problems)?;
    Ok(match &draft.name {
        Some(name) => name.clone(),
        None => names.get(1..).unwrap_or_default().join(" × "),
    })
}

async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let delete =
        sql!("DELETE FROM simulations WHERE workspace_id = :ws AND id = ?1 RETURNING id", input.id());
    crud::delete(context, vec![delete], "simulation").await
}
