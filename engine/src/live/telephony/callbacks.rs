//! The callbacks of carriers: the signature is checked first, then their events are handled.
//!
//! `POST` (or `GET`, at some carriers) `/carriers/{provider}/voice` and `/carriers/{provider}/status`. Operators
//! configure these addresses by hand, so each accepts everything that its carrier sends.
use bytes::Bytes;
use http::{Method, Response, header};

use crate::base::error::{Code, Error};
use crate::base::ids::RequestId;
use crate::base::response::{error_response, method_not_allowed, with_incident};
use crate::carriers::{
    Callback, Carrier, CarrierEvent, CarrierName, Check, Forged, Reply, refusal_without_account,
};
use crate::live::telephony::leg::Leg;
use crate::live::telephony::token::{CallToken, Purpose};
use crate::live::telephony::{Route, client, incoming, returned, status, transfer};
use crate::ports::Incoming;
use crate::services::Services;
use crate::storage::carrier_tokens;
use crate::storage::fault::Fault;

/// The response to a request below [`PATH`](super::PATH) that needs no body: nobody calls there, or a carrier does with
/// which the operator has no account, so that no signature could be checked.
pub(crate) fn refused_by_head(
    services: &Services,
    method: &Method,
    path: &str,
    request_id: &RequestId,
) -> Option<Response<Bytes>> {
    if !path.starts_with(super::PATH) {
        return None;
    }
    let (provider, is_voice) = match Route::of(path) {
        Some(Route::Voice(provider)) => (provider, true),
        Some(Route::Status(provider)) => (provider, false),
        Some(Route::Media(..)) => {
            let message = "This address is a WebSocket for a carrier's media.";
            return Some(error_response(&Error::new(Code::UpgradeRequired, message), request_id));
        }
        None => {
            return Some(error_response(&Error::new(Code::NotFound, "There is nothing here."), request_id));
        }
    };
    if !matches!(*method, Method::POST | Method::GET) {
        return Some(error_response(&method_not_allowed("GET, POST"), request_id));
    }
    let unknown = carrier(services, provider).err()?;
    // A caller is waiting: decline the call. Otherwise the carrier would play an error message.
    Some(match refusal_without_account(provider) {
        Some(Reply::Document { content_type, body }) if is_voice => document(content_type, body),
        _ => error_response(&unknown, request_id),
    })
}

/// Answers a carrier's callback.
pub async fn handle(services: &Services, incoming: &Incoming, request_id: &RequestId) -> Response<Bytes> {
    let (method, path) = (incoming.request.method(), incoming.request.uri().path());
    if let Some(response) = refused_by_head(services, method, path, request_id) {
        return response;
    }
    let answered = match Route::of(path) {
        Some(Route::Voice(provider) | Route::Status(provider)) => answer(services, incoming, provider).await,
        Some(Route::Media(..)) | None => Err(Fault::Bug("a callback without a route".to_owned())),
    };
    match answered {
        Ok(reply) => respond(services, reply, request_id).await,
        Err(fault) => fault.into_response(request_id),
    }
}

fn document(content_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    let value = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}

/// The carrier, if the operator has an account with it.
pub(crate) fn carrier(services: &Services, provider: CarrierName) -> Result<&dyn Carrier, Error> {
    services.config().carriers.get(provider).map(|carrier| &**carrier).ok_or_else(|| {
        let message = format!(
            "This service has no account with {}. Its operator can configure one.",
            provider.as_str()
        );
        Error::new(Code::CarrierNotConfigured, message)
    })
}

/// Rejects requests without a valid signature of the carrier, and those whose token came with another request before.
/// Nothing is written for a request that anybody else could have made.
pub(super) async fn verify(
    services: &Services,
    provider: CarrierName,
    callback: &Callback<'_>,
    check: Check,
) -> Result<(), Fault> {
    let forged = match check {
        Check::Genuine | Check::Unsigned => return Ok(()),
        // A repetition of the same request is a carrier's retry.
        Check::GenuineToken { id, expires_at_ms } => {
            let fingerprint = callback.fingerprint();
            match carrier_tokens::bind(services, provider, &id, &fingerprint, expires_at_ms).await? {
                true => return Ok(()),
                false => Forged::Replayed,
            }
        }
        Check::Ed25519 { public_key, message, signature } => {
            let keys = &services.ports().keys;
            match keys.verify_ed25519(public_key, Bytes::from(message), signature).await {
                true => return Ok(()),
                false => Forged::Wrong,
            }
        }
        Check::Forged(forged) => forged,
    };
    let why = match forged {
        Forged::Missing => "it is not signed",
        Forged::Malformed => "its signature is malformed",
        Forged::Wrong => {
            "its signature does not match; is SIDETONE_BASE_URL the address that the carrier calls?"
        }
        Forged::Replayed => "its token came with another request before",
        Forged::Stale => "its timestamp is too old, or in the future",
    };
    let message = format!("This request is not a callback of the carrier: {why}.");
    Err(Error::new(Code::InvalidSignature, message).into())
}

async fn answer(services: &Services, incoming: &Incoming, provider: CarrierName) -> Result<Reply, Fault> {
    let carrier = carrier(services, provider)?;
    let request = &incoming.request;
    let url = format!(
        "{}{}",
        services.config().base_url,
        request.uri().path_and_query().map_or("/", |path| path.as_str())
    );
    let callback = Callback {
        method: request.method().as_str(),
        url: &url,
        headers: request.headers(),
        body: request.body(),
        now_ms: services.ports().clock.now_ms(),
    };
    let check = carrier.check(&callback);
    if check == Check::Unsigned {
        return Err(Fault::Bug("a carrier that does not sign its callbacks".to_owned()));
    }
    // Vonage leaves the signature out in rare cases, and repeats a callback that is answered with a 5xx; a socket it does not.
    if provider == CarrierName::Vonage && matches!(check, Check::Forged(Forged::Missing)) {
        return Err(Error::unavailable("This request is not signed. Send it again, signed.", 1).into());
    }
    verify(services, provider, &callback, check).await?;
    let query = callback.query_pairs();
    let token = query.iter().find(|(name, _)| name == "call");
    let token =
        token.and_then(|(_, text)| CallToken::read(&services.config().secret, Purpose::Callback, text));
    let malformed = |what| Error::new(Code::InvalidParameter, format!("This callback is malformed: {what}."));
    let home;
    let services = match &token {
        Some(token) => {
            home = services.at_home_of(&token.workspace_id).await?;
            &home
        }
        None => services,
    };
    if let Some(token) = &token {
        if let Some(document) = transfer::document(services, carrier, token, &query)? {
            return Ok(document);
        }
        if let Some(visit) = transfer::visit(&query) {
            return match carrier.dial_ended(&callback).map_err(malformed)? {
                Some(ended) => returned::answer(services, carrier, token, visit, &ended).await,
                None => Ok(carrier.acknowledge()),
            };
        }
    }
    let events = carrier.read(&callback).map_err(malformed)?;
    let mut reply = carrier.acknowledge();
    for event in events {
        match event {
            CarrierEvent::Incoming(call) => {
                let home = services.at_home_of_number(&call.to).await?;
                reply = incoming::answer(&home, carrier, call).await?;
            }
            CarrierEvent::Asked { carrier_call_id } => {
                let services = &home_of_leg(services, provider, token.as_ref(), &carrier_call_id).await?;
                reply = incoming::answer_placed(services, carrier, token.as_ref(), &carrier_call_id).await?;
            }
            CarrierEvent::Report(report) => {
                let services =
                    &home_of_leg(services, provider, token.as_ref(), &report.carrier_call_id).await?;
                if !returned::by_report(services, carrier, token.as_ref(), &report).await? {
                    status::apply(services, provider, token.as_ref(), report).await?;
                }
            }
        }
    }
    Ok(reply)
}

/// With the database of the call that a callback is about. One without our token names the call by the carrier's id, which every
/// database is asked for: the signature is verified by now.
async fn home_of_leg(
    services: &Services,
    provider: CarrierName,
    token: Option<&CallToken>,
    carrier_call_id: &str,
) -> Result<Services, Fault> {
    if services.sharding().is_none() || token.is_some() {
        return Ok(services.clone());
    }
    for (_, rows) in services.search(|| Leg::select_by_carrier(provider, carrier_call_id)).await? {
        if let Some(leg) = Leg::first(Some(&rows))? {
            return services.at_home_of(&leg.workspace_id).await;
        }
    }
    Ok(services.clone())
}

/// Responds with a document, or sends a command first. If the carrier does not accept the command, the response asks it
/// to repeat its callback.
async fn respond(services: &Services, reply: Reply, request_id: &RequestId) -> Response<Bytes> {
    match reply {
        Reply::Document { content_type, body } => document(content_type, body),
        Reply::Command(outgoing) => match client::send(services, outgoing).await {
            Ok(accepted) if accepted.status < 300 => Response::new(Bytes::new()),
            Ok(rejected) if is_refused_for_good(rejected.status) => with_incident(
                Response::new(Bytes::new()),
                Some(format!("a carrier refused a command: HTTP {}", rejected.status)),
            ),
            other => {
                let message = "The carrier did not accept the command. Send the callback again.";
                let response = error_response(&Error::new(Code::Unavailable, message), request_id);
                let status = other.map(|reply| reply.status);
                with_incident(response, Some(format!("a carrier did not accept a command: {status:?}")))
            }
        },
    }
}

/// Whether repeating the callback is of no use: the command was sent before, or the caller has hung up. It is of use once the
/// operator has corrected a key (401, 403), or the carrier has time again (408, 429).
pub(crate) const fn is_refused_for_good(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 401 | 403 | 408 | 429)
}

#[cfg(test)]
mod tests {
    use super::is_refused_for_good;

    /// Telnyx rings on for minutes after a 200, and sends the callback again after a 503.
    #[test]
    fn what_an_operator_or_time_can_mend_is_repeated() {
        let [mendable, final_ones, not_refused] =
            [[401, 403, 408, 429], [404, 409, 410, 422], [200, 302, 500, 503]];
        assert!(mendable.into_iter().chain(not_refused).all(|status| !is_refused_for_good(status)));
        assert!(final_ones.into_iter().all(is_refused_for_good));
    }
}
