//! Voice runs that are held for real: an assistant with a provider's voice talks in real time with a simulated caller, whom
//! the same providers give a voice. Fakes play the providers over real sockets, in their own formats. On the binary, or on the
//! Worker with `SIDETONE_TEST_HOST=worker`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod conversations;
mod failures;
mod kills;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_tests::{World, fakes};

const GREETING: &str = "Hello, front desk.";
const ASKED: &str = "When do you open on Saturday?";
const TIMEOUT: Duration = Duration::from_secs(90);

/// What a run is made of.
struct Case {
    assistant: Value,
    caller: &'static str,
    scenario: Value,
    /// What the transcriber understands, in order.
    heard: Vec<&'static str>,
}

impl Case {
    /// An assistant with this voice and transcriber, and a caller who asks one question.
    fn new(voice: &str, transcriber: &str) -> Self {
        let evaluations = json!([
            {"kind": "transcript", "role": "assistant", "includes": "open at ten"},
            {"kind": "transcript", "role": "user", "includes": ASKED},
        ]);
        Self {
            assistant: json!({
                "name": "Front desk", "instructions": "Be kind.", "first_message": GREETING, "language": "en",
                "model": "builtin/rules", "voice": voice, "transcriber": transcriber,
            }),
            caller: "builtin/rules",
            scenario: json!({
                "name": "Hours", "instructions": format!("Say \"{ASKED}\"."), "evaluations": evaluations,
            }),
            heard: vec![ASKED, "Goodbye."],
        }
    }

    /// Makes the simulation with `make`, which posts to a path and returns the id. The path of its runs.
    fn make(&self, mut make: impl FnMut(&str, Value) -> String, with_id: impl FnOnce(&str)) -> String {
        static TERMS: AtomicU32 = AtomicU32::new(1);
        let term = format!("held run {}", TERMS.fetch_add(1, Ordering::Relaxed));
        fakes::shared().will_hear(&term, &self.heard);
        fakes::shared_speech().will_hear(&term, &self.heard);
        let mut assistant = self.assistant.clone();
        assistant["keyterms"] = json!([term]);
        let assistant = make("/assistants", assistant);
        with_id(&assistant);
        let persona = json!({"name": "Ada", "system_prompt": "Patient.", "model": self.caller});
        let persona = make("/simulations/personas", persona);
        let scenario = make("/simulations/scenarios", self.scenario.clone());
        let simulation = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
        format!("/simulations/{}/runs", make("/simulations", simulation))
    }

    /// Makes everything in this workspace; returns the path of the simulation's runs.
    fn made_in(&self, world: &World) -> String {
        let hours =
            world.create("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."}));
        let attach = |assistant: &str| {
            let path = format!("/assistants/{assistant}/knowledge");
            world.put(path, json!({"knowledge_ids": [hours.id]})).ok();
        };
        self.make(|path, body| world.create(path, body).id, attach)
    }

    /// Runs it to its end.
    fn run(&self, world: &World) -> Value {
        let run = world.create(&self.made_in(world), json!({"mode": "voice", "seed": 11}));
        finished(|| world.get(format!("/simulations/runs/{}", run.id)).ok().json)
    }
}

/// Waits until the run has ended.
fn finished(mut read: impl FnMut() -> Value) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let run = read();
        if run["status"] == "completed" || run["status"] == "error" {
            return run;
        }
        assert!(Instant::now() < deadline, "not in time: {run:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The texts of one role in the run's transcript.
fn texts<'a>(run: &'a Value, role: &str) -> Vec<&'a str> {
    let rows = run["call"]["transcript"].as_array().unwrap().iter().filter(|row| row["role"] == role);
    rows.map(|row| row["text"].as_str().unwrap()).collect()
}

/// Both channels of a recording, and its rate.
fn channels(file: &[u8]) -> ([Vec<i16>; 2], i64) {
    let reader = hound::WavReader::new(std::io::Cursor::new(file)).unwrap();
    let rate_hz = i64::from(reader.spec().sample_rate);
    let samples: Vec<i16> = reader.into_samples().map(Result::unwrap).collect();
    let channel = |n: usize| samples.iter().skip(n).step_by(2).copied().collect();
    ([channel(0), channel(1)], rate_hz)
}
