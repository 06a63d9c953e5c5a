//! The carrier's side of a telephone call: the row that callbacks, the media socket, jobs and operations agree on.
//!
//! Every change counts its version, and goes into a batch that is undone when somebody else was faster. So the state
//! only moves forward, and of all who could end a call one does.
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::ids::prefix;
use crate::base::limits::PHONE_START_MS;
use crate::carriers::{Billed, CarrierName, End, Ending, Rates, Rejection, Side};
use crate::conversation::{CallFault, EndedReason, Outcome};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{Costs, EndedCall, NewCall};
use crate::storage::fault::Fault;
use crate::storage::jobs::{self, JobKind};

/// The row.
#[derive(Debug, Clone, PartialEq)]
pub struct Leg {
    /// The call it belongs to.
    pub call_id: String,
    /// Whose it is.
    pub workspace_id: String,
    /// Who speaks.
    pub assistant_id: String,
    /// The carrier.
    pub provider: CarrierName,
    /// The carrier's own id of the call; `None` until it has named one.
    pub carrier_call_id: Option<String>,
    /// Where the carrier wants requests about it.
    pub region_url: Option<String>,
    /// The job that sees it through.
    pub job_id: String,
    /// How long the conversation may last.
    pub max_seconds: i64,
    /// What is known of the request that placed it.
    pub placing: Placing,
    /// When its media socket was opened: its token is used. Some carriers open it while it still rings.
    pub media_at: Option<i64>,
    /// When audio began to come over it: from then on the conversation says how the call ends.
    pub media_started_at: Option<i64>,
    /// When somebody asked us to hang up.
    pub hang_up_at: Option<i64>,
    /// What the carrier has told.
    pub said: CarrierFacts,
    /// Whether the call has ended.
    pub is_over: bool,
    /// Counts changes.
    pub version: i64,
    /// When the call began.
    pub created_at: i64,
}

crate::words! {
    /// What is known of the request that places a call.
    plain Placing {
        /// There is none: the call came in.
        Incoming = "incoming",
        /// It is meant, and may be under way; or whoever made it died before the answer was on disk.
        Asking = "asking",
        /// The carrier has taken the call.
        Accepted = "accepted",
        /// It has not.
        Rejected = "rejected",
        /// Nobody can tell.
        Unknown = "unknown",
    }
}

/// What a carrier has told of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CarrierFacts {
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billed: Option<Billed>,
    /// Whether anybody, or anything, has answered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// Whether a machine answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<bool>,
    /// Its code and words when it refused the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<(String, String)>,
}

impl CarrierFacts {
    /// Takes down a carrier's no.
    pub fn rejected(&mut self, rejection: &Rejection) {
        self.rejection = Some((rejection.code.clone(), rejection.message.clone()));
    }
}

const COLUMNS: &str =
    "call_id, workspace_id, assistant_id, provider, carrier_call_id, region_url, job_id, max_seconds,
 placed, media_at, talked_at, hang_up_at, said, is_over, version, created_at";

impl Leg {
    /// Undoes the batch that puts the row there when the workspace has as many calls under way as it allows itself:
    /// those that began at the same moment had all seen room.
    pub fn room(&self) -> Statement {
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 FROM workspaces AS w WHERE w.id = ?1 AND w.calls_at_once <=
             (SELECT COUNT(*) FROM phone_calls AS p WHERE p.workspace_id = ?1 AND p.is_over = 0)",
            &self.workspace_id
        )
    }

    /// Puts the row there.
    pub fn insert(&self) -> Statement {
        sql!(
            format!(
                "INSERT INTO phone_calls ({COLUMNS})
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
            ),
            &self.call_id,
            &self.workspace_id,
            &self.assistant_id,
            self.provider.as_str(),
            self.carrier_call_id.clone(),
            self.region_url.clone(),
            &self.job_id,
            self.max_seconds,
            self.placing.as_str(),
            self.media_at,
            self.media_started_at,
            self.hang_up_at,
            json!(self.said).to_string(),
            i64::from(self.is_over),
            self.version,
            self.created_at
        )
    }

    /// Reads the row of a call.
    pub fn select(workspace_id: &str, call_id: &str) -> Statement {
        sql!(
            format!("SELECT {COLUMNS} FROM phone_calls WHERE workspace_id = ?1 AND call_id = ?2"),
            workspace_id,
            call_id
        )
    }

    /// Reads the row of a call of the caller's workspace, for operations.
    pub fn select_for_caller(call_id: &str) -> Statement {
        sql!(format!("SELECT {COLUMNS} FROM phone_calls WHERE workspace_id = :ws AND call_id = ?1"), call_id)
    }

    /// Reads the row of a call by the carrier's id. Those are the operator's, of whichever workspace.
    pub fn select_by_carrier(provider: CarrierName, carrier_call_id: &str) -> Statement {
        sql!(
            format!("SELECT {COLUMNS} FROM phone_calls WHERE provider = ?1 AND carrier_call_id = ?2"),
            provider.as_str(),
            carrier_call_id
        )
    }

    /// What a select found.
    pub fn read(row: Row<'_>) -> Result<Self, DatabaseError> {
        Ok(Self {
            call_id: row.text("call_id")?,
            workspace_id: row.text("workspace_id")?,
            assistant_id: row.text("assistant_id")?,
            provider: row.word("provider")?,
            carrier_call_id: row.optional_text("carrier_call_id")?,
            region_url: row.optional_text("region_url")?,
            job_id: row.text("job_id")?,
            max_seconds: row.integer("max_seconds")?,
            placing: row.word("placed")?,
            media_at: row.optional_integer("media_at")?,
            media_started_at: row.optional_integer("talked_at")?,
            hang_up_at: row.optional_integer("hang_up_at")?,
            said: row.json("said")?,
            is_over: row.flag("is_over")?,
            version: row.integer("version")?,
            created_at: row.integer("created_at")?,
        })
    }

    /// The first row of what a select found.
    pub fn first(rows: Option<&Rows>) -> Result<Option<Self>, DatabaseError> {
        rows.and_then(Rows::first).map(Self::read).transpose()
    }

    /// Reads the row of a call that has one.
    pub async fn load(services: &Services, workspace_id: &str, call_id: &str) -> Result<Self, Fault> {
        let rows = services.ports().database.read(vec![Self::select(workspace_id, call_id)]).await?;
        Self::first(rows.first())?.ok_or_else(|| Fault::Bug(format!("{call_id} has no leg")))
    }

    /// Writes what was changed; undoes the batch when somebody else has changed the row since it was read.
    pub fn change(&self) -> [Statement; 2] {
        let guard = sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM phone_calls WHERE workspace_id = ?1 AND call_id = ?2 AND version = ?3)",
            &self.workspace_id,
            &self.call_id,
            self.version
        );
        let update = sql!(
            "UPDATE phone_calls SET carrier_call_id = ?3, placed = ?4, media_at = ?5, talked_at = ?6, hang_up_at = ?7,
             said = ?8, is_over = ?9, version = version + 1 WHERE workspace_id = ?1 AND call_id = ?2",
            &self.workspace_id,
            &self.call_id,
            self.carrier_call_id.clone(),
            self.placing.as_str(),
            self.media_at,
            self.media_started_at,
            self.hang_up_at,
            json!(self.said).to_string(),
            i64::from(self.is_over)
        );
        [guard, update]
    }

    /// Sets the moment at which its job gives up waiting for the call to be connected.
    pub fn wait_until(&self, at_ms: i64) -> Statement {
        sql!(
            "UPDATE jobs SET due_at = ?3 WHERE workspace_id = ?1 AND id = ?2 AND lease IS NULL",
            &self.workspace_id,
            &self.job_id,
            at_ms
        )
    }

    /// The same for a call that the carrier has taken, unless it rings already, or is over: then something else counts.
    pub fn queue_until(&self, at_ms: i64) -> Statement {
        sql!(
            "UPDATE jobs SET due_at = ?3 WHERE workspace_id = ?1 AND id = ?2 AND lease IS NULL
             AND EXISTS (SELECT 1 FROM calls AS c WHERE c.workspace_id = ?1 AND c.id = ?4 AND c.status = 'queued')",
            &self.workspace_id,
            &self.job_id,
            at_ms,
            &self.call_id
        )
    }

    /// Brings that moment forward to this one, if it is later.
    pub fn wait_no_longer_than(&self, at_ms: i64) -> Statement {
        sql!(
            "UPDATE jobs SET due_at = ?3 WHERE workspace_id = ?1 AND id = ?2 AND lease IS NULL AND due_at > ?3",
            &self.workspace_id,
            &self.job_id,
            at_ms
        )
    }

    /// Has its job look into the call at once.
    pub fn wake_job(&self, now_ms: i64, batch: &mut Batch) {
        batch.push(sql!(
            "UPDATE jobs SET due_at = ?3 WHERE workspace_id = ?1 AND id = ?2 AND lease IS NULL",
            &self.workspace_id,
            &self.job_id,
            jobs::DUE_AT_ONCE
        ));
        batch.wake(JobKind::LiveCall, &self.job_id, now_ms);
    }

    /// Its job, put there unclaimed: what is done when nobody has connected the call by then.
    pub fn job(&self, due_at: i64) -> Statement {
        jobs::insert(
            &self.workspace_id,
            &self.job_id,
            JobKind::LiveCall,
            &self.call_id,
            due_at,
            self.created_at,
        )
    }

    /// Whether the carrier may mean this call by that name. A call that came in has had its own from the beginning:
    /// another one is that of something else, such as the socket's own leg.
    pub fn may_be(&self, carrier_call_id: &str) -> bool {
        self.placing != Placing::Incoming || self.carrier_call_id.as_deref() == Some(carrier_call_id)
    }

    /// Whether it no longer rings.
    pub fn is_answered(&self) -> bool {
        self.placing == Placing::Incoming || self.said.answered || self.media_started_at.is_some()
    }

    /// Whether the carrier says that the person has ended it before audio could be expected: whoever waits longer has
    /// heard nothing, and that is why.
    pub fn is_left_by_the_person(&self, end: &End, answered_at: Option<i64>, now_ms: i64) -> bool {
        let (person, ours) = match self.placing {
            Placing::Incoming => (Side::Caller, Some(self.created_at)),
            _ => (Side::Callee, None),
        };
        let waited_ms = answered_at.or(ours).map_or(0, |at| now_ms - at);
        end.reason == EndedReason::UserHungUp
            && end.by == Some(person)
            && end.duration_ms.unwrap_or(waited_ms) <= PHONE_START_MS
    }

    /// Why a conversation that is under way has to end: the carrier says it is over, or somebody asked for it.
    pub fn stopped(&self) -> Option<(EndedReason, Option<CallFault>)> {
        match &self.said.end {
            _ if self.hang_up_at.is_some() => Some((EndedReason::HungUpByRequest, None)),
            Some(end) => Some((end.reason, Some(end.fault))),
            None => None,
        }
    }

    /// The call as it is in the log: some carriers name it anew once it is under way.
    pub fn named(call: &NewCall, leg: Option<&Self>) -> NewCall {
        let carrier_call_id = leg.map_or(&call.carrier_call_id, |leg| &leg.carrier_call_id).clone();
        NewCall { carrier_call_id, ..call.clone() }
    }

    /// Adds to the end of a conversation what the carrier and the operator know of it.
    pub fn settle(&self, ended: &mut EndedCall, rates: &Rates) {
        if self.said.machine == Some(true) {
            ended.outcome = Outcome::Voicemail;
        }
        // Called off before there was any audio: nobody lost it, however the carrier calls that end.
        if matches!(ended.ended_reason, Some(EndedReason::MediaLost | EndedReason::UserHungUp))
            && self.hang_up_at.is_some()
            && self.media_started_at.is_none()
        {
            let reason = EndedReason::Canceled;
            (ended.ended_reason, ended.outcome, ended.fault) =
                (Some(reason), reason.outcome(), reason.fault());
        }
        // The socket was closed: whoever closed it knows why.
        if ended.ended_reason == Some(EndedReason::UserHungUp)
            && let Some((reason, fault)) = self.stopped()
            && reason != EndedReason::UserHungUp
        {
            ended.ended_reason = Some(reason);
            ended.fault = fault.unwrap_or_else(|| reason.fault());
            if self.said.machine != Some(true) {
                ended.outcome = reason.outcome();
            }
        }
        if let Some(microusd) = rates.cost_microusd(self.provider, self.said.billed, ended.duration_ms) {
            let Costs { stt_microusd, llm_microusd, tts_microusd, .. } = ended.costs;
            ended.costs = Costs::of(microusd, stt_microusd, llm_microusd, tts_microusd);
        }
    }

    /// A job that hangs up at the carrier, unless that has said itself that the call is over.
    pub fn hang_up_later(&self, services: &Services, now_ms: i64, batch: &mut Batch) {
        self.end_at_carrier(services, now_ms, jobs::DUE_AT_ONCE, batch);
    }

    /// The same, due at `due_at`.
    pub fn end_at_carrier(&self, services: &Services, now_ms: i64, due_at: i64, batch: &mut Batch) {
        if self.said.end.is_some() || self.carrier_call_id.is_none() {
            return;
        }
        let job_id = services.id(prefix::JOB);
        let kind = JobKind::HangUp;
        batch.push(jobs::insert(&self.workspace_id, &job_id, kind, &self.call_id, due_at, now_ms));
        batch.wake(kind, &job_id, due_at.max(now_ms));
    }

    /// What the carrier is told to end the call; `None` when it has never named it.
    pub fn ending<'a>(&'a self, command_id: &'a str, now_ms: i64) -> Option<Ending<'a>> {
        Some(Ending {
            carrier_call_id: self.carrier_call_id.as_deref()?,
            // Calling off what is up already does nothing, at some carriers without a word. A carrier that tells the two
            // apart opens the socket only once the call is answered.
            answered: self.is_answered() || self.media_at.is_some(),
            region_url: self.region_url.as_deref(),
            command_id,
            now_ms,
        })
    }
}

/// A UUID that stays the same for the same call and purpose (RFC 9562, version 8: made of a hash), for carriers that
/// drop what they have seen.
pub fn command_id(call_id: &str, purpose: &str) -> String {
    let hash = crate::base::hash::sha256_hex(format!("{call_id}:{purpose}").as_bytes());
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    format!("{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_id_is_a_uuid_of_its_own() {
        let id = command_id("call_1", "place");
        assert_eq!(id.len(), 36);
        assert_eq!(id, command_id("call_1", "place"));
        assert_ne!(id, command_id("call_1", "hang_up"));
        assert_eq!((&id[14..15], &id[19..20]), ("8", "a"));
    }

    fn leg(placing: Placing) -> Leg {
        Leg {
            call_id: "call_1".to_owned(),
            workspace_id: "ws_1".to_owned(),
            assistant_id: "asst_1".to_owned(),
            provider: CarrierName::Twilio,
            carrier_call_id: Some("CA1".to_owned()),
            region_url: None,
            job_id: "job_1".to_owned(),
            max_seconds: 60,
            placing,
            media_at: None,
            media_started_at: None,
            hang_up_at: None,
            said: CarrierFacts::default(),
            is_over: false,
            version: 1,
            created_at: 0,
        }
    }

    #[test]
    fn a_call_that_may_be_up_is_ended_and_not_called_off() {
        let answered = |leg: &Leg| leg.ending("k", 0).map(|ending| ending.answered);
        assert_eq!(answered(&leg(Placing::Accepted)), Some(false));
        assert_eq!(answered(&Leg { carrier_call_id: None, ..leg(Placing::Accepted) }), None);
        let said = CarrierFacts { answered: true, ..CarrierFacts::default() };
        for up in [
            // We answered it ourselves.
            leg(Placing::Incoming),
            Leg { said, ..leg(Placing::Accepted) },
            // The carrier connects it, and has not told that it was answered, or tells so late.
            Leg { media_at: Some(1), ..leg(Placing::Accepted) },
            Leg { media_started_at: Some(1), ..leg(Placing::Accepted) },
        ] {
            assert_eq!(answered(&up), Some(true), "{up:?}");
        }
    }

    #[test]
    fn only_a_call_that_was_placed_is_named_anew() {
        assert!(leg(Placing::Incoming).may_be("CA1"));
        assert!(!leg(Placing::Incoming).may_be("CA2"));
        assert!(leg(Placing::Accepted).may_be("CA2"));
    }

    #[test]
    fn a_person_who_leaves_before_audio_is_named_by_the_carrier() {
        let left = |leg: &Leg, by, reason| {
            let end = End::of(reason, "").ended_by(by);
            leg.is_left_by_the_person(&end, Some(0), 2_000)
        };
        let (came, placed) = (leg(Placing::Incoming), leg(Placing::Accepted));
        let hung_up = EndedReason::UserHungUp;
        assert!(left(&came, Some(Side::Caller), hung_up));
        assert!(left(&placed, Some(Side::Callee), hung_up));
        // It was us, or nobody is named, or it is no hang-up.
        assert!(!left(&came, Some(Side::Callee), hung_up));
        assert!(!left(&placed, Some(Side::Caller), hung_up));
        assert!(!left(&placed, None, hung_up));
        assert!(!left(&placed, Some(Side::Callee), EndedReason::DurationLimit));
        // Whoever has waited for longer has heard nothing; a carrier's own count of it goes first.
        let end = End::of(hung_up, "").ended_by(Some(Side::Caller));
        assert!(came.is_left_by_the_person(&end, None, 10_000));
        assert!(!came.is_left_by_the_person(&end, None, 10_001));
        assert!(came.is_left_by_the_person(&end.clone().lasting(Some(1_000)), None, 60_000));
        assert!(!came.is_left_by_the_person(&end.lasting(Some(11_000)), None, 1_000));
    }

    #[test]
    fn what_was_said_is_read_as_it_was_written() {
        let said = CarrierFacts {
            end: Some(End::of(EndedReason::Busy, "busy 486").lasting(Some(0)).ended_by(Some(Side::Callee))),
            billed: Some(Billed { duration_ms: Some(0), cost_microusd: Some(13_000) }),
            answered: true,
            machine: Some(false),
            rejection: Some(("21211".to_owned(), "no".to_owned())),
        };
        assert_eq!(serde_json::from_value::<CarrierFacts>(json!(said)).unwrap(), said);
        assert_eq!(json!(CarrierFacts::default()), json!({}));
        // As it stood before there were sides.
        let before =
            json!({"outcome": "busy", "reason": "busy", "fault": "none", "cause": "", "duration_ms": null});
        assert_eq!(serde_json::from_value::<End>(before).unwrap(), End::of(EndedReason::Busy, ""));
    }
}
