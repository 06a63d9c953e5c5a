//! Requests to carriers and the interpretation of their responses.
use bytes::Bytes;
use serde_json::Value;

use crate::base::phone::E164;
use crate::base::setting::Secret;
use crate::carriers::CarrierName;
use crate::conversation::VoicemailAction;

/// The parameters of an outgoing call. Not printable: its URLs contain tokens.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// The calling number: one of ours.
    pub from: &'a E164,
    /// The called number.
    pub to: &'a E164,
    /// The URL that the carrier opens once the call is answered: `wss://…` with the token in its path.
    pub media_url: &'a str,
    /// The URL for status callbacks, with a token that identifies the call.
    pub status_url: &'a str,
    /// The URL where a carrier that takes no document with the order fetches it, with the same token.
    pub answer_url: &'a str,
    /// A UUID, identical for repetitions of the same order.
    pub command_id: &'a str,
    /// The maximum ring time.
    pub ring_seconds: u32,
    /// What happens if a machine answers, so that it is detected; `None`: nothing is detected. Detection never delays the
    /// connection to the media socket.
    pub voicemail: Option<VoicemailAction>,
    /// The maximum duration.
    pub max_seconds: u32,
    /// The current time.
    pub now_ms: i64,
}

/// A request to a carrier, before it is authorized.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// Whom it is for.
    pub carrier: CarrierName,
    /// HTTP method.
    pub method: &'static str,
    /// Absolute URL.
    pub url: String,
    /// How the request is authorized.
    pub authorization: Authorization,
    /// `application/json` or `application/x-www-form-urlencoded`; `None` without a body.
    pub content_type: Option<&'static str>,
    /// Empty for no body.
    pub body: Bytes,
    /// As in [`HttpRequest`](crate::ports::HttpRequest).
    pub expected: &'static [u16],
}

/// The `Authorization` header of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Authorization {
    /// HTTP Basic (RFC 7617).
    Basic {
        /// The account.
        user: String,
        /// The account's password.
        password: Secret,
    },
    /// A bearer token (RFC 6750).
    Bearer(Secret),
    /// A bearer token: a JSON Web Token with these claims, signed with RS256 (RFC 7518, 3.3).
    Jwt {
        /// The claims.
        claims: Value,
        /// The private key, PKCS#8 in DER.
        key: PrivateKey,
    },
}

/// An RSA key as PKCS#8 in DER. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey(pub(super) Vec<u8>);

impl PrivateKey {
    /// The key, for signing.
    pub fn pkcs8(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// The carrier's response to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// The carrier accepted the call.
    Accepted {
        /// The carrier's call id.
        carrier_call_id: String,
    },
    /// The carrier rejected the call: nothing rings.
    Rejected(Rejection),
    /// The outcome is unknown (a 5xx, or a success without a call id); a status callback may resolve it.
    Unknown(String),
}

/// A carrier's rejection of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The carrier's code, or the HTTP status where there is none.
    pub code: String,
    /// The carrier's message, truncated and without secrets of ours.
    pub message: String,
    /// The party that can resolve it.
    pub cause: RejectionCause,
}

/// The party that can resolve a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionCause {
    /// The caller of our API: the numbers or another parameter are wrong.
    Request,
    /// The operator: the account, its credentials, balance or permissions.
    Account,
    /// A later attempt may succeed: there are too many concurrent calls.
    Busy,
    /// The carrier itself.
    Carrier,
}
