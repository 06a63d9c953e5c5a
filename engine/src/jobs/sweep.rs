//! The sweep: deletes expired rows and removes unreachable blobs.
//!
//! It goes in rounds. Each kind of row has its own statement in a round, of a limited size, so none waits for another
//! and no round blocks other writes for long. As long as a round finds something, another follows soon.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::ids::{self, prefix};
use crate::base::limits::{
    AUDIT_KEPT_MS, EVENT_KEPT_MS, IDEMPOTENCY_WINDOW_MS, SIGN_IN_DAY_MS, SIGN_IN_WINDOW_MS, SWEEP_BYTES_MAX,
    SWEEP_FAULTS_TOLD_MAX, SWEEP_LONE_EVENTS_MAX, SWEEP_MS, SWEEP_ROUNDS_MAX, SWEEP_ROWS_MAX,
    SWEEP_UNREAD_EVENTS_MAX,
};
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::archives;
use crate::storage::calls::write::erase::delete_left_groups;
use crate::storage::events::{CALL_IN_BODY, log};
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;
use crate::storage::moves::lock::STAYS;
use crate::storage::moves::shards;
use crate::storage::recordings;

/// The deliveries of an event are created right after it, so their ids contain the same time or a slightly later one. An
/// event without deliveries is deleted this much later, so that no event goes before its deliveries.
const MARGIN_MS: i64 = 60_000;
/// Between two rounds, so that other writes are not behind the sweep's all the time.
const ROUND_PAUSE_MS: u64 = 10;
/// How soon the sweep goes on when there is more to remove.
const CONTINUE_MS: u64 = 100;

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Something was found, so there may be more.
    pub more: bool,
}

impl Services {
    /// One round: deletes expired rows and removes unreachable blobs, a limited number of each kind.
    pub async fn sweep(&self) -> Result<Round, Fault> {
        let (round, failed) = self.round().await?;
        failed.into_iter().next().map_or(Ok(round), Err)
    }

    /// Deletes what the directory keeps for a time only, in at most so many rounds.
    pub(crate) async fn sweep_directory(&self, rounds: usize) -> Result<(), Fault> {
        let Some(sharding) = self.sharding() else { return Ok(()) };
        for _ in 0..rounds {
            let delete = delete_expired("carrier_tokens", "provider, id", ALL, self.now().ms());
            let [gone] = sharding.write([delete]).await?;
            if is_empty(&gone) {
                break;
            }
        }
        Ok(())
    }

    /// The round, and what failed in it: a blob was not removed, what a workspace no longer keeps was not deleted, or the text index
    /// was not tidied. That is tried again later, and is in the way of nothing else.
    async fn round(&self) -> Result<(Round, Vec<Fault>), Fault> {
        let now_ms = self.ports().clock.now_ms();
        let oldest_ms = now_ms - EVENT_KEPT_MS;
        let deliveries = ids::lower_bound(prefix::DELIVERY, oldest_ms);
        let lone_events = ids::lower_bound(prefix::EVENT, oldest_ms - MARGIN_MS);
        let [abandon, due] = recordings::due(now_ms);
        let [used_groups, left_groups] = delete_left_groups(SWEEP_ROWS_MAX);
        let rows = [
            delete_idempotency_keys(now_ms - IDEMPOTENCY_WINDOW_MS),
            delete_expired("used_test_tokens", "id", STAYS, now_ms),
            delete_expired("carrier_tokens", "provider, id", ALL, now_ms),
            delete_events_of_deliveries(&deliveries),
            delete_deliveries(&deliveries),
            delete_lone_events(&lone_events, &deliveries),
            log::delete_before(&ids::lower_bound(prefix::EVENT, oldest_ms), SWEEP_ROWS_MAX),
            delete_legs(now_ms),
            delete_audit_entries(&ids::lower_bound(prefix::AUDIT_ENTRY, now_ms - AUDIT_KEPT_MS)),
            delete_sessions(now_ms),
            delete_sign_ins(now_ms - SIGN_IN_DAY_MS, now_ms),
            delete_oidc_sign_ins(now_ms - SIGN_IN_WINDOW_MS),
            delete_invitations(now_ms),
            delete_reservations(),
            delete_expired("test_token_values", "id", STAYS, now_ms),
            used_groups,
            left_groups,
            name_calls_of_events(),
            abandon,
            archives::due(now_ms),
            // What was abandoned is among these.
            due,
        ];
        let [
            keys,
            tokens,
            carriers,
            _,
            deliveries,
            events,
            logged,
            legs,
            audit,
            sessions,
            proofs,
            begun,
            invited,
            reserved,
            values,
            _,
            groups,
            named,
            _,
            archives,
            due,
        ] = self.write(rows).await?;
        let found = [
            &keys,
            &tokens,
            &carriers,
            &deliveries,
            &events,
            &logged,
            &legs,
            &audit,
            &sessions,
            &proofs,
            &begun,
            &invited,
            &reserved,
            &values,
            &groups,
            &named,
        ]
        .into_iter()
        .any(|rows| !is_empty(rows));
        let of_recordings = self.remove_recordings(&due).await?;
        let of_archives = self.remove_archives(&archives).await?;
        // Deleting calls is slow while it has to look into the bodies of events.
        let (Round { more }, kept) = match is_empty(&named) {
            true => self.apply_retention(now_ms).await?,
            false => (Round { more: true }, None),
        };
        // On a full disk the text index cannot be upgraded, nor anything archived: that is in the way of nothing else.
        let upgraded = self.upgrade_search().await;
        let more = more | upgraded.as_ref().is_ok_and(|more| *more);
        let archived = self.archive_old_calls(now_ms).await;
        let more = more | archived.as_ref().is_ok_and(|(round, _)| round.more);
        let archived = match archived {
            Ok((_, failed)) => failed,
            Err(fault) => Some(fault),
        };
        let late = shards::cancel_leftovers(self).await;
        let more = more | late.as_ref().is_ok_and(|more| *more);
        let of_blobs = [of_archives, of_recordings].map(|error| error.map(Fault::from)).into_iter();
        let failed = of_blobs.chain([kept, upgraded.err(), archived, late.err()]).flatten().collect();
        let found = found || !is_empty(&archives) || !is_empty(&due);
        Ok((Round { more: more || found }, failed))
    }

    /// At most so many rounds; returns whether there may be more to remove, and errors for the log.
    pub(super) async fn sweep_rounds(&self, rounds: usize, pause_ms: u64) -> (Round, Vec<Fault>) {
        let mut told = Vec::new();
        for _ in 0..rounds {
            let round = self.round().await;
            let (round, failed) = round.unwrap_or_else(|fault| (Round { more: false }, vec![fault]));
            tell(&mut told, failed);
            if !round.more {
                return (round, told);
            }
            if pause_ms > 0 {
                self.ports().clock.sleep(pause_ms).await;
            }
        }
        (Round { more: true }, told)
    }
}

/// Adds what failed in a further round to what the log is told of a sweep: each thing once, and a limited number.
fn tell(told: &mut Vec<Fault>, failed: Vec<Fault>) {
    for fault in failed {
        let text = format!("{fault:?}");
        let is_new = told.iter().all(|known| format!("{known:?}") != text);
        if is_new && told.len() < SWEEP_FAULTS_TOLD_MAX {
            told.push(fault);
        }
    }
}

fn is_empty(rows: &Rows) -> bool {
    rows.values.is_empty()
}

fn delete_idempotency_keys(until_ms: i64) -> Statement {
    sql!(
        format!(
            "DELETE FROM idempotency_keys WHERE (workspace_id, key) IN (
               SELECT workspace_id, key FROM (
                 SELECT workspace_id, key, SUM(bytes) OVER (ORDER BY created_at, workspace_id, key) - bytes AS bytes_before FROM (
                   SELECT workspace_id, key, created_at, COALESCE(OCTET_LENGTH(body), 0) AS bytes FROM idempotency_keys
                   WHERE created_at <= :until AND {STAYS} ORDER BY created_at, workspace_id, key LIMIT CAST(:most AS INTEGER))
               ) WHERE bytes_before < :bytes_max) RETURNING 1 AS gone"
        ),
        until = until_ms,
        most = SWEEP_ROWS_MAX,
        bytes_max = SWEEP_BYTES_MAX
    )
}

/// Of a table without rows of workspaces.
const ALL: &str = "1";

/// Deletes what has expired of a table whose key is in these columns: an expired token is rejected anyway. `which` is a
/// condition, [`STAYS`] or [`ALL`].
fn delete_expired(table: &str, key: &str, which: &str, now_ms: i64) -> Statement {
    sql!(
        format!(
            "DELETE FROM {table} WHERE ({key}) IN (
               SELECT {key} FROM {table} WHERE expires_at <= :now AND {which} ORDER BY expires_at LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone"
        ),
        now = now_ms,
        most = SWEEP_ROWS_MAX
    )
}

/// Those of deleted calls: of an analysis that was under way when its call was deleted, in a process that died.
fn delete_reservations() -> Statement {
    sql!(
        format!(
            "DELETE FROM spending_reservations WHERE (workspace_id, call_id) IN (
               SELECT r.workspace_id, r.call_id FROM spending_reservations AS r WHERE NOT EXISTS (
                 SELECT 1 FROM calls AS c WHERE c.workspace_id = r.workspace_id AND c.id = r.call_id)
               AND {STAYS} LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone"
        ),
        most = SWEEP_ROWS_MAX
    )
}

/// The events of the deliveries that [`delete_deliveries`] deletes. A delivery that somebody has made up can name another
/// workspace's event.
fn delete_events_of_deliveries(bound: &str) -> Statement {
    of_oldest_deliveries(
        "DELETE FROM events WHERE id IN (SELECT e.id FROM {oldest} AS oldest
           CROSS JOIN events AS e ON e.id = oldest.event_id AND +e.workspace_id = oldest.workspace_id)",
        bound,
    )
}

fn delete_deliveries(bound: &str) -> Statement {
    of_oldest_deliveries(
        "DELETE FROM deliveries WHERE id IN (SELECT id FROM {oldest}) RETURNING 1 AS gone",
        bound,
    )
}

/// `{oldest}` in the text are the oldest deliveries whose ids sort before `bound`; their bodies limit how many.
fn of_oldest_deliveries(sql: &str, bound: &str) -> Statement {
    let oldest = format!(
        "(SELECT id, event_id, workspace_id FROM (
           SELECT id, event_id, workspace_id, SUM(body_bytes) OVER (ORDER BY id) - body_bytes AS bytes_before
           FROM (SELECT id, event_id, workspace_id, body_bytes FROM deliveries WHERE id < :bound AND {STAYS} ORDER BY id LIMIT CAST(:most AS INTEGER))
         ) WHERE bytes_before < :bytes_max)"
    );
    sql!(sql.replace("{oldest}", &oldest), bound = bound, most = SWEEP_ROWS_MAX, bytes_max = SWEEP_BYTES_MAX)
}

/// Events whose deliveries are gone. Earlier versions left them behind; their sizes are unknown, so they are few.
/// They wait until the expired deliveries are gone.
fn delete_lone_events(bound: &str, deliveries: &str) -> Statement {
    sql!(
        format!(
            "DELETE FROM events WHERE id IN (
               SELECT id FROM events WHERE id < :bound AND {STAYS}
               AND NOT EXISTS (SELECT 1 FROM deliveries WHERE deliveries.id < :deliveries AND {STAYS})
               ORDER BY id LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone"
        ),
        bound = bound,
        deliveries = deliveries,
        most = SWEEP_LONE_EVENTS_MAX
    )
}

/// Finds out which calls events of an earlier version tell about: it did not store that.
fn name_calls_of_events() -> Statement {
    sql!(
        format!(
            "UPDATE events SET call_id = CASE type WHEN 'webhook.test' THEN '' ELSE {CALL_IN_BODY} END WHERE id IN (
               SELECT id FROM events INDEXED BY events_of_unknown_calls WHERE call_id IS NULL AND {STAYS}
               LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS named"
        ),
        most = SWEEP_UNREAD_EVENTS_MAX
    )
}

fn delete_audit_entries(bound: &str) -> Statement {
    sql!(
        format!(
            "DELETE FROM audit_entries WHERE id IN (
               SELECT id FROM audit_entries WHERE id < :bound AND {STAYS} ORDER BY id LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone"
        ),
        bound = bound,
        most = SWEEP_ROWS_MAX
    )
}

fn delete_sessions(now_ms: i64) -> Statement {
    sql!(
        "DELETE FROM sessions WHERE id IN (
           SELECT id FROM sessions WHERE expires_at <= :now ORDER BY expires_at LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone",
        now = now_ms,
        most = SWEEP_ROWS_MAX
    )
}

/// What is older than a day no longer counts for the throttle. The link of the first start is good for longer.
fn delete_sign_ins(until_ms: i64, now_ms: i64) -> Statement {
    sql!(
        "DELETE FROM sign_ins WHERE id IN (
           SELECT id FROM sign_ins WHERE created_at <= :until AND expires_at <= :now ORDER BY created_at
           LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone",
        until = until_ms,
        now = now_ms,
        most = SWEEP_ROWS_MAX
    )
}

fn delete_oidc_sign_ins(until_ms: i64) -> Statement {
    sql!(
        "DELETE FROM oidc_sign_ins WHERE state_hash IN (
           SELECT state_hash FROM oidc_sign_ins WHERE created_at <= :until ORDER BY created_at
           LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone",
        until = until_ms,
        most = SWEEP_ROWS_MAX
    )
}

fn delete_invitations(now_ms: i64) -> Statement {
    sql!(
        "DELETE FROM invitations WHERE id IN (
           SELECT id FROM invitations WHERE expires_at <= :now ORDER BY expires_at LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone",
        now = now_ms,
        most = SWEEP_ROWS_MAX
    )
}

/// Legs of deleted calls, whose carriers report nothing more. A job that still has to hang up needs its leg.
fn delete_legs(now_ms: i64) -> Statement {
    sql!(
        format!(
            "DELETE FROM phone_calls WHERE call_id IN (
               SELECT call_id FROM phone_calls AS leg WHERE delete_at <= :now AND {STAYS}
               AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.subject_id = leg.call_id AND +jobs.kind = :hang_up)
               ORDER BY delete_at LIMIT CAST(:most AS INTEGER)) RETURNING 1 AS gone"
        ),
        now = now_ms,
        hang_up = JobKind::HangUp.as_str(),
        most = SWEEP_ROWS_MAX
    )
}

/// Decides when a process sweeps; shared with the sweep that runs beside its jobs.
#[derive(Clone)]
pub(super) struct Sweeper {
    next_ms: i64,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_sweeping: AtomicBool,
    more: AtomicBool,
}

impl Sweeper {
    pub fn new(now_ms: i64) -> Self {
        Self { next_ms: now_ms + SWEEP_MS, state: Arc::default() }
    }

    /// Whether a sweep is under way.
    pub fn is_sweeping(&self) -> bool {
        self.state.is_sweeping.load(Ordering::Relaxed)
    }

    /// Whether the process should sweep now; [`Sweeper::sweep`] follows.
    pub fn starts(&mut self, now_ms: i64) -> bool {
        // The clock may be set back.
        self.next_ms = self.next_ms.min(now_ms + SWEEP_MS);
        let starts = !self.is_sweeping() && (self.more() || now_ms > self.next_ms);
        if starts {
            self.next_ms = now_ms + SWEEP_MS;
            self.state.is_sweeping.store(true, Ordering::Relaxed);
        }
        starts
    }

    /// The longest pause until [`Sweeper::starts`] is asked again.
    pub fn wait_ms(&self) -> u64 {
        if self.more() || self.is_sweeping() { CONTINUE_MS } else { u64::MAX }
    }

    /// Sweeps; returns errors for the log.
    pub async fn sweep(&self, services: &Services) -> Vec<Fault> {
        // Also when the sweep is dropped or panics.
        let _end = EndOnDrop(&self.state);
        self.state.more.store(false, Ordering::Relaxed);
        let (Round { more }, failed) = services.sweep_rounds(SWEEP_ROUNDS_MAX, ROUND_PAUSE_MS).await;
        // When storage fails, the next regular sweep tries again.
        self.state.more.store(more, Ordering::Relaxed);
        failed
    }

    fn more(&self) -> bool {
        self.state.more.load(Ordering::Relaxed)
    }
}

struct EndOnDrop<'a>(&'a State);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.is_sweeping.store(false, Ordering::Relaxed);
    }
}
