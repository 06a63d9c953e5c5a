//! The steps of a call as spans, by the names of OpenTelemetry's conventions for generative AI where there are any. Nothing
//! that anybody said is in them.
use std::collections::HashMap;

use serde_json::Value;

use crate::base::ids::WorkspaceId;
use crate::base::time;
use crate::ports::{Attribute, Step};

/// The call as `GET /calls/{id}` shows it. `None` if it never had a beginning or has no end.
pub(super) fn step_of_call(workspace_id: &WorkspaceId, call: &Value) -> Option<Step> {
    let at = |name: &str| call[name].as_str().and_then(time::from);
    let began_ms = at("started_at")?;
    // Times in a call count from here.
    let zero_ms = at("answered_at").unwrap_or(began_ms);
    let text = |name: &str| call[name].as_str().filter(|text| !text.is_empty());
    let model = text("model").unwrap_or_default();
    let mut attributes = vec![
        pair("gen_ai.operation.name", "invoke_agent"),
        pair("sidetone.workspace.id", workspace_id.to_string()),
    ];
    attributes.extend(of_model(model));
    for (attribute, name) in [
        ("gen_ai.conversation.id", "id"),
        ("gen_ai.agent.id", "assistant_id"),
        ("sidetone.call.source", "source"),
        ("sidetone.call.direction", "direction"),
        ("sidetone.call.carrier", "provider"),
        ("sidetone.call.outcome", "outcome"),
        ("sidetone.call.ended_reason", "ended_reason"),
        ("sidetone.call.fault", "fault"),
        ("sidetone.run.id", "simulation_run_id"),
    ] {
        attributes.extend(text(name).map(|value| pair(attribute, value.to_owned())));
    }
    for (attribute, part, name) in [
        ("gen_ai.usage.input_tokens", "usage", "llm_input_tokens"),
        ("gen_ai.usage.output_tokens", "usage", "llm_output_tokens"),
        ("sidetone.cost.total_microusd", "costs", "total_microusd"),
    ] {
        attributes.extend(call[part][name].as_i64().map(|value| pair(attribute, value)));
    }
    let fault = text("fault").filter(|fault| *fault != "none");
    attributes.extend(fault.map(|fault| pair("error.type", fault.to_owned())));
    let mut step = Step {
        name: "invoke_agent".into(),
        is_client: false,
        start_ms: began_ms,
        end_ms: at("ended_at")?,
        attributes,
        failure: fault.map(|fault| format!("fault of: {fault}")),
        inner: Vec::new(),
    };
    let rows = call["transcript"].as_array().map(Vec::as_slice).unwrap_or_default();
    let turns = call["turns"].as_array().map(Vec::as_slice).unwrap_or_default();
    step.inner = match turns.is_empty() {
        true => written_turns(rows, zero_ms, model),
        false => turns.iter().filter_map(|turn| spoken_turn(turn, zero_ms, model)).collect(),
    };
    for tool in tools(rows, zero_ms) {
        let within = step.inner.iter_mut().rev().find(|turn| holds(turn, &tool));
        match within {
            Some(turn) => turn.inner.push(tool),
            None => step.inner.push(tool),
        }
    }
    Some(step)
}

/// Whether a step of the call is a turn in which this one began.
fn holds(turn: &Step, other: &Step) -> bool {
    turn.name == "turn" && (turn.start_ms..=turn.end_ms).contains(&other.start_ms)
}

/// From the caller's last word to the answer's first sound, and what was waited for.
fn spoken_turn(turn: &Value, zero_ms: i64, model: &str) -> Option<Step> {
    let at = |name: &str| turn[name].as_i64().map(|ms| zero_ms + ms);
    let said_ms = at("end_of_speech_ms")?;
    let reached = ["transcript_ms", "model_first_ms", "speech_first_ms", "heard_first_ms"].map(at);
    let mut step = Step::new("turn", false, said_ms, said_ms);
    let mut from_ms = said_ms;
    for (which, reached) in reached.into_iter().enumerate() {
        let Some(to_ms) = reached else { continue };
        let mut part = match which {
            0 => Step::new("speech_to_text", true, from_ms, to_ms),
            1 => chat(model, from_ms, to_ms),
            2 => Step::new("text_to_speech", true, from_ms, to_ms),
            _ => Step::new("play", false, from_ms, to_ms),
        };
        part.end_ms = part.end_ms.max(part.start_ms);
        from_ms = part.end_ms;
        step.end_ms = part.end_ms;
        step.inner.push(part);
    }
    if let Some(heard_ms) = reached[3] {
        step.attributes.push(pair("sidetone.turn.wait_ms", (heard_ms - said_ms).max(0)));
    }
    Some(step)
}

/// Of a conversation by text: from each row of the user to the assistant's next one.
fn written_turns(rows: &[Value], zero_ms: i64, model: &str) -> Vec<Step> {
    let mut turns = Vec::new();
    let mut asked_ms = None;
    for row in rows {
        match row["role"].as_str() {
            Some("user") => asked_ms = row["end_ms"].as_i64(),
            Some("assistant") => {
                if let (Some(from_ms), Some(to_ms)) = (asked_ms.take(), row["start_ms"].as_i64()) {
                    let (from_ms, to_ms) = (zero_ms + from_ms, zero_ms + to_ms.max(from_ms));
                    let mut turn = Step::new("turn", false, from_ms, to_ms);
                    turn.inner.push(chat(model, from_ms, to_ms));
                    turns.push(turn);
                }
            }
            _ => {}
        }
    }
    turns
}

/// The request to the model, until its first words.
fn chat(model: &str, start_ms: i64, end_ms: i64) -> Step {
    let mut step = Step::new("chat", true, start_ms, end_ms);
    if let Some((_, name)) = model.split_once('/') {
        step.name = format!("chat {name}").into();
    }
    step.attributes.push(pair("gen_ai.operation.name", "chat"));
    step.attributes.extend(of_model(model));
    step
}

/// Each tool, from its call to its result.
fn tools(rows: &[Value], zero_ms: i64) -> Vec<Step> {
    let is = |row: &&Value, role: &str| row["role"].as_str() == Some(role);
    let calls = rows.iter().filter(|row| is(row, "tool_call"));
    // In reverse, so that the first result of an id stays.
    let results = rows.iter().rev().filter(|row| is(row, "tool_result"));
    let results: HashMap<&str, &Value> =
        results.filter_map(|row| Some((row["tool_call_id"].as_str()?, row))).collect();
    calls
        .filter_map(|call| {
            let (name, start_ms) = (call["tool_name"].as_str()?, zero_ms + call["start_ms"].as_i64()?);
            let id = call["tool_call_id"].as_str().unwrap_or_default();
            let result = results.get(id).copied();
            let end_ms = result.and_then(|row| row["end_ms"].as_i64()).map_or(start_ms, |ms| zero_ms + ms);
            let mut step = Step::new(format!("execute_tool {name}"), false, start_ms, end_ms);
            step.attributes = vec![
                pair("gen_ai.operation.name", "execute_tool"),
                pair("gen_ai.tool.name", name.to_owned()),
                pair("gen_ai.tool.call.id", id.to_owned()),
            ];
            let has_failed = |row: &Value| row["is_error"].as_bool() == Some(true);
            if has_failed(call) || result.is_none_or(has_failed) {
                step.failure = Some("the tool failed".to_owned());
                step.attributes.push(pair("error.type", "tool"));
            }
            Some(step)
        })
        .collect()
}

fn pair(name: &'static str, value: impl Into<Attribute>) -> (&'static str, Attribute) {
    (name, value.into())
}

fn of_model(model: &str) -> Vec<(&'static str, Attribute)> {
    let Some((provider, name)) = model.split_once('/') else { return Vec::new() };
    vec![pair("gen_ai.provider.name", provider.to_owned()), pair("gen_ai.request.model", name.to_owned())]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::ids::Id as _;

    fn call() -> Value {
        json!({
            "id": "call_1", "assistant_id": "asst_1", "model": "openai/gpt-4.1-mini", "source": "phone_inbound",
            "direction": "inbound", "outcome": "completed", "fault": "none", "provider": null,
            "started_at": "2026-11-28T10:00:00.000Z", "answered_at": "2026-11-28T10:00:02.000Z",
            "ended_at": "2026-11-28T10:01:00.000Z",
            "usage": {"llm_input_tokens": 120, "llm_output_tokens": 30}, "costs": {"total_microusd": 55},
            "turns": [
                {"end_of_speech_ms": 3_000, "transcript_ms": 3_300, "model_first_ms": 3_800, "speech_first_ms": 4_000, "heard_first_ms": 4_100},
                {"end_of_speech_ms": 9_000, "transcript_ms": null, "model_first_ms": null, "speech_first_ms": null, "heard_first_ms": null},
            ],
            "transcript": [
                {"role": "user", "text": "My secret is 4711.", "start_ms": 1_000, "end_ms": 3_000},
                {"role": "tool_call", "text": "hours(4711)", "tool_name": "hours", "tool_call_id": "c1", "start_ms": 3_500, "end_ms": 3_500, "arguments": {"pin": 4711}},
                {"role": "tool_result", "text": "4711", "tool_name": "hours", "tool_call_id": "c1", "start_ms": 3_700, "end_ms": 3_700, "is_error": true},
            ],
        })
    }

    fn named(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| &*step.name).collect()
    }

    #[test]
    fn a_spoken_call_has_its_turns_with_what_was_waited_for() {
        let step = step_of_call(&WorkspaceId::from_stored("ws_1"), &call()).unwrap();
        assert_eq!((step.end_ms - step.start_ms, &step.failure), (60_000, &None));
        assert!(step.attributes.contains(&pair("gen_ai.usage.input_tokens", 120)));
        assert!(step.attributes.contains(&pair("gen_ai.provider.name", "openai")));
        assert_eq!(named(&step.inner), ["turn", "turn"]);
        let turn = &step.inner[0];
        assert_eq!(
            named(&turn.inner),
            ["speech_to_text", "chat gpt-4.1-mini", "text_to_speech", "play", "execute_tool hours"]
        );
        let times: Vec<_> = turn.inner.iter().map(|part| part.end_ms - part.start_ms).collect();
        assert_eq!(times, [300, 500, 200, 100, 200]);
        assert_eq!(turn.inner[0].start_ms - step.start_ms, 5_000, "two seconds of ringing before");
        assert!(turn.inner[4].failure.is_some());
        assert_eq!((step.inner[1].end_ms - step.inner[1].start_ms, step.inner[1].inner.len()), (0, 0));
        assert!(!format!("{step:?}").contains("4711"), "nothing that was said: {step:?}");
    }

    #[test]
    fn a_written_call_has_its_turns_too_and_a_fault_is_an_error() {
        let mut call = call();
        call["turns"] = json!([]);
        call["fault"] = json!("provider");
        call["transcript"] = json!([
            {"role": "assistant", "text": "Hello", "start_ms": 0, "end_ms": 0},
            {"role": "user", "text": "Hi", "start_ms": 1_000, "end_ms": 1_500},
            {"role": "assistant", "text": "Yes?", "start_ms": 2_000, "end_ms": 2_000},
            {"role": "user", "text": "Bye", "start_ms": 3_000, "end_ms": 3_000},
        ]);
        let step = step_of_call(&WorkspaceId::from_stored("ws_1"), &call).unwrap();
        assert_eq!(
            (named(&step.inner), named(&step.inner[0].inner)),
            (vec!["turn"], vec!["chat gpt-4.1-mini"])
        );
        assert_eq!(step.inner[0].end_ms - step.inner[0].start_ms, 500);
        assert!(step.failure.is_some() && step.attributes.contains(&pair("error.type", "provider")));
    }
}
