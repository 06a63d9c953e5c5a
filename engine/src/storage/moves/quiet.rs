//! What is still under way in a workspace that closes. It is frozen once nothing is.
use crate::base::ids::WorkspaceId;
use crate::base::time::Timestamp;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;
use crate::storage::workspace_rows::EMPTY;

/// After the end of a telephone call, carriers report its price for so long, usually.
const SETTLE_MS: i64 = 5 * 60_000;
/// Deliveries of webhooks are waited for so long after the workspace was closed: a receiver that hangs, or gets events again and again,
/// would keep it from being frozen. What is being sent then is sent again, with the same ids, where the workspace runs next.
const DELIVERIES_MS: i64 = 60_000;
/// Of what goes on until nobody knows when.
const UNKNOWN: &str = "NULL";

crate::words! {
    /// What a closing workspace waits for.
    plain What {
        /// Conversations that go on.
        Conversations = "conversations",
        /// Simulations that run.
        Runs = "runs",
        /// Ended calls whose costs and analysis are not written yet, and calls to hang up.
        CallsToSettle = "calls_to_settle",
        /// Other jobs that are being done.
        Jobs = "jobs",
        /// Lines of telephone calls that go on, also after they were handed over.
        Lines = "lines",
        /// Prices of telephone calls that have just ended.
        LatePrices = "late_prices",
    }
}

/// Something that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What.
    pub what: What,
    /// How many.
    pub count: i64,
    /// Until when at most, if that is known.
    pub until: Option<Timestamp>,
}

/// When it is asked what is under way, and what of that is waited for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// When.
    pub now: Timestamp,
    /// When the workspace was closed.
    pub closed_at: Timestamp,
    /// Whether the operator waits for no late prices.
    pub without_late_prices: bool,
}

/// A kind of what is under way: `from` finds its rows of workspace `:ws`.
struct Kind {
    what: What,
    from: String,
    /// An expression of until when it goes on.
    until: &'static str,
}

/// What an index finds: each kind is looked for in the batch that freezes, too. Times and words of jobs stand in the texts: they are
/// ours, and each text is used in two statements.
fn kinds(asked: Asked) -> Vec<Kind> {
    let now_ms = asked.now.ms();
    let kind = |what, from: &str, until| Kind { what, from: from.to_owned(), until };
    let (live_call, hang_up) = (JobKind::LiveCall.as_str(), JobKind::HangUp.as_str());
    let settled_ms = now_ms - SETTLE_MS;
    let mut kinds = vec![
        kind(What::Conversations, "calls WHERE workspace_id = :ws AND ended_at IS NULL", UNKNOWN),
        kind(What::Runs, "runs WHERE workspace_id = :ws AND status = 'running'", UNKNOWN),
        kind(
            What::CallsToSettle,
            &format!("jobs WHERE workspace_id = :ws AND kind IN ('{live_call}', '{hang_up}')"),
            UNKNOWN,
        ),
        kind(
            What::Lines,
            // Each half has an index.
            "phone_calls WHERE (workspace_id = :ws AND is_over = 0) OR (workspace_id = :ws AND line_until IS NOT NULL)",
            "MAX(line_until)",
        ),
    ];
    let leased = |job: &str| {
        let from = format!(
            "jobs WHERE workspace_id = :ws AND kind = '{job}' AND lease IS NOT NULL AND due_at > {now_ms}"
        );
        Kind { what: What::Jobs, from, until: "MAX(due_at)" }
    };
    kinds.push(leased(JobKind::SimulationRun.as_str()));
    if now_ms - asked.closed_at.ms() < DELIVERIES_MS {
        kinds.push(leased(JobKind::WebhookDelivery.as_str()));
    }
    if !asked.without_late_prices {
        kinds.push(Kind {
            what: What::LatePrices,
            from: format!(
                "calls WHERE workspace_id = :ws AND provider IS NOT NULL AND ended_at > {settled_ms}"
            ),
            until: "MAX(ended_at)",
        });
    }
    kinds
}

/// Rows that the end of a conversation or a run deletes. How many there are says nothing. Most of these tables have no index by
/// workspace, so all that is under way on this host is looked at.
fn rests() -> Vec<Kind> {
    let rests = EMPTY.iter().filter(|table| **table != "jobs");
    let from = |table: &&str| format!("(SELECT 1 FROM {table} WHERE workspace_id = :ws LIMIT 1)");
    rests.map(|table| Kind { what: What::Conversations, from: from(table), until: UNKNOWN }).collect()
}

/// Reads what is under way; nothing, if the workspace can be frozen, but for [`left`].
pub(super) async fn waits(
    services: &Services,
    workspace_id: &WorkspaceId,
    asked: Asked,
) -> Result<Vec<Wait>, Fault> {
    found(services, workspace_id, &kinds(asked)).await
}

/// Reads what is left of conversations and runs, to be asked once no other one can begin: then the batch that freezes need not look
/// through whole tables.
pub(super) async fn left(services: &Services, workspace_id: &WorkspaceId) -> Result<Vec<Wait>, Fault> {
    found(services, workspace_id, &rests()).await
}

async fn found(services: &Services, workspace_id: &WorkspaceId, kinds: &[Kind]) -> Result<Vec<Wait>, Fault> {
    let reads: Vec<Statement> = kinds
        .iter()
        .map(|Kind { from, until, .. }| {
            sql!(format!("SELECT COUNT(*) AS count, {until} AS until FROM {from}")).in_workspace(workspace_id)
        })
        .collect();
    let answers = services.ports().database.read(reads).await?;
    let mut waits: Vec<Wait> = Vec::new();
    for (Kind { what, .. }, rows) in kinds.iter().zip(&answers) {
        let (count, until) = read(rows)?;
        // Of a call that ends, the price may come for a while.
        let until = until.map(|until| if *what == What::LatePrices { until + SETTLE_MS } else { until });
        match waits.iter_mut().find(|wait| wait.what == *what) {
            _ if count == 0 => {}
            Some(wait) => wait.count = wait.count.max(count),
            None => waits.push(Wait { what: *what, count, until }),
        }
    }
    Ok(waits)
}

fn read(rows: &Rows) -> Result<(i64, Option<Timestamp>), Fault> {
    let Some(row) = rows.first() else { return Ok((0, None)) };
    Ok((row.integer("count")?, row.optional_timestamp("until")?))
}

/// Fail the batch while anything is under way that [`waits`] tells.
pub(super) fn guards(workspace_id: &WorkspaceId, asked: Asked) -> Vec<Statement> {
    kinds(asked)
        .into_iter()
        .map(|Kind { from, .. }| {
            sql!(format!("INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS (SELECT 1 FROM {from})"))
                .in_workspace(workspace_id)
        })
        .collect()
}
