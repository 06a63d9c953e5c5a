//! Helpers shared by the carriers: signatures, forms, audio in text messages.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use subtle::ConstantTimeEq;

use super::media::MediaError;
use super::order::{Rejection, RejectionCause};
use crate::base::limits::{CARRIER_MESSAGE_BYTES_MAX, MEDIA_CHUNK_MS_MAX};
use crate::base::setting::SettingError;
use crate::base::text::truncate;
use crate::speech::g711;

/// A longer run of letters and digits is no word, id or number of a carrier, but one of our tokens or a part of it.
const WORD_BYTES_MAX: usize = 64;

/// The status of a request about a call that has ended, where a carrier has no other one.
pub const CALL_IS_OVER: &[u16] = &[404];

/// HMAC-SHA1 (RFC 2104), for Twilio's signatures.
pub fn hmac_sha1(key: &[u8], message: &[u8]) -> Vec<u8> {
    // HMAC accepts a key of any length; the error type exists for other MACs.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// Compares two texts in constant time.
pub fn constant_time_eq(ours: &str, theirs: &str) -> bool {
    bool::from(ours.as_bytes().ct_eq(theirs.as_bytes()))
}

/// A form body of percent-encoded pairs.
pub fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Adds `+` to a number without one; other texts (SIP addresses, `anonymous`) stay. `None` for an empty text.
pub fn number(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = |text: &str| text.len() >= 7 && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit());
    match text {
        "" => None,
        text if digits(text) => Some(format!("+{text}")),
        // A SIP caller can put any text here.
        text => Some(truncate(text.to_owned(), CARRIER_MESSAGE_BYTES_MAX)),
    }
}

/// Words that take the place of a caller's number where it is withheld.
const WITHHELD: [&str; 6] = ["anonymous", "blocked", "private", "restricted", "unavailable", "unknown"];

/// Whether a caller's number is withheld.
pub fn is_withheld(from: &str) -> bool {
    let from = from.trim().trim_start_matches('+');
    WITHHELD.iter().any(|word| from.eq_ignore_ascii_case(word))
}

/// A telephone key, as upper case.
pub fn key(text: &str) -> Option<char> {
    let mut keys = text.chars().map(|key| key.to_ascii_uppercase());
    match (keys.next(), keys.next()) {
        (Some(key @ ('0'..='9' | '*' | '#' | 'A'..='D')), None) => Some(key),
        _ => None,
    }
}

/// Decodes the audio of a text message: base64 mu-law at 8 kHz.
pub fn mulaw(payload: &str) -> Result<Vec<i16>, MediaError> {
    let bytes = STANDARD.decode(payload).map_err(|_| MediaError::Audio)?;
    if bytes.is_empty() || bytes.len() > 8 * MEDIA_CHUNK_MS_MAX {
        return Err(MediaError::Audio);
    }
    Ok(g711::decode(&bytes))
}

/// Encodes a frame as base64 mu-law.
pub fn mulaw_payload(samples: &[i16]) -> String {
    STANDARD.encode(g711::encode(samples))
}

/// A rejection classified by HTTP status, for codes without a better classification.
pub fn rejection(status: u16, code: Option<String>, message: &str) -> Rejection {
    let cause = match status {
        401..=403 => RejectionCause::Account,
        429 => RejectionCause::Busy,
        400..=499 if blames_our_number(message) => RejectionCause::Account,
        400..=499 => RejectionCause::Request,
        _ => RejectionCause::Carrier,
    };
    Rejection { code: code.unwrap_or_else(|| status.to_string()), message: sanitized(message), cause }
}

/// Whether a carrier's message about a request complains about the calling number: it is one of the operator's account,
/// and not what the caller of the API has chosen.
fn blames_our_number(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["src", "caller_id", "callerid", "from"].iter().any(|name| {
        message.match_indices(name).any(|(at, _)| {
            let (before, after) = (&message[..at], &message[at + name.len()..]);
            let is_word = !before.ends_with(in_name) && !after.starts_with(in_name);
            is_word && (*name != "from" || is_field_name(before, after))
        })
    })
}

/// Whether a word that is also a preposition names a field: it begins the message or a part of it, is quoted, is part of
/// a path (`from.number`), has a colon, or the word after it says so.
fn is_field_name(before: &str, after: &str) -> bool {
    let begins = before.trim_end().is_empty() || before.trim_end().ends_with(':');
    let is_marked = before.ends_with(['"', '\'', '`', '/'])
        || after.starts_with([':', '['])
        || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(in_name));
    let next = after.trim_start().split(|c| !in_name(c)).next();
    begins || is_marked || next.is_some_and(|next| ["number", "parameter", "field"].contains(&next))
}

/// Whether a name of a field may contain this character.
fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A carrier's message for logs and errors: truncated, and without our tokens if it quotes one of our URLs.
pub fn sanitized(text: &str) -> String {
    truncate(without_tokens(text), CARRIER_MESSAGE_BYTES_MAX)
}

fn without_tokens(text: &str) -> String {
    let in_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut kept = String::with_capacity(text.len());
    for run in text.split_inclusive(|c| !in_token(c)) {
        let token = run.trim_end_matches(|c| !in_token(c));
        match token.len() > WORD_BYTES_MAX {
            true => kept.extend(["…", &run[token.len()..]]),
            false => kept.push_str(run),
        }
    }
    kept
}

/// The settings of one account: all of them, or `None` when none is set.
pub fn account<const N: usize>(
    get: &dyn Fn(&str) -> Option<String>,
    needed: [&'static str; N],
) -> Result<Option<[String; N]>, SettingError> {
    let found = needed.map(|name| get(name).map(|value| value.trim().to_owned()));
    if found.iter().all(Option::is_none) {
        return Ok(None);
    }
    if let Some((name, _)) = needed.iter().zip(&found).find(|(_, value)| value.is_none()) {
        let message = format!("is required with the other settings of this carrier ({})", needed.join(", "));
        return Err(SettingError { name, message });
    }
    Ok(Some(found.map(Option::unwrap_or_default)))
}

/// A carrier's API URL from its setting, or the default; without a trailing slash.
pub fn base_url(
    get: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
    default: &str,
) -> Result<String, SettingError> {
    let text = get(name).unwrap_or_else(|| default.to_owned());
    let url = url::Url::parse(text.trim()).ok();
    let fits = url.is_some_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    match fits {
        true => Ok(text.trim().trim_end_matches('/').to_owned()),
        false => {
            Err(SettingError { name, message: "is not a URL such as https://api.example.com".to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::dollars;

    #[test]
    fn costs_are_exact() {
        let rows = [
            ("0.01000", Some(10_000)),
            ("0", Some(0)),
            ("12", Some(12_000_000)),
            ("0.0085", Some(8_500)),
            ("0.0000001", Some(1)),
            ("0.1234567", Some(123_457)),
            ("1.", Some(1_000_000)),
            (".5", None),
            ("", None),
            ("-1", None),
            ("1,5", None),
            ("0.1.2", None),
            ("1e3", None),
            ("9999999999999999999", None),
        ];
        for (text, cost) in rows {
            assert_eq!(dollars::read_up(text), cost, "{text}");
        }
    }

    proptest! {
        #[test]
        fn costs_with_six_decimals_are_exact(micros in 0_i64..1_000_000_000_000) {
            let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            prop_assert_eq!(dollars::read_up(&text), Some(micros));
        }
    }

    #[test]
    fn tokens_in_quoted_urls_are_removed() {
        // The length and characters of the token in a call's URLs (`live::telephony::token`).
        let token = "AZaz09_-".repeat(11)[..86].to_owned();
        for (before, after) in [("Url https://a.example/status?call=", " is not valid"), ("call=", "")] {
            for quoted in [&token[..], &token[..70]] {
                let refused = rejection(400, None, &format!("{before}{quoted}{after}"));
                assert_eq!(refused.message, format!("{before}…{after}"));
            }
        }
        let words = "Call CA0123456789abcdef0123456789abcdef is not in-progress. Größe: 3.";
        assert_eq!(rejection(400, None, words).message, words);
    }

    #[test]
    fn only_a_field_called_from_blames_our_number() {
        for ours in [
            "from parameter is not owned",
            r#"{"from":["is not yours"]}"#,
            "Bad Request: from.number: is not yours",
            "Invalid 'From' value",
            "The From number is not verified",
            "caller_id is not verified",
        ] {
            assert!(blames_our_number(ours), "{ours}");
        }
        for other in [
            "to: cannot be reached from your region",
            "The request came from a proxy.",
            "answer_url: no document came from.",
            "Remove the prefix from it",
            "fromage is invalid",
        ] {
            assert!(!blames_our_number(other), "{other}");
        }
    }

    #[test]
    fn numbers_get_a_plus_and_other_texts_are_truncated() {
        assert_eq!(number(" 14155550100 ").as_deref(), Some("+14155550100"));
        assert_eq!(number("sip:ada@example.com").as_deref(), Some("sip:ada@example.com"));
        assert_eq!(number(" "), None);
        let long = number(&format!("sip:{}@example.com", "a".repeat(100_000)));
        assert!(long.is_some_and(|long| long.len() <= CARRIER_MESSAGE_BYTES_MAX));
    }
}
