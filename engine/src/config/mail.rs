//! How the dashboard's mails leave: by a JSON API over HTTP, or by SMTP where the host can.
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::base::setting::{Secret, SettingError};

/// The setting with the SMTP server.
pub const SMTP_URL: &str = "SIDETONE_SMTP_URL";
/// The setting with the sender.
pub const MAIL_FROM: &str = "SIDETONE_MAIL_FROM";

/// How mails are sent, and by whom.
#[derive(Clone)]
pub struct MailSettings {
    /// The sender, `Name <address>`.
    pub from: String,
    /// The way they leave.
    pub route: MailRoute,
}

/// The way that mails leave.
#[derive(Clone)]
pub enum MailRoute {
    /// A JSON mail API, in Resend's form.
    Api {
        /// Where a mail is sent to with `POST`.
        url: String,
        /// Sent as a bearer token.
        api_key: Option<Secret>,
    },
    /// An SMTP server. The host sends: [`Mailer`](crate::ports::Mailer).
    Smtp(SmtpSettings),
}

/// An SMTP server (RFC 5321) and the account there.
#[derive(Clone)]
pub struct SmtpSettings {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub protection: Protection,
    /// The user and the password.
    pub account: Option<(String, Secret)>,
}

/// How a connection to an SMTP server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// TLS from the first byte (RFC 8314).
    Tls,
    /// TLS after STARTTLS (RFC 3207); without it, nothing is sent.
    StartTls,
    /// None.
    Plain,
}

impl MailSettings {
    pub(super) fn from_settings(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let (name, route) = match (get("SIDETONE_MAIL_URL"), get(SMTP_URL)) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(SettingError {
                    name: SMTP_URL,
                    message: "cannot be set together with SIDETONE_MAIL_URL: mails leave one way; remove one of them"
                        .to_owned(),
                });
            }
            (Some(url), None) => {
                let url = super::values::http_url("SIDETONE_MAIL_URL", &url)?;
                let api_key = get("SIDETONE_MAIL_API_KEY").map(Secret::new);
                ("SIDETONE_MAIL_URL", MailRoute::Api { url, api_key })
            }
            (None, Some(url)) => (SMTP_URL, MailRoute::Smtp(SmtpSettings::parse(&url)?)),
        };
        let missing = || SettingError {
            name: MAIL_FROM,
            message: format!("is required with {name}: the sender, such as Sidetone <voice@example.com>"),
        };
        Ok(Some(Self { from: get(MAIL_FROM).ok_or_else(missing)?, route }))
    }

    /// The SMTP server, if mails leave that way.
    pub fn smtp(&self) -> Option<&SmtpSettings> {
        match &self.route {
            MailRoute::Smtp(smtp) => Some(smtp),
            MailRoute::Api { .. } => None,
        }
    }
}

impl SmtpSettings {
    /// Reads `smtp://user:password@host:587` or `smtps://user:password@host:465`. No error contains the URL: it has the
    /// password in it.
    fn parse(text: &str) -> Result<Self, SettingError> {
        let wrong = |message: &str| SettingError { name: SMTP_URL, message: message.to_owned() };
        const FORM: &str = "is not a URL such as smtp://user:password@mail.example.com:587 or \
            smtps://user:password@mail.example.com:465 (percent-encode special characters of user and password)";
        let url = Url::parse(text.trim()).map_err(|_| wrong(FORM))?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong(FORM))?;
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(wrong(FORM));
        }
        let is_local = is_loopback(host);
        let protection = match (url.scheme(), url.query()) {
            ("smtps", None) => Protection::Tls,
            // Nobody else hears what is said on this machine, and no certificate is valid for it.
            ("smtp", None) if is_local => Protection::Plain,
            ("smtp", None | Some("tls=starttls")) => Protection::StartTls,
            ("smtp", Some("tls=none")) => Protection::Plain,
            ("smtp" | "smtps", Some(_)) => {
                return Err(wrong(
                    "knows no other parameter than tls=none and tls=starttls, both of smtp://",
                ));
            }
            _ => return Err(wrong(FORM)),
        };
        let decoded = |part: &str| percent_decode_str(part).decode_utf8().map(|text| text.into_owned());
        let user = decoded(url.username()).map_err(|_| wrong(FORM))?;
        let password = url.password().map(decoded).transpose().map_err(|_| wrong(FORM))?;
        let account = match (user.is_empty(), password) {
            (true, None) => None,
            (false, Some(password)) if !password.is_empty() => Some((user, Secret::new(password))),
            _ => return Err(wrong("needs both a user and a password, or neither")),
        };
        if account.is_some() && protection == Protection::Plain && !is_local {
            return Err(wrong(
                "has tls=none and a password, which everybody on the way could read; remove one",
            ));
        }
        let port = url.port().unwrap_or(match protection {
            Protection::Tls => 465,
            Protection::StartTls => 587,
            Protection::Plain => 25,
        });
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, protection, account })
    }
}

fn is_loopback(host: &str) -> bool {
    match Host::parse(host) {
        Ok(Host::Ipv4(address)) => address.is_loopback(),
        Ok(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        // `url` parses no numbers in URLs of other schemes than http.
        Ok(Host::Domain(name)) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<SmtpSettings, String> {
        SmtpSettings::parse(url).map_err(|error| error.message)
    }

    #[test]
    fn the_url_says_how_the_connection_is_protected() {
        for (url, protection, port) in [
            ("smtps://u:p@mail.example.com", Protection::Tls, 465),
            ("smtp://u:p@mail.example.com", Protection::StartTls, 587),
            ("smtp://mail.example.com:2525", Protection::StartTls, 2525),
            ("smtp://relay.internal?tls=none", Protection::Plain, 25),
            ("smtp://u:p@localhost:1025", Protection::Plain, 1025),
            ("smtp://u:p@127.0.0.1", Protection::Plain, 25),
            ("smtp://[::1]:1025", Protection::Plain, 1025),
            ("smtp://u:p@localhost?tls=starttls", Protection::StartTls, 587),
        ] {
            let smtp = read(url).unwrap_or_else(|why| panic!("{url}: {why}"));
            assert_eq!((smtp.protection, smtp.port), (protection, port), "{url}");
        }
        let smtp = read("smtps://anna%40example.com:p%3Aw%2F@mail.example.com/").unwrap();
        let (user, password) = smtp.account.unwrap();
        assert_eq!(
            (&*user, password.reveal(), &*smtp.host),
            ("anna@example.com", "p:w/", "mail.example.com")
        );
        assert_eq!(read("smtp://[::1]:1025").unwrap().host, "::1");
    }

    #[test]
    fn a_wrong_url_is_refused_without_showing_the_password() {
        for url in [
            "mail.example.com",
            "http://u:hunter2@mail.example.com",
            "smtp://",
            "smtp://u:hunter2@mail.example.com?tls=none",
            "smtp://u:hunter2@mail.example.com?tls=no",
            "smtps://u:hunter2@mail.example.com?tls=none",
            "smtp://u@mail.example.com",
            "smtp://:hunter2@mail.example.com",
            "smtp://u:hunter2@mail.example.com/inbox",
            "smtp://u:hunter2@mail.example.com:99999",
        ] {
            let why = read(url).err().unwrap_or_else(|| panic!("{url} was taken"));
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn mails_leave_one_way_and_name_a_sender() {
        let read = |pairs: &[(&str, &str)]| {
            let get = |name: &str| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            MailSettings::from_settings(get).map_err(|error| (error.name, error.message))
        };
        let (api, smtp) =
            (("SIDETONE_MAIL_URL", "https://mail.example/send"), (SMTP_URL, "smtps://mail.example"));
        let from = (MAIL_FROM, "voice@example.com");
        assert!(
            read(&[api, smtp, from])
                .err()
                .is_some_and(|(name, why)| { name == SMTP_URL && why.contains("SIDETONE_MAIL_URL") })
        );
        for one in [api, smtp] {
            assert_eq!(read(&[one]).err().map(|(name, _)| name), Some(MAIL_FROM));
            assert!(read(&[one, from]).is_ok_and(|mail| mail.is_some()));
        }
        assert!(read(&[from]).is_ok_and(|mail| mail.is_none()));
    }
}
