//! Models that hear and speak: OpenAI's Realtime protocol (GA, over a WebSocket), which other services speak, too.
//!
//! One session for each conversation is its model, its ear and its mouth. The three share a state machine without a socket
//! or a clock (`session.rs`):
//!
//! - **The ear** ([`RealtimeEar`]) is a transcription session's (`speech/transcribers/openai_realtime.rs`): our own detector
//!   finds the utterances, and the server's turn detection is off. So a listener decides who gives way and when a turn is
//!   over, as it does with every other transcriber. The model hears the audio, and not the transcript.
//! - **The model** ([`Realtime::ask`]) answers with a response, whose transcript is written as any other model's answer is.
//! - **The mouth** ([`RealtimeMouth`]) finds the response to the line that the conversation says, and its audio is played. A
//!   line that the model did not write is read out by it, beside the conversation.
//!
//! | file | contents |
//! | --- | --- |
//! | `session.rs` | joins the ear and the responses |
//! | `responses.rs` | the responses: asked, read, cancelled, cut |
//! | `asked.rs` | what they are asked for, and the one that is being made |
//! | `spoken.rs` | the audio of the responses, and the lines that it belongs to |
//! | `on_server.rs` | what the server has of the conversation's history |
//! | `usage.rs` | what a response costs |
//! | `wire.rs` | the messages |
//! | `builtin.rs` | the server of `builtin/rules`, inside the process |
mod asked;
mod builtin;
mod faces;
mod on_server;
mod responses;
mod session;
mod spoken;
mod usage;
mod wire;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

pub use faces::{RealtimeEar, RealtimeMouth};
pub use wire::SPEEDS;

use self::session::Session;
use super::AssistantInUse;
use super::asking::{ModelFailure, Usage, Written};
use super::settings::ModelSettings;
use crate::conversation::{AssistantReply, Message, ToolSpec};
use crate::speech::audio::Rate;
use crate::speech::transcribers::TranscriberSettings;

/// What a session is made of.
#[derive(Debug, Clone)]
pub struct RealtimeSettings {
    /// Its address and key, and how it transcribes. The model is that of the transcription; empty for the server's own.
    pub transcription: TranscriberSettings,
    /// The model's name at the provider.
    pub model: String,
    /// The voice's name at the provider; `None` for the provider's default.
    pub voice: Option<String>,
    /// How fast it speaks; `None` for the normal speed.
    pub speed: Option<f64>,
    /// Everything that the model is told before the conversation.
    pub prompt: String,
    /// Its tools, with the one that ends the call.
    pub tools: Vec<ToolSpec>,
    /// Whether one of them ends the call, and is none of the assistant's own.
    pub hangs_up: bool,
    /// Its prices.
    pub prices: ModelSettings,
    /// The assistant, if its model is `builtin/rules`: no server is asked then.
    pub builtin: Option<Arc<AssistantInUse>>,
}

/// The session of one conversation.
#[derive(Clone)]
pub struct Realtime(Arc<Mutex<Session>>);

impl Realtime {
    /// A session on a line of this rate; it is opened with the first audio.
    #[must_use]
    pub fn new(settings: &RealtimeSettings, line_rate: Rate) -> Self {
        // Mu-law passes through; anything else is linear at the only rate that the protocol knows.
        let rate = if line_rate == Rate::Khz8 { Rate::Khz8 } else { Rate::Khz24 };
        Self(Arc::new(Mutex::new(Session::new(settings, rate))))
    }

    /// Asks the model for the next step of a conversation with this history; what it writes meanwhile can be taken from the
    /// second part. A question whose [`Answer`] is dropped is not answered, and neither is one before the latest.
    ///
    /// The rule model's phrasing follows from the seed.
    #[must_use]
    pub fn ask(&self, now_ms: i64, history: Vec<Message>, seed: u64) -> (Answer, Written) {
        self.session().ask(now_ms, history, seed)
    }

    /// The person has stopped speaking, after this history: the model may answer what it has heard before its words are
    /// known. [`ask`](Self::ask) with one more line of the person takes over what comes of it.
    pub fn anticipate(&self, now_ms: i64, history: Vec<Message>) {
        self.session().anticipate(now_ms, history);
    }

    /// The person goes on, or has said nothing: what was anticipated is dropped.
    pub fn forget_anticipated(&self, now_ms: i64) {
        self.session().forget_anticipated(now_ms);
    }

    /// What the model has cost since the last call, in tokens and in millionths of a US dollar.
    #[must_use]
    pub fn take_cost(&self) -> (Usage, i64) {
        self.session().take_cost()
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Outcome = Result<AssistantReply, ModelFailure>;

#[derive(Default)]
struct Slot {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// A model's answer, once it is whole.
#[derive(Default)]
pub struct Answer(Arc<Mutex<Slot>>);

impl Answer {
    fn slot(&self) -> AnswerSlot {
        AnswerSlot(Arc::downgrade(&self.0))
    }
}

impl Future for Answer {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Where an answer goes.
struct AnswerSlot(Weak<Mutex<Slot>>);

impl AnswerSlot {
    /// Whether somebody waits for it.
    fn is_awaited(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// More of the answer is written: who waits for it may look.
    fn wake(&self) {
        self.change(|_| {});
    }

    fn give(&self, outcome: Outcome) {
        self.change(|slot| slot.outcome = Some(outcome));
    }

    fn change(&self, change: impl FnOnce(&mut Slot)) {
        let Some(slot) = self.0.upgrade() else { return };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut slot);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
