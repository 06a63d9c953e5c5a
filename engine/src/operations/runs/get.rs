//! `GET /simulations/runs/{id}`: one run with its evaluations and what was said.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{COLUMNS, Run};
use crate::context::Context;
use crate::conversation::transcript::TranscriptRow;
use crate::crud;
use crate::error::Fault;
use crate::evaluation::EvaluationResult;
use crate::operation::{Effects, Input, Operation, Output, Success};
use crate::schema;
use crate::sql;
use crate::statement::Row;

/// `GET /simulations/runs/{id}`
pub const OPERATION: Operation = Operation {
    id: "get_simulation_run",
    method: http::Method::GET,
    path: "/simulations/runs/{id}",
    group: "Simulations",
    title: "Get a run",
    description: "Reads one run with its evaluations and its transcript. Both are empty until it is completed.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<RunDetail>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

/// A run with all that came of it.
#[derive(Serialize, JsonSchema)]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    run: Run,
    /// What each evaluation found.
    #[schemars(with = "Vec<EvaluationResult>")]
    evaluations: Box<RawValue>,
    /// What was said, oldest first; times count from the start of the conversation.
    #[schemars(with = "Vec<TranscriptRow>")]
    transcript: Box<RawValue>,
    /// The call it is recorded as; null when none is linked.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    call: Option<Box<RawValue>>,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let select = sql!(
        format!("SELECT {COLUMNS}, evaluations, transcript FROM runs WHERE workspace_id = :ws AND id = ?1"),
        input.id()
    );
    Output::ok(&crud::one(context, select, "run", read).await?)
}

fn read(row: Row<'_>) -> Result<RunDetail, Fault> {
    Ok(RunDetail {
        run: Run::read(row)?,
        evaluations: row.json("evaluations")?,
        transcript: row.json("transcript")?,
        call: None,
    })
}
