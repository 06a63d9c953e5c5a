//! A hundred people who talk with assistants on the telephone at once, over all carriers.
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sidetone_engine::speech::audio::{FRAME_MS, Rate};
use sidetone_engine::speech::listener::WANTS_TO_SPEAK_MS;
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_engine::speech::voice_activity::VoiceActivity;
use sidetone_tests::compare::{cpu_s, memory_kb};
use sidetone_tests::fakes::carrier::{Carriers, Phone};
use sidetone_tests::process::{Folder, Server, bootstrap_key};

use super::desk;
use super::speech_stand_in::{CHAR_MS, Exchange, Service, StandIn, answer, term, turn};

/// Calls at once.
pub const CALLS: usize = 100;
/// Calls before the measurement, so that what the process needs once, as caches and threads, is no part of it.
const WARM_UP_CALLS: usize = 25;
/// Turns of the calls whose memory is measured.
const MEMORY_TURNS: usize = 3;
/// Turns of each call that are measured; one more is interrupted.
pub const TURNS: usize = 5;
/// From the beginning of one turn to that of the next.
const TURN_MS: u64 = 8_000;
/// How long a caller speaks.
const SAID_MS: i64 = 1_200;
/// How long a caller listens before the interruption.
const BEFORE_INTERRUPTION_MS: u64 = 2_000;
const GREETING: &str = "Hello.";

/// What was measured.
pub struct Measured {
    /// Our share of each turn: from the transcriber's answer to the first audio on the line, without model and voice.
    pub shares: Vec<Duration>,
    /// By how much the playback of each answer was longer than its audio.
    pub gaps: Vec<Duration>,
    /// From the detection of speech over the assistant to the carrier's order to discard.
    pub interruptions: Vec<Duration>,
    pub cpu_s_per_call_minute: f64,
    /// Beside its recording.
    pub memory_kb_per_call: u64,
    /// With two segments of its recording.
    pub recorded_memory_kb_per_call: u64,
    pub errors: Vec<String>,
}

struct Scene {
    server: Server,
    key: String,
    stand_in: StandIn,
    /// One assistant for each call: those that are recorded, those of the warm-up, and those whose memory is measured.
    assistants: Vec<String>,
    /// One number for each carrier.
    numbers: Vec<String>,
}

/// One caller's part.
#[derive(Default)]
struct Heard {
    shares: Vec<Duration>,
    gaps: Vec<Duration>,
    interruption: Option<Duration>,
    length: Duration,
}

/// Runs it.
pub fn measure() -> Measured {
    let (folder, key) = (Folder::new(), bootstrap_key(3));
    let stand_in = StandIn::start(TURNS);
    let mut settings = stand_in.settings();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start(&folder.path().join("data"), &settings);
    Carriers::shared().serve(server.address());
    let mut client = server.connect(&key);
    let (_, numbers) = desk::desk(&mut client, CALLS + WARM_UP_CALLS + CALLS);
    let assistants = (0..CALLS + WARM_UP_CALLS + CALLS).map(|call| {
        let assistant = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING,
            "model": "local/echo", "voice": "local/alto", "transcriber": "local/scribe", "keyterms": [term(call)],
            "record": call < CALLS, "speech": {"think_early": false, "end_of_turn_min_ms": 100}});
        let made = client.expect(201, "POST", "/assistants", Some(&assistant));
        made["id"].as_str().expect("an id").to_owned()
    });
    let assistants = assistants.collect();
    let scene = Arc::new(Scene { server, key, stand_in, assistants, numbers });
    run(&scene)
}

fn run(scene: &Arc<Scene>) -> Measured {
    let pid = scene.server.pid();
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
    // At this time all have begun, and none has ended.
    let all_talk = Duration::from_millis(TURN_MS * MEMORY_TURNS as u64);
    let before = memory_kb(pid);
    let grown = || memory_kb(pid).saturating_sub(before) / CALLS as u64;
    let unrecorded = callers(CALLS + WARM_UP_CALLS..CALLS + WARM_UP_CALLS + CALLS, MEMORY_TURNS);
    std::thread::sleep(all_talk);
    let memory_kb_per_call = grown();
    for caller in unrecorded {
        caller.join().expect("a call without a recording");
    }
    std::thread::sleep(Duration::from_secs(2));
    let cpu = cpu_s(pid);
    let callers = callers(0..CALLS, TURNS);
    std::thread::sleep(all_talk);
    let recorded_memory_kb_per_call = grown();
    let mut measured = Measured {
        shares: Vec::new(),
        gaps: Vec::new(),
        interruptions: Vec::new(),
        cpu_s_per_call_minute: 0.0,
        memory_kb_per_call,
        recorded_memory_kb_per_call,
        errors: Vec::new(),
    };
    let mut length = Duration::ZERO;
    for (call, caller) in callers.into_iter().enumerate() {
        match caller.join() {
            Ok(heard) => {
                measured.shares.extend(heard.shares);
                measured.gaps.extend(heard.gaps);
                measured.interruptions.extend(heard.interruption);
                length += heard.length;
            }
            Err(_) => measured.errors.push(format!("call {call} failed")),
        }
    }
    measured.cpu_s_per_call_minute = (cpu_s(pid) - cpu) / (length.as_secs_f64() / 60.0);
    measured
}

impl Scene {
    /// One conversation of so many turns; one more is interrupted, unless it is the warm-up. The callers begin one after the other within a turn's
    /// time.
    fn call(&self, call: usize, turns: usize, began: Instant) -> Heard {
        let began = began + Duration::from_millis(TURN_MS * (call % CALLS) as u64 / CALLS as u64);
        wait_until(began);
        let mut client = self.server.connect(&self.key);
        let mut phone = desk::answered(&mut client, call, &self.assistants[call], &self.numbers[call % 4]);
        let answered = Instant::now();
        let rate = if phone.rate_hz() == 16_000 { Rate::Khz16 } else { Rate::Khz8 };
        let mut until = samples(&phone, GREETING.chars().count() as i64 * CHAR_MS);
        phone.hear_until("the greeting", |heard| (heard.len() >= until).then_some(()));
        let mut result = Heard::default();
        for nth in 0..turns {
            wait_until(began + Duration::from_millis(TURN_MS * (nth as u64 + 1)));
            phone.say(&speech_like(SAID_MS, rate, 120.0));
            let first = phone.hear_until("an answer", |heard| (heard.len() > until).then(Instant::now));
            let name = turn(call, nth);
            let length = answer(&name, false).chars().count() as i64 * CHAR_MS;
            until += samples(&phone, length);
            let last =
                phone.hear_until("the answer's end", |heard| (heard.len() >= until).then(Instant::now));
            let length = Duration::from_millis(length.unsigned_abs());
            result.gaps.push((last - first).saturating_sub(length));
            let exchange = |service| self.stand_in.exchange(&name, service).expect("it was asked");
            let [transcriber, model, voice] =
                [Service::Transcriber, Service::Model, Service::Voice].map(exchange);
            result
                .shares
                .push(since(model.asked, transcriber) + since(voice.asked, model) + since(first, voice));
        }
        if turns < TURNS {
            phone.hang_up();
            return result;
        }
        wait_until(began + Duration::from_millis(TURN_MS * (turns as u64 + 1)));
        phone.say(&speech_like(SAID_MS, rate, 120.0));
        phone.hear_until("the long answer", |heard| (heard.len() > until).then_some(()));
        std::thread::sleep(Duration::from_millis(BEFORE_INTERRUPTION_MS));
        result.interruption = Some(interrupt(&phone, rate));
        phone.hang_up();
        result.length = answered.elapsed();
        result
    }
}

/// Speaks over the assistant until it is silent.
fn interrupt(phone: &Phone, rate: Rate) -> Duration {
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| phone.say(&speech_like(SAID_MS, rate, 120.0)));
        loop {
            if !phone.cleared().is_empty() {
                return began.elapsed().saturating_sub(detected_after(rate));
            }
            assert!(began.elapsed() < Duration::from_secs(5), "the assistant speaks on");
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}

/// How much of what a caller says must be heard before it is somebody who wants to speak.
fn detected_after(rate: Rate) -> Duration {
    let mut voice = VoiceActivity::new(rate);
    voice.hear(&vec![0; rate.hz() as usize * 3]);
    let spoken = speech_like(SAID_MS, rate, 120.0);
    let frames = spoken.chunks(rate.frame_samples());
    let before = frames
        .take_while(|frame| {
            voice.hear(frame);
            voice.voiced_ms() < WANTS_TO_SPEAK_MS
        })
        .count();
    Duration::from_millis(before as u64 * FRAME_MS.unsigned_abs())
}

fn since(later: Instant, exchange: Exchange) -> Duration {
    later.saturating_duration_since(exchange.answered)
}

fn samples(phone: &Phone, ms: i64) -> usize {
    usize::try_from(ms).unwrap_or_default() * phone.rate_hz() as usize / 1_000
}

fn wait_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}
