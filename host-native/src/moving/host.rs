//! Who answers the operator's requests: a service, by its URL and the operator's key, or the engine on this machine's folder.
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use sidetone_engine::engine::Engine;

use super::Stop;
use super::asking::Refusal;
use crate::service_client::ServiceClient;

/// A host of a move.
pub trait MoveHost {
    /// Answers a request, whose URI is a path. Each may be repeated.
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>>;

    /// Its URL.
    fn place(&self) -> &str;

    /// What names it in a further command: ` --url URL`; nothing for the folder of this machine.
    fn option(&self) -> String;
}

/// A service.
#[derive(Debug)]
pub struct Remote {
    client: ServiceClient,
    /// The setting that the key is from.
    key_name: &'static str,
}

impl Remote {
    /// The service with this URL, which `option` has given, and the operator's key of it, which the setting `key_name` has.
    pub fn new(option: &str, url: &str, key_name: &'static str, key: &str) -> Result<Self, Stop> {
        Ok(Self { client: ServiceClient::new(option, url, key).map_err(Stop::Failed)?, key_name })
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Stop> {
        let (place, (head, body)) = (self.client.place(), request.into_parts());
        let mut sent = self.client.request(head.method.clone(), &head.uri.to_string());
        if let Some(kind) = head.headers.get(header::CONTENT_TYPE) {
            sent = sent.header(header::CONTENT_TYPE, kind);
        }
        if head.method != Method::GET {
            sent = sent.body(body);
        }
        let answered = self.client.send(sent, |response| later(place, response)).await;
        let response = answered.map_err(|problem| {
            Stop::failed(format!(
                "{place}: {}. Once it answers, run the same command again: it goes on where it was",
                problem.trim_end_matches('.')
            ))
        })?;
        let is_other_key = response.status() == StatusCode::UNAUTHORIZED
            && Refusal::of(place, &response).code == "unauthorized";
        match is_other_key {
            true => Err(Stop::failed(format!("{} is not the operator's key of {place}", self.key_name))),
            false => Ok(response),
        }
    }
}

impl MoveHost for Remote {
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
        Box::pin(self.answer(request))
    }

    fn place(&self) -> &str {
        self.client.place()
    }

    fn option(&self) -> String {
        format!(" --url {}", self.client.place())
    }
}

/// What a service says that may answer the same request later; `None` if it has answered.
fn later(place: &str, response: &Response<Bytes>) -> Option<String> {
    // 408: a part is large, and may take longer on a slow line than a service waits.
    let may_answer = matches!(response.status().as_u16(), 408 | 429 | 502 | 503 | 504);
    let refusal = may_answer.then(|| Refusal::of(place, response))?;
    // These pass after minutes, or when somebody does something.
    let is_for_long = ["too_many_invalid_credentials", "workspace_moving"].contains(&refusal.code.as_str());
    (!is_for_long).then_some(refusal.message)
}

/// The data folder of this machine, also while a service runs on it. Whoever may open it needs no key.
pub struct Folder {
    engine: Engine,
}

impl Folder {
    /// The engine on it.
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Stop> {
        let (response, record) = self.engine.as_operator(request).await.into_parts();
        // Whoever is at the command line is told what others find in the log.
        match record.incident() {
            Some(incident) => Err(Stop::failed(incident)),
            None => Ok(response),
        }
    }
}

impl MoveHost for Folder {
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
        Box::pin(self.answer(request))
    }

    fn place(&self) -> &str {
        self.engine.base_url()
    }

    fn option(&self) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_soon_is_asked_again() {
        let told = |status: u16, code: &str| {
            let body = serde_json::json!({"error": {"code": code, "message": "Wait."}}).to_string();
            let response = Response::builder().status(status).body(Bytes::from(body)).unwrap();
            later("https://voice.example.com", &response)
        };
        for (status, code) in [(408, "request_timeout"), (429, "rate_limited"), (503, "unavailable")] {
            assert_eq!(told(status, code).as_deref(), Some("Wait."), "{code}");
        }
        let answers = [
            (200, ""),
            (401, "unauthorized"),
            (409, "move_refused"),
            (429, "too_many_invalid_credentials"),
            (503, "workspace_moving"),
        ];
        for (status, code) in answers {
            assert_eq!(told(status, code), None, "{code}");
        }
    }
}
