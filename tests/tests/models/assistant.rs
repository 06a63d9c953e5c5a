//! Requests to an assistant's model, and its answers.
use serde_json::{Value, json};
use sidetone_engine::conversation::{AssistantReply, Knowledge, Message, ToolRequest};
use sidetone_engine::models::{AssistantModel, Usage};

use crate::support::{Service, tools, user};

#[test]
fn requests_have_the_format_of_the_api() {
    let service = Service::new();
    let knowledge = [Knowledge { name: "Hours".into(), content: "We open at ten.".into() }];
    let answered = service.reply_knowing("fake/echo", &knowledge, &[user("Grüß Gott 👋")]).unwrap();
    assert_eq!(answered.reply, AssistantReply::Say { text: "Grüß Gott 👋".into() });
    let asked = service.asked().remove(0);
    assert_eq!(asked.authorization, format!("Bearer {}", service.key));
    let body = asked.body;
    let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["model", "messages", "tools", "stream", "stream_options", "max_completion_tokens", "seed"]
    );
    assert_eq!(body["model"], "echo");
    let prompt = body["messages"][0]["content"].as_str().unwrap();
    assert!(prompt.starts_with("Be kind.") && prompt.ends_with("## Hours\n\nWe open at ten."), "{prompt}");
    let names: Vec<&Value> =
        body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["lookup", "ping", "end_call"]);
}

#[test]
fn tool_results_are_sent_back_to_the_model() {
    let service = Service::new();
    let mut history = vec![user("Where is A-17?")];
    let reply = service.reply("fake/tools", &history).unwrap().reply;
    assert_eq!(reply, AssistantReply::call("lookup", json!({"order": "Where is A-17?"})));
    history.extend([call("run_1_t1", "lookup", json!({"order": "A-17"})), result("run_1_t1", "on its way")]);
    let reply = service.reply("fake/tools", &history).unwrap().reply;
    assert_eq!(reply, AssistantReply::Say { text: "It says: on its way".into() });
}

#[test]
fn parallel_tool_calls_are_sent_back_as_one_message() {
    let service = Service::new();
    let mut history = vec![user("Both.")];
    let AssistantReply::CallTools { text, calls } =
        service.reply("fake/parallel-tools", &history).unwrap().reply
    else {
        panic!("no tool call");
    };
    assert_eq!(text, "One moment.");
    assert_eq!(calls, both("Both."));
    history.push(Message::Assistant { text });
    history.extend([call("t1", "lookup", json!({})), call("t2", "ping", json!({}))]);
    history.extend([result("t1", "one"), result("t2", "two")]);
    let reply = service.reply("fake/parallel-tools", &history).unwrap().reply;
    assert_eq!(reply, AssistantReply::Say { text: "It says: one and two".into() });
    let messages = service.asked()[1].body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 5, "{messages}");
    assert_eq!(messages[2]["content"], "One moment.");
}

#[test]
fn every_shape_of_a_tool_call_is_understood() {
    let service = Service::new();
    for shape in ["no-index", "changing-ids", "stop", "no-done", "crlf", "one-byte", "not-streamed"] {
        let answered = service.reply(&format!("fake/shape-{shape}"), &[user("Where?")]).unwrap();
        assert_eq!(answered.reply, AssistantReply::call("lookup", json!({"order": "Where?"})), "{shape}");
        assert!(answered.usage.output_tokens > 0, "{shape}");
    }
    for shape in ["zero-index", "whole"] {
        let reply = service.reply(&format!("fake/shape-{shape}"), &[user("Where?")]).unwrap().reply;
        let expected = AssistantReply::CallTools { text: "One moment.".into(), calls: both("Where?") };
        assert_eq!(reply, expected, "{shape}");
    }
    assert_eq!(service.said("fake/shape-parts", "Hello there, you"), "Hello there, you");
    assert_eq!(service.said("fake/refuses", "Hello"), "I cannot help with that.");
}

#[test]
fn invalid_tool_calls_are_passed_on_for_the_conversation_to_reject() {
    let service = Service::new();
    let reply = service.reply("fake/unknown-tool", &[user("Go")]).unwrap().reply;
    assert_eq!(reply, AssistantReply::call("no_such_tool", json!({"x": 1})));
    let mut history = vec![user("Go")];
    let reply = service.reply("fake/bad-arguments", &history).unwrap().reply;
    assert_eq!(reply, AssistantReply::call("lookup", json!("{\"x\": ")));
    // The rejection is sent back in a form that the API accepts.
    history.push(call("t1", "lookup", json!("{\"x\": ")));
    history.push(Message::ToolResult {
        id: "t1".into(),
        name: "lookup".into(),
        text: "The arguments must be a JSON object.".into(),
        is_error: true,
    });
    let reply = service.reply("fake/bad-arguments", &history).unwrap().reply;
    assert_eq!(
        reply,
        AssistantReply::Say { text: "It says: Error: The arguments must be a JSON object.".into() }
    );
}

#[test]
fn a_model_can_hang_up() {
    let service = Service::new();
    let reply = service.reply("fake/says-goodbye", &[user("That was all.")]).unwrap().reply;
    assert_eq!(reply, AssistantReply::Goodbye { text: "Goodbye, and thank you.".into() });
}

#[test]
fn cost_is_usage_times_rates() {
    let rates = json!({"input_microusd_per_1m_tokens": 1_000_000, "output_microusd_per_1m_tokens": 500_000});
    let rates = json!({"fake/echo": rates, "fake/no-usage": rates}).to_string();
    let service = Service::with_models(&rates);
    let answered = service.reply("fake/echo", &[user("one two three")]).unwrap();
    assert_eq!(answered.usage.output_tokens, 3);
    let expected = i64::try_from(answered.usage.input_tokens).unwrap() + 2;
    assert_eq!((answered.cost_microusd, answered.requests), (expected, 1));
    assert_eq!(answered.usage.uncounted_answers, 0);
    // Without token counts, one token is estimated for three bytes.
    let uncounted = service.reply("fake/no-usage", &[user("one two three four")]).unwrap();
    assert_eq!(uncounted.usage, Usage { uncounted_answers: 1, ..Usage::default() });
    let asked_bytes = service.asked().last().unwrap().body.to_string().len();
    let (input, output) = (asked_bytes.div_ceil(3), "one two three four".len() / 3);
    assert_eq!(uncounted.cost_microusd, (input + output.div_ceil(2)) as i64);
    let free = Service::new().reply("fake/no-usage", &[user("one")]).unwrap();
    assert_eq!((free.cost_microusd, free.usage.uncounted_answers), (0, 1), "no rates, no cost");
}

#[test]
fn knowledge_is_truncated_for_small_models() {
    let service = Service::with_models(r#"{"fake/echo": {"knowledge_bytes_max": 7}}"#);
    let knowledge = [Knowledge { name: "Hours".into(), content: "We open at ten.".into() }];
    service.reply_knowing("fake/echo", &knowledge, &[user("Hi")]).unwrap();
    let body = &service.asked()[0].body;
    let prompt = body["messages"][0]["content"].as_str().unwrap();
    assert!(prompt.ends_with("We open\n[The last 8 bytes of this document are not shown.]"), "{prompt}");
}

#[test]
fn the_rule_model_has_the_same_interface() {
    let service = Service::new();
    let knowledge = [Knowledge { name: "Hours".into(), content: "On Saturday we open at ten.".into() }];
    let answered = service.reply_knowing("builtin/rules", &knowledge, &[user("Open on Saturday?")]).unwrap();
    assert_eq!(answered.reply, AssistantReply::Say { text: "On Saturday we open at ten.".into() });
    assert_eq!((answered.requests, answered.cost_microusd), (0, 0));
    for unknown in ["builtin/other", "nobody/model"] {
        let failure =
            AssistantModel::new(&service.services.config().catalog, unknown, &[], &tools()).err().unwrap();
        assert_eq!(failure.code.as_str(), "model_unavailable");
    }
}

fn both(words: &str) -> Vec<ToolRequest> {
    vec![
        ToolRequest { name: "lookup".into(), arguments: json!({"order": words}) },
        ToolRequest { name: "ping".into(), arguments: json!({}) },
    ]
}

fn call(id: &str, name: &str, arguments: Value) -> Message {
    Message::ToolCall { id: id.into(), name: name.into(), arguments }
}

fn result(id: &str, text: &str) -> Message {
    Message::ToolResult { id: id.into(), name: "lookup".into(), text: text.into(), is_error: false }
}
