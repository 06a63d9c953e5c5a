//! Requests to others: whether the service is found under its own name, and what accounts answer.
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use sidetone_engine::config::Config;
use sidetone_engine::engine::Engine;
use sidetone_engine::ports::{
    Egress, Homes, Http, HttpError, HttpReply, HttpRequest, NoWebSockets, Party, PartyKind, Ports,
};
use sidetone_engine::storage::fault::Fault;

use super::clock::Dates;
use super::{ANSWER_MS, Finding};
use crate::database::Memory;
use crate::http_client::HttpClient;
use crate::keys::RingKeys;
use crate::open_files::Outgoing;
use crate::runner::Wakes;
use crate::sandbox::MemoryBlobs;
use crate::service_client::with_hint;
use crate::system::{SystemClock, SystemRandom};

/// As much of an answer as is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Asks others, as the service would.
pub struct Asker<'a> {
    pub config: &'a Config,
    /// The engine knows how each carrier is asked. Its database is empty.
    pub engine: Engine,
    http: Arc<HttpClient>,
    dates: &'a Dates,
}

impl<'a> Asker<'a> {
    pub fn new(config: &'a Config, dates: &'a Dates) -> Result<Self, String> {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let http = HttpClient::new(Outgoing::default()).map_err(|error| told(&error))?;
        let http = Arc::new(http.explaining());
        let clock = Arc::new(SystemClock);
        let ports = Ports {
            database: Arc::new(Memory::new().map_err(|error| told(&error))?),
            blobs: Arc::new(MemoryBlobs::default()),
            shards: None,
            clock: clock.clone(),
            random: Arc::new(SystemRandom),
            queue: Arc::new(Wakes::default()),
            http: http.clone(),
            web_sockets: Arc::new(NoWebSockets),
            keys: Arc::new(RingKeys),
            live: Arc::new(Homes::new(clock)),
            mailer: None,
            metrics: None,
            traces: None,
        };
        let engine = Engine::new(config.clone(), ports).map_err(Fault::told)?;
        Ok(Self { config, engine, http, dates })
    }

    /// A `GET`.
    pub async fn get(
        &self,
        url: String,
        headers: Vec<(&'static str, String)>,
    ) -> Result<HttpReply, HttpError> {
        let request = HttpRequest {
            method: "GET",
            url,
            headers,
            body: Bytes::new(),
            deadline_ms: ANSWER_MS,
            response_bytes_max: ANSWER_BYTES_MAX,
            egress: Egress::Operator,
            // The doctor logs and counts nothing.
            party: Party::of_operator(PartyKind::Model, "doctor"),
            expected: &[],
        };
        let reply = match self.http.send(request).await {
            Ok(reply) | Err(HttpError::TooLarge(reply)) => reply,
            Err(error) => return Err(error),
        };
        self.note(&reply);
        Ok(reply)
    }

    /// What its clock says.
    pub fn note(&self, reply: &HttpReply) {
        if let Some((_, date)) = reply.headers.iter().find(|(name, _)| name == "date") {
            self.dates.note(date);
        }
    }
}

/// In words, without the URL, which may have a password in it.
pub fn why(error: &HttpError) -> String {
    match error {
        HttpError::Timeout => "it did not answer in time".to_owned(),
        HttpError::Refused => "its address may not be asked".to_owned(),
        HttpError::Failed(detail) => with_hint(detail.clone()),
        HttpError::TooLarge(_) => "it answered too much".to_owned(),
    }
}

/// Whether the service is found under its public URL, from here.
pub async fn base_url(asker: &Asker<'_>, is_running: bool) -> Vec<Finding> {
    const CHECK: &str = "base URL";
    let url = &asker.config.base_url;
    let shown = if url.contains('@') { "SIDETONE_BASE_URL" } else { url };
    let mut found = Vec::new();
    let has_carriers = asker.config.carriers.names().next().is_some();
    if has_carriers && (is_local(url) || !url.starts_with("https://")) {
        found.push(Finding::problem(
            CHECK,
            format!("carriers cannot call {shown}: set SIDETONE_BASE_URL to the https:// name under which the service is reached from outside"),
        ));
    }
    let answer = asker.get(format!("{url}/healthz"), Vec::new()).await;
    found.push(match answer {
        Ok(HttpReply { status: 200, .. }) if !is_running => Finding::warning(
            CHECK,
            format!("a service answers at {shown}, but none runs on this folder: that one works on another. Set SIDETONE_DATA to its folder, or run this where it runs; if this folder is to be served, start the service on it"),
        ),
        Ok(HttpReply { status: 200, .. }) => Finding::good(CHECK, format!("{shown} answers")),
        Ok(HttpReply { status, .. }) => Finding::problem(
            CHECK,
            format!("{shown}/healthz answers with status {status}: something else is there, or the service has no database. See its log, and whether SIDETONE_BASE_URL leads to it"),
        ),
        Err(_) if !is_running => {
            Finding::warning(CHECK, format!("{shown} was not reached: no service runs on this folder. Start it, and look again"))
        }
        Err(error) => Finding::problem(
            CHECK,
            format!("{shown} cannot be reached from here: {}. Check SIDETONE_BASE_URL, the name, the proxy and its certificate", why(&error)),
        ),
    });
    found
}

/// Whether only this machine reaches the URL.
fn is_local(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn https_at_a_port_of_plain_http_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let config = Config::from_settings(|_| None, &url, "a secret for the tests").unwrap();
        let dates = Dates::default();
        let asker = Asker::new(&config, &dates).unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // All of it: what is left unread would break the connection.
            let _ = stream.read(&mut [0; 8_192]).await;
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        };
        let (found, ()) = tokio::join!(base_url(&asker, true), serve);
        let told: Vec<&str> = found.iter().map(|one| one.detail.as_str()).collect();
        let hint = ": it does not speak HTTPS there; perhaps http://. Check SIDETONE_BASE_URL";
        assert!(told.len() == 1 && told[0].contains(hint), "{told:?}");
    }
}
