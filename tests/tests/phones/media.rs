//! Media sockets: authentication, and invalid, excessive or missing messages.
use std::time::Duration;

use serde_json::json;
use sidetone_tests::fakes::carrier::{Closed, WireMessage};

use crate::support::{Desk, GREETING, MOMENT_MS, texts};

with_each_carrier!(
    a_token_opens_one_socket,
    invalid_tokens_open_no_socket,
    audio_before_the_start_and_after_the_stop_is_ignored,
    invalid_frames_are_ignored,
    a_silent_socket,
    a_flooding_socket,
    a_dropped_socket,
    keys_are_in_the_transcript,
    the_caller_can_interrupt_the_assistant,
);

fn a_token_opens_one_socket(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    let url = person.media_url().to_owned();
    assert_refused(&person.try_media_socket(&url), "used");
    person.hang_up();
    desk.over(&id);
    assert_refused(&person.try_media_socket(&url), "over");
}

fn invalid_tokens_open_no_socket(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.pick_up();
    let url = person.media_url().to_owned();
    let other = if provider == "twilio" { "plivo" } else { "twilio" };
    let elsewhere = url.replace(&format!("/{provider}/"), &format!("/{other}/"));
    assert_ne!(elsewhere, url);
    assert_refused(&person.try_media_socket(&elsewhere), "another carrier's");
    let (path, token) = url.rsplit_once('/').expect("a path");
    let mut altered: Vec<char> = token.chars().collect();
    let middle = altered.len() / 2;
    altered[middle] = if altered[middle] == 'A' { 'B' } else { 'A' };
    let altered: String = altered.into_iter().collect();
    assert_refused(&person.try_media_socket(&format!("{path}/{altered}")), "altered");
    assert_refused(&person.try_media_socket(&format!("{path}/x")), "no token");
    // The rejected attempts have not used up the valid token.
    person.open_socket();
    person.begin();
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    desk.over(&id);
}

fn audio_before_the_start_and_after_the_stop_is_ignored(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.pick_up();
    person.open_socket();
    let frame = person.frame(&vec![0; person.rate().frame_samples()]);
    for _ in 0..10 {
        person.raw_media(frame.clone());
    }
    person.begin();
    assert_eq!(person.hears(), GREETING);
    person.stop_media();
    for _ in 0..10 {
        person.raw_media(frame.clone());
    }
    person.hang_up();
    desk.expect(&desk.over(&id), &json!({"ended_reason": "user_hung_up", "fault": "none"}));
}

fn invalid_frames_are_ignored(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    let frame = person.frame(&vec![0; person.rate().frame_samples()]);
    for broken in broken(&frame) {
        person.raw_media(broken);
    }
    person.says("When do you open on Saturday?");
    assert!(person.hears().contains("open at ten"), "the conversation continues");
    person.hang_up();
    desk.expect(&desk.over(&id), &json!({"ended_reason": "user_hung_up", "fault": "none"}));
}

/// Invalid variants of a frame: truncated, invalid base64, invalid JSON, empty, another message.
fn broken(frame: &WireMessage) -> Vec<WireMessage> {
    let text = |text: &str| WireMessage::Text(text.to_owned());
    let mut broken =
        vec![text(""), text("{"), text("[]"), text("null"), text("{\"event\":7}"), text("hello")];
    match frame {
        WireMessage::Binary(bytes) => {
            broken.push(WireMessage::Binary(bytes[1..].to_vec()));
            broken.push(WireMessage::Binary(vec![]));
            broken.push(WireMessage::Binary(vec![7]));
        }
        WireMessage::Text(whole) => {
            let at = whole.find("\"payload\":\"").expect("a payload") + "\"payload\":\"".len();
            let end = at + whole[at..].find('"').expect("its end");
            let with =
                |payload: &str| WireMessage::Text(format!("{}{payload}{}", &whole[..at], &whole[end..]));
            broken.extend([with(""), with("!!!!"), with("A"), with(&whole[at..end - 1]), with("\\u0000")]);
            broken.push(WireMessage::Binary(vec![0; 160]));
        }
    }
    broken
}

/// The carrier opens the socket and never sends a message: the service must not wait forever.
fn a_silent_socket(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.pick_up();
    person.open_socket();
    person.was_hung_up();
    desk.expect(
        &desk.over(&id),
        &json!({"outcome": "failed", "ended_reason": "media_lost", "fault": "carrier"}),
    );
}

/// Nothing can be understood on such a line, so the call ends at once and not after half a minute of silence.
#[test]
fn audio_in_another_format_ends_the_call() {
    let desk = Desk::new("telnyx");
    let (id, mut person) = desk.place();
    person.pick_up();
    person.open_socket();
    let format = json!({"encoding": "PCMA", "sample_rate": 8_000, "channels": 1});
    let start = json!({"event": "start", "sequence_number": "1", "stream_id": "1",
        "start": {"call_control_id": person.id(), "media_format": format}});
    person.raw_media(WireMessage::Text(json!({"event": "connected", "version": "1.0.0"}).to_string()));
    person.raw_media(WireMessage::Text(start.to_string()));
    let call = desk.until(&id, "over within some seconds", |call| call["status"] == "ended");
    desk.expect(&call, &json!({"outcome": "failed", "ended_reason": "media_lost", "fault": "carrier"}));
    assert!(call["duration_ms"].as_i64().unwrap() < 3_000, "{call}");
    person.was_hung_up();
}

fn a_flooding_socket(provider: &'static str) {
    const FRAMES: usize = 20_000;
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    // Six minutes of audio at once. The service may close the socket or drop audio, and must keep working.
    person.say_at_once(&vec![0; FRAMES * person.rate().frame_samples()]);
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    person.hang_up();
    let call = desk.over(&id);
    assert!(["user_hung_up", "media_lost"].contains(&call["ended_reason"].as_str().unwrap()), "{call}");
    let (next, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING, "other calls are not affected");
    person.hang_up();
    desk.over(&next);
}

/// The connection drops, and no callback follows.
fn a_dropped_socket(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.drop_connection();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"status": "ended"}));
    assert!(["user_hung_up", "media_lost"].contains(&call["ended_reason"].as_str().unwrap()), "{call}");
    assert_eq!(texts(&call, "assistant"), [GREETING]);
}

fn keys_are_in_the_transcript(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    for key in ['4', '2', '#'] {
        person.key(key);
    }
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "dtmf").concat(), "42#", "{call}");
}

/// Barge-in: unplayed audio is discarded, and the transcript contains only the part that was heard.
fn the_caller_can_interrupt_the_assistant(provider: &'static str) {
    let desk = Desk::new(provider);
    let long = "We have a great many things to tell you about our opening hours. ".repeat(12);
    let path = format!("/assistants/{}", desk.assistant.id);
    desk.world.patch(path, json!({"first_message": long.trim()})).ok();
    let (id, mut person) = desk.connected();
    person.hears_somebody();
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    person.says("When do you open on Saturday?");
    let mut answer = person.hears();
    while !answer.contains("open at ten") {
        answer = person.hears();
    }
    person.hang_up();
    let call = desk.over(&id);
    let first = &call["transcript"][0];
    assert_eq!((&first["role"], &first["interrupted"]), (&json!("assistant"), &json!(true)), "{call}");
    let (heard, intended) = (first["text"].as_str().unwrap(), first["intended_text"].as_str().unwrap());
    assert_eq!(intended, long.trim());
    assert!(heard.len() < intended.len() / 2, "{heard:?}");
}

/// After a regular end of the conversation, the close code is not an error.
#[test]
fn the_end_of_a_conversation_closes_its_socket_without_an_error() {
    let desk = Desk::with_model("twilio", "fake/says-goodbye");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Thank you, that was all.");
    person.hears();
    assert_eq!(person.socket_closed(), Closed::ByService(Some(1_000)));
    person.was_hung_up();
    desk.over(&id);
}

#[track_caller]
fn assert_refused(result: &Result<(), u16>, which: &str) {
    assert!(result.is_err_and(|status| (400..500).contains(&status)), "{which}: {result:?}");
}
