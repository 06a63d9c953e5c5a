//! The dashboard at `/dashboard`: pages for people, who sign in with a code sent to their address. Its pages and forms
//! run the operations of the table in the name of a session, so that there is no second set of rules, queries or limits.
mod answers;
mod api_calls;
pub mod assets;
mod attached;
mod fields;
mod files;
mod forms;
pub mod frame;
pub mod layout;
mod mail;
mod mask;
mod oidc;
pub mod pages;
mod paths;
mod people;
mod reply;
mod show;
mod sign_in;
mod simulate;
mod templates;
mod visit;

use bytes::Bytes;
use http::{Method, Response};

pub use self::forms::OWN as OWN_FORMS;
pub use self::sign_in::FORMS as SIGN_IN_FORMS;
use self::visit::Visit;
use crate::base::ids::RequestId;
use crate::base::response::{error_response, method_not_allowed};
use crate::interfaces::api::Api;
use crate::ports::{BoxFuture, Incoming};
use crate::storage::fault::Fault;

/// Answers a request to the dashboard.
pub(crate) fn handle<'a>(
    api: &'a Api,
    incoming: &'a Incoming,
    now_ms: i64,
    request_id: &'a RequestId,
) -> BoxFuture<'a, Response<Bytes>> {
    Box::pin(async move {
        let visit = Visit::new(api, incoming, now_ms, request_id);
        let response = match answer(&visit).await {
            Ok(response) => response,
            Err(fault) => show::fault(&visit, fault),
        };
        visit.renewed(response)
    })
}

async fn answer(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let path = visit.path();
    let method = visit.incoming.request.method();
    if let Some(rest) = path.strip_prefix("/dashboard/api") {
        return api_calls::handle(visit, rest).await;
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !reads && *method != Method::POST {
        return Ok(error_response(&method_not_allowed("GET, POST"), visit.request_id));
    }
    // The address of a form that was sent; opened by itself, it is nothing to see.
    if reads && path.starts_with("/dashboard/do/") {
        return Ok(reply::redirect("/dashboard"));
    }
    if let Some(file) = path.strip_prefix(files::PATH).filter(|_| reads) {
        return files::answer(file).or_else(|error| Ok(error_response(&error, visit.request_id)));
    }
    if let Some(response) = sign_in::route(visit, path, reads).await? {
        return Ok(response);
    }
    let Some(session) = visit.session().await? else {
        return Ok(sign_in::ask(visit));
    };
    if reads {
        return show::address(visit, &session).await;
    }
    forms::route(visit, &session, path).await
}
