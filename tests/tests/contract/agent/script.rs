//! The agent: rules over what MCP returns.
use std::collections::BTreeSet;

use serde_json::{Value, json};
use sidetone_tests::World;

/// Runs that show whether there is something to mend; each has another seed.
const LOOK: usize = 3;
/// Runs of the proof.
const PROOF: usize = 100;
/// Looks and changes, at most.
const ROUNDS: usize = 4;

/// What an assistant should do, as its owner tells it.
pub struct Requirements<'a> {
    pub persona: &'a str,
    pub scenario: &'a str,
    /// What is true.
    pub facts: &'a [&'a str],
    pub needs: &'a [Need<'a>],
}

/// One thing that an assistant should do in the scenario.
pub enum Need<'a> {
    /// It says these words.
    Tells(&'a str),
    NeverSays(&'a str),
    /// It calls this tool, with these arguments.
    Calls(&'a str, &'a str),
}

/// What the agent changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A fact in a document.
    Fact,
    /// A tool is attached.
    Attached,
    /// The parameters of a tool.
    Parameters,
    /// Words are no longer said.
    Silenced,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    pub changes: Vec<Change>,
    pub failed_at_first: bool,
    pub total: i64,
    pub passed: i64,
    pub calls: usize,
    pub bytes: usize,
}

pub struct Agent<'a> {
    world: &'a World,
    calls_max: usize,
    calls: usize,
    bytes: usize,
}

impl<'a> Agent<'a> {
    pub fn new(world: &'a World, calls_max: usize) -> Self {
        Self { world, calls_max, calls: 0, bytes: 0 }
    }

    /// Tests the assistant, changes what is responsible for the failures, and proves it.
    pub fn mend(&mut self, assistant: &str, wanted: &Requirements<'_>) -> Report {
        self.set_up(assistant, wanted);
        let mut changes = Vec::new();
        let mut failed_at_first = false;
        for round in 0..ROUNDS {
            let batch = self.run(assistant, LOOK);
            let failures = batch["failures"].as_array().cloned().unwrap_or_default();
            failed_at_first |= round == 0 && batch["failed"] != 0;
            let Some(change) = failures.iter().find_map(|failure| self.change(assistant, wanted, failure))
            else {
                break;
            };
            changes.push(change);
        }
        let proof = self.run(assistant, PROOF);
        let count = |field: &str| proof[field].as_i64().expect("a count");
        Report {
            changes,
            failed_at_first,
            total: count("total"),
            passed: count("passed"),
            calls: self.calls,
            bytes: self.bytes,
        }
    }

    fn set_up(&mut self, assistant: &str, wanted: &Requirements<'_>) {
        let evaluations: Vec<Value> = wanted
            .needs
            .iter()
            .map(|need| match need {
                Need::Tells(words) => json!({"kind": "transcript", "role": "assistant", "includes": words}),
                Need::NeverSays(words) => {
                    json!({"kind": "transcript_excludes", "role": "assistant", "includes": words})
                }
                Need::Calls(tool, arguments) => {
                    let arguments: Value = serde_json::from_str(arguments).expect("arguments");
                    json!({"kind": "tool_call", "includes": tool, "arguments": arguments})
                }
            })
            .collect();
        let persona = json!({"name": "Caller", "system_prompt": wanted.persona, "model": "builtin/rules"});
        let persona = self.call("create_simulation_persona", json!({"data": persona}));
        let scenario =
            json!({"name": "Requirements", "instructions": wanted.scenario, "evaluations": evaluations});
        let scenario = self.call("create_simulation_scenario", json!({"data": scenario}));
        let simulation =
            json!({"assistant_id": assistant, "persona_id": persona["id"], "scenario_id": scenario["id"]});
        self.call("create_simulation", json!({"data": simulation}));
    }

    /// Runs the simulation so many times, and waits for what comes of it.
    fn run(&mut self, assistant: &str, times: usize) -> Value {
        // Runs may cost money, so the service wants to know that the owner agrees: who hands over requirements does.
        let start = json!({"confirm": true, "data": {"assistant_id": assistant, "seed": 1, "repeat": times}});
        let batch = self.call("start_simulation_batch", start)["batch_id"].clone();
        loop {
            if let Some(sandbox) = self.world.sandbox() {
                // The service does this by itself elsewhere.
                sandbox.run_jobs();
            }
            let read = self.call("get_simulation_batch", json!({"id": batch, "wait_seconds": 25}));
            if !read["completed_at"].is_null() {
                return read;
            }
        }
    }

    /// Changes what is responsible for a failed evaluation, if that is known.
    fn change(&mut self, assistant: &str, wanted: &Requirements<'_>, failure: &Value) -> Option<Change> {
        let words = failure["includes"].as_str().unwrap_or_default();
        match failure["kind"].as_str()? {
            "transcript" => {
                let fact = wanted.facts.iter().find(|fact| has(fact, words))?;
                self.write_down(assistant, fact)
            }
            "transcript_excludes" => self.silence(assistant, wanted, words),
            "tool_call" => self.offer_tool(assistant, wanted, words),
            _ => None,
        }
    }

    /// Writes a fact into the assistant's documents: in place of the sentence that says something else of the same.
    fn write_down(&mut self, assistant: &str, fact: &str) -> Option<Change> {
        let attached = self.call("get_assistant", json!({"id": assistant}))["knowledge_ids"].clone();
        let mut first = None;
        for id in attached.as_array()? {
            let document = self.call("get_knowledge_document", json!({"id": id}));
            let content = document["content"].as_str()?.to_owned();
            if let Some(wrong) = sentences(&content).into_iter().find(|one| is_about_the_same(one, fact)) {
                if *wrong == *fact {
                    // It is there and was not said.
                    return None;
                }
                let content = content.replace(wrong, fact);
                self.call("update_knowledge_document", json!({"id": id, "data": {"content": content}}));
                return Some(Change::Fact);
            }
            first = first.or(Some((id.clone(), content)));
        }
        match first {
            Some((id, content)) => {
                let content = format!("{content} {fact}");
                self.call("update_knowledge_document", json!({"id": id, "data": {"content": content}}));
            }
            None => {
                let data = json!({"name": format!("Facts of {assistant}"), "content": fact});
                let made = self.call("create_knowledge_document", json!({"data": data}));
                let data = json!({"knowledge_ids": [made["id"]]});
                self.call("set_assistant_knowledge", json!({"id": assistant, "data": data}));
            }
        }
        Some(Change::Fact)
    }

    /// Removes the sentences with these words from wherever the assistant has them; a document may have a true one instead.
    fn silence(&mut self, assistant: &str, wanted: &Requirements<'_>, words: &str) -> Option<Change> {
        let read = self.call("get_assistant", json!({"id": assistant}));
        let mut change = None;
        let mut data = json!({});
        for field in ["first_message", "instructions"] {
            let text = read[field].as_str()?;
            if has(text, words) {
                data[field] = without(text, words).into();
                change = Some(Change::Silenced);
            }
        }
        if change.is_some() {
            self.call("update_assistant", json!({"id": assistant, "data": data}));
        }
        for id in read["knowledge_ids"].as_array()? {
            let content =
                self.call("get_knowledge_document", json!({"id": id}))["content"].as_str()?.to_owned();
            if has(&content, words) {
                let wrong = sentences(&content).into_iter().find(|one| has(one, words))?;
                let fact = wanted.facts.iter().find(|fact| is_about_the_same(wrong, fact));
                let content =
                    fact.map_or_else(|| without(&content, words), |fact| content.replace(wrong, fact));
                self.call("update_knowledge_document", json!({"id": id, "data": {"content": content}}));
                change = Some(if fact.is_some() { Change::Fact } else { Change::Silenced });
            }
        }
        change
    }

    /// Attaches the tool, or gives it the parameters it needs.
    fn offer_tool(&mut self, assistant: &str, wanted: &Requirements<'_>, name: &str) -> Option<Change> {
        let tools = self.call("list_tools", json!({}));
        let tool = tools["items"].as_array()?.iter().find(|tool| tool["name"] == name)?.clone();
        let mut attached =
            self.call("get_assistant", json!({"id": assistant}))["tool_ids"].as_array()?.clone();
        if !attached.contains(&tool["id"]) {
            attached.push(tool["id"].clone());
            let data = json!({"tool_ids": attached});
            self.call("set_assistant_tools", json!({"id": assistant, "data": data}));
            return Some(Change::Attached);
        }
        let arguments = wanted.needs.iter().find_map(|need| match need {
            Need::Calls(tool, arguments) if *tool == name => Some(*arguments),
            _ => None,
        })?;
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        let mut parameters = tool["parameters"].clone();
        let mut required = parameters["required"].as_array().cloned().unwrap_or_default();
        let mut is_new = false;
        for (field, value) in arguments.as_object()? {
            let wanted = json!({"type": kind(value), "description": field});
            if parameters["properties"][field]["type"] != wanted["type"] {
                parameters["properties"][field] = wanted;
                is_new = true;
            }
            if !required.contains(&json!(field)) {
                required.push(json!(field));
                is_new = true;
            }
        }
        if !is_new {
            return None;
        }
        parameters["required"] = required.into();
        self.call("update_tool", json!({"id": tool["id"], "data": {"parameters": parameters}}));
        Some(Change::Parameters)
    }

    /// Calls a tool of the service; counts it, and what is sent and read.
    #[track_caller]
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.calls += 1;
        assert!(self.calls <= self.calls_max, "{name} is one tool call too many");
        let message = json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        self.bytes += message.to_string().len();
        let reply = self.world.mcp(message).ok();
        self.bytes += reply.body.len();
        let result = &reply["result"];
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["structuredContent"].clone()
    }
}

fn has(text: &str, words: &str) -> bool {
    text.to_lowercase().contains(&words.to_lowercase())
}

fn sentences(text: &str) -> Vec<&str> {
    text.split_inclusive(['.', '!', '?']).map(str::trim).filter(|one| !one.is_empty()).collect()
}

fn without(text: &str, words: &str) -> String {
    sentences(text).into_iter().filter(|one| !has(one, words)).collect::<Vec<_>>().join(" ")
}

/// Whether more than half of the words of the shorter sentence are in both.
fn is_about_the_same(one: &str, other: &str) -> bool {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| word.len() > 3);
        words.map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    let both = one.intersection(&other).count();
    both * 2 > one.len().min(other.len())
}

/// The JSON Schema type of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        _ => "string",
    }
}
