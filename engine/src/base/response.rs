//! Builds responses: the error envelope, JSON bodies, and the headers that every response has.
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::base::error::{Code, Error};
use crate::base::ids::RequestId;

/// The private detail of a failure on our side: an extension of the response, for the host's log, and never sent.
#[derive(Debug, Clone)]
pub(crate) struct Incident(pub(crate) String);

/// What the operator has to know about a request, such as a code that could not be mailed: an extension of the response,
/// for the host's log, and never sent.
#[derive(Debug, Clone)]
pub(crate) struct Note(pub(crate) String);

/// Attaches a note for the log.
pub(crate) fn with_note(mut response: Response<Bytes>, note: String) -> Response<Bytes> {
    response.extensions_mut().insert(Note(note));
    response
}

/// Marks a response as the repetition of an earlier one.
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The error envelope with its status and headers.
pub(crate) fn error_response(error: &Error, request_id: &RequestId) -> Response<Bytes> {
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

/// Attaches the detail of a failure for the log, if there is one.
pub(crate) fn with_incident(mut response: Response<Bytes>, incident: Option<String>) -> Response<Bytes> {
    if let Some(detail) = incident {
        response.extensions_mut().insert(Incident(detail));
    }
    response
}

/// A JSON body with a status.
pub(crate) fn json_response(status: u16, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response without a body.
pub(crate) fn empty_response(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// Adds the headers that every response carries.
pub(crate) fn finish(response: &mut Response<Bytes>, request_id: &RequestId) {
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", value);
    }
    // Responses hold configuration and sometimes a secret: no cache may keep them.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// 405 `method_not_allowed` with the `Allow` header.
pub(crate) fn method_not_allowed(allow: &str) -> Error {
    let mut error = Error::new(Code::MethodNotAllowed, format!("This path accepts only {allow}."));
    error.allow = Some(allow.to_owned());
    error
}
