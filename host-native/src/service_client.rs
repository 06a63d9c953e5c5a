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
        match tls_error(cause) {
            Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
                format!("{cause}: it does not speak HTTPS there; perhaps http://")
            }
            None if error.is_connect() => {
                format!("{cause}; does a service run there? {} names another", self.named_by)
            }
            _ => cause.to_string(),
        }
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

/// The error of TLS that a reason is: one of input and output may have it in it.
fn tls_error<'a>(reason: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match reason.downcast_ref::<io::Error>() {
        Some(error) => tls_error(error.get_ref()?),
        None => reason.downcast_ref(),
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
