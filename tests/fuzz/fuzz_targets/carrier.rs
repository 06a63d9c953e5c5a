//! Fuzzes what carriers send: callbacks are checked and parsed, media messages are decoded in sequence, and the results must
//! be within their bounds. The first byte selects the carrier and one of the two.
#![no_main]

use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use sidetone_engine::base::limits::{CARRIER_MESSAGE_BYTES_MAX, MEDIA_CHUNK_MS_MAX};
use sidetone_engine::carriers::{Callback, CarrierName, Carriers, Check, MediaEvent, MediaMessage};

const PROVIDERS: [CarrierName; 4] =
    [CarrierName::Twilio, CarrierName::Telnyx, CarrierName::Plivo, CarrierName::Vonage];
/// Samples of the longest message that a codec may accept, at 24 kHz.
const SAMPLES_MAX: usize = 24 * MEDIA_CHUNK_MS_MAX;

static CARRIERS: LazyLock<Carriers> = LazyLock::new(|| {
    let setting = |name: &str| {
        Some(match name {
            "SIDETONE_TWILIO_ACCOUNT_SID" => format!("AC{}", "0".repeat(32)),
            "SIDETONE_TELNYX_PUBLIC_KEY" => "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=".to_owned(),
            "SIDETONE_PLIVO_AUTH_ID" => "MA0123456789ABCDEFGH".to_owned(),
            "SIDETONE_VONAGE_APPLICATION_ID" => "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab".to_owned(),
            "SIDETONE_VONAGE_PRIVATE_KEY" => {
                include_str!("../../src/fakes/carrier/vonage/test_private_key.pem").to_owned()
            }
            name if name.ends_with("_BASE_URL") || name == "SIDETONE_CARRIER_RATES" => return None,
            _ => "0123456789abcdef0123456789abcdef".to_owned(),
        })
    };
    Carriers::from_settings(setting).expect("four accounts")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = bytes.split_first() else {
        return;
    };
    let provider = PROVIDERS[usize::from(*which) % PROVIDERS.len()];
    match which / 4 % 2 {
        0 => callback(provider, rest),
        _ => line(provider, rest),
    }
});

/// `query NUL content-type NUL signature NUL body`.
fn callback(provider: CarrierName, bytes: &[u8]) {
    let mut parts = bytes.splitn(4, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (query, content_type, signature, body) = (part(), part(), part(), part());
    let mut headers = HeaderMap::new();
    let names = ["x-twilio-signature", "telnyx-signature-ed25519", "x-plivo-signature-v3", "authorization"];
    for (name, value) in
        names.map(|name| (name, signature)).into_iter().chain([("content-type", content_type)])
    {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.insert(name, value);
        }
    }
    headers.insert("telnyx-timestamp", HeaderValue::from_static("1700000000"));
    headers.insert("x-plivo-signature-v3-nonce", HeaderValue::from_static("12345"));
    let url = format!("https://voice.example.com/carriers/x/voice?{}", String::from_utf8_lossy(query));
    let now_ms = 1_700_000_000_000;
    let carrier = CARRIERS.get(provider).expect("an account");
    for method in ["POST", "GET"] {
        let callback = Callback { method, url: &url, headers: &headers, body, now_ms };
        let check = carrier.check(&callback);
        let is_genuine = matches!(check, Check::Genuine | Check::GenuineToken { .. });
        assert!(!is_genuine, "a random signature is not genuine");
        match carrier.read(&callback) {
            Ok(events) => assert!(events.len() <= 8, "{} events of one callback", events.len()),
            Err(why) => assert!(why.len() <= 2 * CARRIER_MESSAGE_BYTES_MAX, "{why}"),
        }
        if let Err(why) = carrier.dial_ended(&callback) {
            assert!(why.len() <= 2 * CARRIER_MESSAGE_BYTES_MAX, "{why}");
        }
    }
}

/// Messages separated by NUL; one that starts with `!` is binary.
fn line(provider: CarrierName, bytes: &[u8]) {
    let mut line = CARRIERS.get(provider).expect("an account").media_codec();
    for message in bytes.split(|byte| *byte == 0) {
        let message = match message.strip_prefix(b"!") {
            Some(binary) => MediaMessage::Binary(binary.to_vec().into()),
            None => MediaMessage::Text(String::from_utf8_lossy(message).into_owned()),
        };
        for event in line.read(message).into_iter().flatten() {
            match event {
                MediaEvent::Audio(samples) => assert!(samples.len() <= SAMPLES_MAX, "{}", samples.len()),
                MediaEvent::Complaint(words) => assert!(words.len() <= CARRIER_MESSAGE_BYTES_MAX),
                MediaEvent::Dtmf(key) => assert!("0123456789*#ABCD".contains(key), "{key}"),
                _ => {}
            }
        }
    }
}
