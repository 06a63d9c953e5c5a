//! Responses of the dashboard: pages with their policies, and redirects.
use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use maud::Markup;

use super::assets;
use crate::base::response::empty_response;

/// Nothing but our own files: no inline script, no style but our own, no frame around it, no form to elsewhere. In a
/// frame, only our own page for talking to an assistant.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' '{}'; img-src 'self' data:; connect-src 'self'; \
         media-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        assets::style_source()
    )
});

/// A page.
pub(super) fn page(status: u16, markup: Markup) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(markup.into_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut response, header::CONTENT_TYPE, "text/html; charset=utf-8");
    guarded(response)
}

/// Sends the browser to an address of this service, with `GET`.
pub(super) fn redirect(to: &str) -> Response<Bytes> {
    let mut response = empty_response(StatusCode::SEE_OTHER);
    set(&mut response, header::LOCATION, to);
    guarded(response)
}

/// Adds a cookie.
pub(super) fn with_cookie(mut response: Response<Bytes>, cookie: &str) -> Response<Bytes> {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

fn guarded(mut response: Response<Bytes>) -> Response<Bytes> {
    set(&mut response, header::CONTENT_SECURITY_POLICY, &POLICY);
    set(&mut response, header::X_FRAME_OPTIONS, "DENY");
    set(&mut response, header::REFERRER_POLICY, "same-origin");
    set(&mut response, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

fn set(response: &mut Response<Bytes>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
