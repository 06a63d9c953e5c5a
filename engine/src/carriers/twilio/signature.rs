//! `X-Twilio-Signature`: the base64 HMAC-SHA1, keyed with the account's auth token, of the URL and a form's parameters.
//!
//! Source: Twilio's page "Webhooks security" and the validators of its SDKs (`twilio/request_validator.py`,
//! `lib/webhooks/webhooks.js`). Callbacks signed with a shared key (`X-Twilio-Webhooks-Signature-Settings`) are not supported
//! and are rejected.
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::base::hash::sha256_hex;
use crate::base::ordered::Ordered as _;
use crate::base::setting::Secret;
use crate::carriers::callback::{Callback, Check, Forged};
use crate::carriers::shared::{constant_time_eq, hmac_sha1};

const HEADER: &str = "x-twilio-signature";

/// A URL parameter: the hash of a body that is not a form.
const BODY_HASH: &str = "bodySHA256";

/// Length of an HMAC-SHA1.
const MAC_BYTES: usize = 20;

/// Checks that a callback is signed with the token.
pub fn check(token: &Secret, callback: &Callback<'_>) -> Check {
    let form = if is_get(callback) { Vec::new() } else { callback.form_pairs() };
    if !is_get(callback) && !callback.is_form() && !fits_its_hash(callback) {
        // When both are wrong, a missing signature is the more useful error.
        return Check::Forged(given(callback).err().unwrap_or(Forged::Wrong));
    }
    let mut parameters: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in &form {
        parameters.entry(name).or_default().insert(value);
    }
    let mut suffix = String::new();
    for (name, values) in parameters {
        values.iter().for_each(|value| suffix.extend([name, *value]));
    }
    compare(token, callback, spellings(callback.url), &suffix)
}

/// Checks that a request for a media socket is signed with the token, over the `wss://` URL from TwiML. A trailing slash is
/// optional, because some libraries are reported to add one.
pub fn check_media(token: &Secret, callback: &Callback<'_>) -> Check {
    let url = callback.url.trim_end_matches('/');
    let mut urls = spellings(url);
    urls.extend(spellings(&format!("{url}/")));
    compare(token, callback, urls, "")
}

/// Whether the URL contains all parameters.
pub fn is_get(callback: &Callback<'_>) -> bool {
    callback.method == "GET"
}

fn compare(token: &Secret, callback: &Callback<'_>, urls: BTreeSet<String>, suffix: &str) -> Check {
    let given = match given(callback) {
        Ok(given) => given,
        Err(forged) => return Check::Forged(forged),
    };
    let key = token.reveal().as_bytes();
    // Everybody can sign with an empty key.
    let fits = !key.is_empty()
        && urls
            .into_iter()
            .any(|url| constant_time_eq(&STANDARD.encode(hmac_sha1(key, (url + suffix).as_bytes())), given));
    if fits { Check::Genuine } else { Check::Forged(Forged::Wrong) }
}

/// The request's signature, if it is well-formed.
fn given<'a>(callback: &Callback<'a>) -> Result<&'a str, Forged> {
    if !callback.headers.contains_key(HEADER) {
        return Err(Forged::Missing);
    }
    let given = callback.header(HEADER).ok_or(Forged::Malformed)?;
    match STANDARD.decode(given) {
        Ok(mac) if mac.len() == MAC_BYTES => Ok(given),
        _ => Err(Forged::Malformed),
    }
}

/// A body that is not a form must match the hash in the URL; without a hash, there must be no body.
fn fits_its_hash(callback: &Callback<'_>) -> bool {
    let hash = callback.query_pairs().into_iter().find(|(name, _)| name == BODY_HASH);
    match hash {
        Some((_, hash)) => constant_time_eq(&sha256_hex(callback.body), &hash),
        None => callback.body.is_empty(),
    }
}

/// The spellings of a URL that Twilio may have signed: with and without the port, and with the query unchanged, with encoded
/// apostrophes, or encoded by Node.js's `querystring`.
fn spellings(url: &str) -> BTreeSet<String> {
    ports(url).into_iter().flat_map(|url| [apostrophes_encoded(&url), encoded_again(&url), url]).into_set()
}

/// The URL without a port and with one: its own, or the default of its scheme.
fn ports(url: &str) -> [String; 2] {
    let Some((scheme, rest)) = url.split_once("://") else { return [url.to_owned(), url.to_owned()] };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    // Colons inside the brackets of an IPv6 address are not a port separator.
    let port_at = host.rfind(':').filter(|at| !host[*at..].contains(']')).unwrap_or(host.len());
    let (host, port) = host.split_at(port_at);
    let port = match (port, scheme) {
        ("", "https" | "wss") => ":443",
        ("", _) => ":80",
        (port, _) => port,
    };
    [format!("{scheme}://{user}{host}{rest}"), format!("{scheme}://{user}{host}{port}{rest}")]
}

fn apostrophes_encoded(url: &str) -> String {
    match url.split_once('?') {
        Some((path, query)) => format!("{path}?{}", query.replace('\'', "%27")),
        None => url.to_owned(),
    }
}

fn encoded_again(url: &str) -> String {
    /// Characters that ECMAScript's `encodeURIComponent` does not encode, besides letters and digits.
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'!')
        .remove(b'~')
        .remove(b'*')
        .remove(b'\'')
        .remove(b'(')
        .remove(b')');
    let Some((path, query)) = url.split_once('?').filter(|(_, query)| !query.is_empty()) else {
        return url.to_owned();
    };
    let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    let pairs = form_urlencoded::parse(query.as_bytes());
    let pairs: Vec<_> =
        pairs.map(|(name, value)| format!("{}={}", encoded(&name), encoded(&value))).collect();
    format!("{path}?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests;
