//! One round: a service with four carriers and two workspaces, load from all sides, and the kills.
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::base::limits::PHONE_QUEUE_MS;
use sidetone_tests::Choices;
use sidetone_tests::fakes::carrier::{CarrierServer, Carriers, PROVIDERS};
use sidetone_tests::process::{Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::clients::{self, Ordered};
use crate::log::Log;
use crate::phones::{self, Played};

const KILLS: u64 = 5;
/// How long to wait for an expected event.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than any wait for a carrier and any lease of a conversation.
const AGE_MS: i64 = PHONE_QUEUE_MS + 20_000;

/// The state shared by all participants of a round.
pub struct Round {
    pub carriers: &'static Carriers,
    pub keys: [String; 2],
    pub desks: Vec<Desk>,
    /// The current or last address of the service.
    address: Mutex<SocketAddr>,
    kills_left: AtomicU64,
    /// Orders without a response from their carrier, since the last kill.
    pub held: AtomicUsize,
    /// Callbacks about to be sent.
    pub sending: AtomicUsize,
    /// The number of callbacks that were not accepted and were repeated.
    pub sent_again: AtomicUsize,
    pub ordered: Mutex<Vec<Ordered>>,
    pub played: Mutex<Vec<Played>>,
}

/// A number at a carrier, bound to an assistant of a workspace.
pub struct Desk {
    pub workspace: usize,
    pub carrier: &'static CarrierServer,
    pub number: String,
    pub assistant: String,
}

impl Round {
    pub fn address(&self) -> SocketAddr {
        *lock(&self.address)
    }

    /// Whether there will be another kill.
    pub fn will_be_killed(&self) -> bool {
        self.kills_left.load(Ordering::SeqCst) > 0
    }

    fn serves(&self, server: &Server) {
        *lock(&self.address) = server.address();
        self.carriers.serve(server.address());
    }

    /// Waits for the moment of the next kill and returns its description: any time; while a carrier holds an order; as soon as
    /// a carrier has an order; as soon as a callback is sent.
    fn moment(&self, choices: &mut Choices) -> &'static str {
        let requests = || self.carriers.iter().map(CarrierServer::count).sum::<usize>();
        let held = || self.held.load(Ordering::SeqCst);
        let sending = || self.sending.load(Ordering::SeqCst);
        sleep_us(choices.below(150_000));
        match choices.below(4) {
            0 => {
                sleep_us(choices.below(250_000));
                "any"
            }
            1 => {
                wait_for(|| held() > 0);
                sleep_us(choices.below(20_000));
                "held"
            }
            2 => {
                let before = requests();
                wait_for(|| requests() > before);
                sleep_us(choices.below(2_500));
                "ordered"
            }
            _ => {
                let before = sending();
                wait_for(|| sending() > before);
                sleep_us(choices.below(4_000));
                "callback"
            }
        }
    }
}

/// Plays and checks a round; returns a summary line.
pub fn run(seed: u64) -> String {
    let mut choices = Choices(seed);
    let folder = Folder::new();
    let data = folder.path().join("data");
    let keys = [bootstrap_key(9), bootstrap_key(10)];
    let carriers = Carriers::shared();
    let mut settings = carriers.settings();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", keys.join(",")));
    // The test itself takes the processor.
    settings.push(("SIDETONE_LATE_PERCENT", "100".to_owned()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let webhook = Receiver::start(ReceiverBehaviour::Status(204));
    let mut server = Server::start(&data, &settings);
    let desks = (0..keys.len()).flat_map(|workspace| desks(&server, &keys, workspace, &webhook)).collect();
    let round = Round {
        carriers,
        keys,
        desks,
        address: Mutex::new(server.address()),
        kills_left: AtomicU64::new(KILLS),
        held: AtomicUsize::new(0),
        sending: AtomicUsize::new(0),
        sent_again: AtomicUsize::new(0),
        ordered: Mutex::default(),
        played: Mutex::default(),
    };
    round.serves(&server);
    let mut moments = Vec::new();
    server = std::thread::scope(|scope| {
        for (desk, nth) in round.desks.iter().zip(1_u64..) {
            let [orders, calls] =
                [2 * nth, 2 * nth + 1].map(|nth| Choices(seed ^ nth.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let round = &round;
            scope.spawn(move || clients::run(scope, round, desk, orders));
            scope.spawn(move || phones::call_in(round, desk, calls));
        }
        for _ in 0..KILLS {
            moments.push(round.moment(&mut choices));
            server.kill();
            round.held.store(0, Ordering::SeqCst);
            round.kills_left.fetch_sub(1, Ordering::SeqCst);
            server = Server::start(&data, &settings);
            round.serves(&server);
        }
        server
    });
    clients::ask_again(&round);
    let log = Log::read(&round);
    log.check_orders(&round);
    log.check_told(&round);
    // Advances the time, so that calls without further reports are settled.
    server.kill();
    age(&data);
    server = Server::start(&data, &settings);
    round.serves(&server);
    let log = Log::settled(&round);
    log.check_orders(&round);
    log.check_ends(&round);
    let requests = log.check_events(&webhook);
    assert!(server.stop().success(), "the server stops cleanly");
    nothing_is_left(&data);
    let (ordered, played) = (lock(&round.ordered), lock(&round.played));
    let unsettled: Vec<&Ordered> = ordered.iter().filter(|order| order.status() == Some(409)).collect();
    let had = |order: &&&Ordered| !carriers.get(order.provider).orders(&order.to).is_empty();
    format!(
        "killed at {moments:?}: {} keys in {} requests, {} died between intent and answer, {} of them at the carrier; {} \
         phones, {} callbacks went out again; {} calls, {requests} event requests",
        ordered.len(),
        ordered.iter().map(|order| order.tries).sum::<usize>(),
        unsettled.len(),
        unsettled.iter().filter(had).count(),
        played.len(),
        round.sent_again.load(Ordering::SeqCst),
        log.count(),
    )
}

/// The numbers of a workspace, one at each carrier, all bound to one assistant.
fn desks(server: &Server, keys: &[String; 2], workspace: usize, webhook: &Receiver) -> Vec<Desk> {
    let mut client = server.connect(&keys[workspace]);
    client.expect(201, "POST", "/webhooks", Some(&json!({"url": webhook.url(), "events": ["*"]})));
    let assistant = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello!",
                           "model": "builtin/rules", "voice": "builtin/tone"});
    let assistant = text(&client.expect(201, "POST", "/assistants", Some(&assistant))["id"]);
    let mut bind = |provider: &&str| {
        let number = phones::a_number("0000");
        let body = json!({"assistant_id": assistant, "provider": provider});
        let path = format!("/numbers/{number}");
        let bound = client.send("PUT", &path, &[], Some(&body)).expect("the server answers");
        assert!(matches!(bound.status, 200 | 201), "{bound:?}");
        let carrier = Carriers::shared().get(provider);
        Desk { workspace, carrier, number, assistant: assistant.clone() }
    };
    PROVIDERS.iter().map(&mut bind).collect()
}

/// Makes the jobs of calls due, while the service is down.
fn age(data: &Path) {
    let file = database(data);
    let sql = "UPDATE jobs SET due_at = MAX(0, due_at - ?1) WHERE kind = 'live_call'";
    file.execute(sql, [AGE_MS]).expect("jobs have a time");
}

/// No call counts as active, and no call has a job.
fn nothing_is_left(data: &Path) {
    let file = database(data);
    for left in ["phone_calls WHERE is_over = 0", "jobs WHERE kind = 'live_call'"] {
        let count = file.query_row(&format!("SELECT COUNT(*) FROM {left}"), [], |row| row.get::<_, i64>(0));
        assert_eq!(count.expect("a count"), 0, "{left}");
    }
}

fn database(data: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(data.join("sidetone.db")).expect("the database opens")
}

fn wait_for(mut there: impl FnMut() -> bool) {
    let started = Instant::now();
    while !there() && started.elapsed() < Duration::from_millis(500) {
        sleep_us(200);
    }
}

fn sleep_us(us: u64) {
    std::thread::sleep(Duration::from_micros(us));
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread has panicked")
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}
