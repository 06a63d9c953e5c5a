//! A live conversation that waits for its socket, and what runs it.
use super::asking;
use super::drive::Drive;
use super::peer::Peer;
use super::text_peer::TextPeer;
use crate::base::permits::Permit;
use crate::live::lease::JobLease;
use crate::live::telephony::phone_socket::PhoneMedia;
use crate::ports::{BoxFuture, Gone, Received, Socket, SocketMessage};
use crate::services::Services;
use crate::storage::calls::NewCall;
use crate::storage::snapshots::AssistantSnapshot;

/// An open call that waits for its socket.
pub struct LiveSession {
    pub(crate) services: Services,
    pub(crate) call: NewCall,
    pub(crate) hold: JobLease,
    pub(crate) assistant: AssistantSnapshot,
    /// How long the conversation may last.
    pub(crate) max_duration_ms: i64,
    /// When it is the user's turn and nothing comes for so long, that is a silence.
    pub(crate) silence_ms: i64,
    /// Whether a carrier is in between.
    pub(crate) on_phone: bool,
    /// Its side of the socket; `None` for somebody who types.
    pub(crate) line: Option<PhoneMedia>,
    pub(crate) _place: Permit,
}

impl LiveSession {
    /// The call it is.
    pub fn call_id(&self) -> &str {
        &self.call.id
    }

    /// Carries the conversation to its end and closes the socket. What it returns is for the host's
    /// log. A host that drops the future half-way leaves the call to its job.
    pub async fn run(mut self, socket: &mut dyn Socket) -> Option<String> {
        let clock = self.services.ports().clock.clone();
        match self.line.take() {
            None => {
                let seconds = u16::try_from(self.max_duration_ms / 1_000).unwrap_or(u16::MAX);
                self.drive(&mut TextPeer::new(socket, &*clock, seconds)).await
            }
            Some(line) => {
                let mut peer = line.talk(socket, &*clock);
                self.drive(&mut peer).await
            }
        }
    }

    /// Ends the call: the upgrade failed, so there was nobody to talk to.
    pub async fn abandon(self) -> Option<String> {
        self.run(&mut NoSocket).await
    }

    async fn drive(&self, peer: &mut dyn Peer) -> Option<String> {
        let specs = self.assistant.tool_specs();
        let model = asking::assistant_model(&self.services, &self.assistant, &specs);
        let drive = Drive::new(self, &specs, &model);
        drive.run(peer).await.err().map(|fault| format!("{}: {fault:?}", self.call.id))
    }
}

/// A client that is gone before it came.
struct NoSocket;

impl Socket for NoSocket {
    fn receive(&mut self, _: i64) -> BoxFuture<'_, Received> {
        Box::pin(async { Received::Gone })
    }

    fn send(&mut self, _: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async { Err(Gone) })
    }

    fn close(&mut self, _: u16, _: &'static str) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
