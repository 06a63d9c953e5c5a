//! `POST /calls/{id}/hang-up`: ends a telephone call from our side.
use crate::base::error::{Code, Error};
use crate::base::limits::{PHONE_CONNECT_MS, PHONE_REPORT_WAIT_MS};
use crate::base::time::Timestamp;
use crate::live::telephony;
use crate::live::telephony::leg::{DueIf, Leg, Placing};
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
        "Ends a live telephone call, or cancels it while it rings. Returns the call as it is now: the carrier \
         confirms the end a moment later, and then the call in the log is ended. A call that has ended, or was handed over \
         to a person, does not change. \
         Hanging up twice is safe.",
    )
    .optional_body::<Nothing>()
    .returns::<Call>()
    .errors(&[Code::CarrierNotConfigured, Code::CarrierRejected, Code::CarrierTimeout]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let reads = [calls::select(&id), Leg::select_for_caller(&id)];
    let [mut call, leg] = context.read_each(reads).await?;
    context.unarchive(&mut call).await?;
    let row = call.first().ok_or_else(|| Error::not_found("call"))?;
    let call = Call::read(row, &context.services.config().base_url)?;
    let Some(mut leg) = Leg::first(Some(&leg))? else {
        let message =
            "is not a telephone call: a browser call ends with its socket, a simulated call with its run";
        return Err(Error::field("id", message).into());
    };
    if leg.transfer == Some(Placing::Asking) {
        return Err(
            not_now("The carrier is being asked to hand this call over. Try again in a moment.").into()
        );
    }
    if leg.rings() {
        let message = "This call is being handed over, and the other telephone rings. Try again in a moment.";
        return Err(not_now(message).into());
    }
    if leg.is_over || leg.facts.end.is_some() || leg.may_be_transferred() {
        return context.commit(Vec::new(), Output::ok(&call)?).await;
    }
    if leg.carrier_call_id.is_none() {
        let message =
            "The carrier has not given this call an id yet, so it cannot end it yet. Try again in a moment.";
        return Err(not_now(message).into());
    }
    let services = context.services.clone();
    let is_first = leg.hang_up_at.is_none();
    // Stored before the carrier receives the command: the log then has the request, however the call ends.
    let now = Timestamp::from_ms(context.now_ms);
    leg.hang_up_at.get_or_insert(now);
    let mut batch = Batch::from(leg.change());
    if is_first {
        // The job hangs up if this process dies first, or the carrier does not respond.
        leg.hang_up_by(&services, now, now + PHONE_REPORT_WAIT_MS, &mut batch);
        // The job of a canceled call does not wait as long as the carrier's queue.
        batch.push(leg.set_job_due(now + PHONE_CONNECT_MS, DueIf::Earlier));
    }
    let output = context.commit(batch, Output::ok(&call)?).await?;
    let asked = telephony::hang_up::hang_up(&services, &leg).await;
    // Only now: the conversation hangs up by another request if it ends first.
    services.ports().live.signal(&leg.call_id).await;
    match asked {
        Ok(()) => Ok(output),
        Err(fault) => {
            // The same Idempotency-Key may try again.
            context.replace_stored_response(Batch::default(), None).await?;
            Err(fault)
        }
    }
}

fn not_now(message: &'static str) -> Error {
    Error::unavailable(message, 1)
}
