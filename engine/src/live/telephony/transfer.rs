//! Hands a telephone call over to another number. The intent is stored first, with what the line may cost and until when it
//! may last; then the carrier is asked once, and what it answers is stored. Nothing repeats the request. From then on nobody
//! here hangs up the line before its time is over.
use std::borrow::Cow;

use super::leg::{self, HandedOver, Leg, Placing};
use super::token::CallToken;
use super::{CallUrls, callbacks, client};
use crate::base::limits::{
    CARRIER_DEADLINE_MS, PHONE_RING_SECONDS, PHONE_TRANSFER_MARGIN_MS, PHONE_TRANSFER_SECONDS_MAX,
    TRANSFER_RETURNS_MAX,
};
use crate::base::phone::E164;
use crate::carriers::{Carrier, Dial, Reply, Transfer};
use crate::live::lease::JobLease;
use crate::ports::HttpError;
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{Direction, NewCall};
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::spending::{self, Budget, Reservation};

/// What came of the request.
pub(crate) enum Transferred {
    /// The carrier transfers the call, or somebody has taken it.
    Accepted,
    /// The carrier transfers the call, and says what comes of it.
    Rings,
    /// It does not, for this reason: the call goes on as before.
    Rejected(String),
    /// The same; the carrier was not asked.
    NotAsked(&'static str),
    /// It may or may not.
    Unknown,
}

/// The parameters of the URL that [`document`] answers.
const TO: &str = "to";
const FROM: &str = "from";
const SECONDS: &str = "seconds";
/// In that URL and in [`Dial::back_url`]: how often the caller would have come back.
const BACK: &str = "back";

/// The longest time of a line that is handed over.
const MINUTES_MAX: i64 = PHONE_TRANSFER_SECONDS_MAX / 60;

/// Asks the carrier to connect a call to this number instead of its media socket. `tool_call_id` identifies the request.
pub(crate) async fn transfer(
    services: &Services,
    call: &NewCall,
    lease: &JobLease,
    tool_call_id: &str,
    to: &E164,
) -> Result<Transferred, Fault> {
    let provider = call.provider.ok_or_else(|| Fault::Bug(format!("{} has no carrier", call.id)))?;
    let carrier = callbacks::carrier(services, provider)?;
    let urls = CallUrls::new(services, provider, &call.workspace_id, &call.id)?;
    let is_inbound = call.direction == Direction::Inbound;
    let number = |number: &Option<String>| number.as_deref().and_then(|number| E164::parse(number).ok());
    let (caller, called) = (number(&call.from), number(&call.to));
    // Nobody is reached there but another assistant, and so on.
    if [&caller, &called].into_iter().flatten().any(|number| number == to) {
        return Ok(Transferred::NotAsked("the number is one of this call."));
    }
    let shows_caller = is_inbound && caller.is_some();
    let our_number = if is_inbound { called } else { caller };
    let tells = carrier.tells_of_transfer();
    let Intent { leg, carrier_call_id, minutes, before } =
        match retry_stale(|| store_intent(services, call, lease, tells)).await? {
            Ok(intent) => intent,
            Err(why) => return Ok(Transferred::NotAsked(why)),
        };
    let back_url = back_url(&urls.answer, leg.facts.returns + 1);
    let mut request = Transfer {
        carrier_call_id: &carrier_call_id,
        region_url: leg.region_url.as_deref(),
        to,
        ring_seconds: PHONE_RING_SECONDS,
        max_seconds: u32::try_from(minutes * 60).unwrap_or_default(),
        our_number: our_number.as_ref(),
        shows_caller,
        call_id: &leg.call_id,
        document_url: "",
        status_url: &urls.status,
        back_url: &back_url,
        command_id: &leg::command_id(&leg.call_id, tool_call_id),
        now_ms: services.ports().clock.now_ms(),
    };
    let document_url = document_url(&request.dial());
    request.document_url = &document_url;
    let rejected = |why| (Placing::Rejected, Transferred::Rejected(why));
    let unknown = (Placing::Unknown, Transferred::Unknown);
    let (state, transferred) = match client::send(services, carrier.transfer(&request)).await {
        Ok(reply) => match reply.status {
            200..=299 => (Placing::Accepted, Transferred::Accepted),
            // A request that timed out on the carrier's side may have been executed.
            400..=499 if reply.status != 408 => rejected(carrier.rejection(&reply).message),
            _ => unknown,
        },
        // It was not sent.
        Err(HttpError::Refused) => rejected("the carrier's address is not allowed".to_owned()),
        Err(HttpError::Timeout | HttpError::Failed(_) | HttpError::TooLarge(_)) => unknown,
    };
    let is_told = retry_stale(|| store_answer(services, call, state, before, tells)).await?;
    Ok(match transferred {
        Transferred::Accepted if tells => Transferred::Rings,
        // What came of it is known before the answer.
        Transferred::Unknown if is_told => Transferred::Rings,
        transferred => transferred,
    })
}

/// A request that is about to be made.
struct Intent {
    leg: Leg,
    carrier_call_id: String,
    /// How long both may talk.
    minutes: i64,
    /// What the call had reserved.
    before: Option<Reservation>,
}

/// Stores that the carrier is about to be asked, under the conversation's lease, and reserves what that may cost. If the
/// carrier must not be asked, the error says why.
async fn store_intent(
    services: &Services,
    call: &NewCall,
    lease: &JobLease,
    tells: bool,
) -> Result<Result<Intent, &'static str>, Fault> {
    let (workspace_id, now) = (&call.workspace_id, services.now());
    let reads = [
        Leg::select(workspace_id, &call.id),
        Reservation::select(workspace_id, &call.id),
        spending::select_beside(services, now.ms(), Some(&call.id)).in_workspace(workspace_id),
    ];
    let [leg, before, budget] = services.read(reads).await?;
    let leg = Leg::first(Some(&leg))?.ok_or_else(|| Fault::Bug(format!("{} has no leg", call.id)))?;
    if leg.stop_reason().is_some() || leg.may_be_transferred() {
        return Ok(Err("it is over."));
    }
    if leg.facts.returns >= TRANSFER_RETURNS_MAX {
        return Ok(Err("nobody has taken it three times. Do not try it again."));
    }
    let Some(carrier_call_id) = leg.carrier_call_id.clone() else {
        return Ok(Err("the carrier has not named it yet."));
    };
    let before = Reservation::first(&before)?;
    let per_minute = services.config().carriers.rates().microusd_per_minute(leg.provider);
    let lasted_ms = now - leg.media_started_at.unwrap_or(leg.created_at);
    let minutes = whole_minutes(lasted_ms + CARRIER_DEADLINE_MS.cast_signed());
    let budget = Budget::read(Some(&budget))?;
    let Some(grant) = budget.grant_line(before, minutes, per_minute, minutes_wanted(&leg, lasted_ms)) else {
        return Ok(Err("too little of the monthly spending limit is left for it. Do not try it again."));
    };
    let until = now + grant.minutes * 60_000 + PHONE_TRANSFER_MARGIN_MS;
    let mut leg = Leg {
        transfer: Some(Placing::Asking),
        line: Some(HandedOver { until, microusd: grant.microusd }),
        ..leg
    };
    leg.facts.handed_over_ms = Some(now.ms());
    if tells {
        leg.begin_to_ring(now, before);
    }
    let mut statements = lease.extend(now.ms()).to_vec();
    if grant.microusd.is_some() {
        statements.push(spending::guard_left(services, workspace_id, &call.id, now.ms(), grant.whole()));
        statements.extend(grant.call.map(|own| spending::set_reservation(workspace_id, &call.id, own)));
    }
    statements.extend(leg.change());
    services.ports().database.write(statements).await?;
    Ok(Ok(Intent { leg, carrier_call_id, minutes: grant.minutes, before }))
}

/// How long both may talk, if there is money for it. The carrier ends a call that was placed by the time limit of its order.
fn minutes_wanted(leg: &Leg, lasted_ms: i64) -> i64 {
    match leg.placing {
        Placing::Incoming => MINUTES_MAX,
        _ => whole_minutes(leg.max_seconds * 1_000 - lasted_ms).clamp(1, MINUTES_MAX),
    }
}

/// As carriers count: those that have begun.
fn whole_minutes(ms: i64) -> i64 {
    ms / 60_000 + i64::from(ms % 60_000 > 0)
}

/// Stores what the carrier has answered. After a refusal, the call goes on with what it had reserved. Whether a carrier that
/// `tells` it has said before what came of the transfer: then that counts.
async fn store_answer(
    services: &Services,
    call: &NewCall,
    state: Placing,
    before: Option<Reservation>,
    tells: bool,
) -> Result<bool, Fault> {
    let workspace_id = &call.workspace_id;
    let mut leg = Leg::load(services, workspace_id, &call.id).await?;
    if tells && !leg.rings() {
        return Ok(true);
    }
    leg.transfer = Some(state);
    let mut batch = match state {
        Placing::Rejected => leg.is_not_handed_over(before),
        _ => Batch::default(),
    };
    batch.prepend(leg.change());
    batch.write(services).await?;
    Ok(false)
}

/// Where a carrier asks how to go on if nobody takes the call.
fn back_url(answer_url: &str, visit: u32) -> String {
    format!("{answer_url}&{BACK}={visit}")
}

/// The number in a genuine request of that URL.
pub(super) fn visit(query: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<u32> {
    let (_, visit) = query.iter().find(|(name, _)| name == BACK)?;
    visit.parse().ok().filter(|visit| (1..=TRANSFER_RETURNS_MAX).contains(visit))
}

/// Where a carrier fetches the document that dials: the carrier's signature covers the whole URL.
fn document_url(dial: &Dial<'_>) -> String {
    let digits = |number: &E164| number.as_str().trim_start_matches('+').to_owned();
    let from = dial.caller_id.map(|number| format!("&{FROM}={}", digits(number))).unwrap_or_default();
    format!("{}&{TO}={}{from}&{SECONDS}={}", dial.back_url, digits(dial.to), dial.max_seconds)
}

/// The document for a genuine request of that URL; `None` if the request is another one.
pub(super) fn document(
    services: &Services,
    carrier: &dyn Carrier,
    token: &CallToken,
    query: &[(Cow<'_, str>, Cow<'_, str>)],
) -> Result<Option<Reply>, Fault> {
    let value = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let number = |name: &str| E164::parse(&format!("+{}", value(name)?)).ok();
    let seconds = value(SECONDS).and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds| i64::from(*seconds) <= PHONE_TRANSFER_SECONDS_MAX);
    let (Some(to), Some(max_seconds), Some(visit)) = (number(TO), seconds, visit(query)) else {
        return Ok(None);
    };
    let urls = CallUrls::new(services, carrier.provider(), &token.workspace_id, &token.call_id)?;
    Ok(Some(carrier.transferring(&Dial {
        to: &to,
        caller_id: number(FROM).as_ref(),
        ring_seconds: PHONE_RING_SECONDS,
        max_seconds,
        status_url: &urls.status,
        back_url: &back_url(&urls.answer, visit),
    })))
}
