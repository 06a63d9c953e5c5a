//! The memory of conversations and runs. Run with `cargo bench -p sidetone-tests --bench memory`;
//! `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The release binary runs in its own process. Test conversations with one assistant are opened and stay idle: what the
//! first takes is the assistant's, what each further one takes is its own. Then runs start together, and the highest
//! memory meanwhile counts: with one assistant, and with an assistant each.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_engine::base::limits::{ASSISTANT_MEMORY_PER_BYTE, KNOWLEDGE_INDEX_MEMORY_PER_BYTE};
use sidetone_tests::LiveClient;
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};

const CONVERSATIONS: u64 = 100;
const CONVERSATION_KB_MAX: u64 = 300;
const RUNS: u64 = 16;

/// An assistant to measure, and the memory that the service counts for it, by the bounds of `base/limits/live.rs`.
struct Case {
    name: &'static str,
    tools: usize,
    parameters: Value,
    documents: Vec<String>,
    counted_kb: u64,
}

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let schema = |choices: Value| json!({"type": "object", "properties": {"choice": choices}});
    let numbers: Vec<usize> = (0..13_400).map(|n| n % 10).collect();
    let words: Vec<String> = (0..1_170).map(|n| format!("choice number {n:06}")).collect();
    // Every two characters are a word of their own.
    let ideographs: Vec<char> = (0x4e00..0x9f00).filter_map(char::from_u32).collect();
    let characters = (0..16_000).map(|n| ideographs[n * 7_919 % ideographs.len()]);
    let document = |at: usize| characters.clone().cycle().skip(at).take(16_000).collect::<String>();
    // The shortest sections: each is found by the words of its heading and of its document's name.
    let sections = |at: usize| (0..8_500).map(|n| format!("# {}\nx\n", (n + at) % 10)).collect::<String>();
    let none = schema(json!({}));
    let cases = [
        Case { name: "plain", tools: 0, parameters: none.clone(), documents: vec![], counted_kb: 1 },
        Case {
            name: "64 tools of 27 KB, words",
            tools: 64,
            parameters: schema(json!({"enum": words})),
            documents: vec![],
            counted_kb: 64 * 27 * ASSISTANT_MEMORY_PER_BYTE,
        },
        Case {
            name: "64 tools of 27 KB, numbers",
            tools: 64,
            parameters: schema(json!({"examples": numbers})),
            documents: vec![],
            counted_kb: 64 * 27 * ASSISTANT_MEMORY_PER_BYTE,
        },
        Case {
            name: "knowledge without spaces",
            tools: 0,
            parameters: none.clone(),
            documents: (0..4).map(|n| document(n * 4_000)).collect(),
            counted_kb: 4 * 47 * (1 + KNOWLEDGE_INDEX_MEMORY_PER_BYTE),
        },
        Case {
            name: "knowledge of short sections",
            tools: 0,
            parameters: none,
            documents: (0..4).map(sections).collect(),
            counted_kb: 4 * 50 * (1 + KNOWLEDGE_INDEX_MEMORY_PER_BYTE),
        },
    ];
    let mut kept = true;
    for case in &cases {
        kept &= Bench::start(case).measure(case);
    }
    println!("all bounds: {}", if kept { "kept" } else { "MISSED" });
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// A server, and what assistants there have.
struct Bench {
    server: Server,
    client: Client,
    tools: Vec<String>,
    documents: Vec<String>,
    _folder: Folder,
}

impl Bench {
    fn start(case: &Case) -> Self {
        let (folder, key) = (Folder::new(), bootstrap_key(12));
        let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_MEMORY_MB", "1024")];
        let server = Server::start(&folder.path().join("data"), &settings);
        let client = server.connect(&key);
        let mut bench = Self { server, client, tools: vec![], documents: vec![], _folder: folder };
        for n in 0..case.tools {
            let url = "https://tools.example/x";
            let tool = json!({"name": format!("tool_{n}"), "url": url, "parameters": case.parameters});
            let id = bench.create("/tools", &tool);
            bench.tools.push(id);
        }
        for (n, content) in case.documents.iter().enumerate() {
            let letters: String = ('a'..='z').take(23).map(|letter| format!("{letter}{n} ")).collect();
            let id = bench.create("/knowledge", &json!({"name": letters, "content": content}));
            bench.documents.push(id);
        }
        bench
    }

    fn create(&mut self, path: &str, body: &Value) -> String {
        let made = self.client.expect(201, "POST", path, Some(body));
        made["id"].as_str().expect("an id").to_owned()
    }

    fn assistant(&mut self) -> String {
        let body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello."});
        let id = self.create("/assistants", &body);
        let (tools, documents) = (json!({"tool_ids": self.tools}), json!({"knowledge_ids": self.documents}));
        self.client.expect(200, "PUT", &format!("/assistants/{id}/tools"), Some(&tools));
        self.client.expect(200, "PUT", &format!("/assistants/{id}/knowledge"), Some(&documents));
        id
    }

    /// Prints what the assistant of the case takes; false if that is more than is counted.
    fn measure(&mut self, case: &Case) -> bool {
        let assistant = self.assistant();
        let before = self.memory_kb("VmRSS");
        let mut open = vec![self.connect(&assistant)];
        let with_one = self.memory_kb("VmRSS");
        open.extend((1..CONVERSATIONS).map(|_| self.connect(&assistant)));
        let with_all = self.memory_kb("VmRSS");
        drop(open);
        let first = with_one.saturating_sub(before);
        let own = with_all.saturating_sub(with_one) / (CONVERSATIONS - 1);
        println!("{}: before {before} KB; an assistant is counted as {} KB", case.name, case.counted_kb);
        println!("  the first conversation {first} KB, each of {} more {own} KB", CONVERSATIONS - 1);
        let shared = self.runs(&[assistant], RUNS);
        let assistants: Vec<_> = (0..RUNS).map(|_| self.assistant()).collect();
        let apart = self.runs(&assistants, 1);
        println!("  {RUNS} runs of one assistant {shared} KB at most, of one each {apart} KB at most");
        let run = CONVERSATION_KB_MAX * RUNS;
        own <= CONVERSATION_KB_MAX
            && first <= case.counted_kb + 2 * CONVERSATION_KB_MAX
            // Runs that start together may each read it before the first of them shares it; each counts for it meanwhile.
            && shared <= case.counted_kb * RUNS + run
            && apart <= case.counted_kb * RUNS + run
    }

    fn connect(&mut self, assistant: &str) -> LiveClient<'static> {
        let token = self.client.expect(200, "POST", &format!("/assistants/{assistant}/test-token"), None);
        let path = format!("/voice-test/socket?token={}", token["token"].as_str().expect("a token"));
        let mut conversation = LiveClient::over_tcp(self.server.address(), &path).expect("there is room");
        conversation.expect("call_started");
        conversation.hear();
        conversation
    }

    /// Starts so many runs of each assistant and waits for their ends; returns by how much the memory grew at most.
    fn runs(&mut self, assistants: &[String], of_each: u64) -> u64 {
        let persona = self
            .create("/simulations/personas", &json!({"name": "Ann", "system_prompt": "You are patient."}));
        let scenario =
            json!({"name": "Hours", "instructions": "Ask \"When do you open?\".", "evaluations": []});
        let scenario = self.create("/simulations/scenarios", &scenario);
        let mut simulations = Vec::new();
        for assistant in assistants {
            for _ in 0..of_each {
                let body = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
                simulations.push(self.create("/simulations", &body));
            }
        }
        let before = self.memory_kb("VmRSS");
        // From here on the highest memory counts.
        std::fs::write(format!("/proc/{}/clear_refs", self.server.pid()), "5").expect("Linux");
        let started: Vec<String> = simulations
            .iter()
            .map(|simulation| self.create(&format!("/simulations/{simulation}/runs"), &json!({})))
            .collect();
        for run in started {
            while self.client.expect(200, "GET", &format!("/simulations/runs/{run}"), None)["status"]
                != "completed"
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.memory_kb("VmHWM").saturating_sub(before)
    }

    /// The memory of the server's process, once it has come to rest.
    fn memory_kb(&self, field: &str) -> u64 {
        std::thread::sleep(Duration::from_millis(1_500));
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a line with it");
        line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().expect("a number")
    }
}
