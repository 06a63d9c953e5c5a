//! An in-memory database that counts its batches: at the edge, each is a round trip.
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};

/// The database.
pub struct Counted {
    memory: Memory,
    reads: AtomicUsize,
    writes: AtomicUsize,
    /// The statements of the latest write.
    written: Mutex<Vec<Statement>>,
    read: Mutex<Vec<Statement>>,
}

/// Batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trips {
    /// Of statements that only read.
    pub reads: usize,
    /// Of others.
    pub writes: usize,
}

impl Trips {
    /// All of them.
    pub fn total(self) -> usize {
        self.reads + self.writes
    }

    /// As a cell of a table.
    pub fn shown(self) -> String {
        match (self.reads, self.writes) {
            (0, writes) => format!("{writes} write"),
            (reads, 0) => format!("{reads} read"),
            (reads, writes) => format!("{reads} + {writes}"),
        }
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self::over(memory())
    }
}

impl Counted {
    /// Counts the batches of this database.
    pub fn over(memory: Memory) -> Self {
        Self {
            memory,
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            written: Mutex::default(),
            read: Mutex::default(),
        }
    }
}

impl Counted {
    /// The statements of the latest write.
    pub fn written(&self) -> Vec<Statement> {
        self.written.lock().expect("no test panics here").clone()
    }

    /// Returns and resets the counters.
    pub fn take(&self) -> Trips {
        self.statements_read();
        Trips { reads: self.reads.swap(0, Ordering::SeqCst), writes: self.writes.swap(0, Ordering::SeqCst) }
    }

    /// Returns and forgets the statements that were read.
    pub fn statements_read(&self) -> Vec<Statement> {
        std::mem::take(&mut *self.read.lock().unwrap())
    }
}

impl Database for Counted {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.read.lock().unwrap().extend(batch.iter().cloned());
        self.memory.read(batch)
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.written.lock().expect("no test panics here").clone_from(&batch);
        self.memory.write(batch)
    }
}
