//! What offline voice simulations cost, for two minutes of conversation. Run with `cargo bench -p sidetone-tests --bench voice_runs`;
//! `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The runs are computed in memory by this process, one after the other, so its CPU time is theirs. Besides, the same
//! conversation as a chat, and its tones alone: every line spoken and heard once, without a service.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
use std::process::ExitCode;

use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::tone::{ToneDecoder, ToneEncoder};
use sidetone_tests::compare::cpu_s;

/// Of each kind. CPU time is counted in steps of 10 ms.
const RUNS: u32 = 40;
const TWO_MINUTES_MS: f64 = 120_000.0;
const CPU_MS_MAX: f64 = 100.0;

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    println!(
        "{:<52} {:>12} {:>8} {:>8}",
        "CPU of offline runs, for two minutes", "duration, s", "ms", "bound"
    );
    let rough =
        json!({"packet_loss": 2, "jitter_ms": 65, "noise_db": -40, "talk_over": 30, "slow_talker": true});
    let mut kept = true;
    for (what, conditions) in [("voice", json!({})), ("voice, with all conditions", rough)] {
        let (cpu_ms, run) = measured("voice", &conditions);
        kept &= cpu_ms <= CPU_MS_MAX;
        row(what, duration_ms(&run), cpu_ms, Some(CPU_MS_MAX));
    }
    let (_, run) = measured("voice", &json!({}));
    row("its tones alone, spoken and heard once", duration_ms(&run), tones_ms(&run), None);
    let (cpu_ms, chat) = measured("chat", &json!({}));
    row("the same as a chat", duration_ms(&chat), cpu_ms, None);
    println!("all bounds: {}", if kept { "kept" } else { "MISSED" });
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn row(what: &str, duration_ms: f64, cpu_ms: f64, bound: Option<f64>) {
    let bound = bound.map_or_else(String::new, |bound| format!("{bound:.0}"));
    println!("{what:<52} {:>12.1} {cpu_ms:>8.2} {bound:>8}", duration_ms / 1e3);
}

/// The CPU time for two minutes of a run, and the last run.
fn measured(mode: &str, conditions: &Value) -> (f64, Value) {
    let sandbox = Sandbox::new();
    let simulation = simulation(&sandbox, conditions);
    let started: Vec<String> = (0..RUNS)
        .map(|seed| {
            create(&sandbox, &format!("/simulations/{simulation}/runs"), json!({"mode": mode, "seed": seed}))
        })
        .collect();
    let pid = std::process::id();
    let before_s = cpu_s(pid);
    sandbox.run_jobs();
    let cpu_ms = (cpu_s(pid) - before_s) * 1e3;
    let runs: Vec<Value> =
        started.iter().map(|run| sandbox.get(&format!("/simulations/runs/{run}")).json.clone()).collect();
    let mut total_ms = 0.0;
    for run in &runs {
        assert_eq!(run["status"], "completed", "{run}");
        total_ms += duration_ms(run);
    }
    let last = runs.last().expect("a run").clone();
    assert!(mode == "chat" || !last["call"]["recording"].is_null(), "{last}");
    (cpu_ms / total_ms * TWO_MINUTES_MS, last)
}

/// The CPU time to speak and hear the lines of this run, for two minutes of it.
fn tones_ms(run: &Value) -> f64 {
    let rows = run["call"]["transcript"].as_array().expect("rows");
    let texts: Vec<&str> = rows.iter().filter_map(|row| row["text"].as_str()).collect();
    let pid = std::process::id();
    let before_s = cpu_s(pid);
    let mut heard = 0;
    for _ in 0..RUNS {
        for text in &texts {
            let mut samples = ToneEncoder::speak(text, Rate::Khz8);
            samples.extend([0; 800]);
            heard += ToneDecoder::new(Rate::Khz8).hear(&samples).len();
        }
    }
    assert!(heard > 0, "the lines are understood");
    (cpu_s(pid) - before_s) * 1e3 / f64::from(RUNS) / duration_ms(run) * TWO_MINUTES_MS
}

fn duration_ms(run: &Value) -> f64 {
    run["call"]["duration_ms"].as_f64().expect("a duration")
}

/// A conversation of one to two minutes.
fn simulation(sandbox: &Sandbox, conditions: &Value) -> String {
    let hours = "On Saturday we open at ten in the morning, and we close at six in the evening.";
    let repairs =
        "We repair gears, brakes, wheels and lights of every bicycle, and most repairs take two days.";
    let assistant = create(
        sandbox,
        "/assistants",
        json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Good morning, what can I do for you?"}),
    );
    let documents: Vec<String> = [("Hours", hours), ("Repairs", repairs)]
        .iter()
        .map(|(name, content)| create(sandbox, "/knowledge", json!({"name": name, "content": content})))
        .collect();
    let path = format!("/assistants/{assistant}/knowledge");
    assert_eq!(sandbox.put(&path, json!({"knowledge_ids": documents})).status, 200);
    let persona = create(
        sandbox,
        "/simulations/personas",
        json!({"name": "Ada", "system_prompt": "You like to talk."}),
    );
    let questions = [
        "Good morning, I am calling because of my old bicycle, which has been standing in the cellar since last winter.",
        "When do you open on Saturday, and when do you close in the evening?",
        "Do you repair gears and brakes, too, or only the wheels and the lights?",
    ];
    let asked: Vec<String> = questions.iter().cycle().take(12).map(|one| format!("\"{one}\"")).collect();
    let scenario = create(
        sandbox,
        "/simulations/scenarios",
        json!({"name": "Bicycle", "instructions": format!("Say {}.", asked.join(", then ")),
               "conditions": conditions, "evaluations": []}),
    );
    create(
        sandbox,
        "/simulations",
        json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}),
    )
}

fn create(sandbox: &Sandbox, path: &str, body: Value) -> String {
    let reply = sandbox.post(path, body);
    assert_eq!(reply.status, 201, "{}", reply.json);
    reply.json["id"].as_str().expect("an id").to_owned()
}
