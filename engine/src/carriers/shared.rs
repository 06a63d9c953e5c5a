//! What carriers share: signatures, forms, XML, audio in text messages.
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

/// More letters and digits in a row are no word, id or number of a carrier's: they are our token, or a part of it.
const LONGEST_WORD: usize = 64;

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
        text => Some(truncate(text.to_owned(), CARRIER_MESSAGE_BYTES_MAX)),
    }
}

/// Audio of a text message: base64 of mu-law at 8 kHz.
pub fn mulaw(payload: &str) -> Result<Vec<i16>, MediaError> {
    let bytes = STANDARD.decode(payload).map_err(|_| MediaError::Audio)?;
    if bytes.is_empty() || bytes.len() > 8 * MEDIA_CHUNK_MS_MAX {
        return Err(MediaError::Audio);
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
    Rejection { code: code.unwrap_or_else(|| status.to_string()), message: words(message), cause }
}

/// What a carrier says, as it is logged and repeated: bounded, and where it is about a URL of ours, without the token.
pub fn words(text: &str) -> String {
    truncate(without_tokens(text), CARRIER_MESSAGE_BYTES_MAX)
}

fn without_tokens(text: &str) -> String {
    let in_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut kept = String::with_capacity(text.len());
    for run in text.split_inclusive(|c| !in_token(c)) {
        let token = run.trim_end_matches(|c| !in_token(c));
        match token.len() > LONGEST_WORD {
            true => kept.extend(["…", &run[token.len()..]]),
            false => kept.push_str(run),
        }
    }
    kept
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
    fn a_carrier_that_repeats_our_url_repeats_no_token() {
        // As long as a token in a call's URLs, and of the same characters (`live::telephony::token`).
        let token = "AZaz09_-".repeat(11)[..86].to_owned();
        for (before, after) in [("Url https://a.example/status?call=", " is not valid"), ("call=", "")] {
            for said in [&token[..], &token[..70]] {
                let refused = rejection(400, None, &format!("{before}{said}{after}"));
                assert_eq!(refused.message, format!("{before}…{after}"));
            }
        }
        let words = "Call CA0123456789abcdef0123456789abcdef is not in-progress. Größe: 3.";
        assert_eq!(rejection(400, None, words).message, words);
    }

    #[test]
    fn a_number_gets_its_plus_and_anything_else_is_kept_within_bounds() {
        assert_eq!(number(" 14155550100 ").as_deref(), Some("+14155550100"));
        assert_eq!(number("sip:ada@example.com").as_deref(), Some("sip:ada@example.com"));
        assert_eq!(number(" "), None);
        let long = number(&format!("sip:{}@example.com", "a".repeat(100_000)));
        assert!(long.is_some_and(|long| long.len() <= CARRIER_MESSAGE_BYTES_MAX));
    }
}
