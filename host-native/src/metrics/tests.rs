//! Compares the table of docs/operating.md with the page, and holds the page to what it promises.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{
    BoxFuture, Database, DatabaseError, JobsOfKind, Metrics as _, MetricsForm, MovesInState, Readings,
};
use sidetone_engine::storage::moves::cancel_export::cancel_export;
use sidetone_engine::storage::moves::freeze;

use super::*;
use crate::Sandbox;
use crate::data;
use crate::database::Memory;
use crate::sandbox::block_on;

const DOCS: &str = include_str!("../../../docs/operating.md");

/// Type and labels by name.
type Table = BTreeMap<String, (String, BTreeSet<String>)>;

/// The rows of the table.
fn documented() -> Table {
    let (_, rows) = DOCS.split_once("| metric | type | labels | meaning |\n").unwrap();
    let words =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = rows.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (words(cells[1]).concat(), (cells[2].to_owned(), words(cells[3]).into_iter().collect()))
    })
    .collect()
}

/// What a page in OpenMetrics has.
fn shown(page: &str) -> Table {
    let mut table = Table::new();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    for (name, kind) in types {
        let samples = page.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let rest = ["_total", "_info", "_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| rest.strip_prefix(suffix))
                .unwrap_or(rest);
            rest.starts_with(['{', ' ']).then_some(rest)
        });
        let labels: BTreeSet<String> = samples
            .filter_map(|sample| sample.strip_prefix('{')?.rsplit_once("} "))
            .flat_map(|(labels, _)| labels.split(','))
            .filter_map(|label| Some(label.split_once('=')?.0.to_owned()))
            .filter(|label| label != "le")
            .collect();
        table.insert(name.to_owned(), (kind.to_owned(), labels));
    }
    table
}

fn used() -> Arc<Metrics> {
    let metrics = Arc::new(Metrics::default());
    let party = Party::model("openai");
    metrics.answered(&party, Duration::from_millis(300));
    metrics.exchanged(&party, "ok");
    metrics.delivered(1_500);
    metrics.committed(3, Duration::from_millis(2));
    metrics.timer(LATE_MS + 1);
    metrics.timer(LATE_MS);
    metrics.declined();
    let labels = RequestLabels { route: "/calls/{id}", method: "GET", status: "2xx" };
    metrics.requests.get_or_create(&labels).inc();
    let labels = RouteLabels { route: "/calls/{id}", method: "GET" };
    metrics.request_seconds.get_or_create(&labels).observe(0.002);
    metrics
}

fn readings() -> Readings {
    let job = JobsOfKind { kind: "webhook_delivery", due: 2, oldest_late_ms: 1_500 };
    let moves = vec![MovesInState { state: "frozen", count: 1, oldest_ms: 90_000 }];
    Readings { jobs: vec![job], moves, spent_microusd: 2_500_000, conversations: 7, ..Readings::default() }
}

async fn page_of(page: &Page, form: MetricsForm) -> String {
    page.page(form, Box::pin(async { Ok(readings()) })).await.unwrap()
}

fn new_page() -> (tempfile::TempDir, Page) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join(data::DATABASE);
    std::fs::write(&database, [0; 4_096]).unwrap();
    std::fs::write(data::wal_of(&database), [0; 100]).unwrap();
    (folder, Page::new(used(), database))
}

#[tokio::test]
async fn the_table_of_the_docs_is_the_page() {
    let (_folder, page) = new_page();
    assert_eq!(documented(), shown(&page_of(&page, MetricsForm::OpenMetrics).await));
}

#[tokio::test]
async fn the_page_has_what_was_counted_and_read() {
    let (_folder, page) = new_page();
    let text = page_of(&page, MetricsForm::OpenMetrics).await;
    for line in [
        "sidetone_requests_total{route=\"/calls/{id}\",method=\"GET\",status=\"2xx\"} 1",
        "sidetone_outside_exchanges_total{party=\"model\",provider=\"openai\",result=\"ok\"} 1",
        "sidetone_outside_answer_seconds_sum{party=\"model\",provider=\"openai\"} 0.3",
        "sidetone_jobs_due{kind=\"webhook_delivery\"} 2",
        "sidetone_jobs_oldest_late_seconds{kind=\"webhook_delivery\"} 1.5",
        "sidetone_moves{state=\"frozen\"} 1",
        "sidetone_moves_oldest_seconds{state=\"frozen\"} 90.0",
        "sidetone_spent_this_month_dollars 2.5",
        "sidetone_conversations 7",
        "sidetone_timers_total 2",
        "sidetone_late_timers_total 1",
        "sidetone_calls_declined_total 1",
        "sidetone_written_batches_total 3",
        "sidetone_delivery_lag_seconds_sum 1.5",
        "sidetone_delivery_lag_seconds_bucket{le=\"1.0\"} 0",
        "sidetone_delivery_lag_seconds_bucket{le=\"2.5\"} 1",
        "sidetone_database_bytes 4096",
        "sidetone_database_log_bytes 100",
        "# EOF",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    #[cfg(target_os = "linux")]
    assert!(!text.contains("\nprocess_resident_memory_bytes 0\n"), "{text}");
    let plain = page_of(&page, MetricsForm::Prometheus).await;
    assert!(plain.contains("# TYPE sidetone_requests_total counter") && !plain.contains("# EOF"), "{plain}");
}

#[tokio::test]
async fn pages_at_once_read_the_database_once() {
    let (_folder, page) = new_page();
    let reads = AtomicUsize::new(0);
    let ask = || {
        let readings = Box::pin(async {
            reads.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(readings())
        });
        page.page(MetricsForm::OpenMetrics, readings)
    };
    let (one, other, third) = tokio::join!(ask(), ask(), ask());
    assert!(one.is_ok() && other.is_ok() && third.is_ok());
    assert_eq!(reads.load(Ordering::SeqCst), 1);
}

#[test]
fn a_word_that_a_client_makes_up_is_no_label() {
    assert_eq!(known(&Method::from_bytes(b"BREW").unwrap()), "other");
    assert_eq!(
        (known(&Method::GET), class_of(204), class_of(101), class_of(599)),
        ("GET", "2xx", "1xx", "5xx")
    );
}

#[test]
fn what_waits_is_as_late_as_it_is() {
    let sandbox = Sandbox::new();
    let read = || block_on(sandbox.services().readings()).unwrap();
    let jobs_of = |readings: &Readings, kind: &str| {
        readings.jobs.iter().find(|jobs| jobs.kind == kind).map(|jobs| (jobs.due, jobs.oldest_late_ms))
    };
    let empty = read();
    assert_eq!((empty.jobs.len(), empty.deliveries_late_ms, empty.spent_microusd), (4, 0, 0));
    assert!(empty.jobs.iter().all(|jobs| (jobs.due, jobs.oldest_late_ms) == (0, 0)), "{empty:?}");
    assert_eq!((empty.conversations, empty.memory_bytes.0, empty.is_late), (0, 0, false));
    let made = |path: &str, body: serde_json::Value| {
        let reply = sandbox.post(path, body);
        assert_eq!(reply.status, 201, "{path}");
        reply["id"].as_str().unwrap().to_owned()
    };
    let hook = made("/webhooks", json!({"url": "https://hooks.example/events", "events": ["*"]}));
    made(&format!("/webhooks/{hook}/test"), json!({}));
    sandbox.advance(5_000);
    made(&format!("/webhooks/{hook}/test"), json!({}));
    sandbox.advance(2_000);
    let waiting = read();
    assert_eq!(jobs_of(&waiting, "webhook_delivery"), Some((1, 7_000)), "one job a webhook");
    assert_eq!(waiting.deliveries_late_ms, 7_000);
    assert_eq!(jobs_of(&waiting, "simulation_run"), Some((0, 0)));
    // Both fail, and are due again later.
    sandbox.run_jobs();
    let failed = read();
    assert_eq!((jobs_of(&failed, "webhook_delivery"), failed.deliveries_late_ms), (Some((0, 0)), 0));
}

#[test]
fn a_move_is_shown_until_it_has_ended() {
    let sandbox = Sandbox::new();
    let read = || block_on(sandbox.services().readings()).unwrap();
    let seen = |readings: &Readings| -> Vec<(&'static str, i64, i64)> {
        let there = readings.moves.iter().filter(|moves| moves.count > 0);
        there.map(|moves| (moves.state, moves.count, moves.oldest_ms)).collect()
    };
    let empty = read();
    assert_eq!((empty.moves.len(), seen(&empty)), (8, Vec::new()));
    let workspace_id = WorkspaceId::from_stored(sandbox.get("/workspace")["id"].as_str().unwrap());
    block_on(freeze::close(sandbox.services(), &workspace_id)).unwrap().unwrap();
    sandbox.advance(60_000);
    assert_eq!(seen(&read()), [("closing", 1, 60_000)]);
    block_on(cancel_export(sandbox.services(), &workspace_id)).unwrap().unwrap();
    assert!(seen(&read()).is_empty());
}

/// A database that says how it would read, and then reads.
struct Explains {
    database: Memory,
    steps: Mutex<Vec<String>>,
}

impl Database for Explains {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            let explained = |statement: &Statement| Statement {
                sql: format!("EXPLAIN QUERY PLAN {}", statement.sql).into(),
                params: statement.params.clone(),
            };
            let plans = self.database.read(batch.iter().map(explained).collect()).await?;
            let steps = plans.iter().flat_map(|rows| rows.iter().map(|row| row.text("detail").unwrap()));
            self.steps.lock().unwrap().extend(steps);
            self.database.read(batch).await
        })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.database.write(batch)
    }
}

/// A page must not cost more with everything that is stored.
#[test]
fn no_table_is_read_from_end_to_end_but_the_workspaces() {
    let database = Arc::new(Explains { database: Memory::new().unwrap(), steps: Mutex::default() });
    let sandbox = Sandbox::over(database.clone(), &[]);
    database.steps.lock().unwrap().clear();
    block_on(sandbox.services().readings()).unwrap();
    let steps = database.steps.lock().unwrap().clone();
    let scanned: Vec<&String> = steps.iter().filter(|step| step.starts_with("SCAN")).collect();
    let small = ["SCAN w ", "SCAN json_each ", "SCAN (subquery", "SCAN moves"];
    assert!(scanned.iter().all(|step| small.iter().any(|small| step.starts_with(small))), "{steps:?}");
    assert!(steps.iter().any(|step| step.contains("jobs_by_kind")), "{steps:?}");
}
