//! Requests of the operator, and what comes of them.
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use serde_json::Value;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::config::OPERATOR_KEY;

use super::Stop;
use super::host::MoveHost;
use crate::service_client;

/// What gives another URL of a host.
const NAMED_BY: &str = "--url, --from or SIDETONE_URL";

/// Reasons that are for whoever typed the command, or that pass; all others are failures.
const WAITS: [&str; 23] = [
    "arriving",
    "between_databases",
    "between_hosts",
    "decided",
    "canceling",
    "handed_over",
    "has_people",
    "keys_taken",
    "moved",
    "not_arrived",
    "not_closing",
    "not_complete",
    "not_erased",
    "not_frozen",
    "not_released",
    "not_upgraded",
    "nothing_here",
    "numbers_taken",
    "other_export",
    "released_elsewhere",
    "canceled",
    "too_many_moves",
    "workspace_exists",
];

/// A request that was not done, and why.
#[derive(Debug)]
pub(super) struct Refusal {
    place: String,
    /// The code of the error; empty if the answer is not Sidetone's.
    pub(super) code: String,
    /// Of `move_refused`, the reason.
    pub(super) reason: String,
    /// For people.
    pub(super) message: String,
    /// For programs.
    pub(super) details: Value,
}

impl Refusal {
    /// Of an answer that is no success, or not Sidetone's.
    pub(super) fn of(place: &str, response: &Response<Bytes>) -> Self {
        let json: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        let error = &json["error"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            place: place.to_owned(),
            code: text(&error["code"]).unwrap_or_default(),
            reason: text(&error["details"]["reason"]).unwrap_or_default(),
            message: text(&error["message"]).unwrap_or_else(|| service_client::strange(response, NAMED_BY)),
            details: error["details"].clone(),
        }
    }
}

impl Refusal {
    /// Whether there is no such move. A service without an operator's key has none of these paths.
    pub(super) fn is_of_nothing(&self) -> bool {
        self.code == "not_found" && !self.message.contains(OPERATOR_KEY)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        let Refusal { place, code, reason, message, details: _ } = refusal;
        let text = format!("{place}: {message}");
        match code == "workspace_moving" || WAITS.contains(&reason.as_str()) {
            true => Self::Waits(text),
            false => Self::Failed(text),
        }
    }
}

/// Asks with a body of JSON, or none. The answer is JSON, or null without a body.
pub(super) async fn ask(
    host: &dyn MoveHost,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Result<Value, Refusal>, Stop> {
    let body = body.map(|body| (Bytes::from(body.to_string()), "application/json"));
    as_json(host, send(host, method, path, body).await?)
}

/// Sends bytes.
pub(super) async fn put(
    host: &dyn MoveHost,
    path: &str,
    bytes: Bytes,
) -> Result<Result<Value, Refusal>, Stop> {
    as_json(host, send(host, Method::PUT, path, Some((bytes, "application/octet-stream"))).await?)
}

/// Gets bytes.
pub(super) async fn get(host: &dyn MoveHost, path: &str) -> Result<Result<Bytes, Refusal>, Stop> {
    Ok(send(host, Method::GET, path, None).await?.map(Response::into_body))
}

fn as_json(
    host: &dyn MoveHost,
    answer: Result<Response<Bytes>, Refusal>,
) -> Result<Result<Value, Refusal>, Stop> {
    Ok(match answer {
        Ok(response) if response.body().is_empty() => Ok(Value::Null),
        Ok(response) => {
            Ok(serde_json::from_slice(response.body()).map_err(|_| Refusal::of(host.place(), &response))?)
        }
        Err(refusal) => Err(refusal),
    })
}

async fn send(
    host: &dyn MoveHost,
    method: Method,
    path: &str,
    body: Option<(Bytes, &'static str)>,
) -> Result<Result<Response<Bytes>, Refusal>, Stop> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some((_, kind)) = &body {
        request = request.header(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    let request = request.body(body.map(|(bytes, _)| bytes).unwrap_or_default());
    // A path has what a host has said, such as the place after which a part follows.
    let response = host.ask(request.map_err(|_| strange(host))?).await?;
    Ok(match response.status().is_success() {
        true => Ok(response),
        false => Err(Refusal::of(host.place(), &response)),
    })
}

/// An answer that no host gives.
pub(super) fn strange(host: &dyn MoveHost) -> Stop {
    Stop::failed(format!("{}: the server did not answer as Sidetone does", host.place()))
}

/// A text of an answer; empty if it has none.
pub(super) fn text<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer[name].as_str().unwrap_or_default()
}

/// A workspace of a host.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: WorkspaceId,
    pub(super) name: String,
}

/// The workspace with this id or name.
pub(super) async fn find(host: &dyn MoveHost, named: &str) -> Result<Found, Stop> {
    let path = format!("/operator/workspaces?named={}", encoded(named));
    let response = send(host, Method::GET, &path, None).await??;
    let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let id = WorkspaceId::from_stored(text(&answer, "id"));
    // It stands in the paths of the next requests.
    match id.to_bytes() {
        Some(_) => Ok(Found { id, name: text(&answer, "name").to_owned() }),
        // No other request has looked yet whether it is a service of Sidetone.
        None => Err(Refusal::of(host.place(), &response).into()),
    }
}

/// A text as a value in a query.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use futures_util::future::{LocalBoxFuture, ready};
    use sidetone_engine::storage::moves::Refusal as Refused;
    use sidetone_engine::storage::moves::declined::Declined;

    use super::*;

    /// Some other web server: the status, type and text of its answers.
    struct Web(u16, &'static str, &'static str);

    impl MoveHost for Web {
        fn ask(&self, _: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
            let Self(status, kind, text) = *self;
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
            Box::pin(ready(Ok(response.body(Bytes::from_static(text.as_bytes())).unwrap())))
        }

        fn place(&self) -> &str {
            "https://www.example.com"
        }

        fn option(&self) -> String {
            " --url https://www.example.com".to_owned()
        }
    }

    #[tokio::test]
    async fn another_web_server_is_told() {
        let told = |seen: &str| {
            Stop::failed(format!(
                "https://www.example.com: does not answer like a Sidetone service ({seen}); check --url, --from or SIDETONE_URL"
            ))
        };
        let html = Web(200, "text/html; charset=utf-8", "<html>");
        let answers = [
            (&html, "status 200, text/html"),
            (&Web(404, "text/html", "<html>"), "status 404, text/html"),
            (&Web(404, "application/json", "{\"detail\": \"Not Found\"}"), "status 404, application/json"),
            (&Web(200, "application/json", "{\"name\": \"Acme\"}"), "status 200, application/json"),
        ];
        for (web, seen) in answers {
            assert_eq!(find(web, "Acme").await.unwrap_err(), told(seen));
        }
        let stop = ask(&html, Method::POST, "/operator/imports", None).await.unwrap_err();
        assert_eq!(stop, told("status 200, text/html"));
    }

    #[test]
    fn what_waits_is_what_hosts_refuse_for_now() {
        let fails = [
            Refused::NoWorkspace,
            Refused::SchemaChanged,
            Refused::KeyLost,
            Refused::NoSuchPlace,
            Refused::OneDatabase,
            Refused::NoSuchDatabase,
        ];
        for reason in Refused::ALL {
            assert_eq!(WAITS.contains(&reason.as_str()), !fails.contains(reason), "{reason:?}");
        }
        let of_imports = [
            Declined::TooManyMoves,
            Declined::NotUpgraded,
            Declined::WorkspaceExists,
            Declined::NotErased,
            Declined::OtherExport,
            Declined::Canceling,
            Declined::NumbersTaken(Vec::new()),
            Declined::KeysTaken(1),
            Declined::NotComplete(1),
            Declined::NotArrived,
            Declined::HandedOver,
        ]
        .map(|declined| declined.reason());
        for reason in of_imports {
            assert!(WAITS.contains(&reason), "{reason}");
        }
        for wait in WAITS {
            assert!(Refused::parse(wait).is_some() || of_imports.contains(&wait), "no host says {wait}");
        }
    }
}
