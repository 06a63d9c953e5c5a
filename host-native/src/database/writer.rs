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

use super::connection::{Session, begin, command, commit, truncate_log, write_one, write_within};
use super::reserve::Reserve;
use super::waiting_writes::{Closed, WaitingWrites, Weighed};
use crate::metrics::Metrics;

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

impl Weighed for Work {
    fn bytes(&self) -> u64 {
        self.batch.iter().map(Statement::bytes).sum()
    }
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
    pub fn start(session: Session, reserve: Arc<Reserve>, metrics: Arc<Metrics>) -> Self {
        let waiting = Arc::new(WaitingWrites::new());
        let queue = Queue(waiting.clone());
        let thread = std::thread::spawn(move || write_groups(&session, &queue.0, &reserve, &metrics));
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
        async move {
            match queued {
                Ok(()) => answered.await.unwrap_or_else(|_| unavailable("the writer is gone")),
                Err(why) => unavailable(why),
            }
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

fn write_groups(session: &Session, waiting: &WaitingWrites<Work>, reserve: &Reserve, metrics: &Metrics) {
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
        let has_room = make_room(session, reserve);
        let mut first = Some(first);
        let mut next = || {
            loop {
                let asked = first.take().or_else(|| waiting.next())?;
                if has_room || only_removes(&asked.1.batch) {
                    return Some(asked);
                }
                refuse(asked);
            }
        };
        let began = Instant::now();
        let written = write_group(session, waiting, GROUP_TIME, &mut next);
        if !written.is_empty() {
            metrics.committed(written.len(), began.elapsed());
        }
        // Those that found the disk full, deletes among them, are tried once more with the space of the reserve.
        let full = written
            .iter()
            .any(|(_, answer)| answer.as_ref().is_err_and(|error| reserve.release_after(error)));
        let mut again = Vec::new();
        for (asked, answer) in written {
            match answer {
                Err(DatabaseError::Unavailable(_)) if full && only_removes(&asked.1.batch) => {
                    again.push(asked)
                }
                Err(DatabaseError::Unavailable(_)) if full => refuse(asked),
                // The requester may have been dropped.
                answer => drop(asked.1.answer.send(answer)),
            }
        }
        let mut again = again.into_iter();
        for ((_, work), answer) in write_group(session, waiting, Duration::MAX, &mut || again.next()) {
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

/// The disk is full.
fn refuse((_, work): Asked) {
    let _ = work.answer.send(unavailable("the disk is full"));
}

/// Writes what `next` gives in one transaction, until `time` is over. A batch that comes alone needs no savepoint.
fn write_group(
    session: &Session,
    waiting: &WaitingWrites<Work>,
    time: Duration,
    next: &mut dyn FnMut() -> Option<Asked>,
) -> Vec<(Asked, Answer)> {
    let Some(first) = next() else { return Vec::new() };
    let mut group = Vec::new();
    let answers = match next() {
        None => catch_panics(session, || {
            group.push(first);
            charged(waiting, &group, |batch| write_one(session, batch)).into_iter().collect()
        }),
        Some(second) => {
            let mut two = [first, second].into_iter();
            let answers = catch_panics(session, || {
                let mut next = || two.next().or_else(&mut *next);
                write_together(session, waiting, time, &mut next, &mut group)
            });
            // Whoever was taken from the queue gets an answer, whatever became of the transaction.
            group.extend(two);
            answers
        }
    };
    let missing = std::iter::repeat_with(|| unavailable("the transaction was given up"));
    group.into_iter().zip(answers.into_iter().chain(missing)).collect()
}

/// Writes the last batch of a group, and charges its asker for the time.
fn charged<T>(
    waiting: &WaitingWrites<Work>,
    group: &[Asked],
    write: impl FnOnce(&[Statement]) -> T,
) -> Option<T> {
    let (asker, work) = group.last()?;
    let began = Instant::now();
    let written = write(&work.batch);
    waiting.charge(asker.as_deref(), began.elapsed());
    Some(written)
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

/// Runs `write`; a panic fails its group only, and the thread continues. It leaves no answers.
fn catch_panics(session: &Session, write: impl FnOnce() -> Vec<Answer>) -> Vec<Answer> {
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| {
        roll_back(session);
        Vec::new()
    })
}

/// If this fails, `begin` repeats it before the next write.
fn roll_back(session: &Session) {
    if !session.is_autocommit() {
        let _ = command(session, "ROLLBACK");
    }
}

fn unavailable(why: &str) -> Answer {
    Err(DatabaseError::Unavailable(why.to_owned()))
}

/// Writes batches in one transaction, as many as there is time for, and collects them in `group`. Each is taken when the
/// one before is written, so that whoever comes meanwhile has their turn. Results are returned only after a successful
/// commit.
fn write_together(
    session: &Session,
    waiting: &WaitingWrites<Work>,
    time: Duration,
    next: &mut dyn FnMut() -> Option<Asked>,
    group: &mut Vec<Asked>,
) -> Vec<Answer> {
    let mut together = || {
        begin(session)?;
        let (began, mut answers) = (Instant::now(), Vec::new());
        // The first two were taken from the queue already: they are written however long the first one takes.
        while group.len() < GROUP_BATCHES_MAX
            && (group.len() < 2 || began.elapsed() < time)
            && let Some(asked) = next()
        {
            group.push(asked);
            if let Some(written) = charged(waiting, group, |batch| write_within(session, batch)) {
                answers.push(written?);
            }
        }
        commit(session)?;
        Ok(answers)
    };
    together().unwrap_or_else(|error: DatabaseError| {
        roll_back(session);
        vec![unavailable(&format!("the transaction failed: {error:?}")); group.len()]
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

    fn asked(batch: &[Statement]) -> Asked {
        (None, Work { batch: batch.to_vec(), answer: oneshot::channel().0 })
    }

    fn write_all(session: &Session, batches: &[&[Statement]]) -> Vec<Answer> {
        write_within_time(session, GROUP_TIME, batches)
    }

    fn write_within_time(session: &Session, time: Duration, batches: &[&[Statement]]) -> Vec<Answer> {
        let mut batches = batches.iter().map(|batch| asked(batch));
        let written = write_group(session, &WaitingWrites::new(), time, &mut || batches.next());
        written.into_iter().map(|(_, answer)| answer).collect()
    }

    fn all_unavailable(answers: &[Answer], count: usize) {
        assert_eq!(answers.len(), count);
        assert!(answers.iter().all(|answer| matches!(answer, Err(DatabaseError::Unavailable(_)))));
    }

    #[test]
    fn a_failing_batch_is_rolled_back_alone() {
        let session = session();
        let answers = write_all(&session, &[&[insert(1)], &[insert(2), insert(1)], &[insert(3)]]);
        assert!(matches!(answers.as_slice(), [Ok(_), Err(DatabaseError::Constraint(_)), Ok(_)]));
        assert_eq!(count(&session), 2);
    }

    #[test]
    fn a_batch_that_cannot_be_rolled_back_fails_the_group() {
        for broken in ["RELEASE batch", "ROLLBACK"] {
            let session = session();
            let group: [&[Statement]; 3] =
                [&[insert(1)], &[sql!(broken), insert(2), insert(2)], &[insert(3)]];
            // The third is not begun: it waits for the next transaction.
            all_unavailable(&write_all(&session, &group), 2);
            assert!(session.is_autocommit(), "{broken}");
            assert!(write_all(&session, &[&[insert(4)], &[insert(5)]]).iter().all(Result::is_ok));
        }
        let session = session();
        write_all(&session, &[&[insert(1)], &[sql!("RELEASE batch"), insert(2), insert(2)]]);
        assert_eq!(count(&session), 0, "a partial batch was committed");
    }

    /// A busy machine takes the thread's time away in the middle of the first.
    #[test]
    fn both_batches_that_were_taken_are_answered_however_long_the_first_takes() {
        let session = session();
        let group: [&[Statement]; 3] = [&[insert(1)], &[insert(2)], &[insert(3)]];
        let answers = write_within_time(&session, Duration::ZERO, &group);
        assert_eq!(answers.len(), 2, "the third waits for the next transaction");
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(count(&session), 2);
        all_unavailable(&write_all(&session, &[&[sql!("ROLLBACK"), insert(4), insert(4)], &[insert(5)]]), 2);
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
        let mut batches = [asked(&[insert(1)]), asked(&[insert(2)])].into_iter();
        let mut next = || Some(batches.next().expect("deliberate"));
        let written = write_group(&session, &WaitingWrites::new(), GROUP_TIME, &mut next);
        let answers: Vec<Answer> = written.into_iter().map(|(_, answer)| answer).collect();
        all_unavailable(&answers, 2);
        assert!(write_one(&session, &[insert(2)]).is_ok());
        assert_eq!(count(&session), 1);
    }

    /// What comes while a transaction is written has its turn in it.
    #[test]
    fn who_comes_with_little_waits_for_no_more_than_a_batch() {
        let session = session();
        let waiting = WaitingWrites::new();
        let long: Vec<Statement> = (0..200).map(insert).collect();
        for n in 0..10 {
            let batch: Vec<Statement> = match n {
                0 => long.clone(),
                n => (0..200).map(|m| insert(1_000 * n + m)).collect(),
            };
            assert!(waiting.push(Some("greedy"), asked(&batch).1).is_ok());
        }
        let mut taken = 0;
        let mut next = || {
            taken += 1;
            if taken == 4 {
                assert!(waiting.push(Some("honest"), asked(&[insert(999_999)]).1).is_ok());
            }
            waiting.next()
        };
        let written = write_group(&session, &waiting, Duration::MAX, &mut next);
        let askers: Vec<_> = written.iter().map(|((asker, _), _)| asker.as_deref().unwrap()).collect();
        assert_eq!((askers.len(), askers[3]), (11, "honest"), "{askers:?}");
    }
}
