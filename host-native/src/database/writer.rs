//! Group commit: one thread owns the writing connection. While it waits for the disk, requests
//! queue up; the next transaction takes all of them, so one fsync makes many batches durable. Each
//! batch has a savepoint, so one that fails undoes itself alone.
use std::future::Future;
use std::sync::mpsc;

use sidetone_engine::ports::DatabaseError;
use sidetone_engine::statement::{Rows, Statement};
use tokio::sync::oneshot;

use super::connection::{Session, command, write_one, write_within};

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
            Some(queue) => queue
                .try_send(Work { batch, answer })
                .map_err(|_| DatabaseError::Unavailable("the writer's queue is full".to_owned())),
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
        let answers = match group.as_slice() {
            [one] => vec![write_one(session, &one.batch)],
            many => write_together(session, many),
        };
        for (work, answer) in group.into_iter().zip(answers) {
            // A client that has gone away does not wait for its answer.
            let _ = work.answer.send(answer);
        }
    }
}

/// Nobody is told of success before the commit has succeeded.
fn write_together(session: &Session, group: &[Work]) -> Vec<Answer> {
    let all = |error: DatabaseError| group.iter().map(|_| Err(error.clone())).collect();
    if let Err(error) = command(session, "BEGIN IMMEDIATE") {
        return all(error);
    }
    let mut answers = Vec::with_capacity(group.len());
    for work in group {
        let answer = write_within(session, &work.batch);
        if session.is_autocommit() {
            // SQLite has rolled the whole transaction back (a full disk, say).
            return all(DatabaseError::Unavailable("the transaction was rolled back".to_owned()));
        }
        answers.push(answer);
    }
    if let Err(error) = command(session, "COMMIT") {
        let _ = command(session, "ROLLBACK");
        return all(error);
    }
    answers
}
