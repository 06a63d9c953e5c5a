//! Decides whether one more conversation may start in this process. Workspaces share its places and its memory fairly:
//! one alone may use most of both, and one that has nothing yet finds room. Telephone calls come first, because a caller
//! cannot try again later as a browser test can.
use crate::base::error::{Code, Error};
use crate::base::fair_pool::Share;
use crate::base::ids::WorkspaceId;
use crate::base::limits::{CONVERSATION_MEMORY_BYTES, KEPT_FOR_PHONES_PERCENT, LIVE_SESSIONS_MAX};
use crate::services::Services;

/// What starts a conversation, and so what it leaves to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starter {
    Browser,
    Phone,
}

impl Starter {
    /// How much of the memory stays free.
    pub(crate) fn kept_memory(self, services: &Services) -> u64 {
        let percent = match self {
            Self::Browser => KEPT_FOR_PHONES_PERCENT,
            Self::Phone => 0,
        };
        services.config().memory_bytes / 100 * percent
    }

    /// How many places stay free.
    const fn kept_places(self) -> u64 {
        match self {
            Self::Browser => LIVE_SESSIONS_MAX * KEPT_FOR_PHONES_PERCENT / 100,
            Self::Phone => 0,
        }
    }
}

/// What a conversation holds of this process, beside its assistant. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Admission {
    _place: Share<WorkspaceId>,
    _memory: Share<WorkspaceId>,
}

/// Admits one conversation; `None` while others have what it needs.
pub(crate) fn admit(services: &Services, workspace_id: &WorkspaceId, starter: Starter) -> Option<Admission> {
    let place = services.live_places().take(workspace_id, 1, starter.kept_places())?;
    let memory =
        services.memory().take(workspace_id, CONVERSATION_MEMORY_BYTES, starter.kept_memory(services))?;
    Some(Admission { _place: place, _memory: memory })
}

/// The refusal of a browser test.
pub(crate) fn no_room() -> Error {
    let message = "Too many conversations are open at the moment. Try again soon; the token is still valid.";
    let mut error = Error::new(Code::Unavailable, message);
    error.retry_after_s = Some(10);
    error
}
