//! Memory for responses that clients have not read yet. Nobody can fill it by asking much and reading nothing: each
//! workspace, and without a valid key each address, takes its part of one [`SharedPool`] and returns it as the response
//! is sent or its connection breaks.
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use crate::base::error::Error;
use crate::base::fair_pool::{FairPool, Share, SharedPool};
use crate::base::ids::WorkspaceId;
use crate::base::limits::{RESPONSE_SMALL_BYTES, RESPONSES_BYTES_MAX};
use crate::interfaces::host::log_record::Answered;
use crate::operations::context::Context;

/// Who a response is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Recipient {
    Workspace(WorkspaceId),
    /// Without a valid key.
    Address(IpAddr),
}

/// Says for whom the request was answered.
pub(crate) fn answered(response: &mut Response<Bytes>, context: &Context) {
    let workspace = context.workspace_id().ok().cloned();
    let (operation, has_written) = (context.operation(), context.has_written());
    response.extensions_mut().insert(Answered { workspace, operation, has_written });
}

/// The memory for all responses of this process. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ResponseBudget(SharedPool<Recipient>);

impl Default for ResponseBudget {
    fn default() -> Self {
        Self(SharedPool::new(FairPool::new(RESPONSES_BYTES_MAX)))
    }
}

impl ResponseBudget {
    /// Takes `bytes` for the response. `Ok(None)`: it is small, and takes hardly more memory than its connection. What has
    /// changed something is always answered: its client would not know that it was done.
    pub(crate) fn take(
        &self,
        response: &mut Response<Bytes>,
        bytes: u64,
        address: impl FnOnce() -> IpAddr,
    ) -> Result<Option<Share<Recipient>>, Error> {
        let answered = response.extensions().get::<Answered>();
        if bytes <= RESPONSE_SMALL_BYTES {
            return Ok(None);
        }
        let has_written = answered.is_some_and(|answered| answered.has_written);
        let recipient = match answered.and_then(|answered| answered.workspace.clone()) {
            Some(workspace) => Recipient::Workspace(workspace),
            None => Recipient::Address(address()),
        };
        if has_written {
            return Ok(Some(self.0.add(&recipient, bytes)));
        }
        match self.0.take(&recipient, bytes, 0) {
            Some(share) => Ok(Some(share)),
            None => Err(refusal()),
        }
    }
}

impl ResponseBudget {
    /// Says for whom `response` was answered, for the pieces of its body.
    pub(crate) fn recipient(response: &mut Response<Bytes>, address: impl FnOnce() -> IpAddr) -> Recipient {
        match response.extensions().get::<Answered>().and_then(|answered| answered.workspace.clone()) {
            Some(workspace) => Recipient::Workspace(workspace),
            None => Recipient::Address(address()),
        }
    }

    /// A piece of a body that comes over time, with its memory; `None` while others have it.
    pub(crate) fn piece(&self, recipient: &Recipient, piece: Bytes) -> Option<Bytes> {
        let bytes = piece.len() as u64;
        if bytes <= RESPONSE_SMALL_BYTES {
            return Some(piece);
        }
        Some(holding(piece, Some(self.0.take(recipient, bytes, 0)?)))
    }
}

fn refusal() -> Error {
    let message = "Too many responses wait to be read. Read the responses to your other requests, or ask for fewer \
        rows (`limit`), then try again.";
    Error::unavailable(message, 1)
}

/// The memory that a body takes. What the service keeps anyway (the documents) takes none.
pub(crate) fn memory_of(body: &Bytes) -> u64 {
    if body.is_unique() { body.len() as u64 } else { 0 }
}

/// The body, which returns the share when it is dropped.
pub(crate) fn holding(body: Bytes, share: Option<Share<Recipient>>) -> Bytes {
    match share {
        Some(share) => BodyMemory::of(share).hold(body),
        None => body,
    }
}

/// The memory of a response's body: an extension of the response, for a host that sends another body in its place.
#[derive(Debug, Clone)]
pub struct BodyMemory {
    _share: Arc<Share<Recipient>>,
}

impl BodyMemory {
    /// The memory of this share.
    pub(crate) fn of(share: Share<Recipient>) -> Self {
        Self { _share: Arc::new(share) }
    }

    /// The body, which returns the memory when it is dropped.
    #[must_use]
    pub fn hold(&self, body: Bytes) -> Bytes {
        Bytes::from_owner(Held { body, _memory: self.clone() })
    }
}

struct Held {
    body: Bytes,
    _memory: BodyMemory,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Code;

    const LARGE: u64 = 4 * 1024 * 1024;

    fn response(workspace: &str, has_written: bool) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let workspace = Some(crate::base::ids::Id::from_stored(workspace));
        response.extensions_mut().insert(Answered { workspace, operation: None, has_written });
        response
    }

    fn address() -> IpAddr {
        IpAddr::from([127, 0, 0, 1])
    }

    #[test]
    fn one_that_does_not_read_is_refused_and_its_neighbours_are_not() {
        let budget = ResponseBudget::default();
        let take = |workspace, bytes| budget.take(&mut response(workspace, false), bytes, address);
        let held: Vec<_> = std::iter::from_fn(|| take("ws_greedy", LARGE).ok()).take(1_000).collect();
        assert!(held.len() > 15 && held.len() < 32, "{}", held.len());
        let refused = take("ws_greedy", LARGE).unwrap_err();
        assert_eq!((refused.code, refused.retry_after_s), (Code::Unavailable, Some(1)));
        assert!(
            take("ws_greedy", RESPONSE_SMALL_BYTES).is_ok_and(|share| share.is_none()),
            "small ones pass"
        );
        let neighbour = take("ws_honest", LARGE).unwrap();
        assert!(neighbour.is_some());
        let stranger = budget.take(&mut Response::new(Bytes::new()), LARGE, address).unwrap();
        assert!(stranger.is_some());
        drop(held);
        assert!(take("ws_greedy", LARGE).is_ok());
    }

    #[test]
    fn what_was_done_is_answered_and_counted() {
        let budget = ResponseBudget::default();
        let _all: Vec<_> =
            std::iter::from_fn(|| budget.take(&mut response("ws_a", false), LARGE, address).ok()).collect();
        let free = budget.0.free();
        let share = budget.take(&mut response("ws_a", true), LARGE, address).unwrap();
        assert_eq!(budget.0.free(), free - LARGE);
        drop(holding(Bytes::from_static(b"done"), share));
        assert_eq!(budget.0.free(), free);
    }

    #[test]
    fn the_pieces_of_a_stream_are_counted_until_they_are_sent() {
        let budget = ResponseBudget::default();
        let (greedy, neighbour) =
            ["ws_a", "ws_b"].map(|id| Recipient::Workspace(crate::base::ids::Id::from_stored(id))).into();
        let piece = |recipient| budget.piece(recipient, Bytes::from(vec![b'x'; LARGE as usize]));
        let unsent: Vec<_> = std::iter::from_fn(|| piece(&greedy)).take(1_000).collect();
        assert!(unsent.len() > 15 && unsent.len() < 32, "{}", unsent.len());
        assert!(budget.piece(&greedy, Bytes::from_static(b"small")).is_some());
        assert!(piece(&neighbour).is_some());
        drop(unsent);
        assert!(piece(&greedy).is_some());
    }

    #[test]
    fn a_shared_body_takes_no_memory() {
        let own = Bytes::from(vec![b'x'; 100]);
        assert_eq!(memory_of(&own), 100);
        let _kept = own.clone();
        assert_eq!((memory_of(&own), memory_of(&Bytes::from_static(b"page"))), (0, 0));
    }
}
