//! `POST /calls/{id}/hang-up`: ends a telephone call from our side.
use crate::base::error::{Code, Error};
use crate::base::limits::{PHONE_CONNECT_MS, PHONE_TOLD_MS};
use crate::live::telephony;
use crate::live::telephony::leg::Leg;
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::webhooks::Nothing;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call};
use crate::storage::fault::Fault;

/// `POST /calls/{id}/hang-up`
pub const OPERATION: Operation = Operation::post("hang_up_call", "/calls/{id}/hang-up", run!(run))
    .with_effects(Effects::Update)
    .with_success(Success::Ok)
    .reaching_out()
    .docs(
        "Hang up a call",
        "Ends a telephone call that is under way, or calls it off while it rings. The answer is the call as it is \
        then: the carrier confirms the end a moment later, and the log has it from there. A call that is over stays as it is. \
        Hanging up twice does no harm.",
    )
    .optional_body::<Nothing>()
    .returns::<Call>()
    .errors(&[Code::CarrierNotConfigured, Code::CarrierRejected, Code::CarrierTimeout]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let reads = vec![calls::select(input.id()), Leg::select_for_caller(input.id())];
    let rows = context.read(reads).await?;
    let Some(row) = rows.first().and_then(|rows| rows.first()) else {
        return Err(Error::not_found("call").into());
    };
    let call = Call::read(row, &context.services.config().base_url)?;
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
    let services = context.services.clone();
    let is_first = leg.hang_up_at.is_none();
    // Before the carrier is told: however the call ends then, the log says who wanted it.
    leg.hang_up_at.get_or_insert(context.now_ms);
    let mut batch = Batch::from(leg.change());
    if is_first {
        // Whoever dies before the carrier has heard it, or is not answered, leaves no telephone ringing.
        leg.end_at_carrier(&services, context.now_ms, context.now_ms + PHONE_TOLD_MS, &mut batch);
        // A call that is called off has no turn to wait for.
        batch.push(leg.wait_no_longer_than(context.now_ms + PHONE_CONNECT_MS));
    }
    let output = context.commit_batch(batch, Output::ok(&call)?).await?;
    match telephony::hang_up::tell(&services, &leg).await {
        Ok(()) => Ok(output),
        Err(fault) => {
            // The same key may try again.
            context.replace_stored_response(Batch::default(), None).await?;
            Err(fault)
        }
    }
}
