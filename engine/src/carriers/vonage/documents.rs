//! Call Control Objects (NCCO): JSON arrays of actions that tell Vonage what to do with a call.
//!
//! Sources: Vonage's "NCCO reference" (`connect`, `talk`) and its guide "WebSockets"; the official SDKs' models
//! (`vonage_voice.models`, `@vonage/voice`), which also name the limits and the endpoint's `authorization`.
use serde_json::{Map, Value, json};

use crate::base::phone::E164;
use crate::carriers::Transfer;
use crate::carriers::report::Refusal;

/// The audio format on the socket: 16-bit linear, in messages of 20 ms.
pub const CONTENT_TYPE: &str = "audio/l16;rate=16000";

/// Our header that marks the socket's leg. That leg's events return it under `headers`.
pub const LEG_HEADER: &str = "sidetone_leg";

/// Our header with the telephone leg's id, if known. The socket's first message returns it.
pub const CALL_ID_HEADER: &str = "sidetone_call";

/// The longest valid `limit` of an NCCO connection.
const LIMIT_SECONDS_MAX: u32 = 7_200;

/// The parameters of a connection to the media socket.
#[derive(Debug, Clone, Copy)]
pub struct Socket<'a> {
    /// Our number in digits; left out of the document if it is not a number.
    pub our_number: &'a str,
    /// The media URL: `wss://…`
    pub media_url: &'a str,
    /// The URL for status callbacks of the socket's leg.
    pub status_url: &'a str,
    /// The telephone leg's id; `""` if not known yet.
    pub carrier_call_id: &'a str,
    /// The maximum duration of the connection.
    pub max_seconds: u32,
}

/// Connects the call to the media socket. When the socket closes there is no further action, so the call ends.
///
/// `authorization` requests a token, as in signed callbacks, in the socket's opening request.
pub fn connect(socket: &Socket<'_>) -> Value {
    let mut headers = Map::new();
    headers.insert(LEG_HEADER.to_owned(), json!("media"));
    if !socket.carrier_call_id.is_empty() {
        headers.insert(CALL_ID_HEADER.to_owned(), json!(socket.carrier_call_id));
    }
    let mut action = Map::new();
    action.insert("action".to_owned(), json!("connect"));
    if let Some(number) = digits(socket.our_number) {
        action.insert("from".to_owned(), json!(number));
    }
    action.insert("limit".to_owned(), json!(socket.max_seconds.clamp(1, LIMIT_SECONDS_MAX)));
    action.insert("eventUrl".to_owned(), json!([socket.status_url]));
    action.insert("eventMethod".to_owned(), json!("POST"));
    let endpoint = json!({
        "type": "websocket",
        "uri": socket.media_url,
        "content-type": CONTENT_TYPE,
        "headers": headers,
        "authorization": {"type": "vonage"},
    });
    action.insert("endpoint".to_owned(), json!([endpoint]));
    json!([action])
}

/// Connects the call to another number. When that hangs up, or is not reached, there is no further action, so the call ends,
/// unless the answer to a synchronous event of that leg is another document.
pub fn dial(call: &Transfer<'_>) -> Value {
    let plain = |number: &E164| number.as_str().trim_start_matches('+').to_owned();
    let mut action = json!({
        "action": "connect",
        "endpoint": [{"type": "phone", "number": plain(call.to)}],
        "timeout": call.ring_seconds,
        "limit": call.max_seconds.clamp(1, LIMIT_SECONDS_MAX),
        "eventType": "synchronous",
        "eventUrl": [call.back_url],
        "eventMethod": "POST",
    });
    if let Some(from) = call.our_number {
        action["from"] = json!(plain(from));
    }
    json!([action])
}

/// Says why the call is declined. The call ends after the last action; NCCO has no action to decline a call.
pub fn refuse(why: Refusal) -> Value {
    let text = match why {
        Refusal::Unbound => "This number is not in service. Goodbye.",
        Refusal::Busy => "We cannot take your call right now. Please try again later. Goodbye.",
    };
    json!([{"action": "talk", "text": text, "language": "en-US"}])
}

/// A number in Vonage's spelling: 7 to 15 digits without `+`.
pub fn digits(number: &str) -> Option<&str> {
    let number = number.trim().trim_start_matches('+');
    let fits = (7..=15).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    (fits && !number.starts_with('0')).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKET: Socket<'_> = Socket {
        our_number: "+442079460000",
        media_url: "wss://voice.example.com/carriers/vonage/media/token",
        status_url: "https://voice.example.com/carriers/vonage/status/token",
        carrier_call_id: "63f61863-4a51-4f6b-86e1-46edebcf9356",
        max_seconds: 600,
    };

    #[test]
    fn connect_is_one_action_with_one_endpoint() {
        let expected = json!([{
            "action": "connect",
            "from": "442079460000",
            "limit": 600,
            "eventUrl": ["https://voice.example.com/carriers/vonage/status/token"],
            "eventMethod": "POST",
            "endpoint": [{
                "type": "websocket",
                "uri": "wss://voice.example.com/carriers/vonage/media/token",
                "content-type": "audio/l16;rate=16000",
                "headers": {"sidetone_leg": "media", "sidetone_call": "63f61863-4a51-4f6b-86e1-46edebcf9356"},
                "authorization": {"type": "vonage"},
            }],
        }]);
        assert_eq!(connect(&SOCKET), expected);
    }

    #[test]
    fn limits_are_clamped_and_unknown_fields_left_out() {
        let document =
            connect(&Socket { our_number: "Sidetone", carrier_call_id: "", max_seconds: 90_000, ..SOCKET });
        assert_eq!(document[0]["limit"], 7_200);
        assert_eq!(document[0].get("from"), None);
        assert_eq!(document[0]["endpoint"][0]["headers"], json!({"sidetone_leg": "media"}));
        assert_eq!(connect(&Socket { max_seconds: 0, ..SOCKET })[0]["limit"], 1);
    }

    #[test]
    fn headers_fit_vonages_limit() {
        let id = "x".repeat(super::super::CALL_ID_BYTES_MAX);
        let document = connect(&Socket { carrier_call_id: &id, ..SOCKET });
        assert!(document[0]["endpoint"][0]["headers"].to_string().len() <= 512);
    }

    #[test]
    fn a_refusal_is_one_talk_action() {
        for why in [Refusal::Unbound, Refusal::Busy] {
            let document = refuse(why);
            assert_eq!(document.as_array().unwrap().len(), 1);
            assert_eq!(document[0]["action"], "talk");
            assert!((10..=1_500).contains(&document[0]["text"].as_str().unwrap().len()));
        }
        assert_ne!(refuse(Refusal::Unbound), refuse(Refusal::Busy));
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(digits("+14155550123"), Some("14155550123"));
        for wrong in ["", "123456", "1234567890123456", "0123456789", "1415555012x"] {
            assert_eq!(digits(wrong), None, "{wrong}");
        }
    }
}
