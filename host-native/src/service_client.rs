//! Requests of the command line to a service, by its URL and a key of it.
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use reqwest::{Client, Request, RequestBuilder, Url};
use sidetone_engine::base::setting::Secret;

use crate::settings;
use crate::text::clean;

/// A page of a list has up to 4 MiB, a part of a workspace that moves up to 16 MiB.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Tries of a request.
const TRIES: u32 = 5;
/// The first pause between two tries; each further one is twice as long.
const PAUSE_MS: u64 = 200;
/// A `Retry-After` is kept up to this.
const RETRY_AFTER_SECONDS_MAX: u64 = 30;
/// The deadline of a try.
const DEADLINE_SECONDS: u64 = 60;
/// The same line is not printed again for so long: many requests at once wait for the same.
const TOLD_SECONDS: u64 = 5;

/// A service, for the commands that ask one: assistants as code with an API key, moves of workspaces with the operator's.
///
/// Tries, their time, the pauses between them and the size of an answer are bounded. No redirect is followed, so that the
/// key goes to this service alone, and no error has the key in it.
///
/// A request is sent again when no whole answer came, and when the caller says that it may be answered later. The service
/// may have done it the first time, so every request has to be one that can be repeated:
///
/// - Assistants as code create with an `Idempotency-Key`. What they change or delete is sent once: before the next try they
///   look at it again, as somebody else may have changed it, or the first try may have.
/// - A step of a move says the state that it leads to, and a part the place that it belongs to: a service that is there
///   already says so.
#[derive(Debug, Clone)]
pub struct ServiceClient {
    client: Client,
    /// Without a slash at the end, and without anything secret: people are told it.
    url: String,
    /// What gives another URL.
    named_by: String,
    key: Secret,
    /// The lines that were printed last, and when.
    told: Arc<Mutex<Vec<(String, Instant)>>>,
}

/// A try that had no answer.
#[derive(Debug)]
pub struct Unanswered {
    problem: String,
    /// How long the service wants to be left alone.
    wait: Option<Duration>,
}

/// How often a request is tried again, and how soon.
#[derive(Debug)]
pub struct Patience {
    left: u32,
    pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { left: TRIES - 1, pause: Duration::from_millis(PAUSE_MS) }
    }
}

impl Patience {
    /// Whether no try has failed yet.
    pub fn is_fresh(&self) -> bool {
        self.left == TRIES - 1
    }
}

impl ServiceClient {
    /// For the service with this URL, which `option` has given: `http` or `https`, without a user, a query and a fragment.
    pub fn new(option: &str, url: &str, key: &str) -> Result<Self, String> {
        Self::with_deadline(option, url, key, Duration::from_secs(DEADLINE_SECONDS))
    }

    fn with_deadline(option: &str, url: &str, key: &str, deadline: Duration) -> Result<Self, String> {
        // Neither this error nor the next one shows it.
        if has_user(url) {
            return Err(format!(
                "{option} must not have a user name or password in it: leave them out, the key says who asks"
            ));
        }
        // Paths are added at its end.
        if url.contains(['?', '#']) {
            return Err(format!(
                "{option} must be a URL without a query and a fragment: leave out what follows ? or #"
            ));
        }
        let parsed = Url::parse(url)
            .map_err(|_| format!("{option} {url}: is not a URL such as http://127.0.0.1:8787"))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(format!("{option} {url}: has to begin with https:// or http://"));
        }
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("sidetone/", env!("CARGO_PKG_VERSION")))
            .timeout(deadline);
        let client = builder.build().map_err(|error| error.to_string())?;
        let named_by = match option {
            "--url" | "SIDETONE_URL" => "--url or SIDETONE_URL".to_owned(),
            other => other.to_owned(),
        };
        let (url, key) = (url.trim_end_matches('/').to_owned(), Secret::new(key));
        Ok(Self { client, url, named_by, key, told: Arc::default() })
    }

    /// Its URL, which people are told.
    pub fn place(&self) -> &str {
        &self.url
    }

    /// What gives another URL.
    pub fn named_by(&self) -> &str {
        &self.named_by
    }

    /// A request to a path, which may have a query, with the key.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(self.key.reveal())
    }

    /// Sends a request that can be repeated until it is answered. `later` says of an answer why the same request may get
    /// another one later; `None` takes it. The error is why the last try had no answer.
    pub async fn send(
        &self,
        request: RequestBuilder,
        later: impl Fn(&Response<Bytes>) -> Option<String>,
    ) -> Result<Response<Bytes>, String> {
        let request = request.build().map_err(|error| cause(&error).to_string())?;
        let mut patience = Patience::default();
        loop {
            match self.tried(&request, &later).await {
                Ok(response) => return Ok(response),
                Err(unanswered) => self.wait(&mut patience, unanswered).await?,
            }
        }
    }

    /// Sends a request once. Without an answer, the caller may [`wait`](Self::wait) and send it again; the service may have
    /// done it all the same.
    pub async fn send_once(
        &self,
        request: RequestBuilder,
        later: impl Fn(&Response<Bytes>) -> Option<String>,
    ) -> Result<Result<Response<Bytes>, Unanswered>, String> {
        let request = request.build().map_err(|error| cause(&error).to_string())?;
        Ok(self.tried(&request, &later).await)
    }

    /// Waits before the next try, and says so on standard error. The error is why the last try had no answer.
    pub async fn wait(&self, patience: &mut Patience, unanswered: Unanswered) -> Result<(), String> {
        let Unanswered { problem, wait } = unanswered;
        if patience.left == 0 {
            return Err(problem);
        }
        let pause = wait.unwrap_or(patience.pause);
        patience.left -= 1;
        patience.pause *= 2;
        let line = format!(
            "sidetone: {}: {}; waiting {:.1} s for try {} of {TRIES}",
            self.url,
            problem.trim_end_matches('.'),
            pause.as_secs_f64(),
            TRIES - patience.left
        );
        if self.is_news(&line) {
            eprintln!("{}", clean(&line));
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Whether a line was not printed just now.
    fn is_news(&self, line: &str) -> bool {
        let Ok(mut told) = self.told.lock() else { return true };
        told.retain(|(_, at)| at.elapsed() < Duration::from_secs(TOLD_SECONDS));
        let is_news = told.iter().all(|(known, _)| known != line);
        if is_news {
            told.push((line.to_owned(), Instant::now()));
        }
        is_news
    }

    async fn tried(
        &self,
        request: &Request,
        later: &impl Fn(&Response<Bytes>) -> Option<String>,
    ) -> Result<Response<Bytes>, Unanswered> {
        let response = self.once(request).await.map_err(|problem| Unanswered { problem, wait: None })?;
        match later(&response) {
            Some(problem) => Err(Unanswered { problem, wait: retry_after(response.headers()) }),
            None => Ok(response),
        }
    }

    async fn once(&self, request: &Request) -> Result<Response<Bytes>, String> {
        let request = request.try_clone().ok_or("its body cannot be sent again")?;
        let mut received = self.client.execute(request).await.map_err(|error| self.told(&error))?;
        let mut bytes = Vec::new();
        while let Some(piece) = received.chunk().await.map_err(|error| self.told(&error))? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err("the answer is too large".to_owned());
            }
        }
        let mut response = Response::new(Bytes::from(bytes));
        *response.status_mut() = received.status();
        *response.headers_mut() = received.headers().clone();
        Ok(response)
    }

    /// Why there is no answer, and what to do where that is known.
    fn told(&self, error: &reqwest::Error) -> String {
        let cause = cause(error);
        if error.is_timeout() || (error.is_connect() && !is_of_tls(cause)) {
            return format!("{cause}; does a service run there? {} names another", self.named_by);
        }
        with_hint(cause.to_string())
    }
}

/// Why there is no answer, with what to do if the reason is HTTPS at a port of plain HTTP. `sidetone doctor` knows no more
/// of a reason than its text.
pub fn with_hint(reason: String) -> String {
    let is_plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
    match reason == is_plain.to_string() {
        true => format!("{reason}: it does not speak HTTPS there; perhaps http://"),
        false => reason,
    }
}

/// What is wrong with an answer that no service of Sidetone gives, and what to do: `named_by` gives another URL.
pub fn strange(response: &Response<Bytes>, named_by: &str) -> String {
    let status = response.status().as_u16();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    let kind = kind.map_or_else(String::new, |kind| format!(", {}", kind.trim()));
    format!("does not answer like a Sidetone service (status {status}{kind}); check {named_by}")
}

/// The URL that a command is given, and what gives it: `--url`, or else SIDETONE_URL.
pub fn given_url(option: Option<&str>) -> Option<(&'static str, String)> {
    match option {
        Some(url) => Some(("--url", url.to_owned())),
        None => settings::text("SIDETONE_URL").map(|url| ("SIDETONE_URL", url)),
    }
}

/// Whether a URL has a user name or a password. Neither is sent, and both would be shown.
fn has_user(url: &str) -> bool {
    match Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => {
            !parsed.username().is_empty() || parsed.password().is_some()
        }
        // It is refused for another reason, and shown then.
        _ => url.contains('@'),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.min(RETRY_AFTER_SECONDS_MAX)))
}

/// The innermost reason: the outer ones only say that a request failed.
fn cause(error: &reqwest::Error) -> &(dyn Error + 'static) {
    let mut reason: &(dyn Error + 'static) = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason
}

/// Whether a reason is an error of TLS: one of input and output may have it in it.
fn is_of_tls(reason: &(dyn Error + 'static)) -> bool {
    match reason.downcast_ref::<io::Error>() {
        Some(error) => error.get_ref().is_some_and(|inner| is_of_tls(inner)),
        None => reason.is::<rustls::Error>(),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_request_is_repeated_until_the_caller_takes_the_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let client = ServiceClient::new("--url", &url, "the-key").unwrap();
        let serve = async {
            let mut asked = Vec::new();
            for status in ["503 Service Unavailable", "503 Service Unavailable", "200 OK"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\nbody") {
                    request.push(stream.read_u8().await.unwrap());
                }
                asked.push(String::from_utf8(request).unwrap());
                let head = format!("HTTP/1.1 {status}\r\nretry-after: 0\r\ncontent-length: 0\r\n");
                stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.unwrap();
            }
            asked
        };
        let later = |response: &Response<Bytes>| (response.status() == 503).then(|| "busy".to_owned());
        let request = client.request(Method::POST, "/path?query").body("body");
        let (answer, asked) = tokio::join!(client.send(request, later), serve);
        assert_eq!(answer.unwrap().status(), 200);
        for one in &asked {
            assert!(one.starts_with("POST /path?query HTTP/1.1\r\n"), "{one}");
            assert!(one.contains("authorization: Bearer the-key\r\n"), "{one}");
        }
    }

    /// The error of one try at a URL.
    async fn refused(option: &str, url: &str) -> String {
        let client = ServiceClient::new(option, url, "the-key").unwrap();
        client.once(&client.request(Method::GET, "/").build().unwrap()).await.unwrap_err()
    }

    #[tokio::test]
    async fn where_nothing_answers_the_error_says_what_to_do() {
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let url = format!("http://{nobody}");
        let told = refused("--url", &url).await;
        assert!(told.starts_with("Connection refused"), "{told}");
        assert!(told.ends_with("; does a service run there? --url or SIDETONE_URL names another"), "{told}");
        let told = refused("--from", &url).await;
        assert!(told.ends_with("; does a service run there? --from names another"), "{told}");
    }

    #[tokio::test]
    async fn where_nothing_is_said_the_error_says_what_to_do() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let deadline = Duration::from_millis(50);
        let client = ServiceClient::with_deadline("--url", &url, "the-key", deadline).unwrap();
        let told = client.once(&client.request(Method::GET, "/").build().unwrap()).await.unwrap_err();
        let advice = "timed out; does a service run there? --url or SIDETONE_URL names another";
        assert!(told.ends_with(advice), "{told}");
    }

    #[tokio::test]
    async fn a_request_that_is_sent_once_may_be_sent_again_until_patience_ends() {
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let client = ServiceClient::new("--url", &format!("http://{nobody}"), "the-key").unwrap();
        let request = client.request(Method::DELETE, "/path");
        let unanswered = client.send_once(request, |_| None).await.unwrap().unwrap_err();
        assert!(unanswered.problem.starts_with("Connection refused") && unanswered.wait.is_none());
        let mut patience = Patience::default();
        let busy = || Unanswered { problem: "busy".to_owned(), wait: Some(Duration::ZERO) };
        for _ in 1..TRIES {
            client.wait(&mut patience, busy()).await.unwrap();
            assert!(!patience.is_fresh());
        }
        assert_eq!(client.wait(&mut patience, busy()).await, Err("busy".to_owned()));
    }

    #[test]
    fn what_many_requests_wait_for_is_said_once() {
        let client = ServiceClient::new("--url", "https://voice.example.com", "the-key").unwrap();
        assert_eq!(["one", "one", "two", "one"].map(|line| client.is_news(line)), [true, false, true, false]);
    }

    #[test]
    fn a_url_with_something_secret_is_refused_and_not_shown() {
        let new = |url: &str| ServiceClient::new("--from", url, "the-key");
        // Also one that is no URL.
        for url in [
            "http://user:secret@host",
            "https://secret@host/x",
            "user:secret@host",
            "http://user:secret/w@host:x",
        ] {
            let told = new(url).unwrap_err();
            assert!(told.starts_with("--from must not have a user name or password in it: "), "{told}");
            assert!(!told.contains("secret"), "{told}");
        }
        for url in [
            "https://host/x/?token=secret",
            "https://host/#secret",
            "host/?token=secret",
            "host:1/?token=secret",
        ] {
            let told = new(url).unwrap_err();
            assert!(
                told.starts_with("--from must be a URL without a query") && !told.contains("secret"),
                "{told}"
            );
        }
        let places =
            ["https://host/@x/", "http://127.0.0.1:8787/"].map(|url| new(url).unwrap().place().to_owned());
        assert_eq!(places, ["https://host/@x", "http://127.0.0.1:8787"]);
    }

    #[tokio::test]
    async fn https_at_a_port_of_plain_http_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // All of it: what is left unread would break the connection.
            let _ = stream.read(&mut [0; 8_192]).await;
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        };
        let (told, ()) = tokio::join!(refused("--url", &url), serve);
        assert!(told.ends_with(": it does not speak HTTPS there; perhaps http://"), "{told}");
    }

    #[test]
    fn an_answer_of_another_server_is_told() {
        let told = |kind: Option<&str>| {
            let mut response = Response::builder().status(404);
            if let Some(kind) = kind {
                response = response.header(header::CONTENT_TYPE, kind);
            }
            strange(&response.body(Bytes::new()).unwrap(), "--url")
        };
        let with_kind = "does not answer like a Sidetone service (status 404, text/html); check --url";
        assert_eq!(told(Some("text/html; charset=utf-8")), with_kind);
        assert_eq!(told(None), "does not answer like a Sidetone service (status 404); check --url");
    }

    #[test]
    fn a_service_says_how_long_the_pause_is_within_a_bound() {
        let after = |text: &'static str| {
            retry_after(&HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(text))]))
        };
        assert_eq!(after("2"), Some(Duration::from_secs(2)));
        assert_eq!(after("3600"), Some(Duration::from_secs(RETRY_AFTER_SECONDS_MAX)));
        assert_eq!((after("soon"), retry_after(&HeaderMap::new())), (None, None));
    }

    #[test]
    fn no_error_and_no_debug_text_has_the_key() {
        for url in ["ftp://voice.example.com", "voice.example.com"] {
            let told = ServiceClient::new("--url", url, "the-key").unwrap_err();
            assert!(told.contains(url) && !told.contains("the-key"), "{told}");
        }
        let told = ServiceClient::new("--url", "127.0.0.1:18300", "the-key").unwrap_err();
        assert_eq!(told, "--url 127.0.0.1:18300: is not a URL such as http://127.0.0.1:8787");
        let client = ServiceClient::new("--url", "https://voice.example.com", "the-key").unwrap();
        let told = format!("{client:?} {:?}", client.request(Method::GET, "/"));
        assert!(!told.contains("the-key"), "{told}");
    }
}
