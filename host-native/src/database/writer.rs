//! Group commit: one thread owns the writing connection. While it waits for the disk, batches queue up, and the next
//! transaction contains all of them, so one fsync makes many batches durable. Each batch has a savepoint, so a failing
//! batch is rolled back alone.
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_engine::ports::DatabaseError;
use sidetone_engine::ports::statement::{Rows, Statement, asker, only_removes};
use tokio::sync::oneshot;

use super::connection::{Session, begin, command, truncate_log, write_one, write_within};
use super::reserve::Reserve;
use super::waiting_writes::{Closed, WaitingWrites};

/// Maximum number of batches in one transaction.
const GROUP_BATCHES_MAX: usize = 256;
/// When a transaction takes no further batch. Both limit how long the first one waits, and who comes next.
const GROUP_TIME: Duration = Duration::from_millis(20);

/// How often a full disk is looked at when nothing is to be written.
const REFILL: Duration = Duration::from_secs(2);
/// How long the write-ahead log keeps what was deleted.
const LOG_KEPT: Duration = Duration::from_secs(10);

type Answer = Result<Vec<Rows>, DatabaseError>;

struct Work {
    batch: Vec<Statement>,
    answer: oneshot::Sender<Answer>,
}

/// Work, and who asked for it.
type Asked = (Option<String>, Work);

/// The queue as the writing thread has it. When the thread ends, be it by a panic, whoever waits gets an answer.
struct Queue(Arc<WaitingWrites<Work>>);

impl Drop for Queue {
    fn drop(&mut self) {
        self.0.close();
        while self.0.next().is_some() {}
    }
}

/// A handle to the writing thread, which ends when the handle is dropped.
pub struct Writer {
    waiting: Arc<WaitingWrites<Work>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub fn start(session: Session, reserve: Arc<Reserve>) -> Self {
        let waiting = Arc::new(WaitingWrites::new());
        let queue = Queue(waiting.clone());
        let thread = std::thread::spawn(move || write_groups(&session, &queue.0, &reserve));
        Self { waiting, thread: Some(thread) }
    }

    /// Whether the thread runs.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Queues a batch; resolves when it is durable or has failed.
    pub fn write(&self, batch: Vec<Statement>) -> impl Future<Output = Answer> + use<> {
        let (answer, answered) = oneshot::channel();
        let asker = asker(&batch).map(str::to_owned);
        let queued = match self.is_running() {
            true => self.waiting.push(asker.as_deref(), Work { batch, answer }),
            false => Err("the writer is gone"),
        };
        let unavailable = |why: &str| DatabaseError::Unavailable(why.to_owned());
        async move {
            queued.map_err(unavailable)?;
            answered.await.unwrap_or_else(|_| Err(unavailable("the writer is gone")))
        }
    }
}

impl Drop for Writer {
    /// Waits until queued batches are written.
    fn drop(&mut self) {
        self.waiting.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_groups(session: &Session, waiting: &WaitingWrites<Work>, reserve: &Reserve) {
    let mut log = Log::default();
    loop {
        let found = waiting.next_within(log.wait().min(REFILL));
        log.empty_if_due(session);
        let first = match found {
            Ok(Some(first)) => first,
            Ok(None) => {
                make_room(session, reserve);
                continue;
            }
            Err(Closed) => return,
        };
        log.written();
        let mut group = vec![first];
        while group.len() < GROUP_BATCHES_MAX
            && let Some(next) = waiting.next()
        {
            group.push(next);
        }
        if !make_room(session, reserve) {
            group = removals(group);
        }
        let answers = write_group(session, &group);
        // Those for which there was no time.
        waiting.put_back(group.split_off(answers.len()).into_iter());
        // Those that found the disk full, deletes among them, are tried once more with the space of the reserve.
        let full =
            answers.iter().any(|answer| answer.as_ref().is_err_and(|error| reserve.release_after(error)));
        let mut again = Vec::new();
        for ((asker, work), answer) in group.into_iter().zip(answers) {
            match answer {
                Err(DatabaseError::Unavailable(_)) if full => again.push((asker, work)),
                // The requester may have been dropped.
                answer => drop(work.answer.send(answer)),
            }
        }
        let mut again = removals(again);
        let answers = write_group(session, &again);
        waiting.put_back(again.split_off(answers.len()).into_iter());
        for ((_, work), answer) in again.into_iter().zip(answers) {
            drop(work.answer.send(answer));
        }
    }
}

/// Whether everything can be written. On a full disk, tries to get the space for it back.
fn make_room(session: &Session, reserve: &Reserve) -> bool {
    if !reserve.has_room() {
        // What was deleted is in the log, too, until it is emptied.
        let _ = truncate_log(session);
    }
    reserve.refill()
}

/// The batches that remove something; the others are refused.
fn removals(group: Vec<Asked>) -> Vec<Asked> {
    let (kept, refused): (Vec<Asked>, Vec<Asked>) =
        group.into_iter().partition(|(_, work)| only_removes(&work.batch));
    for (_, work) in refused {
        let _ = work.answer.send(Err(DatabaseError::Unavailable("the disk is full".to_owned())));
    }
    kept
}

/// The answers of the first ones, for which there was time.
fn write_group(session: &Session, group: &[Asked]) -> Vec<Answer> {
    let batches: Vec<&[Statement]> = group.iter().map(|(_, work)| work.batch.as_slice()).collect();
    catch_panics(session, batches.len(), || match batches.as_slice() {
        [] => Vec::new(),
        [one] => vec![write_one(session, one)],
        many => write_together(session, many),
    })
}

/// When the write-ahead log is emptied next, so that it keeps nothing that was deleted.
#[derive(Default)]
struct Log {
    /// `None` while the log is empty.
    due: Option<Instant>,
}

impl Log {
    fn wait(&self) -> Duration {
        self.due.map_or(Duration::MAX, |due| due.saturating_duration_since(Instant::now()))
    }

    fn written(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + LOG_KEPT);
    }

    /// A reader may be in the way; then it is tried again later.
    fn empty_if_due(&mut self, session: &Session) {
        if self.due.is_some_and(|due| due <= Instant::now()) {
            let emptied = truncate_log(session).unwrap_or(false);
            self.due = (!emptied).then(|| Instant::now() + LOG_KEPT);
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

/// Writes batches of a group in one transaction, as many as there is time for. Results are returned only after a successful
/// commit.
fn write_together(session: &Session, group: &[&[Statement]]) -> Vec<Answer> {
    let together = || {
        begin(session)?;
        let (began, mut answers) = (Instant::now(), Vec::with_capacity(group.len()));
        for batch in group {
            answers.push(write_within(session, batch)?);
            if began.elapsed() >= GROUP_TIME {
                break;
            }
        }
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
