//! A call log in a database file, with the calls of a busy workspace over a year.
use std::sync::Arc;
use std::time::Instant;

use sidetone::Sandbox;
use sidetone::database::Sqlite;
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::ids::{AssistantId, CallId, Id as _, WorkspaceId};
use sidetone_engine::base::time::Timestamp;
use sidetone_engine::base::values::{Metadata, Variables};
use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::conversation::{CallFault, EndedReason, Outcome, Sentiment};
use sidetone_engine::engine::PreparedResponse;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_engine::speech::turn_times::TurnTimes;
use sidetone_engine::sql;
use sidetone_engine::storage::calls::{
    Analysis, AnalysisMethod, CallStatus, Costs, Direction, EndedCall, NewCall, Source, Usage, write,
};
use sidetone_tests::process::Folder;

/// The number of assistants.
pub const ASSISTANTS: u64 = 20;
/// 2025-01-01T00:00:00Z
const FIRST_DAY_MS: i64 = 1_735_689_600_000;
const YEAR_MS: i64 = 365 * 86_400_000;
/// Lines per transcript.
const LINES: usize = 10;
/// Calls per batch while filling the log.
const FILLED_AT_ONCE: usize = 2_000;
/// The number of calls that contain the selective word, whatever the size of the log.
const SELECTIVE_CALLS: usize = 5;

/// A call log and the engine that queries it.
pub struct CallLog {
    sandbox: Arc<Sandbox>,
    key: String,
    database: Arc<Blocking>,
    workspace_id: String,
    calls: usize,
    /// Where the numbers in its calls' ids begin: ids are unique in the database.
    first: usize,
    /// The number of calls in the year.
    planned: usize,
    random: Random,
    /// Must outlive the database in it.
    _folder: Arc<Folder>,
}

impl CallLog {
    /// Creates a log of this size, the first one of its database.
    pub fn filled(calls: usize) -> Self {
        let folder = Folder::new();
        let database = Sqlite::open(&folder.path().join("sidetone.db"), 0).expect("a database file");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let database = Arc::new(Blocking { database, runtime: std::sync::Mutex::new(runtime) });
        let sandbox = Arc::new(Sandbox::over(database.clone(), &[]));
        let key = sandbox.key().to_owned();
        let mut log = Self::of_key(key, sandbox, database, Arc::new(folder));
        log.planned = calls;
        let started = Instant::now();
        log.write(calls, FILLED_AT_ONCE);
        let time = started.elapsed().as_secs_f64();
        if calls > 0 {
            println!("{calls} calls written in {time:.1} s: {:.0} calls/s", calls as f64 / time);
        }
        log
    }

    /// The log of another workspace in the same database.
    pub fn neighbour(&self, calls: usize) -> Self {
        let key = self.sandbox.create_workspace("neighbour");
        let mut log = Self::of_key(key, self.sandbox.clone(), self.database.clone(), self._folder.clone());
        (log.planned, log.first) = (calls, 1_000_000_000);
        log.write(calls, FILLED_AT_ONCE);
        log
    }

    fn of_key(key: String, sandbox: Arc<Sandbox>, database: Arc<Blocking>, folder: Arc<Folder>) -> Self {
        let hash = ApiKey::parse(&key).expect("a key").sha256_hex();
        let rows = sidetone::sandbox::block_on(
            database.read(vec![sql!("SELECT workspace_id FROM api_keys WHERE hash = :hash", hash = hash)]),
        );
        let workspace_id = rows.unwrap()[0].first().unwrap().text("workspace_id").unwrap();
        Self {
            sandbox,
            key,
            database,
            workspace_id,
            calls: 0,
            first: 0,
            planned: 0,
            random: Random(42),
            _folder: folder,
        }
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Requests a list; returns the response time.
    pub fn ask_us(&self, query: &str) -> f64 {
        let request = http::Request::get(format!("/calls?{query}"))
            .header("authorization", format!("Bearer {}", self.key));
        let request = request.body(Default::default()).expect("a request");
        let started = Instant::now();
        let outcome = sidetone::sandbox::block_on(self.sandbox.engine().handle(request, None));
        let time = started.elapsed().as_secs_f64() * 1e6;
        let PreparedResponse::Complete(response) = outcome else { panic!("{query}: a blob") };
        let (reply, _) = response.into_parts();
        assert_eq!(reply.status(), 200, "{query}: {:?}", reply.body());
        time
    }

    /// Writes finished calls, `at_once` in each batch.
    pub fn write(&mut self, calls: usize, at_once: usize) {
        let mut left = calls;
        while left > 0 {
            let batch = left.min(at_once);
            let mut statements = Vec::with_capacity(batch * 5);
            for _ in 0..batch {
                let (new, ended, analysis) = self.next();
                statements.extend(write::record(&new, Some(&ended), analysis.as_ref()));
            }
            self.commit(statements);
            left -= batch;
        }
    }

    /// Writes calls as they happen: begin, end and analysis in separate batches.
    pub fn live(&mut self, calls: usize) {
        for _ in 0..calls {
            let (new, ended, analysis) = self.next();
            self.commit(write::insert(&new));
            self.commit(write::end(&new.workspace_id, &new.id, &ended, None));
            if let Some(analysis) = analysis {
                self.commit(write::analyzed(&new.workspace_id, &new.id, &analysis));
            }
        }
    }

    fn commit(&self, statements: Vec<Statement>) {
        sidetone::sandbox::block_on(self.database.write(statements)).expect("calls can be written");
    }

    fn next(&mut self) -> (NewCall, EndedCall, Option<Analysis>) {
        let n = self.calls;
        self.calls += 1;
        let random = &mut self.random;
        let assistant = random.below(ASSISTANTS);
        let source = match random.below(100) {
            0..60 => Source::Inbound,
            60..85 => Source::Outbound,
            85..90 => Source::Browser,
            _ => Source::Simulation,
        };
        let outcome = match random.below(100) {
            0..70 => Outcome::Completed,
            70..82 => Outcome::NoAnswer,
            82..90 => Outcome::Voicemail,
            90..95 => Outcome::Busy,
            95..99 => Outcome::Failed,
            _ => Outcome::Canceled,
        };
        let talked = outcome == Outcome::Completed;
        let sentiment = match random.below(100) {
            0..30 => Sentiment::Positive,
            30..75 => Sentiment::Neutral,
            75..90 => Sentiment::Negative,
            _ => Sentiment::Unknown,
        };
        // Calls arrive approximately in order, also after the year.
        let started_at =
            FIRST_DAY_MS + (n as i64 * (YEAR_MS / self.planned as i64)) + random.below(30_000) as i64;
        let duration_ms = if talked { 5_000 + random.below(600_000) as i64 } else { 0 };
        let telephone = matches!(source, Source::Inbound | Source::Outbound);
        let number = |random: &mut Random| telephone.then(|| format!("+1415{:07}", random.below(10_000_000)));
        let new = NewCall {
            workspace_id: WorkspaceId::from_stored(self.workspace_id.clone()),
            id: CallId::from_stored(format!("call_{:026}", self.first + n)),
            assistant_id: AssistantId::from_stored(format!("asst_{assistant}")),
            assistant_revision: 1,
            source,
            direction: if source == Source::Outbound { Direction::Outbound } else { Direction::Inbound },
            status: CallStatus::InProgress,
            from: number(random),
            to: number(random),
            user_number: None,
            provider: None,
            carrier_call_id: telephone.then(|| format!("CA{:032x}", n)),
            model: format!("example/{}", assistant % 4),
            voice: format!("example/{}", assistant % 5),
            started_at: Timestamp::from_ms(started_at),
            answered_at: None,
            simulation_run_id: None,
            snapshot: None,
            variables: Variables::default(),
            metadata: Metadata::default(),
        };
        let selective = n.is_multiple_of((self.planned / SELECTIVE_CALLS).max(1));
        let transcript = if talked || selective { transcript(random, selective) } else { Vec::new() };
        let ended = EndedCall {
            answered_at: talked.then_some(Timestamp::from_ms(started_at + 4_000)),
            ended_at: Timestamp::from_ms(started_at + 4_000 + duration_ms),
            duration_ms,
            outcome,
            ended_reason: Some(EndedReason::UserHungUp),
            fault: CallFault::None,
            transcript,
            turns: if talked { turns(random) } else { Vec::new() },
            costs: Costs::of(duration_ms / 10, duration_ms / 20, duration_ms / 15, duration_ms / 12),
            usage: Usage { llm_input_tokens: 4_000, llm_output_tokens: 300, llm_uncounted_answers: 0 },
        };
        let analysis = talked.then(|| Analysis {
            summary: random.line(12),
            sentiment,
            outcome: None,
            method: AnalysisMethod::Model,
        });
        (new, ended, analysis)
    }
}

fn transcript(random: &mut Random, selective: bool) -> Vec<TranscriptRow> {
    (0..LINES)
        .map(|index| {
            let role = if index % 2 == 0 { TranscriptRole::Assistant } else { TranscriptRole::User };
            let mut text = random.line(9);
            if selective && index == 3 {
                text.push_str(" Zanzibar");
            }
            let at = index as i64 * 4_000;
            TranscriptRow::new(index, role, text, at, at + 3_500)
        })
        .collect()
}

/// The times of the caller's turns: answered after half a second to three seconds.
fn turns(random: &mut Random) -> Vec<TurnTimes> {
    let turn = |index| {
        let end_ms = index as i64 * 8_000 + 7_500;
        let heard_first_ms = Some(end_ms + 500 + random.below(2_500) as i64);
        TurnTimes { end_of_speech_ms: Some(end_ms), heard_first_ms, ..TurnTimes::default() }
    };
    (0..LINES / 2).map(turn).collect()
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Words with a skewed distribution: a few are frequent, most are rare.
    fn line(&mut self, words: usize) -> String {
        const SYLLABLES: [&str; 12] =
            ["ba", "ko", "li", "mu", "ne", "ra", "so", "ti", "vu", "we", "ya", "cho"];
        let mut line = String::new();
        for _ in 0..words {
            let (common, rare) = (self.below(100), self.below(20_000));
            let mut word = if self.below(4) == 0 { rare + 1_000 } else { common * common / 100 };
            while word > 0 {
                line.push_str(SYLLABLES[(word % 12) as usize]);
                word /= 12;
            }
            line.push_str("n ");
        }
        line
    }
}

/// A database file with blocking reads and writes.
struct Blocking {
    database: Sqlite,
    runtime: std::sync::Mutex<tokio::runtime::Runtime>,
}

impl Database for Blocking {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        // Long reads run on other threads, which need a runtime.
        let read = self.runtime.lock().unwrap().block_on(self.database.read(batch));
        Box::pin(async move { read })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        let written = self.runtime.lock().unwrap().block_on(self.database.write(batch));
        Box::pin(async move { written })
    }
}
