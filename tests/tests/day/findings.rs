//! What a day came to: everything that each workspace has at its end, as it reads it itself.
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sidetone_engine::base::fair_pool::FairPool;
use sidetone_engine::base::limits::{
    DELIVERY_DEADLINE_MS, DELIVERY_JOBS_AT_ONCE, RUNS_AT_ONCE, TOOL_TIMEOUT_MS_MAX,
};
use sidetone_engine::base::time;
use sidetone_engine::ports::JobQueue;

use crate::outside::{ANSWER_MICROUSD, Arrival};
use crate::plan::Character;
use crate::service::Service;
use crate::workspace::Workspace;

/// How long a workspace's first run may wait for a place: for the longest step of somebody else's, and for its turn.
const FIRST_RUN_MS_MAX: i64 = TOOL_TIMEOUT_MS_MAX as i64 + 2_000;
/// The same for its deliveries.
const FIRST_DELIVERY_MS_MAX: i64 = DELIVERY_DEADLINE_MS as i64 + 2_000;

/// The end of a day.
pub struct Findings {
    workspaces: Vec<Found>,
    arrivals: Vec<Arrival>,
    /// The most jobs of each queue that ran at once.
    most_running: Vec<(JobQueue, usize)>,
}

/// One workspace.
struct Found {
    character: Character,
    ceiling: Option<i64>,
    refused: usize,
    most_microusd: i64,
    money: Value,
    runs: Vec<Value>,
    calls: Vec<Value>,
    deliveries: Vec<Value>,
}

impl Findings {
    pub fn read(service: &Service, workspaces: &[Workspace]) -> Self {
        let found = workspaces.iter().map(|workspace| Found::read(service, workspace)).collect();
        let arrivals = service.outside.arrivals();
        Self { workspaces: found, arrivals, most_running: service.most_running() }
    }

    /// Otherwise the rest would prove nothing.
    pub fn there_was_a_crowd(&self) {
        let most = |queue| self.most_running.iter().find(|(other, _)| *other == queue).map(|(_, most)| *most);
        let places = |of_one: u64| FairPool::<()>::for_one_holder(of_one).free();
        assert_eq!(most(JobQueue::Runs), usize::try_from(places(RUNS_AT_ONCE)).ok(), "all places were taken");
        let deliveries = usize::try_from(places(DELIVERY_JOBS_AT_ONCE)).ok();
        assert!(most(JobQueue::Deliveries) >= deliveries, "{:?}", self.most_running);
        for character in [Character::Greedy, Character::Hostile] {
            let refused: usize = self.of(character).map(|found| found.refused).sum();
            assert!(refused > 0, "nobody {character:?} was ever refused anything");
        }
        let ceilings =
            self.of(Character::Greedy).filter(|found| found.has_run_with_error("spend_limit_reached"));
        assert!(ceilings.count() > 0, "nobody reached a ceiling");
    }

    /// Whatever the others do, honest work gets its turn, and all of it succeeds.
    pub fn honest_work_was_begun_soon_and_is_done(&self) {
        for found in self.of(Character::Honest) {
            assert!(!found.runs.is_empty() && !found.calls.is_empty() && !found.deliveries.is_empty());
            for run in &found.runs {
                assert_eq!((&run["status"], &run["error"]), (&json!("completed"), &Value::Null), "{run:#}");
                let waited_ms = found.waited_for_its_first_place_ms(run);
                assert!(waited_ms <= FIRST_RUN_MS_MAX, "{waited_ms} ms: {run:#}");
            }
            for call in &found.calls {
                assert_eq!(
                    (&call["status"], call["analysis"].is_null()),
                    (&json!("ended"), false),
                    "{call:#}"
                );
                let expected = if call["source"] == "outbound" { "busy" } else { "completed" };
                assert_eq!(call["outcome"], expected, "{call:#}");
            }
            for delivery in &found.deliveries {
                assert_eq!(delivery["status"], "delivered", "{delivery:#}");
            }
        }
        for Arrival { workspace, event, at_ms, retried } in &self.arrivals {
            let waited_ms = at_ms - ms(&event["created_at"]);
            if self.workspaces[*workspace].character == Character::Honest && !retried {
                assert!(waited_ms <= FIRST_DELIVERY_MS_MAX, "{waited_ms} ms: {event:#}");
            }
        }
    }

    /// Also the greedy and the hostile have had their turns.
    pub fn nothing_is_left_but_what_its_own_workspace_overfilled(&self) {
        for found in &self.workspaces {
            let with = |status: &str| found.runs.iter().filter(|run| run["status"] == status).count();
            let (queued, running) = (with("queued"), with("running"));
            // One that allows itself fewer runs at once than it queues waits for nobody else.
            let allowed = found.money["runs_at_once"].as_u64().unwrap();
            let waits_for_itself = allowed < RUNS_AT_ONCE && running as u64 == allowed;
            assert!(queued + running == 0 || waits_for_itself, "{queued} queued, {running} running");
            let open = found.calls.iter().filter(|call| call["status"] != "ended").count();
            assert!(open <= running, "{open} calls are open");
            let pending =
                found.deliveries.iter().filter(|delivery| delivery["status"] != "delivered").count();
            assert!(pending == 0 || found.character == Character::Hostile, "{pending} deliveries are left");
        }
        let overfull = self.workspaces.iter().filter(|found| found.money["runs_at_once"] == 1);
        assert_eq!(overfull.count(), 1);
    }

    /// Spent and reserved together never pass a ceiling by more than an answer of each conversation under way.
    pub fn no_ceiling_was_passed(&self) {
        for found in self.workspaces.iter().filter(|found| found.ceiling.is_some()) {
            let at_once = found.conversations_at_once();
            let allowed = found.ceiling.unwrap() + ANSWER_MICROUSD * at_once;
            assert!(found.most_microusd <= allowed, "{} of {allowed}", found.most_microusd);
            assert_eq!(found.money["reserved_microusd"], 0, "{:?}", found.character);
            let spent: i64 = found.runs.iter().map(|run| run["cost_microusd"].as_i64().unwrap()).sum();
            assert!(found.money["spent_this_month_microusd"].as_i64() >= Some(spent), "{}", found.money);
        }
    }

    /// The state of each workspace, and the order in which runs of all workspaces were started.
    pub fn digest(&self) -> String {
        let mut starts: Vec<(i64, String)> = Vec::new();
        let mut hash = Sha256::new();
        for found in &self.workspaces {
            for part in [&found.money, &json!(found.runs), &json!(found.calls), &json!(found.deliveries)] {
                hash.update(part.to_string());
            }
            let started = found.runs.iter().filter(|run| run["started_at"].is_string());
            starts.extend(started.map(|run| (ms(&run["started_at"]), run["id"].to_string())));
        }
        starts.sort();
        hash.update(json!(starts).to_string());
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn of(&self, character: Character) -> impl Iterator<Item = &Found> {
        self.workspaces.iter().filter(move |found| found.character == character)
    }
}

impl Found {
    fn read(service: &Service, workspace: &Workspace) -> Self {
        let list = |path: &str, name| workspace.list(service, path, name);
        let webhooks = list("/webhooks", "webhooks");
        let deliveries = webhooks.iter().flat_map(|webhook| {
            list(&format!("/webhooks/{}/deliveries", webhook["id"].as_str().unwrap()), "deliveries")
        });
        Self {
            character: workspace.character,
            ceiling: workspace.ceiling,
            refused: workspace.refused,
            most_microusd: workspace.most_microusd,
            money: workspace.get(service, "/workspace"),
            runs: list("/simulations/runs", "runs"),
            calls: list("/calls", "calls"),
            deliveries: deliveries.collect(),
        }
    }
}

impl Found {
    fn has_run_with_error(&self, code: &str) -> bool {
        self.runs.iter().any(|run| run["error"]["code"] == code)
    }

    /// How long a run waited while its workspace had no other one in progress. 0 when another was in progress as it started.
    fn waited_for_its_first_place_ms(&self, run: &Value) -> i64 {
        let started_ms = ms(&run["started_at"]);
        let others = self.runs.iter().filter(|other| other["id"] != run["id"]);
        let earlier = others.filter(|other| ms(&other["started_at"]) <= started_ms);
        let ended_ms = earlier.map(|other| ms(&other["completed_at"])).max().unwrap_or_default();
        (started_ms - ended_ms.max(ms(&run["created_at"]))).max(0)
    }

    /// The most conversations that were under way at the same time.
    fn conversations_at_once(&self) -> i64 {
        let mut changes: Vec<(i64, i64)> = Vec::new();
        for call in &self.calls {
            changes.push((ms(&call["started_at"]), 1));
            // One that ends as another begins was under way with it.
            changes.extend(call["ended_at"].is_string().then(|| (ms(&call["ended_at"]) + 1, -1)));
        }
        changes.sort_unstable();
        let at_once = changes.iter().scan(0, |now, (_, change)| {
            *now += change;
            Some(*now)
        });
        at_once.max().unwrap_or_default()
    }
}

/// A time of a response.
fn ms(at: &Value) -> i64 {
    time::from(at.as_str().unwrap_or_default()).unwrap_or_else(|| panic!("{at} is no time"))
}
