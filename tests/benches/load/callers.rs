//! Callers who say something every eight seconds, and what they notice.
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidetone_tests::compare::{cpu_s, memory_kb};
use tokio::task::{LocalSet, spawn_blocking, spawn_local};

use crate::line::{Chunk, Line, Lines, Speech};
use crate::speech_stand_in::{Exchange, Service, StandIn, turn};
use crate::workers::{Answered, Worker};

/// From the beginning of one turn to that of the next.
pub const TURN: Duration = Duration::from_secs(8);
/// A frame that arrives so much after it was due is late.
pub const LATE: Duration = Duration::from_millis(60);
const FRAME: Duration = Duration::from_millis(20);
/// Calls are set up, and ended, by so many threads.
const SET_UP_AT_ONCE: usize = 16;
/// Errors that are kept.
const SHOWN: usize = 5;

/// How the load is made.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub calls: usize,
    /// The number of the first one.
    pub first: usize,
    /// In which the calls begin, one after the other.
    pub ramp: Duration,
    /// What is measured begins so long after the first call, and lasts so long.
    pub after: Duration,
    pub measured: Duration,
}

impl Plan {
    /// All begin within two turns' time; six turns of each are measured once every call has had one.
    pub fn steady(calls: usize) -> Self {
        Self { calls, first: 0, ramp: TURN * 2, after: TURN * 4, measured: TURN * 6 }
    }
}

/// What was measured.
#[derive(Default)]
pub struct Measured {
    /// Calls that were answered, and those that were declined.
    pub taken: usize,
    pub declined: usize,
    /// From the end of what the caller said to the first audio of the answer.
    pub replies: Vec<Duration>,
    /// Of that, what is neither the transcriber's, the model's nor the voice's.
    pub shares: Vec<Duration>,
    /// Frames of 20 ms that arrived, how many of them were late, and by how much the latest one.
    pub frames: u64,
    pub late: u64,
    pub latest: Duration,
    pub cpu_s_per_call_minute: f64,
    pub kb_per_call: u64,
    /// Cores that the process, and this program with its callers and providers, kept busy.
    pub cores: f64,
    pub generator_cores: f64,
    /// How late frames to the process were sent.
    pub sent_late: Vec<Duration>,
    pub errors: usize,
    pub shown: Vec<String>,
}

impl Measured {
    pub fn late_percent(&self) -> f64 {
        self.late as f64 / self.frames.max(1) as f64 * 100.0
    }

    fn error(&mut self, error: String) {
        self.errors += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(error);
        }
    }
}

struct Scene {
    worker: Arc<dyn Worker>,
    stand_in: Arc<StandIn>,
    lines: Rc<Lines>,
    places: tokio::sync::Semaphore,
    from: Instant,
    until: Instant,
    measured: RefCell<Measured>,
}

/// Plays it.
pub fn play(worker: Arc<dyn Worker>, stand_in: Arc<StandIn>, speech: Speech, plan: Plan) -> Measured {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(SET_UP_AT_ONCE)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    LocalSet::new().block_on(&runtime, async {
        let idle_kb = memory_kb(worker.pid());
        let began = Instant::now();
        let scene = Rc::new(Scene {
            worker,
            stand_in,
            lines: Lines::new(speech),
            places: tokio::sync::Semaphore::new(SET_UP_AT_ONCE),
            from: began + plan.after,
            until: began + plan.after + plan.measured,
            measured: RefCell::default(),
        });
        let begin = |nth| began + plan.ramp.mul_f64(nth as f64 / plan.calls as f64);
        let callers: Vec<_> = (0..plan.calls)
            .map(|nth| spawn_local(scene.clone().call(plan.first + nth, begin(nth))))
            .collect();
        let pids = [scene.worker.pid(), std::process::id()];
        tokio::time::sleep_until(scene.from.into()).await;
        scene.lines.take_late();
        let before = pids.map(cpu_s);
        tokio::time::sleep_until(scene.until.into()).await;
        let after = pids.map(cpu_s);
        let sent_late = scene.lines.take_late();
        let grown_kb = memory_kb(scene.worker.pid()).saturating_sub(idle_kb);
        for (call, caller) in callers.into_iter().enumerate() {
            if let Err(error) = caller.await {
                scene.measured.borrow_mut().error(format!("call {call}: {error}"));
            }
        }
        let mut measured = scene.measured.take();
        let seconds = plan.measured.as_secs_f64();
        let [own, generator] = [0, 1].map(|which| after[which] - before[which]);
        let taken = measured.taken.max(1);
        measured.cpu_s_per_call_minute = own / (taken as f64 * seconds / 60.0);
        measured.kb_per_call = grown_kb / taken as u64;
        (measured.cores, measured.generator_cores) = (own / seconds, generator / seconds);
        measured.sent_late = sent_late;
        measured
    })
}

impl Scene {
    /// One call, until everything is measured.
    async fn call(self: Rc<Self>, call: usize, begin: Instant) {
        tokio::time::sleep_until(begin.into()).await;
        let Some(answered) = self.answered(call).await else {
            self.measured.borrow_mut().declined += 1;
            return;
        };
        self.measured.borrow_mut().taken += 1;
        let socket = answered.socket.try_clone().expect("a socket has copies");
        let line = self.lines.open(socket, &answered.opening).expect("the socket is open");
        let mut next = begin + TURN;
        for nth in 0.. {
            if next + TURN > self.until {
                break;
            }
            tokio::time::sleep_until(next.into()).await;
            line.take_heard();
            line.say();
            let began = next;
            next += TURN;
            tokio::time::sleep_until((next - FRAME).into()).await;
            if line.is_over() {
                self.measured.borrow_mut().error(format!("call {call}: the line is closed"));
                break;
            }
            let heard = line.take_heard();
            if began >= self.from {
                self.judge(&turn(call, nth), &line, &heard);
            }
        }
        tokio::time::sleep_until(self.until.into()).await;
        line.close();
        let _place = self.places.acquire().await;
        spawn_blocking(|| answered.over()).await.expect("the end of the call is reported");
    }

    async fn answered(&self, call: usize) -> Option<Answered> {
        let _place = self.places.acquire().await;
        let worker = self.worker.clone();
        spawn_blocking(move || worker.answer(call)).await.expect("the call is answered or declined")
    }

    /// Adds an answer. A frame is due when the frame before it was played, and the first one when the provider of the voice had
    /// handed it over; without a provider, when it arrived.
    fn judge(&self, turn: &str, line: &Line, heard: &[Chunk]) {
        let mut measured = self.measured.borrow_mut();
        let Some(first) = heard.first().map(|chunk| chunk.at) else {
            measured.error(format!("{turn}: no answer"));
            return;
        };
        measured.replies.push(first.saturating_duration_since(line.said_at()));
        let exchange = |service| self.stand_in.exchange(turn, service);
        let all = [Service::Transcriber, Service::Model, Service::Voice].map(exchange);
        if let [Some(transcriber), Some(model), Some(voice)] = all {
            let share = since(model.asked, transcriber) + since(voice.asked, model) + since(first, voice);
            measured.shares.push(share);
        }
        let handed_over = all[2].map_or(first, |voice| voice.answered);
        for chunk in heard {
            for frame in 0..chunk.ms.div_ceil(FRAME.as_millis() as u64) {
                let from = Duration::from_millis(chunk.from_ms) + FRAME * u32::try_from(frame).unwrap_or(0);
                let late = chunk.at.saturating_duration_since(handed_over + from);
                measured.frames += 1;
                measured.late += u64::from(late > LATE);
                measured.latest = measured.latest.max(late);
            }
        }
    }
}

fn since(later: Instant, exchange: Exchange) -> Duration {
    later.saturating_duration_since(exchange.answered)
}
