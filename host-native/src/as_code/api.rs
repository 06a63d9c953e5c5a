//! Requests to a service, by its URL and an API key.
use bytes::Bytes;
use http::{Method, Response};
use reqwest::RequestBuilder;
use serde_json::Value;
use sidetone_engine::base::limits::ASSISTANTS_MAX;
use sidetone_engine::operations::operation::Operation;

use super::failure::{Failure, told};
use crate::service_client::{Patience, ServiceClient, Unanswered, strange};
use crate::text::{count, size};

/// Rows of a list: a workspace has no more of any kind that is listed here.
const ROWS_MAX: usize = ASSISTANTS_MAX as usize;
/// Size of all parts of a list: six are read at once, and kept.
const LIST_BYTES_MAX: usize = 512 * 1024 * 1024;

/// A service.
#[derive(Debug, Clone)]
pub struct Api {
    client: ServiceClient,
}

/// A response below 500.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body; null without one.
    pub json: Value,
    /// Whether it is that of an earlier request with the same key.
    pub is_replay: bool,
    next: Option<String>,
    /// The size of the body.
    bytes: usize,
    /// What is wrong if it is none of Sidetone's.
    strange: String,
}

impl Answer {
    fn of(response: &Response<Bytes>) -> Self {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        Self {
            status: response.status().as_u16(),
            json: serde_json::from_slice(response.body()).unwrap_or(Value::Null),
            is_replay: header("idempotent-replayed") == Some("true"),
            next: header("link").and_then(next_link).map(str::to_owned),
            bytes: response.body().len(),
            strange: String::new(),
        }
    }

    /// The code of the error.
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    /// The body of a success; otherwise what the service says is wrong.
    pub fn success(self) -> Result<Value, Failure> {
        match self.status < 300 && !self.json.is_null() {
            true => Ok(self.json),
            false => Err(self.failure()),
        }
    }

    /// What the service says is wrong; if it says nothing, that it is no service of Sidetone.
    pub fn failure(&self) -> Failure {
        Failure(told(&self.json["error"], "      ").unwrap_or_else(|| self.strange.clone()))
    }
}

/// What is sent with a request.
#[derive(Debug, Default, Clone, Copy)]
pub struct Extras<'a> {
    /// The body.
    pub body: Option<&'a Value>,
    /// `If-Match`.
    pub revision: Option<i64>,
    /// `Idempotency-Key`.
    pub key: Option<&'a str>,
}

impl Api {
    /// For the service with this URL, which `option` has given.
    pub fn new(option: &str, url: &str, key: &str) -> Result<Self, Failure> {
        Ok(Self { client: ServiceClient::new(option, url, key).map_err(Failure)? })
    }

    /// The service's URL as people are told it.
    pub fn place(&self) -> &str {
        self.client.place()
    }

    /// Calls an operation, whose path has at most one value, until it is answered: one that reads, or has a key or a
    /// revision, so that what somebody else does between two tries is safe, or is to be written over (`--force`).
    pub async fn call(&self, operation: &Operation, id: &str, extras: Extras<'_>) -> Result<Answer, Failure> {
        self.send(operation.method.clone(), &path_of(operation, id), extras).await
    }

    /// Calls an operation once. Without an answer, it may be done or not, now or soon: the caller [waits](Self::wait), looks
    /// again, and decides whether it is still to be done.
    pub async fn call_once(
        &self,
        operation: &Operation,
        id: &str,
        extras: Extras<'_>,
    ) -> Result<Result<Answer, Unanswered>, Failure> {
        let request = self.request(operation.method.clone(), &path_of(operation, id), extras);
        let sent = self.client.send_once(request, later).await.map_err(|problem| self.failure(&problem))?;
        Ok(sent.map(|response| self.answer(&response)))
    }

    /// Waits before the next try; the failure is that there was none with an answer.
    pub async fn wait(&self, patience: &mut Patience, unanswered: Unanswered) -> Result<(), Failure> {
        self.client.wait(patience, unanswered).await.map_err(|problem| self.failure(&problem))
    }

    /// All rows of a list.
    pub async fn list(&self, operation: &Operation) -> Result<Vec<Value>, Failure> {
        let mut list = List::default();
        loop {
            let path = match &list.query {
                Some(query) => format!("{}?{query}", operation.path),
                None => operation.path.to_owned(),
            };
            let mut answer = self.send(Method::GET, &path, Extras::default()).await?;
            let (next, bytes) = (answer.next.take(), answer.bytes);
            // The link has the URL that the service knows of itself; a tunnel may have another one.
            let next = next.as_deref().and_then(|next| next.split_once('?')).map(|(_, query)| query);
            let url = self.client.place();
            let Value::Array(part) = answer.success()? else {
                return Err(Failure(format!("{url}{path} did not return a list")));
            };
            match list.add(part, bytes, next) {
                Ok(true) => {}
                Ok(false) => return Ok(list.rows),
                Err(problem) => {
                    let hint = "check that the URL is that of a Sidetone server, without a cache before it";
                    return Err(Failure(format!("{url}{path} {problem}; {hint}")));
                }
            }
        }
    }

    async fn send(&self, method: Method, path: &str, extras: Extras<'_>) -> Result<Answer, Failure> {
        let sent = self.client.send(self.request(method, path, extras), later).await;
        sent.map(|response| self.answer(&response)).map_err(|problem| self.failure(&problem))
    }

    fn request(&self, method: Method, path: &str, extras: Extras<'_>) -> RequestBuilder {
        let mut request = self.client.request(method, path);
        if let Some(body) = extras.body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        if let Some(revision) = extras.revision {
            request = request.header("if-match", format!("\"{revision}\""));
        }
        if let Some(key) = extras.key {
            request = request.header("idempotency-key", key);
        }
        request
    }

    fn answer(&self, response: &Response<Bytes>) -> Answer {
        let strange = format!("{}: {}", self.client.place(), strange(response, self.client.named_by()));
        Answer { strange, ..Answer::of(response) }
    }

    fn failure(&self, problem: &str) -> Failure {
        Failure(format!("{}: {problem}", self.client.place()))
    }
}

/// The path of an operation, which has at most one value.
fn path_of(operation: &Operation, id: &str) -> String {
    match operation.path_names().next() {
        Some(name) => operation.path.replace(&format!("{{{name}}}"), id),
        None => operation.path.to_owned(),
    }
}

/// A list, as far as it was read. It ends, whatever the server does.
#[derive(Debug, Default)]
struct List {
    rows: Vec<Value>,
    /// The size of the parts.
    bytes: usize,
    /// What asks for the next part.
    query: Option<String>,
}

impl List {
    /// Adds a part of this size, with the query for the next one. Returns whether there is one, or what is wrong.
    fn add(&mut self, part: Vec<Value>, bytes: usize, next: Option<&str>) -> Result<bool, String> {
        let leads_on = !part.is_empty() && next != self.query.as_deref();
        self.rows.extend(part);
        self.bytes += bytes;
        if self.rows.len() > ROWS_MAX {
            let rows = count(ROWS_MAX as u64);
            return Err(format!(
                "is part of a list of more than {rows} rows, and a workspace cannot have so many"
            ));
        }
        if self.bytes > LIST_BYTES_MAX {
            let bytes = size(LIST_BYTES_MAX as u64);
            return Err(format!("is part of a list of more than {bytes}, which is too large"));
        }
        if next.is_some() && !leads_on {
            return Err("names a next part of the list that leads no further".to_owned());
        }
        self.query = next.map(str::to_owned);
        Ok(next.is_some())
    }
}

/// Why the same request may be answered later; `None` if this is the answer.
fn later(response: &Response<Bytes>) -> Option<String> {
    if response.status().is_success() {
        return None;
    }
    let answer = Answer::of(response);
    match (answer.status, answer.code()) {
        // It passes after minutes.
        (_, "too_many_invalid_credentials") => None,
        (_, "request_in_progress") => Some("the same request is still running".to_owned()),
        (status @ (429 | 502 | 503 | 504), _) => {
            let message = answer.json["error"]["message"].as_str().map(str::to_owned);
            Some(message.unwrap_or_else(|| format!("the server answered HTTP {status}")))
        }
        _ => None,
    }
}

/// The URL in `<URL>; rel="next"`.
fn next_link(header: &str) -> Option<&str> {
    header.split_once('<')?.1.split_once(">; rel=\"next\"").map(|(url, _)| url)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::as_code::kind::operation;

    #[tokio::test]
    async fn a_server_that_repeats_a_part_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api =
            Api::new("--url", &format!("http://{}", listener.local_addr().unwrap()), "the-key").unwrap();
        let serve = async {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(stream.read_u8().await.unwrap());
                }
                let head = "HTTP/1.1 200 OK\r\nlink: <https://voice.example.com/x?after=1>; rel=\"next\"";
                let rest = "content-length: 3\r\nconnection: close\r\n\r\n[1]";
                stream.write_all(format!("{head}\r\n{rest}").as_bytes()).await.unwrap();
            }
        };
        let (listed, ()) = tokio::join!(api.list(operation("list_assistants")), serve);
        let told = listed.unwrap_err().to_string();
        assert!(
            told.contains("?after=1 names a next part of the list that leads no further; check"),
            "{told}"
        );
    }

    #[test]
    fn a_list_ends() {
        let rows = |number: usize| vec![Value::Null; number];
        let mut list = List::default();
        assert_eq!(list.add(rows(1_000), 5_000, Some("after=1")), Ok(true));
        assert!(list.add(rows(1), 5, Some("after=1")).unwrap_err().contains("leads no further"));
        assert!(list.add(rows(0), 2, Some("after=2")).unwrap_err().contains("leads no further"));
        assert_eq!(list.add(rows(0), 2, None), Ok(false));

        let mut list = List::default();
        assert_eq!(list.add(rows(ROWS_MAX), 50_000, None), Ok(false));
        assert!(list.add(rows(1), 5, None).unwrap_err().contains("more than 10,000 rows"));
        let mut list = List::default();
        assert_eq!(list.add(rows(1), LIST_BYTES_MAX, Some("after=1")), Ok(true));
        assert!(list.add(rows(1), 1, None).unwrap_err().contains("more than 536.9 MB"));
    }

    #[test]
    fn only_what_passes_soon_is_asked_again() {
        let told = |status: u16, code: &str| {
            let body = serde_json::json!({"error": {"code": code, "message": "Wait."}}).to_string();
            later(&Response::builder().status(status).body(Bytes::from(body)).unwrap())
        };
        for (status, code) in [(429, "rate_limited"), (503, "unavailable"), (503, "workspace_moving")] {
            assert_eq!(told(status, code).as_deref(), Some("Wait."), "{code}");
        }
        assert_eq!(told(409, "request_in_progress").as_deref(), Some("the same request is still running"));
        let answers = [
            (200, ""),
            (408, "request_timeout"),
            (409, "revision_conflict"),
            (429, "too_many_invalid_credentials"),
            (500, "internal"),
        ];
        for (status, code) in answers {
            assert_eq!(told(status, code), None, "{code}");
        }
        let of_proxy = Response::builder().status(502).body(Bytes::from_static(b"<html>")).unwrap();
        assert_eq!(later(&of_proxy).as_deref(), Some("the server answered HTTP 502"));
    }
}
