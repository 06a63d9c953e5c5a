//! Examples and properties of the conversation.
use super::record::BRACKETS_BYTES;
use super::*;
use crate::conversation::{ConversationLimits, ToolSpec};
use crate::conversation::{DURATION_MS_MAX, TOOL_RESULT_BYTES_MAX, TRANSCRIPT_BYTES_MAX, ToolRequest};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn the_assistant_opens_and_answers() {
    let mut talk = Talk::new(setup("Hello!"));
    assert_eq!(talk.drain(Input::Start), [say("Hello!")]);
    assert_eq!(talk.drain(user("Are you open?")), [ask(1)]);
    assert_eq!(talk.drain(reply(1, "Yes.")), [say("Yes.")]);
    assert_eq!(talk.conversation.waiting_for(), WaitingFor::User);
    assert_eq!(talk.drain(hang_up()), [ended(EndedReason::UserHungUp)]);
    assert_eq!(talk.texts(), ["Hello!", "Are you open?", "Yes."]);
    assert_eq!(talk.conversation.turns(), 3);
    assert_eq!(talk.conversation.history().len(), 3);
}

#[test]
fn without_a_first_message_the_assistant_waits() {
    let mut talk = Talk::new(setup(" "));
    assert_eq!(talk.drain(Input::Start), []);
    assert_eq!(talk.conversation.waiting_for(), WaitingFor::User);
    assert!(talk.conversation.transcript().is_empty());
}

#[test]
fn rows_carry_offsets_from_the_start() {
    let mut conversation = Conversation::new(setup("Hello!"));
    conversation.handle(10_000, Input::Start);
    conversation.handle(10_400, Input::Spoken { until_ms: None });
    conversation.handle(12_000, Input::UserText { text: "Hi".into(), duration_ms: 600, silence_ms: 0 });
    conversation.handle(11_000, reply(1, "Yes."));
    let times: Vec<_> = conversation.transcript().iter().map(|row| (row.start_ms, row.end_ms)).collect();
    assert_eq!(times, [(0, 400), (1_400, 2_000), (2_000, 2_000)]);
    assert_eq!(conversation.offset_ms(), 2_000);
}

#[test]
fn a_tool_runs_between_question_and_answer() {
    let mut talk = Talk::started();
    talk.drain(user("Order 7?"));
    let call = Output::CallTool { id: "c_t1".into(), name: "order".into(), arguments: json!({"id": 7}) };
    assert_eq!(talk.drain(tool_call(1, "order", json!({"id": 7}))), [call]);
    assert_eq!(talk.drain(result("c_t9", "other")), []);
    assert_eq!(talk.drain(result("c_t1", "sent")), [ask(2)]);
    assert_eq!(talk.drain(result("c_t1", "again")), []);
    assert_eq!(talk.drain(reply(2, "It was sent.")), [say("It was sent.")]);
    let rows = talk.conversation.transcript();
    assert_eq!(rows[1].text, r#"order({"id":7})"#);
    assert_eq!(rows[1].arguments, Some(json!({"id": 7})));
    assert_eq!(rows[1].is_error, None);
    assert_eq!(rows[2].tool_call_id.as_deref(), Some("c_t1"));
    assert_eq!(rows[2].is_error, Some(false));
}

#[test]
fn parallel_calls_are_answered_together() {
    let mut talk = Talk::started();
    talk.drain(user("Orders 7 and 8?"));
    let calls =
        ["order", "nothing", "order"].map(|name| ToolRequest { name: name.into(), arguments: json!({}) });
    let reply = AssistantReply::CallTools { text: "One moment.".into(), calls: calls.into() };
    let asked = talk.drain(Input::AssistantReply { request: 1, reply });
    assert!(
        matches!(&asked[..], [Output::Say { .. }, Output::CallTool { id: one, .. }, Output::CallTool { id: other, .. }]
            if one == "c_t1" && other == "c_t3"),
        "{asked:?}"
    );
    assert_eq!(talk.drain(result("c_t3", "done")), []);
    assert_eq!(talk.drain(result("c_t3", "again")), []);
    let mut loaded: Conversation = serde_json::from_value(json!(talk.conversation)).unwrap();
    loaded.resume();
    assert!(matches!(loaded.poll(), Some(Output::CallTool { id, .. }) if id == "c_t1"));
    assert_eq!(talk.drain(result("c_t1", "done")), [ask(2)]);
    let rows: Vec<_> = talk.conversation.history().iter().map(|row| json!(row)["role"].clone()).collect();
    let expected = [
        "user",
        "assistant",
        "tool_call",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "tool_result",
    ];
    assert_eq!(rows[rows.len() - 8..], expected);
}

#[test]
fn time_and_cost_are_limits() {
    let mut talk = Talk::started();
    assert_eq!(talk.drain(Input::CostLimit), [ended(EndedReason::CostLimit)]);
    let mut conversation = Conversation::new(setup("Hello!"));
    conversation.handle(0, Input::Start);
    conversation.handle(DURATION_MS_MAX, Input::Spoken { until_ms: None });
    assert_eq!(conversation.ended(), Some(EndedReason::DurationLimit));
}

#[test]
fn the_assistants_goodbye_ends_the_conversation() {
    for text in ["Goodbye!", " "] {
        let mut talk = Talk::started();
        talk.drain(user("Bye"));
        let reply = AssistantReply::Goodbye { text: text.into() };
        let outputs = talk.drain(Input::AssistantReply { request: 1, reply });
        assert_eq!(outputs.last(), Some(&ended(EndedReason::AssistantEnded)));
        assert_eq!(outputs.len(), if text == " " { 1 } else { 2 });
    }
}

#[test]
fn an_unknown_tool_is_an_error_for_the_model() {
    let mut talk = Talk::started();
    talk.drain(user("Order 7?"));
    assert_eq!(talk.drain(tool_call(1, "ordr", json!({}))), [ask(2)]);
    let rows = talk.conversation.transcript();
    assert_eq!(rows[1].is_error, Some(true));
    assert_eq!(rows[2].text, "There is no such tool. The tools are: order.");
    assert_eq!(talk.drain(tool_call(2, "order", json!([1]))), [ask(3)]);
    assert!(talk.texts().contains(&"The arguments must be a JSON object.".to_owned()));
}

#[test]
fn endless_tool_calls_end_the_conversation() {
    let mut talk = Talk::started();
    talk.conversation.setup.limits.tool_calls_per_turn_max = 2;
    talk.drain(user("Order 7?"));
    for n in 1..=2 {
        talk.drain(tool_call(n, "order", json!({})));
        talk.drain(result(&format!("c_t{n}"), "sent"));
    }
    assert_eq!(talk.drain(tool_call(3, "order", json!({}))), [ask(4)]);
    assert!(talk.texts().last().unwrap().starts_with("No further tool call"));
    let last = talk.drain(tool_call(4, "order", json!({})));
    assert_eq!(last, [ended(EndedReason::ToolLoop)]);
}

#[test]
fn each_user_line_resets_the_tool_call_limit() {
    let mut talk = Talk::started();
    talk.conversation.setup.limits.tool_calls_per_turn_max = 1;
    for n in 0..3 {
        talk.drain(user("Order 7?"));
        let asked = talk.drain(tool_call(2 * n + 1, "order", json!({})));
        assert!(matches!(asked[..], [Output::CallTool { .. }]), "{asked:?}");
        talk.drain(result(&format!("c_t{}", n + 1), "sent"));
        talk.drain(reply(2 * n + 2, &format!("Sent {n}.")));
    }
    assert_eq!(talk.conversation.ended(), None);
}

#[test]
fn a_second_line_replaces_the_open_request() {
    let mut talk = Talk::started();
    assert_eq!(talk.drain(user("Are you")), [ask(1)]);
    assert_eq!(talk.drain(user("open today?")), [ask(2)]);
    assert_eq!(talk.drain(reply(1, "Yes?")), []);
    assert_eq!(talk.drain(reply(2, "Yes.")), [say("Yes.")]);
    assert_eq!(talk.texts(), ["Are you", "open today?", "Yes."]);
}

#[test]
fn a_line_during_a_tool_call_follows_its_result() {
    let mut talk = Talk::started();
    talk.drain(user("Order 7?"));
    talk.drain(tool_call(1, "order", json!({})));
    assert_eq!(talk.drain(user("Quick!")), []);
    assert_eq!(talk.drain(result("c_t1", "sent")), [ask(2)]);
    assert_eq!(talk.texts()[2], "Quick!");
    assert_eq!(talk.conversation.history().last(), Some(&Message::User { text: "Quick!".into() }));
}

#[test]
fn the_line_that_reaches_the_turn_limit_is_the_last() {
    let mut talk = Talk::started();
    talk.conversation.setup.limits.turns_max = 3;
    talk.drain(user("1"));
    talk.drain(reply(1, "2"));
    assert_eq!(talk.drain(user("3")), [ended(EndedReason::TurnLimit)]);
    let mut talk = Talk::started();
    talk.conversation.setup.limits.turns_max = 2;
    talk.drain(user("1"));
    assert_eq!(talk.drain(reply(1, "2")), [say("2"), ended(EndedReason::TurnLimit)]);
}

#[test]
fn an_assistant_that_repeats_itself_is_stopped() {
    let mut talk = Talk::started();
    for n in 1..REPEATS {
        talk.drain(user("hello?"));
        assert_eq!(talk.drain(reply(n, "PARDON  me")).len(), 1);
    }
    talk.drain(user("hello?"));
    let last = talk.drain(reply(REPEATS, "Pardon me"));
    assert_eq!(last[1], ended(EndedReason::AssistantRepeating));
}
const REPEATS: u64 = crate::conversation::REPEATS_MAX as u64;

#[test]
fn repeated_silence_ends_the_conversation_and_a_line_resets_the_count() {
    let mut talk = Talk::started();
    assert_eq!(talk.drain(Input::Silence), []);
    assert_eq!(talk.drain(Input::Silence), []);
    talk.drain(user("here"));
    talk.drain(reply(1, "Good."));
    assert_eq!(talk.drain(Input::Silence), []);
    assert_eq!(talk.drain(Input::Silence), []);
    assert_eq!(talk.drain(Input::Silence), [ended(EndedReason::Silence)]);
}

#[test]
fn a_failed_model_ends_the_conversation_and_keeps_the_reason() {
    let mut talk = Talk::started();
    talk.drain(user("hi"));
    let failed = |request| Input::ModelFailed { request, reason: "timeout".into() };
    assert_eq!(talk.drain(failed(7)), []);
    assert_eq!(talk.drain(failed(1)), [ended(EndedReason::ModelFailed)]);
    assert_eq!(talk.conversation.failure(), Some("timeout"));
}

#[test]
fn after_an_empty_reply_it_is_the_users_turn() {
    let mut talk = Talk::started();
    talk.drain(user("hi"));
    assert_eq!(talk.drain(reply(1, "\n")), []);
    assert_eq!(talk.conversation.waiting_for(), WaitingFor::User);
    assert_eq!(talk.texts(), ["hi"]);
}

#[test]
fn either_side_or_the_service_can_end_it_at_any_time() {
    let end = |input| Talk::new(setup("")).drain(input);
    assert_eq!(end(hang_up()), [ended(EndedReason::UserHungUp)]);
    assert_eq!(end(Input::HangUp { by: Party::Assistant }), [ended(EndedReason::AssistantEnded)]);
    let reason = EndedReason::Aborted;
    assert_eq!(end(Input::Stop { reason }), [ended(reason)]);
}

#[test]
fn a_loaded_state_repeats_its_open_requests() {
    let mut talk = Talk::started();
    talk.drain(user("Order 7?"));
    talk.reload();
    assert_eq!(talk.resumed(), [ask(1)]);
    let call = talk.drain(tool_call(1, "order", json!({"id": 7})));
    talk.reload();
    assert_eq!(talk.resumed(), call);
    assert_eq!(talk.drain(result("c_t1", "sent")), [ask(2)]);
    talk.drain(reply(2, "Sent."));
    assert_eq!(talk.resumed(), []);
}

#[test]
fn a_huge_line_is_truncated() {
    let mut talk = Talk::started();
    talk.drain(user(&"é".repeat(TEXT_BYTES_MAX)));
    assert!(talk.texts()[0].len() <= TEXT_BYTES_MAX);
    assert!(talk.texts()[0].ends_with('…'));
}

#[test]
fn a_goodbye_is_not_answered() {
    let mut talk = Talk::started();
    assert_eq!(talk.drain(goodbye("Bye.")), [ended(EndedReason::UserHungUp)]);
    assert_eq!(talk.texts(), ["Bye."]);
    assert_eq!(talk.conversation.turns(), 1);
    assert_eq!(Talk::started().drain(goodbye(" ")), [ended(EndedReason::UserHungUp)]);
    // It may arrive while a tool runs.
    let mut talk = Talk::started();
    talk.drain(user("Order 7?"));
    talk.drain(tool_call(1, "order", json!({})));
    assert_eq!(talk.drain(goodbye("Too late.")), [ended(EndedReason::UserHungUp)]);
    assert_eq!(talk.texts().last().unwrap(), "Too late.");
}

#[test]
fn a_goodbye_may_be_the_last_permitted_line() {
    let mut talk = Talk::started();
    talk.conversation.setup.limits.turns_max = 3;
    talk.drain(user("1"));
    talk.drain(reply(1, "2"));
    assert_eq!(talk.drain(goodbye("3")), [ended(EndedReason::UserHungUp)]);
}

#[test]
fn a_long_tool_result_is_truncated_with_a_note() {
    let mut talk = Talk::started();
    talk.drain(user("Order 7?"));
    talk.drain(tool_call(1, "order", json!({})));
    talk.drain(result("c_t1", &"é".repeat(TOOL_RESULT_BYTES_MAX)));
    let text = talk.texts().pop().unwrap();
    assert!(text.len() <= TOOL_RESULT_BYTES_MAX && text.len() > TOOL_RESULT_BYTES_MAX - 4, "{}", text.len());
    assert!(text.ends_with("é… (cut, 16384 bytes in all)"));
    assert!(
        matches!(talk.conversation.history().last(), Some(Message::ToolResult { text: kept, .. }) if *kept == text)
    );
}

#[test]
fn a_row_beyond_the_transcript_limit_ends_the_conversation() {
    // Control characters are the longest as JSON.
    let line = |n: usize| format!("{n}{}", "\u{1}".repeat(50_000));
    let calls = json!({"note": line(0)});
    for kind in ["user", "assistant", "tool"] {
        let mut talk = Talk::started();
        for n in 1..100 {
            let request = talk.conversation.request() + 1;
            talk.drain(user(&if kind == "user" { line(n) } else { "Hi".into() }));
            if kind == "tool" {
                talk.drain(tool_call(request, "order", calls.clone()));
            } else {
                talk.drain(reply(request, &if kind == "assistant" { line(n) } else { format!("{n}") }));
            }
            if talk.conversation.ended().is_some() {
                break;
            }
            let id = format!("c_t{n}");
            talk.drain(result(&id, "sent"));
        }
        assert_eq!(talk.conversation.ended(), Some(EndedReason::TranscriptLimit), "{kind}");
        let bytes = serde_json::to_string(talk.conversation.transcript()).unwrap().len();
        assert!(bytes < TRANSCRIPT_BYTES_MAX && bytes > TRANSCRIPT_BYTES_MAX / 3, "{kind}: {bytes}");
        assert_eq!(talk.drain(user("Still there?")), []);
    }
}

proptest! {
    #[test]
    fn arbitrary_inputs_keep_the_invariants(
        first in prop_oneof![Just(""), Just("Hello!")],
        inputs in prop::collection::vec((any::<i64>(), input()), 0..60),
        reload_at in 0..60_usize,
    ) {
        let mut conversation = Conversation::new(setup(first));
        conversation.setup.limits.turns_max = 20;
        let mut twin: Option<Conversation> = None;
        let mut over = false;
        for (place, (now_ms, input)) in inputs.into_iter().enumerate() {
            if place == reload_at {
                let stored = serde_json::to_string(&conversation).unwrap();
                twin = Some(serde_json::from_str(&stored).unwrap());
            }
            conversation.handle(now_ms, input.clone());
            let outputs = drained(&mut conversation);
            prop_assert!(!over || outputs.is_empty(), "after the end: {outputs:?}");
            over |= matches!(outputs.last(), Some(Output::Ended { .. }));
            prop_assert_eq!(over, conversation.ended().is_some());
            if let Some(twin) = &mut twin {
                twin.handle(now_ms, input);
                prop_assert_eq!(&drained(twin), &outputs);
                prop_assert_eq!(&*twin, &conversation);
            }
            prop_assert!(conversation.turns() <= 20);
            let bytes = serde_json::to_string(conversation.transcript()).unwrap().len();
            prop_assert!(bytes <= conversation.transcript_bytes + BRACKETS_BYTES);
        }
        for (place, row) in conversation.transcript().iter().enumerate() {
            prop_assert_eq!(row.index, place);
            prop_assert!(0 <= row.start_ms && row.start_ms <= row.end_ms);
            prop_assert!(row.end_ms <= conversation.offset_ms());
        }
        // Every result in the history follows its own call.
        for pair in conversation.history().windows(2) {
            if let Message::ToolResult { id, .. } = &pair[1] {
                let Message::ToolCall { id: called, .. } = &pair[0] else {
                    return Err(TestCaseError::fail("a result without a call"));
                };
                prop_assert_eq!(called, id);
            }
        }
    }
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        2 => Just(Input::Start),
        6 => (".{0,3}", any::<i64>())
            .prop_map(|(text, duration_ms)| Input::UserText { text, duration_ms, silence_ms: 0 }),
        1 => (".{0,3}", any::<i64>())
            .prop_map(|(text, duration_ms)| Input::UserGoodbye { text, duration_ms }),
        1 => Just(Input::Silence),
        6 => (0..8_u64, ".{0,3}").prop_map(|(request, text)| reply(request, &text)),
        6 => (0..8_u64, prop_oneof![Just("order"), Just("nope")])
            .prop_map(|(request, name)| tool_call(request, name, json!({}))),
        1 => (0..8_u64).prop_map(|request| tool_call(request, "order", json!(1))),
        1 => (0..8_u64).prop_map(|request| Input::ModelFailed { request, reason: "x".into() }),
        6 => (0..8_u64).prop_map(|n| result(&format!("c_t{n}"), "done")),
        2 => Just(Input::Spoken { until_ms: None }),
        1 => Just(Input::Noise),
        1 => Just(Input::NotUnderstood),
        2 => Just(Input::Tick),
        1 => Just(hang_up()),
        1 => Just(Input::Stop { reason: EndedReason::Aborted }),
    ]
}

struct Talk {
    conversation: Conversation,
    now_ms: i64,
}

impl Talk {
    fn new(setup: ConversationSetup) -> Self {
        Self { conversation: Conversation::new(setup), now_ms: 0 }
    }

    fn started() -> Self {
        let mut talk = Self::new(setup(""));
        talk.drain(Input::Start);
        talk
    }

    fn drain(&mut self, input: Input) -> Vec<Output> {
        self.now_ms += 10;
        self.conversation.handle(self.now_ms, input);
        drained(&mut self.conversation)
    }

    fn reload(&mut self) {
        let stored = serde_json::to_string(&self.conversation).unwrap();
        self.conversation = serde_json::from_str(&stored).unwrap();
    }

    fn resumed(&mut self) -> Vec<Output> {
        self.conversation.resume();
        drained(&mut self.conversation)
    }

    fn texts(&self) -> Vec<String> {
        self.conversation.transcript().iter().map(|row| row.text.clone()).collect()
    }
}

fn drained(conversation: &mut Conversation) -> Vec<Output> {
    std::iter::from_fn(|| conversation.poll()).collect()
}

fn setup(first_message: &str) -> ConversationSetup {
    ConversationSetup {
        id: "c".into(),
        instructions: "Be kind.".into(),
        first_message: first_message.into(),
        knowledge: Vec::new().into(),
        tools: vec![ToolSpec {
            name: "order".into(),
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
        }]
        .into(),
        has_transfers: false,
        seed: 1,
        limits: ConversationLimits::default(),
        is_spoken: false,
        apology: String::new(),
        still_there: String::new(),
        not_understood: String::new(),
        keys: false,
        opening_note: String::new(),
        voicemail: None,
        filler: "One moment, I am looking.".into(),
    }
}

fn user(text: &str) -> Input {
    Input::UserText { text: text.into(), duration_ms: 0, silence_ms: 0 }
}

fn goodbye(text: &str) -> Input {
    Input::UserGoodbye { text: text.into(), duration_ms: 0 }
}

fn reply(request: u64, text: &str) -> Input {
    Input::AssistantReply { request, reply: AssistantReply::Say { text: text.into() } }
}

fn tool_call(request: u64, name: &str, arguments: Value) -> Input {
    let reply = AssistantReply::call(name, arguments);
    Input::AssistantReply { request, reply }
}

fn result(id: &str, text: &str) -> Input {
    Input::ToolResult { id: id.into(), text: text.into(), is_error: false, mocked: false }
}

fn hang_up() -> Input {
    Input::HangUp { by: Party::User }
}

fn say(text: &str) -> Output {
    Output::Say { text: text.into() }
}

fn ask(request: u64) -> Output {
    Output::AskModel { request }
}

fn ended(reason: EndedReason) -> Output {
    Output::Ended { reason }
}
