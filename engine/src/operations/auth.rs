//! Authentication: the API key of a request, and the limit for invalid keys.
use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

use crate::base::api_key::{ApiKey, KEY_BYTES, KEY_PREFIX};
use crate::base::error::{Code, Error};
use crate::base::ids::WorkspaceId;
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

/// The last four characters of something in the form of a key, valid or not.
pub(crate) fn key_last_four(headers: &HeaderMap) -> Option<[u8; 4]> {
    let key = headers.get(http::header::AUTHORIZATION)?.as_bytes().rsplit(|byte| *byte == b' ').next()?;
    let is_key = key.len() == KEY_BYTES && key.starts_with(KEY_PREFIX.as_bytes());
    key.last_chunk().copied().filter(|four: &[u8; 4]| is_key && four.iter().all(u8::is_ascii_alphanumeric))
}

/// Who shares a budget with a key: its workspace, or the key itself if it would open one on its first use. `None`: the key
/// opens nothing, or that cannot be read. It is looked up each time: a key that was revoked a moment ago takes nothing of its
/// workspace's, whose bodies would be refused.
pub(crate) async fn holder(services: &Services, hash: &str) -> Option<String> {
    let find = sql!(
        "SELECT workspace_id, revoked_at IS NOT NULL AS is_revoked FROM api_keys WHERE hash = :hash",
        hash = hash
    );
    let [found] = services.read([find]).await.ok()?;
    let Some(row) = found.first() else {
        return services.config().bootstrap_hashes.iter().any(|known| known == hash).then(|| hash.to_owned());
    };
    match row.flag("is_revoked") {
        Ok(false) => row.text("workspace_id").ok(),
        Ok(true) | Err(_) => None,
    }
}

/// The workspace that a key opens, looked up. `None`: it opens none, or that cannot be read.
pub(crate) async fn workspace_of(services: &Services, hash: &str) -> Option<WorkspaceId> {
    let find =
        sql!("SELECT workspace_id FROM api_keys WHERE hash = :hash AND revoked_at IS NULL", hash = hash);
    let [found] = services.read([find]).await.ok()?;
    found.first()?.id("workspace_id").ok()
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

/// The address under which a request is counted: the peer's or, behind trusted proxies, the nearest one that is none of
/// theirs. What stands before it in the header, whoever sent the request may have written. IPv6 addresses count by their
/// network.
pub fn client_address(headers: &HeaderMap, peer: Option<IpAddr>, trusted: &[IpNet]) -> IpAddr {
    let mut nearest = peer.unwrap_or(IpAddr::from([0, 0, 0, 0])).to_canonical();
    let named = headers.get_all("x-forwarded-for").iter().rev();
    let mut hops = named.filter_map(|value| value.to_str().ok()).flat_map(|value| value.rsplit(','));
    while trusted.iter().any(|network| network.contains(&nearest)) {
        let Some(Ok(hop)) = hops.next().map(|hop| hop.trim().parse::<IpAddr>()) else { break };
        nearest = hop.to_canonical();
    }
    network_of(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(values: &[&'static str]) -> HeaderMap {
        let name = http::HeaderName::from_static("x-forwarded-for");
        values.iter().map(|value| (name.clone(), http::HeaderValue::from_static(value))).collect()
    }

    fn address(headers: &HeaderMap, peer: &str, trusted: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        client_address(headers, Some(peer.parse().unwrap()), &trusted).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_reports_the_client() {
        let headers = forwarded(&["1.1.1.1, 203.0.113.9"]);
        assert_eq!(address(&headers, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(address(&headers, "10.0.0.1", &["10.0.0.1/32"]), "203.0.113.9");
        assert_eq!(address(&headers, "10.0.0.2", &["10.0.0.1/32"]), "10.0.0.2");
        assert_eq!(address(&headers, "::ffff:10.0.0.1", &["10.0.0.0/8"]), "203.0.113.9");
    }

    #[test]
    fn a_chain_of_trusted_proxies_is_followed_to_the_first_stranger() {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"];
        let headers = forwarded(&["1.1.1.1", "203.0.113.9, 2001:db8::7"]);
        assert_eq!(address(&headers, "10.2.3.4", &trusted), "203.0.113.9", "1.1.1.1 is hearsay");
        // What is no address ends it.
        assert_eq!(address(&forwarded(&["1.1.1.1, unknown"]), "10.2.3.4", &trusted), "10.2.3.4");
        assert_eq!(address(&forwarded(&["10.9.9.9"]), "10.2.3.4", &trusted), "10.9.9.9");
    }
}
