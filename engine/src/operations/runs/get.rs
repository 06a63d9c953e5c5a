//! `GET /simulations/runs/{id}`: one run with its evaluations and what was said.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{COLUMNS, Run};
use crate::calls::{self, Call};
use crate::context::Context;
use crate::conversation::transcript::TranscriptRow;
use crate::error::{Error, Fault};
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
    description: "Reads one run with its evaluations, its transcript and its call. The first two are empty until it is over.",
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
    /// The call it is recorded as; null until the run starts.
    call: Option<Call>,
}

impl RunDetail {
    /// What reading the run will show once all this is written: an event's payload is the same as the
    /// read, to the byte.
    pub fn of(run: Run, evaluations: &[EvaluationResult], call: Call) -> Result<Self, Fault> {
        let evaluations = serde_json::value::to_raw_value(evaluations)
            .map_err(|error| Fault::Bug(format!("evaluations do not serialise: {error}")))?;
        Ok(Self { run, evaluations, transcript: call.transcript(), call: Some(call) })
    }

    fn read(row: Row<'_>, call: Option<Call>) -> Result<Self, Fault> {
        // A run of before there were calls keeps its transcript itself.
        let transcript = match &call {
            Some(call) => call.transcript(),
            None => row.json("transcript")?,
        };
        Ok(Self { run: Run::read(row)?, evaluations: row.json("evaluations")?, transcript, call })
    }
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let select = sql!(
        format!("SELECT {COLUMNS}, evaluations, transcript FROM runs WHERE workspace_id = :ws AND id = ?1"),
        input.id()
    );
    let rows = context.read(vec![select, calls::select_of_run(input.id())]).await?;
    let Some(row) = rows.first().and_then(|rows| rows.first()) else {
        return Err(Error::not_found("run").into());
    };
    let call = match rows.last().and_then(|rows| rows.first()) {
        Some(row) => Some(Call::read(row, &context.engine.config().base_url)?),
        None => None,
    };
    Output::ok(&RunDetail::read(row, call)?)
}
