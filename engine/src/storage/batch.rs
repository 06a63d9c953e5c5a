//! Statements that are written together, and the jobs to wake afterwards. A change collects its rows, its events and
//! the jobs that follow from it in one batch. The batch is written completely or not at all, and no job is woken before
//! the batch is durable.
use serde_json::Value;

use crate::base::ids::{JobId, WorkspaceId};
use crate::ports::statement::{Rows, Statement};
use crate::ports::{DatabaseError, Wake};
use crate::services::Services;
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::{Job, JobKind};

/// Statements in their order, and the jobs to wake after them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    statements: Vec<Statement>,
    wakes: Vec<Wake>,
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
    }

    /// Wakes this job once the batch is written.
    pub fn wake(&mut self, kind: JobKind, job_id: &JobId, at_ms: i64) {
        self.wakes.push(Wake { queue: kind.queue(), job_id: job_id.clone(), at_ms });
    }

    /// Sends an event to the subscribers of a workspace. `data` is exactly what the REST read of the resource returns,
    /// under its name: `{"run": {…}}`. It is built only when there is a subscriber.
    pub fn emit(
        &mut self,
        services: &Services,
        workspace_id: &WorkspaceId,
        subscribers: &Subscribers,
        kind: EventKind,
        now_ms: i64,
        data: impl FnOnce() -> Result<Value, Fault>,
    ) -> Result<(), Fault> {
        if !subscribers.want(kind) {
            return Ok(());
        }
        self.append(events::emit(services, workspace_id, subscribers, kind, &data()?, now_ms));
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

    /// The statements and the wakes, for an operation, which writes them with the check of its API key.
    pub fn into_parts(self) -> (Vec<Statement>, Vec<Wake>) {
        (self.statements, self.wakes)
    }

    /// Writes all or nothing, then wakes the jobs.
    pub async fn write(self, services: &Services) -> Result<Vec<Rows>, DatabaseError> {
        if self.statements.is_empty() {
            return Ok(Vec::new());
        }
        let ports = services.ports();
        let rows = ports.database.write(self.statements).await?;
        for wake in &self.wakes {
            ports.queue.wake(wake);
        }
        Ok(rows)
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
        Self { statements, wakes: Vec::new() }
    }
}
