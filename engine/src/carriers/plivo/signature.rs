//! Plivo's signatures V3.
//!
//! Each request carries `X-Plivo-Signature-V3`, made with the token of the account or subaccount it belongs to, and
//! `X-Plivo-Signature-Ma-V3`, made with the main account's token; the one that matches our token counts. Either header may
//! list several signatures while an old token is being replaced. A signature is the base64 HMAC-SHA256 of a text derived from
//! the request, `.`, and the value of `X-Plivo-Signature-V3-Nonce`.
//!
//! There is no timestamp, so a recorded request stays valid. Only the nonce distinguishes repetitions, and processing a
//! callback must be idempotent.
//!
//! The text follows `validate_v3_signature` of the SDKs. It differs from the documentation
//! (plivo.com/docs/voice/concepts/signature-validation) in one point: a POST to a URL without a query has a bare `?` before
//! its parameters. The test vectors are those of plivo-go and plivo-ruby.
use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base::hash::hmac_sha256;
use crate::carriers::callback::{Callback, Check, Forged};
use crate::carriers::shared::constant_time_eq;

const HEADERS: [&str; 2] = ["x-plivo-signature-v3", "x-plivo-signature-ma-v3"];
const NONCE: &str = "x-plivo-signature-v3-nonce";
/// Plivo's nonces have 20 digits.
const NONCE_BYTES_MAX: usize = 128;
/// An account has at most two tokens; this leaves room.
const SIGNATURES_MAX: usize = 16;

type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Checks that a callback is signed with this token.
pub(super) fn check(token: &str, callback: &Callback<'_>) -> Check {
    checked(token, callback, &[signed_text(callback, callback.url)])
}

/// Checks that the request for a media socket is signed. Plivo has been observed to sign `http://host/path` for a stream to
/// `wss://host/path` (its guide for agents says so, and its SDKs check HTTP URLs only); a signature over the original URL is
/// accepted as well.
pub(super) fn check_media(token: &str, callback: &Callback<'_>) -> Check {
    let rest = callback.url.split_once("://").map_or(callback.url, |(_, rest)| rest);
    let seen = signed_text(callback, &format!("http://{rest}"));
    checked(token, callback, &[seen, signed_text(callback, callback.url)])
}

fn checked(token: &str, callback: &Callback<'_>, texts: &[String]) -> Check {
    let nonce = callback.header(NONCE).filter(|nonce| !nonce.is_empty());
    let values = HEADERS.iter().flat_map(|name| callback.headers.get_all(*name));
    let listed = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let given: Vec<&str> =
        listed.map(str::trim).filter(|text| !text.is_empty()).take(SIGNATURES_MAX).collect();
    let Some(nonce) = nonce else {
        return Check::Forged(Forged::Missing);
    };
    if given.is_empty() {
        return Check::Forged(Forged::Missing);
    }
    let is_signature = |text: &&&str| STANDARD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
    if nonce.len() > NONCE_BYTES_MAX || given.iter().filter(is_signature).count() == 0 {
        return Check::Forged(Forged::Malformed);
    }
    let fits = |text: &String| {
        let ours = STANDARD.encode(hmac_sha256(token.as_bytes(), format!("{text}.{nonce}").as_bytes()));
        // No short-circuit: every signature is compared, so that timing does not reveal which one matched.
        given.iter().filter(|theirs| constant_time_eq(&ours, theirs)).count() > 0
    };
    match texts.iter().any(fits) {
        true => Check::Genuine,
        false => Check::Forged(Forged::Wrong),
    }
}

/// The signed text without the nonce. The parameters of a GET are its query; a fragment is not signed.
fn signed_text(callback: &Callback<'_>, url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    let query = sorted(callback.query_pairs());
    let form = match callback.method {
        "POST" => sorted(callback.form_pairs()),
        _ => Vec::new(),
    };
    let mut text = bare.to_owned();
    if !query.is_empty() || !form.is_empty() {
        text.push('?');
    }
    for (at, (name, value)) in query.iter().enumerate() {
        let mark = if at == 0 { "" } else { "&" };
        text.extend([mark, name, "=", value]);
    }
    if !query.is_empty() && !form.is_empty() {
        text.push('.');
    }
    for (name, value) in &form {
        text.extend([name.as_ref(), value.as_ref()]);
    }
    text
}

/// Sorts by name, and by value for repeated names.
fn sorted(mut pairs: Pairs<'_>) -> Pairs<'_> {
    pairs.sort();
    pairs
}

#[cfg(test)]
mod tests;
