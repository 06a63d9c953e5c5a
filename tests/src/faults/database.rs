//! An in-memory database with planned faults.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};

use super::harness::Counts;
use super::plan::{FaultPlan, Moment, StorageFault};

/// The error of a failing database; a client never sees it.
pub const SECRET_DETAIL: &str = "disk sda1 is on fire";

/// An in-memory database that follows a plan.
pub struct FaultyDatabase {
    memory: Memory,
    disconnected: AtomicBool,
    /// The job runner was killed: its later requests get no response.
    killed: AtomicBool,
    planned: Mutex<Planned>,
}

#[derive(Default)]
struct Planned {
    plan: FaultPlan,
    /// The number of writes until the fault.
    write: Option<(usize, StorageFault)>,
    counts: Counts,
}

enum Fate {
    Storage(StorageFault),
    Killed(Moment),
}

impl Default for FaultyDatabase {
    fn default() -> Self {
        Self::over(memory())
    }
}

impl FaultyDatabase {
    /// This database with planned faults.
    pub fn over(memory: Memory) -> Self {
        Self {
            memory,
            disconnected: AtomicBool::new(false),
            killed: AtomicBool::new(false),
            planned: Mutex::default(),
        }
    }

    /// Starts a plan.
    pub fn start_plan(&self, plan: FaultPlan) {
        *self.planned() = Planned { plan, ..Planned::default() };
    }

    /// The requests since the plan was set.
    pub fn counts(&self) -> Counts {
        self.planned().counts
    }

    /// Disconnects or reconnects the database.
    pub fn set_disconnected(&self, disconnected: bool) {
        self.disconnected.store(disconnected, Ordering::SeqCst);
    }

    /// Makes the n-th write from now fail, counted from 1.
    pub fn fail_write(&self, nth: usize, fault: StorageFault) {
        self.planned().write = Some((nth, fault));
    }

    /// Starts a new job runner after a kill.
    pub fn start_job_runner(&self) {
        self.killed.store(false, Ordering::SeqCst);
    }

    fn fate(&self, batch: &[Statement], is_write: bool) -> Fate {
        let mut planned = self.planned();
        let planned = &mut *planned;
        if is_write && batch.iter().any(|statement| statement.sql.contains("lease")) {
            planned.counts.leases += 1;
            let kill = planned.plan.kills.get(planned.counts.leases - 1);
            if let Some(moment) = kill.copied().flatten() {
                planned.counts.met += 1;
                return Fate::Killed(moment);
            }
        }
        planned.counts.storage += 1;
        let mut fault = planned.plan.storage.get(planned.counts.storage - 1).copied();
        if is_write && let Some((left, due)) = planned.write.take() {
            match left {
                0 | 1 => fault = Some(due),
                _ => planned.write = Some((left - 1, due)),
            }
        }
        let fault = fault.unwrap_or(StorageFault::None);
        planned.counts.met += usize::from(fault != StorageFault::None);
        Fate::Storage(fault)
    }

    async fn batch(&self, batch: Vec<Statement>, is_write: bool) -> Result<Vec<Rows>, DatabaseError> {
        if self.disconnected.load(Ordering::SeqCst) {
            return Err(failure());
        }
        if self.killed.load(Ordering::SeqCst) {
            return std::future::pending().await;
        }
        match self.fate(&batch, is_write) {
            Fate::Storage(StorageFault::None) => self.run(batch, is_write).await,
            Fate::Storage(StorageFault::Before) => Err(failure()),
            Fate::Storage(StorageFault::Half) => {
                let mut half = batch;
                half.truncate(half.len().div_ceil(2));
                half.push(Statement {
                    sql: "INSERT INTO batch_guard (ok) VALUES (0)".into(),
                    params: Vec::new(),
                });
                let refused = self.memory.write(half).await;
                assert!(refused.is_err(), "the guard rejects every row");
                Err(failure())
            }
            Fate::Storage(StorageFault::After) => self.run(batch, is_write).await.and(Err(failure())),
            Fate::Killed(moment) => {
                if moment == Moment::After {
                    let _ = self.run(batch, is_write).await;
                }
                self.killed.store(true, Ordering::SeqCst);
                std::future::pending().await
            }
        }
    }

    async fn run(&self, batch: Vec<Statement>, is_write: bool) -> Result<Vec<Rows>, DatabaseError> {
        if is_write { self.memory.write(batch).await } else { self.memory.read(batch).await }
    }

    fn planned(&self) -> MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Database for FaultyDatabase {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.batch(batch, false))
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.batch(batch, true))
    }
}

fn failure() -> DatabaseError {
    DatabaseError::Unavailable(SECRET_DETAIL.to_owned())
}
