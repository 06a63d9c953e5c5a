//! A simulation run: reads what the run was started with, drives the conversation, writes what came
//! of it. Nothing is written in between, so a run that is cut off starts over, with the same seed
//! and the same ids, and comes to the same end.
use serde_json::json;

use super::tool_callback::{self, Conversation};
use super::{Failure, Job};
use crate::engine::Engine;
use crate::models::ToolSpec;
use crate::models::rules::{RulesAssistant, RulesCaller, RulesJudge};
use crate::operations::runs::{AssistantSnapshot, RunError, RunStatus, SimulationSnapshot};
use crate::simulation::{
    Input, Output, SimulatedAssistant, Simulation, SimulationFailure, SimulationPart, SimulationResult,
    SimulationSetup,
};
use crate::sql;
use crate::statement::Statement;

/// The model that needs no provider.
const RULES_MODEL: &str = "builtin/rules";

/// Goes into the batch that claims jobs: their runs are in progress from then on.
pub fn mark_running(lease: &str, now_ms: i64) -> Statement {
    sql!(
        "UPDATE runs SET status = 'running', started_at = COALESCE(started_at, ?2) WHERE status = 'queued' AND id IN
         (SELECT subject_id FROM jobs WHERE lease = ?1 AND kind = 'simulation_run')",
        lease,
        now_ms
    )
}

/// Runs the job's run to its end.
pub async fn run(engine: &Engine, job: &Job) -> Result<(), Failure> {
    let Some(started) = load(engine, job).await? else {
        // Deleted, or finished by whoever had the lease before.
        engine.ports().database.write(job.finished([])).await?;
        return Ok(());
    };
    let assistant = &started.assistant;
    if assistant.model != RULES_MODEL {
        let error = RunError {
            code: "model_unavailable".to_owned(),
            message: format!(
                "This version runs simulations with {RULES_MODEL} only; the assistant's model is {}.",
                assistant.model
            ),
        };
        return broken(engine, job, &error, "[]").await;
    }
    match drive(engine, job, &started).await? {
        Ok(result) => completed(engine, job, &result).await,
        Err(failure) => {
            let part = match failure.part {
                SimulationPart::Caller => "caller",
                SimulationPart::Assistant => "assistant",
                SimulationPart::Judge => "judge",
            };
            let error = RunError { code: format!("{part}_failed"), message: failure.reason.clone() };
            broken(engine, job, &error, &json!(failure.transcript).to_string()).await
        }
    }
}

/// Ends a run that was tried often enough.
pub async fn give_up(engine: &Engine, job: &Job) -> Result<(), Failure> {
    let error = RunError {
        code: "gave_up".to_owned(),
        message: "The run was started several times and never came to its end.".to_owned(),
    };
    broken(engine, job, &error, "[]").await
}

struct Started {
    assistant: AssistantSnapshot,
    simulation: SimulationSnapshot,
    seed: i64,
}

async fn load(engine: &Engine, job: &Job) -> Result<Option<Started>, Failure> {
    let select = sql!(
        "SELECT seed, assistants.content AS assistant, simulations.content AS simulation FROM runs
         JOIN snapshots AS assistants ON assistants.workspace_id = runs.workspace_id AND assistants.id = runs.assistant_snapshot
         JOIN snapshots AS simulations ON simulations.workspace_id = runs.workspace_id AND simulations.id = runs.simulation_snapshot
         WHERE runs.id = ?1 AND runs.workspace_id = ?2 AND status = 'running'",
        &job.subject_id,
        &job.workspace_id
    );
    let rows = engine.ports().database.read(vec![select]).await?;
    match rows.first().and_then(|rows| rows.first()) {
        Some(row) => Ok(Some(Started {
            assistant: row.json("assistant")?,
            simulation: row.json("simulation")?,
            seed: row.integer("seed")?,
        })),
        None => Ok(None),
    }
}

/// The outer error is ours: the job is put back, or is no longer ours.
async fn drive(
    engine: &Engine,
    job: &Job,
    started: &Started,
) -> Result<Result<SimulationResult, SimulationFailure>, Failure> {
    let assistant = &started.assistant;
    let specs = tool_specs(assistant);
    let rules = RulesAssistant::new(&assistant.knowledge, &specs);
    let caller = RulesCaller::new(&started.simulation.scenario);
    let mut judge = RulesJudge::new();
    let conversation = Conversation {
        id: &job.subject_id,
        source: "simulation",
        assistant_id: &assistant.id,
        assistant_revision: assistant.revision,
    };
    let mut simulation = Simulation::new(setup(job, started, specs));
    loop {
        let input = match simulation.poll() {
            Some(Output::AskCaller) => Input::CallerReply { reply: caller.reply(&simulation.caller_turn()) },
            Some(Output::AskAssistant) => {
                Input::AssistantReply { reply: rules.reply(&simulation.assistant_turn()) }
            }
            Some(Output::AskJudge) => match simulation.judge_question() {
                Some(question) => Input::Ruling { ruling: judge.judge(&question.turn()) },
                None => Input::ModelFailed { reason: "There was nothing to rule on.".to_owned() },
            },
            Some(Output::CallTool { id, name, arguments }) => {
                let answer = match assistant.tools.iter().find(|tool| tool.name == name) {
                    Some(tool) => {
                        let read = tool_callback::secrets(tool, &job.workspace_id);
                        let rows = engine.keep_lease(job, tool.timeout_ms, [read]).await?;
                        let secrets = tool_callback::read_secrets(tool, rows.first())?;
                        tool_callback::call(engine, tool, secrets, &id, &arguments, &conversation).await
                    }
                    None => Err(format!("there is no tool named {name}")),
                };
                let is_error = answer.is_err();
                Input::ToolResult { id, text: answer.unwrap_or_else(|reason| reason), is_error }
            }
            Some(Output::Done { result }) => return Ok(Ok(result)),
            Some(Output::Failed { failure }) => return Ok(Err(failure)),
            None => {
                let reason = "The conversation came to a halt.".to_owned();
                return Ok(Err(simulation.failure(SimulationPart::Assistant, reason)));
            }
        };
        simulation.handle(input);
    }
}

fn tool_specs(assistant: &AssistantSnapshot) -> Vec<ToolSpec> {
    assistant
        .tools
        .iter()
        .map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        })
        .collect()
}

fn setup(job: &Job, started: &Started, tools: Vec<ToolSpec>) -> SimulationSetup {
    let Started { assistant, simulation, seed } = started;
    SimulationSetup {
        run_id: job.subject_id.clone(),
        assistant: SimulatedAssistant {
            instructions: assistant.instructions.clone(),
            first_message: assistant.first_message.clone(),
            knowledge: assistant.knowledge.clone(),
            tools,
        },
        persona: simulation.persona.clone(),
        scenario: simulation.scenario.clone(),
        evaluations: simulation.evaluations.clone(),
        seed: seed.unsigned_abs(),
        limits: SimulationSetup::default_limits(),
    }
}

async fn completed(engine: &Engine, job: &Job, result: &SimulationResult) -> Result<(), Failure> {
    let update = sql!(
        "UPDATE runs SET status = ?3, passed = ?4, evaluations = ?5, transcript = ?6, completed_at = ?7
         WHERE id = ?1 AND workspace_id = ?2",
        &job.subject_id,
        &job.workspace_id,
        RunStatus::Completed.as_str(),
        result.passed,
        json!(result.evaluations).to_string(),
        json!(result.transcript).to_string(),
        engine.ports().clock.now_ms(),
    );
    engine.ports().database.write(job.finished([update])).await?;
    Ok(())
}

async fn broken(engine: &Engine, job: &Job, error: &RunError, transcript: &str) -> Result<(), Failure> {
    let update = sql!(
        "UPDATE runs SET status = ?3, error = ?4, transcript = ?5, completed_at = ?6
         WHERE id = ?1 AND workspace_id = ?2 AND status = 'running'",
        &job.subject_id,
        &job.workspace_id,
        RunStatus::Error.as_str(),
        json!(error).to_string(),
        transcript,
        engine.ports().clock.now_ms(),
    );
    engine.ports().database.write(job.finished([update])).await?;
    Ok(())
}
