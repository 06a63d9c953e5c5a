//! Drives one live conversation: hears the client, asks the model, calls the tools, keeps the journal,
//! ends the call. The conversation itself decides ([`Conversation`]).
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::journal::{self, SoFar};
use super::message::{self, ClientMessage, ServerMessage};
use super::pace::Pace;
use super::places::Place;
use crate::calls::{self, Call, CallFault, NewCall};
use crate::conversation::{
    Conversation, ConversationLimits, ConversationSetup, EndedReason, Input, Output, Party, WaitingFor,
};
use crate::engine::Engine;
use crate::error::Fault;
use crate::events::{self, EventKind, Subscribers};
use crate::jobs::browser_call::{self, Hold};
use crate::jobs::spent::Spent;
use crate::jobs::tool_callback;
use crate::limits::{
    LIVE_COST_MICROUSD_MAX, LIVE_LEASE_KEPT_MS, LIVE_SILENCE_MS, LIVE_WRONG_MESSAGES_MAX,
    SOCKET_MESSAGE_BYTES_MAX,
};
use crate::models::{AssistantModel, AssistantReply, AssistantTurn, ModelFailure, RULES_MODEL, ToolSpec};
use crate::operations::runs::AssistantSnapshot;
use crate::ports::{BoxFuture, Gone, Received, Socket};
use crate::spending;
use crate::statement::Rows;

/// An open call that waits for its socket.
pub struct LiveSession {
    pub(super) engine: Engine,
    pub(super) call: NewCall,
    pub(super) hold: Hold,
    pub(super) assistant: AssistantSnapshot,
    pub(super) subscribers: Subscribers,
    pub(super) max_duration_seconds: u16,
    pub(super) _place: Place,
}

/// Why the socket is closed, once the conversation is over (RFC 6455, 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    Normal,
    GoingAway,
    Policy,
    TooLarge,
    Internal,
}

impl Close {
    const fn code_and_reason(self) -> (u16, &'static str) {
        match self {
            Self::Normal => (1000, "the conversation is over"),
            Self::GoingAway => (1001, "the service is stopping"),
            Self::Policy => (1008, "too many messages that are wrong or come too fast"),
            Self::TooLarge => (1009, "the message is too large"),
            Self::Internal => (1011, "something broke on our side"),
        }
    }
}

impl LiveSession {
    /// The call it is.
    pub fn call_id(&self) -> &str {
        &self.call.id
    }

    /// Carries the conversation to its end and closes the socket. What it returns is for the host's
    /// log. A host that drops the future half-way leaves the call to its job.
    pub async fn run(self, socket: &mut dyn Socket) -> Option<String> {
        let specs = self.assistant.tool_specs();
        let model =
            AssistantModel::new(&self.engine, &self.assistant.model, &self.assistant.knowledge, &specs);
        let drive = Drive::new(&self, &specs, &model);
        drive.run(socket).await.err().map(|fault| format!("{}: {fault:?}", self.call.id))
    }

    /// Ends the call: the upgrade failed, so there was nobody to talk to.
    pub async fn abandon(self) -> Option<String> {
        self.run(&mut NoSocket).await
    }
}

/// A client that is gone before it came.
struct NoSocket;

impl Socket for NoSocket {
    fn receive(&mut self, _: i64) -> BoxFuture<'_, Received> {
        Box::pin(async { Received::Gone })
    }

    fn send(&mut self, _: String) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async { Err(Gone) })
    }

    fn close(&mut self, _: u16, _: &'static str) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// What a model or a tool has come back with.
enum Done {
    Model { input: Input, spent: Spent },
    Tool { id: String, answer: Result<String, String> },
}

enum Event {
    Done(Done),
    Received(Received),
}

struct ToolCall {
    id: String,
    name: String,
    arguments: Value,
}

/// A conversation under way.
struct Drive<'a> {
    session: &'a LiveSession,
    specs: &'a [ToolSpec],
    model: &'a Result<AssistantModel, ModelFailure>,
    conversation: Conversation,
    /// The model's latest question; an earlier one is dropped.
    thinking: Option<BoxFuture<'a, Done>>,
    calling: FuturesUnordered<BoxFuture<'a, Done>>,
    spent: Spent,
    /// Rows of the transcript that the client has been told.
    told: usize,
    /// Rows of it that are on disk.
    saved: usize,
    pace: Pace,
    wrong: u32,
    /// When nothing but silence was heard for long enough.
    silent_at_ms: i64,
    /// When the time is up.
    over_at_ms: i64,
    /// When the lease is extended at the latest.
    keep_at_ms: i64,
    close: Close,
    /// Whose fault it is, where the conversation cannot know.
    fault: Option<CallFault>,
}

impl<'a> Drive<'a> {
    fn new(
        session: &'a LiveSession,
        specs: &'a [ToolSpec],
        model: &'a Result<AssistantModel, ModelFailure>,
    ) -> Self {
        let now_ms = session.engine.ports().clock.now_ms();
        let max_duration_ms = i64::from(session.max_duration_seconds) * 1_000;
        let assistant = &session.assistant;
        let conversation = Conversation::new(ConversationSetup {
            id: session.call.id.clone(),
            instructions: assistant.instructions.clone(),
            first_message: assistant.first_message.clone(),
            knowledge: Vec::new(),
            tools: specs.to_vec(),
            seed: seed(session),
            limits: ConversationLimits { duration_ms_max: max_duration_ms, ..ConversationLimits::default() },
        });
        Self {
            session,
            specs,
            model,
            conversation,
            thinking: None,
            calling: FuturesUnordered::new(),
            spent: Spent::default(),
            told: 0,
            saved: 0,
            pace: Pace::new(now_ms),
            wrong: 0,
            silent_at_ms: now_ms + LIVE_SILENCE_MS,
            over_at_ms: i64::MAX,
            keep_at_ms: now_ms + LIVE_LEASE_KEPT_MS,
            close: Close::Normal,
            fault: None,
        }
    }

    async fn run(mut self, socket: &mut dyn Socket) -> Result<(), Fault> {
        let outcome = self.converse(socket).await;
        let outcome = match outcome {
            Ok(()) => self.end(socket).await,
            Err(fault) => Err(fault),
        };
        if outcome.is_err() {
            // Storage does not answer, or the call is somebody else's by now: its job settles it.
            self.close = Close::Internal;
            let message = "Something broke on our side, so the conversation ends here.".to_owned();
            let _ = socket.send(ServerMessage::Error { code: "internal", message }.text()).await;
        }
        let (code, reason) = self.close.code_and_reason();
        socket.close(code, reason).await;
        outcome
    }

    /// Until the conversation is over.
    async fn converse(&mut self, socket: &mut dyn Socket) -> Result<(), Fault> {
        let call = Call::of(&self.session.call, None, None)?;
        let max_duration_seconds = self.session.max_duration_seconds;
        let started = ServerMessage::CallStarted { call: &call, max_duration_seconds };
        let opened = socket.send(started.text()).await;
        self.tell(Input::Start);
        self.over_at_ms = self.now_ms() + i64::from(max_duration_seconds) * 1_000;
        if opened.is_err() {
            self.tell(Input::HangUp { by: Party::User });
        }
        loop {
            self.settle(socket).await?;
            if self.conversation.ended().is_some() {
                return Ok(());
            }
            match self.next(socket).await {
                Event::Done(done) => self.done(done),
                Event::Received(received) => self.received(socket, received).await?,
            }
        }
    }

    /// Carries out what the conversation has decided: tells the client, puts it on disk, and only then
    /// asks and calls.
    async fn settle(&mut self, socket: &mut dyn Socket) -> Result<(), Fault> {
        let (mut ask, mut calls) = (None, Vec::new());
        while let Some(output) = self.conversation.poll() {
            match output {
                // The transcript's rows tell of these.
                Output::Say { .. } | Output::Ended { .. } => {}
                Output::AskModel { request } => ask = Some(request),
                Output::CallTool { id, name, arguments } => calls.push(ToolCall { id, name, arguments }),
            }
        }
        self.tell_rows(socket).await;
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

    /// Tells the client of the rows it does not know. One that is gone has hung up.
    async fn tell_rows(&mut self, socket: &mut dyn Socket) {
        while let Some(row) = self.conversation.transcript().get(self.told) {
            self.told += 1;
            let Some(text) = message::of_row(row).map(|message| message.text()) else { continue };
            if socket.send(text).await.is_err() {
                self.tell(Input::HangUp { by: Party::User });
                return;
            }
            self.silent_at_ms = self.now_ms() + LIVE_SILENCE_MS;
        }
    }

    /// Puts on disk what is not there, and keeps the lease. A tool's call is there before its request
    /// goes out; what signs it is read at the same moment.
    async fn save(&mut self, calls: &[ToolCall]) -> Result<Vec<Rows>, Fault> {
        let now_ms = self.now_ms();
        let rows = self.conversation.transcript().get(self.saved..).unwrap_or_default();
        if rows.is_empty() && calls.is_empty() && now_ms < self.keep_at_ms {
            return Ok(Vec::new());
        }
        let mut statements = self.session.hold.keep(now_ms).to_vec();
        let offset_ms = self.conversation.offset_ms();
        let call = &self.session.call;
        statements.extend(journal::save(&call.workspace_id, &call.id, offset_ms, self.spent, rows));
        let written = statements.len();
        let tools = calls.iter().filter_map(|call| self.session.tool(&call.name));
        statements.extend(tools.map(|tool| tool_callback::secrets(tool, &self.session.call.workspace_id)));
        let mut rows = self.session.engine.ports().database.write(statements).await?;
        self.saved = self.conversation.transcript().len();
        self.keep_at_ms = now_ms + LIVE_LEASE_KEPT_MS;
        Ok(rows.split_off(written.min(rows.len())))
    }

    fn ask(&mut self, request: u64) {
        if self.session.assistant.model != RULES_MODEL && self.spent.microusd >= LIVE_COST_MICROUSD_MAX {
            return self.tell(Input::CostLimit);
        }
        let (engine, assistant) = (&self.session.engine, &self.session.assistant);
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
                Ok(model) => model.reply(engine, &turn).await,
                Err(failure) => Err(failure.clone()),
            };
            let spent = Spent::of(&answer);
            let input = match answer {
                Ok(answered) => answered_with(request, answered.reply),
                Err(failure) => Input::ModelFailed { request, reason: failure.message },
            };
            Done::Model { input, spent }
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
                    assistant_id: &session.assistant.id,
                    assistant_revision: session.assistant.revision,
                };
                let engine = &session.engine;
                let answer = match tool {
                    Some((tool, secrets)) => {
                        tool_callback::call(engine, tool, secrets, &call.id, &call.arguments, &conversation)
                            .await
                    }
                    None => Err(format!("there is no tool named {}", call.name)),
                };
                Done::Tool { id: call.id, answer }
            }));
        }
        Ok(())
    }

    /// Waits for whatever comes first: an answer, a message, or the time.
    async fn next(&mut self, socket: &mut dyn Socket) -> Event {
        let mut until_ms = self.over_at_ms.min(self.keep_at_ms);
        if self.conversation.waiting_for() == WaitingFor::User {
            until_ms = until_ms.min(self.silent_at_ms);
        }
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
        match select(pin!(done), socket.receive(until_ms)).await {
            Either::Left((done, _)) => Event::Done(done),
            Either::Right((received, _)) => Event::Received(received),
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Model { input, spent } => {
                self.spent.add(spent);
                self.tell(input);
            }
            Done::Tool { id, answer } => {
                let is_error = answer.is_err();
                let text = answer.unwrap_or_else(|reason| reason);
                self.tell(Input::ToolResult { id, text, is_error });
            }
        }
    }

    async fn received(&mut self, socket: &mut dyn Socket, received: Received) -> Result<(), Fault> {
        let now_ms = self.now_ms();
        match received {
            Received::Text(text) if text.len() <= SOCKET_MESSAGE_BYTES_MAX => {
                self.silent_at_ms = now_ms + LIVE_SILENCE_MS;
                let read = match self.pace.allows(now_ms) {
                    true => message::read(&text).map_err(|message| ("invalid_message", message)),
                    false => {
                        Err(("too_fast", "Messages come too fast. Wait for an answer first.".to_owned()))
                    }
                };
                match read {
                    Ok(ClientMessage::UserText(text)) => self.tell(Input::UserText { text, duration_ms: 0 }),
                    Ok(ClientMessage::HangUp) => self.tell(Input::HangUp { by: Party::User }),
                    Err((code, message)) => self.wrong(socket, code, message).await,
                }
            }
            Received::Binary(bytes) if bytes <= SOCKET_MESSAGE_BYTES_MAX => {
                let message = "Binary messages are for speech, which this version does not take. Send text.";
                self.wrong(socket, "invalid_message", message.to_owned()).await;
            }
            Received::Text(_) | Received::Binary(_) | Received::TooLarge => {
                let message = format!("A message has at most {SOCKET_MESSAGE_BYTES_MAX} bytes.");
                let told = ServerMessage::Error { code: "message_too_large", message };
                let _ = socket.send(told.text()).await;
                self.stop(Close::TooLarge, CallFault::Caller);
            }
            Received::Nothing => {
                self.tell(Input::Tick);
                if now_ms >= self.silent_at_ms && self.conversation.waiting_for() == WaitingFor::User {
                    self.silent_at_ms = now_ms + LIVE_SILENCE_MS;
                    self.tell(Input::Silence);
                }
                // Keeping the lease is part of what follows.
            }
            Received::Stopping => self.stop(Close::GoingAway, CallFault::Platform),
            Received::Gone => self.tell(Input::HangUp { by: Party::User }),
        }
        Ok(())
    }

    /// Tells the client what is wrong with its message; ends it with one that does not learn.
    async fn wrong(&mut self, socket: &mut dyn Socket, code: &'static str, message: String) {
        self.wrong += 1;
        let sent = socket.send(ServerMessage::Error { code, message }.text()).await;
        if sent.is_err() {
            self.tell(Input::HangUp { by: Party::User });
        } else if self.wrong >= LIVE_WRONG_MESSAGES_MAX {
            self.stop(Close::Policy, CallFault::Caller);
        }
    }

    fn stop(&mut self, close: Close, fault: CallFault) {
        self.close = close;
        self.fault = Some(fault);
        self.tell(Input::Abort);
    }

    /// Ends the call in one batch, then tells the client.
    async fn end(&mut self, socket: &mut dyn Socket) -> Result<(), Fault> {
        // What is under way is over with: a request is aborted, a question not waited for.
        self.thinking = None;
        self.calling = FuturesUnordered::new();
        let session = self.session;
        let now_ms = self.now_ms();
        let reason = self.conversation.ended().unwrap_or(EndedReason::Aborted);
        let so_far = SoFar {
            offset_ms: self.conversation.offset_ms(),
            spent: self.spent,
            transcript: self.conversation.transcript().to_vec(),
        };
        let duration_ms = so_far.offset_ms;
        let fault = self.fault.unwrap_or_else(|| reason.fault());
        let answered_at = session.call.started_at;
        let ended = browser_call::ended(so_far, reason, fault, answered_at, now_ms);
        let workspace_id = &session.call.workspace_id;
        let mut statements = session.hold.hand_over().to_vec();
        statements.extend(calls::write::end(workspace_id, &session.call.id, &ended, None));
        statements.extend(journal::forget(workspace_id, &session.call.id));
        statements.extend(spending::add(workspace_id, now_ms, self.spent.microusd));
        let mut wake = vec![session.hold.job_id().to_owned()];
        if session.subscribers.want(EventKind::CallEnded) {
            let data = json!({"call": Call::of(&session.call, Some(&ended), None)?});
            let kind = EventKind::CallEnded;
            let emitted =
                events::emit(&session.engine, workspace_id, &session.subscribers, kind, &data, now_ms);
            statements.extend(emitted.statements);
            wake.extend(emitted.wake);
        }
        let ports = session.engine.ports();
        ports.database.write(statements).await?;
        for job_id in wake {
            ports.queue.wake(&job_id, now_ms);
        }
        if reason == EndedReason::ModelFailed {
            // Why exactly is between the operator and the provider.
            let message = "The assistant's model did not answer, so the conversation ends here.".to_owned();
            let _ = socket.send(ServerMessage::Error { code: "model_failed", message }.text()).await;
        }
        let over = ServerMessage::CallEnded { call_id: &session.call.id, ended_reason: reason, duration_ms };
        // A client that is gone knows.
        let _ = socket.send(over.text()).await;
        Ok(())
    }

    fn tell(&mut self, input: Input) {
        self.conversation.handle(self.now_ms(), input);
    }

    fn now_ms(&self) -> i64 {
        self.session.engine.ports().clock.now_ms()
    }
}

impl LiveSession {
    fn tool(&self, name: &str) -> Option<&crate::operations::runs::ToolSnapshot> {
        self.assistant.tools.iter().find(|tool| tool.name == name)
    }
}

fn answered_with(request: u64, reply: AssistantReply) -> Input {
    Input::AssistantReply { request, reply }
}

/// 48 random bits: no two conversations have to go alike.
fn seed(session: &LiveSession) -> u64 {
    let mut bytes = [0; 8];
    session.engine.ports().random.fill(&mut bytes[..6]);
    u64::from_le_bytes(bytes)
}
