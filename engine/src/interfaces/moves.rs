//! Moving workspaces between hosts, and between databases of this one, over HTTP, for the operator alone.
//!
//! None of this is an operation: it stands in no document, and MCP has no tool for it. The command line asks for one step after
//! the other. Each is bounded by rows, looks and blobs, whatever the size of the workspace, and may be repeated.
mod databases;
mod exports;
mod imports;
mod replies;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};

use self::replies::Answer;
use crate::base::ids::RequestId;
use crate::base::limits::{BODY_BYTES_MAX, MOVE_PART_BYTES_MAX, MOVE_PART_HEAD_BYTES_MAX};
use crate::config::Config;
use crate::interfaces::api::Api;
use crate::interfaces::operator_key;
use crate::ports::Incoming;
use crate::services::Services;

/// What the paths begin with.
pub(crate) const PATH: &str = "/operator/";

/// A part with its line, and the line feeds after both.
const PART_BYTES_MAX: usize = MOVE_PART_HEAD_BYTES_MAX + MOVE_PART_BYTES_MAX + 2;

/// The size that the body of a request may have: more than others for a part of a file, if the operator sends it.
pub(crate) fn body_bytes_max(config: &Config, head: &Parts) -> usize {
    let is_part = imports::is_part(&head.method, head.uri.path());
    if is_part && operator_key::is_sent(config, &head.headers) { PART_BYTES_MAX } else { BODY_BYTES_MAX }
}

/// Answers a request of whoever has the operator's key.
pub(crate) async fn handle(
    api: &Api,
    incoming: &Incoming,
    now_ms: i64,
    request_id: &RequestId,
) -> Response<Bytes> {
    let otherwise = "`sidetone secrets` prints one. On the machine of a self-hosted service, `sidetone export` and \
                     `sidetone import` need none.";
    match operator_key::check(api.services().config(), incoming.request.headers(), otherwise) {
        Ok(()) => answer(api, &incoming.request, request_id).await,
        Err(error) => api.refuse(error.into(), incoming, now_ms, request_id),
    }
}

/// Answers the same request of whoever needs no key: the command line beside the data.
pub(crate) async fn answer(api: &Api, request: &Request<Bytes>, request_id: &RequestId) -> Response<Bytes> {
    // On the heap: the futures of all steps are larger than most requests'.
    Box::pin(route(api.services(), request)).await.into_response(request, request_id)
}

async fn route(services: &Services, request: &Request<Bytes>) -> Answer {
    let path = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    let segments: Vec<&str> = path.split('/').collect();
    match segments.as_slice() {
        ["workspaces"] => exports::find(services, request).await,
        ["workspaces", workspace, "database"] => databases::answer(services, request, workspace).await,
        ["exports", workspace, rest @ ..] => exports::answer(services, request, workspace, rest).await,
        ["imports", rest @ ..] => imports::answer(services, request, rest).await,
        _ => Answer::unknown(),
    }
}
