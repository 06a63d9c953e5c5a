//! How a telephone call begins: the call, its leg and its job are stored before anything else happens.
use serde_json::json;

use crate::base::time::Timestamp;
use crate::live::telephony::leg::Leg;
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, NewCall};
use crate::storage::events::{EventKind, Subscribers};
use crate::storage::fault::Fault;

/// Adds the rows and the event that begin a telephone call to `batch`; its money and its place are the caller's. The job ends a
/// call that is not connected by `due_at`.
pub(crate) fn begin_call(
    services: &Services,
    batch: &mut Batch,
    call: &NewCall,
    leg: &Leg,
    subscribers: &Subscribers,
    due_at: Timestamp,
) -> Result<(), Fault> {
    batch.extend([leg.insert(), leg.job(due_at)]);
    batch.extend(calls::write::insert(call));
    batch.emit(
        services,
        &call.workspace_id,
        subscribers,
        EventKind::CallStarted.of_call(&call.id),
        call.started_at.ms(),
        || Ok(json!({"call": Call::of(call, None, None)?})),
    )
}
