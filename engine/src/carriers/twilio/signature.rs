//! `X-Twilio-Signature`: base64 of HMAC-SHA1 with the account's auth token over the URL and a form's parameters.
//!
//! Source: Twilio's page "Webhooks security" and the validators of its SDKs (`twilio/request_validator.py`,
//! `lib/webhooks/webhooks.js`). Callbacks signed with a shared key (`X-Twilio-Webhooks-Signature-Settings`) are
//! of no account here and are refused.
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::base::hash::sha256_hex;
use crate::base::setting::Secret;
use crate::carriers::callback::{Callback, Check, Forged};
use crate::carriers::shared::{hmac_sha1, same};

/// The header.
const HEADER: &str = "x-twilio-signature";

/// A parameter of the URL: the hash of a body that is no form.
const BODY_HASH: &str = "bodySHA256";

/// Bytes of an HMAC-SHA1.
const MAC_BYTES: usize = 20;

/// Whether a callback is signed with the token.
pub fn check(token: &Secret, callback: &Callback<'_>) -> Check {
    let form = if is_get(callback) { Vec::new() } else { callback.form_pairs() };
    if !is_get(callback) && !callback.is_form() && !fits_its_hash(callback) {
        // The missing signature is the clearer word where both are so.
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

/// Whether a request for a media socket is signed with the token: over the `wss://` URL as TwiML had it. With or
/// without a slash at its end, for it is told of libraries that add one.
pub fn check_media(token: &Secret, callback: &Callback<'_>) -> Check {
    let url = callback.url.trim_end_matches('/');
    let mut urls = spellings(url);
    urls.extend(spellings(&format!("{url}/")));
    compare(token, callback, urls, "")
}

/// Whether a callback has its parameters in the URL alone.
pub fn is_get(callback: &Callback<'_>) -> bool {
    callback.method == "GET"
}

fn compare(token: &Secret, callback: &Callback<'_>, urls: BTreeSet<String>, suffix: &str) -> Check {
    let given = match given(callback) {
        Ok(given) => given,
        Err(forged) => return Check::Forged(forged),
    };
    let key = token.reveal().as_bytes();
    // An empty key is no key: everybody has it.
    let fits = !key.is_empty()
        && urls
            .into_iter()
            .any(|url| same(&STANDARD.encode(hmac_sha1(key, (url + suffix).as_bytes())), given));
    if fits { Check::Genuine } else { Check::Forged(Forged::Wrong) }
}

/// The signature that came, if it can be one.
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

/// A body that is no form is signed by its hash in the URL, or not at all: then there must be none.
fn fits_its_hash(callback: &Callback<'_>) -> bool {
    let hash = callback.query_pairs().into_iter().find(|(name, _)| name == BODY_HASH);
    match hash {
        Some((_, hash)) => same(&sha256_hex(callback.body), &hash),
        None => callback.body.is_empty(),
    }
}

/// The ways in which Twilio may have spelled a URL when it signed it: with and without the port, and with the
/// query as it is, with its apostrophes encoded, or encoded as by Node.js's `querystring`.
fn spellings(url: &str) -> BTreeSet<String> {
    ports(url).into_iter().flat_map(|url| [apostrophes_encoded(&url), encoded_again(&url), url]).collect()
}

/// The URL without a port and with one: its own, or that of its scheme.
fn ports(url: &str) -> [String; 2] {
    let Some((scheme, rest)) = url.split_once("://") else { return [url.to_owned(), url.to_owned()] };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    // The colons within the brackets of an IPv6 address begin no port.
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
    /// What ECMAScript's `encodeURIComponent` leaves as it is, beside letters and digits.
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
