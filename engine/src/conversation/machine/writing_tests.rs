//! Lines that are said while the model still writes them.
use serde_json::json;

use super::speech_tests::{spoken, user};
use super::*;
use crate::conversation::ToolRequest;

const FIRST: &str = "We open at nine o'clock. ";
const SECOND: &str = "And we close at five.";

/// A conversation whose model has written the first sentence.
fn begun() -> Conversation {
    let mut call = spoken("");
    call.handle(1_000, user("When are you open?"));
    call.handle(1_500, text(1, FIRST));
    call
}

fn text(request: u64, text: &str) -> Input {
    Input::AssistantText { request, text: text.into() }
}

fn reply(request: u64, reply: AssistantReply) -> Input {
    Input::AssistantReply { request, reply }
}

fn outputs(call: &mut Conversation) -> Vec<Output> {
    std::iter::from_fn(|| call.poll()).collect()
}

#[test]
fn a_line_grows_until_the_answer_is_complete() {
    let mut call = begun();
    assert_eq!((call.being_written(), call.waiting_for()), (Some(1), WaitingFor::Model));
    assert_eq!(outputs(&mut call)[1..], [Output::Say { text: FIRST.into() }]);
    call.handle(1_600, text(7, "Of another request. "));
    call.handle(1_900, text(1, "And "));
    call.handle(2_000, reply(1, AssistantReply::Say { text: format!("{FIRST}{SECOND}") }));
    let said = [Output::Say { text: "And ".into() }, Output::Say { text: "we close at five.".into() }];
    assert_eq!(outputs(&mut call), said);
    assert_eq!((call.being_written(), call.waiting_for()), (None, WaitingFor::User));
    let [_, row] = call.transcript() else { panic!("{:?}", call.transcript()) };
    assert_eq!(row.text, format!("{FIRST}{SECOND}"));
    assert_eq!(call.history().last(), Some(&Message::Assistant { text: row.text.clone() }));
    assert_eq!(call.turns(), 2);
    let mut whole = spoken("");
    whole.handle(1_000, user("When are you open?"));
    whole.handle(1_500, reply(1, AssistantReply::Say { text: format!("{FIRST}{SECOND}") }));
    assert_eq!(whole.transcript(), call.transcript(), "the same as an answer that comes whole");
    assert!(call.transcript_bytes() >= whole.transcript_bytes());
}

#[test]
fn an_interruption_drops_the_rest_of_the_answer() {
    let mut call = begun();
    call.handle(2_500, Input::Interrupted { heard_permille: 300 });
    assert_eq!((call.being_written(), call.waiting_for()), (None, WaitingFor::User));
    let row = &call.transcript()[1];
    assert_eq!((row.text.as_str(), row.intended_text.as_deref()), ("We open", Some(FIRST.trim_end())));
    assert_eq!(call.history().last(), Some(&Message::Assistant { text: "We open…".into() }));
    outputs(&mut call);
    call.handle(2_600, text(1, SECOND));
    call.handle(2_700, reply(1, AssistantReply::Say { text: format!("{FIRST}{SECOND}") }));
    assert_eq!((call.transcript().len(), outputs(&mut call).len()), (2, 0), "it is not wanted any more");
    call.handle(3_000, user("And on Sunday?"));
    assert_eq!(outputs(&mut call), [Output::AskModel { request: 2 }]);
}

#[test]
fn the_last_word_that_was_heard_of_a_line_under_way_is_kept() {
    let mut call = begun();
    // The part is told of the line with the space at its end.
    let heard = "We open at".len() as u32 * 1_000;
    call.handle(2_500, Input::Interrupted { heard_permille: heard.div_ceil(FIRST.len() as u32) });
    assert_eq!(call.transcript()[1].text, "We open at");
}

#[test]
fn an_answer_is_cut_even_if_all_that_was_written_was_heard() {
    let mut call = begun();
    call.handle(4_000, Input::Interrupted { heard_permille: 1_000 });
    let row = &call.transcript()[1];
    assert_eq!((row.text.as_str(), row.interrupted), (FIRST.trim_end(), true));
    assert_eq!(row.intended_text.as_deref(), Some(FIRST.trim_end()));
    let said = format!("{}…", FIRST.trim_end());
    assert_eq!(call.history().last(), Some(&Message::Assistant { text: said }));
    let size = serde_json::to_string(call.transcript()).unwrap().len();
    assert!(call.transcript_bytes() >= size);
}

#[test]
fn what_the_user_says_meanwhile_waits_for_the_whole_answer() {
    let mut call = begun();
    outputs(&mut call);
    call.handle(1_800, user("And on Sunday?"));
    assert!(outputs(&mut call).is_empty());
    call.handle(2_000, reply(1, AssistantReply::Say { text: format!("{FIRST}{SECOND}") }));
    let outputs = outputs(&mut call);
    assert_eq!(outputs, [Output::Say { text: SECOND.into() }, Output::AskModel { request: 2 }]);
    let [.., before, last] = call.history() else { panic!() };
    assert_eq!(before, &Message::Assistant { text: format!("{FIRST}{SECOND}") });
    assert_eq!(last, &Message::User { text: "And on Sunday?".into() });
}

#[test]
fn an_answer_that_breaks_off_stays_as_it_was_said() {
    let mut call = begun();
    outputs(&mut call);
    call.handle(2_000, Input::ModelFailed { request: 1, reason: "x/y went away.".into() });
    assert_eq!((call.ended(), call.waiting_for()), (None, WaitingFor::User));
    let [_, said, note] = call.transcript() else { panic!("{:?}", call.transcript()) };
    assert_eq!((said.text.as_str(), said.interrupted), (FIRST.trim_end(), false));
    assert_eq!(note.text, "The model's answer broke off: x/y went away.");
    assert!(outputs(&mut call).is_empty(), "no apology, no other question");
}

#[test]
fn tools_and_the_end_come_after_the_line() {
    let mut call = begun();
    let calls = vec![ToolRequest { name: "order".into(), arguments: json!({}) }];
    call.handle(2_000, reply(1, AssistantReply::CallTools { text: FIRST.trim().into(), calls }));
    let roles: Vec<_> = call.transcript().iter().map(|row| row.role).collect();
    assert_eq!(roles, [TranscriptRole::User, TranscriptRole::Assistant, TranscriptRole::ToolCall]);
    assert_eq!(call.transcript()[1].text, FIRST.trim());
    let mut call = begun();
    call.handle(2_000, reply(1, AssistantReply::Goodbye { text: format!("{FIRST}Bye!") }));
    assert_eq!(call.ended(), Some(EndedReason::AssistantEnded));
    assert_eq!(call.transcript()[1].text, format!("{FIRST}Bye!"));
}

#[test]
fn the_limits_hold_for_a_line_that_grows() {
    let mut call = begun();
    for _ in 0..10_000 {
        call.handle(2_000, text(1, &"and so on ".repeat(100)));
    }
    assert!(call.transcript()[1].text.len() <= TEXT_BYTES_MAX);
    assert!(call.transcript_bytes() <= super::super::TRANSCRIPT_BYTES_MAX);
    let mut call = spoken("");
    call.setup.limits.turns_max = 2;
    call.handle(1_000, user("When are you open?"));
    call.handle(1_500, text(1, FIRST));
    assert_eq!(call.ended(), None, "the last line is completed");
    call.handle(2_000, reply(1, AssistantReply::Say { text: format!("{FIRST}{SECOND}") }));
    assert_eq!(call.ended(), Some(EndedReason::TurnLimit));
    assert!(call.transcript()[1].text.ends_with(SECOND));
}

#[test]
fn a_written_conversation_takes_whole_answers() {
    let mut call = spoken("");
    call.setup.is_spoken = false;
    call.handle(1_000, user("When are you open?"));
    call.handle(1_500, text(1, FIRST));
    assert_eq!((call.being_written(), call.transcript().len()), (None, 1));
}
