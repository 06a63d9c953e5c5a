//! Fuzzes what recognition providers send: messages on a socket, or the body of a reply. Whatever it is, an utterance has one
//! result. The first byte selects the protocol; messages are separated by NUL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidetone_engine::base::limits::{SPEECH_EVENTS_MAX, SPEECH_TEXT_BYTES_MAX};
use sidetone_engine::base::setting::Secret;
use sidetone_engine::ports::{Party, SocketMessage};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::exchange::Arrival;
use sidetone_engine::speech::transcriber::{Transcriber, TranscriberEvent};
use sidetone_engine::speech::transcribers::{TranscriberKind, TranscriberSettings, new};

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = bytes.split_first() else {
        return;
    };
    let kind = TranscriberKind::ALL[usize::from(*which) % TranscriberKind::ALL.len()];
    let settings = TranscriberSettings {
        party: Party::speech("test"),
        base_url: "https://stt.example".to_owned(),
        api_key: Secret::new("key"),
        model: "m".to_owned(),
        language: None,
        keyterms: Vec::new(),
        turn_ends_ms: 3_000,
    };
    let mut transcriber = new(kind, settings, Rate::Khz8);
    let second = vec![1; transcriber.rate().hz() as usize];
    transcriber.hear(0, &second);
    transcriber.arrived(0, 0, Arrival::Opened);
    transcriber.speech_began(0);
    transcriber.hear(1_000, &second);
    let (first, last) = rest.split_at(rest.len() / 2);
    say(&mut *transcriber, 1_000, first);
    transcriber.speech_ended(1_000);
    say(&mut *transcriber, 1_100, last);
    let mut now_ms = 1_100;
    while let Some(due_ms) = transcriber.poll_timeout()
        && due_ms < 200_000
    {
        now_ms = due_ms.max(now_ms);
        transcriber.tick(now_ms);
        while transcriber.poll_transmit().is_some() {}
    }
    let mut results = 0;
    let mut told = 0;
    while let Some(event) = transcriber.poll_event() {
        told += 1;
        match event {
            TranscriberEvent::Final(text) => {
                results += 1;
                assert!(text.len() <= SPEECH_TEXT_BYTES_MAX);
            }
            TranscriberEvent::Failed(_) => results += 1,
            TranscriberEvent::Partial(text) => assert!(text.len() <= SPEECH_TEXT_BYTES_MAX),
            _ => {}
        }
    }
    assert!(told <= SPEECH_EVENTS_MAX + 2);
    assert!(kind == TranscriberKind::DeepgramFlux || results == 1, "{results} results");
});

/// The messages of a socket, and the same as the body of a reply.
fn say(transcriber: &mut dyn Transcriber, now_ms: i64, bytes: &[u8]) {
    for message in bytes.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(message).into_owned();
        transcriber.arrived(now_ms, 0, Arrival::Message(SocketMessage::Text(text)));
    }
    transcriber.arrived(now_ms, 0, Arrival::Head { status: 200, headers: Vec::new() });
    transcriber.arrived(now_ms, 0, Arrival::Body(bytes.to_vec().into()));
    transcriber.arrived(now_ms, 0, Arrival::End);
}
