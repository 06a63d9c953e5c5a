//! Group commit: one thread owns the writing connection. While it waits for the disk, batches queue up, and the next
//! transaction contains all of them, so one fsync makes many batches durable. Each batch has a savepoint, so a failing
//! batch is rolled back alone.
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::time::{Duration, Instant};

use sidetone_engine::ports::DatabaseError;
use sidetone_engine::ports::statement::{Rows, Statement};
use tokio::sync::oneshot;

use super::connection::{Session, begin, command, truncate_log, write_one, write_within};

/// Maximum number of batches in one transaction, which limits how long the first one waits.
const GROUP_BATCHES_MAX: usize = 256;
/// Maximum number of waiting batches; beyond it, requests are asked to retry later.
const WAITING_BATCHES_MAX: usize = 8_192;

/// How long the write-ahead log keeps what was deleted.
const LOG_KEPT: Duration = Duration::from_secs(10);

type Answer = Result<Vec<Rows>, DatabaseError>;

struct Work {
    batch: Vec<Statement>,
    answer: oneshot::Sender<Answer>,
}

/// A handle to the writing thread, which ends when the handle is dropped.
pub struct Writer {
    queue: Option<mpsc::SyncSender<Work>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub fn start(session: Session) -> Self {
        let (queue, waiting) = mpsc::sync_channel(WAITING_BATCHES_MAX);
        let thread = std::thread::spawn(move || write_groups(&session, &waiting));
        Self { queue: Some(queue), thread: Some(thread) }
    }

    /// Queues a batch; resolves when it is durable or has failed.
    pub fn write(&self, batch: Vec<Statement>) -> impl Future<Output = Answer> + use<> {
        let (answer, answered) = oneshot::channel();
        let queued = match &self.queue {
            Some(queue) => queue.try_send(Work { batch, answer }).map_err(|error| {
                let text = match error {
                    TrySendError::Full(_) => "the writer's queue is full",
                    TrySendError::Disconnected(_) => "the writer is gone",
                };
                DatabaseError::Unavailable(text.to_owned())
            }),
            None => Err(DatabaseError::Unavailable("the writer has stopped".to_owned())),
        };
        async move {
            queued?;
            answered
                .await
                .unwrap_or_else(|_| Err(DatabaseError::Unavailable("the writer is gone".to_owned())))
        }
    }
}

impl Drop for Writer {
    /// Waits until queued batches are written.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_groups(session: &Session, waiting: &mpsc::Receiver<Work>) {
    let mut log = Log::default();
    while let Some(first) = log.next(session, waiting) {
        let mut group = vec![first];
        while group.len() < GROUP_BATCHES_MAX
            && let Ok(next) = waiting.try_recv()
        {
            group.push(next);
        }
        let batches: Vec<&[Statement]> = group.iter().map(|work| work.batch.as_slice()).collect();
        let answers = catch_panics(session, batches.len(), || match batches.as_slice() {
            [one] => vec![write_one(session, one)],
            many => write_together(session, many),
        });
        for (work, answer) in group.into_iter().zip(answers) {
            // The requester may have been dropped.
            let _ = work.answer.send(answer);
        }
    }
}

/// When the write-ahead log was emptied last.
#[derive(Default)]
struct Log {
    /// When the next attempt is due; `None` while the log is empty.
    due: Option<Instant>,
}

impl Log {
    /// The next batch; `None` when the writer has stopped. Empties the log when that is due, busy or not.
    fn next(&mut self, session: &Session, waiting: &mpsc::Receiver<Work>) -> Option<Work> {
        loop {
            let found = match self.due {
                None => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => waiting.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            if self.due.is_some_and(|due| due <= Instant::now()) {
                let emptied = truncate_log(session).unwrap_or(false);
                self.due = (!emptied).then(|| Instant::now() + LOG_KEPT);
            }
            match found {
                Ok(work) => {
                    self.due.get_or_insert_with(|| Instant::now() + LOG_KEPT);
                    return Some(work);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

/// Runs `write`; a panic fails its group only, and the thread continues.
fn catch_panics(session: &Session, count: usize, write: impl FnOnce() -> Vec<Answer>) -> Vec<Answer> {
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| {
        if !session.is_autocommit() {
            let _ = command(session, "ROLLBACK");
        }
        failed(count, "the writer panicked")
    })
}

fn failed(count: usize, why: &str) -> Vec<Answer> {
    vec![Err(DatabaseError::Unavailable(why.to_owned())); count]
}

/// Writes a group of batches in one transaction. Results are returned only after a successful commit.
fn write_together(session: &Session, group: &[&[Statement]]) -> Vec<Answer> {
    let together = || {
        begin(session)?;
        let answers: Vec<Answer> =
            group.iter().map(|batch| write_within(session, batch)).collect::<Result<_, _>>()?;
        command(session, "COMMIT")?;
        Ok(answers)
    };
    together().unwrap_or_else(|error: DatabaseError| {
        // If this rollback fails, `begin` repeats it before the next write.
        if !session.is_autocommit() {
            let _ = command(session, "ROLLBACK");
        }
        failed(group.len(), &format!("the transaction failed: {error:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::connection::{open_in_memory, read};
    use sidetone_engine::sql;

    fn session() -> Session {
        let session = open_in_memory().unwrap();
        write_one(&session, &[sql!("CREATE TABLE t (n REAL UNIQUE) STRICT")]).unwrap();
        session
    }

    fn insert(n: i64) -> Statement {
        sql!("INSERT INTO t (n) VALUES (:n)", n = n)
    }

    fn count(session: &Session) -> usize {
        read(session, &[sql!("SELECT n FROM t")]).unwrap()[0].iter().count()
    }

    fn all_unavailable(answers: &[Answer], count: usize) {
        assert_eq!(answers.len(), count);
        assert!(answers.iter().all(|answer| matches!(answer, Err(DatabaseError::Unavailable(_)))));
    }

    #[test]
    fn a_failing_batch_is_rolled_back_alone() {
        let session = session();
        let answers = write_together(&session, &[&[insert(1)], &[insert(2), insert(1)], &[insert(3)]]);
        assert!(matches!(answers.as_slice(), [Ok(_), Err(DatabaseError::Constraint(_)), Ok(_)]));
        assert_eq!(count(&session), 2);
    }

    #[test]
    fn a_batch_that_cannot_be_rolled_back_fails_the_group() {
        for broken in ["RELEASE batch", "ROLLBACK"] {
            let session = session();
            let group: [&[Statement]; 3] =
                [&[insert(1)], &[sql!(broken), insert(2), insert(2)], &[insert(3)]];
            all_unavailable(&write_together(&session, &group), 3);
            assert!(session.is_autocommit(), "{broken}");
            assert!(write_together(&session, &[&[insert(4)], &[insert(5)]]).iter().all(Result::is_ok));
        }
        let session = session();
        write_together(&session, &[&[insert(1)], &[sql!("RELEASE batch"), insert(2), insert(2)]]);
        assert_eq!(count(&session), 0, "a partial batch was committed");
    }

    #[test]
    fn an_open_transaction_is_rolled_back_first() {
        let session = session();
        begin(&session).unwrap();
        write_within(&session, &[insert(1)]).unwrap().unwrap();
        write_one(&session, &[insert(2)]).unwrap();
        assert_eq!(count(&session), 1);
    }

    #[test]
    fn a_panic_fails_only_its_group() {
        let session = session();
        let answers = catch_panics(&session, 2, || {
            begin(&session).unwrap();
            write_within(&session, &[insert(1)]).unwrap().unwrap();
            panic!("deliberate")
        });
        all_unavailable(&answers, 2);
        assert!(write_one(&session, &[insert(2)]).is_ok());
        assert_eq!(count(&session), 1);
    }
}
