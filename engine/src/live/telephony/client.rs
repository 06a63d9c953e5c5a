//! Sends one request to a carrier with the operator's credentials, without retries.
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::base::error::{Code, Error};
use crate::base::limits::{CARRIER_DEADLINE_MS, CARRIER_RESPONSE_BYTES_MAX};
use crate::carriers::{Authorization, Outgoing, Rejection, RejectionCause};
use crate::ports::{Egress, HttpError, HttpReply, HttpRequest, Party, PartyKind};
use crate::services::Services;

/// Sends a request once: only the caller knows whether a retry is safe.
pub async fn send(services: &Services, outgoing: Outgoing) -> Result<HttpReply, HttpError> {
    send_within(services, outgoing, CARRIER_DEADLINE_MS).await
}

/// The same with another deadline.
pub async fn send_within(
    services: &Services,
    outgoing: Outgoing,
    deadline_ms: u64,
) -> Result<HttpReply, HttpError> {
    let Outgoing { carrier, method, url, authorization, content_type, body, expected } = outgoing;
    let secret = match &authorization {
        Authorization::Basic { password: secret, .. } | Authorization::Bearer(secret) => Some(secret.clone()),
        Authorization::Jwt { .. } => None,
    };
    let mut headers = vec![
        ("user-agent", concat!("Sidetone/", env!("CARGO_PKG_VERSION")).to_owned()),
        ("accept", "application/json".to_owned()),
        ("authorization", header(services, authorization).await?),
    ];
    headers.extend(content_type.map(|content_type| ("content-type", content_type.to_owned())));
    let request = HttpRequest {
        method,
        url,
        headers,
        body,
        deadline_ms,
        response_bytes_max: CARRIER_RESPONSE_BYTES_MAX,
        egress: Egress::Operator,
        party: Party::of_operator(PartyKind::Carrier, carrier.as_str()),
        expected,
    };
    let mut reply = match services.ports().http.send(request).await {
        // The beginning of the body is enough to identify the error.
        Ok(reply) | Err(HttpError::TooLarge(reply)) => reply,
        Err(error) => return Err(error),
    };
    // What a carrier says of an error is told to users. Some say which key they got.
    if let Some(secret) = secret.filter(|_| reply.status >= 300) {
        reply.body = String::from_utf8_lossy(&reply.body).replace(secret.reveal(), "…").into();
    }
    Ok(reply)
}

async fn header(services: &Services, authorization: Authorization) -> Result<String, HttpError> {
    match authorization {
        Authorization::Basic { user, password } => {
            Ok(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal()))))
        }
        Authorization::Bearer(token) => Ok(format!("Bearer {}", token.reveal())),
        Authorization::Jwt { claims, key } => {
            let signed = format!("{}.{}", encoded(&json!({"alg": "RS256", "typ": "JWT"})), encoded(&claims));
            let message = Bytes::from(signed.clone());
            let signature = services.ports().keys.sign_rs256(key.pkcs8(), message).await;
            let signature = signature.map_err(HttpError::Failed)?;
            Ok(format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
        }
    }
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A carrier's rejection, as an API error.
pub(crate) fn rejected(provider: &str, rejection: &Rejection) -> Error {
    let what = match rejection.cause {
        RejectionCause::Request => "did not accept the request",
        RejectionCause::Account => "refused it because of the operator's account",
        RejectionCause::Busy => "has too many requests at the moment: try again later",
        RejectionCause::Carrier => "failed",
    };
    let message = format!("The carrier ({provider}) {what}: {}", rejection.message);
    let details =
        json!({"provider": provider, "carrier_code": rejection.code, "carrier_message": rejection.message});
    Error::new(Code::CarrierRejected, message).with_details(details)
}
