//! `POST /simulations/runs/inline`: runs whose caller, scenario and even assistant are given with the request. Nothing of them
//! is stored but what each run keeps of its configuration.
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::batch::{Batch, first_runs};
use super::{Kept, Launch, Seeds, check_mode, kept, memory, snapshot, spends};
use crate::base::error::{Code, Error, FieldProblem};
use crate::base::hash::sha256_hex;
use crate::base::ids::{AssistantId, BatchId, DocumentId, Id, ToolId};
use crate::base::limits::{
    DOCUMENTS_PER_ASSISTANT_MAX, INTEGER_MAX, KNOWLEDGE_PER_ASSISTANT_BYTES_MAX, REPEAT_MAX,
    RUN_COST_MICROUSD_DEFAULT, TOOLS_PER_ASSISTANT_MAX,
};
use crate::base::values::{Metadata, Variables};
use crate::config::Config;
use crate::conversation::Knowledge;
use crate::operations::all_problems::SoundFields;
use crate::operations::assistants::attachments::{check_count, check_own_tools, once_each, refuse_unknown};
use crate::operations::assistants::{self, Assistant};
use crate::operations::context::Context;
use crate::operations::knowledge::too_much_knowledge;
use crate::operations::operation::{Input, Operation, Output, from_map};
use crate::operations::personas::{self, Persona};
use crate::operations::resource::{self, Resource};
use crate::operations::scenarios::{self, Scenario};
use crate::operations::validate;
use crate::ports::statement::{Rows, Statement};
use crate::simulation::tool_mocks::ToolMocks;
use crate::storage::fault::Fault;
use crate::storage::named_snapshots::Part;
use crate::storage::runs::{RunMode, RunTools};
use crate::storage::snapshots::{
    AssistantSnapshot, SimulationSnapshot, ToolSnapshot, assistant_reads, assistant_snapshot,
    attached_snapshot, documents_of, tools_of,
};
use crate::storage::spending::{self, Budget};

/// `POST /simulations/runs/inline`
pub const OPERATION: Operation =
    Operation::post("start_inline_simulation", "/simulations/runs/inline", run!(run))
        .spending()
        .docs(
            "Start inline runs",
            "Queues runs of a persona and a scenario that are given here and not stored, of an assistant, of one with changes \
            that are not saved, or of one that is not stored at all. Models and speech can incur usage (the built-in ones are \
            free). get_simulation_batch with `wait_seconds` tells what came of it.",
        )
        .body::<Body>()
        .listing_problems(problems)
        .returns::<Batch<'static>>()
        .shorter_over_mcp(first_runs)
        .errors(&[Code::SpendLimitReached, Code::LimitReached, Code::MissingVariables]);

/// What is run, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// The assistant under test. May be left out if `assistant` is a whole one.
    #[serde(default)]
    #[schemars(with = "AssistantId")]
    assistant_id: Option<AssistantId>,
    /// What differs from the assistant with `assistant_id`; without that, a whole one. `tool_ids` and `knowledge_ids` replace what is
    /// attached. It is not saved.
    #[serde(default)]
    #[schemars(schema_with = "assistant_schema")]
    assistant: Option<Map<String, Value>>,
    /// `system_prompt`, `model`. This is the persona that calls; its `name` may be left out.
    #[schemars(schema_with = "unnamed::<personas::Draft>")]
    persona: Map<String, Value>,
    /// `instructions`, `evaluations`, `tool_mocks`. This is the scenario; its `name` may be left out. An answer for a tool that the
    /// assistant does not have is refused.
    #[schemars(schema_with = "unnamed::<scenarios::Draft>")]
    scenario: Map<String, Value>,
    /// How caller and assistant communicate.
    #[serde(default)]
    mode: RunMode,
    /// What answers the assistant's tool calls.
    #[serde(default)]
    tools: RunTools,
    /// The seed of the first run; every further one has the next. Default: chosen at random.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    seed: Option<i64>,
    /// How many runs there are. Default: 1.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 1, max = REPEAT_MAX))]
    repeat: Option<i64>,
    /// Ends each conversation when its models have cost this much, in millionths of a US dollar. Default: 1,000,000.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    max_cost_microusd: Option<i64>,
    /// What fills in `{{name}}` in the assistant's instructions and opening message, by name, laid over the variables of the scenario.
    /// Names have small letters, digits and underscores; at most 64, each of up to 1,024 bytes, 16 KiB in all.
    #[serde(default)]
    variables: Variables,
    /// Texts of your own that are kept with the run and its call, by name. At most 50, with names of up to 64 characters and values
    /// of up to 512 bytes, 4 KiB in all.
    #[serde(default)]
    metadata: Metadata,
}

/// What is attached to the assistant in place of what it has.
#[derive(Default, Deserialize, JsonSchema)]
struct Attached {
    /// Ids of tools of this workspace; an id given twice counts once.
    #[schemars(with = "Vec<ToolId>")]
    tool_ids: Option<Vec<ToolId>>,
    /// Ids of knowledge documents of this workspace; an id given twice counts once.
    #[schemars(with = "Vec<DocumentId>")]
    knowledge_ids: Option<Vec<DocumentId>>,
}

/// The field with the assistant.
const ASSISTANT: &str = "assistant";
/// What the creation of an assistant, and of a scenario, requires.
const WHOLE: [&str; 2] = ["name", "instructions"];
/// The fields of [`Attached`].
const ATTACHED: [&str; 2] = ["tool_ids", "knowledge_ids"];
/// The fields of an assistant's snapshot that no draft has.
const NOT_DRAFTED: [&str; 4] = ["id", "revision", "tools", "knowledge"];

/// What the creation of a resource takes, without having to name it.
fn unnamed<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != "name");
    }
    // That of the runs is a field of the request.
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.remove("metadata");
    }
    schema
}

/// What an update of an assistant takes, and [`Attached`].
fn assistant_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = assistants::Draft::json_schema(generator);
    schema.remove("required");
    let attached = Attached::json_schema(generator);
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut().filter_map(Value::as_object_mut) {
            field.remove("default");
        }
        let more = attached.get("properties").and_then(Value::as_object).into_iter().flatten();
        fields.extend(more.map(|(name, field)| (name.clone(), field.clone())));
        fields.remove("metadata");
    }
    schema
}

fn missing_assistant() -> Error {
    Error::field(
        "assistant_id",
        "is required: the assistant that is tested; or give a whole one as `assistant`",
    )
}

/// What is wrong beyond the schema, in all parts at once.
fn problems(fields: &mut SoundFields<'_>, config: &Config) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    if let Some(Body { seed, repeat, .. }) = fields.read(&mut problems)
        && let Err(error) = Seeds::new(seed, repeat)
    {
        problems.extend(error.problems());
    }
    let mut add = |part: &str, found: Vec<FieldProblem>| problems.extend(problems_within(part, found));
    if let Some(mut inner) = fields.within("persona", &["name", "system_prompt"], &[]) {
        add("persona", resource::problems::<Persona>(&mut inner, config));
    }
    if let Some(mut inner) = fields.within("scenario", &WHOLE, &[]) {
        add("scenario", resource::problems::<Scenario>(&mut inner, config));
    }
    if let Some(mut inner) = fields.within(ASSISTANT, &WHOLE, &ATTACHED) {
        if !fields.has("assistant_id") {
            add(ASSISTANT, missing_of_whole(|name| inner.has(name)));
        }
        add(ASSISTANT, resource::problems::<Assistant>(&mut inner, config));
    }
    if !fields.has("assistant_id") && !fields.has(ASSISTANT) {
        problems.extend(missing_assistant().problems());
    }
    problems
}

/// The fields that an assistant which is not stored lacks: the schema, that of changes, requires none.
fn missing_of_whole(has: impl Fn(&str) -> bool) -> Vec<FieldProblem> {
    let missing = WHOLE.into_iter().filter(|name| !has(name));
    missing.map(|name| FieldProblem::new(name, "is required")).collect()
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let body: Body = input.body()?;
    let Body { assistant_id, assistant, persona, scenario, mode, tools: answers, .. } = body;
    let Body { seed, repeat, max_cost_microusd, variables, metadata, .. } = body;
    let seeds = Seeds::new(seed, repeat)?;
    let simulation = simulation(persona, scenario, answers, &variables, context.services.config())?;
    let given = assistant.map(Given::read).transpose()?;
    if let (None, Some(given)) = (&assistant_id, &given) {
        given.check_whole()?;
    }
    if assistant_id.is_none() && given.is_none() {
        return Err(missing_assistant().into());
    }
    // Without an id, nothing stored is found.
    let id = assistant_id.clone().unwrap_or_else(|| AssistantId::from_stored(""));
    let [stored, tools, documents] = assistant_reads(":id", &id);
    let (tools, documents) = match &given {
        Some(given) => given.attached_reads(tools, documents),
        None => (tools, documents),
    };
    let budget = spending::select(&context.services, context.now_ms);
    let reads = [stored, tools, documents, kept(), budget];
    let [stored, tools, documents, kept, budget] = context.read_each(reads).await?;
    let kept = Kept::read(&kept)?;
    let _memory = memory(context, [&stored, &tools, &documents])?;
    if let Some(given) = &given {
        given.check_attached(&tools, &documents)?;
    }
    let config = context.services.config();
    let field = if given.is_some() { ASSISTANT } else { "assistant_id" };
    let assistant = match (assistant_id, given) {
        (None, Some(given)) => {
            let draft = unstored::<Assistant>(ASSISTANT, &given.fields, config)?;
            let (tools, knowledge) = attached_snapshot(&tools, &documents)?;
            let id = id_of(&json!([context.workspace_id()?, draft, given.tool_ids, given.knowledge_ids]));
            of_draft(&draft, id, 0, tools, knowledge)?
        }
        (_, given) => {
            let stored = assistant_snapshot(&[stored, tools, documents])?;
            let stored =
                stored.ok_or_else(|| Error::field("assistant_id", "is no assistant of this workspace"))?;
            match given {
                Some(given) => changed(stored, &given.fields, config)?,
                None => stored,
            }
        }
    };
    check_own_tools(&assistant).map_err(|error| within(ASSISTANT, &error))?;
    check_mode(mode, &assistant, config)?;
    check_mocks(&assistant, &simulation)?;
    Budget::read(Some(&budget))?.check(spends(mode, &assistant, &simulation, config))?;
    let batch_id: BatchId = context.services.new_id();
    let stored = snapshot(&assistant, field)?;
    let launch = Launch {
        part: Part::assistant(&stored)?,
        stored,
        assistant: &assistant,
        mode,
        tools: answers,
        batch_id: Some(batch_id.clone()),
        max_cost_microusd: max_cost_microusd.unwrap_or(RUN_COST_MICROUSD_DEFAULT),
        variables,
        metadata,
    };
    let launched = launch.runs(context, None, &simulation, &seeds)?;
    launch.check_variables(context, &launched)?;
    launch.check_size(&launched)?;
    let runs = launched.iter().map(|one| &one.run).collect();
    let output = Output::created(&Batch { batch_id, runs })?;
    launch.commit(context, &launched, output, &kept).await
}

/// Refuses answers in place of tools that the assistant does not have: it is known here, and a misspelled name would have the
/// endpoint called.
fn check_mocks(assistant: &AssistantSnapshot, simulation: &SimulationSnapshot) -> Result<(), Error> {
    let tools: Vec<&str> = assistant.tools.iter().map(|tool| tool.name.as_str()).collect();
    let message = match tools.as_slice() {
        [] => "is no tool of the assistant, which has none".to_owned(),
        tools => format!("is no tool of the assistant; it has: {}", tools.join(", ")),
    };
    let unused = simulation.tool_mocks.unused(|name| tools.contains(&name));
    let problems: Vec<FieldProblem> = unused
        .map(|name| FieldProblem::new(format!("scenario.tool_mocks.{name}"), message.clone()))
        .collect();
    validate::refuse(&problems)
}

/// What the body says of the assistant.
struct Given {
    fields: Map<String, Value>,
    tool_ids: Option<Vec<ToolId>>,
    knowledge_ids: Option<Vec<DocumentId>>,
}

impl Given {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Error> {
        let attached: Map<String, Value> = ATTACHED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), fields.shift_remove(*name)?)))
            .collect();
        let Attached { tool_ids, knowledge_ids } =
            from_map(&attached).map_err(|error| within(ASSISTANT, &error))?;
        let (tool_ids, knowledge_ids) = (tool_ids.map(once_each), knowledge_ids.map(once_each));
        if let Some(ids) = &tool_ids {
            check_count("assistant.tool_ids", ids, TOOLS_PER_ASSISTANT_MAX, "tools")?;
        }
        if let Some(ids) = &knowledge_ids {
            check_count("assistant.knowledge_ids", ids, DOCUMENTS_PER_ASSISTANT_MAX, "documents")?;
        }
        Ok(Self { fields, tool_ids, knowledge_ids })
    }

    /// Refuses an assistant that lacks what its creation requires.
    fn check_whole(&self) -> Result<(), Error> {
        let missing = validate::refuse(&missing_of_whole(|name| self.fields.contains_key(name)));
        missing.map_err(|error| within(ASSISTANT, &error))
    }

    /// The reads of what is attached; what is not given stays.
    fn attached_reads(&self, tools: Statement, documents: Statement) -> (Statement, Statement) {
        let most = KNOWLEDGE_PER_ASSISTANT_BYTES_MAX;
        (
            self.tool_ids.as_ref().map_or(tools, |ids| tools_of(&json!(ids).to_string())),
            self.knowledge_ids.as_ref().map_or(documents, |ids| documents_of(&json!(ids).to_string(), most)),
        )
    }

    fn check_attached(&self, tools: &Rows, documents: &Rows) -> Result<(), Fault> {
        if let Some(ids) = &self.tool_ids {
            let known = tools.iter().map(|row| row.id("id")).collect::<Result<Vec<ToolId>, _>>()?;
            refuse_unknown("assistant.tool_ids", "tool", ids, &known)?;
        }
        if let Some(ids) = &self.knowledge_ids {
            let known = documents.iter().map(|row| row.id("id")).collect::<Result<Vec<DocumentId>, _>>()?;
            refuse_unknown("assistant.knowledge_ids", "knowledge document", ids, &known)?;
            let bytes = documents.first().map_or(Ok(0), |row| row.integer("total_bytes"))?;
            if bytes > KNOWLEDGE_PER_ASSISTANT_BYTES_MAX {
                return Err(too_much_knowledge("assistant.knowledge_ids").into());
            }
        }
        Ok(())
    }
}

/// The assistant with `changes` laid over it, by the rules of an update.
fn changed(
    mut stored: AssistantSnapshot,
    changes: &Map<String, Value>,
    config: &Config,
) -> Result<AssistantSnapshot, Fault> {
    let (tools, knowledge) = (std::mem::take(&mut stored.tools), std::mem::take(&mut stored.knowledge));
    let mut fields = object(&stored)?;
    fields.retain(|name, _| !NOT_DRAFTED.contains(&name.as_str()));
    let fields: Map<String, Value> = resource::overlaid(&fields, changes, Assistant::MERGED)?;
    let draft = unstored::<Assistant>(ASSISTANT, &fields, config)?;
    // It is no revision that is stored.
    of_draft(&draft, stored.id, 0, tools, knowledge)
}

/// The fields of a draft and of a snapshot have the same names.
fn of_draft(
    draft: &assistants::Draft,
    id: AssistantId,
    revision: i64,
    tools: Vec<ToolSnapshot>,
    knowledge: Arc<[Knowledge]>,
) -> Result<AssistantSnapshot, Fault> {
    let mut fields = object(draft)?;
    let others = [json!(id), json!(revision), json!([]), json!([])];
    fields.extend(NOT_DRAFTED.into_iter().map(str::to_owned).zip(others));
    let snapshot: AssistantSnapshot = serde_json::from_value(Value::Object(fields))
        .map_err(|error| Fault::Bug(format!("a draft is no snapshot: {error}")))?;
    Ok(AssistantSnapshot { tools, knowledge, ..snapshot })
}

fn object(value: &impl Serialize) -> Result<Map<String, Value>, Fault> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Fault::Bug("an assistant is not an object".to_owned())),
    }
}

/// The id of an assistant that is not stored. It is made of what is given, so that its calls stand together, however often it is
/// tested.
fn id_of(given: &Value) -> AssistantId {
    let hash = sha256_hex(given.to_string().as_bytes());
    let number = hash.get(..32).and_then(|half| u128::from_str_radix(half, 16).ok());
    AssistantId::from_bytes(number.unwrap_or_default().to_be_bytes())
}

/// The persona and the scenario as a run keeps them.
fn simulation(
    mut persona: Map<String, Value>,
    mut scenario: Map<String, Value>,
    tools: RunTools,
    variables: &Variables,
    config: &Config,
) -> Result<SimulationSnapshot, Error> {
    persona.entry("name").or_insert_with(|| "Caller".into());
    scenario.entry("name").or_insert_with(|| "Scenario".into());
    let persona = unstored::<Persona>("persona", &persona, config)?;
    let scenario = unstored::<Scenario>("scenario", &scenario, config)?;
    Ok(SimulationSnapshot {
        name: format!("{} × {}", persona.name, scenario.name),
        persona: persona.system_prompt,
        caller_model: persona.model,
        judge_model: scenario.judge_model,
        judge_votes: scenario.judge_votes,
        scenario: scenario.instructions,
        evaluations: scenario.evaluations,
        conditions: scenario.conditions,
        tool_mocks: match tools {
            RunTools::Mock => scenario.tool_mocks,
            RunTools::Live => ToolMocks::default(),
        },
        variables: variables.over(&scenario.variables),
    })
}

/// A resource that is not stored, by the rules of its creation. What they refuse is named as a part of `field`.
fn unstored<R: Resource>(
    field: &str,
    fields: &Map<String, Value>,
    config: &Config,
) -> Result<R::Draft, Error> {
    let mut draft: R::Draft = from_map(fields).map_err(|error| within(field, &error))?;
    R::normalize(&mut draft, config);
    R::check(&draft, config).map_err(|error| within(field, &error))?;
    Ok(draft)
}

fn within(field: &str, error: &Error) -> Error {
    let problems: Vec<FieldProblem> = problems_within(field, error.problems()).collect();
    Error::fields(error.code, &problems)
}

/// The same of problems alone.
fn problems_within(field: &str, problems: Vec<FieldProblem>) -> impl Iterator<Item = FieldProblem> {
    problems.into_iter().map(move |one| FieldProblem::new(format!("{field}.{}", one.field), one.message))
}
