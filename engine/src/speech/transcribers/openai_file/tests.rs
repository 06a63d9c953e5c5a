use super::*;
use crate::speech::exchange::SpeechFault;
use crate::speech::transcribers::test_driver::{Driver, failure, final_, partial, settings};
use std::io::Cursor;

fn driver() -> Driver {
    Driver::new(KIND, settings("whisper-large"), Rate::Khz8)
}

fn reply(call: &mut Driver, id: ExchangeId, status: u16, body: &str) {
    call.arrive_at(id, Arrival::Head { status, headers: vec![] });
    for piece in body.as_bytes().chunks(7) {
        call.arrive_at(id, Arrival::Body(Bytes::copy_from_slice(piece)));
    }
    call.arrive_at(id, Arrival::End);
}

fn wav_samples(request: &HttpRequest) -> Vec<i16> {
    let at = request.body.windows(4).position(|window| window == b"RIFF").expect("a WAV file");
    let reader = hound::WavReader::new(Cursor::new(&request.body[at..])).unwrap();
    assert_eq!((reader.spec().channels, reader.spec().sample_rate), (1, 8_000));
    reader.into_samples::<i16>().map(Result::unwrap).collect()
}

#[test]
fn an_utterance_is_one_request() {
    let mut call = driver();
    call.hear(2_000, 7);
    call.utter(1_000);
    let requests = call.requests();
    let [(id, request)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert_eq!((request.method, request.url.as_str()), ("POST", "https://stt.example/audio/transcriptions"));
    assert_eq!(
        request.headers[0],
        ("content-type", "multipart/form-data; boundary=sidetone-form".to_owned())
    );
    assert_eq!(request.headers[2], ("authorization", "Bearer key-of-the-operator".to_owned()));
    assert_eq!(request.egress, Egress::Operator);
    let head = String::from_utf8_lossy(&request.body[..700]).into_owned();
    for (name, value) in [
        ("model", "whisper-large"),
        ("response_format", "json"),
        ("language", "en"),
        ("prompt", "Sidetone, blue whale"),
    ] {
        assert!(head.contains(&format!("name=\"{name}\"\r\n\r\n{value}\r\n")), "{name}: {head}");
    }
    let samples = wav_samples(request);
    assert_eq!(samples.len(), 8 * (500 + 1_000 + 240));
    assert_eq!(
        (samples[3_999], samples[4_000], samples[12_000]),
        (7, 1_000, 0),
        "with half a second before it"
    );
    reply(&mut call, *id, 200, r#"{"text":" Hello,\n there. ","usage":{"type":"duration","seconds":2}}"#);
    assert_eq!(call.events(), [final_("Hello, there.")]);
    assert_eq!((call.transcriber.billed_ms(), call.transcriber.poll_timeout()), (1_740, None));
}

#[test]
fn no_audio_belongs_to_two_utterances() {
    let mut call = driver();
    call.hear(2_000, 7);
    call.utter(500);
    call.hear(100, 3);
    call.utter(500);
    let requests = call.requests();
    assert_eq!(wav_samples(&requests[1].1).len(), 8 * (100 + 740));
    reply(&mut call, requests[1].0, 200, r#"{"text":"Two."}"#);
    assert_eq!(call.events(), []);
    reply(&mut call, requests[0].0, 200, r#"{"text":""}"#);
    assert_eq!(call.events(), [final_(""), final_("Two.")]);
}

#[test]
fn a_long_utterance_is_cut_where_it_is_quiet() {
    let mut call = driver();
    call.began();
    call.hear(28_000, 1_000);
    call.hear(200, 0);
    call.hear(11_800, 1_000);
    let requests = call.requests();
    let [(first, request)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    let cut = wav_samples(request).len();
    assert!((8 * 28_000..8 * 28_200).contains(&cut), "{cut}");
    reply(&mut call, *first, 200, r#"{"text":"One,"}"#);
    call.hear(25_000, 1_000);
    call.ended();
    let rest = call.requests();
    let parts: Vec<usize> = rest.iter().map(|(_, request)| wav_samples(request).len()).collect();
    assert_eq!((parts.len(), cut + parts.iter().sum::<usize>()), (2, 8 * 65_000));
    reply(&mut call, rest[1].0, 200, r#"{"text":"three."}"#);
    reply(&mut call, rest[0].0, 200, r#"{"text":"two"}"#);
    assert_eq!(call.events(), [partial("One,"), final_("One, two three.")]);
}

#[test]
fn passing_failures_are_tried_again() {
    let mut call = driver();
    call.utter(500);
    let (id, _) = call.requests().remove(0);
    reply(&mut call, id, 503, "busy");
    let (id, _) = call.requests().remove(0);
    call.arrive_at(id, Arrival::Failed(ExchangeFailure::Broken("reset by stt.example".into())));
    assert_eq!(call.requests().len(), 0);
    call.wait(500);
    let (id, _) = call.requests().remove(0);
    reply(&mut call, id, 429, "{}");
    call.wait(1_999);
    assert_eq!(call.requests().len(), 0);
    call.wait(1);
    let (id, _) = call.requests().remove(0);
    reply(&mut call, id, 200, "{");
    let told = call.events();
    let failure = failure(&told);
    assert_eq!(failure.message, "the transcription server sent a reply that cannot be read");
    assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Provider, true));
    call.utter(500);
    let (id, _) = call.requests().remove(0);
    assert_eq!(call.transcriber.billed_ms(), 0, "what was not transcribed is not billed");
    reply(&mut call, id, 200, r#"{"text":"Hello."}"#);
    assert_eq!(call.events(), [final_("Hello.")]);
    assert_eq!(call.transcriber.billed_ms(), 740);
}

#[test]
fn whose_fault_it_is() {
    let unknown = r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#;
    for (status, body, fault, is_temporary) in [
        (401, "{}", SpeechFault::Operator, false),
        (403, "", SpeechFault::Operator, false),
        (404, unknown, SpeechFault::Operator, false),
        (400, unknown, SpeechFault::Operator, false),
        (200, "<!doctype html><p>Welcome", SpeechFault::Provider, true),
        (302, "", SpeechFault::Provider, true),
        (200, "", SpeechFault::Provider, true),
        (200, r#"{"txet":"x"}"#, SpeechFault::Provider, true),
        (200, r#"{"text":null}"#, SpeechFault::Provider, true),
        (200, r#"{"error":{"message":"queue full","type":"server_error"}}"#, SpeechFault::Provider, true),
        (
            200,
            r#"{"error":{"message":"wrong","type":"x","code":"invalid_api_key"}}"#,
            SpeechFault::Operator,
            false,
        ),
        (500, "<html>", SpeechFault::Provider, true),
    ] {
        let mut call = driver();
        call.utter(500);
        let attempts = if is_temporary { 4 } else { 1 };
        for _ in 0..attempts {
            let (id, _) = call.requests().remove(0);
            reply(&mut call, id, status, body);
            call.wait(2_000);
        }
        let told = call.events();
        let failure = failure(&told).clone();
        assert_eq!(
            (failure.fault, failure.is_temporary),
            (fault, is_temporary),
            "{status} {body}: {failure:?}"
        );
        call.utter(500);
        assert_eq!(call.requests().is_empty(), !is_temporary);
        assert_eq!(call.events().is_empty(), is_temporary, "what is for good fails at once");
    }
}

#[test]
fn a_driver_or_server_without_an_end() {
    let mut call = driver();
    call.utter(500);
    call.wait(60_000);
    assert_eq!(failure(&call.events()).message, "the transcription server did not answer in time");
    assert_eq!(call.requests().len(), 2, "no attempt begins too late");

    let mut call = driver();
    call.utter(500);
    let (id, _) = call.requests().remove(0);
    call.arrive_at(id, Arrival::Head { status: 200, headers: vec![] });
    for _ in 0..100 {
        call.arrive_at(id, Arrival::Body(vec![b' '; 16 * 1024].into()));
    }
    assert!(call.transmits().contains(&Transmit::Drop { id }));
}

#[test]
fn what_waits_is_bounded() {
    let mut call = driver();
    for _ in 0..20 {
        call.utter(500);
    }
    let failed = call.events().len();
    assert_eq!(failed, 20 - TRANSCRIPTIONS_MAX);
    call.began();
    call.hear(400_000, 1_000);
    call.ended();
    let told = call.events();
    assert_eq!(told.len(), TRANSCRIPTIONS_MAX + 1, "{told:?}");
}

#[test]
fn silence_asks_nothing() {
    let mut call = driver();
    call.hear(10_000, 0);
    assert_eq!((call.transmits(), call.transcriber.poll_timeout()), (vec![], None));
    call.ended();
    assert_eq!(call.requests().len(), 1, "what was heard before it is an utterance");
    let mut call = driver();
    call.began();
    call.ended();
    assert_eq!((call.requests().len(), call.events()), (0, vec![final_("")]));
}

#[test]
fn at_the_end_of_a_call_the_last_words_come() {
    let mut call = driver();
    call.utter(500);
    call.began();
    call.hear(500, 5);
    call.close();
    let (id, _) = call.requests().remove(0);
    reply(&mut call, id, 200, r#"{"text":"Bye."}"#);
    assert_eq!(call.events(), [final_("Bye.")]);
    call.ended();
    assert!(failure(&call.events()).message.contains("when the call was over"));

    let mut call = driver();
    call.utter(500);
    call.close();
    call.ended();
    call.wait(SPEECH_CLOSE_MS);
    assert_eq!(call.events().len(), 2);
    assert_eq!(call.transcriber.poll_timeout(), None);
}

#[test]
fn a_wrong_address_is_reported_without_a_request() {
    let mut wrong = settings("m");
    wrong.base_url = "stt.example".into();
    let mut call = Driver::new(KIND, wrong, Rate::Khz16);
    call.utter(100);
    assert_eq!(failure(&call.events()).message, "the transcription server has an invalid base URL");
    assert_eq!(call.transmits(), []);
}
