//! Drives one live conversation: hears the other end, asks the model, calls the tools, keeps the journal,
//! ends the call. The conversation itself decides ([`Conversation`]); who is at the other end and how they talk is
//! the [`Peer`]'s.
mod end;
mod on_phone;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::journal;
use super::peer::{Peer, PeerEvent};
use super::session::LiveSession;
use crate::base::limits::{LIVE_COST_MICROUSD_MAX, LIVE_LEASE_KEPT_MS, PHONE_LOOK_MS, PHONE_TOLD_MS};
use crate::base::time::Timestamp;
use crate::conversation::{
    AssistantTurn, CallFault, Conversation, ConversationLimits, ConversationSetup, EndedReason, Input,
    Output, Party, ToolSpec,
};
use crate::live::telephony::leg::Leg;
use crate::live::tool_callback;
use crate::models::{AssistantModel, ModelFailure, RULES_MODEL};
use crate::ports::BoxFuture;
use crate::ports::statement::Rows;
use crate::storage::calls::Call;
use crate::storage::cost::Cost;
use crate::storage::fault::Fault;

/// How often a call's end is written anew because its carrier said something meanwhile.
const END_ATTEMPTS_MAX: u32 = 8;

/// What a model or a tool has come back with.
enum Done {
    Model { input: Input, spent: Cost, fault: Option<CallFault> },
    Tool { id: String, answer: Result<String, String> },
}

enum Event {
    Done(Done),
    PeerEvent(PeerEvent),
}

struct ToolCall {
    id: String,
    name: String,
    arguments: Value,
}

/// A conversation under way.
pub(super) struct Drive<'a> {
    session: &'a LiveSession,
    specs: &'a [ToolSpec],
    model: &'a Result<AssistantModel, ModelFailure>,
    conversation: Conversation,
    /// The model's latest question; an earlier one is dropped.
    thinking: Option<BoxFuture<'a, Done>>,
    calling: FuturesUnordered<BoxFuture<'a, Done>>,
    spent: Cost,
    /// Rows of the transcript that the other end has been told.
    told: usize,
    /// Rows of it that are on disk as they are.
    saved: usize,
    /// When the lease is extended at the latest.
    keep_at_ms: i64,
    /// When the carrier's side of the call is looked at next.
    look_at_ms: i64,
    /// Whose fault it is, where the conversation cannot know.
    fault: Option<CallFault>,
    /// When the call was answered.
    answered_at: Option<i64>,
    /// The call was never connected, and is its job's.
    given_back: bool,
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        session: &'a LiveSession,
        specs: &'a [ToolSpec],
        model: &'a Result<AssistantModel, ModelFailure>,
    ) -> Self {
        let now_ms = session.services.ports().clock.now_ms();
        let assistant = &session.assistant;
        let conversation = Conversation::new(ConversationSetup {
            id: session.call.id.to_string(),
            instructions: assistant.instructions.clone(),
            first_message: assistant.first_message.clone(),
            knowledge: Vec::new(),
            tools: specs.to_vec(),
            seed: seed(session),
            limits: ConversationLimits {
                duration_ms_max: session.max_duration_ms,
                silence_ms: Some(session.silence_ms),
                ..ConversationLimits::default()
            },
            is_spoken: session.on_phone,
        });
        Self {
            session,
            specs,
            model,
            conversation,
            thinking: None,
            calling: FuturesUnordered::new(),
            spent: Cost::default(),
            told: 0,
            saved: 0,
            keep_at_ms: now_ms + LIVE_LEASE_KEPT_MS,
            look_at_ms: if session.on_phone { now_ms + PHONE_LOOK_MS } else { i64::MAX },
            fault: None,
            answered_at: session.call.answered_at.map(Timestamp::ms),
            given_back: false,
        }
    }

    /// Carries the conversation to its end, and the call with it.
    pub(super) async fn run(mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        let outcome = match self.converse(peer).await {
            Ok(()) if self.given_back => {
                peer.over(&self.session.call.id, EndedReason::MediaLost, 0).await;
                return Ok(());
            }
            Ok(()) => self.end(peer).await,
            Err(fault) => Err(fault),
        };
        if outcome.is_err() {
            // Storage does not answer, or the call is somebody else's by now: its job settles it.
            peer.broken().await;
        }
        outcome
    }

    /// Until the conversation is over.
    async fn converse(&mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        let call = Call::of(&self.session.call, None, None)?;
        let mut opened = peer.open(&call).await;
        if self.session.on_phone {
            while opened == Err(PeerEvent::Nothing) && self.may_begin().await? {
                opened = peer.open(&call).await;
            }
            match opened {
                Ok(()) => {
                    self.connected().await?;
                    if self.given_back {
                        return Ok(());
                    }
                }
                // It was answered, and there is no audio: nobody waits for more.
                Err(PeerEvent::Nothing) => return self.unconnected(0).await,
                Err(_) => return self.unconnected(PHONE_TOLD_MS).await,
            }
        }
        self.tell(Input::Start);
        if let Err(heard) = opened {
            self.heard(heard);
        }
        loop {
            self.settle(peer).await?;
            if self.conversation.ended().is_some() {
                return Ok(());
            }
            match self.next(peer).await {
                Event::Done(done) => self.done(done),
                Event::PeerEvent(heard) => self.heard(heard),
            }
        }
    }

    /// Carries out what the conversation has decided: tells the other end, puts it on disk, and only then
    /// asks and calls.
    async fn settle(&mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        let (mut ask, mut calls) = (None, Vec::new());
        while let Some(output) = self.conversation.poll() {
            match output {
                // The transcript's rows tell of these.
                Output::Say { .. } | Output::Ended { .. } => {}
                Output::AskModel { request } => ask = Some(request),
                Output::CallTool { id, name, arguments } => calls.push(ToolCall { id, name, arguments }),
            }
        }
        self.tell_rows(peer).await;
        if self.conversation.ended().is_some() {
            // The end writes all of it.
            return Ok(());
        }
        let secrets = self.save(&calls).await?;
        if let Some(request) = ask {
            self.ask(request);
        }
        self.call_tools(calls, secrets)
    }

    /// Tells the other end of the rows it does not know. One that is gone has hung up.
    async fn tell_rows(&mut self, peer: &mut dyn Peer) {
        while let Some(row) = self.conversation.transcript().get(self.told) {
            self.told += 1;
            if peer.tell(row).await.is_err() {
                self.tell(Input::HangUp { by: Party::User });
                return;
            }
        }
    }

    /// Puts on disk what is not there, and keeps the lease. A tool's call is there before its request
    /// goes out; what signs it is read at the same moment, and so is what the carrier has said meanwhile.
    async fn save(&mut self, calls: &[ToolCall]) -> Result<Vec<Rows>, Fault> {
        let now_ms = self.now_ms();
        let session = self.session;
        let rows = self.conversation.transcript().get(self.saved..).unwrap_or_default();
        if rows.is_empty() && calls.is_empty() && now_ms < self.keep_at_ms {
            if now_ms >= self.look_at_ms {
                self.look().await?;
            }
            return Ok(Vec::new());
        }
        let mut statements = session.hold.keep(now_ms).to_vec();
        let offset_ms = self.conversation.offset_ms();
        let call = &session.call;
        statements.extend(journal::save(&call.workspace_id, &call.id, offset_ms, self.spent, rows));
        let written = statements.len();
        let tools = calls.iter().filter_map(|call| session.tool(&call.name));
        statements.extend(tools.map(|tool| tool_callback::secrets(tool, &call.workspace_id)));
        let asked = statements.len();
        statements.extend(session.on_phone.then(|| Leg::select(&call.workspace_id, &call.id)));
        let mut rows = session.services.ports().database.write(statements).await?;
        self.saved = self.conversation.transcript().len();
        self.keep_at_ms = now_ms + LIVE_LEASE_KEPT_MS;
        self.looked_at(Leg::first(rows.get(asked))?);
        rows.truncate(asked);
        Ok(rows.split_off(written.min(rows.len())))
    }

    fn ask(&mut self, request: u64) {
        if self.session.assistant.model != RULES_MODEL && self.spent.microusd >= LIVE_COST_MICROUSD_MAX {
            return self.tell(Input::CostLimit);
        }
        let left_microusd = LIVE_COST_MICROUSD_MAX - self.spent.microusd;
        let (services, assistant) = (&self.session.services, &self.session.assistant);
        let (model, tools) = (self.model, self.specs);
        let turn = self.conversation.assistant_turn();
        // Its own: the user may say more while the model thinks.
        let (history, seed) = (turn.history.to_vec(), turn.seed);
        self.thinking = Some(Box::pin(async move {
            let turn = AssistantTurn {
                instructions: &assistant.instructions,
                knowledge: &assistant.knowledge,
                tools,
                history: &history,
                seed,
            };
            let answer = match model {
                Ok(model) => model.reply(services.ports(), &turn, left_microusd).await,
                Err(failure) => Err(failure.clone()),
            };
            let spent = Cost::of(&answer);
            let (input, fault) = match answer {
                Ok(answered) => (Input::AssistantReply { request, reply: answered.reply }, None),
                Err(failure) => {
                    (Input::ModelFailed { request, reason: failure.message }, Some(failure.fault))
                }
            };
            Done::Model { input, spent, fault }
        }));
    }

    fn call_tools(&mut self, calls: Vec<ToolCall>, secrets: Vec<Rows>) -> Result<(), Fault> {
        let mut secrets = secrets.into_iter();
        let session = self.session;
        for call in calls {
            let tool = match session.tool(&call.name) {
                Some(tool) => Some((tool, tool_callback::read_secrets(tool, secrets.next().as_ref())?)),
                None => None,
            };
            self.calling.push(Box::pin(async move {
                let conversation = tool_callback::Conversation {
                    id: &session.call.id,
                    source: session.call.source.as_str(),
                    from: session.call.from.as_deref(),
                    to: session.call.to.as_deref(),
                    assistant_id: &session.assistant.id,
                    assistant_revision: session.assistant.revision,
                };
                let services = &session.services;
                let answer = match tool {
                    Some((tool, secrets)) => {
                        tool_callback::call(services, tool, secrets, &call.id, &call.arguments, &conversation)
                            .await
                    }
                    None => Err(format!("there is no tool named {}", call.name)),
                };
                Done::Tool { id: call.id, answer }
            }));
        }
        Ok(())
    }

    /// Waits for whatever comes first: an answer, something heard, or the time.
    async fn next(&mut self, peer: &mut dyn Peer) -> Event {
        let timeout_ms = self.conversation.poll_timeout().unwrap_or(i64::MAX);
        let until_ms = timeout_ms.min(self.keep_at_ms).min(self.look_at_ms);
        let (thinking, calling) = (&mut self.thinking, &mut self.calling);
        let done = poll_fn(|context| {
            if let Some(question) = thinking
                && let Poll::Ready(done) = Pin::as_mut(question).poll(context)
            {
                *thinking = None;
                return Poll::Ready(done);
            }
            match calling.poll_next_unpin(context) {
                Poll::Ready(Some(done)) => Poll::Ready(done),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        });
        // Answers first: where both are there, what came of the last line precedes the next one.
        match select(pin!(done), peer.hear(until_ms)).await {
            Either::Left((done, _)) => Event::Done(done),
            Either::Right((heard, _)) => Event::PeerEvent(heard),
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Model { input, spent, fault } => {
                self.spent.add(spent);
                self.tell(input);
                if self.conversation.ended() == Some(EndedReason::ModelFailed) {
                    self.fault = fault;
                }
            }
            Done::Tool { id, answer } => {
                let is_error = answer.is_err();
                let text = answer.unwrap_or_else(|reason| reason);
                self.tell(Input::ToolResult { id, text, is_error });
            }
        }
    }

    fn heard(&mut self, heard: PeerEvent) {
        match heard {
            // What was heard of a line changes its row, which may be on disk already.
            PeerEvent::TalkedOver { .. } | PeerEvent::Spoken => {
                self.saved = self.conversation.speaking().map_or(self.saved, |row| row.min(self.saved));
            }
            PeerEvent::Stop { fault, .. } => self.fault = Some(fault),
            _ => {}
        }
        self.tell(heard.into_input());
    }

    fn tell(&mut self, input: Input) {
        self.conversation.handle(self.now_ms(), input);
    }

    fn now_ms(&self) -> i64 {
        self.session.services.ports().clock.now_ms()
    }
}

/// 48 random bits: no two conversations have to go alike.
fn seed(session: &LiveSession) -> u64 {
    let mut bytes = [0; 8];
    session.services.ports().random.fill(&mut bytes[..6]);
    u64::from_le_bytes(bytes)
}
