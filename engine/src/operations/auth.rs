//! Authentication: the API key of a request, and the limit for invalid keys.
use std::net::IpAddr;

use http::HeaderMap;

use crate::base::api_key::ApiKey;
use crate::base::error::{Code, Error};
use crate::base::network::network_of;
use crate::services::Services;
use crate::sql;

/// The credential of a request.
pub enum Credential {
    /// No Authorization header.
    Absent,
    /// Not a well-formed key: rejected without a database query.
    Malformed,
    /// A well-formed key, to be looked up.
    Key {
        /// SHA-256 of the whole key, lower-case hex.
        hash: String,
    },
}

impl Credential {
    /// Reads `Authorization: Bearer <key>`.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let Some(header) = headers.get(http::header::AUTHORIZATION) else {
            return Self::Absent;
        };
        header
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .and_then(|(_, key)| ApiKey::parse(key.trim()))
            .map_or(Self::Malformed, |key| Self::Key { hash: key.sha256_hex() })
    }
}

/// Whether a key with this hash opens a workspace, or would on its first use. An error counts as no.
pub(crate) async fn is_valid(services: &Services, hash: &str) -> bool {
    if services.config().bootstrap_hashes.iter().any(|known| known == hash) {
        return true;
    }
    let find = sql!("SELECT 1 AS valid FROM api_keys WHERE hash = :hash AND revoked_at IS NULL", hash = hash);
    services.read([find]).await.is_ok_and(|[found]| !found.is_empty())
}

/// The 401 for a request without a key.
pub fn missing_key() -> Error {
    Error::new(Code::Unauthorized, "Send your workspace API key: `Authorization: Bearer sidetone_…`.")
}

/// The 401 for an unknown key.
pub fn wrong_key() -> Error {
    Error::new(
        Code::Unauthorized,
        "This API key is unknown or revoked. Check for a cut-off copy, or create a new key.",
    )
}

/// The 401 for a session that has ended.
pub fn session_over() -> Error {
    Error::new(Code::Unauthorized, "Your session has ended. Sign in again.")
}

/// The 403 for a person who is not an admin.
pub fn admins_only() -> Error {
    Error::new(Code::AdminsOnly, "Only an admin of this workspace can do this. Ask one of them.")
}

/// The address under which a request is counted: the peer's, or the one reported by a trusted proxy.
/// IPv6 addresses count by their network.
pub fn client_address(headers: &HeaderMap, peer: Option<IpAddr>, trusted: &[IpAddr]) -> IpAddr {
    let peer = peer.unwrap_or(IpAddr::from([0, 0, 0, 0])).to_canonical();
    let named = || {
        let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
        last.rsplit(',').next()?.trim().parse::<IpAddr>().ok()
    };
    network_of(if trusted.contains(&peer) { named().unwrap_or(peer) } else { peer })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static("x-forwarded-for"),
            http::HeaderValue::from_static(value),
        )])
    }

    #[test]
    fn only_a_trusted_proxy_reports_the_client() {
        let proxy = IpAddr::from([10, 0, 0, 1]);
        let headers = forwarded("1.1.1.1, 203.0.113.9");
        assert_eq!(client_address(&headers, Some(proxy), &[]), proxy);
        assert_eq!(client_address(&headers, Some(proxy), &[proxy]), IpAddr::from([203, 0, 113, 9]));
    }
}
