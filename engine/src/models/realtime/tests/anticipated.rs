//! Answers that are asked for before the words are known.
use super::*;

#[test]
fn words_that_were_not_transcribed_are_answered() {
    let mut call = Call::open();
    call.ear.speech_began(0);
    call.ear.hear(0, &[1_000; 8_000]);
    call.ear.speech_ended(0);
    call.says(json!({"type": "input_audio_buffer.committed", "item_id": "item_u"}));
    call.says(json!({"type": "conversation.item.input_audio_transcription.failed", "item_id": "item_u",
        "error": {"message": "no"}}));
    assert_eq!(call.ear.poll_event(), Some(TranscriberEvent::Final("(not transcribed)".into())));
    call.kinds();
    let _answer = call.ask("(not transcribed)");
    assert_eq!(call.kinds(), ["response.create"], "the model has heard it");
}

#[test]
fn the_answer_is_on_its_way_before_the_words_are_known() {
    let mut call = Call::open();
    call.ear.speech_began(0);
    call.ear.hear(0, &[1_000; 8_000]);
    call.ear.speech_ended(0);
    let greeting = Message::Assistant { text: "Hello!".into() };
    let user = Message::User { text: "When do you open?".into() };
    call.realtime.anticipate(0, vec![greeting.clone()]);
    assert_eq!(
        call.kinds(),
        ["input_audio_buffer.commit", "conversation.item.create", "response.create"],
        "the greeting comes first"
    );
    call.says(json!({"type": "input_audio_buffer.committed", "item_id": "item_u"}));
    call.begins("r1");
    call.words("r1", "We open at ten.");
    call.done("r1", "completed", message("r1"));
    call.says(json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_u",
        "transcript": "When do you open?"}));
    assert!(call.ear.poll_event().is_some());
    let (mut answer, written) = call.realtime.ask(0, vec![greeting.clone(), user.clone()], 0);
    assert_eq!(
        (said(&mut answer).as_str(), written.take().as_deref()),
        ("We open at ten.", Some("We open at "))
    );
    call.mouth.speak(0, 1, "We open at ");
    assert_eq!(call.audio_of(1), 800);
    // Nothing is created or deleted of what was said meanwhile.
    let keys = Message::User { text: "(pressed 1 on the telephone's keys)".into() };
    let answered = Message::Assistant { text: "We open at ten.".into() };
    let _next = call.realtime.ask(0, vec![greeting, user, answered, keys], 0);
    assert_eq!(call.kinds(), ["conversation.item.create", "response.create"]);
    // The person goes on.
    call.begins("r2");
    call.words("r2", "Thank you.");
    call.done("r2", "completed", message("r2"));
    call.realtime.anticipate(0, vec![]);
    assert_eq!(call.kinds(), ["conversation.item.delete", "response.create"], "nobody has said the answer");
    call.begins("r3");
    call.realtime.forget_anticipated(0);
    assert_eq!(call.kinds(), ["response.cancel", "conversation.item.delete"].map(str::to_owned).to_vec());
}

#[test]
fn what_was_anticipated_is_asked_again_with_its_words() {
    let history = || vec![Message::User { text: "When do you open?".into() }];
    for is_known in [false, true] {
        let mut call = Call::open();
        call.realtime.anticipate(0, vec![]);
        call.kinds();
        let asked = is_known.then(|| call.realtime.ask(0, history(), 0));
        call.begins("r1");
        call.arrives(Arrival::Closed { code: 1011, reason: String::new() });
        call.accept();
        let (mut answer, _) = asked.unwrap_or_else(|| call.realtime.ask(0, history(), 0));
        assert_eq!(
            call.kinds(),
            ["session.update", "conversation.item.create", "response.create"],
            "{is_known}"
        );
        call.begins("r2");
        call.words("r2", "At ten.");
        call.done("r2", "completed", message("r2"));
        assert_eq!(said(&mut answer), "At ten.");
    }
}
