//! Hanging up at the carrier.
use super::leg::{self, Leg};
use super::{callbacks, client};
use crate::base::error::{Code, Error};
use crate::ports::HttpError;
use crate::services::Services;
use crate::storage::fault::Fault;

/// Requests the end of a call at its carrier. A call that has already ended is no error.
pub(crate) async fn hang_up(services: &Services, leg: &Leg) -> Result<(), Fault> {
    let provider = leg.provider.as_str();
    let carrier = callbacks::carrier(services, leg.provider)?;
    let command_id = leg::command_id(&leg.call_id, "hang_up");
    let Some(ending) = leg.ending(&command_id, services.ports().clock.now_ms()) else {
        return Ok(());
    };
    match client::send(services, carrier.hang_up(&ending)).await {
        Ok(reply) => {
            carrier.hung_up(&reply).map_err(|rejection| client::rejected(provider, &rejection).into())
        }
        Err(HttpError::Refused | HttpError::Timeout | HttpError::Failed(_) | HttpError::TooLarge(_)) => {
            let message = "The carrier did not answer. The call may still be connected. Try again: hanging up twice is safe.";
            let details = serde_json::json!({"provider": provider, "call_id": leg.call_id});
            Err(Error::new(Code::CarrierTimeout, message).with_details(details).into())
        }
    }
}
