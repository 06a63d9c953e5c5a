//! Whatever a server sends.
use super::*;

/// What happens in [`whatever_a_server_sends_every_question_is_answered`].
#[derive(Debug, Clone)]
enum Step {
    Event(&'static str, u8, String),
    Opened,
    Broken,
    Ask,
    Drop,
    Anticipate,
    Forget,
    Speak(u64),
    Finish(u64),
    Cut(u64, i64),
    Voice,
    Wait(i64),
}

fn step() -> impl proptest::strategy::Strategy<Value = Step> {
    use proptest::prelude::*;
    const EVENTS: [&str; 14] = [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.text.delta",
        "response.done",
        "response.unknown",
        "error",
        "session.updated",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.input_audio_transcription.completed",
        "conversation.item.input_audio_transcription.failed",
    ];
    prop_oneof![
        12 => (prop::sample::select(&EVENTS[..]), 0_u8..3, "[a-z 十]{0,6}").prop_map(|(kind, id, text)| Step::Event(kind, id, text)),
        3 => Just(Step::Opened),
        1 => Just(Step::Broken),
        3 => Just(Step::Ask),
        1 => Just(Step::Drop),
        1 => Just(Step::Anticipate),
        1 => Just(Step::Forget),
        2 => (1_u64..4).prop_map(Step::Speak),
        1 => (1_u64..4).prop_map(Step::Finish),
        1 => ((1_u64..4), -10_i64..500).prop_map(|(line, ms)| Step::Cut(line, ms)),
        1 => Just(Step::Voice),
        2 => (0_i64..15_000).prop_map(Step::Wait),
    ]
}

proptest::proptest! {
    #[test]
    fn whatever_a_server_sends_every_question_is_answered(steps in proptest::collection::vec(step(), 0..60)) {
        let mut call = Call::new(Rate::Khz8);
        let (mut asked, mut written) = (None, None);
        for step in steps {
            match step {
                Step::Event(kind, id, text) => {
                    let (response, item) = (format!("r{id}"), format!("item_r{id}"));
                    let status = ["completed", "failed", "cancelled"][usize::from(id)];
                    let output = if text.len() > 3 { call_of(&response) } else { message(&response) };
                    call.take();
                    if call.socket.is_some() {
                        call.says(json!({"type": kind, "response_id": response, "item_id": item, "delta": text,
                            "transcript": text, "item": output[0], "error": {"code": text, "event_id": "response",
                            "type": "invalid_request_error"}, "response": {"id": response, "status": status,
                            "output": output, "usage": null}}));
                    }
                }
                Step::Opened => {
                    call.take();
                    if call.socket.is_some() {
                        call.arrives(Arrival::Opened);
                    }
                }
                Step::Broken => {
                    call.take();
                    if call.socket.is_some() {
                        call.arrives(Arrival::Closed { code: 1006, reason: String::new() });
                    }
                }
                Step::Ask => {
                    let (answer, text) = call.ask("Hello?");
                    (asked, written) = (Some(answer), Some(text));
                }
                Step::Drop => drop(asked.take()),
                Step::Anticipate => call.realtime.anticipate(call.now_ms, vec![]),
                Step::Forget => call.realtime.forget_anticipated(call.now_ms),
                Step::Speak(line) => {
                    let text = written.as_ref().and_then(Written::take).unwrap_or_else(|| "Wait.".into());
                    call.mouth.speak(call.now_ms, line, &text);
                }
                Step::Finish(line) => call.mouth.finish(call.now_ms, line),
                Step::Cut(line, ms) => {
                    call.mouth.heard(line, ms);
                    call.mouth.cancel(call.now_ms, line);
                }
                Step::Voice => {
                    call.ear.speech_began(call.now_ms);
                    call.ear.hear(call.now_ms, &[1_000; 4_000]);
                    call.ear.speech_ended(call.now_ms);
                }
                Step::Wait(ms) => call.wait(ms),
            }
            while call.mouth.poll_event().is_some() {}
            while call.ear.poll_event().is_some() {}
        }
        drop(asked);
        // From here on the server says nothing.
        let (mut answer, _) = call.ask("And now?");
        for _ in 0..12 {
            call.wait(10_000);
            if call.socket.is_some() {
                call.arrives(Arrival::Opened);
            }
        }
        proptest::prop_assert!(outcome(&mut answer).is_some());
        call.ear.close(call.now_ms);
        call.wait(60_000);
        proptest::prop_assert!(call.ear.poll_timeout().is_none());
    }
}
