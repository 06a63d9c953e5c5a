//! Group commit: one thread owns the writing connection. While it waits for the disk, requests
//! queue up; the next transaction takes all of them, so one fsync makes many batches durable. Each
//! batch has a savepoint, so one that fails undoes itself alone.
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, TrySendError};

use sidetone_engine::ports::DatabaseError;
use sidetone_engine::ports::statement::{Rows, Statement};
use tokio::sync::oneshot;

use super::connection::{Session, begin, command, write_one, write_within};

/// Batches in one transaction at most: bounds how long the first of them waits.
const GROUP_BATCHES_MAX: usize = 256;
/// Batches waiting at most: beyond that a request is told to come back.
const WAITING_BATCHES_MAX: usize = 8_192;

type Answer = Result<Vec<Rows>, DatabaseError>;

struct Work {
    batch: Vec<Statement>,
    answer: oneshot::Sender<Answer>,
}

/// The way to the writing thread. The thread ends when this is dropped.
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
    /// What is queued is still written.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_groups(session: &Session, waiting: &mpsc::Receiver<Work>) {
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        while group.len() < GROUP_BATCHES_MAX
            && let Ok(next) = waiting.try_recv()
        {
            group.push(next);
        }
        let batches: Vec<&[Statement]> = group.iter().map(|work| work.batch.as_slice()).collect();
        let answers = whatever_happens(session, batches.len(), || match batches.as_slice() {
            [one] => vec![write_one(session, one)],
            many => write_together(session, many),
        });
        for (work, answer) in group.into_iter().zip(answers) {
            // A client that has gone away does not wait for its answer.
            let _ = work.answer.send(answer);
        }
    }
}

/// A panic fails the group it happened in; the thread lives on for the next one.
fn whatever_happens(session: &Session, count: usize, write: impl FnOnce() -> Vec<Answer>) -> Vec<Answer> {
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

/// Success is reported only after the commit has succeeded.
fn write_together(session: &Session, group: &[&[Statement]]) -> Vec<Answer> {
    let together = || {
        begin(session)?;
        let answers: Vec<Answer> =
            group.iter().map(|batch| write_within(session, batch)).collect::<Result<_, _>>()?;
        command(session, "COMMIT")?;
        Ok(answers)
    };
    together().unwrap_or_else(|error: DatabaseError| {
        // If this fails too, `begin` tries again before anything else is written.
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
    fn a_batch_that_fails_undoes_itself_alone() {
        let session = session();
        let answers = write_together(&session, &[&[insert(1)], &[insert(2), insert(1)], &[insert(3)]]);
        assert!(matches!(answers.as_slice(), [Ok(_), Err(DatabaseError::Constraint(_)), Ok(_)]));
        assert_eq!(count(&session), 2);
    }

    #[test]
    fn a_batch_that_cannot_be_undone_fails_the_group() {
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
        assert_eq!(count(&session), 0, "no half batch is committed");
    }

    #[test]
    fn a_transaction_that_was_left_open_is_undone_first() {
        let session = session();
        begin(&session).unwrap();
        write_within(&session, &[insert(1)]).unwrap().unwrap();
        write_one(&session, &[insert(2)]).unwrap();
        assert_eq!(count(&session), 1);
    }

    #[test]
    fn a_panic_fails_its_group_and_no_other() {
        let session = session();
        let answers = whatever_happens(&session, 2, || {
            begin(&session).unwrap();
            write_within(&session, &[insert(1)]).unwrap().unwrap();
            panic!("as planned")
        });
        all_unavailable(&answers, 2);
        assert!(write_one(&session, &[insert(2)]).is_ok());
        assert_eq!(count(&session), 1);
    }
}
