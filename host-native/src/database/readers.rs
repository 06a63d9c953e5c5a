//! Reading connections. A point read takes microseconds and runs where it is asked for: passing it to another thread would
//! take longer. A read that can be long runs on a thread of its own, has a deadline, and waits for its turn. When it proves
//! long, its thread gives way to everything else.
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::InterruptHandle;
use sidetone_engine::ports::DatabaseError;
use sidetone_engine::ports::statement::{Rows, Statement};

use super::OpenError;
use super::connection::{self, Session};
use super::turns::Turns;
use crate::system::cores;

/// Idle reading connections to keep; more are opened under load and closed afterwards.
const IDLE_READERS_MAX: usize = 16;

/// Long reads at once. The system shares the cores among them, so that a quick search of one workspace does not wait
/// until the slow ones of others are over; one workspace leaves a core to everybody else.
const TURNS_PER_CORE: usize = 4;

/// A read is long after this time.
const LONG_MS: u64 = 2;
/// Instructions of SQLite between two looks at the time: some hundredths of a millisecond.
const STEPS: i32 = 1_000;
/// Of a thread (`nice(2)`).
#[cfg(target_os = "linux")]
const LOWEST_PRIORITY: i32 = 19;

/// The connections.
#[derive(Clone)]
pub struct Readers {
    path: Arc<Path>,
    idle: Arc<Mutex<Vec<Session>>>,
    turns: Turns,
    deadline: Duration,
}

impl Readers {
    /// Opens a first connection. A read that can be long is interrupted after `deadline`.
    pub fn open(path: &Path, deadline: Duration) -> Result<Self, OpenError> {
        let first = connection::open_reader(path)?;
        let cores = cores();
        Ok(Self {
            path: PathBuf::from(path).into(),
            idle: Arc::new(Mutex::new(vec![first])),
            turns: Turns::new(TURNS_PER_CORE * cores, cores.saturating_sub(1).max(1)),
            deadline,
        })
    }

    /// Reads on this thread.
    pub fn read_here(&self, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
        let session = self.session()?;
        let rows = connection::read(&session, batch);
        self.keep(session);
        rows
    }

    /// Reads on another thread, when it is this asker's turn.
    ///
    /// The thread is a new one: a thread that gave up its priority cannot get it back, and starting one takes much less
    /// time than such a read.
    pub async fn read_long(&self, asker: String, batch: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let until = tokio::time::Instant::now() + self.deadline;
        let waiting = self.turns.take(&asker);
        let turn = match tokio::time::timeout_at(until, waiting).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Err(DatabaseError::TooManyWait),
            Err(_) => return Err(DatabaseError::TooLong),
        };
        let mut session = self.session()?;
        // Also interrupts a read that nobody waits for any more.
        let interrupt = Interrupt(Arc::new(Mutex::new(Some(session.interrupt_handle()))));
        let (readers, running) = (self.clone(), interrupt.0.clone());
        let (done, reading) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new().name("long read".to_owned()).spawn(move || {
            give_way_after(LONG_MS, &mut session);
            let rows = connection::read(&session, &batch);
            session.each_steps(STEPS, None);
            // From here on the connection belongs to the next read.
            lock(&running).take();
            readers.keep(session);
            drop(turn);
            // An error: nobody waits any more.
            let _ = done.send(rows);
        });
        thread.map_err(|error| DatabaseError::Unavailable(error.to_string()))?;
        match tokio::time::timeout_at(until, reading).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(_)) => Err(DatabaseError::Unavailable("the reading thread has ended".to_owned())),
            Err(_) => Err(DatabaseError::TooLong),
        }
    }

    fn session(&self) -> Result<Session, DatabaseError> {
        match lock(&self.idle).pop() {
            Some(session) => Ok(session),
            None => Ok(connection::open_reader(&self.path)?),
        }
    }

    fn keep(&self, session: Session) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_READERS_MAX && session.is_autocommit() {
            idle.push(session);
        }
    }
}

/// Gives this thread the lowest priority once it has read for so long: nobody's request, and no quick search, waits for a
/// core that a long search has. Elsewhere than on Linux it would be the priority of the whole process.
#[cfg(target_os = "linux")]
fn give_way_after(ms: u64, session: &mut Session) {
    let started = std::time::Instant::now();
    let mut gave_way = false;
    session.each_steps(
        STEPS,
        Some(Box::new(move || {
            if !gave_way && started.elapsed() >= Duration::from_millis(ms) {
                gave_way = true;
                if let Err(error) = rustix::process::nice(LOWEST_PRIORITY) {
                    tracing::debug!(%error, "a long read keeps its priority");
                }
            }
        })),
    );
}

#[cfg(not(target_os = "linux"))]
fn give_way_after(_: u64, _: &mut Session) {}

/// Interrupts a read when it is dropped, unless the read has ended.
struct Interrupt(Arc<Mutex<Option<InterruptHandle>>>);

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(handle) = &*lock(&self.0) {
            handle.interrupt();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidetone_engine::base::ids::{Id, WorkspaceId};
    use sidetone_engine::ports::Database;
    use sidetone_engine::sql;
    use std::time::Instant;

    fn endless() -> Vec<Statement> {
        vec![sql!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) AS most FROM n"
        )]
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_long_read_is_interrupted_and_delays_no_point_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        drop(connection::open(&path).unwrap());
        let readers = Readers::open(&path, Duration::from_secs(3)).unwrap();
        for _ in 0..2 {
            let long = tokio::spawn({
                let readers = readers.clone();
                async move { readers.read_long("ws_1".to_owned(), endless()).await }
            });
            let started = Instant::now();
            for _ in 0..100 {
                assert!(readers.read_here(&[sql!("SELECT 1 AS one")]).is_ok());
            }
            assert!(started.elapsed() < Duration::from_secs(2));
            assert_eq!(long.await.unwrap(), Err(DatabaseError::TooLong));
        }
        // It no longer runs: its turn is free.
        assert!(
            readers
                .read_long("ws_1".to_owned(), vec![sql!("WITH a AS (SELECT 1 AS one) SELECT one FROM a")])
                .await
                .is_ok()
        );
    }

    /// The job queue finds its work beside the searches of everybody.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_service_waits_for_no_turn() {
        let folder = tempfile::tempdir().unwrap();
        let database = crate::database::Sqlite::open(&folder.path().join("a.db"), 0).unwrap();
        let cores = cores();
        let all_turns: Vec<_> = (0..TURNS_PER_CORE * cores).map(|n| format!("ws_{n}")).collect();
        let mut held = Vec::new();
        for asker in &all_turns {
            held.push(database.readers.turns.take(asker).await.unwrap());
        }
        let of_service = sql!("WITH a AS (SELECT 1 AS one) SELECT one FROM a");
        let read = database.read(vec![of_service]);
        assert!(tokio::time::timeout(Duration::from_secs(3), read).await.is_ok_and(|rows| rows.is_ok()));
        let search = sql!("WITH a AS (SELECT :ws AS one) SELECT one FROM a");
        let read = database.read(vec![search.in_workspace(&WorkspaceId::from_stored("ws_x"))]);
        assert!(tokio::time::timeout(Duration::from_millis(200), read).await.is_err(), "a search waits");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_read_that_nobody_waits_for_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        drop(connection::open(&path).unwrap());
        let readers = Readers::open(&path, Duration::from_secs(60)).unwrap();
        let dropped =
            tokio::time::timeout(Duration::from_millis(200), readers.read_long("ws_1".to_owned(), endless()))
                .await;
        assert!(dropped.is_err());
        let next =
            readers.read_long("ws_1".to_owned(), vec![sql!("WITH a AS (SELECT 1 AS one) SELECT one FROM a")]);
        assert!(tokio::time::timeout(Duration::from_secs(10), next).await.is_ok_and(|rows| rows.is_ok()));
    }
}
