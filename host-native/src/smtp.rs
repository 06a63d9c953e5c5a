//! Outgoing mail by SMTP with lettre: one connection for each mail, because mails are rare.
use std::sync::Arc;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use sidetone_engine::base::setting::{Secret, SettingError};
use sidetone_engine::config::{MAIL_FROM, MailSettings, Protection, SMTP_URL, SmtpSettings};
use sidetone_engine::ports::{BoxFuture, Mailer, OutgoingMail, Party, PartyKind};

use crate::metrics::Metrics;
use crate::outside::Exchange;

/// Characters of a server's words in the log.
const SAID_CHARS_MAX: usize = 300;

/// The server has taken the mail (RFC 5321).
const SENT: u16 = 250;

/// Sends mails by SMTP.
pub struct SmtpMailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    password: Option<Secret>,
    /// `smtp://`, host and port.
    server: String,
    metrics: Arc<Metrics>,
}

impl SmtpMailer {
    /// The mailer of these settings; `None`: mails leave another way. Connects to nothing yet.
    pub fn from_settings(mail: Option<&MailSettings>) -> Result<Option<Self>, SettingError> {
        let Some((mail, smtp)) = mail.and_then(|mail| Some((mail, mail.smtp()?))) else { return Ok(None) };
        let from: Mailbox = mail.from.parse().map_err(|_| SettingError {
            name: MAIL_FROM,
            message: format!("`{}` is not a sender such as Sidetone <voice@example.com>", mail.from),
        })?;
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(smtp.host.clone())
            .port(smtp.port)
            .tls(protection(smtp)?)
            .hello_name(ClientId::Domain(from.email.domain().to_owned()))
            .timeout(None); // the deadline of each mail covers everything
        if let Some((user, password)) = &smtp.account {
            transport = transport
                .credentials(Credentials::new(user.clone(), password.reveal().to_owned()))
                .authentication(vec![Mechanism::Plain, Mechanism::Login]);
        }
        let password = smtp.account.as_ref().map(|(_, password)| password.clone());
        let server = format!("smtp://{}:{}", smtp.host, smtp.port);
        Ok(Some(Self { transport: transport.build(), from, password, server, metrics: Arc::default() }))
    }

    /// Counts its mails in `metrics`.
    pub fn measured(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Connects, and authenticates if there is an account; sends nothing.
    pub async fn greet(&self) -> Result<(), String> {
        match self.transport.test_connection().await {
            Ok(true) => Ok(()),
            Ok(false) => Err("the SMTP server takes no mail at the moment".to_owned()),
            Err(error) => Err(self.explained(&error)),
        }
    }

    async fn deliver(&self, mail: OutgoingMail) -> Result<(), String> {
        let to: Address = mail.to.parse().map_err(|error| format!("{} cannot get mail: {error}", mail.to))?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(mail.subject)
            .message_id(Some(self.message_id()?))
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text)
            .map_err(|error| format!("the mail cannot be written: {error}"))?;
        let deadline = Duration::from_millis(mail.deadline_ms);
        match tokio::time::timeout(deadline, self.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.explained(&error)),
            Err(_) => Err("the SMTP server did not answer in time".to_owned()),
        }
    }

    /// An id that no other mail has, at the sender's domain.
    fn message_id(&self) -> Result<String, String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random bytes: {error}"))?;
        Ok(format!("<{:032x}@{}>", u128::from_le_bytes(bytes), self.from.email.domain()))
    }

    /// One line for the log. A server may repeat what it was sent, so the password is taken out.
    fn explained(&self, error: &lettre::transport::smtp::Error) -> String {
        let code = error.status().map(|code| code.to_string());
        // RFC 4954: an answer to AUTH, which may repeat the password in base64.
        if let Some(code @ ("432" | "454" | "530" | "534" | "535" | "538")) = code.as_deref() {
            return format!("the SMTP server does not accept the user and password ({code})");
        }
        let said = error.to_string();
        let said = match &self.password {
            Some(password) => said.replace(password.reveal(), "…"),
            None => said,
        };
        let said = said.chars().map(|c| if c.is_control() { ' ' } else { c });
        format!("the SMTP server: {}", said.take(SAID_CHARS_MAX).collect::<String>())
    }
}

fn protection(smtp: &SmtpSettings) -> Result<Tls, SettingError> {
    let parameters = || {
        let wrong = |error: lettre::transport::smtp::Error| SettingError {
            name: SMTP_URL,
            message: error.to_string(),
        };
        TlsParameters::new_rustls(smtp.host.clone()).map_err(wrong)
    };
    Ok(match smtp.protection {
        Protection::Tls => Tls::Wrapper(parameters()?),
        Protection::StartTls => Tls::Required(parameters()?),
        Protection::Plain => Tls::None,
    })
}

impl Mailer for SmtpMailer {
    fn send(&self, mail: OutgoingMail) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let party = Party::of_operator(PartyKind::Mail, "smtp");
            let mut seen = Exchange::begin(&self.metrics, &party, "smtp", &self.server);
            match self.deliver(mail).await {
                Ok(()) => seen.answered(SENT),
                Err(detail) => {
                    seen.not_sent(&detail);
                    return Err(detail);
                }
            }
            Ok(())
        })
    }
}
