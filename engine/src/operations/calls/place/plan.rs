//! Checks whether a call can be placed, and selects its number and its carrier.
use std::sync::Arc;

use serde_json::json;

use super::{Body, DryRun};
use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::AssistantId;
use crate::base::phone::E164;
use crate::base::time::Timestamp;
use crate::carriers::{Carrier, CarrierName};
use crate::config::Talking;
use crate::conversation::{PipelineMode, Texts, Values, Voicemail};
use crate::live::admission;
use crate::live::telephony::callbacks;
use crate::live::telephony::leg::Room;
use crate::operations::context::Context;
use crate::operations::{validate, variables};
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::column::Column;
use crate::storage::events;
use crate::storage::fault::Fault;
use crate::storage::named_snapshots;
use crate::storage::spending::{self, Budget, PhoneGrant};

/// The statements for [`Plan::new`]; the subscribers come last.
pub(super) fn reads(services: &Services, now_ms: i64, body: &Body) -> [Statement; 6] {
    [
        sql!(
            "SELECT id, revision, model, voice, transcriber, pipeline_mode, voicemail,
             IIF(INSTR(instructions, '{{'), instructions, '') AS instructions, first_message FROM assistants WHERE workspace_id = :ws AND id = :assistant",
            assistant = &body.assistant_id,
        ),
        sql!(
            "SELECT number, provider FROM numbers
             WHERE workspace_id = :ws AND (number = :from OR (:from IS NULL AND assistant_id = :assistant))
             ORDER BY number LIMIT 2",
            from = body.from.as_ref().map(E164::as_str),
            assistant = &body.assistant_id,
        ),
        Room::select(services),
        spending::select(services, now_ms),
        named_snapshots::kept(),
        events::callers_subscribers(),
    ]
}

/// The requested call, and all problems with it.
pub(super) struct Plan<'a> {
    services: &'a Services,
    assistant: Option<Assistant>,
    from: Option<(E164, CarrierName)>,
    to: E164,
    grant: Option<PhoneGrant>,
    problems: Vec<Error>,
    /// Whether this process is late, which is the last of the problems.
    is_late: bool,
}

/// The assistant of the call.
#[derive(Clone)]
pub(super) struct Assistant {
    pub(super) id: AssistantId,
    pub(super) revision: i64,
    pub(super) model: String,
    pub(super) voice: String,
    transcriber: String,
    pipeline_mode: PipelineMode,
    pub(super) voicemail: Option<Voicemail>,
    /// Empty where nothing is to be filled in.
    instructions: String,
    first_message: String,
}

/// A call that can be placed.
pub(super) struct Ready {
    pub(super) assistant: Assistant,
    pub(super) from: E164,
    pub(super) to: E164,
    pub(super) carrier: Arc<dyn Carrier>,
    /// How long it may last, and what it reserves.
    pub(super) grant: PhoneGrant,
}

impl<'a> Plan<'a> {
    pub(super) fn new(context: &'a Context, body: &Body, found: &[Rows; 6]) -> Result<Self, Fault> {
        let [assistant, numbers, room, budget, kept, _] = found;
        let services = &context.services;
        let mut problems = Vec::new();
        let assistant = assistant.first().map(Assistant::read).transpose()?;
        match &assistant {
            None => problems.push(Error::field("assistant_id", "is not an assistant of this workspace")),
            Some(assistant @ Assistant { model, voice, transcriber, pipeline_mode, .. }) => {
                problems.extend(assistant.fill_in(context, body).err());
                let talking = Talking { pipeline_mode: *pipeline_mode, model, voice, transcriber };
                if let Err(why) = services.config().transcriber_of(talking) {
                    let message = format!("has a voice that cannot be used on the telephone: {why}");
                    problems.push(Error::field("assistant_id", message));
                }
            }
        }
        let from = from_number(context, body, numbers, &mut problems)?;
        if let Some((number, _)) = &from
            && *number == body.to
        {
            problems.push(Error::field("to", "is the number to call from: a number cannot call itself"));
        }
        if let Some((_, provider)) = &from
            && let Err(error) = callbacks::carrier(&context.services, *provider)
        {
            problems.push(error);
        }
        // The carrier costs money with every model.
        let models =
            assistant.as_ref().map_or(0, |one| spending::wanted_by_models(services, &one.model, &one.voice));
        let rates = services.config().carriers.rates();
        let per_minute = from.as_ref().map_or(0, |(_, provider)| rates.microusd_per_minute(*provider));
        let grant = match Budget::read(Some(budget))?.grant_call(models, per_minute) {
            Ok(grant) => Some(grant),
            Err(error) => {
                problems.push(error);
                None
            }
        };
        problems.extend(Room::full(room)?.map(too_many_calls));
        match named_snapshots::check_kept(kept) {
            Err(Fault::Refused(error)) => problems.push(error),
            checked => checked?,
        }
        let is_late = services.is_late();
        problems.extend(is_late.then(admission::late));
        Ok(Self { services, assistant, from, to: body.to.clone(), grant, problems, is_late })
    }

    pub(super) fn dry_run(&self, body: &Body) -> DryRun {
        // In the form of an error response, which omits empty details.
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

    /// The call to place, or the first problem; all wrong fields are one problem.
    pub(super) fn order(self) -> Result<Ready, Fault> {
        let is_field = |error: &&Error| error.code == Code::ValidationFailed;
        let fields: Vec<FieldProblem> =
            self.problems.iter().filter(is_field).flat_map(Error::problems).collect();
        validate::refuse(&fields)?;
        if self.is_late && self.problems.len() == 1 {
            self.services.count_declined();
        }
        if let Some(error) = self.problems.into_iter().next() {
            return Err(error.into());
        }
        let (Some(assistant), Some((from, provider)), Some(grant)) = (self.assistant, self.from, self.grant)
        else {
            return Err(Fault::Bug("a plan without a problem is whole".to_owned()));
        };
        let carrier = self.services.config().carriers.get(provider).cloned();
        let carrier = carrier.ok_or_else(|| Fault::Bug("the carrier was there a moment ago".to_owned()))?;
        Ok(Ready { assistant, from, to: self.to, carrier, grant })
    }
}

impl Assistant {
    /// Whether the variables of the call fill in its texts.
    fn fill_in(&self, context: &Context, body: &Body) -> Result<(), Error> {
        let texts = Texts {
            instructions: &self.instructions,
            first_message: &self.first_message,
            voicemail_message: self.voicemail.as_ref().map_or("", |voicemail| voicemail.message.as_str()),
        };
        let now = Timestamp::from_ms(context.now_ms);
        variables::check(
            &texts.wanted(),
            &Values { variables: &body.variables, now, caller_number: body.to.as_str() },
        )
    }

    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.id("id")?,
            revision: row.integer("revision")?,
            model: row.text("model")?,
            voice: row.text("voice")?,
            transcriber: row.text("transcriber")?,
            pipeline_mode: row.word("pipeline_mode")?,
            voicemail: Column::read(row, "voicemail")?,
            instructions: row.text("instructions")?,
            first_message: row.text("first_message")?,
        })
    }
}

fn from_number(
    context: &Context,
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
            let grants = context.services.config().carriers.grants();
            if grants.permit(context.workspace_id()?, number.as_str()) {
                return Ok(Some((number, provider)));
            }
            // Bound before the operator decided about numbers.
            "is not a number that the operator of this service has given to this workspace (SIDETONE_NUMBERS)"
        }
        (Some(_), None, _) => "is not a number of this workspace: bind it first (PUT /numbers/{number})",
        (None, None, _) => "is required: no number is bound to this assistant",
        (None, Some(_), Some(_)) => "is required: several numbers are bound to this assistant",
    };
    problems.push(Error::fields(Code::ValidationFailed, &[FieldProblem::new("from", problem)]));
    Ok(None)
}

fn too_many_calls(Room { calls, calls_at_once }: Room) -> Error {
    let message = format!(
        "This workspace has {calls} telephone calls under way, and its limit is {calls_at_once}. Wait until one ends, or raise \
         calls_at_once (PATCH /workspace)."
    );
    let mut error = Error::new(Code::TooManyCalls, message);
    error.retry_after_s = Some(10);
    error
}
