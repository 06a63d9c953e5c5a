//! What carriers share: signatures, forms, XML, audio in text messages.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use subtle::ConstantTimeEq;

use super::media::LineError;
use super::order::{Rejection, RejectionCause};
use crate::audio::g711;
use crate::config::SettingError;
use crate::conversation::text::cut;
use crate::limits::{CARRIER_MESSAGE_BYTES_MAX, MEDIA_CHUNK_MS_MAX};

/// HMAC-SHA1 (RFC 2104), as Twilio signs.
pub fn hmac_sha1(key: &[u8], message: &[u8]) -> Vec<u8> {
    // HMAC takes a key of any length; the error type exists for other MACs.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
pub fn same(ours: &str, theirs: &str) -> bool {
    bool::from(ours.as_bytes().ct_eq(theirs.as_bytes()))
}

/// Percent-encoded pairs, as a form's body.
pub fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Text as it stands in XML, in an attribute or between tags.
pub fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // XML 1.0 has no such characters at all.
            c if c < ' ' && !matches!(c, '\t' | '\n' | '\r') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// `+` before what is a number without one; the rest (SIP addresses, `anonymous`) as it is. `None` for nothing.
pub fn number(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = |text: &str| text.len() >= 7 && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit());
    match text {
        "" => None,
        text if digits(text) => Some(format!("+{text}")),
        // Whoever calls by SIP writes there what they like.
        text => Some(cut(text.to_owned(), CARRIER_MESSAGE_BYTES_MAX)),
    }
}

/// Audio of a text message: base64 of mu-law at 8 kHz.
pub fn mulaw(payload: &str) -> Result<Vec<i16>, LineError> {
    let bytes = STANDARD.decode(payload).map_err(|_| LineError::Audio)?;
    if bytes.is_empty() || bytes.len() > 8 * MEDIA_CHUNK_MS_MAX {
        return Err(LineError::Audio);
    }
    Ok(g711::decode(&bytes))
}

/// A frame as base64 of mu-law.
pub fn mulaw_payload(samples: &[i16]) -> String {
    STANDARD.encode(g711::encode(samples))
}

/// A carrier's no by HTTP status, where its own code says nothing better.
pub fn rejection(status: u16, code: Option<String>, message: &str) -> Rejection {
    let cause = match status {
        401..=403 => RejectionCause::Account,
        429 => RejectionCause::Busy,
        400..=499 => RejectionCause::Request,
        _ => RejectionCause::Carrier,
    };
    let message = cut(message.to_owned(), CARRIER_MESSAGE_BYTES_MAX);
    Rejection { code: code.unwrap_or_else(|| status.to_string()), message, cause }
}

/// The settings of one account: all that must be there, or nothing at all.
pub fn account<const N: usize>(
    get: &dyn Fn(&str) -> Option<String>,
    needed: [&'static str; N],
) -> Result<Option<[String; N]>, SettingError> {
    let found = needed.map(|name| get(name).map(|value| value.trim().to_owned()));
    if found.iter().all(Option::is_none) {
        return Ok(None);
    }
    if let Some((name, _)) = needed.iter().zip(&found).find(|(_, value)| value.is_none()) {
        let message = format!("is needed beside the other settings of this carrier ({})", needed.join(", "));
        return Err(SettingError { name, message });
    }
    Ok(Some(found.map(Option::unwrap_or_default)))
}

/// Where a carrier's API is: the setting, or where it really is; without a trailing slash.
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
    use super::*;

    #[test]
    fn a_number_gets_its_plus_and_anything_else_is_kept_within_bounds() {
        assert_eq!(number(" 14155550100 ").as_deref(), Some("+14155550100"));
        assert_eq!(number("sip:ada@example.com").as_deref(), Some("sip:ada@example.com"));
        assert_eq!(number(" "), None);
        let long = number(&format!("sip:{}@example.com", "a".repeat(100_000)));
        assert!(long.is_some_and(|long| long.len() <= CARRIER_MESSAGE_BYTES_MAX));
    }
}
