//! A hundred people who talk with a realtime model on the telephone at once, over all carriers.
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::speech::audio::{FRAME_MS, Rate};
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::compare::cpu_s;
use sidetone_tests::fakes::carrier::{Carriers, Phone};
use sidetone_tests::process::{Folder, Server, bootstrap_key};

use super::desk;
use super::realtime_stand_in::{ANSWER, CHAR_MS, Heard, StandIn, model};

/// Calls at once.
pub const CALLS: usize = 100;
/// Calls before the measurement.
const WARM_UP_CALLS: usize = 25;
/// Turns of each call.
pub const TURNS: usize = 5;
/// From the beginning of one turn to that of the next.
const TURN_MS: u64 = 8_000;
/// How long a caller speaks.
const SAID_MS: i64 = 1_200;
const GREETING: &str = "Hello.";
/// Audio in a message while somebody speaks; more is what was kept before they were heard, less the rest at their end.
const PIECE_MS: i64 = 60;

/// What was measured.
pub struct Measured {
    pub ways_in: Vec<Duration>,
    pub ways_out: Vec<Duration>,
    pub cpu_s_per_call_minute: f64,
    pub errors: Vec<String>,
}

struct Scene {
    server: Server,
    key: String,
    stand_in: StandIn,
    assistants: Vec<String>,
    /// One number for each carrier.
    numbers: Vec<String>,
}

/// One caller's part.
#[derive(Default)]
struct Part {
    ways_in: Vec<Duration>,
    ways_out: Vec<Duration>,
    length: Duration,
}

/// Runs it.
pub fn measure() -> Measured {
    let (folder, key) = (Folder::new(), bootstrap_key(3));
    let stand_in = StandIn::start();
    let mut settings = desk::settings();
    let providers = settings.iter_mut().find(|(name, _)| *name == "SIDETONE_PROVIDERS");
    let providers = &mut providers.expect("the fakes are providers").1;
    let mut all: Value = serde_json::from_str(providers).expect("the setting is JSON");
    let base_url = format!("http://{}/v1", stand_in.address);
    all["local"] = json!({"base_url": base_url, "realtime_url": base_url});
    *providers = all.to_string();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start(&folder.path().join("data"), &settings);
    Carriers::shared().serve(server.address());
    let mut client = server.connect(&key);
    let calls = CALLS + WARM_UP_CALLS;
    let (_, numbers) = desk::desk(&mut client, calls);
    let assistants = (0..calls).map(|call| {
        let assistant = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING,
            "pipeline_mode": "realtime", "model": format!("local/{}", model(call)),
            "speech": {"think_early": false, "end_of_turn_min_ms": 100}});
        let made = client.expect(201, "POST", "/assistants", Some(&assistant));
        made["id"].as_str().expect("an id").to_owned()
    });
    let assistants = assistants.collect();
    let scene = Arc::new(Scene { server, key, stand_in, assistants, numbers });
    run(&scene)
}

fn run(scene: &Arc<Scene>) -> Measured {
    let callers = |calls: Range<usize>, turns: usize| -> Vec<_> {
        let began = Instant::now();
        let caller = |call| {
            let scene = scene.clone();
            std::thread::spawn(move || scene.call(call, turns, began))
        };
        calls.map(caller).collect()
    };
    for caller in callers(CALLS..CALLS + WARM_UP_CALLS, 1) {
        caller.join().expect("a call of the warm-up");
    }
    std::thread::sleep(Duration::from_secs(2));
    let pid = scene.server.pid();
    let cpu = cpu_s(pid);
    let mut measured = Measured {
        ways_in: Vec::new(),
        ways_out: Vec::new(),
        cpu_s_per_call_minute: 0.0,
        errors: Vec::new(),
    };
    let mut length = Duration::ZERO;
    for (call, caller) in callers(0..CALLS, TURNS).into_iter().enumerate() {
        match caller.join() {
            Ok(part) => {
                measured.ways_in.extend(part.ways_in);
                measured.ways_out.extend(part.ways_out);
                length += part.length;
            }
            Err(_) => measured.errors.push(format!("call {call} failed")),
        }
    }
    measured.cpu_s_per_call_minute = (cpu_s(pid) - cpu) / (length.as_secs_f64() / 60.0);
    measured
}

impl Scene {
    /// One conversation of so many turns. The callers begin one after the other within a turn's time.
    fn call(&self, call: usize, turns: usize, began: Instant) -> Part {
        let began = began + Duration::from_millis(TURN_MS * (call % CALLS) as u64 / CALLS as u64);
        wait_until(began);
        let mut client = self.server.connect(&self.key);
        let mut phone = desk::answered(&mut client, call, &self.assistants[call], &self.numbers[call % 4]);
        let answered = Instant::now();
        let rate = if phone.rate_hz() == 16_000 { Rate::Khz16 } else { Rate::Khz8 };
        let mut until = samples(&phone, GREETING);
        phone.hear_until("the greeting", |heard| (heard.len() >= until).then_some(()));
        let mut part = Part::default();
        for nth in 0..turns {
            wait_until(began + Duration::from_millis(TURN_MS * (nth as u64 + 1)));
            let before = phone.arrived_at().len();
            phone.say(&speech_like(SAID_MS, rate, 120.0));
            until += samples(&phone, ANSWER);
            phone.hear_until("the answer", |heard| (heard.len() >= until).then_some(()));
            let turn = self.stand_in.turn(call, nth).expect("it was heard");
            part.ways_in.extend(ways_in(&turn.heard, &phone.sent_at()));
            let first = *phone.arrived_at().get(before).expect("audio arrived");
            part.ways_out.push(first.saturating_duration_since(turn.answered.expect("it was answered")));
        }
        phone.hang_up();
        part.length = answered.elapsed();
        part
    }
}

/// How long the last frame of each piece was on its way to the model. Pieces follow each other without gaps, so the frames of
/// all are known once one of them is. The first frame is the latest with which none arrives before it was sent.
fn ways_in(heard: &[Heard], sent_at: &[Instant]) -> Vec<Duration> {
    // The first ones have what was kept before somebody was heard.
    let is_piece = |piece: &&Heard| (piece.ms - PIECE_MS).abs() < FRAME_MS;
    let mut ms = 0;
    let pieces: Vec<(Instant, usize)> = heard
        .iter()
        .skip_while(|piece| !is_piece(piece))
        .take_while(is_piece)
        .map(|piece| {
            ms += piece.ms;
            (piece.at, usize::try_from((ms + FRAME_MS / 2) / FRAME_MS).unwrap_or_default())
        })
        .collect();
    let Some((last, frames)) = pieces.last() else { return Vec::new() };
    let latest = sent_at.partition_point(|sent| sent <= last).saturating_sub(1);
    let fits = |first: &usize| pieces.iter().all(|(at, frames)| sent_at[first + frames] <= *at);
    let first = (0..=latest.saturating_sub(*frames)).rev().find(fits).expect("what was heard was said");
    pieces.iter().map(|(at, frames)| *at - sent_at[first + frames]).collect()
}

fn samples(phone: &Phone, text: &str) -> usize {
    let ms = text.chars().count() as i64 * CHAR_MS;
    usize::try_from(ms).unwrap_or_default() * phone.rate_hz() as usize / 1_000
}

fn wait_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}
