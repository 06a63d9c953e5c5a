//! Computes how a call ended from its conversation and the carrier's reports: the reason, the cause and the costs.
use crate::base::limits::PHONE_START_MS;
use crate::base::time::Timestamp;
use crate::carriers::{End, Rates};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{CallFault, EndedReason, Outcome};
use crate::live::admission::Overload;
use crate::live::call_journal::CallProgress;
use crate::live::telephony::leg::{Leg, Placing};
use crate::storage::calls::{Costs, EndedCall, Usage};

/// The end of a call with a conversation. `fault` is set when the reason does not determine it.
pub(crate) fn after_conversation(
    progress: CallProgress,
    reason: EndedReason,
    fault: Option<CallFault>,
    answered_at: Timestamp,
    ended_at: Timestamp,
) -> EndedCall {
    let CallProgress { offset_ms, spent, transcript, turns } = progress;
    EndedCall {
        duration_ms: offset_ms,
        transcript,
        turns,
        costs: Costs::of(0, spent.stt_microusd, spent.models_microusd(), spent.tts_microusd),
        usage: spent.usage(),
        ..without_conversation(
            reason.outcome(),
            reason,
            fault.unwrap_or_else(|| reason.fault()),
            Some(answered_at),
            ended_at,
        )
    }
}

/// The end of a telephone call without audio. `answered_at` is set if it was answered.
pub(crate) fn never_connected(
    leg: &Leg,
    end: &End,
    answered_at: Option<Timestamp>,
    ended_at: Timestamp,
) -> EndedCall {
    let (outcome, reason, fault) = if end.outcome != Outcome::Completed {
        (end.outcome, end.reason, end.fault)
    } else if is_abandoned_by_person(leg, end, answered_at, ended_at) {
        // The person hung up before the first audio: there was no conversation, and no fault.
        (Outcome::Canceled, end.reason, end.fault)
    } else {
        // Answered, but without audio: the two sides were never connected.
        let reason = EndedReason::MediaLost;
        (reason.outcome(), reason, reason.fault())
    };
    without_conversation(outcome, reason, fault, answered_at, ended_at)
}

/// Why an incoming call is declined.
pub(crate) struct Declined {
    /// The reason.
    pub(crate) reason: EndedReason,
    /// What the transcript says of it.
    pub(crate) why: Option<String>,
    /// Who could have prevented it.
    pub(crate) fault: CallFault,
    /// If the server has too much to do.
    pub(crate) overload: Option<Overload>,
}

impl Declined {
    /// Because of a setting or limit of the operator.
    pub(crate) fn new(reason: EndedReason, why: Option<String>) -> Self {
        Self { reason, why, fault: CallFault::Operator, overload: None }
    }

    /// Because this process has too much to do.
    pub(crate) fn by_load(overload: Overload) -> Self {
        let why = Some(overload.words().to_owned());
        Self { reason: EndedReason::Busy, why, fault: CallFault::Platform, overload: Some(overload) }
    }
}

/// The end of a declined incoming call: the caller hears a busy signal. A call that cannot be talked on failed, and its
/// transcript says why.
pub(crate) fn declined(Declined { reason, why, fault, .. }: Declined, at: Timestamp) -> EndedCall {
    let outcome = if why.is_some() { reason.outcome() } else { Outcome::Busy };
    let note = why.map(|text| TranscriptRow::new(0, TranscriptRole::System, text, 0, 0));
    let transcript = note.into_iter().collect();
    EndedCall { transcript, ..without_conversation(outcome, reason, fault, None, at) }
}

fn without_conversation(
    outcome: Outcome,
    reason: EndedReason,
    fault: CallFault,
    answered_at: Option<Timestamp>,
    ended_at: Timestamp,
) -> EndedCall {
    EndedCall {
        answered_at,
        ended_at,
        duration_ms: 0,
        outcome,
        ended_reason: Some(reason),
        fault,
        transcript: Vec::new(),
        turns: Vec::new(),
        costs: Costs::default(),
        usage: Usage::default(),
    }
}

/// Whether the carrier reports that the person hung up before audio could be expected. After a longer wait, the silence
/// was the reason.
fn is_abandoned_by_person(leg: &Leg, end: &End, answered_at: Option<Timestamp>, ended_at: Timestamp) -> bool {
    let ours = (leg.placing == Placing::Incoming).then_some(leg.created_at);
    let waited_ms = answered_at.or(ours).map_or(0, |at| ended_at - at);
    end.reason == EndedReason::UserHungUp
        && end.by == Some(leg.person())
        && end.duration_ms.unwrap_or(waited_ms) <= PHONE_START_MS
}

/// Corrects the reason by the carrier's reports and by a requested hang-up.
pub(super) fn apply_carrier_facts(ended: &mut EndedCall, leg: &Leg) {
    let is_voicemail = leg.facts.machine == Some(true);
    if is_voicemail {
        ended.outcome = Outcome::Voicemail;
    }
    // Whatever ended the conversation at the same moment.
    if leg.transfer == Some(Placing::Accepted) && !leg.rings() {
        ended.ended_reason = Some(EndedReason::Transferred);
        ended.fault = EndedReason::Transferred.fault();
        if !is_voicemail {
            ended.outcome = EndedReason::Transferred.outcome();
        }
        return;
    }
    // Canceled before any audio: no media was lost, whatever reason the carrier reports.
    if matches!(ended.ended_reason, Some(EndedReason::MediaLost | EndedReason::UserHungUp))
        && leg.hang_up_at.is_some()
        && leg.media_started_at.is_none()
    {
        let reason = EndedReason::Canceled;
        (ended.ended_reason, ended.outcome, ended.fault) = (Some(reason), reason.outcome(), reason.fault());
    }
    // The socket was closed: the carrier's report or the hang-up request has the reason.
    if ended.ended_reason == Some(EndedReason::UserHungUp)
        && let Some((reason, fault)) = leg.stop_reason()
        && reason != EndedReason::UserHungUp
    {
        ended.ended_reason = Some(reason);
        ended.fault = fault.unwrap_or_else(|| reason.fault());
        if !is_voicemail {
            ended.outcome = reason.outcome();
        }
    }
}

/// The call was over when the carrier reported the end of its line, if that was before the conversation noticed.
pub(super) fn apply_end_of_line(ended: &mut EndedCall, leg: &Leg) {
    let Some(over_at) = leg.media_started_at.and(leg.line_over_at()) else { return };
    let rows = ended.transcript.iter();
    let last_row_ms = rows.map(|row| row.end_ms.max(row.start_ms)).max().unwrap_or(0);
    // What is in the transcript has been.
    let late_ms = (ended.ended_at - over_at).min(ended.duration_ms - last_row_ms);
    if late_ms > 0 {
        ended.duration_ms -= late_ms;
        ended.ended_at = ended.ended_at + -late_ms;
    }
}

/// Adds the carrier's price, as far as it is known.
pub(super) fn apply_carrier_price(ended: &mut EndedCall, leg: &Leg, rates: &Rates) {
    if let Some(microusd) = leg.cost_microusd(rates, ended.duration_ms) {
        let Costs { stt_microusd, llm_microusd, tts_microusd, .. } = ended.costs;
        ended.costs = Costs::of(microusd, stt_microusd, llm_microusd, tts_microusd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carriers::Side;
    use crate::live::telephony::leg::fixture::leg;

    #[test]
    fn the_carrier_reports_which_side_hung_up_before_audio() {
        let at = Timestamp::from_ms;
        let abandoned = |leg: &Leg, by, reason| {
            let end = End::of(reason, "").ended_by(by);
            is_abandoned_by_person(leg, &end, Some(at(0)), at(2_000))
        };
        let (incoming, outgoing) = (leg(Placing::Incoming), leg(Placing::Accepted));
        let hung_up = EndedReason::UserHungUp;
        assert!(abandoned(&incoming, Some(Side::Caller), hung_up));
        assert!(abandoned(&outgoing, Some(Side::Callee), hung_up));
        // The service hung up, the carrier reports no side, or the reason is not a hang-up.
        assert!(!abandoned(&incoming, Some(Side::Callee), hung_up));
        assert!(!abandoned(&outgoing, Some(Side::Caller), hung_up));
        assert!(!abandoned(&outgoing, None, hung_up));
        assert!(!abandoned(&outgoing, Some(Side::Callee), EndedReason::DurationLimit));
        // A longer wait means that the person heard nothing. The carrier's own duration takes precedence.
        let end = End::of(hung_up, "").ended_by(Some(Side::Caller));
        assert!(is_abandoned_by_person(&incoming, &end, None, at(10_000)));
        assert!(!is_abandoned_by_person(&incoming, &end, None, at(10_001)));
        assert!(is_abandoned_by_person(&incoming, &end.clone().lasting(Some(1_000)), None, at(60_000)));
        assert!(!is_abandoned_by_person(&incoming, &end.lasting(Some(11_000)), None, at(1_000)));
    }
}
