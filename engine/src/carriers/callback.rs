//! One request of a carrier to us, as far as it is signed.
use std::borrow::Cow;

use http::HeaderMap;

/// A carrier's callback, or its request for a media socket.
#[derive(Debug, Clone, Copy)]
pub struct Callback<'a> {
    /// `GET`, `POST`.
    pub method: &'a str,
    /// The URL as the carrier was given it: our public URL, the path and the query as they came. `wss://…` (or
    /// `ws://…`) for a media socket.
    pub url: &'a str,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its body.
    pub body: &'a [u8],
    /// The time.
    pub now_ms: i64,
}

impl<'a> Callback<'a> {
    /// A header as text; `None` when it is not there or is no text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The query of the URL, without `?`; empty when there is none.
    pub fn query(&self) -> &'a str {
        self.url.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default())
    }

    /// The parameters of the query, in their order.
    pub fn query_pairs(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        form_urlencoded::parse(self.query().as_bytes()).collect()
    }

    /// The parameters of a form's body, in their order; none when its type says that it is no form.
    pub fn form_pairs(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        match self.is_form() {
            true => form_urlencoded::parse(self.body).collect(),
            false => Vec::new(),
        }
    }

    /// Whether the body says that it is a form.
    pub fn is_form(&self) -> bool {
        self.media_type().eq_ignore_ascii_case("application/x-www-form-urlencoded")
    }

    /// Whether the body says that it is JSON.
    pub fn is_json(&self) -> bool {
        self.media_type().eq_ignore_ascii_case("application/json")
    }

    fn media_type(&self) -> &'a str {
        self.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }
}

/// How a callback is found genuine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// It is.
    Genuine,
    /// It is, if this Ed25519 signature (RFC 8032) fits. Whoever holds the keys' mathematics finds out.
    Ed25519 {
        /// The carrier's key.
        public_key: [u8; 32],
        /// What was signed.
        message: Vec<u8>,
        /// With what.
        signature: [u8; 64],
    },
    /// The carrier does not sign this.
    Unsigned,
    /// It is not.
    Forged(Forged),
}

/// Why a callback is not believed; for the log and for tests. The answer says no more than 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forged {
    /// There is no signature.
    Missing,
    /// It is no signature at all.
    Malformed,
    /// It is none of this account over this request.
    Wrong,
    /// It is genuine and older (or newer) than [`crate::base::limits::CARRIER_SIGNATURE_AGE_MS_MAX`].
    Stale,
}
