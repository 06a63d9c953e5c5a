//! What the service counts and measures, for Prometheus. Labels have few values: no workspace, no path, no name that a user
//! chooses. docs/operating.md lists all metrics; a test compares its table with this file.
mod page;
mod process;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use sidetone_engine::base::limits::LATE_MS;
use sidetone_engine::engine::LogRecord;
use sidetone_engine::ports::Party;

pub use page::Page;

/// Upper bounds of the time that a request of a client takes, in seconds.
const REQUEST_SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// Of the time until somebody outside begins to answer.
const ANSWER_SECONDS: [f64; 11] = [0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0];
/// Of the time that a transaction takes.
const COMMIT_SECONDS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0];
/// Of the time from an event until its webhook has got it: as tight as a receiver that is there can be, and as wide as the
/// pauses between attempts (5 s, 5 min, 30 min, 2 h, … 10 h).
const DELIVERY_LAG_SECONDS: [f64; 13] =
    [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0];

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;
type Seconds = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    party: &'static str,
    provider: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartyLabels {
    party: &'static str,
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

/// All metrics of a process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histograms<RouteLabels>,
    exchanges: Family<ResultLabels, Counter>,
    answer_seconds: Histograms<PartyLabels>,
    commit_seconds: Histogram,
    written_batches: Counter,
    delivery_lag: Histogram,
    timers: Counter,
    late_timers: Counter,
    calls_declined: Counter,
    /// Read anew for each page.
    gauges: Gauges,
}

/// What is read when somebody asks.
#[derive(Debug, Default)]
struct Gauges {
    jobs_due: Family<KindLabels, Gauge>,
    jobs_oldest_late: Family<KindLabels, Seconds>,
    deliveries_late: Seconds,
    moves: Family<StateLabels, Gauge>,
    moves_oldest: Family<StateLabels, Seconds>,
    spent_dollars: Seconds,
    conversations: Gauge,
    followers: Gauge,
    is_late: Gauge,
    conversation_memory: Gauge,
    conversation_memory_max: Gauge,
    database: Gauge,
    log: Gauge,
    disk_free: Gauge,
    resident_memory: Gauge,
    cpu_seconds: Counter<f64, AtomicU64>,
    start_time: Seconds,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let service = registry.sub_registry_with_prefix("sidetone");
        let requests = Family::default();
        service.register("requests", "Requests that were answered", requests.clone());
        let request_seconds = Histograms::new_with_constructor(|| Histogram::new(REQUEST_SECONDS));
        service.register_with_unit(
            "request",
            "From a request's head to the first byte of its response",
            Unit::Seconds,
            request_seconds.clone(),
        );
        let exchanges = Family::default();
        service.register(
            "outside_exchanges",
            "Requests and WebSockets to others, and what came of them",
            exchanges.clone(),
        );
        let answer_seconds = Histograms::new_with_constructor(|| Histogram::new(ANSWER_SECONDS));
        service.register_with_unit(
            "outside_answer",
            "Until somebody outside began to answer, or accepted the WebSocket",
            Unit::Seconds,
            answer_seconds.clone(),
        );
        let commit_seconds = Histogram::new(COMMIT_SECONDS);
        service.register_with_unit(
            "commit",
            "A transaction from its first statement until it is on the disk",
            Unit::Seconds,
            commit_seconds.clone(),
        );
        let written_batches = Counter::default();
        service.register(
            "written_batches",
            "Batches of changes in these transactions",
            written_batches.clone(),
        );
        let delivery_lag = Histogram::new(DELIVERY_LAG_SECONDS);
        service.register_with_unit(
            "delivery_lag",
            "From an event until its webhook has got it, at the first 2xx",
            Unit::Seconds,
            delivery_lag.clone(),
        );
        let timers = Counter::default();
        service.register("timers", "Timers that tell how late the audio of calls is", timers.clone());
        let late_timers = Counter::default();
        service.register("late_timers", "Of these, the ones that were late", late_timers.clone());
        let calls_declined = Counter::default();
        service.register(
            "calls_declined",
            "Calls and browser tests that were declined because the timers were late",
            calls_declined.clone(),
        );
        let gauges = Gauges::default();
        gauges.register_service(service);
        gauges.register_process(&mut registry);
        Self {
            registry,
            requests,
            request_seconds,
            exchanges,
            answer_seconds,
            commit_seconds,
            written_batches,
            delivery_lag,
            timers,
            late_timers,
            calls_declined,
            gauges,
        }
    }
}

impl Metrics {
    /// A request was answered.
    pub fn request(&self, record: &LogRecord, took: Duration) {
        let (route, method) = (record.route(), known(record.method()));
        let status = class_of(record.status().as_u16());
        self.requests.get_or_create(&RequestLabels { route, method, status }).inc();
        self.request_seconds.get_or_create(&RouteLabels { route, method }).observe(took.as_secs_f64());
    }

    /// Somebody outside began to answer.
    pub fn answered(&self, party: &Party, took: Duration) {
        let labels = PartyLabels { party: party.kind.as_str(), provider: party.provider.to_string() };
        self.answer_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A request or a WebSocket to somebody outside is over.
    pub fn exchanged(&self, party: &Party, result: &'static str) {
        let provider = party.provider.to_string();
        self.exchanges.get_or_create(&ResultLabels { party: party.kind.as_str(), provider, result }).inc();
    }

    /// A transaction with so many batches is on the disk.
    pub fn committed(&self, batches: usize, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.written_batches.inc_by(u64::try_from(batches).unwrap_or_default());
    }

    /// A webhook has got an event, so long after it.
    pub fn delivered(&self, lag_ms: i64) {
        self.delivery_lag.observe(lag_ms as f64 / 1e3);
    }

    /// A timer ended so late.
    pub fn timer(&self, late_ms: i64) {
        self.timers.inc();
        self.late_timers.inc_by(u64::from(late_ms > LATE_MS));
    }

    /// A call or a browser test was declined because the timers are late.
    pub fn declined(&self) {
        self.calls_declined.inc();
    }
}

#[cfg(test)]
impl Metrics {
    pub(crate) fn count(&self, party: &Party, result: &'static str) -> u64 {
        let (party, provider) = (party.kind.as_str(), party.provider.to_string());
        self.exchanges.get_or_create(&ResultLabels { party, provider, result }).get()
    }
}

impl Gauges {
    fn register_service(&self, service: &mut Registry) {
        service.register(
            "jobs_due",
            "Jobs that are due, by kind; counted up to 1,000",
            self.jobs_due.clone(),
        );
        service.register_with_unit(
            "jobs_oldest_late",
            "How late the oldest due job is, by kind",
            Unit::Seconds,
            self.jobs_oldest_late.clone(),
        );
        service.register_with_unit(
            "deliveries_oldest_late",
            "How late the oldest delivery is that its webhook has not got",
            Unit::Seconds,
            self.deliveries_late.clone(),
        );
        service.register(
            "moves",
            "Workspaces that move to another host or arrive from one, by state",
            self.moves.clone(),
        );
        service.register_with_unit(
            "moves_oldest",
            "How long ago the oldest of these moves began, by state",
            Unit::Seconds,
            self.moves_oldest.clone(),
        );
        service.register_with_unit(
            "spent_this_month",
            "What all workspaces have spent in this calendar month (UTC)",
            Unit::Other("dollars".to_owned()),
            self.spent_dollars.clone(),
        );
        service.register("conversations", "Conversations under way", self.conversations.clone());
        service.register("followers", "Clients that follow calls and runs", self.followers.clone());
        service.register(
            "declines_calls",
            "1 while further calls are declined because the timers are late",
            self.is_late.clone(),
        );
        service.register_with_unit(
            "conversation_memory",
            "The memory that conversations take",
            Unit::Bytes,
            self.conversation_memory.clone(),
        );
        service.register_with_unit(
            "conversation_memory_max",
            "The memory that conversations may take",
            Unit::Bytes,
            self.conversation_memory_max.clone(),
        );
        service.register_with_unit("database", "The database's file", Unit::Bytes, self.database.clone());
        service.register_with_unit("database_log", "Its write-ahead log", Unit::Bytes, self.log.clone());
        service.register_with_unit(
            "disk_free",
            "Free space on the disk of the data folder",
            Unit::Bytes,
            self.disk_free.clone(),
        );
        let version = env!("CARGO_PKG_VERSION");
        service.register("build", "The version that runs", Info::new(BuildLabels { version }));
    }

    /// The names that Prometheus' own libraries use.
    fn register_process(&self, registry: &mut Registry) {
        let process = registry.sub_registry_with_prefix("process");
        process.register_with_unit(
            "resident_memory",
            "Memory of the process",
            Unit::Bytes,
            self.resident_memory.clone(),
        );
        process.register_with_unit(
            "cpu",
            "Time that processors have worked for the process",
            Unit::Seconds,
            self.cpu_seconds.clone(),
        );
        process.register_with_unit(
            "start_time",
            "When the process started, since 1970",
            Unit::Seconds,
            self.start_time.clone(),
        );
    }
}

/// A label for a method: a client may send any word.
fn known(method: &Method) -> &'static str {
    const KNOWN: [(&Method, &str); 7] = [
        (&Method::GET, "GET"),
        (&Method::POST, "POST"),
        (&Method::PATCH, "PATCH"),
        (&Method::PUT, "PUT"),
        (&Method::DELETE, "DELETE"),
        (&Method::HEAD, "HEAD"),
        (&Method::OPTIONS, "OPTIONS"),
    ];
    KNOWN.iter().find(|(known, _)| *known == method).map_or("other", |(_, name)| name)
}

/// A label for a status.
pub(crate) fn class_of(status: u16) -> &'static str {
    match status {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}
