//! `/dashboard/api/…`: the REST routes for the live parts of pages, in the name of a session.
use bytes::Bytes;
use http::{Method, Response};

use super::visit::Visit;
use crate::base::error::{Code, Error};
use crate::base::response::error_response;
use crate::interfaces::rest;
use crate::operations::auth;
use crate::operations::context::Context;
use crate::storage::fault::Fault;

/// The header with the proof that a page of ours sends the request.
const CSRF_HEADER: &str = "x-csrf-token";

/// Answers a call of the REST route `path`.
pub(super) async fn handle(visit: &Visit<'_>, path: &str) -> Result<Response<Bytes>, Fault> {
    let refused = |error: Error| Ok(error_response(&error, visit.request_id));
    if visit.is_from_elsewhere() {
        return refused(elsewhere());
    }
    let Some(session) = visit.session().await? else { return refused(auth::session_over()) };
    let request = &visit.incoming.request;
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let sent = request.headers().get(CSRF_HEADER).and_then(|value| value.to_str().ok());
    match sent.and_then(|sent| visit.workspace_of_form(&session, sent)) {
        Some(workspace_id) if workspace_id != &*session.workspace_id => return refused(other_workspace()),
        None if !reads => return refused(elsewhere()),
        _ => {}
    }
    let context =
        || Ok(Context::new(visit.services().clone(), visit.now_ms, super::show::principal(&session)));
    Ok(rest::handle_as(visit.api, visit.incoming, path, context, visit.now_ms, visit.request_id).await)
}

fn other_workspace() -> Error {
    let message = "You have opened another workspace since this page was loaded. Load the page again.";
    Error::new(Code::OtherWorkspace, message)
}

fn elsewhere() -> Error {
    Error::new(
        Code::ForbiddenOrigin,
        "Only pages of the dashboard call this. With an API key, call the path after `/dashboard/api`.",
    )
}
