//! An outgoing call: stores the intent, sends the request to the carrier, and stores the result.
use serde_json::json;

use super::plan::Ready;
use super::{Answer, Body};
use crate::base::error::{Code, Error};
use crate::base::ids::CallId;
use crate::base::limits::{PHONE_CONNECT_MS, PHONE_QUEUE_MS, PHONE_RING_SECONDS};
use crate::base::time::Timestamp;
use crate::carriers::{End, Order, Placed, Rejection, RejectionCause};
use crate::conversation::{CallFault, EndedReason};
use crate::live::end_call::{EndOfCall, end_call};
use crate::live::telephony::begin_call::begin_call;
use crate::live::telephony::leg::{DueIf, Leg, Placing, command_id};
use crate::live::telephony::{CallUrls, client};
use crate::operations::context::Context;
use crate::operations::operation::Output;
use crate::ports::HttpError;
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, CallStatus, Direction, NewCall, Source};
use crate::storage::events::{self, Subscribers};
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::spending::{self, Reservation};

/// A call before its request to the carrier.
pub(super) struct PendingCall {
    call: NewCall,
    leg: Leg,
    reservation: Option<Reservation>,
    now: Timestamp,
}

/// The carrier's response.
pub(super) enum PlacementResult {
    /// Accepted, with this id.
    Accepted(String),
    /// Rejected.
    Rejected(Rejection),
    /// Unknown, for this reason.
    Unknown(String),
}

impl PendingCall {
    pub(super) fn new(context: &Context, body: &Body, ready: &Ready) -> Result<Self, Fault> {
        let services = &context.services;
        let call = NewCall {
            workspace_id: context.workspace_id()?.clone(),
            id: services.new_id(),
            assistant_id: ready.assistant.id.clone(),
            assistant_revision: ready.assistant.revision,
            snapshot: None,
            source: Source::Outbound,
            direction: Direction::Outbound,
            status: CallStatus::Queued,
            from: Some(ready.from.as_str().to_owned()),
            to: Some(ready.to.as_str().to_owned()),
            user_number: body.user_number.as_ref().map(|number| number.as_str().to_owned()),
            provider: Some(ready.carrier.provider()),
            carrier_call_id: None,
            model: ready.assistant.model.clone(),
            voice: ready.assistant.voice.clone(),
            started_at: Timestamp::from_ms(context.now_ms),
            answered_at: None,
            simulation_run_id: None,
            variables: body.variables.clone(),
            metadata: body.metadata.clone(),
        };
        let leg = Leg::new(&call, services.new_id(), None, Placing::Asking, ready.grant.max_seconds)?;
        Ok(Self { now: call.started_at, call, leg, reservation: ready.grant.reservation })
    }

    /// Stores the intent. Under an Idempotency-Key, a second request gets the response that this one is in progress.
    pub(super) async fn write(&self, context: &mut Context, subscribers: &Subscribers) -> Result<(), Fault> {
        let mut batch = Batch::from([self.leg.concurrency_guard(&context.services)]);
        let due_at = self.now + PHONE_CONNECT_MS;
        begin_call(&context.services, &mut batch, &self.call, &self.leg, subscribers, due_at)?;
        if let Some(reservation) = self.reservation {
            let Leg { workspace_id, call_id, .. } = &self.leg;
            let (services, now_ms) = (&context.services, self.now.ms());
            batch.extend(spending::reserve(services, workspace_id, call_id, now_ms, reservation));
        }
        context.audit_subject(&self.call.id);
        context.commit_intent(batch, &self.in_progress()).await
    }

    /// Sends the request to the carrier, once.
    pub(super) async fn ask(&self, services: &Services, ready: &Ready) -> Result<PlacementResult, Fault> {
        let urls = CallUrls::new(services, self.leg.provider, &self.leg.workspace_id, &self.leg.call_id)?;
        let outgoing = ready.carrier.place(&Order {
            from: &ready.from,
            to: &ready.to,
            media_url: &urls.media,
            status_url: &urls.status,
            answer_url: &urls.answer,
            command_id: &command_id(&self.call.id, "place"),
            ring_seconds: PHONE_RING_SECONDS,
            voicemail: ready.assistant.voicemail.as_ref().map(|voicemail| voicemail.action),
            max_seconds: u32::try_from(self.leg.max_seconds).unwrap_or_default(),
            now_ms: self.now.ms(),
        });
        Ok(match client::send(services, outgoing).await {
            Ok(reply) => match ready.carrier.placed(&reply) {
                Placed::Accepted { carrier_call_id } => PlacementResult::Accepted(carrier_call_id),
                Placed::Rejected(rejection) => PlacementResult::Rejected(rejection),
                Placed::Unknown(why) => PlacementResult::Unknown(why),
            },
            Err(HttpError::Timeout) => PlacementResult::Unknown("it did not answer in time".to_owned()),
            Err(HttpError::Refused) => PlacementResult::Unknown("its address cannot be reached".to_owned()),
            Err(HttpError::TooLarge(_)) => PlacementResult::Unknown("its answer was too large".to_owned()),
            Err(HttpError::Failed(_)) => PlacementResult::Unknown("the connection broke".to_owned()),
        })
    }

    /// Stores the carrier's response. Callbacks may have arrived before it.
    pub(super) async fn record_answer(
        &self,
        context: &Context,
        answer: PlacementResult,
    ) -> Result<Output, Fault> {
        let recorded = match self.record(context, &answer, self.leg.clone(), false).await {
            // A callback was faster.
            Err(Fault::Stale) => self.record_anew(context, &answer).await,
            recorded => recorded,
        };
        let recorded = match recorded {
            // The id belongs to another call, so the response says nothing about this one.
            Err(Fault::Storage(error)) if error.is_constraint("phone_calls") => {
                let unknown = PlacementResult::Unknown("it named another call".to_owned());
                self.record_anew(context, &unknown).await
            }
            recorded => recorded,
        };
        match recorded {
            // Not stale: an operation that is stale runs again, and would ask the carrier again.
            Err(Fault::Stale) => {
                Err(Fault::Bug(format!("{} stayed stale after its carrier was asked", self.call.id)))
            }
            recorded => recorded,
        }
    }

    async fn record_anew(&self, context: &Context, answer: &PlacementResult) -> Result<Output, Fault> {
        let load_and_record = || async {
            let leg = Leg::load(&context.services, &self.call.workspace_id, &self.call.id).await?;
            // After the leg: whoever deletes the call changes its version.
            let exists =
                sql!("SELECT 1 AS one FROM calls WHERE workspace_id = :ws AND id = :id", id = &self.call.id);
            let [found] = context.services.read([exists.in_workspace(&self.call.workspace_id)]).await?;
            self.record(context, answer, leg, found.is_empty()).await
        };
        retry_stale(load_and_record).await
    }

    /// `is_deleted`: the call was deleted since it was started.
    async fn record(
        &self,
        context: &Context,
        answer: &PlacementResult,
        leg: Leg,
        is_deleted: bool,
    ) -> Result<Output, Fault> {
        match answer {
            PlacementResult::Accepted(carrier_call_id) => {
                self.accepted(context, leg, carrier_call_id, is_deleted).await
            }
            PlacementResult::Rejected(rejection) => self.rejected(context, leg, rejection).await,
            PlacementResult::Unknown(why) => self.unknown(context, leg, why).await,
        }
    }

    async fn accepted(
        &self,
        context: &Context,
        mut leg: Leg,
        carrier_call_id: &str,
        is_deleted: bool,
    ) -> Result<Output, Fault> {
        let (workspace_id, id) = (&self.call.workspace_id, &self.call.id);
        leg.placing = Placing::Accepted;
        // A callback that was faster knows the id too.
        let known = leg.carrier_call_id.get_or_insert_with(|| carrier_call_id.to_owned()).clone();
        let mut batch = Batch::from(leg.change());
        batch.extend(calls::write::carried(workspace_id, id, &known));
        if leg.hang_up_at.is_none() {
            batch.push(leg.set_job_due(self.now + PHONE_QUEUE_MS, DueIf::StillQueued));
        }
        if leg.is_over && leg.media_started_at.is_none() {
            // The call was given up before it had an id for a hang-up.
            leg.hang_up_later(&context.services, self.now, &mut batch);
        }
        let call = NewCall { carrier_call_id: Some(known), ..self.call.clone() };
        let output = Output::created(&Answer::Placed(Box::new(Call::of(&call, None, None)?)))?;
        // What was deleted is not read by repeating its start.
        let deleted = is_deleted.then(|| Output::failure(&Error::not_found("call")));
        context.replace_stored_response(batch, deleted.as_ref().or(Some(&output))).await?;
        Ok(output)
    }

    async fn rejected(
        &self,
        context: &Context,
        mut leg: Leg,
        rejection: &Rejection,
    ) -> Result<Output, Fault> {
        let (services, workspace_id, id) = (&context.services, &self.call.workspace_id, &self.call.id);
        let reads = [calls::select_for(workspace_id, id), events::subscribers(workspace_id)];
        let [call, subscribers] = services.read(reads).await?;
        let row = call.first().ok_or_else(|| Fault::Bug(format!("{id} is gone")))?;
        let call = NewCall::read(row, workspace_id)?;
        leg.placing = Placing::Rejected;
        leg.facts.rejected(rejection);
        let mut batch = Batch::default();
        // A call that is connected nevertheless is ended by its conversation.
        if leg.is_over || leg.media_started_at.is_some() {
            batch.extend(leg.change());
        } else {
            let (end, subscribers) = (refused(rejection), Subscribers::read(&subscribers)?);
            let end = EndOfCall::never_connected(&call, &leg, &end, &subscribers, services.now());
            end_call(services, &mut batch, end)?;
        }
        // Nothing rings, so the same Idempotency-Key may be used again.
        context.replace_stored_response(batch, None).await?;
        Err(with_call(client::rejected(leg.provider.as_str(), rejection), id).into())
    }

    async fn unknown(&self, context: &Context, mut leg: Leg, why: &str) -> Result<Output, Fault> {
        let message = format!(
            "The carrier did not confirm whether it accepted the call: {why}. Read the call before you place it again; \
             it is updated when the carrier calls back."
        );
        let details = json!({"provider": leg.provider, "call_id": self.call.id});
        let error = Error::new(Code::CarrierTimeout, message).with_details(details);
        if leg.placing == Placing::Asking {
            leg.placing = Placing::Unknown;
        }
        context.replace_stored_response(leg.change().into(), Some(&Output::failure(&error))).await?;
        Err(error.into())
    }

    fn in_progress(&self) -> Error {
        let message = "This request is in progress, and it is not known yet whether the carrier accepted the call. Read the call \
                       before you place it again.";
        let details = json!({"provider": self.leg.provider, "call_id": self.call.id});
        Error::new(Code::RequestInProgress, message).with_details(details)
    }
}

fn with_call(mut error: Error, call_id: &CallId) -> Error {
    if let Some(details) = error.details.as_deref_mut() {
        details["call_id"] = json!(call_id);
    }
    error
}

/// The end of a call that the carrier has rejected.
fn refused(rejection: &Rejection) -> End {
    let end = End::of(EndedReason::CarrierRefused, &rejection.code);
    match rejection.cause {
        RejectionCause::Request => End { fault: CallFault::Caller, ..end },
        RejectionCause::Account => end,
        RejectionCause::Busy | RejectionCause::Carrier => End { fault: CallFault::Carrier, ..end },
    }
}
