//! Media sockets: who may open one, and what is done about those that speak badly, too much, or not at all.
use std::time::Duration;

use serde_json::json;
use sidetone_tests::fakes::carrier::{Closed, WireMessage};

use crate::support::{Desk, GREETING, MOMENT_MS, texts};

with_each_carrier!(
    a_token_opens_one_socket,
    a_token_of_another_call_opens_nothing_here,
    audio_out_of_place_is_no_harm,
    broken_frames_are_no_harm,
    a_socket_that_never_speaks,
    a_socket_that_floods,
    a_socket_that_vanishes,
    keys_are_in_the_transcript,
    who_is_interrupted_falls_silent,
);

fn a_token_opens_one_socket(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    let url = person.media_url().to_owned();
    assert_refused(&person.knock(&url), "used");
    person.hang_up();
    desk.over(&id);
    assert_refused(&person.knock(&url), "over");
}

fn a_token_of_another_call_opens_nothing_here(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.pick_up();
    let url = person.media_url().to_owned();
    let other = if provider == "twilio" { "plivo" } else { "twilio" };
    let elsewhere = url.replace(&format!("/{provider}/"), &format!("/{other}/"));
    assert_ne!(elsewhere, url);
    assert_refused(&person.knock(&elsewhere), "another carrier's");
    let (path, token) = url.rsplit_once('/').expect("a path");
    let mut altered: Vec<char> = token.chars().collect();
    let middle = altered.len() / 2;
    altered[middle] = if altered[middle] == 'A' { 'B' } else { 'A' };
    let altered: String = altered.into_iter().collect();
    assert_refused(&person.knock(&format!("{path}/{altered}")), "altered");
    assert_refused(&person.knock(&format!("{path}/x")), "no token");
    // None of that has used the good one up.
    person.open_socket();
    person.begin();
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    desk.over(&id);
}

fn audio_out_of_place_is_no_harm(provider: &'static str) {
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

fn broken_frames_are_no_harm(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    let frame = person.frame(&vec![0; person.rate().frame_samples()]);
    for broken in broken(&frame) {
        person.raw_media(broken);
    }
    person.says("When do you open on Saturday?");
    assert!(person.hears().contains("open at ten"), "the conversation goes on");
    person.hang_up();
    desk.expect(&desk.over(&id), &json!({"ended_reason": "user_hung_up", "fault": "none"}));
}

/// What a frame turns into on a bad day: a byte or a letter short, not base64, no JSON, nothing, something else.
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

/// The carrier opens the socket and nothing ever comes over it: the service does not wait for ever.
fn a_socket_that_never_speaks(provider: &'static str) {
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

fn a_socket_that_floods(provider: &'static str) {
    const FRAMES: usize = 20_000;
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    // Six minutes in a moment. The service may close it, or drop what is too much; it may not fall over.
    person.say_at_once(&vec![0; FRAMES * person.rate().frame_samples()]);
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    person.hang_up();
    let call = desk.over(&id);
    assert!(["user_hung_up", "media_lost"].contains(&call["ended_reason"].as_str().unwrap()), "{call}");
    let (next, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING, "others are served as before");
    person.hang_up();
    desk.over(&next);
}

/// The connection is gone without a word, and no callback ever comes.
fn a_socket_that_vanishes(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.vanish();
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

/// Barge-in: what was not played is thrown away, and the transcript says how far it was heard.
fn who_is_interrupted_falls_silent(provider: &'static str) {
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

/// The service closes with a code that is no error when a conversation has ended by itself.
#[test]
fn a_conversation_that_ends_closes_its_socket_properly() {
    let desk = Desk::with_model("twilio", "fake/says-goodbye");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Thank you, that was all.");
    person.hears();
    assert_eq!(person.was_hung_up().closed, Some(Closed::ByService(Some(1_000))));
    desk.over(&id);
}

#[track_caller]
fn assert_refused(knocked: &Result<(), u16>, which: &str) {
    assert!(knocked.is_err_and(|status| (400..500).contains(&status)), "{which}: {knocked:?}");
}
