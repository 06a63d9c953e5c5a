//! An incoming request from a carrier, with the parts that its signature covers.
use std::borrow::Cow;

use http::HeaderMap;

use crate::base::hash::sha256_hex;

/// A carrier's callback, or its request for a media socket.
#[derive(Debug, Clone, Copy)]
pub struct Callback<'a> {
    /// HTTP method: `GET`, `POST`.
    pub method: &'a str,
    /// The URL as the carrier received it: our public URL with the path and query as requested. `wss://…` (or `ws://…`) for a
    /// media socket.
    pub url: &'a str,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The request's body.
    pub body: &'a [u8],
    /// The current time.
    pub now_ms: i64,
}

impl<'a> Callback<'a> {
    /// SHA-256 of what distinguishes requests with the same token: method, URL and body.
    pub fn fingerprint(&self) -> String {
        let Self { method, url, body, .. } = self;
        sha256_hex(format!("{method} {url} {}", sha256_hex(body)).as_bytes())
    }

    /// A header as text; `None` when it is missing or not text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The query without `?`; empty when there is none.
    pub fn query(&self) -> &'a str {
        self.url.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default())
    }

    /// The decoded parameters of the query, in order.
    pub fn query_pairs(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        form_urlencoded::parse(self.query().as_bytes()).collect()
    }

    /// The decoded parameters of a form body, in order; empty for another content type.
    pub fn form_pairs(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        match self.is_form() {
            true => form_urlencoded::parse(self.body).collect(),
            false => Vec::new(),
        }
    }

    /// Whether the content type is a form.
    pub fn is_form(&self) -> bool {
        self.media_type().eq_ignore_ascii_case("application/x-www-form-urlencoded")
    }

    /// Whether the content type is JSON.
    pub fn is_json(&self) -> bool {
        self.media_type().eq_ignore_ascii_case("application/json")
    }

    fn media_type(&self) -> &'a str {
        self.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }
}

/// The result of checking a callback's signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The signature is valid.
    Genuine,
    /// The signature is valid, but covers a token and not the whole request. The caller accepts the token with the first
    /// request that it comes with, and with repetitions of that.
    GenuineToken {
        /// The carrier's id of the token; no two tokens have the same.
        id: String,
        /// When the token is rejected for its age, so that nobody has to remember it any longer.
        expires_at_ms: i64,
    },
    /// The callback is genuine if this Ed25519 signature (RFC 8032) is valid; the caller verifies it with the `Keys` port.
    Ed25519 {
        /// The carrier's public key.
        public_key: [u8; 32],
        /// The signed message.
        message: Vec<u8>,
        /// The signature to verify.
        signature: [u8; 64],
    },
    /// The carrier does not sign this kind of request.
    Unsigned,
    /// The callback must be rejected.
    Forged(Forged),
}

/// Why a callback is rejected; for logs and tests. The response is a plain 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forged {
    /// The signature is missing.
    Missing,
    /// The signature has the wrong format.
    Malformed,
    /// The signature does not match this account and request.
    Wrong,
    /// The signature's token came with another request before.
    Replayed,
    /// The signature's time differs from the clock by more than [`crate::base::limits::CARRIER_SIGNATURE_AGE_MS_MAX`].
    Stale,
}
