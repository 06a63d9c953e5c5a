//! `POST /calls/{id}/hang-up`: ends a telephone call from our side.
use crate::batch::Batch;
use crate::calls::{self, Call};
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Code, Error, Fault};
use crate::limits::{PHONE_CONNECT_MS, PHONE_TOLD_MS};
use crate::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::webhooks::Nothing;
use crate::ports::HttpError;
use crate::schema;
use crate::telephony::leg::{self, Leg};
use crate::telephony::{callbacks, client};

/// `POST /calls/{id}/hang-up`
pub const OPERATION: Operation = Operation {
    id: "hang_up_call",
    method: http::Method::POST,
    path: "/calls/{id}/hang-up",
    group: "Calls",
    title: "Hang up a call",
    description: "Ends a telephone call that is under way, or calls it off while it rings. The answer is the call as it is \
        then: the carrier confirms the end a moment later, and the log has it from there. A call that is over stays as it is. \
        Hanging up twice does no harm.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::optional(schema::of::<Nothing>),
    response: Some(schema::of::<Call>),
    errors: &[Code::CarrierNotConfigured, Code::CarrierRejected, Code::CarrierTimeout],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let reads = vec![calls::select(input.id()), Leg::select_for_caller(input.id())];
    let rows = context.read(reads).await?;
    let Some(row) = rows.first().and_then(|rows| rows.first()) else {
        return Err(Error::not_found("call").into());
    };
    let call = Call::read(row, &context.engine.config().base_url)?;
    let Some(before) = Leg::first(rows.get(1))? else {
        let message = "is no telephone call: a browser's ends with its socket, a simulation's with its run";
        return Err(Error::field("id", message).into());
    };
    if before.is_over || before.said.end.is_some() {
        return context.commit(Vec::new(), Output::ok(&call)?).await;
    }
    if before.carrier_call_id.is_none() {
        let message =
            "The carrier has not named this call yet, so it cannot be told to end it. Try again in a moment.";
        let mut error = Error::new(Code::Unavailable, message);
        error.retry_after_s = Some(1);
        return Err(error.into());
    }
    let mut leg = before;
    let engine = context.engine.clone();
    let is_first = leg.hang_up_at.is_none();
    // Before the carrier is told: however the call ends then, the log says who wanted it.
    leg.hang_up_at.get_or_insert(context.now_ms);
    let mut batch = Batch::from(leg.change());
    if is_first {
        // Whoever dies before the carrier has heard it, or is not answered, leaves no telephone ringing.
        leg.end_at_carrier(&engine, context.now_ms, context.now_ms + PHONE_TOLD_MS, &mut batch);
        // A call that is called off has no turn to wait for.
        batch.push(leg.wait_no_longer_than(context.now_ms + PHONE_CONNECT_MS));
    }
    let output = context.commit_batch(batch, Output::ok(&call)?).await?;
    match tell(&engine, &leg).await {
        Ok(()) => Ok(output),
        Err(fault) => {
            // The same key may try again.
            context.restate(Batch::default(), None).await?;
            Err(fault)
        }
    }
}

/// Tells the carrier. What is over already is no error.
pub async fn tell(engine: &Engine, leg: &Leg) -> Result<(), Fault> {
    let provider = leg.provider.as_str();
    let carrier = callbacks::carrier(engine, leg.provider)?;
    let command_id = leg::command_id(&leg.call_id, "hang_up");
    let Some(ending) = leg.ending(&command_id, engine.ports().clock.now_ms()) else {
        return Ok(());
    };
    match client::send(engine, carrier.hang_up(&ending)).await {
        Ok(reply) => {
            carrier.hung_up(&reply).map_err(|rejection| super::place::rejected(provider, &rejection).into())
        }
        Err(HttpError::Refused | HttpError::Timeout | HttpError::Failed(_) | HttpError::TooLarge(_)) => {
            let message = "The carrier did not answer. The call may still be up: try again, hanging up twice does no harm.";
            let details = serde_json::json!({"provider": provider, "call_id": leg.call_id});
            Err(Error::new(Code::CarrierTimeout, message).with_details(details).into())
        }
    }
}
