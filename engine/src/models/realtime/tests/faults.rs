//! What a server does wrong.
use super::*;

#[test]
fn a_connection_that_breaks_in_a_function_call_is_replaced_with_the_whole_conversation() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Open on Saturday?");
    call.begins("r1");
    call.says(
        json!({"type": "response.function_call_arguments.delta", "response_id": "r1", "delta": "{\"da"}),
    );
    call.arrives(Arrival::Closed { code: 1011, reason: String::new() });
    assert_eq!(call.connects, 2);
    call.accept();
    assert_eq!(call.next()["type"], "session.update");
    let created = call.next();
    assert_eq!(created["item"]["content"], json!([{"type": "input_text", "text": "Open on Saturday?"}]));
    assert_eq!(call.kinds(), ["response.create"]);
    call.begins("r2");
    call.done("r2", "completed", call_of("r2"));
    assert!(matches!(outcome(&mut answer), Some(Ok(AssistantReply::CallTools { .. }))));
    let (usage, microusd) = call.realtime.take_cost();
    assert_eq!(
        (usage.uncounted_answers, usage.output_tokens),
        (1, 5),
        "of the first one nobody knows how much"
    );
    assert_eq!(microusd, 5);
}

/// The server says what a response has cost when it is over. Where it does not, the price is an estimate.
#[test]
fn an_answer_that_the_server_does_not_count_has_an_estimated_price() {
    // 200 ms of audio, and the 9 bytes of what was said.
    let estimated = 4 + 3;
    let mut call = Call::open();
    let _answer = call.ask_heard("Hello?");
    call.begins("r1");
    call.words("r1", "Good ");
    call.words("r1", "day.");
    assert_eq!(call.realtime.take_cost().1, 0);
    call.ear.close(call.now_ms);
    let (usage, microusd) = call.realtime.take_cost();
    assert_eq!((usage.uncounted_answers, microusd), (1, estimated));
    // One that is over, without a count.
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Hello?");
    call.begins("r1");
    call.words("r1", "Good ");
    call.words("r1", "day.");
    call.says(json!({"type": "response.done", "response": {"id": "r1", "status": "completed",
        "output": message("r1"), "usage": null}}));
    assert_eq!(said(&mut answer), "Good day.");
    let (usage, microusd) = call.realtime.take_cost();
    assert_eq!((usage.uncounted_answers, usage.output_tokens, microusd), (1, 0, estimated));
    // One that was only asked for costs nothing when the connection is lost.
    let mut call = Call::open();
    let _answer = call.ask_heard("Hello?");
    call.arrives(Arrival::Closed { code: 1011, reason: String::new() });
    assert_eq!(call.realtime.take_cost(), (Usage::default(), 0));
}

#[test]
fn what_was_heard_of_an_answer_is_not_asked_again() {
    let mut call = Call::open();
    let (mut answer, written) = call.ask_heard("Hello?");
    call.begins("r1");
    call.words("r1", "Good day, ");
    assert!(written.take().is_some());
    call.mouth.speak(0, 1, "Good day, ");
    call.arrives(Arrival::Failed(ExchangeFailure::Broken("lost".into())));
    assert!(matches!(outcome(&mut answer), Some(Err(failure)) if failure.code == FailureCode::Unavailable));
    assert!(matches!(call.mouth.poll_event(), Some(SynthesizerEvent::Audio { line: 1, .. })));
    assert!(matches!(call.mouth.poll_event(), Some(SynthesizerEvent::Failed { line: 1, .. })));
}

#[test]
fn a_server_that_is_silent_is_given_up_after_another_attempt() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Hello?");
    call.wait(REALTIME_RESPONSE_MS);
    assert_eq!(call.connects, 2);
    call.accept();
    assert_eq!(call.kinds(), ["session.update", "conversation.item.create", "response.create"]);
    assert!(outcome(&mut answer).is_none());
    call.wait(REALTIME_RESPONSE_MS);
    assert!(
        matches!(outcome(&mut answer), Some(Err(failure)) if failure.message.contains("did not answer in time"))
    );
}

/// It says a letter every few seconds, which nobody hears.
#[test]
fn a_server_that_drips_is_given_up_too() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Hello?");
    call.begins("r1");
    let event = json!({"type": "response.output_audio_transcript.delta", "response_id": "r1",
        "item_id": "item_r1", "delta": "a"});
    let mut waited_ms = 0;
    while call.connects == 1 {
        call.wait(REALTIME_RESPONSE_MS / 2);
        waited_ms += REALTIME_RESPONSE_MS / 2;
        if call.connects == 1 {
            call.says(event.clone());
        }
    }
    assert_eq!(waited_ms, REALTIME_PAUSES_MS_MAX);
    assert!(outcome(&mut answer).is_none(), "it is asked once more");
}

/// As far as it is heard, an answer may take its time.
#[test]
fn a_server_that_speaks_in_real_time_is_not_given_up() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Hello?");
    call.begins("r1");
    for _ in 0..400 {
        call.words("r1", "and ");
        call.wait(100);
    }
    assert_eq!(call.connects, 1);
    call.done("r1", "completed", message("r1"));
    assert!(said(&mut answer).starts_with("and and"));
}

#[test]
fn tiny_pieces_of_audio_count() {
    let mut call = Call::open();
    let (mut answer, _) = call.ask_heard("Hello?");
    call.begins("r1");
    call.says(json!({"type": "response.output_audio_transcript.delta", "response_id": "r1",
        "item_id": "item_r1", "delta": "Yes."}));
    // Mu-law: 4 samples are half a ms.
    for _ in 0..400 {
        call.says(json!({"type": "response.output_audio.delta", "response_id": "r1", "item_id": "item_r1",
            "delta": STANDARD.encode([0; 4])}));
    }
    call.mouth.speak(0, 1, "Yes.");
    assert_eq!(call.audio_of(1), 1_600);
    call.says(json!({"type": "response.done", "response": {"id": "r1", "status": "completed",
        "output": message("r1"), "usage": null}}));
    assert_eq!(said(&mut answer), "Yes.");
    // 4 tokens of audio, and 2 of 4 bytes of text.
    assert_eq!(call.realtime.take_cost().1, 4 + 2);
}

#[test]
fn a_session_that_is_refused_is_not_tried_again() {
    let mut call = Call::new(Rate::Khz8);
    let (mut answer, _) = call.ask("Hello?");
    call.arrives(Arrival::Failed(ExchangeFailure::rejected(401, b"")));
    let Some(Err(failure)) = outcome(&mut answer) else { panic!("no failure") };
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (FailureCode::Rejected, "the realtime model rejected the API key (401)")
    );
    // A voice that it does not know.
    let mut call = Call::open();
    call.says(json!({"type": "error", "error": {"type": "invalid_request_error", "code": "invalid_value",
        "message": "Invalid value: 'bob'", "param": "session.audio.output.voice", "event_id": "session"}}));
    let (mut answer, _) = call.ask("Hello?");
    call.mouth.speak(0, 1, "Sorry.");
    call.mouth.finish(0, 1);
    assert!(matches!(outcome(&mut answer), Some(Err(failure)) if failure.code == FailureCode::Rejected));
    assert!(
        matches!(call.mouth.poll_event(), Some(SynthesizerEvent::Failed { failure, .. }) if !failure.is_temporary)
    );
    assert_eq!(call.connects, 1);
}

#[test]
fn an_old_session_is_replaced_between_two_turns() {
    let mut call = Call::open();
    call.now_ms = REALTIME_SESSION_MS - 1_000;
    let (mut answer, _) = call.ask_heard("Hello?");
    call.begins("r1");
    call.now_ms = REALTIME_SESSION_MS + 1_000;
    call.words("r1", "Yes.");
    call.ear.tick(call.now_ms);
    assert_eq!(call.connects, 1, "in the middle of an answer");
    call.done("r1", "completed", message("r1"));
    assert_eq!(said(&mut answer), "Yes.");
    call.mouth.speak(call.now_ms, 1, "Yes.");
    call.mouth.finish(call.now_ms, 1);
    call.ear.tick(call.now_ms);
    call.take();
    assert_eq!(call.connects, 2);
    // And one that the server has ended.
    call.accept();
    call.says(json!({"type": "error", "error": {"type": "invalid_request_error", "code": "session_expired",
        "message": "Your session hit the maximum duration of 60 minutes."}}));
    assert_eq!(call.connects, 3);
}
