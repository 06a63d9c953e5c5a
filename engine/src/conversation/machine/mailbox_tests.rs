//! A machine answers.
use serde_json::json;

use crate::conversation::transcript::TranscriptRole::{self, Assistant, System, ToolCall, ToolResult, User};
use crate::conversation::{
    AssistantReply, Conversation, ConversationSetup, EndedReason, Greeting, Input, Output, Party,
    TRANSFER_TOOL, ToolRequest, WaitingFor,
};

const HELLO: &str = "Hello, this is Blue Door Dental.";
const MESSAGE: &str = "Please call us back.";

#[test]
fn the_message_is_left_once_the_greeting_is_over() {
    let mut call = greeted("leave_message");
    call.handle(1_000, Input::MachineAnswered { greeting: None });
    assert_eq!(outputs(&mut call), [Output::Hush]);
    assert_eq!(call.waiting_for(), WaitingFor::Machine);
    call.handle(1_100, Input::Interrupted { heard_permille: 400 });
    call.handle(3_000, heard("We are not at home."));
    call.handle(3_500, Input::MachineAnswered { greeting: Some(Greeting::Ended) });
    assert_eq!(outputs(&mut call), [Output::Say { text: MESSAGE.into() }]);
    // Whoever answers meanwhile is not answered.
    call.handle(4_000, heard("Beep."));
    call.handle(5_500, Input::Spoken { until_ms: None });
    assert_eq!(outputs(&mut call), [Output::Ended { reason: EndedReason::AssistantEnded }]);
    assert_eq!(roles(&call), [Assistant, System, User, Assistant, User]);
    let (cut, left) = (&call.transcript()[0], &call.transcript()[3]);
    assert!(cut.interrupted && cut.text == "Hello, this", "{cut:?}");
    assert_eq!(
        (left.text.as_str(), left.interrupted, left.start_ms, left.end_ms),
        (MESSAGE, false, 3_500, 5_500)
    );
}

#[test]
fn a_greeting_whose_end_is_not_reported_ends_with_silence() {
    let mut call = greeted("leave_message");
    call.handle(1_000, Input::MachineAnswered { greeting: None });
    call.handle(1_000, Input::Interrupted { heard_permille: 0 });
    call.handle(2_000, Input::VoiceBegan);
    assert_eq!(call.poll_timeout(), Some(46_000), "at the latest");
    call.handle(9_000, Input::VoiceEnded);
    assert_eq!(call.poll_timeout(), Some(12_000));
    call.handle(11_999, Input::Tick);
    assert_eq!(call.waiting_for(), WaitingFor::Machine);
    while call.poll().is_some() {}
    call.handle(12_000, Input::Tick);
    assert_eq!(outputs(&mut call), [Output::Say { text: MESSAGE.into() }]);
}

#[test]
fn a_greeting_without_end_is_talked_over() {
    let mut call = greeted("leave_message");
    call.handle(1_000, Input::MachineAnswered { greeting: None });
    call.handle(1_000, Input::Interrupted { heard_permille: 0 });
    call.handle(2_000, Input::VoiceBegan);
    while call.poll().is_some() {}
    call.handle(46_000, Input::Tick);
    assert_eq!(outputs(&mut call), [Output::Say { text: MESSAGE.into() }]);
}

#[test]
fn a_machine_that_is_known_before_the_first_audio_is_not_greeted() {
    let mut call = Conversation::new(setup("leave_message"));
    call.handle(1_000, Input::MachineAnswered { greeting: Some(Greeting::Ended) });
    assert!(outputs(&mut call).is_empty());
    call.handle(1_001, Input::Start);
    assert_eq!(outputs(&mut call), [Output::Hush, Output::Say { text: MESSAGE.into() }]);
    assert_eq!(roles(&call), [System, Assistant]);
}

#[test]
fn without_a_message_it_ends_as_soon_as_nothing_is_spoken() {
    for (action, greeting) in [("hang_up", None), ("leave_message", Some(Greeting::None))] {
        let mut call = greeted(action);
        call.handle(1_000, Input::MachineAnswered { greeting });
        assert_eq!((outputs(&mut call), call.ended()), (vec![Output::Hush], None));
        call.handle(1_050, Input::Interrupted { heard_permille: 300 });
        assert_eq!(call.ended(), Some(EndedReason::AssistantEnded));
        assert_eq!(roles(&call), [Assistant, System]);
    }
}

#[test]
fn the_model_is_asked_and_answered_no_more() {
    let mut call = greeted("leave_message");
    call.handle(500, Input::Spoken { until_ms: None });
    call.handle(1_000, heard("You have reached the mailbox of Ada."));
    assert_eq!(call.waiting_for(), WaitingFor::Model);
    call.handle(1_100, Input::AssistantText { request: 1, text: "Hello Ada. ".into() });
    call.handle(1_200, Input::MachineAnswered { greeting: None });
    call.handle(1_250, Input::AssistantText { request: 1, text: "How are you?".into() });
    call.handle(1_300, Input::Interrupted { heard_permille: 600 });
    let reply = AssistantReply::Say { text: "Hello Ada. How are you?".into() };
    call.handle(1_400, Input::AssistantReply { request: 1, reply });
    call.handle(2_000, heard("Speak after the tone."));
    let row = &call.transcript()[2];
    assert_eq!((row.text.as_str(), row.intended_text.as_deref()), ("Hello", Some("Hello Ada.")));
    assert_eq!(roles(&call), [Assistant, User, Assistant, System, User]);
    assert!(!outputs(&mut call).iter().any(|output| *output == Output::AskModel { request: 2 }));
}

#[test]
fn a_tool_that_runs_is_recorded_and_a_transfer_that_waits_is_not_made() {
    let mut call = greeted("leave_message");
    call.handle(500, Input::Spoken { until_ms: None });
    call.handle(1_000, heard("This is the mailbox of Ada."));
    while call.poll().is_some() {}
    let tool = |name: &str| ToolRequest { name: name.into(), arguments: json!({}) };
    let reply =
        AssistantReply::CallTools { text: String::new(), calls: vec![tool("note"), tool(TRANSFER_TOOL)] };
    call.handle(1_100, Input::AssistantReply { request: 1, reply });
    call.handle(1_200, Input::MachineAnswered { greeting: None });
    call.handle(
        1_300,
        Input::ToolResult { id: "c_t1".into(), text: "noted".into(), is_error: false, mocked: false },
    );
    let results = call.transcript().iter().filter(|row| row.role == ToolResult);
    let results: Vec<_> = results.map(|row| (row.tool_call_id.as_deref().unwrap(), row.is_error)).collect();
    assert_eq!(results, [("c_t2", Some(true)), ("c_t1", Some(false))]);
    assert_eq!(roles(&call), [Assistant, User, ToolCall, ToolCall, System, ToolResult, ToolResult]);
    let sent = outputs(&mut call);
    assert!(
        matches!(sent.as_slice(), [Output::CallTool { id, .. }, Output::Hush] if id == "c_t1"),
        "{sent:?}"
    );
    call.handle(4_300, Input::Tick);
    assert_eq!(outputs(&mut call), [Output::Say { text: MESSAGE.into() }]);
}

#[test]
fn a_message_that_breaks_off_is_completed_once() {
    let mut call = leaving();
    call.handle(2_000, Input::BrokeOff { heard_permille: 600 });
    assert_eq!(outputs(&mut call), [Output::Say { text: "us back.".into() }]);
    call.handle(3_000, Input::BrokeOff { heard_permille: 0 });
    assert_eq!(call.ended(), Some(EndedReason::AssistantEnded));
}

#[test]
fn who_hangs_up_during_the_message_ends_it() {
    let mut call = leaving();
    call.handle(2_000, Input::HangUp { by: Party::User });
    call.handle(2_000, Input::Interrupted { heard_permille: 600 });
    assert_eq!(call.ended(), Some(EndedReason::UserHungUp));
    let row = call.transcript().last().unwrap();
    assert_eq!((row.text.as_str(), row.intended_text.as_deref()), ("Please call", Some(MESSAGE)));
}

#[test]
fn reports_are_taken_once_and_only_where_somebody_wants_them() {
    let mut call = leaving();
    call.handle(1_500, Input::MachineAnswered { greeting: Some(Greeting::Ended) });
    call.handle(1_600, Input::MachineAnswered { greeting: Some(Greeting::None) });
    assert!(outputs(&mut call).is_empty());
    assert_eq!(roles(&call), [Assistant, System, Assistant]);
    let mut call = Conversation::new(ConversationSetup { voicemail: None, ..setup("hang_up") });
    call.handle(0, Input::Start);
    call.handle(500, Input::MachineAnswered { greeting: Some(Greeting::Ended) });
    assert_eq!((call.waiting_for(), roles(&call)), (WaitingFor::User, vec![Assistant]));
}

#[test]
fn the_state_can_be_stored() {
    for mut call in [greeted("leave_message"), leaving()] {
        call.handle(1_000, Input::MachineAnswered { greeting: None });
        let loaded: Conversation = serde_json::from_value(json!(call)).unwrap();
        assert_eq!(loaded, call);
    }
}

fn setup(action: &str) -> ConversationSetup {
    let tool = |name: &str| json!({"name": name, "description": "", "parameters": {"type": "object"}});
    let setup = json!({
        "id": "c", "instructions": "", "first_message": HELLO, "knowledge": [], "seed": 1, "is_spoken": true,
        "tools": [tool("note"), tool(TRANSFER_TOOL)], "has_transfers": true,
        "voicemail": {"action": action, "message": MESSAGE},
    });
    serde_json::from_value(setup).unwrap()
}

/// A conversation that says its first line.
fn greeted(action: &str) -> Conversation {
    let mut call = Conversation::new(setup(action));
    call.handle(0, Input::Start);
    while call.poll().is_some() {}
    call
}

/// A conversation that leaves its message.
fn leaving() -> Conversation {
    let mut call = greeted("leave_message");
    call.handle(500, Input::MachineAnswered { greeting: Some(Greeting::Ended) });
    call.handle(600, Input::Interrupted { heard_permille: 100 });
    while call.poll().is_some() {}
    call
}

fn heard(text: &str) -> Input {
    Input::UserText { text: text.into(), duration_ms: 0, silence_ms: 0 }
}

fn outputs(call: &mut Conversation) -> Vec<Output> {
    std::iter::from_fn(|| call.poll()).collect()
}

fn roles(call: &Conversation) -> Vec<TranscriptRole> {
    call.transcript().iter().map(|row| row.role).collect()
}
