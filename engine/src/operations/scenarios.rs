//! Scenarios: what a simulated caller wants, and how the outcome is evaluated.
use crate::base::error::{Error, FieldProblem};
use crate::base::ids::ScenarioId;
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::config::Config;
use crate::operations::checks::check_model;
use crate::operations::operation::Operation;
use crate::operations::resource::{self, Resource, resource};
use crate::operations::validate;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement, Value};
use crate::simulation::Conditions;
use crate::simulation::evaluation::{EVALUATIONS_PER_SCENARIO_MAX, Evaluation};
use crate::simulation::tool_mocks::ToolMocks;
use crate::sql;
use crate::storage::column::Column;

resource! {
    /// A scenario.
    pub struct Scenario {
        /// `scen_…`
        id: ScenarioId,
        draft: {
            /// The name of the scenario.
            #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
            name: String,
            /// What the caller says and wants; quoted lines are spoken verbatim. At most 32,768 bytes.
            #[schemars(length(min = 1, max = limits::INSTRUCTIONS_BYTES_MAX), extend("x-max-bytes" = limits::INSTRUCTIONS_BYTES_MAX))]
            instructions: String,
            /// The criteria of a run; it passes when all of them pass and there is at least one.
            #[serde(default)]
            #[schemars(length(max = EVALUATIONS_PER_SCENARIO_MAX))]
            evaluations: Vec<Evaluation>,
            /// `provider/name` of the model that rules on `judge` evaluations; null for the assistant's own. `builtin/rules`
            /// decides criteria in a small language, and leaves the others open; a provider's model judges their meaning.
            #[serde(default)]
            #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
            judge_model: Option<String>,
            /// How often a provider's model rules on each criterion; more than half of its rulings decide. Each costs as much.
            #[serde(default = "one_vote")]
            #[schemars(range(min = 1, max = limits::JUDGE_VOTES_MAX))]
            judge_votes: i64,
            /// The line of voice runs, and how the caller speaks.
            #[serde(default)]
            conditions: Conditions,
            /// Answers in place of tools, by the tool's name: `{"find_slot": [{"when": {"day": "Monday"}, "error": "closed"},
            /// {"result": {"free": true}, "delay_ms": 500}]}`. Each has a `result` (any JSON) or an `error` (text), and may have
            /// `when` (arguments that the call must have) and `delay_ms`. A run calls no endpoint of these tools, unless it is started
            /// with `"tools": "live"`. Names of tools that the assistant does not have do nothing; the run lists
            /// them as `mocks_unused`. Each answer is given
            /// once, in their order; the last one that matches a call is repeated. At most 65,536 bytes as JSON.
            #[serde(default)]
            #[schemars(extend("maxProperties" = limits::TOOL_MOCKS_MAX))]
            tool_mocks: ToolMocks,
            /// What fills in `{{name}}` in the instructions and the opening message of the assistant, by name. The variables of a run are
            /// laid over these. Names have small letters, digits and underscores; at most 64, each of up to 1,024 bytes, 16 KiB in
            /// all. An update replaces all of them.
            #[serde(default)]
            variables: Variables,
            /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
            /// update replaces all of them.
            #[serde(default)]
            metadata: Metadata,
        },
        #[serde(skip)]
        revision,
    }
    noun: "scenario", table: "scenarios", path: "/simulations/scenarios"
}

/// `GET /simulations/scenarios`
pub const LIST: Operation = resource::list::<Scenario>("list_simulation_scenarios")
    .docs("List scenarios", "Lists the scenarios of the workspace, newest first.");

/// `GET /simulations/scenarios/{id}`
pub const GET: Operation =
    resource::get::<Scenario>("get_simulation_scenario").docs("Get a scenario", "Returns one scenario.");

/// `POST /simulations/scenarios`
pub const CREATE: Operation = resource::create::<Scenario>("create_simulation_scenario").docs(
    "Create a scenario",
    "Creates a scenario: what the simulated caller wants, and the evaluations that decide whether the assistant did well.",
);

/// `PATCH /simulations/scenarios/{id}`
pub const UPDATE: Operation = resource::update::<Scenario>("update_simulation_scenario").docs(
    "Update a scenario",
    "Changes the given fields; the others keep their values. Queued runs keep the configuration they were started with.",
);

/// `DELETE /simulations/scenarios/{id}`
pub const DELETE: Operation = resource::delete::<Scenario>("delete_simulation_scenario").docs(
    "Delete a scenario",
    "Deletes a scenario permanently, together with the simulations that use it. Runs and their configuration are kept.",
);

impl Resource for Scenario {
    const LIMIT: i64 = limits::SCENARIOS_MAX;
    const MERGED: &'static [&'static str] = &["conditions"];

    fn check(draft: &Draft, config: &Config) -> Result<(), Error> {
        let wrong = draft.evaluations.iter().enumerate().filter_map(|(at, one)| {
            let (field, message) = one.problem()?;
            Some(FieldProblem::new(format!("evaluations[{at}].{field}"), message))
        });
        let mut wrong: Vec<FieldProblem> = wrong.chain(draft.tool_mocks.problems("tool_mocks")).collect();
        if let Err(error) = check_model("judge_model", draft.judge_model.as_deref(), config) {
            wrong.extend(error.problems());
        }
        validate::refuse(&wrong)
    }

    fn deleted_with(id: &ScenarioId, _: Timestamp) -> Vec<Statement> {
        vec![sql!("DELETE FROM simulations WHERE workspace_id = :ws AND scenario_id = :id", id = id)]
    }
}

const fn one_vote() -> i64 {
    1
}

impl Column for ToolMocks {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        row.json(column)
    }

    fn value(&self) -> Value {
        serde_json::json!(self).to_string().into()
    }
}

impl Column for Conditions {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        row.json(column)
    }

    fn value(&self) -> Value {
        serde_json::json!(self).to_string().into()
    }
}
