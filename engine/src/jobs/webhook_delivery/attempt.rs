//! One attempt: a signed request, and the outcome of its response.
use bytes::{Bytes, BytesMut};

use super::{PendingDelivery, Receiver, schedule};
use crate::base::ids::DeliveryId;
use crate::base::limits::{
    DELIVERY_DEADLINE_MS, DELIVERY_RESPONSE_BYTES_MAX, DELIVERY_RESPONSE_KEPT_BYTES_MAX,
};
use crate::base::targets::PublicUrl;
use crate::base::time::Timestamp;
use crate::ports::{Egress, HttpError, HttpReply, HttpRequest, Party, PartyKind};
use crate::services::Services;
use crate::storage::signing::{SecretOwner, Signed};

/// The outcome of an attempt.
pub struct Outcome {
    pub delivery_id: DeliveryId,
    pub status: &'static str,
    pub failures: i64,
    /// [`PendingDelivery::due_at`] of the attempt.
    pub was_due_at: Timestamp,
    /// When the next attempt is due, if there is one.
    pub due_at: Option<Timestamp>,
    pub last_status: Option<u16>,
    pub last_error: Option<String>,
    pub last_response: Option<String>,
    /// How long after its event the receiver has got it, for the first time.
    pub lag_ms: Option<i64>,
    /// The receiver did not respond within the deadline, or not to the end.
    pub timed_out: bool,
    /// The receiver answered 410: it wants no more events.
    pub gone: bool,
}

/// Sends the event once. The target is checked at each attempt: its name may resolve to another address, and the rules
/// may have become stricter since the webhook was created.
pub async fn send(services: &Services, receiver: &Receiver, due: &PendingDelivery) -> Outcome {
    let (answer, timed_out) = match request(services, receiver, due) {
        Ok(request) => answered(services, request).await,
        Err(_) => (Err(HttpError::Refused), false),
    };
    let now = services.now();
    match answer {
        Ok(reply) if (200..300).contains(&reply.status) => Outcome {
            status: "delivered",
            failures: due.failures,
            last_status: Some(reply.status),
            last_response: kept(&reply.body),
            lag_ms: due.waits_since.map(|event| (now.ms() - event.ms()).max(0)),
            timed_out,
            ..blank(due)
        },
        Ok(reply) if reply.status == 410 => Outcome {
            status: "failed",
            failures: due.failures + 1,
            last_status: Some(reply.status),
            last_error: Some("The receiver answered HTTP 410: the webhook is disabled.".to_owned()),
            last_response: kept(&reply.body),
            timed_out,
            gone: true,
            ..blank(due)
        },
        answer => failed(services, due, &answer, timed_out, now),
    }
}

/// The status counts, however long the body is, and however it ends; and whether the time was over before that.
async fn answered(services: &Services, request: HttpRequest) -> (Result<HttpReply, HttpError>, bool) {
    let mut stream = match services.ports().http.open(request).await {
        Ok(stream) => stream,
        Err(HttpError::TooLarge(reply)) => return (Ok(reply), false),
        Err(error) => {
            let timed_out = error == HttpError::Timeout;
            return (Err(error), timed_out);
        }
    };
    let (mut body, mut timed_out) = (BytesMut::new(), false);
    while body.len() < DELIVERY_RESPONSE_KEPT_BYTES_MAX
        && let Some(piece) = stream.next().await
    {
        match piece {
            Ok(piece) => body.extend_from_slice(&piece),
            Err(error) => {
                timed_out = error == HttpError::Timeout;
                break;
            }
        }
    }
    let (status, headers) = (stream.status, std::mem::take(&mut stream.headers));
    (Ok(HttpReply { status, headers, body: body.freeze() }), timed_out)
}

fn failed(
    services: &Services,
    due: &PendingDelivery,
    answer: &Result<HttpReply, HttpError>,
    timed_out: bool,
    now: Timestamp,
) -> Outcome {
    let failures = due.failures + 1;
    let reply = answer.as_ref().ok();
    let asked_ms = reply.and_then(retry_after).and_then(|value| schedule::retry_after_ms(value, now.ms()));
    let pause_ms = schedule::pause_ms(failures, asked_ms);
    let due_at = pause_ms.map(|pause_ms| now + schedule::with_jitter(pause_ms, &*services.ports().random));
    let reason = match answer {
        Ok(reply) if (300..400).contains(&reply.status) => {
            format!("The receiver answered HTTP {}; redirects are not followed.", reply.status)
        }
        Ok(reply) => format!("The receiver answered HTTP {}.", reply.status),
        Err(HttpError::Timeout) => {
            format!("The receiver did not answer within {} s.", DELIVERY_DEADLINE_MS / 1000)
        }
        Err(HttpError::Refused) => "The URL does not lead to a public HTTPS address.".to_owned(),
        Err(HttpError::Failed(_) | HttpError::TooLarge(_)) => {
            "The receiver could not be reached, or closed the connection.".to_owned()
        }
    };
    Outcome {
        status: if due_at.is_some() { "pending" } else { "failed" },
        failures,
        due_at,
        last_status: reply.map(|reply| reply.status),
        last_error: Some(reason),
        last_response: reply.and_then(|reply| kept(&reply.body)),
        timed_out,
        ..blank(due)
    }
}

fn blank(due: &PendingDelivery) -> Outcome {
    Outcome {
        delivery_id: due.id.clone(),
        status: "pending",
        failures: 0,
        was_due_at: due.due_at,
        due_at: None,
        last_status: None,
        last_error: None,
        last_response: None,
        lag_ms: None,
        timed_out: false,
        gone: false,
    }
}

fn request(services: &Services, receiver: &Receiver, due: &PendingDelivery) -> Result<HttpRequest, ()> {
    let config = services.config();
    let target = PublicUrl::parse(&receiver.url, config.allow_private_targets).map_err(|_| ())?;
    let now_ms = services.ports().clock.now_ms();
    let message = Signed { id: &due.event_id, now_ms, body: due.body.as_bytes() };
    let signatures =
        receiver.secrets.signatures(&config.secret, SecretOwner::Webhook(&receiver.id), &message);
    Ok(HttpRequest {
        method: "POST",
        url: target.url().as_str().to_owned(),
        headers: vec![
            ("user-agent", concat!("Sidetone/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("content-type", "application/json".to_owned()),
            ("webhook-id", due.event_id.to_string()),
            ("webhook-timestamp", message.timestamp_s().to_string()),
            ("webhook-signature", signatures),
        ],
        body: Bytes::from(due.body.clone()),
        deadline_ms: DELIVERY_DEADLINE_MS,
        response_bytes_max: DELIVERY_RESPONSE_BYTES_MAX,
        egress: if config.allow_private_targets { Egress::Operator } else { Egress::Public },
        party: Party::of_workspace(PartyKind::Webhook, &receiver.workspace_id),
        expected: &[],
    })
}

fn retry_after(reply: &HttpReply) -> Option<&str> {
    let found = reply.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    found.map(|(_, value)| value.as_str())
}

/// The beginning of the response as text. Without control characters: U+0000 is not allowed in our texts, and in JSON each
/// of the others would take six bytes.
fn kept(body: &[u8]) -> Option<String> {
    if body.is_empty() {
        return None;
    }
    let mut text =
        String::from_utf8_lossy(&body[..body.len().min(DELIVERY_RESPONSE_KEPT_BYTES_MAX)]).into_owned();
    text = text.replace(|c: char| c.is_control() && !c.is_whitespace(), "\u{fffd}");
    text.truncate(text.floor_char_boundary(DELIVERY_RESPONSE_KEPT_BYTES_MAX));
    Some(text)
}
