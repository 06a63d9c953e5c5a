//! Statements that are written together, and the jobs to wake afterwards. A change collects its rows, its events and
//! the jobs that follow from it in one batch. The batch is written completely or not at all, and no job is woken and no call
//! signaled before the batch is durable.
use serde_json::Value;

use crate::base::ids::{CallId, JobId, WorkspaceId};
use crate::ports::statement::{Rows, Statement};
use crate::ports::{DatabaseError, Wake};
use crate::services::Services;
use crate::storage::events::{self, About, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::{Job, JobKind};
use crate::storage::trace;

/// Statements in their order, the jobs to wake after them, the calls to signal, and those that have ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    statements: Vec<Statement>,
    wakes: Vec<Wake>,
    signals: Vec<CallId>,
    ended: Vec<(WorkspaceId, Value)>,
}

impl Batch {
    /// Adds a statement.
    pub fn push(&mut self, statement: Statement) {
        self.statements.push(statement);
    }

    /// Adds several.
    pub fn extend(&mut self, statements: impl IntoIterator<Item = Statement>) {
        self.statements.extend(statements);
    }

    /// Adds all of another batch.
    pub fn append(&mut self, other: Self) {
        self.statements.extend(other.statements);
        self.wakes.extend(other.wakes);
        self.signals.extend(other.signals);
        self.ended.extend(other.ended);
    }

    /// Wakes this job once the batch is written.
    pub fn wake(&mut self, kind: JobKind, job_id: &JobId, at_ms: i64) {
        self.wakes.push(Wake { queue: kind.queue(), job_id: job_id.clone(), at_ms });
    }

    /// Tells whoever holds or follows this call to look, once the batch is written.
    pub fn signal(&mut self, call_id: &CallId) {
        self.signals.push(call_id.clone());
    }

    /// Tells whoever makes traces, once the batch is written, that a call has ended. `call` is what a read of it returns.
    pub fn trace(&mut self, workspace_id: &WorkspaceId, call: Value) {
        self.ended.push((workspace_id.clone(), call));
    }

    /// Notes an event, and sends it to the subscribers of the workspace. `data` is exactly what the REST read of the
    /// resource returns, under its name: `{"run": {…}}`. It is built only when there is a subscriber.
    pub fn emit(
        &mut self,
        services: &Services,
        workspace_id: &WorkspaceId,
        subscribers: &Subscribers,
        about: About<'_>,
        now_ms: i64,
        data: impl FnOnce() -> Result<Value, Fault>,
    ) -> Result<(), Fault> {
        self.append(events::emit(services, workspace_id, subscribers, about, data, now_ms)?);
        Ok(())
    }

    /// Finishes `job` with this batch: removes the job, and writes nothing when another process holds the lease.
    pub fn finish(&mut self, job: &Job) {
        self.statements = job.finished(std::mem::take(&mut self.statements));
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Adds statements before all others.
    pub fn prepend(&mut self, statements: impl IntoIterator<Item = Statement>) {
        self.statements.splice(0..0, statements);
    }

    /// The statements, for an operation, which writes them with the check of its API key, and what follows them.
    pub fn into_parts(self) -> (Vec<Statement>, Followup) {
        (self.statements, Followup { wakes: self.wakes, signals: self.signals, ended: self.ended })
    }

    /// Writes all or nothing, then wakes the jobs and signals the calls.
    pub async fn write(self, services: &Services) -> Result<Vec<Rows>, DatabaseError> {
        if self.statements.is_empty() {
            return Ok(Vec::new());
        }
        let (statements, followup) = self.into_parts();
        let rows = services.ports().database.write(statements).await?;
        followup.tell(services).await;
        Ok(rows)
    }
}

/// What follows a batch once it is written.
pub struct Followup {
    wakes: Vec<Wake>,
    signals: Vec<CallId>,
    ended: Vec<(WorkspaceId, Value)>,
}

impl Followup {
    /// Wakes the jobs, signals the calls, and tells which have ended.
    pub async fn tell(self, services: &Services) {
        let ports = services.ports();
        for wake in &self.wakes {
            ports.queue.wake(wake);
        }
        for call_id in &self.signals {
            ports.live.signal(call_id).await;
        }
        if let Some(traces) = &ports.traces {
            let steps =
                self.ended.iter().filter_map(|(workspace_id, call)| trace::step_of_call(workspace_id, call));
            steps.for_each(|step| traces.ended(step));
        }
    }
}

impl<const N: usize> From<[Statement; N]> for Batch {
    fn from(statements: [Statement; N]) -> Self {
        Vec::from(statements).into()
    }
}

impl From<Statement> for Batch {
    fn from(statement: Statement) -> Self {
        [statement].into()
    }
}

impl From<Vec<Statement>> for Batch {
    fn from(statements: Vec<Statement>) -> Self {
        Self { statements, ..Self::default() }
    }
}
