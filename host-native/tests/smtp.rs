//! Mails over SMTP, against a server that speaks the protocol on a real socket and keeps what it was told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests: they panic when something is wrong"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sidetone::smtp::SmtpMailer;
use sidetone_engine::config::Config;
use sidetone_engine::ports::{Mailer, OutgoingMail};

const USER: &str = "anna@example.com";
const PASSWORD: &str = "hunter2:/";
const SECRET: &str = "a secret for the tests";

/// What the server does differently from one that takes every mail.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Kind,
    /// Offers AUTH LOGIN alone.
    LoginOnly,
    /// Repeats what it was told when it refuses a password.
    Echoes,
    /// Turns everybody away.
    Closed,
    /// Says nothing at all.
    Silent,
}

/// A server and everything that its clients have said, line by line.
struct Server {
    port: u16,
    said: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = said.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that hangs up ends its conversation.
                let _ = converse(stream.unwrap(), manner, &kept);
            }
        });
        Self { port, said }
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// A mailer for this server.
    fn mailer(&self, account: &str, parameters: &str) -> SmtpMailer {
        let url = format!("smtp://{account}127.0.0.1:{}{parameters}", self.port);
        mailer(&url, "Sidetone Ü <voice@example.com>").unwrap()
    }
}

fn mailer(url: &str, from: &str) -> Result<SmtpMailer, String> {
    let get = |name: &str| match name {
        "SIDETONE_SMTP_URL" => Some(url.to_owned()),
        "SIDETONE_MAIL_FROM" => Some(from.to_owned()),
        _ => None,
    };
    let config = Config::from_settings(get, "http://127.0.0.1", SECRET).map_err(|error| error.to_string())?;
    let mailer = SmtpMailer::from_settings(config.mail.as_ref()).map_err(|error| error.to_string())?;
    Ok(mailer.expect("mails leave by SMTP"))
}

fn converse(stream: TcpStream, manner: Manner, said: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    let mut read = || -> std::io::Result<String> {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end_matches("\r\n").to_owned();
        said.lock().unwrap().push(line.clone());
        Ok(line)
    };
    if manner == Manner::Silent {
        loop {
            read()?;
        }
    }
    let closed = manner == Manner::Closed;
    write!(out, "{}\r\n", if closed { "554 no mail here" } else { "220 mail.example.com ESMTP" })?;
    let plain = STANDARD.encode(format!("\0{USER}\0{PASSWORD}"));
    loop {
        let line = read()?;
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match verb.as_str() {
            "EHLO" if manner == Manner::LoginOnly => "250-mail.example.com\r\n250 AUTH LOGIN".to_owned(),
            "EHLO" => "250-mail.example.com\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN".to_owned(),
            "AUTH" if line == format!("AUTH PLAIN {plain}") => "235 welcome".to_owned(),
            "AUTH" if line == "AUTH LOGIN" => {
                write!(out, "334 {}\r\n", STANDARD.encode("Username:"))?;
                let user = read()?;
                write!(out, "334 {}\r\n", STANDARD.encode("Password:"))?;
                let is_right = user == STANDARD.encode(USER) && read()? == STANDARD.encode(PASSWORD);
                if is_right { "235 welcome" } else { "535 no" }.to_owned()
            }
            "AUTH" if manner == Manner::Echoes => format!("535 I do not know {line} {PASSWORD}"),
            "AUTH" => "535 no".to_owned(),
            "RCPT" if line.contains("nobody@") => "550 5.1.1 no such mailbox".to_owned(),
            "DATA" => {
                write!(out, "354 go on\r\n")?;
                while read()? != "." {}
                "250 queued".to_owned()
            }
            "QUIT" => "221 bye".to_owned(),
            _ => "250 ok".to_owned(),
        };
        write!(out, "{answer}\r\n")?;
    }
}

fn mail(to: &str) -> OutgoingMail {
    let text = "Your code is\n\n    123456\n\n.\n..two dots\nWithout it, nobody can sign in.\n".to_owned();
    OutgoingMail { to: to.to_owned(), subject: "123456 is your code".to_owned(), text, deadline_ms: 5_000 }
}

const ACCOUNT: &str = "anna%40example.com:hunter2%3A%2F@";

#[tokio::test]
async fn a_mail_arrives_as_it_was_written() {
    let server = Server::start(Manner::Kind);
    server.mailer(ACCOUNT, "").send(mail("ben@example.org")).await.unwrap();
    let said = server.said();
    assert_eq!(said[0], "EHLO example.com");
    for line in ["MAIL FROM:<voice@example.com>", "RCPT TO:<ben@example.org>", "DATA"] {
        assert!(said.iter().any(|one| one.starts_with(line)), "{line}: {said:#?}");
    }
    let at = said.iter().position(|line| line == "DATA").unwrap();
    let head_end = at + said[at..].iter().position(String::is_empty).unwrap();
    let header = |name: &str| {
        let all: Vec<_> = said[at + 1..head_end].iter().filter_map(|line| line.strip_prefix(name)).collect();
        assert_eq!(all.len(), 1, "{name}: {said:#?}");
        all[0].to_owned()
    };
    assert_eq!(header("Subject: "), "123456 is your code");
    assert_eq!(header("To: "), "ben@example.org");
    assert!(header("From: ").ends_with("<voice@example.com>"), "{said:#?}");
    assert!(header("Message-ID: ").ends_with("@example.com>"), "{said:#?}");
    header("Date: ");
    let body = &said[head_end + 1..said.len() - 1];
    // Lines that begin with a dot get another one on the way (RFC 5321, 4.5.2).
    let end = body.iter().position(|line| line == ".").unwrap();
    let text: Vec<_> =
        body[..end].iter().map(|line| line.strip_prefix('.').unwrap_or(line).to_owned()).collect();
    assert_eq!(text.join("\n").trim_end(), mail("").text.trim_end());
}

#[tokio::test]
async fn an_account_is_shown_in_the_way_that_the_server_knows() {
    let server = Server::start(Manner::LoginOnly);
    server.mailer(ACCOUNT, "").send(mail("ben@example.org")).await.unwrap();
    assert!(server.said().iter().any(|line| line == "AUTH LOGIN"));
    let server = Server::start(Manner::Kind);
    server.mailer("", "").send(mail("ben@example.org")).await.unwrap();
    assert!(!server.said().iter().any(|line| line.starts_with("AUTH")), "no account, no password");
}

#[tokio::test]
async fn a_refusal_is_told_without_the_password() {
    let server = Server::start(Manner::Kind);
    let why = server.mailer(ACCOUNT, "").send(mail("nobody@example.org")).await.unwrap_err();
    assert!(why.contains("550") && why.contains("no such mailbox"), "{why}");
    let why = Server::start(Manner::Closed).mailer("", "").send(mail("ben@example.org")).await.unwrap_err();
    assert!(why.contains("554"), "{why}");
    for account in [ACCOUNT, "anna:hunter2%3A%2F@"] {
        let server = Server::start(if account == ACCOUNT { Manner::Kind } else { Manner::Echoes });
        let sent = server.mailer(account, "").send(mail("ben@example.org")).await;
        if account == ACCOUNT {
            sent.unwrap();
            continue;
        }
        let why = sent.unwrap_err();
        assert!(why.contains("user and password") && why.contains("535"), "{why}");
        for secret in [PASSWORD.to_owned(), STANDARD.encode(format!("\0anna\0{PASSWORD}"))] {
            assert!(!why.contains(&secret), "{why}");
        }
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_left() {
    let server = Server::start(Manner::Silent);
    let begun = Instant::now();
    let why = server
        .mailer("", "")
        .send(OutgoingMail { deadline_ms: 200, ..mail("ben@example.org") })
        .await
        .unwrap_err();
    assert!(why.contains("in time") && begun.elapsed() < Duration::from_secs(3), "{why}");
    let nobody = mailer("smtp://127.0.0.1:1", "voice@example.com").unwrap();
    assert!(nobody.send(mail("ben@example.org")).await.is_err());
}

#[tokio::test]
async fn nothing_is_sent_without_the_tls_that_was_asked_for() {
    let server = Server::start(Manner::Kind);
    let why = server.mailer(ACCOUNT, "?tls=starttls").send(mail("ben@example.org")).await.unwrap_err();
    assert!(!why.contains(PASSWORD), "{why}");
    let told = server.said();
    assert!(told.iter().all(|line| line.starts_with("EHLO") || line == "QUIT"), "{told:#?}");
}

#[tokio::test]
async fn no_field_adds_a_header_or_a_recipient() {
    let server = Server::start(Manner::Kind);
    let mailer = server.mailer("", "");
    for to in
        ["ben@example.org\r\nBcc: eve@evil.example", "ben@example.org>\r\nRCPT TO:<eve@evil.example", ""]
    {
        assert!(mailer.send(mail(to)).await.is_err(), "{to}");
    }
    assert_eq!(server.said(), Vec::<String>::new(), "refused before anything is sent");
    let subject = "Hi\r\nBcc: eve@evil.example\r\n\r\nbody".to_owned();
    // Refused or encoded: both are fine.
    let _ = mailer.send(OutgoingMail { subject, ..mail("ben@example.org") }).await;
    let told = server.said();
    assert!(!told.iter().any(|line| line.to_ascii_lowercase().starts_with("bcc")), "{told:#?}");
    assert!(told.iter().filter(|line| line.starts_with("RCPT")).count() <= 1, "{told:#?}");
}

#[test]
fn a_wrong_sender_is_named_at_the_start() {
    for from in ["Sidetone", "Sidetone <voice>", "a@b.example\r\nBcc: c@d.example"] {
        let why = mailer("smtps://mail.example.com", from).err().expect("no sender");
        assert!(why.starts_with("SIDETONE_MAIL_FROM"), "{why}");
    }
    mailer("smtps://mail.example.com", "voice@example.com").unwrap();
}
