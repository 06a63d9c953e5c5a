//! Five hundred calls that ring at once, spread over the carriers, with all their callbacks.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_tests::compare::cpu_s;
use sidetone_tests::fakes::carrier::{CallEvent, CallbackRequest, CarrierServer, EndKind, PhoneCall, Wire};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};

use crate::callbacks::{self, Line, Sent, callback};
use crate::desk::{self, quantile_us, wires};

/// Concurrent calls.
const CALLS: usize = 500;
/// Concurrent orders.
const PLACERS: usize = 16;
/// Concurrent connections for callbacks.
const LINES: usize = 32;
/// One in this many callbacks is sent twice.
const DOUBLED: usize = 3;
/// The maximum number of printed errors.
const SHOWN: usize = 10;

/// How calls end, and the expected outcome in the call log. Calls that were answered but never connected have failed.
const ENDS: [(EndKind, &str); 5] = [
    (EndKind::NoAnswer, "no_answer"),
    (EndKind::Busy, "busy"),
    (EndKind::Declined, "busy"),
    (EndKind::Failed, "failed"),
    (EndKind::HungUp, "failed"),
];

/// Prints the results; returns the number of errors.
pub fn measure() -> usize {
    let folder = Folder::new();
    let key = bootstrap_key(1);
    let server = callbacks::start(&folder.path().join("data"), &key);
    let (assistant_id, numbers) = desk::desk(&mut server.connect(&key), CALLS);
    let scene = Scene { server, key, assistant_id, numbers, carriers: wires() };
    let errors = scene.run();
    assert!(scene.server.stop().success(), "the server stops cleanly");
    errors
}

struct Scene {
    server: Server,
    key: String,
    assistant_id: String,
    /// One number per carrier.
    numbers: Vec<String>,
    carriers: [(&'static CarrierServer, Arc<dyn Wire>); 4],
}

impl Scene {
    fn run(&self) -> usize {
        println!(
            "{CALLS} calls that ring at once, on {} cores",
            std::thread::available_parallelism().map_or(0, usize::from)
        );
        println!("{:<44} {:>6} {:>8} {:>10} {:>10} {:>7}", "", "", "a second", "p50 ms", "p99 ms", "errors");
        let mut errors = Vec::new();
        let cpu = cpu_s(self.server.pid());
        let welcome = self.server.log().lines().count();
        let began = Instant::now();
        let (calls, placed, rung) = self.place();
        let placing = began.elapsed();
        row(&format!("orders, {PLACERS} at a time"), &placed, placing, &mut errors);
        row("callbacks meanwhile: it rings", &rung, placing, &mut errors);
        self.all_ring(&mut errors);

        let answered = [CallEvent::Answered, CallEvent::Asked];
        let answered = self.callbacks(&calls, |nth| match ends(nth).0 {
            EndKind::HungUp => answered.to_vec(),
            _ => Vec::new(),
        });
        let (sent, time) = deliver(self.server.address(), &answered);
        row(&format!("callbacks, {LINES} at a time: it is answered"), &sent, time, &mut errors);

        let over = self.callbacks(&calls, |nth| {
            let (how, seconds) = (ends(nth).0, u32::from(ends(nth).0 == EndKind::HungUp));
            vec![CallEvent::Ended { how, seconds }, CallEvent::Priced { seconds }]
        });
        let (sent, time) = deliver(self.server.address(), &over);
        row(&format!("callbacks, {LINES} at a time: it is over"), &sent, time, &mut errors);
        let (cpu, time) = (cpu_s(self.server.pid()) - cpu, began.elapsed());
        println!(
            "  {:.2} cores busy, {:.1} ms of CPU a call",
            cpu / time.as_secs_f64(),
            cpu * 1e3 / CALLS as f64
        );

        self.all_are_over(&calls, &mut errors);
        let complaints = |line: &&str| [" ERROR ", " WARN "].iter().any(|level| line.contains(level));
        errors.extend(self.server.log().lines().skip(welcome).filter(complaints).map(str::to_owned));
        for error in errors.iter().take(SHOWN) {
            println!("  {error}");
        }
        errors.len()
    }

    /// Places the calls. Each rings as soon as its carrier has the order, which may be before the service has read the carrier's
    /// response.
    fn place(&self) -> (Vec<Placed>, Vec<Sent>, Vec<Sent>) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..PLACERS)
                .map(|placer| {
                    let mine = move || (placer..CALLS).step_by(PLACERS);
                    let orders = scope.spawn(move || {
                        let mut client = self.server.connect(&self.key);
                        mine().map(|nth| self.order(&mut client, nth)).collect::<Vec<_>>()
                    });
                    let rings = scope.spawn(move || {
                        let mut line = Line::new(self.server.address());
                        mine().map(|nth| self.ring(&mut line, nth)).collect::<Vec<_>>()
                    });
                    (orders, rings)
                })
                .collect();
            let (mut calls, mut placed, mut rung) = (Vec::new(), Vec::new(), Vec::new());
            for (orders, rings) in threads {
                let orders = orders.join().expect("orders are answered");
                for ((id, order), (nth, call, sent)) in
                    orders.into_iter().zip(rings.join().expect("it rings"))
                {
                    calls.push(Placed { nth, id, call });
                    placed.push(order);
                    rung.extend(sent);
                }
            }
            (calls, placed, rung)
        })
    }

    fn order(&self, client: &mut Client, nth: usize) -> (String, Sent) {
        let body = json!({"assistant_id": self.assistant_id, "to": to(nth), "from": self.numbers[nth % 4]});
        let began = Instant::now();
        let answer = client.send("POST", "/calls/outbound", &[], Some(&body)).expect("the server answers");
        let time = began.elapsed();
        let problem =
            (answer.status != 201).then(|| format!("{}: {} {}", to(nth), answer.status, answer.json));
        (answer["id"].as_str().unwrap_or_default().to_owned(), Sent { time, problem })
    }

    fn ring(&self, line: &mut Line, nth: usize) -> (usize, PhoneCall, Vec<Sent>) {
        let (carrier, wire) = &self.carriers[nth % 4];
        let call = carrier.rings(&to(nth)).call().clone();
        let rings = callback(&**wire, &call, &CallEvent::Ringing, 0).expect("the carrier reports ringing");
        let times = if nth.is_multiple_of(DOUBLED) { 2 } else { 1 };
        let sent = (0..times).map(|_| line.send(&rings)).collect();
        (nth, call, sent)
    }

    /// The callbacks for these events, some of them twice in a row and thus concurrently on two connections.
    fn callbacks(&self, calls: &[Placed], events: impl Fn(usize) -> Vec<CallEvent>) -> Vec<CallbackRequest> {
        let mut all = Vec::new();
        for placed in calls {
            let wire = &*self.carriers[placed.nth % 4].1;
            let mut told = 1;
            for event in events(placed.nth) {
                let Some(request) = callback(wire, &placed.call, &event, told) else { continue };
                told += 1;
                let times = if placed.nth.is_multiple_of(DOUBLED) { 2 } else { 1 };
                all.extend(std::iter::repeat_n(request, times));
            }
        }
        all
    }

    fn all_ring(&self, errors: &mut Vec<String>) {
        let rows = self.log();
        errors.extend(differing(&rows, "status", |_| "ringing"));
        if rows.len() != CALLS {
            errors.push(format!("{} calls are in the call log", rows.len()));
        }
        if self.would_place_one_more() {
            errors.push("calls that ring are not counted".to_owned());
        }
    }

    /// The expected outcome in the call log.
    fn outcome(&self, nth: usize) -> &'static str {
        match ends(nth) {
            // These two carriers report that the person hung up before the conversation.
            (EndKind::HungUp, _) if ["telnyx", "plivo"].contains(&self.carriers[nth % 4].0.provider()) => {
                "canceled"
            }
            (_, outcome) => outcome,
        }
    }

    fn all_are_over(&self, calls: &[Placed], errors: &mut Vec<String>) {
        let rows = self.log();
        errors.extend(differing(&rows, "status", |_| "ended"));
        let nth = |row: &Value| calls.iter().find(|placed| row["id"] == *placed.id).map(|placed| placed.nth);
        errors.extend(differing(&rows, "outcome", |row| {
            nth(row).map_or("(unknown call)", |nth| self.outcome(nth))
        }));
        if rows.len() != CALLS {
            errors.push(format!("{} calls are in the call log", rows.len()));
        }
        for nth in 0..CALLS {
            let orders = self.carriers[nth % 4].0.orders(&to(nth)).len();
            if orders != 1 {
                errors.push(format!("{} was ordered {orders} times", to(nth)));
            }
        }
        for (carrier, _) in &self.carriers {
            let invalid_requests = carrier.invalid_requests();
            errors.extend(
                invalid_requests.iter().map(|(request, _)| format!("{}: {request:?}", carrier.provider())),
            );
        }
        if !self.would_place_one_more() {
            errors.push("calls that are over are counted".to_owned());
        }
    }

    fn would_place_one_more(&self) -> bool {
        let body = json!({"assistant_id": self.assistant_id, "to": to(CALLS), "from": self.numbers[0]});
        let mut client = self.server.connect(&self.key);
        client.expect(201, "POST", "/calls/outbound?dry_run=true", Some(&body))["would_place"] == true
    }

    /// All calls in the call log.
    fn log(&self) -> Vec<Value> {
        let mut client = self.server.connect(&self.key);
        let mut rows = Vec::new();
        for page in 1.. {
            let list = client.expect(200, "GET", &format!("/calls?limit=100&page={page}"), None);
            let list = list["calls"].as_array().expect("a list").clone();
            if list.is_empty() {
                break;
            }
            rows.extend(list);
        }
        rows
    }
}

/// A placed call.
struct Placed {
    nth: usize,
    /// The service's id.
    id: String,
    /// The call at the carrier.
    call: PhoneCall,
}

/// Orders to numbers that end in 7 are accepted.
fn to(nth: usize) -> String {
    format!("+4477{nth:06}7")
}

/// Every carrier has calls with every kind of end.
fn ends(nth: usize) -> (EndKind, &'static str) {
    ENDS[nth / 4 % ENDS.len()]
}

fn differing(rows: &[Value], field: &str, wanted: impl Fn(&Value) -> &'static str) -> Vec<String> {
    let differs = |row: &&Value| row[field] != wanted(row);
    rows.iter().filter(differs).map(|row| format!("{field} is not {}: {row}", wanted(row))).collect()
}

/// Sends callbacks in order, each over the next free connection.
fn deliver(address: SocketAddr, callbacks: &[CallbackRequest]) -> (Vec<Sent>, Duration) {
    let next = AtomicUsize::new(0);
    let began = Instant::now();
    let sent = std::thread::scope(|scope| {
        let line = || {
            let mut line = Line::new(address);
            let mut sent = Vec::new();
            while let Some(request) = callbacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                sent.push(line.send(request));
            }
            sent
        };
        let threads: Vec<_> = (0..LINES).map(|_| scope.spawn(line)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("callbacks are sent")).collect()
    });
    (sent, began.elapsed())
}

fn row(title: &str, sent: &[Sent], time: Duration, errors: &mut Vec<String>) {
    let times: Vec<Duration> = sent.iter().map(|sent| sent.time).collect();
    let problems: Vec<String> = sent.iter().filter_map(|sent| sent.problem.clone()).collect();
    println!(
        "{title:<44} {:>6} {:>8.0} {:>10.1} {:>10.1} {:>7}",
        sent.len(),
        sent.len() as f64 / time.as_secs_f64(),
        quantile_us(&times, 0.5) / 1e3,
        quantile_us(&times, 0.99) / 1e3,
        problems.len()
    );
    errors.extend(problems);
}
