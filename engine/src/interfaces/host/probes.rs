//! `/healthz` and `/readyz`. Anybody may ask them, and each look asks every database, `/readyz` at the edge with a write. So an
//! answer is kept for a second, and only few requests look at once.
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::join_all;
use http::Response;
use serde_json::json;

use crate::base::response::{json_response, with_incident};
use crate::interfaces::api::Api;
use crate::ports::NotWritable;
use crate::services::{Services, Sharding};

/// After somebody began to look, nobody else does for so long, if there is an answer from before.
const KEPT_MS: i64 = 1_000;
/// No answer that is older than this is given.
const USABLE_MS: i64 = 5_000;
/// So many look at once: without an answer, as in a process that has just begun, or where databases hang.
const LOOKS_MAX: usize = 4;

/// What was found last, by this process.
#[derive(Default)]
pub(crate) struct Probes {
    health: Kept,
    ready: Kept,
}

#[derive(Default)]
struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    /// When somebody began to look, for the last time.
    asked_ms: i64,
    /// How many look.
    looking: usize,
    found: Option<Found>,
}

struct Found {
    /// When the look began, and when it ended.
    began_ms: i64,
    ended_ms: i64,
    answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: Bytes,
    incident: Option<String>,
}

/// What a request does.
enum Next<'a> {
    /// It gets this answer.
    Known(Answer),
    /// It looks.
    Look(Look<'a>),
}

/// A request that looks, also one that is given up meanwhile.
struct Look<'a> {
    kept: &'a Kept,
    began_ms: i64,
}

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, now_ms: i64) -> Next<'_> {
        let mut state = self.state();
        // A clock that was set back keeps nothing.
        let is_within = |since_ms: i64, ms: i64| (0..ms).contains(&(now_ms - since_ms));
        let usable = state.found.as_ref().filter(|found| is_within(found.ended_ms, USABLE_MS));
        let is_crowded = state.looking >= LOOKS_MAX;
        match usable {
            Some(found) if is_crowded || is_within(state.asked_ms, KEPT_MS) => {
                Next::Known(found.answer.clone())
            }
            None if is_crowded => {
                Next::Known(Answer::unavailable(Some("the database has not answered"), None))
            }
            _ => {
                state.asked_ms = now_ms;
                state.looking += 1;
                Next::Look(Look { kept: self, began_ms: now_ms })
            }
        }
    }
}

impl Look<'_> {
    /// Keeps what it has found, unless a later look has ended before it.
    fn found(self, now_ms: i64, answer: &Answer) {
        let mut state = self.kept.state();
        if state.found.as_ref().is_none_or(|found| found.began_ms <= self.began_ms) {
            state.found = Some(Found { began_ms: self.began_ms, ended_ms: now_ms, answer: answer.clone() });
        }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.kept.state().looking -= 1;
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
    let look = async {
        match reads(api.services()).await {
            Ok(()) => Answer::good("ok"),
            Err(detail) => Answer::unavailable(None, Some(detail)),
        }
    };
    kept_or(&api.probes().health, api, now_ms, look).await
}

/// The service is ready when its storage takes writes, and it does not stop. A full disk is no reason to restart it: reads
/// and deletes work.
pub(super) async fn ready(api: &Api, now_ms: i64) -> Response<Bytes> {
    // Whoever stops it knows: that is no failure.
    if api.services().stopping().has_begun() {
        return Answer::unavailable(Some("the service stops"), None).into_response();
    }
    let look = async {
        match writes(api.services()).await {
            Ok(()) => Answer::good("ready"),
            Err(NotWritable { reason, detail }) => Answer::unavailable(Some(reason), Some(detail)),
        }
    };
    kept_or(&api.probes().ready, api, now_ms, look).await
}

/// The answer that is kept, or what a look finds.
async fn kept_or(kept: &Kept, api: &Api, now_ms: i64, look: impl Future<Output = Answer>) -> Response<Bytes> {
    let answer = match kept.next(now_ms) {
        Next::Known(answer) => answer,
        Next::Look(looking) => {
            let answer = look.await;
            looking.found(api.services().now().ms(), &answer);
            answer
        }
    };
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

    /// Looks, or the status that is known.
    fn next(kept: &Kept, now_ms: i64) -> Result<Look<'_>, u16> {
        match kept.next(now_ms) {
            Next::Look(look) => Ok(look),
            Next::Known(answer) => Err(answer.status),
        }
    }

    #[test]
    fn one_request_looks_again_and_the_others_get_what_is_known() {
        let kept = Kept::default();
        let good = Answer::good("ok");
        next(&kept, 0).unwrap().found(10, &good);
        assert_eq!(next(&kept, KEPT_MS - 1).err(), Some(200));
        let look = next(&kept, KEPT_MS).unwrap();
        assert_eq!(next(&kept, KEPT_MS).err(), Some(200), "the next one does not wait");
        look.found(1_500, &Answer::unavailable(None, None));
        assert_eq!(next(&kept, 1_501).err(), Some(503));
        assert!(next(&kept, 0).is_ok(), "the clock was set back");
    }

    #[test]
    fn few_look_at_once_and_what_is_old_is_told_nobody() {
        let kept = Kept::default();
        let mut looks: Vec<_> = (0..LOOKS_MAX).map(|_| next(&kept, 0).unwrap()).collect();
        assert_eq!(next(&kept, 0).err(), Some(503), "nothing is known yet");
        looks.pop().unwrap().found(10, &Answer::good("ok"));
        assert_eq!(next(&kept, 10).err(), Some(200));
        // The others hang.
        looks.push(next(&kept, KEPT_MS).unwrap());
        assert_eq!(next(&kept, 9 + USABLE_MS).err(), Some(200));
        assert_eq!(next(&kept, 10 + USABLE_MS).err(), Some(503));
        looks.clear();
        assert!(next(&kept, 10 + USABLE_MS).is_ok(), "they were given up");
    }

    #[test]
    fn a_late_look_replaces_no_later_one() {
        let kept = Kept::default();
        let slow = next(&kept, 0).unwrap();
        next(&kept, 2_000).unwrap().found(2_010, &Answer::good("ok"));
        slow.found(2_500, &Answer::unavailable(None, None));
        assert_eq!(next(&kept, 2_600).err(), Some(200));
    }
}
