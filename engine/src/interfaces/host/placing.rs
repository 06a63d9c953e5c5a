//! Which database a request is about, where there are several. Where there is one, nothing is asked.
//!
//! A request with an API key goes to the database of its workspace. This process remembers where a key was found; if it is not
//! there any more, the directory is asked again, and the key is not counted as wrong: its workspace may have moved, even since the
//! directory was asked for this request. A token of ours names its workspace. A carrier's callback is placed once its signature is
//! verified (`live/telephony/callbacks.rs`). The dashboard's people, and the workspaces that they create, are in the first database.
use bytes::Bytes;
use http::{Response, StatusCode};

use super::log_record::Answered;
use super::routes;
use crate::base::ids::RequestId;
use crate::interfaces::api::Api;
use crate::interfaces::mcp;
use crate::live::{self, handshake};
use crate::operations::auth::Credential;
use crate::ports::Incoming;
use crate::services::Services;
use crate::storage::fault::Fault;

/// Answers a request from the database that it is about. Returns the interfaces over that database, too.
pub(super) async fn respond(
    api: &Api,
    incoming: &Incoming,
    request_id: &RequestId,
) -> (Api, Response<Bytes>) {
    let services = api.services();
    if let Some(sharding) = services.sharding()
        && let Some(hash) = key_of(api, incoming)
    {
        let may_search = || !api.is_throttled(incoming, services.now().ms());
        let remembered = sharding.remembered(&hash);
        let found = match remembered {
            Some(shard) => Ok(Some(shard)),
            None => services.find_key(sharding, &hash, may_search()).await,
        };
        let shard = match found {
            Ok(Some(shard)) => shard,
            Ok(None) => {
                // Nobody's key is refused by the first database.
                let api = api.with(services.on_shard(0));
                let response = Box::pin(routes::respond(&api, incoming, request_id)).await;
                return (api, response);
            }
            Err(fault) => return (api.clone(), fault.into_response(request_id)),
        };
        let there = api.remembering(services.on_shard(shard));
        // On the heap: at worst the request is answered twice.
        let response = Box::pin(routes::respond(&there, incoming, request_id)).await;
        let has_written =
            response.extensions().get::<Answered>().is_some_and(|answered| answered.has_written);
        // What has changed something, before its key was revoked or moved, is not done again elsewhere.
        if response.status() != StatusCode::UNAUTHORIZED || has_written {
            return (there, response);
        }
        sharding.forget(&hash);
        // Who has just been told where it is asks only whether it has moved in between.
        let may_search = remembered.is_some() && may_search();
        let now = match services.find_key(sharding, &hash, may_search).await {
            Ok(now) => now,
            Err(fault) => return (api.clone(), fault.into_response(request_id)),
        };
        let Some(elsewhere) = now.filter(|now| *now != shard) else {
            // It has not moved: it was revoked.
            return api.wrong_where_remembered(there, response, incoming, request_id);
        };
        let api = api.with(services.on_shard(elsewhere));
        let response = Box::pin(routes::respond(&api, incoming, request_id)).await;
        return (api, response);
    }
    let api = match incoming.request.uri().path() {
        live::SOCKET_PATH | live::RESTART_PATH => match of_socket(api, incoming).await {
            Ok(services) => api.with(services),
            Err(fault) => return (api.clone(), fault.into_response(request_id)),
        },
        _ => api.clone(),
    };
    let response = routes::respond(&api, incoming, request_id).await;
    (api, response)
}

/// The hash of the key of a request in which REST or MCP looks the key up. Nothing else is about the workspace of a key; and a
/// wrong one in a request that is refused before, for its method or its origin, is not counted, so it must cost no search.
fn key_of(api: &Api, incoming: &Incoming) -> Option<String> {
    let request = &incoming.request;
    let takes_key = match request.uri().path() {
        "/mcp" => mcp::takes_key(api, request),
        path => api.interfaces().router.find(request.method(), path).is_ok(),
    };
    match Credential::from_headers(incoming.request.headers()) {
        Credential::Key { hash } if takes_key => Some(hash),
        _ => None,
    }
}

/// The database of the workspace that the token of a WebSocket names. What has no such token is refused by any.
pub(super) async fn of_socket(api: &Api, incoming: &Incoming) -> Result<Services, Fault> {
    let services = api.services();
    if services.sharding().is_none() {
        return Ok(services.clone());
    }
    match handshake::workspace_of(services, incoming.request.uri()) {
        Some(workspace_id) => services.at_home_of(&workspace_id).await,
        None => Ok(services.clone()),
    }
}
