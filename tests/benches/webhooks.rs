//! The delay of webhook deliveries, and the effect of hanging or failing receivers on the others. Run with
//! `cargo bench -p sidetone-tests --bench webhooks`; `SIDETONE_BENCH_ENFORCE=1` makes a missed bound
//! an error.
//!
//! The release binary runs in its own process and sends 10,000 events to 20 receivers in this one: first with healthy
//! receivers, then with one that hangs and one that fails, then the same with a SIGKILL in the
//! middle. Only the receivers that are healthy in all three are measured.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

const RECEIVERS: usize = 20;
const EVENTS: usize = 10_000;
const EMITTERS: usize = 4;
/// Receivers before this one may be unhealthy.
const FIRST_HEALTHY: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(120);
/// The allowed effect of unhealthy receivers on the others' 99th percentile: a factor and a margin.
const P99_FACTOR_MAX: f64 = 2.0;
const P99_MARGIN_MS: f64 = 50.0;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let well = Scene::new([ReceiverBehaviour::Status(200), ReceiverBehaviour::Status(200)])
        .run("20 receivers, all well", false);
    let ill = Scene::new([ReceiverBehaviour::Hang, ReceiverBehaviour::Status(500)])
        .run("one hangs, one fails", false);
    Scene::new([ReceiverBehaviour::Hang, ReceiverBehaviour::Status(500)])
        .run("the same, killed in the middle", true);
    let bound_ms = well * P99_FACTOR_MAX + P99_MARGIN_MS;
    let kept = ill <= bound_ms;
    println!(
        "p99 with the bad ones: {ill:.1} ms, bound {bound_ms:.1} ms: {}",
        if kept { "kept" } else { "MISSED" }
    );
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

struct Scene {
    folder: Folder,
    key: String,
    receivers: Vec<Receiver>,
}

/// By event id: the index of the receiver, and when the event was requested.
type Emitted = BTreeMap<String, (usize, Instant)>;

impl Scene {
    fn new(first: [ReceiverBehaviour; FIRST_HEALTHY]) -> Self {
        let manners = first.into_iter().chain(std::iter::repeat(ReceiverBehaviour::Status(200)));
        let receivers = manners.take(RECEIVERS).map(Receiver::start).collect();
        Self { folder: Folder::new(), key: bootstrap_key(1), receivers }
    }

    fn start(&self) -> Server {
        let settings =
            [("SIDETONE_BOOTSTRAP_KEYS", self.key.as_str()), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
        Server::start(&self.folder.path().join("data"), &settings)
    }

    /// Prints the results; returns the 99th percentile in milliseconds.
    fn run(&self, name: &str, kill: bool) -> f64 {
        let mut server = self.start();
        let webhooks: Vec<String> = self
            .receivers
            .iter()
            .map(|receiver| {
                let body = json!({"url": receiver.url(), "events": ["*"]});
                text(&server.connect(&self.key).expect(201, "POST", "/webhooks", Some(&body))["id"])
            })
            .collect();
        let began = Instant::now();
        let mut emitted = match kill {
            false => self.emit(&server, &webhooks, EVENTS),
            true => {
                let mut emitted = self.emit(&server, &webhooks, EVENTS / 2);
                server.kill();
                server = self.start();
                emitted.extend(self.emit(&server, &webhooks, EVENTS / 2));
                emitted
            }
        };
        let emitting = began.elapsed();
        emitted.retain(|_, (receiver, _)| *receiver >= FIRST_HEALTHY);
        let latencies = self.wait(&emitted);
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        println!(
            "{name:<34} {EVENTS} emitted in {:.1} s, {} of {} arrived where all is well, p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
            emitting.as_secs_f64(),
            latencies.len(),
            emitted.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
        server.kill();
        at(0.99)
    }

    fn emit(&self, server: &Server, webhooks: &[String], count: usize) -> Emitted {
        std::thread::scope(|scope| {
            let emitters: Vec<_> = (0..EMITTERS)
                .map(|emitter| {
                    let client = server.connect(&self.key);
                    scope.spawn(move || emit_some(client, webhooks, (emitter..count).step_by(EMITTERS)))
                })
                .collect();
            emitters.into_iter().flat_map(|one| one.join().expect("an emitter ends")).collect()
        })
    }

    /// Waits until every event has arrived; returns the sorted delays in milliseconds.
    fn wait(&self, emitted: &Emitted) -> Vec<f64> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let mut arrived: BTreeMap<String, Instant> = BTreeMap::new();
            for received in self.receivers[FIRST_HEALTHY..].iter().flat_map(Receiver::received) {
                arrived.entry(received.header("webhook-id").to_owned()).or_insert(received.at);
            }
            let missing = emitted.keys().filter(|id| !arrived.contains_key(*id)).count();
            if missing == 0 {
                let took = |(id, (_, asked)): (&String, &(usize, Instant))| {
                    (arrived[id] - *asked).as_secs_f64() * 1e3
                };
                let mut latencies: Vec<f64> = emitted.iter().map(took).collect();
                latencies.sort_by(f64::total_cmp);
                return latencies;
            }
            assert!(Instant::now() < deadline, "{missing} of {} events are lost", emitted.len());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn emit_some(mut client: Client, webhooks: &[String], numbers: impl Iterator<Item = usize>) -> Emitted {
    let mut emitted = Emitted::new();
    for number in numbers {
        let receiver = number % webhooks.len();
        let asked = Instant::now();
        let path = format!("/webhooks/{}/test", webhooks[receiver]);
        let delivery = client.expect(201, "POST", &path, Some(&json!({})));
        emitted.insert(text(&delivery["event_id"]), (receiver, asked));
    }
    emitted
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
