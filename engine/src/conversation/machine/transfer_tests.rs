//! A conversation that is handed over to a person.
use serde_json::{Value, json};

use crate::conversation::transcript::TranscriptRole;
use crate::conversation::{
    AssistantReply, Conversation, ConversationLimits, ConversationSetup, EndedReason, Input, Message, Output,
    Party, TRANSFER_TOOL, ToolRequest, ToolSpec, WaitingFor,
};

#[test]
fn the_line_before_it_is_heard_first() {
    let mut call = asked(true);
    assert_eq!(answers(&mut call, "I am putting you through.", &[sales()]), ["I am putting you through."]);
    assert_eq!(call.waiting_for(), WaitingFor::Tool);
    call.handle(1_000, Input::Tick);
    assert_eq!(sent(&mut call), [""; 0]);
    call.handle(3_000, Input::Spoken { until_ms: None });
    assert_eq!(sent(&mut call), ["c_t1"]);
    call.handle(3_500, result("c_t1", false));
    assert_eq!(call.ended(), Some(EndedReason::Transferred));
    let rows: Vec<_> = call.transcript().iter().map(|row| row.role).collect();
    use TranscriptRole::{Assistant, ToolCall, ToolResult, User};
    assert_eq!(rows, [User, Assistant, ToolCall, ToolResult]);
}

#[test]
fn who_talks_over_that_line_is_handed_over_nevertheless() {
    let mut call = asked(true);
    answers(&mut call, "I am putting you through.", &[sales()]);
    call.handle(1_000, Input::Interrupted { heard_permille: 300 });
    assert_eq!(sent(&mut call), ["c_t1"]);
}

#[test]
fn nobody_is_handed_over_after_hanging_up() {
    let mut call = asked(true);
    answers(&mut call, "I am putting you through.", &[sales()]);
    call.handle(1_000, Input::HangUp { by: Party::User });
    call.handle(1_100, Input::Spoken { until_ms: None });
    assert_eq!((sent(&mut call).len(), call.ended()), (0, Some(EndedReason::UserHungUp)));
}

#[test]
fn other_tools_of_the_turn_come_first() {
    let mut call = asked(false);
    let calls = [sales(), ToolRequest { name: "note".into(), arguments: json!({}) }];
    answers(&mut call, "", &calls);
    assert_eq!(sent(&mut call), ["c_t2"]);
    call.handle(1_000, result("c_t2", false));
    assert_eq!(sent(&mut call), ["c_t1"]);
    call.handle(1_100, result("c_t1", false));
    assert_eq!(call.ended(), Some(EndedReason::Transferred));
}

#[test]
fn one_turn_has_one_transfer() {
    let mut call = asked(false);
    answers(&mut call, "", &[sales(), to(&json!("Support"))]);
    assert_eq!(sent(&mut call), ["c_t1"]);
    let rejected = Message::ToolResult {
        id: "c_t2".into(),
        name: TRANSFER_TOOL.into(),
        text: "The call is transferred once: another transfer comes first.".into(),
        is_error: true,
    };
    assert_eq!(call.history().last(), Some(&rejected));
}

#[test]
fn a_name_that_is_not_listed_reaches_nobody() {
    for name in [json!("Sale"), json!(""), json!(["Sales"]), Value::Null] {
        let mut call = asked(false);
        answers(&mut call, "", &[to(&name)]);
        assert_eq!(sent(&mut call), [""; 0], "{name}");
        assert_eq!(call.waiting_for(), WaitingFor::Model);
    }
}

#[test]
fn the_assistant_goes_on_after_a_refusal_and_may_try_again() {
    let mut call = asked(false);
    answers(&mut call, "", &[sales()]);
    call.handle(1_000, Input::UserText { text: "Hello?".into(), duration_ms: 0, silence_ms: 0 });
    call.handle(1_100, result("c_t1", true));
    assert_eq!((call.ended(), call.waiting_for()), (None, WaitingFor::Model));
    assert_eq!(call.history().last(), Some(&Message::User { text: "Hello?".into() }));
    while call.poll().is_some() {}
    let calls = vec![sales()];
    let reply = AssistantReply::CallTools { text: String::new(), calls };
    call.handle(1_200, Input::AssistantReply { request: 2, reply });
    assert_eq!(sent(&mut call), ["c_t2"]);
}

#[test]
fn a_restored_conversation_repeats_only_what_was_sent() {
    let mut call = asked(true);
    answers(&mut call, "I am putting you through.", &[sales()]);
    let restored = |call: &Conversation| {
        let mut restored: Conversation = serde_json::from_value(json!(call)).unwrap();
        restored.resume();
        sent(&mut restored)
    };
    assert_eq!(restored(&call), [""; 0]);
    call.handle(1_000, Input::Spoken { until_ms: None });
    sent(&mut call);
    assert_eq!(restored(&call), ["c_t1"]);
}

#[test]
fn without_transfers_the_tool_is_one_like_any_other() {
    let mut call = Conversation::new(ConversationSetup { has_transfers: false, ..setup(false) });
    call.handle(0, Input::Start);
    call.handle(0, user());
    answers(&mut call, "", &[sales()]);
    sent(&mut call);
    call.handle(1_000, result("c_t1", false));
    assert_eq!((call.ended(), call.waiting_for()), (None, WaitingFor::Model));
}

/// What the carrier answers after the end is what happened to the line.
#[test]
fn the_result_of_a_transfer_counts_after_the_end() {
    for (is_error, told) in [(false, "transferred"), (true, "refused")] {
        let mut call = asked(false);
        answers(&mut call, "", &[sales()]);
        assert_eq!(sent(&mut call), ["c_t1"]);
        call.handle(2_000, Input::CostLimit);
        let at_the_end = call.offset_ms();
        let late =
            |text: &str| Input::ToolResult { id: "c_t1".into(), text: text.into(), is_error, mocked: false };
        call.handle(call.now_ms(), late(told));
        call.handle(call.now_ms(), late("again"));
        let row = call.transcript().last().unwrap();
        assert_eq!((row.text.as_str(), row.is_error), (told, Some(is_error)));
        assert_eq!(
            call.transcript().iter().filter(|row| row.is_error.is_some()).count(),
            1,
            "a result comes once"
        );
        assert_eq!((call.ended(), call.offset_ms()), (Some(EndedReason::CostLimit), at_the_end));
    }
}

fn setup(is_spoken: bool) -> ConversationSetup {
    let names = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"enum": ["Sales", "Support"]}}});
    let spec = |name: &str, parameters: Value| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: parameters.into(),
    };
    ConversationSetup {
        id: "c".into(),
        instructions: String::new(),
        first_message: String::new(),
        knowledge: Vec::new().into(),
        tools: vec![spec("note", json!({"type": "object"})), spec(TRANSFER_TOOL, names)].into(),
        has_transfers: true,
        keys: false,
        seed: 1,
        limits: ConversationLimits::default(),
        is_spoken,
        apology: String::new(),
        still_there: String::new(),
        not_understood: String::new(),
        filler: String::new(),
        opening_note: String::new(),
        voicemail: None,
    }
}

/// A conversation whose model was asked.
fn asked(is_spoken: bool) -> Conversation {
    let mut call = Conversation::new(setup(is_spoken));
    call.handle(0, Input::Start);
    call.handle(0, user());
    call
}

fn user() -> Input {
    Input::UserText { text: "I want to buy.".into(), duration_ms: 0, silence_ms: 0 }
}

/// The model answers the first request. Returns what is said.
fn answers(call: &mut Conversation, text: &str, calls: &[ToolRequest]) -> Vec<String> {
    let reply = AssistantReply::CallTools { text: text.into(), calls: calls.to_vec() };
    call.handle(100, Input::AssistantReply { request: 1, reply });
    if text.is_empty() {
        return Vec::new();
    }
    let mut said = Vec::new();
    while let Some(output) = call.poll() {
        match output {
            Output::Say { text } => said.push(text),
            Output::CallTool { id, .. } | Output::PressKeys { id, .. } => panic!("{id} is sent"),
            Output::AskModel { .. } | Output::Hush | Output::Ended { .. } => {}
        }
    }
    said
}

/// The ids of the calls that are sent now.
fn sent(call: &mut Conversation) -> Vec<String> {
    let outputs = std::iter::from_fn(|| call.poll());
    outputs
        .filter_map(|output| if let Output::CallTool { id, .. } = output { Some(id) } else { None })
        .collect()
}

fn sales() -> ToolRequest {
    to(&json!("Sales"))
}

fn to(name: &Value) -> ToolRequest {
    ToolRequest { name: TRANSFER_TOOL.into(), arguments: json!({"name": name}) }
}

fn result(id: &str, is_error: bool) -> Input {
    Input::ToolResult { id: id.into(), text: "It says so.".into(), is_error, mocked: false }
}
