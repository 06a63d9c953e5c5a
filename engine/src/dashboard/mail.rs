//! Mails of the dashboard: what they say, and the way they leave. The host sends by SMTP; otherwise a JSON API does
//! (Resend's form, which others speak too).
use bytes::Bytes;
use serde_json::json;

use crate::base::limits::{MAIL_DEADLINE_MS, MAIL_NAME_CHARS_MAX, MAIL_REPLY_BYTES_MAX};
use crate::base::setting::Secret;
use crate::base::text::is_unfit_for_names;
use crate::config::MailRoute;
use crate::ports::{Egress, HttpError, HttpRequest, OutgoingMail, Party, PartyKind};
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
         You can also open this link, in any browser, and press the button:\n\n{link}\n\nDid you not ask for it? Then do nothing: without \
         the code nobody can sign in.\n"
    );
    Mail { to: to.to_owned(), subject: format!("{code} is your code for Sidetone"), text }
}

/// The mail to an address that may not sign in.
pub(super) fn not_invited(to: &str, base_url: &str) -> Mail {
    let text = format!(
        "Somebody asked for a code to sign in to Sidetone at {base_url} with this address. Only invited people get an \
         account there, so there is no code.\n\nWas it you? Then ask somebody who has an account for an invitation to \
         this address. Otherwise do nothing.\n"
    );
    Mail { to: to.to_owned(), subject: "You need an invitation to sign in to Sidetone".to_owned(), text }
}

/// The mail with an invitation.
pub(super) fn invitation(to: &str, by: &str, workspace: &str, link: &str) -> Mail {
    let by = one_line(by);
    let (quoted, named) = match is_plain(workspace) {
        true => (format!("the workspace \"{workspace}\""), workspace),
        false => ("a workspace".to_owned(), "a workspace"),
    };
    let text = format!(
        "{by} invites you to {quoted} in Sidetone. Open this link within 7 days, and sign in as {to}:\n\n\
         {link}\n\nDo you not know them? Then do nothing.\n"
    );
    Mail { to: to.to_owned(), subject: format!("{by} invites you to {named} in Sidetone"), text }
}

/// Whether a name of somebody's choice can stand in a mail of the operator's: it names something, and says nothing more.
fn is_plain(name: &str) -> bool {
    let lower = name.to_lowercase();
    name.chars().count() <= MAIL_NAME_CHARS_MAX
        && !name.chars().any(is_unfit_for_names)
        && !["://", "www."].iter().any(|link| lower.contains(link))
}

/// Sends a mail.
pub(super) async fn send(services: &Services, mail: &Mail) -> Sent {
    let Some(settings) = &services.config().mail else { return Sent::NotConfigured };
    let sent = match &settings.route {
        MailRoute::Api { url, api_key } => {
            send_by_api(services, url, api_key.as_ref(), &settings.from, mail).await
        }
        MailRoute::Smtp(_) => send_by_host(services, mail).await,
    };
    match sent {
        Ok(()) => Sent::Delivered,
        Err(detail) => Sent::Failed(detail),
    }
}

async fn send_by_host(services: &Services, mail: &Mail) -> Result<(), String> {
    let Some(mailer) = &services.ports().mailer else {
        return Err("this host cannot send mail by SMTP; set SIDETONE_MAIL_URL instead".to_owned());
    };
    let Mail { to, subject, text } = mail;
    let (to, subject, text) = (to.clone(), one_line(subject), text.clone());
    mailer.send(OutgoingMail { to, subject, text, deadline_ms: MAIL_DEADLINE_MS }).await
}

/// Names of people and workspaces are in subjects and sentences.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

async fn send_by_api(
    services: &Services,
    url: &str,
    api_key: Option<&Secret>,
    from: &str,
    mail: &Mail,
) -> Result<(), String> {
    let body = json!({"from": from, "to": [mail.to], "subject": one_line(&mail.subject), "text": mail.text});
    let mut headers = vec![("content-type", "application/json".to_owned())];
    if let Some(key) = api_key {
        headers.push(("authorization", format!("Bearer {}", key.reveal())));
    }
    let request = HttpRequest {
        method: "POST",
        url: url.to_owned(),
        headers,
        body: Bytes::from(body.to_string()),
        deadline_ms: MAIL_DEADLINE_MS,
        response_bytes_max: MAIL_REPLY_BYTES_MAX,
        egress: Egress::Operator,
        party: Party::of_operator(PartyKind::Mail, "api"),
        expected: &[],
    };
    match services.ports().http.send(request).await {
        Ok(reply) | Err(HttpError::TooLarge(reply)) if (200..300).contains(&reply.status) => Ok(()),
        Ok(reply) | Err(HttpError::TooLarge(reply)) => {
            let said = String::from_utf8_lossy(&reply.body);
            let said = api_key.map_or(said.to_string(), |key| said.replace(key.reveal(), "[key]"));
            let said: String = said.chars().take(300).collect();
            Err(format!("the mail API answered {}: {said}", reply.status))
        }
        Err(HttpError::Timeout) => Err("the mail API did not answer in time".to_owned()),
        Err(HttpError::Refused) => Err("the mail API's address is private".to_owned()),
        Err(HttpError::Failed(detail)) => Err(format!("the mail API cannot be reached: {detail}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_name_of_a_workspace_stands_in_a_mail() {
        let mail =
            |name: &str| invitation("anna@example.com", "leo@example.com", name, "https://s.example/join");
        let plain = mail("Blue Door Dental");
        assert_eq!(plain.subject, "leo@example.com invites you to Blue Door Dental in Sidetone");
        assert!(plain.text.contains("the workspace \"Blue Door Dental\" in Sidetone"), "{}", plain.text);
        let long = "x".repeat(MAIL_NAME_CHARS_MAX + 1);
        for name in
            ["Pay at HTTPS://evil.example", "Www.evil.example", "a\nb", "a\u{202e}b", "a\u{2028}b", &long]
        {
            let mail = mail(name);
            assert_eq!(mail.subject, "leo@example.com invites you to a workspace in Sidetone", "{name:?}");
            assert!(!mail.text.contains(name), "{}", mail.text);
        }
    }
}
