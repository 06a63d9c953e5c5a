//! What is said to a carrier: requests, and how its answers are taken.
use bytes::Bytes;
use serde_json::Value;

use crate::base::phone::E164;
use crate::base::setting::Secret;

/// A call to be placed.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The number that calls: one of ours.
    pub from: &'a E164,
    /// The number that is called.
    pub to: &'a E164,
    /// `wss://…`, with the token in its path: the carrier opens it once the call is answered.
    pub media_url: &'a str,
    /// Where the carrier tells what becomes of the call, with a token that says which call it is.
    pub status_url: &'a str,
    /// Where a carrier that takes no document with the order asks for it, with the same token.
    pub answer_url: &'a str,
    /// The same for the same call however often it is said; a UUID.
    pub command_id: &'a str,
    /// How long it may ring.
    pub ring_seconds: u32,
    /// How long it may last.
    pub max_seconds: u32,
    /// The time of it.
    pub now_ms: i64,
}

/// One request to a carrier, before it is signed.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// `GET`, `POST`, …
    pub method: &'static str,
    /// Absolute.
    pub url: String,
    /// Who asks.
    pub authorization: Authorization,
    /// `application/json` or `application/x-www-form-urlencoded`; nothing without a body.
    pub content_type: Option<&'static str>,
    /// Empty for none.
    pub body: Bytes,
}

/// The `Authorization` header that a request gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Authorization {
    /// RFC 7617.
    Basic {
        /// The account.
        user: String,
        /// Its password.
        password: Secret,
    },
    /// RFC 6750.
    Bearer(Secret),
    /// A JSON Web Token with these claims, signed with RS256 (RFC 7518, 3.3), as a bearer.
    Jwt {
        /// What it says.
        claims: Value,
        /// The private key, PKCS#8 in DER.
        key: PrivateKey,
    },
}

/// An RSA key in PKCS#8 DER. It has no way into logs.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey(pub(super) Vec<u8>);

impl PrivateKey {
    /// The key, for whoever signs with it.
    pub fn pkcs8(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// What the carrier said to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// It has taken the call.
    Accepted {
        /// What it calls it.
        carrier_call_id: String,
    },
    /// It has not, and will not: nothing rings.
    Rejected(Rejection),
    /// Nobody can tell (a 5xx, a success that names no call): a status callback may settle it.
    Unknown(String),
}

/// A carrier's no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Its code, or the HTTP status where it gave none.
    pub code: String,
    /// Its words, cut to what fits an error. Never a secret of ours.
    pub message: String,
    /// Who can do something about it.
    pub cause: RejectionCause,
}

/// Who can do something about a carrier's no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionCause {
    /// The numbers or what else was asked for: whoever asked.
    Request,
    /// The account, its credentials, its balance, its permissions: the operator.
    Account,
    /// Too many at once: later.
    Busy,
    /// The carrier itself.
    Carrier,
}
