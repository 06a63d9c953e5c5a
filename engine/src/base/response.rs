//! Builds responses: the error envelope, JSON bodies, and the headers that every response has.
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::base::error::{Code, Error};

/// A server-side failure, for the host's log. It is an extension of the response and is never sent.
#[derive(Debug, Clone)]
pub struct Incident(pub String);

/// Marks a response as the repetition of an earlier one.
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The error envelope with its status and headers.
pub(crate) fn error_response(error: &Error, request_id: &str) -> Response<Bytes> {
    let mut response = json_response(error.code.status(), Bytes::from(error.to_json(request_id).to_string()));
    let headers = response.headers_mut();
    if error.code.status() == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"sidetone\""));
    }
    if error.code == Code::UpgradeRequired {
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    if let Some(seconds) = error.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if error.replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    if let Some(allow) = error.allow.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(header::ALLOW, allow);
    }
    response
}

pub(crate) fn json_response(status: u16, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn finish(response: &mut Response<Bytes>, request_id: &str) {
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", value);
    }
    // Responses contain configuration and sometimes a secret, so no cache may store them.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// 405 `method_not_allowed` with the `Allow` header.
pub fn method_not_allowed(allow: &str) -> Error {
    let mut error = Error::new(Code::MethodNotAllowed, format!("This route accepts: {allow}."));
    error.allow = Some(allow.to_owned());
    error
}
