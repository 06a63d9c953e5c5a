//! What a carrier reports of a line after its call has ended: the price, and the end of a line that was handed over.
use super::leg::{Counted, Leg};
use crate::base::time::Timestamp;
use crate::ports::statement::Row;
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls;
use crate::storage::fault::Fault;
use crate::storage::spending;

/// Adds the changed leg to `batch`, and what follows from it for the call and the month. The line ends if its end or its price
/// was reported. Without a `call`, it was deleted: its leg says what was counted.
pub(crate) fn store(
    services: &Services,
    before: &Leg,
    mut after: Leg,
    call: Option<Row<'_>>,
    now: Timestamp,
    batch: &mut Batch,
) -> Result<(), Fault> {
    let facts = &after.facts;
    let (is_billed, is_over) = (facts.billed != before.facts.billed, facts.end != before.facts.end);
    let is_priced = is_billed
        || facts.other_billed != before.facts.other_billed
        || (is_over && facts.handed_over_ms.is_some());
    if is_billed || is_over {
        batch.append(after.line_ends());
    }
    if before.is_over && is_priced {
        let rates = services.config().carriers.rates();
        if let Some(counted) = counted(before, call)?
            && let Some(microusd) = after.cost_microusd(rates, counted.duration_ms)
        {
            recount(&mut after, counted, microusd, call, now, batch)?;
        }
    }
    batch.extend(after.change());
    Ok(())
}

/// Ends a line whose end the carrier has not reported after its time, and which is hung up now: what was reserved for it
/// counts until the carrier reports something else.
pub(crate) fn store_unreported(
    leg: &Leg,
    call: Option<Row<'_>>,
    now: Timestamp,
    batch: &mut Batch,
) -> Result<(), Fault> {
    let mut after = leg.clone();
    batch.append(after.line_ends());
    if let Some(reserved) = leg.line.and_then(|line| line.microusd)
        && let Some(counted) = counted(leg, call)?
    {
        recount(&mut after, counted, counted.telephony_microusd + reserved, call, now, batch)?;
    }
    batch.extend(after.change());
    Ok(())
}

/// What the month contains of the call.
fn counted(leg: &Leg, call: Option<Row<'_>>) -> Result<Option<Counted>, Fault> {
    Ok(match call {
        Some(call) => Some(Counted {
            telephony_microusd: call.integer("telephony_microusd")?,
            duration_ms: call.optional_integer("duration_ms")?.unwrap_or(0),
        }),
        None => leg.facts.counted,
    })
}

/// The call costs this instead of what was counted.
fn recount(
    leg: &mut Leg,
    counted: Counted,
    telephony_microusd: i64,
    call: Option<Row<'_>>,
    now: Timestamp,
    batch: &mut Batch,
) -> Result<(), Fault> {
    let more = telephony_microusd - counted.telephony_microusd;
    match call {
        Some(call) => {
            let total = call.integer("cost_microusd")? + more;
            batch.extend(calls::write::repriced(&leg.workspace_id, &leg.call_id, telephony_microusd, total));
        }
        None => leg.facts.counted = Some(Counted { telephony_microusd, ..counted }),
    }
    batch.extend(spending::add(&leg.workspace_id, now.ms(), more));
    Ok(())
}
