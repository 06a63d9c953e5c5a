//! `/healthz` and `/readyz`. Anybody may ask them, and each asks every database, at the edge with a write: so an answer is kept
//! for a second, and requests that come while one of them looks again get the answer before.
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::join_all;
use http::Response;
use serde_json::json;

use crate::base::response::{json_response, with_incident};
use crate::interfaces::api::Api;
use crate::ports::NotWritable;
use crate::services::{Services, Sharding};

/// An answer is that of all requests for so long.
const KEPT_MS: i64 = 1_000;
/// No answer that was found before this is given, whoever looks again.
const EARLIER_MS: i64 = 5_000;

/// What was found last, by this process.
#[derive(Default)]
pub(crate) struct Probes {
    health: Kept,
    ready: Kept,
}

#[derive(Default)]
struct Kept(Mutex<Option<Found>>);

struct Found {
    /// When somebody began to look, for the last time.
    asked_ms: i64,
    /// When this was found.
    found_ms: i64,
    answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: Bytes,
    incident: Option<String>,
}

impl Kept {
    /// The answer that is kept. `None`: the caller looks, and keeps what it finds.
    fn get(&self, now_ms: i64) -> Option<Answer> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = found.as_mut()?;
        // A clock that was set back keeps nothing.
        let is_kept = (0..KEPT_MS).contains(&(now_ms - found.asked_ms));
        if is_kept && now_ms - found.found_ms < EARLIER_MS {
            return Some(found.answer.clone());
        }
        found.asked_ms = now_ms;
        None
    }

    fn keep(&self, now_ms: i64, answer: &Answer) {
        let found = Found { asked_ms: now_ms, found_ms: now_ms, answer: answer.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }
}

impl Answer {
    fn good(status: &str) -> Self {
        Self { status: 200, body: json!({"status": status}).to_string().into(), incident: None }
    }

    fn unavailable(reason: Option<&str>, incident: Option<String>) -> Self {
        let body = match reason {
            Some(reason) => json!({"status": "unavailable", "reason": reason}),
            None => json!({"status": "unavailable"}),
        };
        Self { status: 503, body: body.to_string().into(), incident }
    }

    fn into_response(self) -> Response<Bytes> {
        with_incident(json_response(self.status, self.body), self.incident)
    }
}

/// The service is up when its storage answers.
pub(super) async fn health(api: &Api, now_ms: i64) -> Response<Bytes> {
    let kept = &api.probes().health;
    if let Some(answer) = kept.get(now_ms) {
        return answer.into_response();
    }
    let answer = match reads(api.services()).await {
        Ok(()) => Answer::good("ok"),
        Err(detail) => Answer::unavailable(None, Some(detail)),
    };
    kept.keep(api.services().now().ms(), &answer);
    answer.into_response()
}

/// The service is ready when its storage takes writes, and it does not stop. A full disk is no reason to restart it: reads
/// and deletes work.
pub(super) async fn ready(api: &Api, now_ms: i64) -> Response<Bytes> {
    // Whoever stops it knows: that is no failure.
    if api.services().stopping().has_begun() {
        return Answer::unavailable(Some("the service stops"), None).into_response();
    }
    let kept = &api.probes().ready;
    if let Some(answer) = kept.get(now_ms) {
        return answer.into_response();
    }
    let answer = match writes(api.services()).await {
        Ok(()) => Answer::good("ready"),
        Err(NotWritable { reason, detail }) => Answer::unavailable(Some(reason), Some(detail)),
    };
    kept.keep(api.services().now().ms(), &answer);
    answer.into_response()
}

async fn reads(services: &Services) -> Result<(), String> {
    let every = services.on_every_shard();
    let directory = services.sharding().map(Sharding::directory);
    let databases = every.iter().map(|one| &*one.ports().database).chain(directory);
    let looks = databases.map(|database| database.read(vec![crate::sql!("SELECT 1 AS up")]));
    let answers = join_all(looks).await.into_iter().collect::<Result<Vec<_>, _>>();
    answers.map(drop).map_err(|error| format!("{error:?}"))
}

async fn writes(services: &Services) -> Result<(), NotWritable> {
    let every = services.on_every_shard();
    let looks = every.iter().map(|one| one.ports().database.takes_writes());
    join_all(looks).await.into_iter().collect::<Result<(), _>>()?;
    services.directory_takes_writes().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_looks_again_and_the_others_get_what_is_known() {
        let kept = Kept::default();
        let (good, bad) = (Answer::good("ok"), Answer::unavailable(None, None));
        assert_eq!(kept.get(0), None);
        kept.keep(10, &good);
        assert_eq!(kept.get(10 + KEPT_MS - 1), Some(good.clone()));
        assert_eq!(kept.get(10 + KEPT_MS), None, "the first one looks");
        assert_eq!(kept.get(10 + KEPT_MS), Some(good.clone()), "and the next one does not wait");
        kept.keep(2_000, &bad);
        assert_eq!(kept.get(2_001), Some(bad));
        assert_eq!(kept.get(0), None, "the clock was set back");
        // Nobody who looks has an answer.
        kept.keep(10_000, &good);
        let asked: Vec<bool> =
            (10_000..30_000).step_by(100).map(|now_ms| kept.get(now_ms).is_some()).collect();
        let last = asked.iter().rposition(|is_known| *is_known).unwrap();
        assert_eq!(asked.iter().filter(|is_known| !**is_known).count(), asked.len() - 1 - last + 4);
        assert!(last < 50, "what is old is told nobody");
    }
}
