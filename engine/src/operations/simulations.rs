//! Simulations: an assistant under test, with a persona in a scenario.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::error::{Code, FieldProblem};
use crate::base::ids::{AssistantId, PersonaId, RunId, ScenarioId, SimulationId};
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::base::values::Metadata;
use crate::operations::context::Context;
use crate::operations::listing::{self, Part};
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource::{self, Declared, Resource, resource};
use crate::operations::validate;
use crate::ports::DatabaseError;
use crate::ports::statement::{self, Row, Rows, Statement};
use crate::sql;
use crate::storage::column::Column;
use crate::storage::fault::Fault;
use crate::storage::runs::RunStatus;

resource! {
    /// A simulation.
    pub struct Simulation {
        /// `sim_…`
        id: SimulationId,
        draft: {
            /// The assistant under test.
            assistant_id: AssistantId,
            /// The persona that calls.
            persona_id: PersonaId,
            /// The scenario it plays.
            scenario_id: ScenarioId,
            /// The name; by default the names of persona and scenario.
            name: String,
            /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
            /// update replaces all of them.
            #[serde(default)]
            metadata: Metadata,
        },
        computed: {
            /// The latest run; null while there is none.
            last_run: Option<LastRun> = "(SELECT json_object('id', id, 'status', status, 'passed', CASE passed WHEN 1 THEN json('true') WHEN 0 THEN json('false') END) FROM runs WHERE runs.workspace_id = simulations.workspace_id AND simulation_id = simulations.id ORDER BY id DESC LIMIT 1)",
        },
        #[serde(skip)]
        revision,
    }
    noun: "simulation", table: "simulations", path: "/simulations"
}

/// The latest run of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LastRun {
    /// `run_…`
    id: RunId,
    /// What it is doing.
    status: RunStatus,
    /// Whether all evaluations passed; null while it is not decided, or where nothing decides.
    passed: Option<bool>,
}

impl Column for LastRun {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        row.json(column)
    }

    fn value(&self) -> statement::Value {
        json!(self).to_string().into()
    }
}

/// `GET /simulations`
pub const LIST: Operation = Operation::get("list_simulations", Simulation::PATH, run!(list))
    .docs("List simulations", "Lists the simulations of the workspace or of one assistant, newest first.")
    .query::<Filter>()
    .returns::<Vec<Simulation>>();

/// `GET /simulations/{id}`
pub const GET: Operation =
    resource::get::<Simulation>("get_simulation").docs("Get a simulation", "Returns one simulation.");

/// `POST /simulations`
pub const CREATE: Operation = Operation::post("create_simulation", Simulation::PATH, run!(create))
    .docs(
        "Create a simulation",
        "Pairs an assistant with a persona and a scenario. Nothing runs until a run is started.",
    )
    .body::<Body>()
    .returns::<Simulation>()
    .errors(&[Code::LimitReached]);

/// `PATCH /simulations/{id}`
pub const UPDATE: Operation = Operation::patch("update_simulation", Simulation::PATH_OF_ONE, run!(update))
    .docs(
        "Update a simulation",
        "Changes the given fields; the others keep their values. A name of null restores the default name.",
    )
    .partial_body::<Body>()
    .returns::<Simulation>();

/// `DELETE /simulations/{id}`
pub const DELETE: Operation = resource::delete::<Simulation>("delete_simulation").docs(
    "Delete a simulation",
    "Deletes a simulation permanently. Its runs and their configuration are kept.",
);

impl Resource for Simulation {
    const LIMIT: i64 = limits::SIMULATIONS_MAX;
}

/// Which simulations.
#[derive(Deserialize, JsonSchema)]
struct Filter {
    /// Filter by assistant.
    assistant_id: Option<AssistantId>,
    #[serde(flatten)]
    part: Part,
}

/// The default name joins two names, so it may be longer than one.
const SIMULATION_NAME_CHARS_MAX: u64 = 2 * limits::NAME_CHARS_MAX + 3;

/// The fields that you set; the name is optional.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// The assistant under test.
    assistant_id: AssistantId,
    /// The persona that calls.
    persona_id: PersonaId,
    /// The scenario it plays.
    scenario_id: ScenarioId,
    /// The name. Default: the names of persona and scenario, `persona × scenario`.
    #[serde(default)]
    #[schemars(length(min = 1, max = SIMULATION_NAME_CHARS_MAX))]
    name: Option<String>,
    /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
    /// update replaces all of them.
    #[serde(default)]
    metadata: Metadata,
}

impl Body {
    /// `rows` are the answers to [`names`].
    fn named(self, rows: &[Rows]) -> Result<Draft, Fault> {
        let name = name(&self, rows)?;
        let Self { assistant_id, persona_id, scenario_id, name: _, metadata } = self;
        Ok(Draft { assistant_id, persona_id, scenario_id, name, metadata })
    }
}

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Filter { assistant_id, part } = input.query()?;
    let mut list = resource::all::<Simulation>();
    if let Some(id) = assistant_id {
        list.filter = " AND assistant_id = :assistant_id";
        list.values.push(("assistant_id", (&id).into()));
    }
    listing::run(context, part, list).await
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let body: Body = input.body()?;
    let rows = context.read(names(input, None).to_vec()).await?;
    let draft = body.named(&rows)?;
    let simulation = Simulation::new(context.services.new_id(), draft, Timestamp::from_ms(context.now_ms));
    let insert = resource::insert_within_limit(&simulation);
    let committed = context.commit(insert, Output::created(&simulation)?).await;
    committed.map_err(resource::explain_limit::<Simulation>)
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let [assistant, persona, scenario] = names(input, Some(&id));
    let select = resource::select_one::<Simulation>(&id);
    let [current, names @ ..] = context.read_each([select, assistant, persona, scenario]).await?;
    let current: Simulation = resource::found(&current)?;
    let draft = resource::overlaid::<_, Body>(&current.draft, &input.body, &[])?.named(&names)?;
    if draft == current.draft {
        return Output::ok(&current);
    }
    context.check_unchanged(current.updated_at)?;
    let next = current.changed(draft, Timestamp::from_ms(context.now_ms));
    context.commit(resource::change(&current, &next).to_vec(), Output::ok(&next)?).await
}

/// What a simulation joins; each has a field `…_id`.
const NOUNS: [&str; 3] = ["assistant", "persona", "scenario"];

/// Reads the names of the assistant, persona and scenario that the body gives or, where it leaves one out, that the
/// simulation `id` has. They go into the batch that reads the simulation, so that an update reads once.
fn names(input: &Input, id: Option<&SimulationId>) -> [Statement; 3] {
    NOUNS.map(|noun| {
        sql!(
            format!(
                "SELECT name FROM {noun}s WHERE workspace_id = :ws AND id =
                 COALESCE(:named, (SELECT {noun}_id FROM simulations WHERE workspace_id = :ws AND id = :id))"
            ),
            named = input.body.get(&format!("{noun}_id")).and_then(Value::as_str),
            id = id
        )
    })
}

/// Refuses ids of other workspaces; returns the given or the default name. `rows` are the answers to [`names`].
fn name(body: &Body, rows: &[Rows]) -> Result<String, Fault> {
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
    Ok(match &body.name {
        Some(name) => name.clone(),
        None => names.get(1..).unwrap_or_default().join(" × "),
    })
}
