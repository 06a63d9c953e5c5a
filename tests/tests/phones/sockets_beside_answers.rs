//! The sockets to speech providers stay open while a model's streamed answers begin and end beside them.
//!
//! In workerd, an outgoing WebSocket may die a second or two after a streamed response beside it was read to its end
//! (cloudflare/workerd#6774). A conversation asks its model in every turn, so this must not happen: on the Worker, this test
//! would see another connection, or a row of the call about a lost one.
use serde_json::json;
use sidetone_tests::fakes;
use sidetone_tests::fakes::speech::CHAR_MS;

use crate::speech::{hears_ms, speak};
use crate::support::{Desk, lines};

/// What is said, and repeated by the model, which streams: two seconds and more of speech.
const SAID: [&str; 5] = [
    "I would like to know when you are open.",
    "And is there a place to leave a bicycle?",
    "How much is it for a family of five?",
    "May we bring a very small and quiet dog?",
    "Thank you, then we will come on Sunday.",
];

#[test]
fn a_transcribers_socket_lives_through_streamed_answers() {
    let transcribers = ["deepgram/nova-3", "deepgram/flux-general-en", "live/gpt-live-transcribe"];
    std::thread::scope(|scope| {
        let running = transcribers.map(|transcriber| scope.spawn(move || talk(transcriber)));
        running.into_iter().for_each(|call| call.join().unwrap());
    });
}

fn talk(transcriber: &str) {
    let desk = Desk::with_model("twilio", "fake/echo");
    let term = format!("term {}", desk.number);
    let voice = format!("voice{}", desk.number.trim_start_matches('+'));
    let assistant = json!({
        "voice": format!("elevenlabs/{voice}"), "transcriber": transcriber, "keyterms": [term], "language": "en",
        "first_message": "",
    });
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    fakes::shared_speech().will_hear(&term, &SAID);
    let (id, mut person) = desk.connected();
    let mut heard_ms = 0;
    for said in SAID {
        speak(&person, 1_000);
        heard_ms += said.len() as i64 * CHAR_MS;
        hears_ms(&person, heard_ms);
    }
    // The last mark is on its way.
    std::thread::sleep(std::time::Duration::from_millis(700));
    person.hang_up();
    let call = desk.over(&id);
    let wanted: Vec<_> = SAID.iter().flat_map(|said| [("user", *said), ("assistant", *said)]).collect();
    assert_eq!(lines(&call), wanted, "{transcriber}: {call}");
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    let opened = [&term, &voice].map(|name| fakes::shared_speech().connections(name));
    assert_eq!(opened, [1, 1], "each socket was opened once: {transcriber}");
}
