//! A test link that may start again, and `POST /voice-test/restart?token=…`: the token of its next conversation.
//!
//! Nothing is stored of it: the new token has the claims of the old one, its expiry too, and an id of its own. So a link never
//! outlives the `ttl_seconds` it was made with, and each conversation is admitted and paid for like the first. How many it begins,
//! and how fast, is limited ([`link_starts`]).
//!
//! A link has one conversation at a time. Another start, which asks for a token or opens one, ends the conversation that is
//! open: a person who has reloaded the page, or lost the connection, does not wait until the service notices.
use bytes::Bytes;
use http::{Method, Response};
use serde_json::json;

use super::call_journal;
use super::handshake::token;
use super::link_starts;
use crate::base::error::{Code, Error};
use crate::base::ids::{CallId, RequestId};
use crate::base::limits::{REPLACED_END_MS, REPLACED_LOOK_MS};
use crate::base::response::{error_response, json_response, method_not_allowed};
use crate::ports::Incoming;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::test_token::TestToken;

/// The answer: `{"token": "…"}`, or why there is none.
pub(crate) async fn respond(
    services: &Services,
    incoming: &Incoming,
    now_ms: i64,
    request_id: &RequestId,
) -> Response<Bytes> {
    if *incoming.request.method() != Method::POST {
        return error_response(&method_not_allowed("POST"), request_id);
    }
    match restarted(services, incoming, now_ms).await {
        Ok(token) => json_response(200, Bytes::from(json!({"token": token}).to_string())),
        Err(fault) => fault.into_response(request_id),
    }
}

async fn restarted(services: &Services, incoming: &Incoming, now_ms: i64) -> Result<String, Fault> {
    let old = token(services, incoming.request.uri(), now_ms)?;
    if !old.is_restartable() {
        let message = "The link of this test token does not start again: it was made without restartable: true, so it opens one conversation. Ask for one that has it (POST /assistants/{id}/test-token).";
        return Err(Error::new(Code::TokenUsed, message).into());
    }
    end_open(services, &old, EndedBy::AnyToken, now_ms).await?;
    TestToken { id: services.new_id(), ..old }.sign(&services.config().secret)
}

/// Which tokens of a link end its conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// Any that is genuine.
    AnyToken,
    /// One that was not used: it will open the next.
    UnusedToken,
}

/// Ends the conversation that the token's link has open, and waits a moment for its end: the next one gets its place and its
/// money. A link that may not begin another one now ends none.
pub(super) async fn end_open(
    services: &Services,
    token: &TestToken,
    by: EndedBy,
    now_ms: i64,
) -> Result<(), Fault> {
    let (workspace_id, Some(link_id)) = (&token.workspace_id, &token.first_id) else { return Ok(()) };
    let used = match by {
        EndedBy::AnyToken => "",
        EndedBy::UnusedToken => {
            " AND NOT EXISTS (SELECT 1 FROM used_test_tokens WHERE workspace_id = :ws AND id = :token)"
        }
    };
    let open = format!("SELECT 1 AS open FROM live_calls WHERE workspace_id = :ws AND link_id = :link{used}");
    let mut values = vec![("link", link_id.into())];
    values.extend((by == EndedBy::UnusedToken).then(|| ("token", (&token.id).into())));
    let reads = [Statement::named(&open, values), link_starts::select(token, now_ms)];
    let [open, starts] = services.read(reads.map(|read| read.in_workspace(workspace_id))).await?;
    // A token that was used is told so, as it opens nothing.
    if by == EndedBy::AnyToken || !open.is_empty() {
        link_starts::check(&starts, now_ms)?;
    }
    if open.is_empty() {
        return Ok(());
    }
    let [replaced] = services.write([call_journal::replace_of_link(workspace_id, link_id)]).await?;
    let Some(call_id) = replaced.first().map(|row| row.id::<CallId>("call_id")).transpose()? else {
        return Ok(());
    };
    let ports = services.ports();
    ports.live.signal(&call_id).await;
    let until_ms = ports.clock.now_ms() + REPLACED_END_MS;
    let mut seen = 0;
    loop {
        let goes_on = sql!(
            "SELECT 1 AS open FROM live_calls WHERE workspace_id = :ws AND call_id = :call",
            call = &call_id
        );
        let [goes_on] = services.read([goes_on.in_workspace(workspace_id)]).await?;
        let left_ms = until_ms - ports.clock.now_ms();
        if goes_on.is_empty() || left_ms <= 0 {
            return Ok(());
        }
        seen = ports.live.follow(&call_id, seen, left_ms.min(REPLACED_LOOK_MS).unsigned_abs()).await;
    }
}
