//! An accepted live conversation, before its socket is open.
use std::sync::{Arc, Mutex, PoisonError};

use super::admission::Admission;
use super::drive::Drive;
use super::peer::Peer;
use super::text_peer::TextPeer;
use crate::carriers::Carrier;
use crate::conversation::{FilledTexts, ToolSpec};
use crate::live::lease::JobLease;
use crate::live::line_socket::LineMedia;
use crate::live::message::Introduction;
use crate::live::simulated::RunOfSession;
use crate::live::speech_exchanges::SpeechExchanges;
use crate::live::voice_of_call::voice_of;
use crate::models::AssistantInUse;
use crate::models::realtime::Realtime;
use crate::ports::{BoxFuture, Gone, Received, Socket, SocketMessage};
use crate::services::Services;
use crate::simulation::HeldConversation;
use crate::speech::audio::Rate;
use crate::speech::language::{not_understood, still_there};
use crate::speech::voice::Voice;
use crate::storage::calls::{Direction, NewCall};
use crate::storage::fault::Fault;

/// An accepted call whose socket is not open yet.
pub struct LiveSession {
    pub(crate) services: Services,
    pub(crate) call: NewCall,
    pub(crate) lease: JobLease,
    pub(crate) assistant: Arc<AssistantInUse>,
    /// The assistant's texts, filled in. The instructions also have what is special about this call.
    pub(crate) texts: FilledTexts,
    /// The maximum duration of the conversation.
    pub(crate) max_duration_ms: i64,
    /// How long the user may be silent.
    pub(crate) silence_ms: i64,
    /// What its models may cost, in millionths of a US dollar.
    pub(crate) max_cost_microusd: i64,
    /// Whether the call uses a carrier.
    pub(crate) on_phone: bool,
    /// Whether the service speaks the assistant's lines.
    pub(crate) is_spoken: bool,
    /// The line and the voice; `None` for a text client. Never locked: a voice cannot be shared between threads, and the
    /// rest of a session is.
    pub(crate) media: Mutex<Option<LineMedia>>,
    /// The session of a model that hears and speaks, which the voice uses, too.
    pub(crate) realtime: Option<Realtime>,
    /// The simulation run that the conversation is held for.
    pub(crate) run: Option<RunOfSession>,
    pub(crate) admission: Arc<Admission>,
}

impl LiveSession {
    /// As [`LiveSocket::run`](super::LiveSocket::run).
    pub(super) async fn run(mut self, socket: &mut dyn Socket) -> Option<String> {
        let services = self.services.clone();
        let clock = services.ports().clock.clone();
        let media = self.media.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        match media {
            None => {
                let seconds = u16::try_from(self.max_duration_ms / 1_000).unwrap_or(u16::MAX);
                let introduction = Introduction::of(&self.assistant, seconds);
                self.drive(&mut TextPeer::new(socket, &*clock, introduction)).await
            }
            Some(media) => {
                let exchanges = SpeechExchanges::new(services.ports());
                let mut peer = media.into_peer(Box::new(socket), &*clock, exchanges);
                self.drive(&mut peer).await
            }
        }
    }

    /// Holds the conversation of a run to its end. The run writes the end of its call.
    pub(super) async fn hold(
        &self,
        media: LineMedia,
        socket: &mut dyn Socket,
    ) -> Result<HeldConversation, Fault> {
        let ports = self.services.ports();
        let mut peer = media.into_peer(Box::new(socket), &*ports.clock, SpeechExchanges::new(ports));
        Drive::new(self).hold(&mut peer).await
    }

    /// As [`LiveSocket::abandon`](super::LiveSocket::abandon).
    pub(super) async fn abandon(self) -> Option<String> {
        self.run(&mut NoSocket).await
    }

    /// Its carrier.
    pub(super) fn carrier(&self) -> Option<&dyn Carrier> {
        let provider = self.call.provider.filter(|_| self.on_phone)?;
        self.services.config().carriers.get(provider).map(|carrier| &**carrier)
    }

    /// Whether it has called somebody by telephone.
    fn calls_somebody(&self) -> bool {
        self.on_phone && self.call.direction == Direction::Outbound
    }

    /// Whether its model can press keys: somebody else's telephone may answer with a menu. Who calls the assistant has none.
    pub(super) fn offers_keys(&self) -> bool {
        self.assistant.keys && self.calls_somebody()
    }

    /// The voice on its line of this rate.
    pub(super) fn make_voice(&mut self, rate: Rate) -> Voice {
        let (voice, realtime) = voice_of(self, rate);
        self.realtime = realtime;
        voice
    }

    /// Whether its assistant treats an answering machine in a way of its own: whoever it calls may have one.
    pub(super) fn meets_machines(&self) -> bool {
        self.assistant.voicemail.is_some() && self.calls_somebody()
    }

    /// The tools of its model.
    pub(super) fn tools(&self) -> &Arc<[ToolSpec]> {
        if self.offers_keys() { self.assistant.specs_with_keys() } else { self.assistant.specs() }
    }

    /// What the assistant says if its model fails: who listens sees no error.
    pub(super) fn apology(&self) -> String {
        match self.is_spoken {
            true => self.services.config().apology.clone(),
            false => String::new(),
        }
    }

    /// What the assistant asks when it hears nothing.
    pub(super) fn still_there(&self) -> &'static str {
        if self.is_spoken { still_there(&self.assistant.language) } else { "" }
    }

    /// What the assistant says when it could not understand what it heard.
    pub(super) fn not_understood(&self) -> &'static str {
        if self.is_spoken { not_understood(&self.assistant.language) } else { "" }
    }

    async fn drive(&self, peer: &mut dyn Peer) -> Option<String> {
        let drive = Drive::new(self);
        drive.run(peer).await.err().map(|fault| format!("{}: {fault:?}", self.call.id))
    }
}

/// A client that has already disconnected.
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
