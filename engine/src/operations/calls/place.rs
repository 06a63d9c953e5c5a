//! `POST /calls/outbound`: places a telephone call, once.
//!
//! 1. [`plan`] checks the request.
//! 2. [`pending_call`] stores the intent: the call, its leg, its job, and a provisional response under the
//!    Idempotency-Key. Then it sends one request to the carrier, without retries, and stores the result.
//!
//! If the process dies in between, it is unknown whether the call rings; a status callback decides it, or the call's
//! job does later.
mod pending_call;
mod plan;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::pending_call::PendingCall;
use self::plan::Plan;
use crate::base::error::Code;
use crate::base::ids::AssistantId;
use crate::base::phone::E164;
use crate::base::values::{Metadata, Variables};
use crate::carriers::CarrierName;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::calls::Call;
use crate::storage::events::Subscribers;
use crate::storage::fault::Fault;

/// `POST /calls/outbound`
pub const OPERATION: Operation = Operation::post("create_outbound_call", "/calls/outbound", run!(run))
    .spending()
    .docs("Place a call", "Calls a telephone number and connects the person who answers to the assistant. 201 means that the carrier \
        accepted the call, not that anybody answered: read the call (get_call) afterwards. The carrier is asked once, \
        without automatic retries; 504 means that it is unknown whether the carrier accepted the call, and the call named in \
        `details.call_id` will show it. Send an Idempotency-Key to make your own retry safe. Calls cost money: have the \
        recipient, the caller number and the expected usage approved first. `?dry_run=true` checks everything and places no call.")
    .query::<Query>()
    .body::<Body>()
    .returns::<Answer>()
    .errors(&[
        Code::SpendLimitReached,
        Code::MissingVariables,
        Code::CarrierNotConfigured,
        Code::LimitReached,
        Code::RequestInProgress,
        Code::TooManyCalls,
        Code::CarrierRejected,
        Code::CarrierTimeout,
    ]);

/// Options.
#[derive(Deserialize, JsonSchema)]
pub struct Query {
    /// Checks everything and places no call. It reports what would happen; the response is then 201 with `dry_run`.
    #[serde(default)]
    dry_run: bool,
}

/// The call to place.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// The assistant that handles the call.
    assistant_id: AssistantId,
    /// The number to call.
    to: E164,
    /// The number to call from, bound in this workspace. Optional when exactly one number is bound to the assistant.
    #[serde(default)]
    #[schemars(with = "E164")]
    from: Option<E164>,
    /// The person on whose behalf the call is placed; stored with the call and given to the assistant.
    #[serde(default)]
    #[schemars(with = "E164")]
    user_number: Option<E164>,
    /// What fills in `{{name}}` in the assistant's instructions and opening message, and in what it says to an answering machine, by name. Names have small letters,
    /// digits and underscores; at most 64, each of up to 1,024 bytes, 16 KiB in all.
    #[serde(default)]
    variables: Variables,
    /// Texts of your own that are kept with the call, by name. At most 50, with names of up to 64 characters and values of up to 512
    /// bytes, 4 KiB in all.
    #[serde(default)]
    metadata: Metadata,
}

/// The placed call, or the result of a dry run.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "OutboundCall")]
pub enum Answer {
    /// The carrier accepted the call.
    Placed(Box<Call>),
    /// No call was placed.
    DryRun(DryRun),
}

/// What placing the call would do.
#[derive(Serialize, JsonSchema)]
pub struct DryRun {
    /// True in this response; the response to a placed call does not have the field.
    dry_run: bool,
    /// Whether the call would be placed.
    would_place: bool,
    /// The number that would call; null when it is not known.
    from: Option<String>,
    /// The number that would be called.
    to: String,
    /// The carrier that would be asked; null when it is not known.
    provider: Option<CarrierName>,
    /// The errors that the same request without `dry_run` would get, each with `code`, `message` and, where it has any,
    /// `details`.
    problems: Vec<Value>,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let body: Body = input.body()?;
    let Query { dry_run } = input.query()?;
    let found = context.read_each(plan::reads(&context.services, context.now_ms, &body)).await?;
    let plan = Plan::new(context, &body, &found)?;
    if dry_run {
        let answer = plan.dry_run(&body);
        return context.commit(Vec::new(), Output::created(&Answer::DryRun(answer))?).await;
    }
    let order = plan.order()?;
    let [.., subscribers] = &found;
    let pending = PendingCall::new(context, &body, &order)?;
    pending.write(context, &Subscribers::read(subscribers)?).await?;
    let answer = pending.ask(&context.services, &order).await?;
    pending.record_answer(context, answer).await
}
