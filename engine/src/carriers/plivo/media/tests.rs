use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::base::limits::MEDIA_CHUNK_MS_MAX;

const START: &str = r#"{"sequenceNumber":0,"event":"start","start":{"callId":"c-1","streamId":"s-1","accountId":"MA1",
    "tracks":["inbound"],"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000}},"extra_headers":"{}"}"#;

fn read(line: &mut PlivoCodec, text: &str) -> Result<Vec<MediaEvent>, MediaError> {
    line.read(MediaMessage::Text(text.to_owned()))
}

fn open() -> PlivoCodec {
    let mut line = PlivoCodec::default();
    let started = MediaEvent::Started { carrier_call_id: Some("c-1".to_owned()) };
    assert_eq!(read(&mut line, START), Ok(vec![started]));
    line
}

fn media(payload: &str) -> String {
    json!({"sequenceNumber": 2, "streamId": "s-1", "event": "media", "extra_headers": "",
        "media": {"track": "inbound", "timestamp": "1705312200000", "chunk": 1, "payload": payload}})
    .to_string()
}

#[test]
fn reads_a_stream() {
    let mut line = open();
    let silence = STANDARD.encode([0xff; 160]);
    assert_eq!(read(&mut line, &media(&silence)), Ok(vec![MediaEvent::Audio(vec![0; 160])]));
    let dtmf =
        r##"{"event":"dtmf","sequenceNumber":5,"streamId":"s-1","dtmf":{"track":"inbound","digit":"#"}}"##;
    assert_eq!(read(&mut line, dtmf), Ok(vec![MediaEvent::Dtmf('#')]));
    let played = r#"{"event":"playedStream","sequenceNumber":7,"streamId":"s-1","name":"turn-7"}"#;
    assert_eq!(read(&mut line, played), Ok(vec![MediaEvent::Played("turn-7".to_owned())]));
    let cleared = r#"{"sequenceNumber":8,"event":"clearedAudio","streamId":"s-1"}"#;
    assert_eq!(read(&mut line, cleared), Ok(vec![MediaEvent::Cleared]));
    assert_eq!(read(&mut line, r#"{"event":"stop"}"#), Ok(vec![MediaEvent::Stopped]));
    assert_eq!(read(&mut line, &media(&silence)), Err(MediaError::OutOfPlace));
    assert_eq!(read(&mut line, START), Err(MediaError::OutOfPlace));
}

#[test]
fn the_start_is_first_and_unique() {
    let mut line = PlivoCodec::default();
    assert_eq!(read(&mut line, &media("/w==")), Err(MediaError::OutOfPlace));
    let mut line = open();
    assert_eq!(read(&mut line, START), Err(MediaError::OutOfPlace));
    // Plivo's command line tool tests a server with this message alone.
    assert_eq!(read(&mut PlivoCodec::default(), r#"{"event":"stop"}"#), Ok(vec![MediaEvent::Stopped]));
}

#[test]
fn the_format_must_be_the_requested_one() {
    let with = |from: &str, to: &str| read(&mut PlivoCodec::default(), &START.replace(from, to));
    assert!(with("8000", r#""8000""#).is_ok());
    assert!(with(r#""mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000}"#, r#""more":1"#).is_ok());
    assert_eq!(with("8000", "16000"), Err(MediaError::Format));
    assert_eq!(with("audio/x-mulaw", "audio/x-l16"), Err(MediaError::Format));
    assert_eq!(with(r#","sampleRate":8000"#, ""), Err(MediaError::Format));
    assert_eq!(with("s-1", ""), Err(MediaError::Malformed));
    assert_eq!(with("s-1", &"s".repeat(ID_BYTES_MAX + 1)), Err(MediaError::Malformed));
    assert_eq!(with(r#""streamId":"s-1","#, ""), Err(MediaError::Malformed));
    let nameless = with(r#""callId":"c-1","#, "");
    assert_eq!(nameless, Ok(vec![MediaEvent::Started { carrier_call_id: None }]));
}

#[test]
fn undecodable_messages_change_nothing() {
    let mut line = open();
    let long = STANDARD.encode(vec![0xff; 8 * MEDIA_CHUNK_MS_MAX + 1]);
    for payload in ["", "?", "abc", &long] {
        assert_eq!(read(&mut line, &media(payload)), Err(MediaError::Audio), "{payload:.9}");
    }
    for text in
        ["", "{}", "[]", "7", "null", r#"{"event":7}"#, r#"{"event":"dtmf"}"#, r#"{"event":"playedStream"}"#]
    {
        assert_eq!(read(&mut line, text), Err(MediaError::Malformed), "{text}");
    }
    for digit in [r#""""#, r#""12""#, r#""x""#, "12", "null", "-1"] {
        let text = format!(r#"{{"event":"dtmf","dtmf":{{"digit":{digit}}}}}"#);
        assert_eq!(read(&mut line, &text), Err(MediaError::Malformed), "{digit}");
    }
    assert_eq!(line.read(MediaMessage::Binary(vec![1].into())), Err(MediaError::Malformed));
    assert_eq!(read(&mut line, &media("/w==")), Ok(vec![MediaEvent::Audio(vec![0])]));
}

#[test]
fn other_messages_are_ignored() {
    let mut line = open();
    let outbound = media("/w==").replace("inbound", "outbound");
    assert_eq!(read(&mut line, &outbound), Ok(Vec::new()));
    assert_eq!(read(&mut line, r#"{"event":"something new"}"#), Ok(Vec::new()));
    let key = |digit: &str| read(&mut open(), &format!(r#"{{"event":"dtmf","dtmf":{{"digit":{digit}}}}}"#));
    assert_eq!(key("5"), Ok(vec![MediaEvent::Dtmf('5')]));
    assert_eq!(key(r#""d""#), Ok(vec![MediaEvent::Dtmf('D')]));
}

#[test]
fn outgoing_messages_follow_the_protocol() {
    let mut line = open();
    let sent = |message| match message {
        MediaMessage::Text(text) => serde_json::from_str::<Value>(&text).unwrap(),
        MediaMessage::Binary(_) => panic!("Plivo takes text"),
    };
    let payload = STANDARD.encode([0xff; 160]);
    let audio = json!({"event": "playAudio",
        "media": {"contentType": "audio/x-mulaw", "sampleRate": 8000, "payload": payload}});
    assert_eq!(sent(line.audio(&[0; 160])), audio);
    let checkpoint = json!({"event": "checkpoint", "streamId": "s-1", "name": "turn \"7\""});
    assert_eq!(sent(line.mark("turn \"7\"")), checkpoint);
    assert_eq!(sent(line.clear()), json!({"event": "clearAudio", "streamId": "s-1"}));
    assert_eq!(line.format().rate.frame_samples(), 160);
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC{0,200}") {
        let _ = read(&mut PlivoCodec::default(), &text);
        let _ = read(&mut open(), &text);
    }

    #[test]
    fn arbitrary_values_do_not_panic(event in "start|media|dtmf|playedStream|clearedAudio|stop", value in "\\PC{0,20}") {
        for name in ["start", "media", "dtmf", "name", "streamId"] {
            let _ = read(&mut open(), &json!({"event": event, name: value}).to_string());
            let _ = read(&mut PlivoCodec::default(), &json!({"event": event, name: {"payload": value}}).to_string());
        }
    }
}
