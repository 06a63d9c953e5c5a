use super::*;
use crate::base::limits::MODEL_CALLS_MAX;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn a_streamed_line() {
    let body = stream(&[
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "Grüß "}, "finish_reason": null}], "obfuscation": "x"}),
        json!({"choices": [{"index": 0, "delta": {"content": "dich 👋", "reasoning_content": "hm"}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}}),
    ]);
    let answer = read(&(body + "data: [DONE]\n\n")).unwrap();
    assert_eq!(answer.text, "Grüß dich 👋");
    assert_eq!(answer.usage, Some(TokenCount { input: 9, output: 12 }));
    assert!(answer.calls.is_empty());
}

#[test]
fn calls_may_end_with_stop_and_without_done() {
    let call = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}});
    let more = json!({"index": 0, "function": {"name": "", "arguments": "{\"x\": 1}"}});
    let whole = json!({"id": "a", "function": {"name": "f", "arguments": {"x": 1}}});
    for (pieces, reason) in [
        (vec![call.clone(), more.clone()], json!("stop")),
        (vec![call, more], Value::Null),
        (vec![whole], json!("tool_calls")),
    ] {
        let events: Vec<Value> =
            pieces.iter().map(|call| json!({"choices": [{"delta": {"tool_calls": [call]}}]})).collect();
        let end = json!({"choices": [{"delta": {}, "finish_reason": reason}]});
        let answer = read(&(stream(&events) + &stream(&[end]))).unwrap();
        assert_eq!(answer.calls, [ToolRequest { name: "f".into(), arguments: json!({"x": 1}) }]);
    }
}

#[test]
fn a_whole_answer_to_a_request_for_a_stream() {
    for message in [
        json!({"role": "assistant", "content": "Hi"}),
        json!({"content": [{"type": "text", "text": "H"}, {"type": "thinking", "thinking": []}, "i"]}),
        json!({"content": null, "refusal": "Hi"}),
    ] {
        let body = json!({"object": "chat.completion", "choices": [{"index": 0, "message": message,
            "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
        let answer = read(&format!("\u{feff} \n{body}\n")).unwrap();
        assert_eq!(answer.text, "Hi", "{body}");
        assert_eq!(answer.usage, Some(TokenCount { input: 1, output: 2 }));
    }
}

#[test]
fn reads_the_deprecated_function_call() {
    let body = json!({"choices": [{"message": {"content": null,
        "function_call": {"name": "f", "arguments": "{}"}}, "finish_reason": "function_call"}]});
    assert_eq!(read(&body.to_string()).unwrap().calls.len(), 1);
}

#[test]
fn a_repeated_message_at_the_end_is_ignored() {
    let body = stream(&[
        json!({"choices": [{"delta": {"content": "Hi"}}]}),
        json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}),
    ]);
    assert_eq!(read(&body).unwrap().text, "Hi");
}

#[test]
fn other_choices_are_ignored() {
    let body = json!({"choices": [{"index": 1, "message": {"content": "B"}}, {"index": 0, "message":
        {"content": "A"}, "finish_reason": "length"}]});
    let answer = read(&body.to_string()).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("A", Finish::Length));
}

#[test]
fn an_error_in_place_of_an_answer() {
    let error = json!({"error": {"message": "slow down", "type": "rate_limit_error", "code": null}});
    let begun = stream(&[json!({"choices": [{"delta": {"content": "Hi"}}]})]);
    for body in [
        error.to_string(),
        stream(std::slice::from_ref(&error)),
        begun.clone() + &stream(std::slice::from_ref(&error)),
        begun + "event: error\ndata: {\"message\": \"slow down\"}\n\n",
    ] {
        match read(&body) {
            Err(CompletionError::Reported(error)) => assert_eq!(error.message, "slow down", "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn truncated_and_invalid_responses_differ() {
    let hi = stream(&[json!({"choices": [{"delta": {"content": "Hi"}}]})]);
    for (body, error) in [
        (String::new(), CompletionError::Truncated),
        (" \n".to_owned(), CompletionError::Truncated),
        (hi.clone(), CompletionError::Truncated),
        (hi.clone() + "data: {\"choices\": [{\"del", CompletionError::Truncated),
        ("{\"choices\": [".to_owned(), CompletionError::Truncated),
        ("<html></html>".to_owned(), CompletionError::Garbled("it is neither JSON nor an event stream")),
        (hi + "data: {]\n\ndata: [DONE]\n\n", CompletionError::Garbled("a chunk is not JSON")),
        ("data: [DONE]\n\n".to_owned(), CompletionError::Garbled("it has no choices")),
        ("{} {}".to_owned(), CompletionError::Garbled("it is not JSON")),
    ] {
        assert_eq!(read(&body), Err(error), "{body}");
    }
    // A call whose brackets are balanced is complete.
    let call =
        json!({"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]});
    assert!(read(&stream(&[call])).is_ok());
}

#[test]
fn usage_in_every_chunk_does_not_mark_the_end() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 1});
    let piece = |delta: Value| json!({"choices": [{"delta": delta}], "usage": usage});
    let (role, begun) = (piece(json!({"role": "assistant"})), piece(json!({"content": "Your order will "})));
    let call = piece(json!({"tool_calls": [{"function": {"name": "f", "arguments": "{\"x\""}}]}));
    for pieces in [vec![role.clone(), begun.clone()], vec![begun.clone()], vec![role, call]] {
        assert_eq!(read(&stream(&pieces)), Err(CompletionError::Truncated), "{pieces:?}");
    }
    // Usage without content is the last chunk.
    let last = json!({"choices": [], "usage": usage});
    assert_eq!(read(&stream(&[begun, last])).unwrap().usage, Some(TokenCount { input: 9, output: 1 }));
}

#[test]
fn the_size_is_bounded() {
    let long = "x".repeat(MODEL_TEXT_BYTES_MAX / 2 + 1);
    let piece = json!({"choices": [{"delta": {"content": long}}]});
    assert_eq!(read(&stream(&[piece.clone(), piece])), Err(CompletionError::TooLarge));
    let calls: Vec<Value> =
        (0..=MODEL_CALLS_MAX).map(|n| json!({"index": n, "function": {"name": "f"}})).collect();
    let body = stream(&[json!({"choices": [{"delta": {"tool_calls": calls}}]})]);
    assert_eq!(read(&body), Err(CompletionError::TooLarge));
}

proptest! {
    #[test]
    fn the_division_of_the_bytes_does_not_matter(
        pieces in prop::collection::vec(piece(), 0..8),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        mark in prop::bool::ANY,
        cuts in prop::collection::vec(0..2000usize, 0..12),
    ) {
        let text = format!("{}{}", if mark { "\u{feff}" } else { "" }, pieces.concat().replace('\n', end));
        check_cuts(text.as_bytes(), cuts)?;
    }

    #[test]
    fn invalid_bytes_give_the_same_result_in_any_division(
        bytes in prop::collection::vec(prop::num::u8::ANY, 0..300),
        cuts in prop::collection::vec(0..300usize, 0..6),
    ) {
        check_cuts(&bytes, cuts)?;
    }
}

fn check_cuts(bytes: &[u8], mut cuts: Vec<usize>) -> Result<(), TestCaseError> {
    cuts.extend([0, bytes.len()]);
    cuts.iter_mut().for_each(|at| *at = (*at).min(bytes.len()));
    cuts.sort_unstable();
    let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
    let whole = read_pieces(&[bytes]);
    prop_assert_eq!(read_pieces(&pieces), whole.clone());
    prop_assert_eq!(read_pieces(&bytes.chunks(1).collect::<Vec<_>>()), whole);
    Ok(())
}

fn piece() -> impl Strategy<Value = String> {
    let choice = |delta: Value, reason: Value| {
        format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": reason}]}))
    };
    let index = prop::option::of(0..3u64);
    let call = (index, "[ab]?", "[fg]?", "(\\{\\}|\\{\"x\":|1\\}|\\{)?").prop_map(
        move |(index, id, name, arguments)| {
            let call = json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
            choice(json!({"tool_calls": [call]}), Value::Null)
        },
    );
    prop_oneof![
        3 => "[aé👋]{0,4}".prop_map(move |text| choice(json!({"content": text}), Value::Null)),
        3 => call,
        1 => Just(choice(json!({}), json!("stop"))),
        1 => Just("data: {\"choices\":\ndata: []}\n\n".to_owned()),
        1 => Just("data: {\"usage\": {\"prompt_tokens\": 1, \"completion_tokens\": 2}}\n\n".to_owned()),
        1 => Just(": ping\n\n".to_owned()),
        1 => Just("data: [DONE]\n\n".to_owned()),
        1 => Just("event: error\ndata: {\"message\": \"x\"}\n\n".to_owned()),
        1 => Just("data: {\"choi".to_owned()),
        1 => Just("{\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}".to_owned()),
    ]
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn read(body: &str) -> Result<Completion, CompletionError> {
    read_pieces(&[body.as_bytes()])
}

fn read_pieces(pieces: &[&[u8]]) -> Result<Completion, CompletionError> {
    let mut reader = CompletionReader::default();
    for piece in pieces {
        if reader.push(piece)? == Progress::Complete {
            break;
        }
    }
    reader.finish()
}
