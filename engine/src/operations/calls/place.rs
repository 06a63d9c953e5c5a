//! `POST /calls/outbound`: places a telephone call, once.
//!
//! 1. What is meant is written: the call, its leg, its job, and what the Idempotency-Key answers for now.
//! 2. The carrier is asked: one request, never a second.
//! 3. What it said is written. Whoever dies between 1 and 3 leaves a call of which nobody can tell whether it rings; a
//!    status callback settles it, or its job after a while.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::prefix;
use crate::base::limits::{
    PHONE_CALL_SECONDS_MAX, PHONE_CONNECT_MS, PHONE_QUEUE_MS, PHONE_RING_SECONDS, STALE_ATTEMPTS_MAX,
};
use crate::base::phone::E164;
use crate::carriers::{Carrier, CarrierName, End, Order, Placed, Rejection, RejectionCause};
use crate::conversation::{CallFault, EndedReason};
use crate::live::telephony::incoming::{announce, leg};
use crate::live::telephony::leg::{Leg, Placing, command_id};
use crate::live::telephony::{CallUrls, callbacks, client, status};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::ports::HttpError;
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::speech;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, CallStatus, Direction, NewCall, Source};
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::spending;

/// `POST /calls/outbound`
pub const OPERATION: Operation = Operation::post("create_outbound_call", "/calls/outbound", run!(run))
    .spending()
    .docs(
        "Place a call",
        "Calls a telephone number and connects whoever answers to the assistant. 201 means that the carrier has \
        taken the call, not that anybody answered: look at the call in the log (get_call) afterwards. The carrier is asked \
        once and never again by itself; 504 means that nobody can tell whether it took the call, and the call named in \
        `details.call_id` will show it. Send an Idempotency-Key to make your own retry safe. Calls cost money: have the \
        recipient, the caller number and the expected usage approved first. `?dry_run=true` checks everything and places nothing.",
    )
    .query::<Query>()
    .body::<Body>()
    .returns::<Answer>()
    .errors(&[
        Code::SpendLimitReached,
        Code::CarrierNotConfigured,
        Code::RequestInProgress,
        Code::TooManyCalls,
        Code::CarrierRejected,
        Code::CarrierTimeout,
    ]);

/// How to ask.
#[derive(Deserialize, JsonSchema)]
pub struct Query {
    /// True: check everything, place nothing, and say what would happen. The answer is then 201 with `dry_run`.
    #[serde(default)]
    dry_run: bool,
}

/// The call to place.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// The assistant that talks.
    assistant_id: String,
    /// The number to call.
    to: E164,
    /// The number that calls: one that this workspace has bound. May be left out when exactly one is bound to the
    /// assistant.
    #[serde(default)]
    #[schemars(with = "E164")]
    from: Option<E164>,
    /// The person on whose behalf the call is placed; kept on the call and told to the assistant.
    #[serde(default)]
    #[schemars(with = "E164")]
    user_number: Option<E164>,
}

/// A call that was placed, or that could be.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Answer {
    /// The carrier has taken it.
    Placed(Box<Call>),
    /// Nothing was placed.
    DryRun(DryRun),
}

/// What placing the call would do.
#[derive(Serialize, JsonSchema)]
pub struct DryRun {
    /// Always true.
    dry_run: bool,
    /// Whether the call would be placed.
    would_place: bool,
    /// The number that would call; null when none can be told.
    from: Option<String>,
    /// The number that would be called.
    to: String,
    /// The carrier that would be asked; null when none can be told.
    provider: Option<CarrierName>,
    /// Why it would not be placed: the errors that the same request without `dry_run` would get, each with `code`,
    /// `message` and, where it has any, `details`.
    problems: Vec<Value>,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let body: Body = input.body()?;
    let Query { dry_run } = input.query()?;
    let rows = context.read(reads(context.now_ms, &body)).await?;
    let plan = Plan::new(context, &body, &rows)?;
    if dry_run {
        let answer = plan.dry_run(&body);
        return context.commit(Vec::new(), Output::created(&Answer::DryRun(answer))?).await;
    }
    let order = plan.order()?;
    let meant = PendingCall::new(context, &body, &order, rows.last())?;
    meant.write(context).await?;
    let said = meant.ask(&context.services, &order).await?;
    meant.settle(context, order.carrier.provider(), said).await
}

fn reads(now_ms: i64, body: &Body) -> Vec<Statement> {
    vec![
        sql!(
            "SELECT id, revision, model, voice FROM assistants WHERE workspace_id = :ws AND id = ?1",
            &body.assistant_id
        ),
        sql!(
            "SELECT number, provider FROM numbers WHERE workspace_id = :ws AND (number = ?1 OR (?1 IS NULL AND assistant_id = ?2))
             ORDER BY number LIMIT 2",
            body.from.as_ref().map(E164::as_str),
            &body.assistant_id
        ),
        sql!(
            "SELECT calls_at_once, (SELECT COUNT(*) FROM phone_calls WHERE workspace_id = :ws AND is_over = 0) AS calls
             FROM workspaces WHERE id = :ws"
        ),
        spending::select(now_ms),
        events::callers_subscribers(),
    ]
}

/// What the request comes to, and everything that speaks against it.
struct Plan<'a> {
    services: &'a Services,
    assistant: Option<Assistant>,
    from: Option<(E164, CarrierName)>,
    to: E164,
    problems: Vec<Error>,
}

#[derive(Clone)]
struct Assistant {
    id: String,
    revision: i64,
    model: String,
    voice: String,
}

/// A call that nothing speaks against.
struct Ready {
    services: Services,
    assistant: Assistant,
    from: E164,
    to: E164,
    carrier: std::sync::Arc<dyn Carrier>,
}

impl<'a> Plan<'a> {
    fn new(context: &'a Context, body: &Body, rows: &[Rows]) -> Result<Self, Fault> {
        let [assistant, numbers, room, budget, _] = rows else {
            return Err(Fault::Bug("a batch lacks answers".to_owned()));
        };
        let mut problems = Vec::new();
        let assistant = assistant.first().map(Assistant::read).transpose()?;
        match &assistant {
            None => problems.push(Error::field("assistant_id", "is no assistant of this workspace")),
            Some(assistant) if !speech::can_speak(&assistant.voice) => {
                let message = format!(
                    "speaks with {}, which cannot be used on the telephone yet: use builtin/tone",
                    assistant.voice
                );
                problems.push(Error::field("assistant_id", message));
            }
            Some(_) => {}
        }
        let from = from_number(body, numbers, &mut problems)?;
        if let Some((number, _)) = &from
            && *number == body.to
        {
            problems.push(Error::field("to", "is the number that calls: a line cannot call itself"));
        }
        if let Some((_, provider)) = &from
            && let Err(error) = callbacks::carrier(&context.services, *provider)
        {
            problems.push(error);
        }
        // The carrier costs money whatever the model does.
        match spending::check(Some(budget), true) {
            Ok(()) => {}
            Err(Fault::Refused(error)) => problems.push(error),
            Err(fault) => return Err(fault),
        }
        if let Some(row) = room.first()
            && row.integer("calls")? >= row.integer("calls_at_once")?
        {
            problems.push(too_many_calls(row)?);
        }
        Ok(Self { services: &context.services, assistant, from, to: body.to.clone(), problems })
    }

    fn dry_run(&self, body: &Body) -> DryRun {
        // As an error is shown: without details where it has none.
        let shown = |error: &Error| {
            let mut problem = json!({"code": error.code.as_str(), "message": error.message});
            if let Some(details) = &error.details {
                problem["details"] = (**details).clone();
            }
            problem
        };
        DryRun {
            dry_run: true,
            would_place: self.problems.is_empty(),
            from: self.from.as_ref().map(|(number, _)| number.as_str().to_owned()),
            to: body.to.as_str().to_owned(),
            provider: self.from.as_ref().map(|(_, provider)| *provider),
            problems: self.problems.iter().map(shown).collect(),
        }
    }

    /// The call to place, or the first thing that speaks against it.
    fn order(self) -> Result<Ready, Fault> {
        if let Some(error) = self.problems.into_iter().next() {
            return Err(error.into());
        }
        let (Some(assistant), Some((from, provider))) = (self.assistant, self.from) else {
            return Err(Fault::Bug("a plan without a problem is whole".to_owned()));
        };
        let carrier = self.services.config().carriers.get(provider).cloned();
        let carrier = carrier.ok_or_else(|| Fault::Bug("the carrier was there a moment ago".to_owned()))?;
        Ok(Ready { services: self.services.clone(), assistant, from, to: self.to, carrier })
    }
}

impl Assistant {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            revision: row.integer("revision")?,
            model: row.text("model")?,
            voice: row.text("voice")?,
        })
    }
}

fn from_number(
    body: &Body,
    numbers: &Rows,
    problems: &mut Vec<Error>,
) -> Result<Option<(E164, CarrierName)>, Fault> {
    let mut rows = numbers.iter();
    let (first, second) = (rows.next(), rows.next());
    let problem = match (&body.from, first, second) {
        (Some(_), Some(row), _) | (None, Some(row), None) => {
            let stored = |what: &str| Fault::Bug(format!("numbers: {what}"));
            let number = E164::parse(row.str("number")?).map_err(|_| stored("number"))?;
            let provider = CarrierName::parse(row.str("provider")?).ok_or_else(|| stored("provider"))?;
            return Ok(Some((number, provider)));
        }
        (Some(_), None, _) => "is no number of this workspace: bind it first (PUT /numbers/{number})",
        (None, None, _) => "is needed: no number is bound to this assistant",
        (None, Some(_), Some(_)) => "is needed: several numbers are bound to this assistant",
    };
    problems.push(Error::fields(Code::ValidationFailed, &[FieldProblem::new("from", problem)]));
    Ok(None)
}

fn too_many_calls(row: Row<'_>) -> Result<Error, Fault> {
    let (calls, most) = (row.integer("calls")?, row.integer("calls_at_once")?);
    let message = format!(
        "This workspace has {calls} telephone calls under way and allows itself {most}. Wait until one is over, or raise \
         calls_at_once (PATCH /workspace)."
    );
    let mut error = Error::new(Code::TooManyCalls, message);
    error.retry_after_s = Some(10);
    Ok(error)
}

/// A call that is about to be on disk.
struct PendingCall {
    call: NewCall,
    leg: Leg,
    subscribers: Subscribers,
    now_ms: i64,
}

/// What came of asking.
enum PlacementResult {
    Accepted(String),
    Rejected(Rejection),
    Unknown(String),
}

impl PendingCall {
    fn new(context: &Context, body: &Body, ready: &Ready, subscribers: Option<&Rows>) -> Result<Self, Fault> {
        let services = &context.services;
        let call = NewCall {
            workspace_id: context.workspace_id()?.to_owned(),
            id: context.id(prefix::CALL),
            assistant_id: ready.assistant.id.clone(),
            assistant_revision: ready.assistant.revision,
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
            started_at: context.now_ms,
            answered_at: None,
            simulation_run_id: None,
        };
        let leg = leg(services, &call, None, Placing::Asking, PHONE_CALL_SECONDS_MAX)?;
        let missing = || Fault::Bug("a batch lacks answers".to_owned());
        let subscribers = Subscribers::read(subscribers.ok_or_else(missing)?)?;
        Ok(Self { call, leg, subscribers, now_ms: context.now_ms })
    }

    /// Writes the intent. Under an Idempotency-Key, a twin is told that this one is under way.
    async fn write(&self, context: &mut Context) -> Result<(), Fault> {
        let mut batch =
            Batch::from([self.leg.room(), self.leg.insert(), self.leg.job(self.now_ms + PHONE_CONNECT_MS)]);
        batch.extend(calls::write::insert(&self.call));
        let kind = EventKind::CallStarted;
        announce(&context.services, &self.call, None, &self.subscribers, kind, &mut batch)?;
        let error = self.in_progress();
        context.commit_intent(batch, &error).await
    }

    async fn ask(&self, services: &Services, ready: &Ready) -> Result<PlacementResult, Fault> {
        let urls = CallUrls::new(services, self.leg.provider, &self.leg.workspace_id, &self.leg.call_id)?;
        let outgoing = ready.carrier.place(&Order {
            from: &ready.from,
            to: &ready.to,
            media_url: &urls.media,
            status_url: &urls.status,
            answer_url: &urls.answer,
            command_id: &command_id(&self.call.id, "place"),
            ring_seconds: PHONE_RING_SECONDS,
            max_seconds: u32::try_from(self.leg.max_seconds).unwrap_or_default(),
            now_ms: self.now_ms,
        });
        Ok(match client::send(&ready.services, outgoing).await {
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

    /// Writes what the carrier said. Its callbacks may have been here before its answer.
    async fn settle(
        self,
        context: &mut Context,
        provider: CarrierName,
        mut said: PlacementResult,
    ) -> Result<Output, Fault> {
        let services = context.services.clone();
        let mut leg = self.leg.clone();
        for _ in 0..STALE_ATTEMPTS_MAX {
            match self.settled(context, &services, provider, leg, &said).await {
                Err(Fault::Stale) => {
                    leg = Leg::load(&services, &self.leg.workspace_id, &self.leg.call_id).await?
                }
                // The name is taken, so it says nothing about this call.
                Err(Fault::Storage(error)) if error.is_constraint("phone_calls") => {
                    said = PlacementResult::Unknown("it named another call".to_owned());
                    leg = Leg::load(&services, &self.leg.workspace_id, &self.leg.call_id).await?
                }
                other => return other,
            }
        }
        // Not stale: whoever runs a stale operation again asks the carrier again.
        Err(Fault::Bug(format!("{} did not come to rest after its carrier was asked", self.leg.call_id)))
    }

    async fn settled(
        &self,
        context: &mut Context,
        services: &Services,
        provider: CarrierName,
        mut leg: Leg,
        said: &PlacementResult,
    ) -> Result<Output, Fault> {
        let (workspace_id, id) = (&self.call.workspace_id, &self.call.id);
        match said {
            PlacementResult::Accepted(carrier_call_id) => {
                let mut call = self.call.clone();
                leg.placing = Placing::Accepted;
                // A callback that was faster knows the id too.
                let known = leg.carrier_call_id.get_or_insert_with(|| carrier_call_id.clone()).clone();
                call.carrier_call_id = Some(known.clone());
                let mut batch = Batch::from(leg.change());
                batch.extend(calls::write::carried(workspace_id, id, &known));
                if leg.hang_up_at.is_none() {
                    batch.push(leg.queue_until(self.now_ms + PHONE_QUEUE_MS));
                }
                if leg.is_over && leg.media_started_at.is_none() {
                    // It was given up before it had a name to be ended by.
                    leg.hang_up_later(services, self.now_ms, &mut batch);
                }
                let call = Call::of(&call, None, None)?;
                let output = Output::created(&Answer::Placed(Box::new(call)))?;
                context.replace_stored_response(batch, Some(&output)).await?;
                Ok(output)
            }
            PlacementResult::Rejected(rejection) => {
                let error = with_call(client::rejected(provider.as_str(), rejection), id);
                leg.placing = Placing::Rejected;
                leg.said.rejected(rejection);
                // One that talks all the same is ended by its conversation.
                let ends = !leg.is_over && leg.media_started_at.is_none();
                leg.is_over |= ends;
                let mut batch = Batch::from(leg.change());
                if ends {
                    let mut end = End::of(EndedReason::CarrierRefused, &rejection.code);
                    if rejection.cause == RejectionCause::Request {
                        end = End { fault: CallFault::Caller, ..end };
                    } else if rejection.cause != RejectionCause::Account {
                        end = End { fault: CallFault::Carrier, ..end };
                    }
                    let ended = status::unconnected(&leg, &end, None, services.ports().clock.now_ms());
                    batch.extend(calls::write::end(workspace_id, id, &ended, None));
                    let kind = EventKind::CallEnded;
                    announce(services, &self.call, Some(&ended), &self.subscribers, kind, &mut batch)?;
                    leg.wake_job(self.now_ms, &mut batch);
                }
                // Nothing rings: the same key may try again.
                context.replace_stored_response(batch, None).await?;
                Err(error.into())
            }
            PlacementResult::Unknown(why) => {
                let message = format!(
                    "The carrier did not say whether it took the call: {why}. Look at the call before you place it again; \
                     it shows what becomes of it once the carrier calls back."
                );
                let details = json!({"provider": provider, "call_id": id});
                let error = Error::new(Code::CarrierTimeout, message).with_details(details);
                if leg.placing == Placing::Asking {
                    leg.placing = Placing::Unknown;
                }
                context.replace_stored_response(leg.change().into(), Some(&Output::failure(&error))).await?;
                Err(error.into())
            }
        }
    }

    fn in_progress(&self) -> Error {
        let message = "This request has begun, and whether the carrier took the call is not known (yet). Look at the call \
                       before you place it again.";
        let details = json!({"provider": self.leg.provider, "call_id": self.call.id});
        Error::new(Code::RequestInProgress, message).with_details(details)
    }
}

fn with_call(mut error: Error, call_id: &str) -> Error {
    if let Some(details) = error.details.as_deref_mut() {
        details["call_id"] = json!(call_id);
    }
    error
}
