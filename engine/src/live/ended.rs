//! How a live conversation ended.
use super::journal::SoFar;
use crate::conversation::{CallFault, EndedReason};
use crate::storage::calls::{Costs, EndedCall};

/// How a live conversation ended, for its call. `fault` is whose it is, where the reason does not say.
pub fn ended(
    so_far: SoFar,
    reason: EndedReason,
    fault: Option<CallFault>,
    answered_at: i64,
    ended_at: i64,
) -> EndedCall {
    let SoFar { offset_ms, spent, transcript } = so_far;
    EndedCall {
        answered_at: Some(answered_at),
        ended_at,
        duration_ms: offset_ms,
        outcome: reason.outcome(),
        ended_reason: Some(reason),
        fault: fault.unwrap_or_else(|| reason.fault()),
        transcript,
        costs: Costs::of(0, 0, spent.microusd, 0),
        usage: spent.usage(),
    }
}
