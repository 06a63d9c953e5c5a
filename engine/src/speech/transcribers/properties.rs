//! What holds for every protocol, whatever arrives: no panic, no busy waiting, and one result for each utterance that ended.
use proptest::collection::vec;
use proptest::prelude::*;

use super::test_driver::{Driver, settings};
use super::{TranscriberKind, new};
use crate::base::limits::{SPEECH_EVENTS_MAX, SPEECH_TEXT_BYTES_MAX};
use crate::ports::SocketMessage;
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeFailure, Transmit};
use crate::speech::transcriber::TranscriberEvent;

#[derive(Debug, Clone)]
enum Step {
    Hear(i64),
    Wait(i64),
    Began,
    Ended,
    Close,
    /// At the exchange that is so many before the newest.
    Arrive(u32, Arrival),
}

/// Messages that each of the protocols knows, among others.
fn message() -> impl Strategy<Value = String> {
    let time =
        prop_oneof![Just("0"), Just("0.5"), Just("1.3"), Just("4"), Just("-1"), Just("1e300"), Just("null")];
    let text = prop_oneof![Just(""), Just("one"), Just("two three"), Just("\\u0000 \\n"), Just("é")];
    let flag = prop_oneof![Just("true"), Just("false"), Just("null")];
    let deepgram = (time.clone(), time.clone(), text.clone(), flag.clone(), flag).prop_map(
        |(start, duration, text, is_final, from_finalize)| {
            format!(
                r#"{{"type":"Results","start":{start},"duration":{duration},"is_final":{is_final},"from_finalize":{from_finalize},"channel":{{"alternatives":[{{"transcript":"{text}"}}]}}}}"#
            )
        },
    );
    let event = prop_oneof![
        Just("Update"),
        Just("StartOfTurn"),
        Just("EagerEndOfTurn"),
        Just("TurnResumed"),
        Just("EndOfTurn"),
        Just("New")
    ];
    let flux = (event, time, text.clone()).prop_map(|(event, end, text)| {
        format!(r#"{{"type":"TurnInfo","event":"{event}","audio_window_end":{end},"transcript":"{text}"}}"#)
    });
    let item = prop_oneof![Just("a"), Just("b"), Just("c")];
    let name = prop_oneof![
        Just("conversation.item.input_audio_transcription.delta"),
        Just("conversation.item.input_audio_transcription.updated"),
        Just("conversation.item.input_audio_transcription.completed"),
        Just("conversation.item.input_audio_transcription.failed"),
        Just("input_audio_buffer.committed"),
        Just("conversation.item.created"),
        Just("transcription_session.created"),
    ];
    let realtime = (name, item.clone(), item, text.clone()).prop_map(|(name, id, previous, text)| {
        format!(
            r#"{{"type":"{name}","item_id":"{id}","previous_item_id":"{previous}","delta":"{text}","transcript":"{text}","error":{{"message":"{text}"}}}}"#
        )
    });
    let code = prop_oneof![
        Just("x"),
        Just("input_audio_buffer_commit_empty"),
        Just("session_expired"),
        Just("invalid_api_key")
    ];
    let error = (code, 0..4_u32).prop_map(|(code, number)| {
        format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","code":"{code}","event_id":"commit_{number}","message":"no"}}}}"#)
    });
    let other = prop_oneof![
        Just(r#"{"type":"Metadata"}"#.to_owned()),
        Just(r#"{"type":"Error"}"#.to_owned()),
        Just("<html>".to_owned()),
        "\\PC{0,20}",
    ];
    prop_oneof![6 => deepgram, 6 => flux, 6 => realtime, 1 => error, 1 => other]
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let status = prop_oneof![
        Just(200_u16),
        Just(200),
        Just(204),
        Just(301),
        Just(400),
        Just(401),
        Just(429),
        Just(503)
    ];
    let body = prop_oneof![
        Just(r#"{"text":"one two"}"#),
        Just("{\"te"),
        Just("<html>"),
        Just(r#"{"error":{"message":"m"}}"#)
    ];
    let code = prop_oneof![Just(1000_u16), Just(1006), Just(1008), Just(1011), Just(3000)];
    prop_oneof![
        6 => Just(Arrival::Opened),
        12 => message().prop_map(|text| Arrival::Message(SocketMessage::Text(text))),
        1 => vec(any::<u8>(), 0..40).prop_map(|bytes| Arrival::Message(SocketMessage::Binary(bytes.into()))),
        1 => code.prop_map(|code| Arrival::Closed { code, reason: "why".into() }),
        3 => status.clone().prop_map(|status| Arrival::Head { status, headers: vec![] }),
        3 => body.prop_map(|body| Arrival::Body(body.as_bytes().into())),
        3 => Just(Arrival::End),
        1 => status.prop_map(|status| Arrival::Failed(ExchangeFailure::Rejected { status, body: "x".into() })),
        1 => Just(Arrival::Failed(ExchangeFailure::Timeout)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2_000_i64).prop_map(Step::Hear),
        2 => (0..7_000_i64).prop_map(Step::Wait),
        3 => Just(Step::Began),
        3 => Just(Step::Ended),
        1 => Just(Step::Close),
        12 => (0..3_u32, arrival()).prop_map(|(back, arrival)| Step::Arrive(back, arrival)),
    ]
}

/// Counts utterances and what was told of them.
#[derive(Default)]
struct Count {
    ended: usize,
    results: usize,
    turns: usize,
}

impl Count {
    fn take(&mut self, call: &mut Driver) {
        for event in call.events() {
            let text = match &event {
                TranscriberEvent::Failed(failure) => &failure.message,
                TranscriberEvent::Partial(text)
                | TranscriberEvent::Final(text)
                | TranscriberEvent::Late { text, .. }
                | TranscriberEvent::LikelyEnd(text)
                | TranscriberEvent::TurnEnded(text) => text,
                TranscriberEvent::Resumed => continue,
            };
            assert!(text.len() <= SPEECH_TEXT_BYTES_MAX && !text.contains("key-of-the-operator"), "{text}");
            match event {
                TranscriberEvent::Final(_) | TranscriberEvent::Failed(_) => self.results += 1,
                TranscriberEvent::TurnEnded(_) => self.turns += 1,
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_utterance_has_one_result(kind in 0..4_usize, steps in vec(step(), 0..60)) {
        let kind = TranscriberKind::ALL[kind];
        let mut call = Driver::new(kind, settings("m"), Rate::Khz8);
        let mut count = Count::default();
        let mut newest = 0;
        for step in steps {
            match step {
                Step::Hear(ms) => call.hear(ms, 300),
                Step::Wait(ms) => call.wait(ms),
                Step::Began => call.began(),
                Step::Ended => {
                    count.ended += 1;
                    call.ended();
                }
                Step::Close => call.close(),
                Step::Arrive(back, arrival) => call.arrive_at(u32::saturating_sub(newest, back), arrival),
            }
            for transmit in call.transmits() {
                match transmit {
                    Transmit::Connect { id, .. } | Transmit::Request { id, .. } => newest = newest.max(id),
                    Transmit::Send { message, .. } => {
                        let bytes = match &message {
                            SocketMessage::Text(text) => text.len(),
                            SocketMessage::Binary(bytes) => bytes.len(),
                        };
                        prop_assert!(bytes <= 32 * 1024, "a message of {} bytes", bytes);
                    }
                    Transmit::Drop { .. } => {}
                }
            }
            count.take(&mut call);
            if kind != TranscriberKind::DeepgramFlux {
                prop_assert!(count.results <= count.ended, "{} of {}", count.results, count.ended);
                prop_assert_eq!(count.turns, 0);
            }
        }
        // Nothing more arrives: every utterance is settled in bounded time.
        let before = count.results + count.turns;
        if kind == TranscriberKind::DeepgramFlux {
            // A turn lasts as long as our detector hears speech.
            count.ended += 1;
            call.ended();
        }
        call.wait(120_000);
        count.take(&mut call);
        if kind == TranscriberKind::DeepgramFlux {
            // What was left becomes at most one turn.
            prop_assert!(count.results + count.turns <= before + 1);
            prop_assert!(count.results + count.turns > 0);
        } else {
            prop_assert_eq!(count.results, count.ended);
        }
        call.close();
        call.wait(10_000);
        prop_assert_eq!(call.transcriber.poll_timeout(), None, "a closed transcriber has nothing to do");
    }

    #[test]
    fn a_driver_that_takes_nothing_does_not_make_it_grow(kind in 0..4_usize, messages in vec(message(), 0..200)) {
        let kind = TranscriberKind::ALL[kind];
        let mut transcriber = new(kind, settings("m"), Rate::Khz8);
        transcriber.hear(0, &[0; 800]);
        transcriber.arrived(0, 0, Arrival::Opened);
        transcriber.speech_began(0);
        transcriber.hear(0, &[0; 800]);
        for message in messages {
            transcriber.arrived(0, 0, Arrival::Message(SocketMessage::Text(message)));
        }
        let told = std::iter::from_fn(|| transcriber.poll_event()).count();
        prop_assert!(told <= SPEECH_EVENTS_MAX + 1, "{} events", told);
    }
}
