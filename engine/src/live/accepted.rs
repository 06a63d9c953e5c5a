//! An accepted socket, before it is upgraded: that of a call that begins, or of one whose caller is back.
use super::session::LiveSession;
use crate::base::ids::{CallId, WorkspaceId};
use crate::ports::{Socket, SocketHolder};

/// What a host runs over an accepted socket.
pub enum LiveSocket {
    /// A conversation that begins.
    Call(Box<LiveSession>),
    /// The caller of a conversation under way, who was handed over and is back: another task runs it.
    Back(WorkspaceId, CallId, SocketHolder),
}

impl LiveSocket {
    /// The id of the call.
    pub fn call_id(&self) -> &CallId {
        match self {
            Self::Call(session) => &session.call.id,
            Self::Back(_, call_id, _) => call_id,
        }
    }

    /// The workspace whose assistant talks.
    pub fn workspace(&self) -> &str {
        match self {
            Self::Call(session) => &session.call.workspace_id,
            Self::Back(workspace_id, ..) => workspace_id,
        }
    }

    /// Whether the service speaks, as it does on every telephone line.
    pub fn is_spoken(&self) -> bool {
        match self {
            Self::Call(session) => session.is_spoken,
            Self::Back(..) => true,
        }
    }

    /// Runs the conversation to its end and closes the socket. Returns errors for the host's log. If the host drops the
    /// future, the call's job ends the call.
    pub async fn run(self, socket: &mut dyn Socket) -> Option<String> {
        match self {
            Self::Call(session) => session.run(socket).await,
            Self::Back(_, _, holder) => {
                holder.hold(socket).await;
                None
            }
        }
    }

    /// Ends the call after a failed upgrade.
    pub async fn abandon(self) -> Option<String> {
        match self {
            Self::Call(session) => session.abandon().await,
            // The conversation notices.
            Self::Back(..) => None,
        }
    }
}
