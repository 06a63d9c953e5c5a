use super::*;
use serde_json::json;

#[test]
fn a_turn_of_the_role_contains_the_text() {
    let result = decided("transcript", "assistant", "NINE\n to Five", &rows());
    assert_eq!(result.passed, Some(true));
    assert_eq!(result.matched_index, Some(4));
    assert_eq!(result.reason, "Found in a line of the assistant.");
    assert_eq!(decided("transcript", "user", "nine to five", &rows()).passed, Some(false));
    assert_eq!(decided("transcript", "any", "nine to five", &rows()).passed, Some(true));
}

#[test]
fn case_and_white_space_are_ignored() {
    let rows = [row(0, TranscriptRole::User, "Die  Stra\u{df}e beim Cafe\u{301}")];
    assert_eq!(decided("transcript", "user", "STRASSE BEIM CAFÉ", &rows).passed, Some(true));
}

#[test]
fn an_excluded_text_reports_its_row() {
    let result = decided("transcript_excludes", "any", "refund", &rows());
    assert_eq!(result.passed, Some(false));
    assert_eq!(result.matched_index, Some(1));
    let result = decided("transcript_excludes", "assistant", "refund", &rows());
    assert_eq!(result.passed, Some(true));
    assert_eq!(result.matched_index, None);
    assert_eq!(result.reason, "None of the 2 turns of the assistant contains the text.");
}

#[test]
fn an_empty_transcript_contains_no_text() {
    assert_eq!(decided("transcript", "any", "x", &[]).passed, Some(false));
    let result = decided("transcript_excludes", "user", "x", &[]);
    assert_eq!(result.passed, None, "who said nothing is not judged");
    assert_eq!(result.reason, "There is no turn of the user in the transcript.");
    assert_eq!(decided("transcript_excludes", "tool", "x", &rows()[..2]).passed, None);
}

#[test]
fn typography_is_ignored() {
    let rows = [row(0, TranscriptRole::Assistant, "I can’t do that. It’s BD‑17 – “sure”…")];
    for text in ["can't", "can’t", "BD-17", "bd–17 - \"Sure\"...", "it\u{2bc}s"] {
        assert_eq!(decided("transcript", "assistant", text, &rows).passed, Some(true), "{text}");
        assert_eq!(decided("transcript_excludes", "assistant", text, &rows).passed, Some(false), "{text}");
    }
    assert_eq!(decided("transcript", "assistant", "cant", &rows).passed, Some(false));
}

#[test]
fn other_letters_hide_no_excluded_text() {
    let said = |text: &str| {
        decided("transcript_excludes", "assistant", "refund", &[row(0, TranscriptRole::Assistant, text)])
    };
    for text in ["No re-fund.", "A rеfund.", "RE\u{202e}FUND", "re\u{34f}fund", "𝐫𝐞𝐟𝐮𝐧𝐝"] {
        assert_eq!((said(text).passed, said(text).matched_index), (Some(false), Some(0)), "{text}");
    }
    let result = said("A refu\u{301}nd.");
    assert_eq!((result.passed, result.matched_index), (None, Some(0)));
    assert_eq!(result.reason, "It may be in a line of the assistant: there it has other accents.");
    for text in ["A pre-funded re - turn.", "Это фонд.", "Eine schöne Re-Form."] {
        assert_eq!(said(text).passed, Some(true), "{text}");
    }
}

#[test]
fn a_line_that_was_cut_off_before_the_text_is_named() {
    let mut rows = rows();
    rows[4].interrupted = true;
    rows[4].intended_text = Some("We are open nine  to five. Anything else?".into());
    let result = decided("transcript", "assistant", "anything else", &rows);
    assert_eq!((result.passed, result.matched_index), (Some(false), Some(4)));
    let told = "None of the 2 turns of the assistant contains the text. One was going to say it, but was cut off before.";
    assert_eq!(result.reason, told);
    let result = decided("transcript_excludes", "assistant", "anything else", &rows);
    assert_eq!((result.passed, result.matched_index, result.reason.as_str()), (Some(true), None, told));
    assert_eq!(decided("transcript", "assistant", "unicorn", &rows).matched_index, None);
}

#[test]
fn a_name_that_no_tool_has_decides_nothing() {
    let rows = rows();
    let told = |kind: &str, name: &str, tools: &[&'static str]| {
        let evaluation = evaluation(kind, "any", name);
        let read = ReadTranscript::new(&rows).with_tools(tools.to_vec());
        let Assessment::Decided(result) = evaluation.assess_read(&read) else { panic!("asked") };
        (result.passed, result.reason)
    };
    let tools = ["hours_of", "refund"];
    for name in ["hours_off", "Hours_of"] {
        let (passed, reason) = told("tool_not_called", name, &tools);
        assert_eq!(passed, None, "{name}");
        assert_eq!(reason, "The assistant has no tool of this name; it has “hours_of”, “refund”.");
        assert_eq!(told("no_tool_error", name, &tools), (None, reason.clone()));
        assert_eq!(told("tool_call", name, &tools), (Some(false), reason));
    }
    assert_eq!(told("tool_not_called", "refund", &tools).0, Some(true));
    assert_eq!(told("tool_not_called", " refund ", &tools).0, Some(true));
    assert_eq!(told("no_tool_error", "refund", &tools).0, None);
    assert_eq!(told("tool_not_called", "*", &[]).0, Some(false));
    assert_eq!(told("tool_not_called", "x", &[]).1, "The assistant has no tool of this name; it has none.");
    // The model asked for a tool that it does not have.
    assert_eq!(told("tool_not_called", "hours_of", &["refund"]).0, Some(false));
}

#[test]
fn a_call_that_failed_is_named_where_one_is_missing() {
    let mut rows = rows();
    rows[3].is_error = Some(true);
    rows[3].text = "it answered 500".into();
    let evaluation: Evaluation =
        serde_json::from_value(json!({"kind": "tool_call", "includes": "hours_of", "times": 1})).unwrap();
    let Assessment::Decided(result) = evaluation.assess(&rows) else { panic!("asked") };
    assert_eq!((result.passed, result.matched_index), (Some(false), Some(2)));
    let told = "0 matching calls of this tool succeeded; there should be 1. One failed: “it answered 500”.";
    assert_eq!(result.reason, told);
}

#[test]
fn a_tool_call_is_found_by_its_exact_name() {
    let result = decided("tool_call", "user", " hours_of ", &rows());
    assert_eq!(result.passed, Some(true), "role does not matter: {result:?}");
    assert_eq!(result.matched_index, Some(2));
    let result = decided("tool_call", "any", "Hours_of", &rows());
    assert_eq!(result.passed, Some(false));
    assert_eq!(result.reason, "1 tool call was made, none of this tool.");
    assert_eq!(decided("tool_call", "any", "x", &[]).reason, "No tool was called.");
}

#[test]
fn a_rejected_tool_call_does_not_count() {
    let mut rows = rows();
    rows[2].is_error = Some(true);
    let result = decided("tool_call", "any", "hours_of", &rows);
    assert_eq!(result.passed, Some(false));
    assert_eq!(result.matched_index, Some(2));
}

#[test]
fn a_judge_is_asked_about_the_turns_of_the_role() {
    let evaluation = evaluation("judge", "assistant", "states the hours");
    let rows = rows();
    let Assessment::AskJudge(question) = evaluation.assess(&rows) else { panic!("not asked") };
    assert_eq!(question.turn().criterion, "states the hours");
    assert_eq!(question.turn().turns, [&rows[0], &rows[4]]);
    assert_eq!(question.only, Some(TranscriptRole::Assistant));
    let ruling = Verdict { passed: Some(true), matched_index: Some(4), reason: "Said.".into() };
    let result = evaluation.ruled(&[ruling], &rows);
    assert_eq!((result.passed, result.matched_index), (Some(true), Some(4)));
    assert_eq!(result.reason, "Said.");
}

#[test]
fn a_verdict_cannot_name_rows_outside_the_question() {
    for index in [1, 99] {
        let ruling = Verdict { passed: Some(false), matched_index: Some(index), reason: " ".into() };
        let result = evaluation("judge", "assistant", "x").ruled(&[ruling], &rows());
        assert_eq!(result.matched_index, None);
        assert!(result.reason.contains("gave no reason"));
    }
}

#[test]
fn a_judge_is_not_asked_about_an_empty_transcript() {
    let result = decided("judge", "tool", "x", &rows()[..2]);
    assert_eq!(result.passed, None);
    assert_eq!(result.reason, "There is no tool call or result to rule on.");
}

#[test]
fn keys_belong_to_the_user_and_system_rows_to_no_role() {
    let rows = [row(0, TranscriptRole::Dtmf, "42#"), row(1, TranscriptRole::System, "moved")];
    assert_eq!(decided("transcript", "user", "42", &rows).passed, Some(true));
    assert_eq!(decided("transcript", "tool", "moved", &rows).passed, Some(false));
    assert_eq!(decided("transcript", "any", "moved", &rows).passed, Some(true));
}

#[test]
fn only_the_role_has_a_default() {
    let parsed: Evaluation = serde_json::from_value(json!({"kind": "tool_call", "includes": "x"})).unwrap();
    assert_eq!(parsed.role, EvaluationRole::Any);
    for bad in [
        json!({"kind": "tool_call"}),
        json!({"includes": "x"}),
        json!({"kind": "regex", "includes": "x"}),
        json!({"kind": "judge", "includes": "x", "role": "caller"}),
        json!({"kind": "judge", "includes": "x", "weight": 1}),
        json!({"kind": "judge", "includes": null}),
        json!({"kind": "judge", "includes": ""}),
        json!({"kind": "judge", "includes": " \u{2003}\n"}),
        json!({"kind": "judge", "includes": "\u{200b}\u{ad}"}),
        json!({"kind": "judge", "includes": "é".repeat(EVALUATION_INCLUDES_CHARS_MAX + 1)}),
    ] {
        assert!(serde_json::from_value::<Evaluation>(bad.clone()).is_err(), "{bad}");
    }
    let longest = json!({"kind": "judge", "includes": "é".repeat(EVALUATION_INCLUDES_CHARS_MAX)});
    assert!(serde_json::from_value::<Evaluation>(longest).is_ok());
}

#[test]
fn the_schema_agrees_with_deserialization() {
    let schema = serde_json::to_value(schemars::schema_for!(Evaluation)).unwrap();
    assert_eq!(schema["required"], json!(["kind", "includes"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["includes"]["minLength"], json!(1));
    assert_eq!(schema["properties"]["includes"]["maxLength"], json!(2000));
    assert_eq!(schema["properties"]["role"]["default"], json!("any"));
}

fn decided(kind: &str, role: &str, includes: &str, transcript: &[TranscriptRow]) -> EvaluationResult {
    let evaluation = evaluation(kind, role, includes);
    match evaluation.assess(transcript) {
        Assessment::Decided(result) => result,
        Assessment::AskJudge(question) => panic!("asked: {question:?}"),
    }
}

fn evaluation(kind: &str, role: &str, includes: &str) -> Evaluation {
    serde_json::from_value(json!({"kind": kind, "role": role, "includes": includes})).unwrap()
}

fn rows() -> Vec<TranscriptRow> {
    let mut rows = vec![
        row(0, TranscriptRole::Assistant, "Hello."),
        row(1, TranscriptRole::User, "Do I get a REFUND? When are you open?"),
        row(2, TranscriptRole::ToolCall, "hours_of({\"day\":\"today\"})"),
        row(3, TranscriptRole::ToolResult, "nine to five"),
        row(4, TranscriptRole::Assistant, "We are open nine  to five."),
    ];
    rows[2].tool_name = Some("hours_of".into());
    rows[2].arguments = Some(json!({"day": "today", "count": 2, "place": {"city": "Rome", "floor": 1}}));
    rows[2].tool_call_id = Some("t1".into());
    rows[3].tool_call_id = Some("t1".into());
    rows[3].is_error = Some(false);
    rows
}

fn row(index: usize, role: TranscriptRole, text: &str) -> TranscriptRow {
    TranscriptRow::new(index, role, text.into(), 0, 0)
}

#[test]
fn a_call_whose_result_is_an_error_does_not_count() {
    let mut rows = rows();
    rows[3].is_error = Some(true);
    let result = decided("tool_call", "any", "hours_of", &rows);
    assert_eq!((result.passed, result.matched_index), (Some(false), Some(2)));
    assert_eq!(result.reason, "The tool was called, but its result is an error.");
    assert_eq!(decided("tool_call", "any", "hours_of", &rows[..3]).passed, Some(false), "no result came");
}

#[test]
fn arguments_are_compared_by_type_and_may_be_more() {
    let with = |arguments: Value| {
        let evaluation: Evaluation = serde_json::from_value(
            json!({"kind": "tool_call", "includes": "hours_of", "arguments": arguments}),
        )
        .unwrap();
        let rows = rows();
        let Assessment::Decided(result) = evaluation.assess(&rows) else { panic!("asked") };
        result
    };
    for good in [
        json!({}),
        json!({"day": "today"}),
        json!({"count": 2}),
        json!({"count": 2.0}),
        json!({"place": {"city": "Rome"}, "day": "today"}),
    ] {
        assert_eq!(with(good.clone()).passed, Some(true), "{good}");
    }
    for bad in [
        json!({"day": "Today"}),
        json!({"count": "2"}),
        json!({"count": 3}),
        json!({"count": true}),
        json!({"place": {"city": "Rome", "floor": 2}}),
        json!({"place": "Rome"}),
        json!({"other": null}),
    ] {
        let result = with(bad.clone());
        assert_eq!(result.passed, Some(false), "{bad}");
        assert_eq!(result.reason, "1 call of this tool, none with these arguments.");
    }
}

#[test]
fn the_number_of_calls_is_exact() {
    let mut rows = rows();
    let times = |times: u32, rows: &[TranscriptRow]| {
        let evaluation: Evaluation =
            serde_json::from_value(json!({"kind": "tool_call", "includes": "hours_of", "times": times}))
                .unwrap();
        let Assessment::Decided(result) = evaluation.assess(rows) else { panic!("asked") };
        (result.passed, result.matched_index, result.reason)
    };
    let told = "1 matching call of this tool succeeded; there should be";
    assert_eq!(times(1, &rows), (Some(true), Some(2), format!("{told} 1.")));
    assert_eq!(times(2, &rows), (Some(false), Some(2), format!("{told} 2.")));
    let mut again = rows[2..4].to_vec();
    for row in &mut again {
        row.index += 3;
        row.tool_call_id = Some("t2".into());
    }
    rows.append(&mut again);
    assert_eq!(times(1, &rows).1, Some(5), "the second is one too many");
    assert_eq!(times(2, &rows).0, Some(true));
    rows[6].is_error = Some(true);
    assert_eq!(times(1, &rows).0, Some(true), "a call that failed does not count");
}

#[test]
fn a_tool_that_was_not_called_and_calls_without_error() {
    let mut rows = rows();
    let passed = |kind: &str, name: &str, rows: &[TranscriptRow]| {
        let result = decided(kind, "any", name, rows);
        (result.passed, result.matched_index)
    };
    assert_eq!(passed("tool_not_called", "refund", &rows), (Some(true), None));
    assert_eq!(passed("tool_not_called", "hours_of", &rows), (Some(false), Some(2)));
    assert_eq!(passed("tool_not_called", "*", &rows), (Some(false), Some(2)));
    assert_eq!(passed("tool_not_called", "*", &rows[..2]), (Some(true), None));
    assert_eq!(passed("tool_not_called", "*", &rows[..1]), (None, None), "the model was not asked");
    assert_eq!(passed("no_tool_error", "*", &rows[..3]), (None, Some(2)), "there was no result");
    assert_eq!(passed("no_tool_error", "*", &rows), (Some(true), None));
    assert_eq!(passed("no_tool_error", "*", &rows[..2]), (None, None), "there was no call that could fail");
    rows[3].is_error = Some(true);
    assert_eq!(passed("no_tool_error", "*", &rows), (Some(false), Some(2)));
    assert_eq!(passed("no_tool_error", "hours_of", &rows), (Some(false), Some(2)));
    assert_eq!(passed("no_tool_error", "refund", &rows), (None, None));
    // The model asked for it, although the call was refused.
    rows[2].is_error = Some(true);
    assert_eq!(passed("tool_not_called", "hours_of", &rows), (Some(false), Some(2)));
}

#[test]
fn most_of_the_votes_decide() {
    let evaluation = evaluation("judge", "assistant", "x");
    let vote = |passed: Option<bool>| Verdict {
        passed,
        matched_index: passed.map(|_| 4),
        reason: format!("{passed:?}"),
    };
    let ruled = |votes: &[Option<bool>]| {
        let votes: Vec<Verdict> = votes.iter().copied().map(vote).collect();
        evaluation.ruled(&votes, &rows())
    };
    let (yes, no) = (Some(true), Some(false));
    let result = ruled(&[no, yes, yes]);
    assert_eq!((result.passed, result.matched_index, result.reason.as_str()), (yes, Some(4), "Some(true)"));
    assert_eq!(result.votes, Some(Votes { passed: 2, failed: 1, undecided: 0 }));
    assert_eq!(ruled(&[no, None, no]).passed, no);
    let split = ruled(&[yes, no]);
    assert_eq!((split.passed, split.matched_index), (None, None));
    assert_eq!(split.reason, "No more than half of the judge's rulings agree.");
    assert_eq!(ruled(&[yes, None, no, yes]).passed, None);
    assert_eq!(ruled(&[yes]).votes, None, "asked once");
}

#[test]
fn a_run_passes_only_if_something_was_decided() {
    let results = |passed: &[Option<bool>]| -> Vec<EvaluationResult> {
        let result = |passed: &Option<bool>| EvaluationResult {
            passed: *passed,
            ..decided("transcript", "any", "x", &[])
        };
        passed.iter().map(result).collect()
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(all_passed(&results(&[])), None);
    assert_eq!(all_passed(&results(&[yes, yes])), yes);
    assert_eq!(all_passed(&results(&[yes, None])), None);
    assert_eq!(all_passed(&results(&[None, no])), no);
}
