//! Following what is in progress: its changes as server-sent events (WHATWG HTML, 9.2), until it has ended.
//!
//! Ids count up: first the status, then one id for each change of the journal, and the end after all of them. A client that
//! connects again sends the last id that it has as `Last-Event-ID`, and gets what came after it. Each event replaces an
//! earlier one about the same row or turn, so an event that comes twice does no harm.
mod changes;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;

use crate::base::error::Error;
use crate::base::fair_pool::{Kept, Share};
use crate::base::hash::fingerprint;
use crate::base::ids::{CallId, RunId, WorkspaceId};
use crate::base::limits::{
    FOLLOW_KEEP_ALIVE_MS, FOLLOW_LOOK_MS, FOLLOW_MS_MAX, FOLLOW_PAUSE_MS, FOLLOW_SESSION_MS_MAX,
    FOLLOWERS_FOR_NEWCOMERS,
};
use crate::operations::context::{Context, Principal};
use crate::operations::operation::Output;
use crate::ports::BoxStream;
use crate::services::Services;
use crate::storage::fault::Fault;

/// What is followed, and what the first look has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    subject: Subject,
    seen: Seen,
    found: Found,
}

/// What can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A call.
    Call(CallId),
    /// A simulation run, with the transcript of its call.
    Run(RunId),
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    id: i64,
    kind: &'static str,
    /// JSON.
    data: String,
}

/// What one look has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Found {
    events: Vec<Event>,
    /// Whether the subject has ended.
    is_over: bool,
    /// Whether there may be more at once.
    has_more: bool,
}

/// What a client leaves free of the places.
pub(super) const KEPT: Kept = Kept { by_holder: FOLLOWERS_FOR_NEWCOMERS, by_newcomer: 0 };

/// A client that follows: an extension of the response whose body is its stream.
#[derive(Clone)]
pub struct Follower {
    principal: Principal,
    follow: Follow,
    /// Its place among those of its process, until the stream ends. What has ended is sent without one.
    _place: Option<Arc<Share<WorkspaceId>>>,
}

impl Follower {
    /// Takes a place for the client. Workspaces share the places of a process fairly.
    pub(crate) fn admit(context: &Context, follow: Follow) -> Result<Self, Fault> {
        let principal = context.principal().clone();
        if follow.found.is_over {
            return Ok(Self { principal, follow, _place: None });
        }
        match context.services.followers().take(context.workspace_id()?, 1, KEPT) {
            Some(place) => Ok(Self { principal, follow, _place: Some(Arc::new(place)) }),
            None => {
                let message =
                    "Too many calls and runs are being followed. Close a stream, or try again later.";
                Err(Error::unavailable(message, 5).into())
            }
        }
    }

    /// The events, as pieces of the response's body. The stream ends after the last event; earlier after
    /// [`FOLLOW_MS_MAX`], when the key is revoked, and when storage does not answer. The client connects again then.
    pub(crate) fn stream(self, services: Services) -> BoxStream<'static, Bytes> {
        let now_ms = services.ports().clock.now_ms();
        let for_ms = match self.principal {
            Principal::Session(..) => FOLLOW_SESSION_MS_MAX,
            Principal::Key(_) | Principal::Operator(_) | Principal::Nobody => FOLLOW_MS_MAX,
        };
        let until_ms = now_ms + for_ms;
        let following = Following { services, follower: self, until_ms, sent_at_ms: now_ms, change: 0 };
        let begin = stream::once(async { Bytes::from_static(b"retry: 1000\n\n") });
        let events = stream::unfold(following, |mut following| async move {
            let piece = following.next().await?;
            Some((piece, following))
        });
        Box::pin(stream::StreamExt::chain(begin, events))
    }
}

/// What a client has received.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// The id of the latest event.
    after: i64,
    /// Fingerprints of what was sent on this connection, in order: at the end, only rows and turns that differ are sent again.
    contents: Vec<u64>,
}

struct Following {
    services: Services,
    follower: Follower,
    until_ms: i64,
    sent_at_ms: i64,
    /// The latest change of the call that this follower was told of.
    change: u64,
}

impl Following {
    /// The next piece of the body; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let clock = self.services.ports().clock.clone();
        loop {
            let now_ms = clock.now_ms();
            let Follow { seen, found, .. } = &mut self.follower.follow;
            if !found.events.is_empty() {
                self.sent_at_ms = now_ms;
                return Some(seen.text_of(std::mem::take(&mut found.events)));
            }
            if found.is_over || now_ms >= self.until_ms {
                return None;
            }
            if now_ms - self.sent_at_ms >= FOLLOW_KEEP_ALIVE_MS {
                self.sent_at_ms = now_ms;
                return Some(Bytes::from_static(b": still there\n\n"));
            }
            if !found.has_more {
                self.wait().await;
            }
            // A revoked key, a deleted call, or a storage that fails: the next request is told.
            self.follower.follow.found = self.look().await.ok()?;
        }
    }

    /// Waits until another look is worth it. Whoever holds a call tells of its changes.
    async fn wait(&mut self) {
        let ports = self.services.ports();
        match &self.follower.follow.subject {
            Subject::Call(id) => self.change = ports.live.follow(id, self.change, FOLLOW_LOOK_MS).await,
            Subject::Run(_) => ports.clock.sleep(FOLLOW_PAUSE_MS).await,
        }
    }

    async fn look(&self) -> Result<Found, Fault> {
        let Follower { principal, follow, .. } = &self.follower;
        let now_ms = self.services.ports().clock.now_ms();
        let mut context = Context::new(self.services.clone(), now_ms, principal.clone());
        changes::since(&mut context, &follow.subject, &follow.seen).await
    }
}

impl Seen {
    /// The events as text, which the client has then seen.
    fn text_of(&mut self, events: Vec<Event>) -> Bytes {
        let mut text = String::new();
        for Event { id, kind, data } in events {
            text += &format!("id: {id}\nevent: {kind}\ndata: {data}\n\n");
            self.after = self.after.max(id);
            let fingerprint = fingerprint(&data);
            if let Err(place) = self.contents.binary_search(&fingerprint) {
                self.contents.insert(place, fingerprint);
            }
        }
        text.into()
    }

    fn has(&self, data: &str) -> bool {
        self.contents.binary_search(&fingerprint(data)).is_ok()
    }
}

/// The response to a client that wants to follow what exists and has the event `after`. A client that has the last event
/// gets 204, so that it does not connect again.
pub(crate) async fn begin(context: &mut Context, subject: Subject, after: i64) -> Result<Output, Fault> {
    let after = changes::known(context, &subject, after).await?;
    let seen = Seen { after, contents: Vec::new() };
    let found = changes::since(context, &subject, &seen).await?;
    match found.is_over && found.events.is_empty() {
        true => Ok(Output::empty()),
        false => Ok(Output::follow(Follow { subject, seen, found })),
    }
}
