//! Drives one live conversation: receives the peer's events, asks the model, calls the tools, writes the journal, ends
//! the call. The [`Conversation`] makes all decisions, including those about silence and the time limit; the [`Peer`]
//! is the transport. Models and tools are used as in simulation runs (`asking`, `tool_calls`).
mod early;
mod end;
mod held;
mod machine;
mod on_phone;
mod question;
mod recording;
mod saving;
mod saying;
mod speech_costs;
mod transfer;

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;

use early::Early;
use machine::Answerer;
use question::Thinking;
use saying::Said;
use transfer::{Ringing, Transferring};

use self::recording::RecordingWriter;
use super::admission::Growth;
use super::asking::Asked;
use super::peer::{Peer, PeerEvent};
use super::session::LiveSession;
use super::tool_calls::{ToolAnswer, ToolCall, ToolCaller};
use crate::base::limits::PHONE_REPORT_WAIT_MS;
use crate::base::time::Timestamp;
use crate::conversation::input_log::InputLog;
use crate::conversation::{
    AssistantReply, CallFault, Conversation, ConversationLimits, ConversationSetup, EndedReason, Input,
    Output, WaitingFor,
};
use crate::live::telephony::transfer::Transferred;
use crate::models::FailureCode;
use crate::ports::{BoxFuture, Home, Told};
use crate::simulation::live_caller::TurnState;
use crate::simulation::tool_mocks::Mocking;
use crate::simulation::{HeldFailure, SimulationSetup};
use crate::speech::exchange::{SpeechFailure, SpeechFault};
use crate::speech::turn_times::TurnTimes;
use crate::storage::calls::Call;
use crate::storage::cost::Cost;
use crate::storage::fault::Fault;
use crate::storage::recordings;

/// The result of a model request or a tool call.
enum Done {
    /// The model has begun to write.
    Began,
    /// It has written more of its answer.
    Text {
        request: u64,
        text: String,
    },
    Model {
        request: u64,
        asked: Asked<AssistantReply>,
        is_cut_short: bool,
    },
    Tool(ToolAnswer),
    /// The carrier has answered a request to hand the call over, of the tool call with this id.
    Transfer(String, Result<Transferred, Fault>),
    /// The carrier has answered a command to connect a caller again whom nobody has taken.
    CalledBack {
        visit: u32,
        is_done: bool,
    },
}

enum Event {
    Done(Done),
    PeerEvent(PeerEvent),
    Told(Told),
}

/// A running conversation.
pub(super) struct Drive<'a> {
    session: &'a LiveSession,
    home: Home,
    tools: ToolCaller<'a>,
    mocking: Mocking<'a>,
    recording: RecordingWriter<'a>,
    conversation: Conversation,
    inputs: InputLog,
    /// The latest request to the model; a new one replaces it.
    thinking: Option<Thinking<'a>>,
    calling: FuturesUnordered<BoxFuture<'a, Done>>,
    /// The request that hands the call over.
    transferring: Option<Transferring<'a>>,
    /// The name of whom the call was handed over to last.
    handed_to: String,
    /// The carrier has the line, and the other side rings.
    ringing: Option<Ringing>,
    /// Whether the caller came back before the carrier had answered the request.
    is_back_early: bool,
    /// How often the caller came back.
    returns: u32,
    /// The carrier has the line, or may have it: nobody here may end it, whatever ended the conversation.
    line_taken: Option<EndedReason>,
    /// Whether a machine has answered.
    answerer: Answerer,
    /// A request that was made before the user's turn has ended.
    early: Option<Early<'a>>,
    /// How many such requests this turn had.
    early_questions: u32,
    spent: Cost,
    growth: Growth,
    /// The number of transcript rows sent to the peer.
    sent_rows: usize,
    /// Whose turn it is, as the peer was told last.
    turn_state: TurnState,
    /// The latest line that the peer was given to speak.
    said: Said,
    /// The rows that were cut since the peer was told last.
    cut_rows: Vec<usize>,
    /// The number of transcript rows stored in their current form.
    saved_rows: usize,
    /// The times of the latest turns, as they are stored.
    saved_turns: Vec<TurnTimes>,
    /// The number of transcript rows that a write was planned for.
    planned_rows: usize,
    /// When the journal was written last.
    saved_at_ms: i64,
    /// When it is written next if nothing requires it earlier.
    save_at_ms: i64,
    /// When segments of the recording are taken next, if nothing happens earlier.
    segments_at_ms: i64,
    /// Whether nothing more can be said: the connection or the carrier's call has ended, or a hang-up was requested.
    is_connection_over: bool,
    /// The cause of the end, if the reason does not determine it.
    fault: Option<CallFault>,
    /// Why the conversation could not go on, for the owner of its run.
    failure: Option<HeldFailure>,
    /// When the call was answered.
    answered_at: Option<i64>,
    /// Whether the call was never connected and its lease is released, so that its job ends it.
    is_released: bool,
}

impl<'a> Drive<'a> {
    pub(super) fn new(session: &'a LiveSession) -> Self {
        let now_ms = session.services.ports().clock.now_ms();
        let assistant = &session.assistant;
        let setup = ConversationSetup {
            id: session.call.id.to_string(),
            instructions: session.texts.instructions.clone(),
            first_message: session.texts.first_message.clone(),
            knowledge: assistant.knowledge.clone(),
            tools: session.tools().clone(),
            has_transfers: !assistant.transfers.is_empty(),
            seed: session.run.as_ref().map_or_else(|| seed(session), |run| run.seed),
            limits: ConversationLimits {
                duration_ms_max: session.max_duration_ms,
                silence_ms: Some(session.silence_ms),
                ..match session.run {
                    Some(_) => SimulationSetup::default_limits(),
                    None => ConversationLimits::default(),
                }
            },
            is_spoken: session.is_spoken,
            apology: session.apology(),
            still_there: session.still_there().to_owned(),
            not_understood: session.not_understood().to_owned(),
            keys: session.offers_keys(),
            filler: assistant.speech.filler.clone(),
            opening_note: session.texts.note().unwrap_or_default(),
            voicemail: session.texts.voicemail.clone().filter(|_| session.meets_machines()),
        };
        Self {
            session,
            home: session.services.ports().live.own(&session.call.id),
            recording: RecordingWriter::new(session),
            tools: ToolCaller::new(&session.services, assistant, &session.call),
            mocking: Mocking::new(session.run.as_ref().map(|run| &*run.mocks)),
            inputs: InputLog::new(&setup),
            conversation: Conversation::new(setup),
            thinking: None,
            calling: FuturesUnordered::new(),
            transferring: None,
            handed_to: String::new(),
            ringing: None,
            is_back_early: false,
            returns: 0,
            line_taken: None,
            answerer: Answerer::default(),
            early: None,
            early_questions: 0,
            spent: Cost::default(),
            growth: session.admission.growth(),
            sent_rows: 0,
            turn_state: TurnState::default(),
            said: Said::default(),
            cut_rows: Vec::new(),
            saved_rows: 0,
            saved_turns: Vec::new(),
            planned_rows: 0,
            saved_at_ms: now_ms,
            // With the first line.
            save_at_ms: now_ms,
            segments_at_ms: now_ms,
            is_connection_over: false,
            fault: None,
            failure: None,
            answered_at: session.call.answered_at.map(Timestamp::ms),
            is_released: false,
        }
    }

    /// Runs the conversation and ends the call.
    pub(super) async fn run(mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        let outcome = match self.converse(peer).await {
            Ok(()) if self.is_released => {
                peer.end(&self.session.call.id, EndedReason::MediaLost, 0).await;
                return Ok(());
            }
            Ok(()) => self.end(peer).await,
            Err(fault) => Err(fault),
        };
        if outcome.is_err() {
            // Storage does not respond, or another process holds the lease: the job ends the call.
            self.await_transfer(peer).await;
            match self.line_taken {
                // A carrier needs time to take the line.
                Some(reason) => peer.end(&self.session.call.id, reason, 0).await,
                None => peer.fail().await,
            }
        }
        outcome
    }

    /// Runs until the conversation has ended. Boxed, because two callers would have a copy of all of it each: 20 KB of the
    /// Worker.
    fn converse<'b>(&'b mut self, peer: &'b mut dyn Peer) -> BoxFuture<'b, Result<(), Fault>> {
        Box::pin(self.talk(peer))
    }

    async fn talk(&mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        let call = Call::of(&self.session.call, None, None)?;
        let mut opened = peer.open(&call).await;
        if self.session.on_phone {
            while opened == Err(PeerEvent::Nothing) && self.may_keep_waiting().await? {
                opened = peer.open(&call).await;
            }
            match opened {
                // Also answered: audio that nobody understands. There will be no other.
                Ok(()) | Err(PeerEvent::Stop { .. }) => {
                    self.mark_connected().await?;
                    if self.is_released {
                        return Ok(());
                    }
                }
                // Answered without audio: no report to wait for.
                Err(PeerEvent::Nothing) => return self.release_unconnected(0).await,
                Err(_) => return self.release_unconnected(PHONE_REPORT_WAIT_MS).await,
            }
        }
        // A machine may be known before the first audio: then it is not greeted.
        self.meet_machine();
        self.handle(Input::Start);
        peer.begin(self.started_ms(), recordings::segment_ms(&self.session.services));
        if let Err(event) = opened {
            self.peer_event(event, &*peer);
        }
        loop {
            self.execute_outputs(peer).await?;
            self.take_segments(peer, false);
            if self.conversation.ended().is_some() {
                return Ok(());
            }
            if self.meet_machine() || self.give_up_ringing().await? {
                continue;
            }
            let event = self.next(peer).await;
            // First what has failed: nothing more is said with a voice that has failed for good.
            for failure in peer.take_speech_failures() {
                self.speech_failed(failure);
            }
            match event {
                Event::Done(Done::Transfer(id, transferred)) => {
                    self.transferred(id, transferred?, peer);
                    if self.is_back_early {
                        self.is_back().await?;
                    }
                }
                Event::Done(done) => {
                    let has_answered = match &done {
                        Done::Began => true,
                        Done::Model { asked, .. } => asked.answer.is_ok(),
                        Done::Text { .. } | Done::Tool(_) | Done::Transfer(..) | Done::CalledBack { .. } => {
                            false
                        }
                    };
                    if has_answered {
                        peer.model_answered();
                    }
                    self.completed(done);
                }
                // Of a transferred call, it is no news.
                Event::PeerEvent(event) if event.is_the_end() && self.ended_by_transfer(peer).await? => {
                    self.is_connection_over = true;
                }
                Event::PeerEvent(PeerEvent::Back) => self.is_back().await?,
                Event::PeerEvent(PeerEvent::Broke) => {
                    let event = self.why_broken().await?;
                    self.peer_event(event, &*peer);
                }
                Event::PeerEvent(event) => self.peer_event(event, &*peer),
                Event::Told(Told::Visited) => self.reconnect(peer),
                Event::Told(told) => self.told(told),
            }
            self.note_cut_recording();
        }
    }

    /// Carries out the conversation's outputs: notifies the peer, writes the journal if that is due, as it is before tools
    /// are called and keys pressed, and asks models.
    async fn execute_outputs(&mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        let (mut ask, mut calls, mut keys) = (None, Vec::new(), Vec::new());
        while let Some(output) = self.conversation.poll() {
            match output {
                // The transcript's rows report these.
                Output::Say { .. } | Output::Ended { .. } => {}
                Output::AskModel { request } => ask = Some(request),
                Output::CallTool { id, name, arguments } => {
                    let mocked = self.mocking.answer(self.conversation.transcript(), &id);
                    calls.push(ToolCall { id, name, arguments, mocked });
                }
                Output::PressKeys { id, keys: these } => keys.push((id, these)),
                Output::Hush => peer.hush().await,
            }
        }
        if self.conversation.waiting_for() != WaitingFor::Model {
            // The user has interrupted the answer.
            self.forget_question();
        }
        self.growth.count(self.conversation.transcript_bytes());
        self.send_rows(peer).await;
        self.tell_turn_state(peer).await;
        let is_line_over = self.session.on_phone && peer.ended_at_ms().is_some();
        if self.conversation.ended().is_some() || is_line_over {
            // The end of the call writes all rows, and nothing is asked or called for a line that is over.
            return Ok(());
        }
        self.count_speech(peer);
        if self.has_overspent() {
            // Speech costs while it goes on, not only when the model is asked.
            self.handle(Input::CostLimit);
            return Ok(());
        }
        let heard = peer.heard_permille(self.now_ms());
        let is_due = self.is_save_due();
        let calls = match is_due || !calls.is_empty() || !keys.is_empty() {
            true => self.save(calls, &heard, self.turns(&*peer)).await?,
            false => Vec::new(),
        };
        if self.conversation.ended().is_some() {
            // The carrier has reported the end: a request that nobody waits for costs nothing if it is not made.
            return Ok(());
        }
        if let Some(request) = ask {
            self.ask(request);
        }
        self.make(calls, peer);
        for (id, keys) in keys {
            peer.press_keys(id, keys).await;
        }
        Ok(())
    }

    /// Waits for the first of: a result, an event of the peer, or the deadline.
    async fn next(&mut self, peer: &mut dyn Peer) -> Event {
        let timeout_ms = self.conversation.poll_timeout().unwrap_or(i64::MAX);
        loop {
            peer.send_due().await;
            let until_ms = timeout_ms.min(self.save_due_ms()).min(self.segments_at_ms);
            let until_ms = self.ringing.as_ref().map_or(until_ms, |ringing| until_ms.min(ringing.until_ms));
            let home = &mut self.home;
            let (thinking, calling) = (&mut self.thinking, &mut self.calling);
            let (early, recording) = (&mut self.early, &mut self.recording);
            let transferring = &mut self.transferring;
            let event = poll_fn(|context| {
                recording.poll(context);
                if let Poll::Ready(told) = home.poll(context) {
                    return Poll::Ready(Event::Told(told));
                }
                if let Some(early) = early {
                    early.poll(context);
                }
                if let Some(Thinking { request, question }) = thinking {
                    let request = *request;
                    if let Poll::Ready(asked) = question.answer.as_mut().poll(context) {
                        let is_cut_short = question.written.is_cut_short();
                        *thinking = None;
                        return Poll::Ready(Event::Done(Done::Model { request, asked, is_cut_short }));
                    }
                    if question.written.take_beginning() {
                        return Poll::Ready(Event::Done(Done::Began));
                    }
                    if let Some(text) = question.written.take() {
                        return Poll::Ready(Event::Done(Done::Text { request, text }));
                    }
                }
                if let Some(request) = transferring
                    && let Poll::Ready((id, transferred)) = request.as_mut().poll(context)
                {
                    *transferring = None;
                    return Poll::Ready(Event::Done(Done::Transfer(id, transferred)));
                }
                match calling.poll_next_unpin(context) {
                    Poll::Ready(Some(done)) => Poll::Ready(Event::Done(done)),
                    Poll::Ready(None) | Poll::Pending => Poll::Pending,
                }
            });
            // Results come first: a result that is ready belongs to the line before the next event.
            match select(pin!(event), peer.next_event(until_ms)).await {
                Either::Left((event, _)) => return event,
                Either::Right((Some(event), _)) => return Event::PeerEvent(event),
                Either::Right((None, _)) => {}
            }
        }
    }

    /// Takes what was recorded; with `is_over`, the rest of it.
    fn take_segments(&mut self, peer: &mut dyn Peer, is_over: bool) {
        let at_ms = if is_over { self.conversation.now_ms() } else { self.now_ms() };
        while let Some(segment) = peer.take_segment(at_ms, is_over) {
            self.recording.add(segment);
        }
        self.segments_at_ms = match self.session.is_spoken {
            // A segment is complete a while after its end.
            true => at_ms + recordings::segment_ms(&self.session.services) / 5,
            false => i64::MAX,
        };
    }

    fn completed(&mut self, done: Done) {
        match done {
            // Who drives the conversation does more with the last.
            Done::Began | Done::Transfer(..) => {}
            Done::CalledBack { visit, is_done } => self.called_back(visit, is_done),
            Done::Text { request, text } => {
                self.handle(Input::AssistantText { request, text });
            }
            Done::Model { request, asked, is_cut_short } => {
                // The row was stored when the line began, and then as far as it was heard.
                let written = self.conversation.being_written();
                self.saved_rows = written.map_or(self.saved_rows, |row| row.min(self.saved_rows));
                self.spent.add(asked.cost);
                match asked.answer {
                    Ok(reply) => {
                        self.handle(Input::AssistantReply { request, reply });
                        if is_cut_short {
                            self.note(
                                "The assistant's model reached its token limit in the middle of its answer"
                                    .to_owned(),
                            );
                        }
                    }
                    Err(failure) if failure.code == FailureCode::CostLimit => self.handle(Input::CostLimit),
                    Err(failure) => {
                        let message = format!("The assistant's model failed: {}", failure.message);
                        if self.conversation.being_written().is_none() {
                            self.note(message.clone());
                        }
                        self.handle(Input::ModelFailed { request, reason: failure.message });
                        if self.conversation.ended() == Some(EndedReason::ModelFailed) {
                            self.fault = Some(failure.fault);
                            self.failed(failure.code.as_str(), message);
                        }
                    }
                }
            }
            Done::Tool(ToolAnswer { id, text, is_error, mocked, .. }) => {
                self.handle(Input::ToolResult { id, text, is_error, mocked });
            }
        }
    }

    /// A voice or a transcriber failed. If it fails for good, nobody can talk any more.
    fn speech_failed(&mut self, failure: SpeechFailure) {
        if !failure.is_temporary {
            let message = format!("The assistant's speech failed: {}", failure.message);
            self.failed(EndedReason::SpeechFailed.as_str(), message);
        }
        self.note(failure.message);
        if !failure.is_temporary {
            self.fault = Some(match failure.fault {
                SpeechFault::Operator => CallFault::Operator,
                SpeechFault::Provider => CallFault::Provider,
            });
            self.handle(Input::Stop { reason: EndedReason::SpeechFailed });
        }
    }

    /// Tells in the transcript that the recording does not go on.
    fn note_cut_recording(&mut self) {
        if self.recording.take_cut() {
            self.note("The recording ends here: it could not be stored in time".to_owned());
        }
    }

    /// Writes a note into the transcript. After the end, it changes nothing about when that was.
    fn note(&mut self, text: String) {
        let at_ms = match self.conversation.ended() {
            Some(_) => self.conversation.now_ms(),
            None => self.now_ms(),
        };
        self.inputs.handle(&mut self.conversation, at_ms, Input::Note { text });
    }

    fn peer_event(&mut self, event: PeerEvent, peer: &dyn Peer) {
        let mut at_ms = self.now_ms();
        if event.is_the_end() {
            self.is_connection_over = true;
            at_ms = peer.ended_at_ms().unwrap_or(at_ms);
        }
        self.answer_voice(&event);
        match event {
            // These change the row of the line, which may be stored already.
            PeerEvent::LineBegan { .. }
            | PeerEvent::Interrupted { .. }
            | PeerEvent::BrokeOff { .. }
            | PeerEvent::Spoken { .. }
            | PeerEvent::Heard { .. } => {
                let saved_rows = self.saved_rows;
                self.saved_rows =
                    self.conversation.first_open_line().map_or(saved_rows, |row| row.min(saved_rows));
            }
            PeerEvent::Stop { fault, .. } => self.fault = Some(fault),
            PeerEvent::ProbablySaid(ref text) => self.think_early(text.clone()),
            PeerEvent::WentOn => self.forget_early(),
            _ => {}
        }
        self.pass_on(at_ms, self.of_whole_line(event));
    }

    /// Passes an event on, and remembers which rows it cuts.
    fn pass_on(&mut self, at_ms: i64, event: PeerEvent) {
        match event {
            PeerEvent::Interrupted { .. } => self.cut_rows.extend(self.conversation.open_lines()),
            PeerEvent::BrokeOff { .. } => self.cut_rows.extend(self.conversation.first_open_line()),
            _ => {}
        }
        self.inputs.handle(&mut self.conversation, at_ms, event.into_input());
    }

    fn handle(&mut self, input: Input) {
        let now_ms = self.now_ms();
        self.inputs.handle(&mut self.conversation, now_ms, input);
    }

    fn now_ms(&self) -> i64 {
        self.session.services.ports().clock.now_ms()
    }
}

/// 48 random bits, so that conversations differ.
fn seed(session: &LiveSession) -> u64 {
    let mut bytes = [0; 8];
    session.services.ports().random.fill(&mut bytes[..6]);
    u64::from_le_bytes(bytes)
}
