//! Hands a telephone call over to another number. The intent is stored first, the carrier is asked once, and what it answers
//! is stored; nothing repeats the request. From then on nobody here hangs up the line.
use std::borrow::Cow;

use super::leg::{self, Leg, Placing};
use super::{CallUrls, callbacks, client};
use crate::base::phone::E164;
use crate::carriers::{Carrier, Reply, Transfer};
use crate::live::lease::JobLease;
use crate::ports::HttpError;
use crate::services::Services;
use crate::storage::calls::{Direction, NewCall};
use crate::storage::fault::{Fault, retry_stale};

/// What came of the request.
pub(crate) enum Transferred {
    /// The carrier transfers the call.
    Accepted,
    /// It does not, for this reason: the call goes on as before.
    Rejected(String),
    /// It may or may not.
    Unknown,
}

/// The parameters of the URL that [`document`] answers.
const TO: &str = "to";
const FROM: &str = "from";

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
    let Some((leg, carrier_call_id)) = retry_stale(|| store_intent(services, call, lease)).await? else {
        return Ok(Transferred::Rejected("the call is over".to_owned()));
    };
    let is_inbound = call.direction == Direction::Inbound;
    let ours = if is_inbound { &call.to } else { &call.from };
    let our_number = ours.as_deref().and_then(|number| E164::parse(number).ok());
    let mut request = Transfer {
        carrier_call_id: &carrier_call_id,
        region_url: leg.region_url.as_deref(),
        to,
        our_number: our_number.as_ref(),
        shows_caller: is_inbound && call.from.is_some(),
        call_id: &leg.call_id,
        document_url: "",
        status_url: &urls.status,
        command_id: &leg::command_id(&leg.call_id, tool_call_id),
        now_ms: services.ports().clock.now_ms(),
    };
    let document_url = document_url(&urls.answer, &request);
    request.document_url = &document_url;
    let transferred = match client::send(services, carrier.transfer(&request)).await {
        Ok(reply) => match reply.status {
            200..=299 => Transferred::Accepted,
            // A request that timed out on the carrier's side may have been executed.
            400..=499 if reply.status != 408 => Transferred::Rejected(carrier.rejection(&reply).message),
            _ => Transferred::Unknown,
        },
        Err(HttpError::Refused | HttpError::Timeout | HttpError::Failed(_) | HttpError::TooLarge(_)) => {
            Transferred::Unknown
        }
    };
    let state = match transferred {
        Transferred::Accepted => Placing::Accepted,
        Transferred::Rejected(_) => Placing::Rejected,
        Transferred::Unknown => Placing::Unknown,
    };
    retry_stale(|| store_answer(services, call, state)).await?;
    Ok(transferred)
}

/// Stores that the carrier is about to be asked, under the conversation's lease. Returns the leg, and the carrier's id of the
/// call. `None` if it must not be asked: the call is ending, or was transferred.
async fn store_intent(
    services: &Services,
    call: &NewCall,
    lease: &JobLease,
) -> Result<Option<(Leg, String)>, Fault> {
    let leg = Leg::load(services, &call.workspace_id, &call.id).await?;
    if leg.stop_reason().is_some() || leg.may_be_transferred() {
        return Ok(None);
    }
    let Some(carrier_call_id) = leg.carrier_call_id.clone() else { return Ok(None) };
    let leg = Leg { transfer: Some(Placing::Asking), ..leg };
    let mut statements = lease.extend(services.ports().clock.now_ms()).to_vec();
    statements.extend(leg.change());
    services.ports().database.write(statements).await?;
    Ok(Some((leg, carrier_call_id)))
}

async fn store_answer(services: &Services, call: &NewCall, state: Placing) -> Result<(), Fault> {
    let leg = Leg::load(services, &call.workspace_id, &call.id).await?;
    services.ports().database.write(Leg { transfer: Some(state), ..leg }.change().to_vec()).await?;
    Ok(())
}

/// Where a carrier fetches the document that dials: the carrier's signature covers the whole URL.
fn document_url(answer_url: &str, transfer: &Transfer<'_>) -> String {
    let digits = |number: &E164| number.as_str().trim_start_matches('+').to_owned();
    let from = transfer.caller_id().map(|number| format!("&{FROM}={}", digits(number))).unwrap_or_default();
    format!("{answer_url}&{TO}={}{from}", digits(transfer.to))
}

/// The document for a genuine request of that URL; `None` if the request is another one.
pub(super) fn document(carrier: &dyn Carrier, query: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<Reply> {
    let number = |name: &str| {
        let (_, digits) = query.iter().find(|(known, _)| known == name)?;
        E164::parse(&format!("+{digits}")).ok()
    };
    Some(carrier.transferring(&number(TO)?, number(FROM).as_ref()))
}
