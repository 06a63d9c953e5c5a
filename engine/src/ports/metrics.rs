//! The page with the host's metrics.
use super::{BoxFuture, DatabaseError, Port};

/// What the service says of itself at one moment, for its operator: nothing of a single workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings {
    /// The jobs of each kind.
    pub jobs: Vec<JobsOfKind>,
    /// How late the oldest delivery is that its webhook has not got.
    pub deliveries_late_ms: i64,
    /// The moves of workspaces that are under way, by state.
    pub moves: Vec<MovesInState>,
    /// What all workspaces have spent in this calendar month (UTC).
    pub spent_microusd: i64,
    /// Conversations of this process.
    pub conversations: u64,
    /// The memory that conversations of this process take, and what they may take.
    pub memory_bytes: (u64, u64),
    /// Clients that follow calls and runs of this process.
    pub followers: u64,
    /// Whether further calls are declined, because the timers of this process are late.
    pub is_late: bool,
}

/// The jobs of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobsOfKind {
    /// `webhook_delivery`, …
    pub kind: &'static str,
    /// How many are due; they are counted up to
    /// [`JOBS_COUNTED_MAX`](crate::base::limits::JOBS_COUNTED_MAX).
    pub due: i64,
    /// How late the oldest one is.
    pub oldest_late_ms: i64,
}

/// The moves of workspaces in a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovesInState {
    /// `frozen`, …
    pub state: &'static str,
    /// How many there are.
    pub count: i64,
    /// How long ago the oldest one began.
    pub oldest_ms: i64,
}

/// The form of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsForm {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

/// A host that measures, and shows what it has measured.
pub trait Metrics: Port {
    /// A webhook got an event for the first time, so long after the event.
    fn delivered(&self, lag_ms: i64);
    /// A call or a browser test was declined because this process is late.
    fn declined(&self);
    /// The page. `readings` reads the database: a host that has just done so need not do it again, and does it for one page
    /// at a time.
    fn page<'a>(
        &'a self,
        form: MetricsForm,
        readings: BoxFuture<'a, Result<Readings, DatabaseError>>,
    ) -> BoxFuture<'a, Result<String, DatabaseError>>;
}
