//! An in-memory database in which something happens between a read and the write that follows from it.
use std::sync::Mutex;

use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};

/// The database.
pub struct Meanwhile {
    memory: Memory,
    awaited: Mutex<Option<(&'static str, Vec<Statement>)>>,
}

impl Default for Meanwhile {
    fn default() -> Self {
        Self { memory: memory(), awaited: Mutex::default() }
    }
}

impl Meanwhile {
    /// Writes `statements` just before the next batch of which a statement contains `text`.
    pub fn before(&self, text: &'static str, statements: Vec<Statement>) {
        *self.awaited.lock().expect("no test panics here") = Some((text, statements));
    }

    fn due_before(&self, batch: &[Statement]) -> Option<Vec<Statement>> {
        let mut awaited = self.awaited.lock().expect("no test panics here");
        let due = awaited.take_if(|(text, _)| batch.iter().any(|one| one.sql.contains(*text)));
        due.map(|(_, statements)| statements)
    }

    /// Whether it has happened.
    pub fn has_happened(&self) -> bool {
        self.awaited.lock().expect("no test panics here").is_none()
    }
}

impl Database for Meanwhile {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.memory.read(batch)
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            if let Some(statements) = self.due_before(&batch) {
                self.memory.write(statements).await?;
            }
            self.memory.write(batch).await
        })
    }
}
