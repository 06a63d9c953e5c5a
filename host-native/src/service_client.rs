//! Requests of the command line to a service, by its URL and a key of it.
use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use reqwest::{Client, Request, RequestBuilder, Url};
use sidetone_engine::base::setting::Secret;

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

/// A service, for the commands that ask one: assistants as code with an API key, moves of workspaces with the operator's.
///
/// Tries, their time, the pauses between them and the size of an answer are bounded. No redirect is followed, so that the
/// key goes to this service alone, and no error has the key in it.
///
/// A request is sent again when no whole answer came, and when the caller says that it may be answered later. The service
/// may have done it the first time, so every request has to be one that can be repeated:
///
/// - Assistants as code create with an `Idempotency-Key`. They change with `If-Match`, after which they look whether a
///   refused change is their own; what has no revision is set to the same values again. What is deleted stays deleted.
/// - A step of a move says the state that it leads to, and a part the place that it belongs to: a service that is there
///   already says so.
#[derive(Debug, Clone)]
pub struct ServiceClient {
    client: Client,
    url: String,
    /// What gives another URL.
    named_by: String,
    key: Secret,
}

impl ServiceClient {
    /// For the service with this URL, which `option` has given.
    pub fn new(option: &str, url: &str, key: &str) -> Result<Self, String> {
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
            .timeout(Duration::from_secs(DEADLINE_SECONDS));
        let client = builder.build().map_err(|error| error.to_string())?;
        let named_by = match option {
            "--url" => "--url or SIDETONE_URL".to_owned(),
            other => other.to_owned(),
        };
        Ok(Self { client, url: url.trim_end_matches('/').to_owned(), named_by, key: Secret::new(key) })
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> &str {
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
        let mut pause = Duration::from_millis(PAUSE_MS);
        let mut left = TRIES;
        loop {
            left -= 1;
            let (problem, wait) = match self.once(&request).await {
                Ok(response) => match later(&response) {
                    Some(problem) => (problem, retry_after(response.headers())),
                    None => return Ok(response),
                },
                Err(problem) => (problem, None),
            };
            if left == 0 {
                return Err(problem);
            }
            tokio::time::sleep(wait.unwrap_or(pause)).await;
            pause *= 2;
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
        if error.is_connect() && !is_of_tls(cause) {
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
