//! What was heard of the assistant's lines, whatever ends them.
use serde_json::json;

use super::*;
use crate::conversation::ToolRequest;
use crate::conversation::{ConversationLimits, TRANSCRIPT_BYTES_MAX, ToolSpec};

const LINE: &str = "One two three four five six seven eight nine ten.";

#[test]
fn a_line_is_cut_after_the_end_of_the_conversation() {
    let mut call = spoken(LINE);
    call.handle(3_000, Input::HangUp { by: Party::User });
    call.handle(3_000, Input::Interrupted { heard_permille: 500 });
    let row = &call.transcript()[0];
    assert_eq!((row.text.as_str(), row.interrupted), ("One two three four five", true));
    assert_eq!((row.intended_text.as_deref(), row.start_ms, row.end_ms), (Some(LINE), 0, 3_000));
    assert_eq!((call.ended(), call.offset_ms()), (Some(EndedReason::UserHungUp), 3_000));
}

/// Scripts without spaces are cut between their words, too.
#[test]
fn a_line_without_spaces_is_cut_where_it_was_heard() {
    for (line, permille, heard) in [
        ("今日は予約できません。", 455, "今日は予約"),
        ("您好，请稍等。", 400, "您好"),
        ("予約はOK できます。", 390, "予約は"),
        ("Good morning, 田中さん。", 630, "Good morning, 田"),
    ] {
        let mut call = spoken(line);
        call.handle(3_000, Input::Interrupted { heard_permille: permille });
        assert_eq!(call.transcript()[0].text, heard, "{line}");
    }
}

#[test]
fn an_end_that_is_found_late_was_at_its_own_time() {
    let mut call = spoken(LINE);
    call.handle(4_000, Input::Tick);
    call.handle(7_842, Input::Noise);
    call.handle(3_300, Input::Stop { reason: EndedReason::UserHungUp });
    call.handle(3_300, Input::Interrupted { heard_permille: 100 });
    assert_eq!((call.offset_ms(), call.now_ms()), (3_300, 3_300));
    assert_eq!(call.transcript()[0].end_ms, 3_300);
    // What is in the transcript was said before the end.
    let mut call = spoken(LINE);
    call.handle(2_000, Input::Spoken { until_ms: None });
    call.handle(5_000, user("Hello?"));
    call.handle(3_300, Input::Stop { reason: EndedReason::UserHungUp });
    assert_eq!(call.offset_ms(), 5_000);
}

#[test]
fn last_words_are_recorded_and_not_answered() {
    let mut call = spoken(LINE);
    call.handle(3_000, Input::HangUp { by: Party::User });
    while call.poll().is_some() {}
    call.handle(3_000, Input::Interrupted { heard_permille: 500 });
    call.handle(3_000, Input::UserText { text: "No, thanks.".into(), duration_ms: 700, silence_ms: 200 });
    call.handle(3_000, Input::Keys { keys: "2".into(), duration_ms: 0, silence_ms: 0 });
    assert_eq!(call.poll(), None);
    let rows: Vec<_> =
        call.transcript().iter().map(|row| (row.text.as_str(), row.start_ms, row.end_ms)).collect();
    assert_eq!(rows[1..], [("No, thanks.", 2_100, 2_800), ("2", 3_000, 3_000)]);
    assert_eq!((call.ended(), call.offset_ms()), (Some(EndedReason::UserHungUp), 3_000));
    // What does not fit is left out, and changes no reason.
    call.transcript_bytes = TRANSCRIPT_BYTES_MAX;
    call.handle(3_000, user("Goodbye."));
    assert_eq!((call.transcript().len(), call.ended()), (3, Some(EndedReason::UserHungUp)));
}

#[test]
fn words_that_were_lost_are_asked_for_again() {
    let ask = "Sorry, I did not catch that.";
    let mut call = spoken(LINE);
    call.setup.not_understood = ask.into();
    call.handle(1_000, Input::NotUnderstood);
    assert_eq!(call.transcript().len(), 1, "the assistant is still speaking");
    call.handle(3_000, Input::Spoken { until_ms: None });
    call.handle(5_000, Input::NotUnderstood);
    assert_eq!(call.transcript()[1].text, ask);
    assert_eq!(call.history().last(), Some(&Message::Assistant { text: ask.into() }));
    call.handle(7_000, Input::Spoken { until_ms: None });
    call.handle(8_000, user("Hello?"));
    call.handle(8_100, Input::NotUnderstood);
    assert_eq!(call.transcript().len(), 3, "an answer is on its way");
}

#[test]
fn each_of_several_lines_has_its_own_time_and_cut() {
    let mut call = spoken("");
    call.handle(1_000, user("Order 7?"));
    let calls = vec![ToolRequest { name: "order".into(), arguments: json!({}) }];
    let reply = AssistantReply::CallTools { text: "One moment please.".into(), calls };
    call.handle(1_100, Input::AssistantReply { request: 1, reply });
    let result = Input::ToolResult { id: "c_t1".into(), text: "sent".into(), is_error: false, mocked: false };
    call.handle(1_200, result);
    let reply = AssistantReply::Say { text: LINE.into() };
    call.handle(1_300, Input::AssistantReply { request: 2, reply });
    assert_eq!(call.speaking(), Some(1));
    let heard = call.rows_as_heard(1, 1_500, &[400]);
    let texts: Vec<_> = heard.iter().map(|row| (row.text.as_str(), row.interrupted)).collect();
    assert_eq!(texts[0], ("One", true));
    assert_eq!((texts[3], heard[3].intended_text.as_deref()), (("", true), Some(LINE)), "it has not begun");
    call.handle(2_000, Input::Spoken { until_ms: None });
    assert_eq!(call.speaking(), Some(4));
    let heard = call.rows_as_heard(4, 3_500, &[500]);
    call.handle(3_500, Input::Interrupted { heard_permille: 500 });
    let rows = call.transcript();
    assert_eq!((rows[1].start_ms, rows[1].end_ms, rows[1].interrupted), (1_100, 2_000, false));
    assert_eq!((rows[4].start_ms, rows[4].end_ms, rows[4].interrupted), (2_000, 3_500, true));
    assert_eq!(heard, rows[4..], "the journal has the same cut as the transcript");
    assert_eq!(call.history().last(), Some(&Message::Assistant { text: "One two three four five…".into() }));
}

#[test]
fn a_line_that_was_paused_and_cut_ends_with_the_pause() {
    let paused = || {
        let mut call = spoken(LINE);
        call.handle(2_000, Input::Paused);
        call
    };
    let mut call = paused();
    let heard = call.rows_as_heard(0, 30_000, &[500]);
    call.handle(32_000, Input::Interrupted { heard_permille: 500 });
    assert_eq!((call.transcript()[0].end_ms, call.transcript()[0].interrupted), (2_000, true));
    assert_eq!(heard, call.transcript(), "the journal has the same");

    let mut call = paused();
    call.handle(2_500, Input::Resumed);
    call.handle(4_000, Input::Interrupted { heard_permille: 500 });
    assert_eq!(call.transcript()[0].end_ms, 4_000);

    // The call ends in the pause.
    let mut call = paused();
    call.handle(5_000, Input::HangUp { by: Party::User });
    call.handle(5_000, Input::Interrupted { heard_permille: 500 });
    assert_eq!(call.transcript()[0].end_ms, 2_000);
}

#[test]
fn a_failed_model_is_apologized_for() {
    let mut call = spoken("Hello.");
    call.handle(1_000, Input::Spoken { until_ms: None });
    call.handle(2_000, user("Are you open?"));
    call.handle(3_000, Input::ModelFailed { request: 1, reason: "gone".into() });
    assert_eq!(call.transcript().last().unwrap().text, "I am sorry.");
    assert_eq!(call.ended(), Some(EndedReason::ModelFailed));
    call.handle(4_000, Input::Spoken { until_ms: None });
    assert_eq!((call.transcript().last().unwrap().end_ms, call.offset_ms()), (4_000, 4_000));
    // The limits do not change the reason.
    let mut call = spoken("I am sorry.");
    call.setup.limits.turns_max = 3;
    call.setup.limits.repeats_max = 2;
    call.handle(2_000, user("Are you open?"));
    call.handle(3_000, Input::ModelFailed { request: 1, reason: "gone".into() });
    let ends = std::iter::from_fn(|| call.poll()).filter(|output| matches!(output, Output::Ended { .. }));
    assert_eq!(ends.collect::<Vec<_>>(), [Output::Ended { reason: EndedReason::ModelFailed }]);
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_the_call() {
    let mut call = spoken("");
    call.handle(1_000, user("Order 7?"));
    let reply = AssistantReply::call("order", json!({"number": "seven"}));
    call.handle(1_100, Input::AssistantReply { request: 1, reply });
    let outputs: Vec<_> = std::iter::from_fn(|| call.poll()).collect();
    assert!(!outputs.iter().any(|output| matches!(output, Output::CallTool { .. })), "{outputs:?}");
    let [_, made, result] = call.transcript() else { panic!("{:?}", call.transcript()) };
    assert_eq!((made.is_error, result.is_error), (Some(true), Some(true)));
    assert!(
        result.text.starts_with("The arguments do not fit the tool's parameters: number "),
        "{}",
        result.text
    );
}

pub(super) fn spoken(first_message: &str) -> Conversation {
    let mut call = Conversation::new(ConversationSetup {
        id: "c".into(),
        instructions: String::new(),
        first_message: first_message.into(),
        knowledge: Vec::new().into(),
        tools: vec![ToolSpec {
            name: "order".into(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"number": {"type": "integer"}}}).into(),
        }]
        .into(),
        has_transfers: false,
        seed: 1,
        limits: ConversationLimits::default(),
        is_spoken: true,
        apology: "I am sorry.".into(),
        still_there: String::new(),
        not_understood: String::new(),
        keys: false,
        opening_note: String::new(),
        voicemail: None,
        filler: "I am looking.".into(),
    });
    call.handle(0, Input::Start);
    call
}

pub(super) fn user(text: &str) -> Input {
    Input::UserText { text: text.into(), duration_ms: 0, silence_ms: 0 }
}

#[test]
fn the_rest_of_a_line_whose_voice_fails_is_said_once_more() {
    let mut call = spoken(LINE);
    call.handle(2_000, Input::BrokeOff { heard_permille: 500 });
    let texts = |call: &Conversation| -> Vec<String> {
        call.transcript().iter().map(|row| row.text.clone()).collect()
    };
    let rest = LINE.strip_prefix("One two three four five ").unwrap();
    assert_eq!(texts(&call), ["One two three four five", rest]);
    assert_eq!(call.speaking(), Some(1));
    // It fails again: what was not heard is not in the text, and nothing more is said.
    call.handle(3_000, Input::BrokeOff { heard_permille: 0 });
    assert_eq!(texts(&call), ["One two three four five", ""]);
    assert_eq!(call.transcript()[1].intended_text.as_deref(), Some(rest));
    assert_eq!(call.speaking(), None);
    // Only the full stop was not heard.
    let mut call = spoken(LINE);
    call.handle(2_000, Input::BrokeOff { heard_permille: 999 });
    assert_eq!(texts(&call).len(), 1);
    // Nothing was heard of the line: the next one may be.
    let mut call = spoken(LINE);
    call.handle(2_000, Input::BrokeOff { heard_permille: 0 });
    assert_eq!(texts(&call), [""]);
    // After the end, nothing is said.
    let mut call = spoken(LINE);
    call.handle(1_000, Input::Stop { reason: EndedReason::SpeechFailed });
    call.handle(2_000, Input::BrokeOff { heard_permille: 500 });
    assert_eq!(texts(&call), ["One two three four five"]);
}

#[test]
fn a_line_that_waited_for_its_audio_ends_where_its_sound_ended() {
    for end in [Input::BrokeOff { heard_permille: 500 }, Input::Interrupted { heard_permille: 500 }] {
        let mut call = spoken(LINE);
        call.handle(2_000, Input::Paused);
        // The person speaks meanwhile.
        call.handle(3_000, Input::Paused);
        call.handle(7_000, end);
        assert_eq!(call.transcript()[0].end_ms, 2_000);
    }
}

#[test]
fn a_line_whose_voice_fails_is_cut_alone() {
    let mut call = spoken(LINE);
    call.handle(500, user("Hi?"));
    call.handle(
        600,
        Input::AssistantReply { request: 1, reply: AssistantReply::Say { text: "Second line.".into() } },
    );
    call.handle(2_000, Input::BrokeOff { heard_permille: 500 });
    assert_eq!(call.speaking(), Some(2));
    call.handle(3_000, Input::Spoken { until_ms: None });
    let rows = call.transcript();
    assert_eq!(
        (rows[0].text.as_str(), rows[0].interrupted, rows[0].end_ms),
        ("One two three four five", true, 2_000)
    );
    assert_eq!((rows[2].text.as_str(), rows[2].interrupted), ("Second line.", false));
    assert_eq!((rows[2].start_ms, rows[2].end_ms), (2_000, 3_000));
    let told: Vec<_> = call.history().iter().map(|message| json!(message)["text"].clone()).collect();
    assert_eq!(told, ["One two three four five…", "Hi?", "Second line."]);
}
