//! The carrier's side of a telephone call: the row that callbacks, the media socket, jobs and operations share.
//!
//! Each change increments the version, in a batch that fails when a concurrent change came first. So the state only
//! moves forward, and a call ends once. `row` has its statements, `job` the call's jobs.
mod job;
mod row;

pub use row::Room;

use serde::{Deserialize, Serialize};

use crate::base::ids::{AssistantId, CallId, JobId, WorkspaceId};
use crate::base::limits::{INTEGER_MAX, PHONE_TRANSFER_RING_MS};
use crate::base::time::Timestamp;
use crate::carriers::{Billed, CarrierName, End, Ending, Rates, Rejection, Side, Untaken};
use crate::conversation::{CallFault, EndedReason, Greeting};
use crate::storage::batch::Batch;
use crate::storage::calls::NewCall;
use crate::storage::fault::Fault;
use crate::storage::spending::{self, Reservation};

pub(crate) use job::DueIf;

/// The carrier's side of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Leg {
    /// The call of the leg.
    pub call_id: CallId,
    /// The workspace of the call.
    pub workspace_id: WorkspaceId,
    /// The assistant that handles the call.
    pub assistant_id: AssistantId,
    /// The carrier.
    pub provider: CarrierName,
    /// The carrier's id of the call; `None` until the carrier has assigned one.
    pub carrier_call_id: Option<String>,
    /// The base URL of the carrier's region that handles the call.
    pub region_url: Option<String>,
    /// The job that ends the call if no conversation does, and analyzes it.
    pub job_id: JobId,
    /// The maximum duration of the conversation.
    pub max_seconds: i64,
    /// The state of the request that placed the call.
    pub placing: Placing,
    /// When the media socket was opened, which uses up its token. Some carriers open it while the call rings.
    pub media_at: Option<Timestamp>,
    /// When audio started: from then on the conversation ends the call.
    pub media_started_at: Option<Timestamp>,
    /// When a hang-up was requested.
    pub hang_up_at: Option<Timestamp>,
    /// The state of the request that hands the call over to another number; never [`Placing::Incoming`].
    pub transfer: Option<Placing>,
    /// The line that was handed over, or may have been, until it has ended.
    pub line: Option<HandedOver>,
    /// What the carrier has reported so far.
    pub facts: CarrierFacts,
    /// Whether the call has ended.
    pub is_over: bool,
    /// Incremented with every change.
    pub version: i64,
    /// When the call began.
    pub created_at: Timestamp,
}

crate::words! {
    /// The state of a request to the carrier that may be made once: the one that places a call, or transfers it.
    plain Placing {
        /// An incoming call, without a request.
        Incoming = "incoming",
        /// The request may be in progress, or the process died before the response was stored.
        Asking = "asking",
        /// The carrier has accepted it.
        Accepted = "accepted",
        /// The carrier has rejected it.
        Rejected = "rejected",
        /// The carrier's response did not say.
        Unknown = "unknown",
    }
}

/// A line that is the carrier's. It counts among the calls of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedOver {
    /// When it is hung up, unless the carrier has reported its end.
    pub until: Timestamp,
    /// What is reserved for it under a monthly limit, in millionths of a US dollar.
    pub microusd: Option<i64>,
}

/// What a carrier has reported about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CarrierFacts {
    /// How the call ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// When it was reported, in ms since 1970; absent in reports from before this was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reported_ms: Option<i64>,
    /// The price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billed: Option<Billed>,
    /// From when on there are two lines, in ms since 1970: when the carrier was asked to hand the call over, or, if it says so,
    /// when somebody took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over_ms: Option<i64>,
    /// Until when a carrier that tells it says what came of the transfer, in ms since 1970; absent once it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rings_until_ms: Option<i64>,
    /// What the call had reserved before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reservation>,
    /// Why nobody took the call the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untaken: Option<Untaken>,
    /// How often the caller came back.
    #[serde(skip_serializing_if = "is_zero")]
    pub returns: u32,
    /// The carrier's ids of the lines that nobody took, in their order, where it reports their ends: it may repeat them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untaken_ids: Vec<String>,
    /// The price of the line to the other number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_billed: Option<Billed>,
    /// What was counted of a call that is deleted: its own row no longer says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Whether the call was answered, by a person or a machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// Whether a machine answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<bool>,
    /// What is known of the machine's greeting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greeting: Option<Greeting>,
    /// The carrier's code and message when it rejected the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<(String, String)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "Serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What the month's spending contains of a telephone call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The carrier's part of the costs.
    pub telephony_microusd: i64,
    /// The duration by our clock.
    pub duration_ms: i64,
}

impl CarrierFacts {
    /// Records that the carrier rejected the call.
    pub fn rejected(&mut self, rejection: &Rejection) {
        self.rejection = Some((rejection.code.clone(), rejection.message.clone()));
    }
}

impl Leg {
    /// The leg of a new call.
    pub(crate) fn new(
        call: &NewCall,
        job_id: JobId,
        region_url: Option<String>,
        placing: Placing,
        max_seconds: i64,
    ) -> Result<Self, Fault> {
        let provider = call.provider.ok_or_else(|| Fault::Bug(format!("{} has no carrier", call.id)))?;
        Ok(Self {
            call_id: call.id.clone(),
            workspace_id: call.workspace_id.clone(),
            assistant_id: call.assistant_id.clone(),
            provider,
            carrier_call_id: call.carrier_call_id.clone(),
            region_url,
            job_id,
            max_seconds,
            placing,
            media_at: None,
            media_started_at: None,
            hang_up_at: None,
            transfer: None,
            line: None,
            facts: CarrierFacts::default(),
            is_over: false,
            version: 1,
            created_at: call.started_at,
        })
    }

    /// Whether a report with this carrier id may be about the call. An incoming call has its id from the beginning, and one
    /// that is transferred has it by then, so another id belongs to something else, such as the socket's own leg, or the call
    /// to the other number.
    pub fn may_have_carrier_id(&self, carrier_call_id: &str) -> bool {
        (self.placing != Placing::Incoming && self.transfer.is_none())
            || self.carrier_call_id.as_deref() == Some(carrier_call_id)
    }

    /// Whether the call has been transferred, or may have been: then its line is not ours to end.
    pub fn may_be_transferred(&self) -> bool {
        self.transfer.is_some_and(|transfer| transfer != Placing::Rejected)
    }

    /// Whether the other side rings, or may: what comes of the transfer, the carrier has not said yet.
    pub fn rings(&self) -> bool {
        self.facts.rings_until_ms.is_some()
    }

    /// The carrier is about to be asked for a transfer whose end it tells; the call has reserved this.
    pub fn begin_to_ring(&mut self, now: Timestamp, reserved: Option<Reservation>) {
        self.facts.rings_until_ms = Some(now.ms() + PHONE_TRANSFER_RING_MS);
        self.facts.reserved = reserved;
        // What an earlier line is said to have cost is not what this one costs.
        (self.facts.untaken, self.facts.other_billed) = (None, None);
    }

    /// Somebody has taken the call.
    pub fn is_taken(&mut self, now: Timestamp) {
        self.transfer = Some(Placing::Accepted);
        self.facts.handed_over_ms = Some(now.ms());
        (self.facts.rings_until_ms, self.facts.reserved) = (None, None);
    }

    /// Nobody has: the line is the conversation's again, with what it had reserved.
    #[must_use]
    pub fn is_not_taken(&mut self) -> Batch {
        let reserved = self.facts.reserved;
        self.is_not_handed_over(reserved)
    }

    /// The line stays the conversation's, which had reserved this before it asked.
    #[must_use]
    pub fn is_not_handed_over(&mut self, reserved: Option<Reservation>) -> Batch {
        self.transfer = Some(Placing::Rejected);
        (self.facts.handed_over_ms, self.facts.rings_until_ms, self.facts.reserved) = (None, None, None);
        let mut batch = self.line_ends();
        if !batch.is_empty() {
            batch.extend(
                reserved.map(|own| spending::set_reservation(&self.workspace_id, &self.call_id, own)),
            );
        }
        batch
    }

    /// The call ends while the other side rings. Whoever was connected may have hung up; otherwise, others talk on the line, as
    /// far as anybody knows.
    #[must_use]
    pub fn rings_no_more(&mut self) -> Batch {
        if !self.rings() {
            return Batch::default();
        }
        if self.facts.end.is_some() {
            return self.is_not_taken();
        }
        (self.facts.rings_until_ms, self.facts.reserved) = (None, None);
        Batch::default()
    }

    /// The line that was handed over ends: what it had reserved is free, and runs may wait for that.
    #[must_use]
    pub fn line_ends(&mut self) -> Batch {
        match self.line.take() {
            Some(HandedOver { microusd: Some(_), .. }) => spending::wake_waiting(&self.workspace_id).into(),
            _ => Batch::default(),
        }
    }

    /// The price of the line of a call whose conversation lasted `ours_ms`, as far as it is known. Of a call that was handed
    /// over, it is the price of two lines from then on; the carriers report that of the second one nowhere, or apart.
    pub fn cost_microusd(&self, rates: &Rates, ours_ms: i64) -> Option<i64> {
        let CarrierFacts { billed, other_billed, handed_over_ms, end_reported_ms, .. } = self.facts;
        let cost = |billed, ours_ms| rates.cost_microusd(self.provider, billed, ours_ms);
        let both_ms = match (handed_over_ms, end_reported_ms) {
            // While the other side rings, there is one line.
            (Some(from), Some(until)) if !self.rings() => (until - from).max(0),
            _ => 0,
        };
        let other = match both_ms > 0 || other_billed.is_some() {
            true => cost(other_billed, both_ms),
            false => None,
        };
        let own = cost(billed, ours_ms + both_ms);
        own.or(other).map(|_| own.unwrap_or(0).saturating_add(other.unwrap_or(0)).min(INTEGER_MAX))
    }

    /// Whether the call no longer rings.
    pub fn is_answered(&self) -> bool {
        self.placing == Placing::Incoming || self.facts.answered || self.media_started_at.is_some()
    }

    /// Why a running conversation has to end: the carrier reported the end, or a hang-up was requested.
    pub fn stop_reason(&self) -> Option<(EndedReason, Option<CallFault>)> {
        match &self.facts.end {
            _ if self.hang_up_at.is_some() => Some((EndedReason::HungUpByRequest, None)),
            // Whatever the carrier says: who has talked had answered.
            Some(end) if self.media_started_at.is_some() && end.reason.is_without_an_answer() => {
                Some((EndedReason::UserHungUp, None))
            }
            Some(end) => Some((end.reason, Some(end.fault))),
            None => None,
        }
    }

    /// Whether the carrier says that the person ended the call.
    pub fn was_ended_by_person(&self) -> bool {
        self.facts.end.as_ref().is_some_and(|end| end.by == Some(self.person()))
    }

    /// The side of the person who talks with the assistant.
    pub const fn person(&self) -> Side {
        match self.placing {
            Placing::Incoming => Side::Caller,
            _ => Side::Callee,
        }
    }

    /// When the cause of [`stop_reason`](Self::stop_reason) came: the carrier's report, or else the request to hang up.
    pub fn stopped_at(&self) -> Option<Timestamp> {
        self.line_over_at().or(self.hang_up_at)
    }

    /// When the carrier reported the end of its line.
    pub fn line_over_at(&self) -> Option<Timestamp> {
        self.facts.end_reported_ms.map(Timestamp::from_ms)
    }

    /// The command that ends the call at the carrier; `None` when the carrier has not assigned an id.
    pub fn ending<'a>(&'a self, command_id: &'a str, now_ms: i64) -> Option<Ending<'a>> {
        Some(Ending {
            carrier_call_id: self.carrier_call_id.as_deref()?,
            // Canceling an answered call has no effect, at some carriers without an error. Carriers with separate
            // commands open the socket only once the call is answered.
            answered: self.is_answered() || self.media_at.is_some(),
            region_url: self.region_url.as_deref(),
            command_id,
            now_ms,
        })
    }
}

/// A UUID that is the same for the same call and purpose (RFC 9562, version 8: derived from a hash), for carriers that
/// ignore repeated commands.
pub fn command_id(call_id: &CallId, purpose: &str) -> String {
    let hash = crate::base::hash::sha256_hex(format!("{call_id}:{purpose}").as_bytes());
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    format!("{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

/// Legs for tests.
#[cfg(test)]
pub(crate) mod fixture {
    use super::*;
    use crate::base::ids::Id;

    /// A leg with default values.
    pub(crate) fn leg(placing: Placing) -> Leg {
        Leg {
            call_id: CallId::from_stored("call_1"),
            workspace_id: WorkspaceId::from_stored("ws_1"),
            assistant_id: AssistantId::from_stored("asst_1"),
            provider: CarrierName::Twilio,
            carrier_call_id: Some("CA1".to_owned()),
            region_url: None,
            job_id: JobId::from_stored("job_1"),
            max_seconds: 60,
            placing,
            media_at: None,
            media_started_at: None,
            hang_up_at: None,
            transfer: None,
            line: None,
            facts: CarrierFacts::default(),
            is_over: false,
            version: 1,
            created_at: Timestamp::from_ms(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fixture::leg;
    use super::*;
    use crate::base::ids::Id;
    use crate::carriers::Side;

    #[test]
    fn a_command_id_is_a_uuid_of_its_own() {
        let call = CallId::from_stored("call_1");
        let id = command_id(&call, "place");
        assert_eq!(id.len(), 36);
        assert_eq!(id, command_id(&call, "place"));
        assert_ne!(id, command_id(&call, "hang_up"));
        assert_eq!((&id[14..15], &id[19..20]), ("8", "a"));
    }

    #[test]
    fn a_call_that_may_be_answered_is_ended_and_not_canceled() {
        let answered = |leg: &Leg| leg.ending("k", 0).map(|ending| ending.answered);
        assert_eq!(answered(&leg(Placing::Accepted)), Some(false));
        assert_eq!(answered(&Leg { carrier_call_id: None, ..leg(Placing::Accepted) }), None);
        let facts = CarrierFacts { answered: true, ..CarrierFacts::default() };
        for answered_leg in [
            // The service answered it.
            leg(Placing::Incoming),
            Leg { facts, ..leg(Placing::Accepted) },
            // The carrier connects the call, and reports the answer late or not at all.
            Leg { media_at: Some(Timestamp::from_ms(1)), ..leg(Placing::Accepted) },
            Leg { media_started_at: Some(Timestamp::from_ms(1)), ..leg(Placing::Accepted) },
        ] {
            assert_eq!(answered(&answered_leg), Some(true), "{answered_leg:?}");
        }
    }

    #[test]
    fn only_an_outgoing_call_may_get_another_carrier_id() {
        assert!(leg(Placing::Incoming).may_have_carrier_id("CA1"));
        assert!(!leg(Placing::Incoming).may_have_carrier_id("CA2"));
        assert!(leg(Placing::Accepted).may_have_carrier_id("CA2"));
        let transferred = Leg { transfer: Some(Placing::Accepted), ..leg(Placing::Accepted) };
        assert!(transferred.may_have_carrier_id("CA1") && !transferred.may_have_carrier_id("CA2"));
    }

    #[test]
    fn a_call_that_was_handed_over_costs_two_lines_from_then_on() {
        let rates = Rates::read(Some(r#"{"twilio": 10}"#.to_owned())).unwrap();
        let told = |microusd| Some(Billed { duration_ms: None, cost_microusd: Some(microusd) });
        let cost =
            |facts: CarrierFacts| Leg { facts, ..leg(Placing::Accepted) }.cost_microusd(&rates, 30_000);
        let before = CarrierFacts { handed_over_ms: Some(1_000), ..CarrierFacts::default() };
        assert_eq!(cost(before.clone()), Some(10), "it has not ended");
        let over = CarrierFacts { end_reported_ms: Some(121_001), ..before };
        // 150 s of one, and 120 s of the other.
        let rings = CarrierFacts { rings_until_ms: Some(60_000), ..over.clone() };
        assert_eq!(cost(rings), Some(10), "nobody has answered");
        assert_eq!(cost(over.clone()), Some(30 + 30));
        let of_both = CarrierFacts { billed: told(500), ..over.clone() };
        assert_eq!(cost(of_both.clone()), Some(500 + 30));
        assert_eq!(cost(CarrierFacts { other_billed: told(7), ..of_both }), Some(507));
        let plain = CarrierFacts { end_reported_ms: Some(121_001), ..CarrierFacts::default() };
        assert_eq!(cost(plain), Some(10));
        let without_rate = Leg { facts: over, provider: CarrierName::Plivo, ..leg(Placing::Accepted) };
        assert_eq!(without_rate.cost_microusd(&rates, 30_000), None);
    }

    #[test]
    fn stored_facts_are_read_unchanged() {
        let facts = CarrierFacts {
            end_reported_ms: Some(1_000),
            end: Some(End::of(EndedReason::Busy, "busy 486").lasting(Some(0)).ended_by(Some(Side::Callee))),
            billed: Some(Billed { duration_ms: Some(0), cost_microusd: Some(13_000) }),
            handed_over_ms: Some(900),
            rings_until_ms: Some(950),
            reserved: Some(Reservation { microusd: 5, models_microusd: 4 }),
            untaken: Some(Untaken::NoAnswer),
            returns: 2,
            untaken_ids: vec!["v3:b".to_owned()],
            other_billed: Some(Billed { duration_ms: Some(5), cost_microusd: None }),
            counted: Some(Counted { telephony_microusd: 7, duration_ms: 8 }),
            answered: true,
            machine: Some(false),
            greeting: Some(Greeting::Ended),
            rejection: Some(("21211".to_owned(), "no".to_owned())),
        };
        assert_eq!(serde_json::from_value::<CarrierFacts>(json!(facts)).unwrap(), facts);
        assert_eq!(json!(CarrierFacts::default()), json!({}));
        // As earlier versions stored it, without a side.
        let before =
            json!({"outcome": "busy", "reason": "busy", "fault": "none", "cause": "", "duration_ms": null});
        assert_eq!(serde_json::from_value::<End>(before).unwrap(), End::of(EndedReason::Busy, ""));
    }
}
