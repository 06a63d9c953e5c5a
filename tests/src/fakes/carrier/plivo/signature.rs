//! Plivo's signatures V3: plivo.com/docs/voice/concepts/signature-validation, and the SDKs where that page is incomplete.
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::{AUTH_TOKEN, OLD_AUTH_TOKEN};

type Parameters = BTreeMap<String, Vec<String>>;

/// The signed text of a GET.
pub(super) fn of_get(url: &str) -> String {
    let (bare, query) = parts(url);
    match query.is_empty() {
        true => bare.to_owned(),
        false => format!("{bare}?{}", listed(&query, "=", "&")),
    }
}

/// The signed text of a posted form.
pub(super) fn of_post(url: &str, fields: &[(&str, String)]) -> String {
    let (bare, query) = parts(url);
    let mut form = Parameters::new();
    for (name, value) in fields {
        form.entry((*name).to_owned()).or_default().push(value.clone());
    }
    let (query, form) = (listed(&query, "=", "&"), listed(&form, "", ""));
    match (query.is_empty(), form.is_empty()) {
        (true, true) => bare.to_owned(),
        (false, true) => format!("{bare}?{query}"),
        (true, false) => format!("{bare}?{form}"),
        (false, false) => format!("{bare}?{query}.{form}"),
    }
}

/// The signed text of a request for a media socket.
pub(super) fn of_socket(url: &str) -> String {
    let (_, rest) = url.split_once("://").expect("a URL has a scheme");
    format!("http://{}", parts(rest).0)
}

/// The signature headers for this text. For a while, a replaced token signs too.
pub(super) fn headers(text: &str, nonce: &str) -> Vec<(&'static str, String)> {
    let current = signed(AUTH_TOKEN, text, nonce);
    vec![
        ("x-plivo-signature-v3", format!("{},{current}", signed(OLD_AUTH_TOKEN, text, nonce))),
        ("x-plivo-signature-ma-v3", current),
        ("x-plivo-signature-v3-nonce", nonce.to_owned()),
    ]
}

/// Twenty digits that differ for every text.
pub(super) fn nonce(of: &str) -> String {
    Sha256::digest(of).iter().take(20).map(|byte| char::from(b'0' + byte % 10)).collect()
}

fn signed(token: &str, text: &str, nonce: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(text.as_bytes());
    mac.update(b".");
    mac.update(nonce.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

fn parts(url: &str) -> (&str, Parameters) {
    let url = url.split('#').next().unwrap_or_default();
    let (bare, query) = url.split_once('?').unwrap_or((url, ""));
    let mut parameters = Parameters::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        parameters.entry(name.into_owned()).or_default().push(value.into_owned());
    }
    (bare, parameters)
}

fn listed(parameters: &Parameters, equals: &str, between: &str) -> String {
    let mut all = Vec::new();
    for (name, values) in parameters {
        let mut values = values.clone();
        values.sort();
        all.extend(values.iter().map(|value| format!("{name}{equals}{value}")));
    }
    all.join(between)
}
