use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const START: &str = r#"{"event":"start","sequenceNumber":"1","start":{"accountSid":"AC1","streamSid":"MZ1","callSid":"CA1",
    "tracks":["inbound"],"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000,"channels":1},
    "customParameters":{"FirstName":"Jane"}},"streamSid":"MZ1"}"#;

fn text(text: &str) -> MediaMessage {
    MediaMessage::Text(text.to_owned())
}

fn started() -> TwilioCodec {
    let mut line = TwilioCodec::default();
    let connected = line.read(text(r#"{"event":"connected","protocol":"Call","version":"1.0.0"}"#));
    assert_eq!(connected, Ok(Vec::new()));
    let started = MediaEvent::Started { carrier_call_id: Some("CA1".to_owned()) };
    assert_eq!(line.read(text(START)), Ok(vec![started]));
    line
}

fn media(payload: &str) -> MediaMessage {
    text(
        &json!({
            "event": "media", "sequenceNumber": "3", "streamSid": "MZ1",
            "media": {"track": "inbound", "chunk": "1", "timestamp": "5", "payload": payload},
        })
        .to_string(),
    )
}

#[test]
fn reads_a_stream() {
    let mut line = started();
    assert_eq!(line.format(), MediaFormat { rate: Rate::Khz8 });
    assert_eq!(line.read(media("//8A")), Ok(vec![MediaEvent::Audio(vec![0, 0, -32_124])]));
    // JSON may escape characters of base64.
    let escaped = r#"{"event":"media","media":{"payload":"\/\/8A"},"streamSid":"MZ1"}"#;
    assert_eq!(line.read(text(escaped)), Ok(vec![MediaEvent::Audio(vec![0, 0, -32_124])]));
    let ours = r#"{"event":"media","media":{"track":"outbound","payload":"//8A"},"streamSid":"MZ1"}"#;
    assert_eq!(line.read(text(ours)), Ok(Vec::new()));
    let dtmf = r##"{"event":"dtmf","streamSid":"MZ1","sequenceNumber":"5","dtmf":{"track":"inbound_track","digit":"#"}}"##;
    assert_eq!(line.read(text(dtmf)), Ok(vec![MediaEvent::Dtmf('#')]));
    let mark = r#"{"event":"mark","sequenceNumber":"4","streamSid":"MZ1","mark":{"name":"7"}}"#;
    assert_eq!(line.read(text(mark)), Ok(vec![MediaEvent::Played("7".to_owned())]));
    assert_eq!(line.read(text(r#"{"event":"news","streamSid":"MZ1"}"#)), Ok(Vec::new()));
    let stop = r#"{"event":"stop","sequenceNumber":"5","stop":{"accountSid":"AC1","callSid":"CA1"},"streamSid":"MZ1"}"#;
    assert_eq!(line.read(text(stop)), Ok(vec![MediaEvent::Stopped]));
    assert_eq!(line.read(media("//8A")), Err(MediaError::OutOfPlace));
}

#[test]
fn outgoing_messages_name_the_stream() {
    let mut line = started();
    let sent = |message: MediaMessage| match message {
        MediaMessage::Text(text) => serde_json::from_str::<Value>(&text).unwrap(),
        MediaMessage::Binary(_) => panic!("Twilio takes text"),
    };
    let payload = format!("{}w==", "/".repeat(213));
    let expected = json!({"event": "media", "streamSid": "MZ1", "media": {"payload": payload}});
    assert_eq!(sent(line.audio(&[0; 160])), expected);
    let expected = json!({"event": "mark", "streamSid": "MZ1", "mark": {"name": "a \"b\""}});
    assert_eq!(sent(line.mark("a \"b\"")), expected);
    assert_eq!(sent(line.clear()), json!({"event": "clear", "streamSid": "MZ1"}));
}

#[test]
fn invalid_messages_change_nothing() {
    assert_eq!(TwilioCodec::default().read(media("//8A")), Err(MediaError::OutOfPlace));
    for (from, to, error) in [
        ("audio/x-mulaw", "audio/x-alaw", MediaError::Format),
        ("8000", "16000", MediaError::Format),
        (r#""channels":1"#, r#""channels":2"#, MediaError::Format),
        (r#""streamSid":"MZ1","callSid""#, r#""callSid""#, MediaError::Malformed),
        (r#""streamSid":"MZ1","callSid""#, r#""streamSid":"","callSid""#, MediaError::Malformed),
        ("mediaFormat", "format", MediaError::Malformed),
        (r#""start":{"#, r#""begin":{"#, MediaError::Malformed),
    ] {
        let mut line = TwilioCodec::default();
        assert_eq!(line.read(text(&START.replace(from, to))), Err(error), "{from}");
        assert!(line.read(text(START)).is_ok(), "{from}");
    }
    let mut line = started();
    let too_long = "////".repeat(8 * crate::base::limits::MEDIA_CHUNK_MS_MAX / 3 + 1);
    for payload in ["", "/", "//8", "no base64", &too_long] {
        assert_eq!(line.read(media(payload)), Err(MediaError::Audio), "{payload:.20}");
    }
    for message in [
        START,
        "",
        "[]",
        "null",
        r#"{"event":7}"#,
        r#"{"media":{"payload":"//8A"}}"#,
        r#"{"event":"media","streamSid":"MZ1"}"#,
        r#"{"event":"media","media":{"payload":"//8A"},"streamSid":"MZ2"}"#,
        r#"{"event":"dtmf","dtmf":{"digit":"12"},"streamSid":"MZ1"}"#,
        r#"{"event":"dtmf","dtmf":{"digit":"x"},"streamSid":"MZ1"}"#,
        r#"{"event":"mark","mark":{},"streamSid":"MZ1"}"#,
    ] {
        assert_eq!(line.read(text(message)), Err(MediaError::Malformed), "{message}");
    }
    assert_eq!(line.read(MediaMessage::Binary(Bytes::from_static(b"{}"))), Err(MediaError::Malformed));
    assert_eq!(line.read(media("/w==")), Ok(vec![MediaEvent::Audio(vec![0])]));
}

proptest! {
    #[test]
    fn arbitrary_messages_do_not_panic(
        event in "start|media|dtmf|mark|stop|connected|.{0,5}",
        inner in "\\PC{0,40}", raw in "\\PC{0,80}",
    ) {
        let mut line = started();
        for message in [raw.clone(), format!(r#"{{"event":"{event}","{event}":{{{inner}}}}}"#)] {
            let _ = line.read(MediaMessage::Text(message));
        }
        prop_assert_eq!(line.stream_sid.as_str(), "MZ1");
    }

    #[test]
    fn a_frame_survives_the_round_trip(samples in prop::collection::vec(any::<i16>(), 160)) {
        let mut line = started();
        let MediaMessage::Text(sent) = line.audio(&samples) else { panic!() };
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let heard = line.read(media(sent["media"]["payload"].as_str().unwrap())).unwrap();
        let coded = crate::speech::g711::decode(&crate::speech::g711::encode(&samples));
        prop_assert_eq!(heard, vec![MediaEvent::Audio(coded)]);
    }
}
