//! Mails of the dashboard, sent by a JSON API (Resend's form, which others speak too).
use bytes::Bytes;
use serde_json::json;

use crate::base::limits::{MAIL_DEADLINE_MS, MAIL_REPLY_BYTES_MAX};
use crate::ports::{Egress, HttpError, HttpRequest};
use crate::services::Services;

/// A mail in plain text: nothing in it needs more, and no scanner mistakes it for an advertisement.
pub(super) struct Mail {
    to: String,
    subject: String,
    text: String,
}

/// What became of a mail.
pub(super) enum Sent {
    Delivered,
    /// No mail API is configured.
    NotConfigured,
    /// For the log.
    Failed(String),
}

/// The mail with a code and a link.
pub(super) fn code(to: &str, code: &str, link: &str) -> Mail {
    let text = format!(
        "Your code to sign in to Sidetone is\n\n    {code}\n\nIt is good for 10 minutes, in the browser that asked for it. \
         You can also open this link and press the button:\n\n{link}\n\nDid you not ask for it? Then do nothing: without \
         the code nobody can sign in.\n"
    );
    Mail { to: to.to_owned(), subject: format!("{code} is your code for Sidetone"), text }
}

/// The mail with an invitation.
pub(super) fn invitation(to: &str, by: &str, workspace: &str, link: &str) -> Mail {
    let text = format!(
        "{by} invites you to the workspace \"{workspace}\" in Sidetone. Open this link within 7 days, and sign in as {to}:\n\n\
         {link}\n\nDo you not know them? Then do nothing.\n"
    );
    Mail { to: to.to_owned(), subject: format!("{by} invites you to Sidetone"), text }
}

/// Sends a mail.
pub(super) async fn send(services: &Services, mail: &Mail) -> Sent {
    let Some(settings) = &services.config().mail else { return Sent::NotConfigured };
    let body = json!({"from": settings.from, "to": [mail.to], "subject": mail.subject, "text": mail.text});
    let mut headers = vec![("content-type", "application/json".to_owned())];
    if let Some(key) = &settings.api_key {
        headers.push(("authorization", format!("Bearer {}", key.reveal())));
    }
    let request = HttpRequest {
        method: "POST",
        url: settings.url.clone(),
        headers,
        body: Bytes::from(body.to_string()),
        deadline_ms: MAIL_DEADLINE_MS,
        response_bytes_max: MAIL_REPLY_BYTES_MAX,
        egress: Egress::Operator,
    };
    match services.ports().http.send(request).await {
        Ok(reply) | Err(HttpError::TooLarge(reply)) if (200..300).contains(&reply.status) => Sent::Delivered,
        Ok(reply) | Err(HttpError::TooLarge(reply)) => {
            let said: String = String::from_utf8_lossy(&reply.body).chars().take(300).collect();
            Sent::Failed(format!("the mail API answered {}: {said}", reply.status))
        }
        Err(HttpError::Timeout) => Sent::Failed("the mail API did not answer in time".to_owned()),
        Err(HttpError::Refused) => Sent::Failed("the mail API's address is private".to_owned()),
        Err(HttpError::Failed(detail)) => Sent::Failed(format!("the mail API cannot be reached: {detail}")),
    }
}
