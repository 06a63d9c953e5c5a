//! The place of the dashboard, which stands above the interfaces: its paths, and the function that answers them.
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Response, header};

use crate::base::ids::RequestId;
use crate::interfaces::api::Api;
use crate::ports::{BoxFuture, Incoming};

/// Answers the requests to a part of the service that stands above the interfaces.
pub type Mounted = for<'a> fn(&'a Api, &'a Incoming, i64, &'a RequestId) -> BoxFuture<'a, Response<Bytes>>;

/// Where the dashboard is.
pub const DASHBOARD_PATH: &str = "/dashboard";
/// Where people sign in: the only place that reads what somebody without a session sends.
pub const SIGN_IN_PATH: &str = "/dashboard/sign-in";
/// The link whose page signs somebody in.
pub(crate) fn sign_in_link(base_url: &str, token: &str) -> String {
    format!("{base_url}{SIGN_IN_PATH}/link?token={token}")
}

/// The page where an invitation is accepted.
pub(crate) const JOIN_PATH: &str = "/dashboard/join";
/// The link of an invitation.
pub(crate) fn join_link(base_url: &str, token: &str) -> String {
    format!("{base_url}{JOIN_PATH}?token={token}")
}

/// The cookie of a session, where the service has no TLS.
pub const SESSION_COOKIE: &str = "sidetone_session";
/// The same with TLS: the prefix keeps it from being set by other hosts and for parts of this one.
pub const SESSION_COOKIE_TLS: &str = "__Host-sidetone_session";

/// Whether the path belongs to the dashboard.
pub fn is_dashboard(path: &str) -> bool {
    path.strip_prefix(DASHBOARD_PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the body of a request to the dashboard is used.
pub(super) fn uses_body(head: &Parts) -> bool {
    let path = head.uri.path();
    is_dashboard(path)
        && (path.starts_with(SIGN_IN_PATH)
            || cookie(&head.headers, SESSION_COOKIE_TLS).is_some()
            || cookie(&head.headers, SESSION_COOKIE).is_some())
}

/// The value of a cookie. A comma may be part of one.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get(header::COOKIE)?.to_str().ok()?;
    all.split(';').find_map(|one| one.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_dashboard_as_a_whole_segment() {
        assert!(is_dashboard("/dashboard") && is_dashboard("/dashboard/calls"));
        assert!(!is_dashboard("/dashboards") && !is_dashboard("/calls"));
    }

    /// Another host of the same domain may set a cookie with a comma.
    #[test]
    fn a_cookie_within_another_is_none() {
        let value =
            http::HeaderValue::from_static("a=1,__Host-sidetone_session=evil; __Host-sidetone_session=mine");
        let headers = HeaderMap::from_iter([(header::COOKIE, value)]);
        assert_eq!(cookie(&headers, SESSION_COOKIE_TLS), Some("mine"));
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let headers = HeaderMap::from_iter([(
            header::COOKIE,
            http::HeaderValue::from_static("a=1; not_sidetone_session=2; sidetone_session=3"),
        )]);
        assert_eq!(cookie(&headers, SESSION_COOKIE), Some("3"));
        assert_eq!(cookie(&headers, SESSION_COOKIE_TLS), None);
    }
}
